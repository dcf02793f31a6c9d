"""Pairs of sequences packed end to end: what its kernels see.

An output is written as one integer for each place of the first sequence: its partner in the second, or GAP. Between two matches
gaps in the second sequence come before gaps in the first, so that an alignment is its matches and nothing else.

Parts of a pair of n and m places::

    match(i, j)                                            n m      i m + j
    place i of the first sequence opposite a gap           4 n      n m + kind n + i
    place j of the second sequence opposite a gap          4 m      n m + 4 n + kind m + j

Kinds of gaps: OPEN, the first place of a gap; EXTEND, every further one; the same at the ends, END_OPEN and END_EXTEND, where
nothing of the other sequence is left on that side. Places that a local alignment leaves out are END_EXTEND.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import helper
from partwise.engine.ragged import taken, totals
from partwise.features.rows import make_rows, n_rows, take_rows
from partwise.structures.alignment.pair_tables import PairTables, take_pairs

GAP, UNKNOWN = -1, -2
OPEN, EXTEND, END_OPEN, END_EXTEND = 0, 1, 2, 3
MATCHED = -1
MEMORY = 4.0  # GB that the oracles may take for one pair
BYTES = 48  # of a cell: two vectors of part scores, part marginals, what sums keep on their way


class AlignmentProblem(NamedTuple):
    """N packed pairs."""

    rows: Any  #: feature rows, one per part, pairs end to end; or tables
    starts: np.ndarray  #: (N + 1,) int64 first place of each first sequence
    others: np.ndarray  #: (N + 1,) int64 the same of second sequences
    firsts: np.ndarray  #: (N + 1,) int64 first part of each pair
    gold: np.ndarray  #: (places,) int32 partner, GAP or UNKNOWN
    targets: np.ndarray  #: (places,) int32 what margins are measured against
    miss: np.ndarray  #: (places,) cost of not matching a place with its partner
    wrong: np.ndarray  #: (places,) cost of matching it with another
    allowed: np.ndarray  #: (parts,) bool, or empty: all of them
    local: bool


@kernels.partially_labelled
class PartialAlignmentProblem(AlignmentProblem):
    """The same where of some places it is not known what they are aligned with."""


def alignment_problem(
    x,
    lengths,
    partners=None,
    *,
    counts=None,
    precision_weight=0.0,
    cost_scale="pairs",
    allowed=None,
    local=False,
    memory=MEMORY,
    places=None,
    dtype=np.float64,
) -> AlignmentProblem:
    """Pack pairs.

    Parameters
    ----------
    x : array or sparse matrix (parts, n_features), or `PairTables`
        Pair by pair a row for each part, in the order above; or tables that make them (`pair_tables`).
    lengths : integers (N, 2)
        Of the sequences of each pair; zero is fine.
    partners : integers (places of all first sequences,), optional
        Partner in the second sequence, -1 for a gap, -2 where it is not known. Left out for prediction.
    counts : bool array (places of all first sequences,), optional
        Places whose partners count for the cost: core blocks. All by default.
    precision_weight : float in [0, 1]
        The cost is (1 - precision_weight) (1 - recall) + precision_weight (wrong pairs / true pairs), times `cost_scale`.
    cost_scale : "pairs" or float
        A number, or the number of true pairs that count: then the cost is the number of pairs that were missed.
    allowed : bool array (parts,), optional
        Parts that an alignment may have: a band around the diagonal, anchors.
    local : bool
        Whether the ends of both sequences may be left out.
    memory : float
        GB that the oracles may take for one pair; a larger one is refused before any work.
    places : list of str, optional
        What messages call the pairs: where they came from.
    """
    lengths = np.asarray(lengths, np.int64).reshape(-1, 2)
    n, m = lengths.T
    check_memory(lengths, memory, places=places)
    rows = x if hasattr(x, "_fields") else make_rows(x, dtype)
    starts, others, firsts = (np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64) for sizes in (n, m, n * m + 4 * (n + m)))
    if (lengths < 0).any():
        raise ValueError("Lengths of sequences must not be negative.")
    if not isinstance(rows, PairTables) and firsts[-1] != n_rows(rows):
        raise ValueError(f"Pairs of these lengths have {firsts[-1]} parts, but there are {n_rows(rows)} rows of features.")
    allowed = np.zeros(0, np.bool_) if allowed is None else np.ascontiguousarray(allowed, np.bool_)
    if allowed.size and allowed.shape != (firsts[-1],):
        raise ValueError(f"`allowed` must have one entry per part, shape ({firsts[-1]},). Got {allowed.shape}.")
    gold = check_partners(partners, starts, lengths, places)
    miss, wrong = costs_of(gold, counts, starts, precision_weight, cost_scale)
    partial = gold.min(initial=0) == UNKNOWN
    targets = np.where(gold == UNKNOWN, GAP, gold).astype(np.int32)
    kind = PartialAlignmentProblem if partial else AlignmentProblem
    return kind(rows, starts, others, firsts, gold, targets, miss, wrong, allowed, bool(local))


def check_memory(lengths: np.ndarray, memory: float, size: int = BYTES, places: Sequence[str] | None = None) -> None:
    """Raise, naming the pair and what can be done, if `size` bytes a cell are more than `memory` GB."""
    if not len(lengths):
        return
    cells = lengths[:, 0].astype(float) * lengths[:, 1]
    k = int(np.argmax(cells))
    need = size * cells[k] / 1e9
    if need > memory:
        n, m = (int(length) for length in lengths[k])
        raise ValueError(
            f"{named(k, places)}: sequences of {n:,} and {m:,} places need about {need:.2g} GB, more than the {memory:g} GB "
            "allowed. Cut them into pieces that belong together, leave the pair out, or raise 'memory'."
        )


def named(pair: int, places: Sequence[str] | None) -> str:
    """What a pair is called."""
    return f"pair {pair}" if places is None else places[pair]


def check_partners(partners: Any, starts: np.ndarray, lengths: np.ndarray, places: Sequence[str] | None = None) -> np.ndarray:
    """Partners as int32; an error names the pair and the place. Without any, all places are opposite gaps."""
    total = int(starts[-1])
    if partners is None:
        return np.full(total, GAP, np.int32)
    gold = np.asarray(partners, np.int64).reshape(-1)
    if gold.shape != (total,):
        raise ValueError(f"Expected a partner for each of {total} places of first sequences. Got {gold.shape[0]}.")
    limit = np.repeat(lengths[:, 1], lengths[:, 0])
    known = np.flatnonzero(gold >= 0)
    owner = np.repeat(np.arange(len(lengths)), lengths[:, 0])
    falls = known[1:][(np.diff(gold[known]) <= 0) & (owner[known[1:]] == owner[known[:-1]])]
    for k, why in (
        (np.flatnonzero((gold < UNKNOWN) | (gold >= limit)), "no place"),
        (falls, "not after that of the place before"),
    ):
        if len(k):
            pair = int(owner[k[0]])
            raise ValueError(
                f"{named(pair, places)}, place {k[0] - starts[pair]}: its partner {gold[k[0]]} is {why} of a second sequence of "
                f"{lengths[pair, 1]} places. Expected partners that rise, {GAP} for a gap, {UNKNOWN} where it is not known."
            )
    return gold.astype(np.int32)


def costs_of(gold, counts, starts, precision_weight, cost_scale) -> tuple[np.ndarray, np.ndarray]:
    """What missing the partner of a place costs, and matching it with another."""
    if not (isinstance(precision_weight, int | float) and 0.0 <= precision_weight <= 1.0):
        raise ValueError(
            f"The 'precision_weight' parameter must be a float in the range [0, 1]. Got {precision_weight!r} instead."
        )
    counts = np.ones(len(gold), bool) if counts is None else np.asarray(counts, bool)
    if counts.shape != gold.shape:
        raise ValueError(f"`counts` must have an entry for each of {len(gold)} places. Got {counts.shape}.")
    counted = counts & (gold >= 0)
    all_counted = totals(counted, starts).astype(float)
    if cost_scale == "pairs":
        scale = np.ones(len(all_counted))
    elif isinstance(cost_scale, int | float) and cost_scale > 0:
        scale = cost_scale / np.maximum(all_counted, 1.0)
    else:
        raise ValueError(f"The 'cost_scale' parameter must be 'pairs' or a positive float. Got {cost_scale!r} instead.")
    each = np.repeat(scale, np.diff(starts))
    miss = np.where(counted, (1.0 - precision_weight) * each, 0.0)
    return miss, np.where(counts & (gold != UNKNOWN), precision_weight * each, 0.0)


@kernels.take.implements(AlignmentProblem)
def take(problem: AlignmentProblem, which: np.ndarray) -> AlignmentProblem:
    """The pairs numbered `which`, as a problem of their own."""
    starts, places = taken(problem.starts, which)
    others, _ = taken(problem.others, which)
    tables = isinstance(problem.rows, PairTables)
    if tables and not problem.allowed.size:  # nobody asks for the parts, of which there are n m
        firsts, parts = np.concatenate([[0], np.cumsum(np.diff(problem.firsts)[which])]).astype(np.int64), places
    else:
        firsts, parts = taken(problem.firsts, which)
    rows = take_pairs(problem.rows, which) if tables else take_rows(problem.rows, parts)
    gold = problem.gold[places]
    partial = kernels.is_partial(problem) and gold.min(initial=0) == UNKNOWN
    return (PartialAlignmentProblem if partial else AlignmentProblem)(*problem)._replace(
        rows=rows,
        starts=starts,
        others=others,
        firsts=firsts,
        gold=gold,
        targets=problem.targets[places],
        miss=problem.miss[places],
        wrong=problem.wrong[places],
        allowed=problem.allowed[parts] if problem.allowed.size else problem.allowed,
    )


@helper
def gap_kinds(y, m, local, of_x, of_y):
    """What each place of both sequences is in alignment y: MATCHED, or the kind of the gap opposite it. O(n + m)."""
    n = len(y)
    last = -1  # in a local alignment, where matches end
    for i in range(n):
        of_x[i] = MATCHED
        if y[i] >= 0:
            last = i
    for j in range(m):
        of_y[j] = MATCHED
    x, z = 0, 0  # before these everything is done
    for i in range(n + 1):
        if i < n and y[i] < 0:
            continue
        j = np.int64(y[i]) if i < n else np.int64(m)
        outside = local and (z == 0 and x == 0 or i == n)
        if outside:
            for k in range(x, i):
                of_x[k] = END_EXTEND
            for k in range(z, j):
                of_y[k] = END_EXTEND
        else:
            kind = END_OPEN if not local and (z == 0 or z == m) else OPEN
            for k in range(x, i):
                of_x[k] = kind if k == x else kind + 1
            kind = END_OPEN if not local and (i == 0 or i == n) else OPEN
            for k in range(z, j):
                of_y[k] = kind if k == z else kind + 1
        x, z = i + 1, j + 1
    return last
