"""Projective dependency trees (Eisner 1996) on the device: log sums, marginals and best trees of whole batches.

Over places 0 (the root) to n, with S what lies between two places that get an arc, R and L spans with that arc, r and l complete
spans whose head is on their left or right:

    S(i, j) = log sum_{i <= k < j} exp( r(i, k) + l(k + 1, j) ),     R = S + arc(i -> j),     L = S + arc(j -> i)
    r(i, j) = log sum_{i < k <= j} exp( R(i, k) + r(k, j) ),         l(i, j) = log sum_{i <= k < j} exp( l(i, k) + L(k, j) )

and log Z = r(0, n). One program for each sentence goes through the widths of spans as `constituency` does, and back:
probabilities flow from spans to what they are made of, or along best splits. Charts are float64. Time O(n^3), memory 88 n^2 bytes
for each.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from partwise.torch.cuda.launch import gathered, launch, on_device, power_of_2, settled, share

CHARTS = 11  # S R L r l, best splits of r and l; what flows back to R L r l


@triton.jit(do_not_specialize=["n"])
def sweep(A, LEN, W, OUT, Z, n, SINGLE: tl.constexpr, BI: tl.constexpr, BK: tl.constexpr, BEST: tl.constexpr):
    """A, OUT (B, n, n + 1) scores and marginals of arcs to each word from each place; W (B, CHARTS, n + 1, n + 1)."""
    b = tl.program_id(0)
    N = n + 1
    size = N * N
    length = tl.load(LEN + b).to(tl.int32)
    places = length + 1
    A += b.to(tl.int64) * n * N
    OUT += b.to(tl.int64) * n * N
    S = W + b.to(tl.int64) * 11 * size
    R = S + size
    L = R + size
    r = L + size
    l = r + size  # noqa: E741
    KR = l + size
    KL = KR + size
    gR = KL + size
    gL = gR + size
    gr = gL + size
    gl = gr + size
    low = float("-inf")
    for i0 in range(0, places, BI):
        i = i0 + tl.arange(0, BI)
        tl.store(r + i * N + i, tl.zeros((BI,), tl.float64), mask=i < places)
        tl.store(l + i * N + i, tl.zeros((BI,), tl.float64), mask=i < places)
    tl.debug_barrier()
    for w in range(1, places):
        for i0 in range(0, places - w, BI):
            i = i0 + tl.arange(0, BI)
            j = i + w
            ok = j < places
            top = tl.full((BI,), float("-inf"), tl.float64)
            total = tl.zeros((BI,), tl.float64)
            for k0 in range(0, w, BK):
                k = k0 + tl.arange(0, BK)
                good = ok[:, None] & (k < w)[None, :]
                if SINGLE:  # the root has taken no word before
                    good = good & ((i > 0)[:, None] | (k == 0)[None, :])
                middle = i[:, None] + k[None, :]
                v = tl.load(r + i[:, None] * N + middle, mask=good, other=low)
                v += tl.load(l + (middle + 1) * N + j[:, None], mask=good, other=low)
                top, total = gathered(top, total, v, k, BEST)
            s = settled(top, total, BEST)
            place = i * N + j
            tl.store(R + place, s + tl.load(A + (j - 1) * N + i, mask=ok, other=low).to(tl.float64), mask=ok)
            tl.store(L + place, s + tl.load(A + (i - 1) * N + j, mask=ok & (i > 0), other=low).to(tl.float64), mask=ok)
            if BEST:
                tl.store(S + place, total, mask=ok)
            else:
                tl.store(S + place, s, mask=ok)
        tl.debug_barrier()
        for i0 in range(0, places - w, BI):
            i = i0 + tl.arange(0, BI)
            j = i + w
            ok = j < places
            place = i * N + j
            top = tl.full((BI,), float("-inf"), tl.float64)
            total = tl.zeros((BI,), tl.float64)
            for k0 in range(0, w, BK):
                k = k0 + tl.arange(0, BK)
                good = ok[:, None] & (k < w)[None, :]
                middle = i[:, None] + k[None, :] + 1
                v = tl.load(R + i[:, None] * N + middle, mask=good, other=low)
                v += tl.load(r + middle * N + j[:, None], mask=good, other=low)
                top, total = gathered(top, total, v, k, BEST)
            tl.store(r + place, settled(top, total, BEST), mask=ok)
            tl.store(KR + place, total, mask=ok)
            top = tl.full((BI,), float("-inf"), tl.float64)
            total = tl.zeros((BI,), tl.float64)
            for k0 in range(0, w, BK):
                k = k0 + tl.arange(0, BK)
                good = ok[:, None] & (k < w)[None, :]
                middle = i[:, None] + k[None, :]
                v = tl.load(l + i[:, None] * N + middle, mask=good, other=low)
                v += tl.load(L + middle * N + j[:, None], mask=good, other=low)
                top, total = gathered(top, total, v, k, BEST)
            tl.store(l + place, settled(top, total, BEST), mask=ok)
            tl.store(KL + place, total, mask=ok)
        tl.debug_barrier()
    z = tl.load(r + length)
    tl.store(Z + b, z)
    for v0 in range(0, places):
        w = length - v0
        for i0 in range(0, places - w, BI):
            i = i0 + tl.arange(0, BI)
            j = i + w
            ok = j < places
            place = i * N + j
            of_r = tl.where((i == 0) & (j == length), tl.where(z > low, 1.0, 0.0), 0.0).to(tl.float64)
            of_l = tl.zeros((BI,), tl.float64)
            right = tl.load(r + place, mask=ok, other=low)
            left = tl.load(l + place, mask=ok, other=low)
            for k0 in range(0, places - w, BK):
                k = k0 + tl.arange(0, BK)
                wider = j[:, None] + 1 + k[None, :]  # spans from i to further places
                good = ok[:, None] & (wider < places)
                up = i[:, None] * N + wider
                # r(i, j) before l(j + 1, further) in S(i, further)
                from_s = good
                if SINGLE:
                    from_s = good & ((i > 0) | (j == 0))[:, None]
                of = tl.load(gR + up, mask=from_s, other=0.0) + tl.load(gL + up, mask=from_s, other=0.0)
                whole = tl.load(S + up, mask=from_s, other=low)
                part = right[:, None] + tl.load(l + (j[:, None] + 1) * N + wider, mask=from_s, other=low)
                of_r += tl.sum(share(of, part, whole, whole, (w + 0 * up).to(tl.float64), BEST), axis=1)
                # l(i, j) before L(j, further) in l(i, further)
                of = tl.load(gl + up, mask=good, other=0.0)
                whole = tl.load(l + up, mask=good, other=low)
                split = tl.load(KL + up, mask=good, other=-1.0)
                part = left[:, None] + tl.load(L + j[:, None] * N + wider, mask=good, other=low)
                of_l += tl.sum(share(of, part, whole, split, (w + 0 * up).to(tl.float64), BEST), axis=1)
                before = k[None, :]  # spans from earlier places to j
                good = ok[:, None] & (before < i[:, None])
                up = before * N + j[:, None]
                # l(i, j) behind r(before, i - 1) in S(before, j)
                from_s = good
                if SINGLE:
                    from_s = good & ((before > 0) | (i == 1)[:, None])
                of = tl.load(gR + up, mask=from_s, other=0.0) + tl.load(gL + up, mask=from_s, other=0.0)
                whole = tl.load(S + up, mask=from_s, other=low)
                part = left[:, None] + tl.load(r + before * N + i[:, None] - 1, mask=from_s, other=low)
                of_l += tl.sum(share(of, part, whole, whole, (i[:, None] - 1 - before).to(tl.float64), BEST), axis=1)
                # r(i, j) behind R(before, i) in r(before, j)
                of = tl.load(gr + up, mask=good, other=0.0)
                whole = tl.load(r + up, mask=good, other=low)
                split = tl.load(KR + up, mask=good, other=-1.0)
                part = right[:, None] + tl.load(R + before * N + i[:, None], mask=good, other=low)
                of_r += tl.sum(share(of, part, whole, split, (i[:, None] - 1 - before).to(tl.float64), BEST), axis=1)
            tl.store(gr + place, of_r, mask=ok)
            tl.store(gl + place, of_l, mask=ok)
        tl.debug_barrier()
        if w > 0:
            for i0 in range(0, places - w, BI):
                i = i0 + tl.arange(0, BI)
                j = i + w
                ok = j < places
                place = i * N + j
                of_R = tl.zeros((BI,), tl.float64)
                of_L = tl.zeros((BI,), tl.float64)
                right = tl.load(R + place, mask=ok, other=low)
                left = tl.load(L + place, mask=ok, other=low)
                for k0 in range(0, places - w, BK):
                    k = k0 + tl.arange(0, BK)
                    wider = j[:, None] + k[None, :]  # R(i, j) before r(j, wider) in r(i, wider)
                    good = ok[:, None] & (wider < places)
                    up = i[:, None] * N + wider
                    of = tl.load(gr + up, mask=good, other=0.0)
                    whole = tl.load(r + up, mask=good, other=low)
                    split = tl.load(KR + up, mask=good, other=-1.0)
                    part = right[:, None] + tl.load(r + j[:, None] * N + wider, mask=good, other=low)
                    of_R += tl.sum(share(of, part, whole, split, (w - 1 + 0 * up).to(tl.float64), BEST), axis=1)
                    before = k[None, :]  # L(i, j) behind l(before, i) in l(before, j)
                    good = ok[:, None] & (before <= i[:, None])
                    up = before * N + j[:, None]
                    of = tl.load(gl + up, mask=good, other=0.0)
                    whole = tl.load(l + up, mask=good, other=low)
                    split = tl.load(KL + up, mask=good, other=-1.0)
                    part = left[:, None] + tl.load(l + before * N + i[:, None], mask=good, other=low)
                    of_L += tl.sum(share(of, part, whole, split, (i[:, None] - before).to(tl.float64), BEST), axis=1)
                tl.store(gR + place, of_R, mask=ok)
                tl.store(gL + place, of_L, mask=ok)
                tl.store(OUT + (j - 1) * N + i, of_R, mask=ok)
                tl.store(OUT + (i - 1) * N + j, of_L, mask=ok & (i > 0))
            tl.debug_barrier()


def trees(arcs: Tensor, lengths: Tensor, single_root: bool, best: bool = False) -> tuple[Tensor, Tensor]:
    """log Z (B,) and the marginals of arcs (B, n, n + 1), float64; or the best score, and ones for the arcs of the best tree."""
    B, n = arcs.shape[:2]
    device = arcs.device
    arcs, lengths = arcs.contiguous(), on_device(lengths, device)
    charts = torch.empty(B, CHARTS, n + 1, n + 1, dtype=torch.float64, device=device)
    found = torch.zeros(B, n, n + 1, dtype=torch.float64, device=device)
    values = torch.zeros(B, dtype=torch.float64, device=device)
    tile = min(power_of_2(n + 1), 64)
    launch(
        sweep, (B,), arcs, lengths, charts, found, values, n, SINGLE=bool(single_root), BI=min(tile, 32), BK=tile,
        BEST=best, num_warps=8,
    )  # fmt: skip
    return values, found
