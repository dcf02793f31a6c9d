"""Segmentations (semi-Markov chains) on the device: log sums, marginals and best segmentations.

With x(a) the log sum over all that ends before token a, what the labels there say to the segment that begins at a included, and
y(e, k) that over all whose last segment ends at e with label k:

    y(e, k) = log sum_d exp( x(e - d, k) + s(e - d, d, k) ),        x(e + 1, k) = log sum_k' exp( y(e, k') + w(k', k) )

and the mirror image from the end, run as a second program of each sequence at the same time. Only the D latest x are needed: they
stay in registers as a ring of slots, token a in slot a mod D, to which the codes of tokens that a segment covers are added on the
way. What is kept is x and y of each token: memory O(T K), whatever the length of segments; no table of (T, D, K, K) is made.
Marginals of segments, and expected transitions, are then read off for all tokens at once. Time O(T (D K + K^2)).

For the best segmentation the same recursion keeps maxima, with the length and the label before of each best end, O(T K), and one
walk back follows them. Scores are summed in float64: differences of large sums keep their digits.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from partwise.torch.cuda.launch import finite, launch, power_of_2

SPLITS = 8  # programs of a sequence that add up transitions


@triton.jit(do_not_specialize=["T", "D", "of_tr", "of_en"])
def scan(
    CODES, SEG, LEN, TR, EN, XB, YE, XA, YB, Z, HOW, FROM, T, D, of_tr, of_en,
    K: tl.constexpr, KP: tl.constexpr, DP: tl.constexpr, BEST: tl.constexpr,
):  # fmt: skip
    """Program (b, d): forwards (d = 0) XB = x and YE = y; backwards YB, the mirror of y by first tokens, XA, that of x by last.

    With BEST only forwards: HOW is the best length less 1 of a segment that ends at a token with a label, FROM the best label
    before a segment that begins there.
    """
    b = tl.program_id(0)
    d = tl.program_id(1)
    n = tl.load(LEN + b).to(tl.int32)
    if n == 0:
        if d == 0:
            tl.store(Z + b, 0.0)
        return
    low = float("-inf")
    k = tl.arange(0, KP)
    slot = tl.arange(0, DP)
    fine = k < K
    at = b.to(tl.int64) * T
    CODES += at * (2 * K)
    SEG += at * D * K
    TR += b.to(tl.int64) * of_tr
    EN += b.to(tl.int64) * of_en
    square = fine[:, None] & fine[None, :]
    stop = tl.load(EN + k, mask=fine, other=low).to(tl.float64)
    ring = tl.full((DP, KP), float("-inf"), tl.float64)
    if d == 0:
        w = tl.load(TR + k[:, None] * K + k[None, :], mask=square, other=low).to(tl.float64)  # [before, after]
        x = tl.load(TR + K * K + k, mask=fine, other=low).to(tl.float64)
    else:
        w = tl.load(TR + k[None, :] * K + k[:, None], mask=square, other=low).to(tl.float64)  # [after, before]
        x = stop
    y = x
    for step in range(0, n):
        t = step
        if d == 1:
            t = n - 1 - step
        begins = tl.load(CODES + t * 2 * K + K + k, mask=fine, other=0.0).to(tl.float64)
        goes_on = tl.load(CODES + t * 2 * K + k, mask=fine, other=0.0).to(tl.float64)
        now = step % DP
        back = (now - slot + DP) % DP  # how many steps ago a slot was filled
        there = (back < D) & (back <= step)
        good = there[:, None] & fine[None, :]
        if d == 0:
            tl.store(XB + (at + t) * K + k, x, mask=fine)
            ring = tl.where((slot == now)[:, None], (x + begins)[None, :], ring + goes_on[None, :])
            place = ((t - back) * D + back)[:, None] * K + k[None, :]
        else:
            tl.store(XA + (at + t) * K + k, x, mask=fine)
            ring = tl.where((slot == now)[:, None], x[None, :], ring)
            place = (t * D + back)[:, None] * K + k[None, :]
        v = ring + tl.load(SEG + place, mask=good, other=low).to(tl.float64)
        if d == 1:
            v = v + begins[None, :]
            ring = ring + goes_on[None, :]
        m = tl.max(v, axis=0)
        if BEST:
            y = m
            tl.store(HOW + (at + t) * K + k, tl.min(tl.where(v == m[None, :], back[:, None], DP - 1), axis=0), mask=fine)
        else:
            f = finite(m)
            y = f + tl.log(tl.sum(tl.exp(v - f[None, :]), axis=0))
        if d == 0:
            tl.store(YE + (at + t) * K + k, y, mask=fine)
        else:
            tl.store(YB + (at + t) * K + k, y, mask=fine)
        u = y[:, None] + w
        m1 = tl.max(u, axis=0)
        if BEST:
            x = m1
            tl.store(FROM + (at + t) * K + k, tl.min(tl.where(u == m1[None, :], k[:, None], KP - 1), axis=0), mask=fine)
        else:
            f1 = finite(m1)
            x = f1 + tl.log(tl.sum(tl.exp(u - f1[None, :]), axis=0))
    if d == 0:
        v1 = y + stop
        m2 = tl.max(v1, axis=0)
        if BEST:
            tl.store(Z + b, m2)
        else:
            f2 = finite(m2)
            tl.store(Z + b, f2 + tl.log(tl.sum(tl.exp(v1 - f2), axis=0)))


@triton.jit(do_not_specialize=["T", "D"])
def read_off(CODES, SEG, LEN, XB, XA, Z, OF_SEG, T, D, K: tl.constexpr, KP: tl.constexpr):
    """Program (b, a): marginals of the segments that begin at token a, (D, K)."""
    b = tl.program_id(0)
    a = tl.program_id(1)
    n = tl.load(LEN + b).to(tl.int32)
    k = tl.arange(0, KP)
    fine = k < K
    row = b.to(tl.int64) * T + a
    z = tl.load(Z + b)
    if a >= n:
        return
    if z == float("-inf"):
        return
    s = tl.load(XB + row * K + k, mask=fine, other=float("-inf")) - z
    s += tl.load(CODES + row * 2 * K + K + k, mask=fine, other=0.0).to(tl.float64)
    for d in range(0, tl.minimum(D, n - a)):
        if d > 0:
            s += tl.load(CODES + (row + d) * 2 * K + k, mask=fine, other=0.0).to(tl.float64)
        p = s + tl.load(SEG + (row * D + d) * K + k, mask=fine, other=0.0).to(tl.float64)
        p += tl.load(XA + (row + d) * K + k, mask=fine, other=float("-inf"))
        tl.store(OF_SEG + (row * D + d) * K + k, tl.exp(p), mask=fine)


@triton.jit(do_not_specialize=["T", "of_tr"])
def add_transitions(LEN, TR, YE, YB, Z, PART, T, of_tr, K: tl.constexpr, KP: tl.constexpr):
    """Program (b, s): expected transitions at every SPLITS-th token, from s on."""
    b = tl.program_id(0)
    split = tl.program_id(1)
    splits = tl.num_programs(1)
    n = tl.load(LEN + b).to(tl.int32)
    k = tl.arange(0, KP)
    fine = k < K
    square = fine[:, None] & fine[None, :]
    row = b.to(tl.int64) * T
    w = tl.load(TR + b.to(tl.int64) * of_tr + k[:, None] * K + k[None, :], mask=square, other=float("-inf")).to(tl.float64)
    z = tl.load(Z + b)
    total = tl.zeros((KP, KP), tl.float64)
    if z > float("-inf"):
        for t in range(1 + split, n, splits):
            before = tl.load(YE + (row + t - 1) * K + k, mask=fine, other=float("-inf")) - z
            after = tl.load(YB + (row + t) * K + k, mask=fine, other=float("-inf"))
            total += tl.exp(before[:, None] + w + after[None, :])
    tl.store(PART + (b.to(tl.int64) * splits + split) * K * K + k[:, None] * K + k[None, :], total, mask=square)


@triton.jit(do_not_specialize=["T", "of_en"])
def walk_back(LEN, EN, YE, HOW, FROM, OUT, T, of_en, K: tl.constexpr, KP: tl.constexpr):
    """The codes of the best segmentation: K + k where a segment begins, k where it goes on."""
    b = tl.program_id(0)
    n = tl.load(LEN + b).to(tl.int32)
    k = tl.arange(0, KP)
    row = b.to(tl.int64) * T
    if n > 0:
        v = tl.load(YE + (row + n - 1) * K + k, mask=k < K, other=float("-inf"))
        v += tl.load(EN + b.to(tl.int64) * of_en + k, mask=k < K, other=float("-inf")).to(tl.float64)
        label = tl.min(tl.where(v == tl.max(v, axis=0), k, KP - 1), axis=0)
        left = tl.load(HOW + (row + n - 1) * K + label)
        for step in range(0, n):
            t = n - 1 - step
            begins = left == 0
            tl.store(OUT + row + t, tl.where(begins, K + label, label).to(tl.int64))
            back = tl.load(FROM + (row + t - 1) * K + label, mask=t > 0, other=0)
            further = tl.load(HOW + (row + t - 1) * K + back, mask=t > 0, other=0)
            label = tl.where(begins, back, label)
            left = tl.where(begins, further, left - 1)


def _laid_out(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int]) -> tuple:
    codes, segments, table, stop = (t.contiguous() for t in tensors)
    K, D = sizes
    strides = table.stride(0) if table.shape[0] > 1 else 0, stop.stride(0) if stop.shape[0] > 1 else 0
    sizes_of = {"K": K, "KP": power_of_2(K)}
    return codes, segments, table, stop, lengths.to(codes.device, torch.int32), D, strides, sizes_of


def _scan(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int], best: bool) -> tuple[Tensor, Tensor, Tensor]:
    codes, segments, table, stop, lengths, D, strides, sizes_of = _laid_out(tensors, lengths, sizes)
    B, T = codes.shape[:2]
    K, device = sizes_of["K"], codes.device
    states = torch.empty(2 if best else 4, B, T, K, dtype=torch.float64, device=device)
    how = torch.empty(2 if best else 0, B, T, K, dtype=torch.int32, device=device)
    values = torch.zeros(B, dtype=torch.float64, device=device)
    x, y = states[0], states[1]
    x2, y2 = (x, y) if best else (states[2], states[3])
    pointers = (how[0], how[1]) if best else (lengths, lengths)
    launch(
        scan, (B, 1 if best else 2), codes, segments, lengths, table, stop, x, y, x2, y2, values, *pointers, T, D, *strides,
        **sizes_of, DP=power_of_2(D, 2), BEST=best, num_warps=4,
    )  # fmt: skip
    return values, states, how


def sums(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """log Z and the marginals of all parts: the operator `partwise::segments_sums`."""
    codes, segments, table, stop, at, D, strides, sizes_of = _laid_out(tensors, lengths, sizes)
    B, T = codes.shape[:2]
    K, dtype, device = sizes_of["K"], torch.float32, codes.device
    dtype = torch.float64 if segments.dtype == torch.float64 else dtype
    values, (x, y, after, firsts), _ = _scan(tensors, lengths, sizes, best=False)
    of_segments = torch.zeros(segments.shape, dtype=dtype, device=device)
    launch(read_off, (B, T), codes, segments, at, x, after, values, of_segments, T, D, **sizes_of, num_warps=1)
    parts = torch.empty(B, SPLITS, K, K, dtype=torch.float64, device=device)
    launch(add_transitions, (B, SPLITS), at, table, y, firsts, values, parts, T, strides[0], **sizes_of, num_warps=4)
    of_table = torch.zeros(B, K + 1, K, dtype=dtype, device=device)
    of_table[:, :K] = parts.sum(1)
    of_stop = torch.zeros(B, K, dtype=dtype, device=device)
    of_codes = torch.zeros(codes.shape, dtype=dtype, device=device)
    if T:
        inside = (torch.arange(T, device=device) < at[:, None]) & (values > -torch.inf)[:, None]
        begun = torch.where(inside[..., None], (x + firsts - values[:, None, None]).exp(), 0.0)
        ended = torch.where(inside[..., None], (y + after - values[:, None, None]).exp(), 0.0)
        of_codes[:, :, K:] = begun
        of_codes[:, 1:, :K] = (begun.cumsum(1)[:, :-1] - ended.cumsum(1)[:, :-1]).clamp(min=0)
        of_table[:, K] = begun[:, 0]
        last = (at.long() - 1).clamp(min=0)
        of_stop = ended.gather(1, last[:, None, None].expand(-1, 1, K))[:, 0].to(dtype)
    return [values.to(dtype), of_codes, of_segments, of_table, of_stop]


def best(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int], width: int) -> tuple[Tensor, Tensor]:
    """Scores of the best segmentations and their codes, (B, T): the operator `partwise::segments_best`."""
    codes, segments, table, stop, at, D, strides, sizes_of = _laid_out(tensors, lengths, sizes)
    B, T = codes.shape[:2]
    values, (_, y), (how, before) = _scan(tensors, lengths, sizes, best=True)
    outputs = torch.zeros(B, width, dtype=torch.int64, device=codes.device)
    launch(walk_back, (B,), at, stop, y, how, before, outputs, T, strides[1], **sizes_of, num_warps=1)
    return values.to(torch.float64 if segments.dtype == torch.float64 else torch.float32), outputs
