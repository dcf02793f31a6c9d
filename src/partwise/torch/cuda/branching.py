"""The best spanning trees of a batch on the device (Chu and Liu 1965, Edmonds 1967, in the form of Tarjan 1977).

The algorithm is that of `partwise.structures.dependency.spanning`: a path grows backwards along the best arc into its last node;
what closes a cycle is contracted into one node; in the end, the arc into a contracted node breaks its cycle where it enters. One
program for each sentence has a lane for each place, the root first: what is known of nodes stays in registers, the arcs into each
node that is left are a row in memory, float64, and choosing among them is one reduction. At most 2 n nodes choose, one after the
other. Time O(n) steps on n lanes, memory 12 n^2 bytes for each sentence.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from partwise.torch.cuda.launch import launch, power_of_2

ON_PATH = tl.constexpr(1)
SETTLED = tl.constexpr(2)


@triton.jit
def _of(values, place, k):
    """Entry k."""
    return tl.sum(tl.where(place == k, values, 0), axis=0)


@triton.jit(do_not_specialize=["n"])
def branch(A, LEN, ROWS, ENTER, NODE, OUT, Z, n, SINGLE: tl.constexpr, NP: tl.constexpr):
    """A (B, n, n + 1) scores of heads; ROWS, ENTER (B, n, NP) and NODE (B, 3, 2 NP): room. OUT (B, n) heads, Z (B,) scores."""
    b = tl.program_id(0).to(tl.int64)
    length = tl.load(LEN + b).to(tl.int32)
    A += b * n * (n + 1)
    OUT += b * n
    ROWS += b * n * NP  # arcs into each node that is left, by head
    ENTER += b * n * NP  # at which word such an arc enters
    PARENT = NODE + b * 6 * NP  # of each node, words first, then contracted ones
    HEAD = PARENT + 2 * NP
    WORD = HEAD + 2 * NP
    place = tl.arange(0, NP)
    for m in range(0, length):
        there = (place <= length) & (place != m + 1)
        s = tl.load(A + m * (n + 1) + place, mask=there, other=float("-inf")).to(tl.float64)
        tl.store(ROWS + m * NP + place, s)
        tl.store(ENTER + m * NP + place, tl.zeros((NP,), tl.int32) + m)
    tl.store(PARENT + place, tl.full((NP,), -1, tl.int32))
    tl.store(PARENT + NP + place, tl.full((NP,), -1, tl.int32))
    of_head = place - 1  # the row of the node that each head is in
    node = place  # the node that each row stands for
    status = tl.zeros((NP,), tl.int32)
    path = tl.zeros((NP,), tl.int32)
    score = tl.zeros((NP,), tl.float64)  # of the arc that each row has chosen
    nodes = length
    possible = length >= 0
    for start in range(0, length):
        r = _of(of_head, place, start + 1)
        size = tl.where(possible & (_of(status, place, r) != SETTLED), 1, 0)
        if size > 0:
            status = tl.where(place == r, ON_PATH, status)
            path = tl.where(place == 0, r, path)
        while size > 0:
            tl.debug_barrier()
            r = _of(path, place, size - 1)
            row = tl.load(ROWS + r * NP + place)
            inner = row
            if SINGLE:  # an arc from the root only if there is no other
                inner = tl.where(place == 0, float("-inf"), row)
            top = tl.max(inner, axis=0)
            h = tl.where(top > float("-inf"), tl.min(tl.where(inner == top, place, NP), axis=0), NP)
            if SINGLE:
                root = tl.sum(tl.where(place == 0, row, 0.0), axis=0)
                top = tl.where(h == NP, root, top)
                h = tl.where(h == NP, 0, h)
            possible = possible & (top > float("-inf"))
            h = tl.where(possible, h, 0)
            which = _of(node, place, r)
            tl.store(HEAD + which, h)
            tl.store(WORD + which, tl.load(ENTER + r * NP + h))
            score = tl.where(place == r, top, score)
            p = _of(of_head, place, h)
            state = tl.where(h == 0, SETTLED, _of(status, place, tl.maximum(p, 0)))
            if state == SETTLED:
                status = tl.where(status == ON_PATH, SETTLED, status)
                size = 0
            elif state == ON_PATH:  # a cycle, from p to the end of the path: it becomes one node, in the row of p
                merged = tl.load(ROWS + p * NP + place) - tl.sum(tl.where(place == p, score, 0.0), axis=0)
                into = tl.load(ENTER + p * NP + place)
                c = _of(path, place, size - 1)
                while c != p:
                    size -= 1
                    tl.store(PARENT + _of(node, place, c), nodes)
                    member = tl.load(ROWS + c * NP + place) - tl.sum(tl.where(place == c, score, 0.0), axis=0)
                    better = member > merged
                    merged = tl.where(better, member, merged)
                    into = tl.where(better, tl.load(ENTER + c * NP + place), into)
                    of_head = tl.where(of_head == c, p, of_head)
                    c = _of(path, place, size - 1)
                tl.store(PARENT + _of(node, place, p), nodes)
                node = tl.where(place == p, nodes, node)
                nodes += 1
                tl.store(ROWS + p * NP + place, tl.where(of_head == p, float("-inf"), merged))
                tl.store(ENTER + p * NP + place, into)
            else:
                status = tl.where(place == p, ON_PATH, status)
                path = tl.where(place == size, p, path)
                size += 1
    tl.debug_barrier()
    for back in range(0, tl.where(possible, nodes - length, 0)):  # the newest first: parents before their children
        u = nodes - 1 - back
        h = tl.load(HEAD + u)
        word = tl.load(WORD + u)
        c = word
        above = tl.load(PARENT + c)
        while above != u:
            c = above
            above = tl.load(PARENT + c)
        tl.store(HEAD + c, h)
        tl.store(WORD + c, word)
        tl.debug_barrier()
    heads = tl.where(possible, tl.load(HEAD + place, mask=place < length, other=0), 0)
    s = tl.load(A + place * (n + 1) + heads, mask=place < length, other=0.0).to(tl.float64)
    if SINGLE:  # several words of the root only if there is no other way
        possible = possible & (tl.sum(tl.where((place < length) & (heads == 0), 1, 0), axis=0) < 2)
    tl.store(Z + b, tl.where(possible, tl.sum(s, axis=0), float("-inf")))
    tl.store(OUT + place, heads, mask=place < n)


def best_trees(scores: Tensor, lengths: Tensor, single_root: bool) -> tuple[Tensor, Tensor]:
    """Scores of the best trees, (B,) float64, and heads, (B, n), 0 behind the end; lengths on the device."""
    B, n, _ = scores.shape
    device, places = scores.device, power_of_2(n + 1, 32)
    rows = torch.empty(B, n, places, dtype=torch.float64, device=device)
    enter = torch.empty(B, n, places, dtype=torch.int32, device=device)
    nodes = torch.empty(B, 3, 2 * places, dtype=torch.int32, device=device)
    heads = torch.empty(B, n, dtype=torch.int64, device=device)
    values = torch.empty(B, dtype=torch.float64, device=device)
    launch(
        branch, (B,), scores.contiguous(), lengths, rows, enter, nodes, heads, values, n, SINGLE=single_root, NP=places,
        num_warps=max(1, places // 128),
    )  # fmt: skip
    return values, heads
