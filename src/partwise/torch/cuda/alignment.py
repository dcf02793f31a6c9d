"""Alignments with affine gaps on the device: log sums, marginals and best alignments, by anti-diagonals.

Over how many places i and j of the two sequences are used up, with match M, a gap opposite the first sequence X, then Y:

    M(i, j) = match(i, j) + log( e^M + e^X + e^Y )(i - 1, j - 1)
    X(i, j) = log( e^(M + open) + e^(X + extend) )(i - 1, j)
    Y(i, j) = log( e^(M + open) + e^(X + open) + e^(Y + extend) )(i, j - 1),            log Z = log( e^M + e^X + e^Y )(n, m)

Gaps are those of the ends where nothing, or all, of the other sequence is used up. A local alignment begins and ends at any
match, for the scores of what is left out.

One program for each pair goes through the n + m + 1 anti-diagonals i + j = d, all i at once, and back: probabilities flow from
cells to those they were made from. Charts are float64 and lie slanted, row (i + j) mod (m + 1), so that a diagonal is one run of
memory and they still have n m cells. On the way back the chart of Y, and that of X a diagonal later, is no longer needed: what
flows into gaps of the second sequence is left there, and `fold` adds it up by place. Time O(n m), memory 24 n m bytes for each
pair.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from partwise.torch.cuda.launch import finite, launch, power_of_2

LONGEST = 2047  # places of a first sequence: one for each lane


@triton.jit
def either(a, b, c, BEST: tl.constexpr):
    """log of the sum of exponentials, or the maximum, of three."""
    m = tl.maximum(tl.maximum(a, b), c)
    if BEST:
        return m
    else:
        f = finite(m)
        return f + tl.log(tl.exp(a - f) + tl.exp(b - f) + tl.exp(c - f))


@triton.jit
def flow(of, part, whole):
    """What of the probability of a cell came by one way."""
    some = whole > float("-inf")
    return tl.where(some, of * tl.exp(tl.where(some, part - whole, float("-inf"))), 0.0)


@triton.jit(do_not_specialize=["N", "MM"])
def climb(
    MATCH, F, S, LEN, OUTER, M, X, Y, Z, LAST, N, MM,
    LOCAL: tl.constexpr, BI: tl.constexpr, BEST: tl.constexpr,
):  # fmt: skip
    """M, X, Y of pair b; OUTER (B, 2, N + 1 + MM + 1): sums of what is left out before and behind each place, for LOCAL."""
    b = tl.program_id(0).to(tl.int64)
    n = tl.load(LEN + b * 2).to(tl.int32)
    m = tl.load(LEN + b * 2 + 1).to(tl.int32)
    H = N + 1
    W = MM + 1
    MATCH += b * N * MM
    F += b * 4 * N
    S += b * 4 * MM
    OUTER += b * 2 * (H + W)
    M += b * H * W
    X += b * H * W
    Y += b * H * W
    low = float("-inf")
    i = tl.arange(0, BI)
    top = tl.full((BI,), float("-inf"), tl.float64)
    total = tl.zeros((BI,), tl.float64)
    where = tl.zeros((BI,), tl.int32)
    for d in range(0, n + m + 1):
        j = d - i
        ok = (i <= n) & (j >= 0) & (j <= m)
        both = ok & (i > 0) & (j > 0)
        above = ok & (i > 0)
        left = ok & (j > 0)
        p1 = ((d + W - 1) % W) * H + i
        p2 = ((d + 2 * W - 2) % W) * H + i - 1
        of_x = tl.zeros((BI,), tl.int32)
        of_y = tl.zeros((BI,), tl.int32)
        if not LOCAL:
            of_x = tl.where((j == 0) | (j == m), 2, 0)
            of_y = tl.where((i == 0) | (i == n), 2, 0)
        score = tl.load(MATCH + (i - 1) * MM + j - 1, mask=both, other=low).to(tl.float64)
        fo = tl.load(F + of_x * N + i - 1, mask=above, other=low).to(tl.float64)
        fe = tl.load(F + (of_x + 1) * N + i - 1, mask=above, other=low).to(tl.float64)
        so = tl.load(S + of_y * MM + j - 1, mask=left, other=low).to(tl.float64)
        se = tl.load(S + (of_y + 1) * MM + j - 1, mask=left, other=low).to(tl.float64)
        v = either(
            tl.load(M + p2, mask=both, other=low), tl.load(X + p2, mask=both, other=low),
            tl.load(Y + p2, mask=both, other=low), BEST,
        )  # fmt: skip
        if LOCAL:
            start = tl.load(OUTER + i - 1, mask=both, other=low) + tl.load(OUTER + H + j - 1, mask=both, other=low)
            v = either(v, start, start + float("-inf"), BEST)
        here = v + score
        if not LOCAL:
            here = tl.where((i == 0) & (j == 0), 0.0, here)
        x = either(
            tl.load(M + p1 - 1, mask=above, other=low) + fo, tl.load(X + p1 - 1, mask=above, other=low) + fe,
            fo + float("-inf"), BEST,
        )  # fmt: skip
        y = either(
            tl.load(M + p1, mask=left, other=low) + so, tl.load(X + p1, mask=left, other=low) + so,
            tl.load(Y + p1, mask=left, other=low) + se, BEST,
        )  # fmt: skip
        place = (d % W) * H + i
        tl.store(M + place, here, mask=ok)
        tl.store(X + place, x, mask=ok)
        tl.store(Y + place, y, mask=ok)
        end = low + tl.zeros((BI,), tl.float64)
        if LOCAL:
            end = here + tl.load(OUTER + H + W + i, mask=both, other=low) + tl.load(OUTER + H + W + H + j, mask=both, other=low)
        else:
            end = tl.where((i == n) & (j == m), either(here, x, y, BEST), low)
        end = tl.where(ok, end, low)
        if BEST:
            where = tl.where(end > top, d, where)
            top = tl.maximum(top, end)
        else:
            new = tl.maximum(top, end)
            f = finite(new)
            total = total * tl.exp(top - f) + tl.exp(end - f)
            top = new
        tl.debug_barrier()
    high = tl.max(top, axis=0)
    if LOCAL:
        nothing = tl.load(OUTER + H + W) + tl.load(OUTER + H + W + H)  # no match at all
        if BEST:
            row = tl.min(tl.where(top == high, i, BI - 1), axis=0)
            at = tl.sum(tl.where(i == row, where, 0), axis=0)
            tl.store(LAST + b * 2, tl.where(high > nothing, row, 0))
            tl.store(LAST + b * 2 + 1, tl.where(high > nothing, at - row, 0))
            tl.store(Z + b, tl.maximum(high, nothing))
        else:
            h = finite(tl.maximum(high, nothing))
            tl.store(
                Z + b,
                h + tl.log(tl.sum(total * tl.exp(finite(top) - h) * tl.where(total > 0, 1.0, 0.0), axis=0) + tl.exp(nothing - h)),
            )
    else:
        tl.store(
            Z + b,
            tl.sum(
                tl.where(i == n, top if BEST else tl.where(total > 0, top + tl.log(tl.where(total > 0, total, 1.0)), top), 0.0),
                axis=0,
            ),
        )
        if BEST:
            tl.store(LAST + b * 2, n)
            tl.store(LAST + b * 2 + 1, m)


@triton.jit(do_not_specialize=["N", "MM"])
def descend(
    MATCH, F, S, LEN, OUTER, M, X, Y, Z, RING, GM, GF, N, MM,
    LOCAL: tl.constexpr, BI: tl.constexpr,
):  # fmt: skip
    """Marginals of matches GM (B, N, MM), of gaps of the first sequence GF (B, 4, N); flows into the others in Y and X."""
    b = tl.program_id(0).to(tl.int64)
    n = tl.load(LEN + b * 2).to(tl.int32)
    m = tl.load(LEN + b * 2 + 1).to(tl.int32)
    H = N + 1
    W = MM + 1
    MATCH += b * N * MM
    GM += b * N * MM
    F += b * 4 * N
    GF += b * 4 * N
    S += b * 4 * MM
    OUTER += b * 2 * (H + W)
    M += b * H * W
    X += b * H * W
    Y += b * H * W
    RING += b * 2 * H
    low = float("-inf")
    z = tl.load(Z + b)
    i = tl.arange(0, BI)
    zero = tl.zeros((BI,), tl.float64)
    next_y = zero + float("-inf")  # Y(i, j + 1), of the diagonal before, and its probability
    of_next_y = zero
    late = zero  # what flows from Y(i, j + 1) to Y(i, j + 2), to be left in X
    opened = zero
    extended = zero
    end_opened = zero
    end_extended = zero
    for step in range(0, n + m + 1):
        d = n + m - step
        j = d - i
        ok = (i <= n) & (j >= 0) & (j <= m)
        place = (d % W) * H + i
        here = tl.load(M + place, mask=ok, other=low)
        x = tl.load(X + place, mask=ok, other=low)
        y = tl.load(Y + place, mask=ok, other=low)
        both = ok & (i < n) & (j < m)
        below = ok & (i < n)
        right = ok & (j < m)
        p1 = ((d + 1) % W) * H + i
        p2 = ((d + 2) % W) * H + i + 1
        of_x = tl.zeros((BI,), tl.int32)
        of_y = tl.zeros((BI,), tl.int32)
        if not LOCAL:
            of_x = tl.where((j == 0) | (j == m), 2, 0)
            of_y = tl.where((i == 0) | (i == n), 2, 0)
        score = tl.load(MATCH + i * MM + j, mask=both, other=low).to(tl.float64)
        fo = tl.load(F + of_x * N + i, mask=below, other=low).to(tl.float64)
        fe = tl.load(F + (of_x + 1) * N + i, mask=below, other=low).to(tl.float64)
        so = tl.load(S + of_y * MM + j, mask=right, other=low).to(tl.float64)
        se = tl.load(S + (of_y + 1) * MM + j, mask=right, other=low).to(tl.float64)
        of = tl.load(GM + i * MM + j, mask=both, other=0.0)
        whole = tl.load(M + p2, mask=both, other=low)
        of_here = flow(of, here + score, whole)
        of_x_here = flow(of, x + score, whole)
        of_y_here = flow(of, y + score, whole)
        of = tl.load(RING + ((d + 1) % 2) * H + i + 1, mask=below, other=0.0)
        whole = tl.load(X + p1 + 1, mask=below, other=low)
        open_flow = flow(of, here + fo, whole)
        extend_flow = flow(of, x + fe, whole)
        at_end = of_x == 2
        opened += tl.where(at_end, 0.0, open_flow)
        extended += tl.where(at_end, 0.0, extend_flow)
        end_opened += tl.where(at_end, open_flow, 0.0)
        end_extended += tl.where(at_end, extend_flow, 0.0)
        of_here += open_flow
        of_x_here += extend_flow
        of = tl.where(right, of_next_y, 0.0)
        from_match = flow(of, here + so, next_y)
        from_x = flow(of, x + so, next_y)
        from_y = flow(of, y + se, next_y)
        of_here += from_match
        of_x_here += from_x
        of_y_here += from_y
        if LOCAL:
            behind = tl.load(OUTER + H + W + i, mask=ok, other=low) + tl.load(OUTER + H + W + H + j, mask=ok, other=low)
            of_here += tl.where((i > 0) & (j > 0), flow(zero + 1.0, here + behind, z + zero), 0.0)
        else:
            last = (i == n) & (j == m)
            of_here += tl.where(last, flow(zero + 1.0, here, z + zero), 0.0)
            of_x_here += tl.where(last, flow(zero + 1.0, x, z + zero), 0.0)
            of_y_here += tl.where(last, flow(zero + 1.0, y, z + zero), 0.0)
        tl.store(GM + (i - 1) * MM + j - 1, of_here, mask=ok & (i > 0) & (j > 0))
        tl.store(RING + (d % 2) * H + i, of_x_here, mask=ok)
        tl.store(Y + p1, from_match + from_x, mask=right)
        tl.store(X + ((d + 2) % W) * H + i, late, mask=(i <= n) & (j + 2 <= m) & (j + 1 >= 0))
        late = tl.where(right, from_y, 0.0)
        next_y = tl.where(ok, y, low)
        of_next_y = tl.where(ok, of_y_here, 0.0)
        tl.debug_barrier()
    # flows out of the first column are still to be left
    tl.store(X + ((i + 1) % W) * H + i, late, mask=(i == 0) & (m > 0) & (n + m >= 0))
    fine = i < n
    tl.store(GF + i, opened, mask=fine)
    tl.store(GF + N + i, extended, mask=fine)
    tl.store(GF + 2 * N + i, end_opened, mask=fine)
    tl.store(GF + 3 * N + i, end_extended, mask=fine)


@triton.jit(do_not_specialize=["N", "MM"])
def fold(LEN, X, Y, GS, N, MM, LOCAL: tl.constexpr, BI: tl.constexpr):
    """Program (b, j): marginals of gaps opposite place j of the second sequence, GS (B, 4, MM)."""
    b = tl.program_id(0).to(tl.int64)
    j = tl.program_id(1)
    n = tl.load(LEN + b * 2).to(tl.int32)
    m = tl.load(LEN + b * 2 + 1).to(tl.int32)
    if j >= m:
        return
    H = N + 1
    W = MM + 1
    i = tl.arange(0, BI)
    place = b * H * W + ((i + j + 1) % W) * H + i
    opened = tl.load(Y + place, mask=i <= n, other=0.0)
    extended = tl.load(X + place, mask=i <= n, other=0.0)
    at_end = (i == 0) | (i == n)
    if LOCAL:
        at_end = i < 0
    GS += b * 4 * MM + j
    tl.store(GS, tl.sum(tl.where(at_end, 0.0, opened), axis=0))
    tl.store(GS + MM, tl.sum(tl.where(at_end, 0.0, extended), axis=0))
    tl.store(GS + 2 * MM, tl.sum(tl.where(at_end, opened, 0.0), axis=0))
    tl.store(GS + 3 * MM, tl.sum(tl.where(at_end, extended, 0.0), axis=0))


@triton.jit(do_not_specialize=["N", "MM"])
def walk_back(F, S, LEN, OUTER, M, X, Y, LAST, OUT, N, MM, LOCAL: tl.constexpr):
    """Partners of the best alignment, from its last cell back."""
    b = tl.program_id(0).to(tl.int64)
    n = tl.load(LEN + b * 2).to(tl.int32)
    m = tl.load(LEN + b * 2 + 1).to(tl.int32)
    i = tl.load(LAST + b * 2).to(tl.int32)
    j = tl.load(LAST + b * 2 + 1).to(tl.int32)
    H = N + 1
    W = MM + 1
    F += b * 4 * N
    S += b * 4 * MM
    OUTER += b * 2 * (H + W)
    M += b * H * W
    X += b * H * W
    Y += b * H * W
    OUT += b * N
    low = float("-inf")
    state = 0  # 0: match, 1: X, 2: Y
    if not LOCAL:
        place = ((i + j) % W) * H + i
        u = tl.load(M + place)
        v = tl.load(X + place)
        w = tl.load(Y + place)
        state = tl.where((u >= v) & (u >= w), 0, tl.where(v >= w, 1, 2))
    for _ in range(0, n + m):
        if (i > 0) | (j > 0):
            ci = tl.where(state == 2, i, i - 1)
            cj = tl.where(state == 1, j, j - 1)
            fine = (ci >= 0) & (cj >= 0)
            place = ((ci + cj) % W) * H + ci
            u = tl.load(M + place, mask=fine, other=low)
            v = tl.load(X + place, mask=fine, other=low)
            w = tl.load(Y + place, mask=fine, other=low)
            of_x = 0
            of_y = 0
            if not LOCAL:
                of_x = tl.where((j == 0) | (j == m), 2, 0)
                of_y = tl.where((i == 0) | (i == n), 2, 0)
            fo = tl.load(F + of_x * N + ci, mask=fine & (state == 1), other=0.0).to(tl.float64)
            fe = tl.load(F + (of_x + 1) * N + ci, mask=fine & (state == 1), other=0.0).to(tl.float64)
            so = tl.load(S + of_y * MM + cj, mask=fine & (state == 2), other=0.0).to(tl.float64)
            se = tl.load(S + (of_y + 1) * MM + cj, mask=fine & (state == 2), other=0.0).to(tl.float64)
            u = u + tl.where(state == 1, fo, tl.where(state == 2, so, 0.0))
            v = v + tl.where(state == 1, fe, tl.where(state == 2, so, 0.0))
            w = tl.where(state == 1, low, w + tl.where(state == 2, se, 0.0))
            tl.store(OUT + ci, cj.to(tl.int64), mask=(state == 0) & fine)
            begun = 0
            if LOCAL:
                start = tl.load(OUTER + ci, mask=fine, other=low) + tl.load(OUTER + H + cj, mask=fine, other=low)
                begun = tl.where((state == 0) & (start >= u) & (start >= v) & (start >= w), 1, 0)
            state = tl.where((u >= v) & (u >= w), 0, tl.where(v >= w, 1, 2))
            i = tl.where(begun == 1, 0, ci)
            j = tl.where(begun == 1, 0, cj)


def _laid_out(tensors: Sequence[Tensor], lengths: Tensor, local: int) -> tuple:
    match, first, second = (t.contiguous() for t in tensors)
    B, n, m = match.shape
    outer = torch.zeros(B, 2, n + 1 + m + 1, dtype=torch.float64, device=match.device)
    lengths = lengths.to(match.device, torch.int32)
    if local:
        for k, gaps in enumerate((first, second)):
            size = gaps.shape[2]
            inside = torch.arange(size, device=match.device) < lengths[:, k, None]
            left = torch.where(inside, gaps[:, 3].double(), 0.0)
            at = k * (n + 1)
            outer[:, 0, at + 1 : at + size + 1] = left.cumsum(1)
            outer[:, 1, at : at + size] = left.flip(1).cumsum(1).flip(1)
    return match, first, second, lengths, outer


def _climb(match, first, second, lengths, outer, local: int, best: bool) -> tuple[Tensor, Tensor, Tensor]:
    B, n, m = match.shape
    charts = torch.empty(3, B, n + 1, m + 1, dtype=torch.float64, device=match.device)
    values = torch.empty(B, dtype=torch.float64, device=match.device)
    last = torch.zeros(B, 2, dtype=torch.int32, device=match.device)
    launch(
        climb, (B,), match, first, second, lengths, outer, charts[0], charts[1], charts[2], values, last, n, m,
        LOCAL=bool(local), BI=power_of_2(n + 1), BEST=best, num_warps=_warps(n),
    )  # fmt: skip
    return values, charts, last


def _warps(n: int) -> int:
    return min(16, max(1, power_of_2(n + 1) // 64))


def sums(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """log Z and the marginals of all parts: the operator `partwise::alignment_sums`."""
    (local,) = sizes
    match, first, second, lengths, outer = _laid_out(tensors, lengths, local)
    B, n, m = match.shape
    device, dtype = match.device, torch.float64 if match.dtype == torch.float64 else torch.float32
    values, charts, _ = _climb(match, first, second, lengths, outer, local, False)
    of_match = torch.zeros(B, n, m, dtype=torch.float64, device=device)
    of_first = torch.zeros(B, 4, n, dtype=torch.float64, device=device)
    of_second = torch.zeros(B, 4, m, dtype=torch.float64, device=device)
    ring = torch.zeros(B, 2, n + 1, dtype=torch.float64, device=device)
    sizes_of = {"LOCAL": bool(local), "BI": power_of_2(n + 1)}
    launch(
        descend, (B,), match, first, second, lengths, outer, charts[0], charts[1], charts[2], values, ring, of_match,
        of_first, n, m, **sizes_of, num_warps=_warps(n),
    )  # fmt: skip
    launch(fold, (B, m), lengths, charts[1], charts[2], of_second, n, m, **sizes_of, num_warps=_warps(n))
    if local:  # a place is matched, in a gap, or left out
        some = (values > -torch.inf)[:, None]
        for k, (found, dim) in enumerate(((of_first, 2), (of_second, 1))):
            inside = torch.arange(found.shape[2], device=device) < lengths[:, k, None]
            rest = 1 - of_match.sum(dim) - found[:, :2].sum(1)
            found[:, 3] = torch.where(inside & some, rest.clamp(min=0), 0.0)
    return [values.to(dtype), of_match.to(dtype), of_first.to(dtype), of_second.to(dtype)]


def best(tensors: Sequence[Tensor], lengths: Tensor, sizes: Sequence[int], width: int) -> tuple[Tensor, Tensor]:
    """Scores of the best alignments and partners, -1 for none: the operator `partwise::alignment_best`."""
    (local,) = sizes
    match, first, second, lengths, outer = _laid_out(tensors, lengths, local)
    B, n, m = match.shape
    values, charts, last = _climb(match, first, second, lengths, outer, local, True)
    outputs = torch.full((B, width), -1, dtype=torch.int64, device=match.device)
    launch(
        walk_back, (B,), first, second, lengths, outer, charts[0], charts[1], charts[2], last, outputs, n, m,
        LOCAL=bool(local), num_warps=1,
    )  # fmt: skip
    outputs = torch.where(torch.arange(width, device=match.device) < lengths[:, :1], outputs, 0)
    return values.to(torch.float64 if match.dtype == torch.float64 else torch.float32), outputs
