"""Marginals of linear chains from the states that `chain_scan` left: nothing here waits for the step before.

The probability of a label at a token is a softmax of a_t + b_t - e_t. The expected number of a transition is

    sum_t 2^( a_{t-1}(i) + w(i, j) + b_t(j) - log2 Z_t ),      log2 Z_t = shift_t + log2 sum_j 2^( a_t(j) + b_t(j) - e_t(j) )

Normalising by the step's own sum, rather than by Z, keeps errors from piling up over the sequence. Tiles of tokens are
multiplied, 2^a' times 2^b, on the matrix units (three bfloat16 products for one of float32), so that no tensor with an entry for
each pair of labels at each token is ever made: each program adds up its tiles, and the programs' sums are added by a last, small
sum in a fixed order. Where the scan was flagged and the spread of transitions is wider than float32's exponents, `expect_again`
adds the same by L^2 exponentials a token. Time O(T L^2) for each sequence, all tokens at once; memory O(programs L^2).
"""

from __future__ import annotations

import triton
import triton.language as tl

from partwise.torch.cuda.chain_scan import SCALE
from partwise.torch.cuda.launch import LOG2E, finite, lg2

WIDEST = tl.constexpr(144.0)  # spread of a column of transitions, in bits, that products in float32 survive


@triton.jit
def _transitions(TR, label, L: tl.constexpr):
    square = (label[:, None] < L) & (label[None, :] < L)
    w = tl.load(TR + label[:, None] * L + label[None, :], mask=square, other=float("-inf"))
    return w.to(tl.float32) * LOG2E


@triton.jit
def _tile(
    E, Y, X0, X1, SH, DE, total, begin, end, top, first, n, width, g, flag, tile, label,
    L: tl.constexpr, KT: tl.constexpr, PRECISION: tl.constexpr, GOLD: tl.constexpr,
):  # fmt: skip
    """KT tokens of one sequence: their marginals are stored, what they give to the tables is added."""
    fine = label < L
    t = tile * KT + tl.arange(0, KT)
    here = t < n
    ok = here[:, None] & fine[None, :]
    after = (t > 0) & here
    place = (first + t)[:, None] * L + label[None, :]
    y = tl.load(X1 + place, mask=ok, other=float("-inf"))
    x = tl.load(X0 + place, mask=ok, other=float("-inf"))
    e = tl.load(E + place, mask=ok, other=0.0).to(tl.float32) * LOG2E
    a = tl.load(X0 + place - L, mask=ok & (t > 0)[:, None], other=float("-inf"))
    shift = tl.load(SH + first + t, mask=after, other=0.0)
    u = tl.where(e == float("-inf"), float("-inf"), x + y - e)
    um = finite(tl.max(u, axis=1))
    q = tl.exp2(u - um[:, None])
    z = tl.sum(q, axis=1)
    possible = here & (z > 0.0)
    q = q * tl.where(possible, g / tl.where(possible, z, 1.0), 0.0)[:, None]
    if GOLD:
        now = tl.load(Y + first + t, mask=here, other=-1).to(tl.int32)
        q = tl.where(label[None, :] == now[:, None], q - g, q)
    tl.store(DE + place, q, mask=(t < width)[:, None] & fine[None, :])
    begin += tl.sum(tl.where((t == 0)[:, None] & ok, q, 0.0), axis=0)
    end += tl.sum(tl.where((t == n - 1)[:, None] & ok, q, 0.0), axis=0)
    am = finite(tl.max(a, axis=1))
    p = tl.exp2(a - am[:, None] + SCALE)
    s = tl.where(after & possible & (flag == 0), am - 2 * SCALE - (um + lg2(z) + shift), float("-inf"))
    total = tl.dot(tl.trans(p), tl.exp2(y + top[None, :] + s[:, None]) * g, total, input_precision=PRECISION)
    return total, begin, end


@triton.jit(do_not_specialize=["B", "T", "PER", "GROUP", "of_tr"])
def expect(
    E, BEG, LEN, TR, Y, G, X0, X1, SH, FLAG, DE, PART, B, T, PER, GROUP, of_tr,
    L: tl.constexpr, LP: tl.constexpr, KT: tl.constexpr, PRECISION: tl.constexpr,
    GOLD: tl.constexpr, WEIGHED: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    """Program (g, s): GROUP sequences from g GROUP on, of each PER tiles of KT tokens from s PER on.

    DE, a row for each token, is the marginals, less the gold labels (GOLD), times G (WEIGHED); zero in padding. PART is the
    program's share of the same for transitions, start and stop, (L + 2, L).
    """
    group = tl.program_id(0)
    split = tl.program_id(1)
    label = tl.arange(0, LP)
    fine = label < L
    square = fine[:, None] & fine[None, :]
    TR += group.to(tl.int64) * of_tr
    w = _transitions(TR, label, L)
    top = finite(tl.max(w, axis=0))
    narrow = tl.max(top - tl.min(tl.where(square, w, top[None, :]), axis=0), axis=0) < WIDEST
    total = tl.zeros((LP, LP), tl.float32)
    begin = tl.zeros((LP,), tl.float32)
    end = tl.zeros((LP,), tl.float32)
    g = 1.0
    if PADDED:  # every tile is stored: one loop over all of them, so that loads of the next are on their way
        for item in range(0, GROUP * PER):
            b = group * GROUP + item // PER
            there = b < B
            n = tl.load(LEN + b, mask=there, other=0).to(tl.int32)
            if WEIGHED:
                g = tl.load(G + b, mask=there, other=0.0).to(tl.float32)
            flag = tl.load(FLAG + b * 2, mask=there & (not narrow), other=0)
            flag += tl.load(FLAG + b * 2 + 1, mask=there & (not narrow), other=0)
            width = tl.where(there, T, 0)
            total, begin, end = _tile(
                E, Y, X0, X1, SH, DE, total, begin, end, top, b.to(tl.int64) * T, n, width, g, flag, split * PER + item % PER,
                label, L, KT, PRECISION, GOLD,
            )  # fmt: skip
    else:
        for b in range(group * GROUP, tl.minimum(group * GROUP + GROUP, B)):
            n = tl.load(LEN + b).to(tl.int32)
            first = tl.load(BEG + b).to(tl.int64)
            if WEIGHED:
                g = tl.load(G + b).to(tl.float32)
            flag = tl.load(FLAG + b * 2, mask=not narrow, other=0) + tl.load(FLAG + b * 2 + 1, mask=not narrow, other=0)
            for tile in range(split * PER, tl.minimum(split * PER + PER, tl.cdiv(n, KT))):
                total, begin, end = _tile(
                    E, Y, X0, X1, SH, DE, total, begin, end, top, first, n, n, g, flag, tile, label, L, KT, PRECISION, GOLD
                )
    mine = PART + (group * tl.num_programs(1) + split).to(tl.int64) * ((L + 2) * L)
    place = mine + label[:, None] * L + label[None, :]
    tl.store(place, total * tl.exp2(_transitions(TR, label, L) - top[None, :] + SCALE), mask=square)
    tl.store(mine + L * L + label, begin, mask=fine)
    tl.store(mine + (L + 1) * L + label, end, mask=fine)
    if GOLD:  # behind the other loop: with both in one, registers run out
        tl.debug_barrier()
        gold = tl.zeros((LP, LP), tl.float32)
        for b in range(group * GROUP, tl.minimum(group * GROUP + GROUP, B)):
            n = tl.load(LEN + b).to(tl.int32)
            first = tl.load(BEG + b).to(tl.int64)
            if WEIGHED:
                g = tl.load(G + b).to(tl.float32)
            count = tl.zeros((LP, LP), tl.float32)
            last = tl.minimum((split * PER + PER) * KT, n)
            for lo in range(split * PER * KT, last, 64):
                t = lo + tl.arange(0, 64)
                after = (t > 0) & (t < last)
                before = tl.load(Y + first + t - 1, mask=after, other=-1).to(tl.int32)
                now = tl.load(Y + first + t, mask=after, other=-1).to(tl.int32)
                rows = (label[:, None] == before[None, :]).to(tl.float16)  # counts are exact
                count = tl.dot(rows, (now[:, None] == label[None, :]).to(tl.float16), count)
            gold += g * count
        tl.store(place, tl.load(place, mask=square, other=0.0) - gold, mask=square)


@triton.jit(do_not_specialize=["B", "PER", "GROUP", "of_tr"])
def expect_again(
    E, BEG, LEN, TR, G, X0, X1, SH, FLAG, PART, B, PER, GROUP, of_tr,
    L: tl.constexpr, LP: tl.constexpr, KT: tl.constexpr, WEIGHED: tl.constexpr,
):  # fmt: skip
    """The transitions that `expect` left out, added to its sums; the same programs."""
    group = tl.program_id(0)
    split = tl.program_id(1)
    last = tl.minimum(group * GROUP + GROUP, B)
    found = 0
    for b in range(group * GROUP, last):
        found += tl.load(FLAG + b * 2) + tl.load(FLAG + b * 2 + 1)
    if found == 0:
        return
    label = tl.arange(0, LP)
    fine = label < L
    square = fine[:, None] & fine[None, :]
    w = _transitions(TR + group.to(tl.int64) * of_tr, label, L)
    top = finite(tl.max(w, axis=0))
    if tl.max(top - tl.min(tl.where(square, w, top[None, :]), axis=0), axis=0) < WIDEST:
        return
    total = tl.zeros((LP, LP), tl.float32)
    for b in range(group * GROUP, last):
        if tl.load(FLAG + b * 2) + tl.load(FLAG + b * 2 + 1) > 0:
            n = tl.load(LEN + b).to(tl.int32)
            first = tl.load(BEG + b).to(tl.int64)
            g = 1.0
            if WEIGHED:
                g = tl.load(G + b).to(tl.float32)
            for t in range(tl.maximum(split * PER * KT, 1), tl.minimum((split + 1) * PER * KT, n)):
                place = (first + t) * L + label
                a = tl.load(X0 + place - L, mask=fine, other=float("-inf"))
                y = tl.load(X1 + place, mask=fine, other=float("-inf"))
                x = tl.load(X0 + place, mask=fine, other=float("-inf"))
                e = tl.load(E + place, mask=fine, other=0.0).to(tl.float32) * LOG2E
                u = tl.where(e == float("-inf"), float("-inf"), x + y - e)
                um = finite(tl.max(u, axis=0))
                z = tl.sum(tl.exp2(u - um), axis=0)
                norm = tl.where(z > 0.0, um + lg2(z) + tl.load(SH + first + t), float("inf"))
                total += g * tl.exp2(w + a[:, None] + (y - norm)[None, :])
    place = PART + (group * tl.num_programs(1) + split).to(tl.int64) * ((L + 2) * L) + label[:, None] * L + label[None, :]
    tl.store(place, tl.load(place, mask=square, other=0.0) + total, mask=square)
