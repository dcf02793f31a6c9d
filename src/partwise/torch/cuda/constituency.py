"""Trees over spans (CKY without a grammar) on the device: log sums, marginals and best trees of whole batches.

    C(i, j) = s(i, j) + log sum_{i <= k < j} exp( C(i, k) + C(k + 1, j) ),        C(i, i) = s(i, i),        log Z = C(0, n - 1)

One program for each sentence goes through the widths of spans, all spans of a width and all their splits at once, in tiles; then
back from the widest, where a span's marginal is the sum, over the spans it is half of, of their marginals times the probability
of that split. For the best tree the same walk back follows the best splits instead. n steps each way instead of n^3, no launch
between them, no atomic addition: two runs agree bit by bit. Charts are float64: it is widths that take time, not exponentials,
and differences of large scores keep their digits. Time O(n^3), memory 24 n^2 bytes for each sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from partwise.torch.cuda.launch import gathered, launch, power_of_2, settled, share
from partwise.torch.reference import log_sum_exp


@triton.jit(do_not_specialize=["n"])
def sweep(S, LEN, C, INNER, G, Z, n, BI: tl.constexpr, BK: tl.constexpr, BEST: tl.constexpr):
    """S, G (B, n, n) scores and marginals; C charts; INNER what spans are without their own score, or (BEST) their best split."""
    b = tl.program_id(0)
    length = tl.load(LEN + b).to(tl.int32)
    if length == 0:
        tl.store(Z + b, 0.0)
        return
    at = b.to(tl.int64) * n * n
    S += at
    C += at
    INNER += at
    G += at
    low = float("-inf")
    for w in range(0, length):
        for i0 in range(0, length - w, BI):
            i = i0 + tl.arange(0, BI)
            ok = i + w < length
            top = tl.full((BI,), float("-inf"), tl.float64)
            total = tl.zeros((BI,), tl.float64)
            for k0 in range(0, w, BK):
                k = k0 + tl.arange(0, BK)
                good = ok[:, None] & (k < w)[None, :]
                middle = i[:, None] + k[None, :]
                v = tl.load(C + i[:, None] * n + middle, mask=good, other=low)
                v += tl.load(C + (middle + 1) * n + (i + w)[:, None], mask=good, other=low)
                top, total = gathered(top, total, v, k, BEST)
            inner = settled(top, total, BEST)
            if w == 0:
                inner = tl.zeros((BI,), tl.float64)
            place = i * n + i + w
            tl.store(C + place, inner + tl.load(S + place, mask=ok, other=low).to(tl.float64), mask=ok)
            if BEST:
                tl.store(INNER + place, total, mask=ok)
            else:
                tl.store(INNER + place, inner, mask=ok)
        tl.debug_barrier()
    z = tl.load(C + length - 1)
    tl.store(Z + b, z)
    for v0 in range(0, length):
        w = length - 1 - v0
        for i0 in range(0, length - w, BI):
            i = i0 + tl.arange(0, BI)
            j = i + w
            ok = j < length
            c = tl.load(C + i * n + j, mask=ok, other=low)
            g = tl.where((i == 0) & (j == length - 1), tl.where(z > low, 1.0, 0.0), 0.0).to(tl.float64)
            for k0 in range(0, length - 1 - w, BK):
                k = k0 + tl.arange(0, BK)
                good = ok[:, None] & ((j[:, None] + 1 + k[None, :]) < length)  # the left half of a span up to j + 1 + k
                place = i[:, None] * n + j[:, None] + 1 + k[None, :]
                part = c[:, None] + tl.load(C + (j[:, None] + 1) * n + j[:, None] + 1 + k[None, :], mask=good, other=low)
                of = tl.load(G + place, mask=good, other=0.0)
                inner = tl.load(INNER + place, mask=good, other=low)
                g += tl.sum(share(of, part, inner, inner, (w + 0 * place).to(tl.float64), BEST), axis=1)
                good = ok[:, None] & (k[None, :] < i[:, None])  # the right half of a span from k on
                place = k[None, :] * n + j[:, None]
                part = c[:, None] + tl.load(C + k[None, :] * n + i[:, None] - 1, mask=good, other=low)
                of = tl.load(G + place, mask=good, other=0.0)
                inner = tl.load(INNER + place, mask=good, other=low)
                g += tl.sum(share(of, part, inner, inner, (i[:, None] - 1 - k[None, :]).to(tl.float64), BEST), axis=1)
            tl.store(G + i * n + j, g, mask=ok)
        tl.debug_barrier()


def spans(scores: Tensor, lengths: Tensor, best: bool = False) -> tuple[Tensor, Tensor]:
    """log Z (B,) and the marginals of spans (B, n, n), float64; or the best score, and ones for the spans of the best tree.

    ``scores[b, i, j]`` is that of the span of words i to j, both in it, i <= j.
    """
    B, n = scores.shape[:2]
    device = scores.device
    scores = scores.contiguous()
    charts = torch.empty(2, B, n, n, dtype=torch.float64, device=device)
    found = torch.zeros(B, n, n, dtype=torch.float64, device=device)
    values = torch.zeros(B, dtype=torch.float64, device=device)
    tile = min(power_of_2(n), 64)
    lengths = lengths.to(device, torch.int32)
    launch(
        sweep, (B,), scores, lengths, charts[0], charts[1], found, values, n, BI=min(tile, 32), BK=tile, BEST=best, num_warps=8
    )
    return values, found


def sums(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """log Z and the marginals of spans, (B, n + 1, n + 1, L): the operator `partwise::spans_sums`."""
    (given,) = tensors
    dtype = torch.float64 if given.dtype == torch.float64 else torch.float32
    own = given[..., 0] if given.shape[-1] == 1 else log_sum_exp(given.to(dtype), -1)
    log_z, found = spans(own[:, :-1, 1:], lengths)
    found = torch.nn.functional.pad(found, (1, 0, 0, 1)).to(dtype)[..., None]
    if given.shape[-1] > 1:
        some = found > 0
        found = found * torch.where(some, given.to(dtype) - torch.where(some, own[..., None], 0.0), -torch.inf).exp()
    return [log_z.to(dtype), found]


def best(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int], width: int) -> tuple[Tensor, Tensor]:
    """Scores of the best trees and the numbers of their spans, in pre-order: the operator `partwise::spans_best`."""
    (given,) = tensors
    (L,) = sizes
    dtype = torch.float64 if given.dtype == torch.float64 else torch.float32
    own, labels = given[:, :-1, 1:].max(-1)
    values, found = spans(own, lengths, best=True)
    n = own.shape[1]
    place = torch.arange(n * n, device=given.device)
    there = found.flip(2).flatten(1) > 0  # by begin, then from the longest
    places = torch.where(there, place, n * n).sort(1).values[:, :width]
    inside = places < n * n
    places = torch.where(inside, places, 0)
    begins, ends = places // max(n, 1), n - places % max(n, 1)
    labels = labels.flatten(1).gather(1, begins * n + ends - 1) if width else places
    return values.to(dtype), torch.where(inside, (ends * (ends - 1) // 2 + begins) * L + labels, 0)
