"""Sentences of which only some arcs are left, packed end to end: what the kernels of `second_order` see.

A model of first order rules arcs out, so that one of second order can afford its parts: those that are left lie word by word,
and are listed once more head by head, from near to far on either side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import helper
from partwise.engine.ragged import taken
from partwise.features.arc_pairs import PairRows
from partwise.features.rows import take_rows
from partwise.structures.dependency.problem import UNKNOWN, tree_problem


class SecondOrderProblem(NamedTuple):
    """N packed sentences; only arcs that are allowed are there, word by word, heads ascending."""

    rows: Any  #: feature rows, one per arc
    pairs: PairRows
    starts: np.ndarray  #: (N + 1,) first word of each sentence
    arcs: np.ndarray  #: (N + 1,) first arc
    parts: np.ndarray  #: (N + 1,) first part
    head: np.ndarray  #: (arcs,) int32
    word: np.ndarray  #: (arcs,) int32
    into: np.ndarray  #: (words + N,) first arc of each word in its sentence, and after the last
    out: np.ndarray  #: (arcs,) int32 arcs of the sentence, head by head, left ones, then right ones, near to far
    left: np.ndarray  #: (words + N,) arcs out of each head (0: the root) to its left
    leaving: np.ndarray  #: (words + 2 N,) first in `out` of each head, and after the last
    gold: np.ndarray  #: (words,) int32 heads, UNKNOWN where one is not known
    targets: np.ndarray
    kind: int  #: SINGLE_ROOT, PROJECTIVE
    status: np.ndarray  #: (N,) int8
    search: Any  #: `factor_graph`'s: how long to look for the best tree, and for sums


@kernels.partially_labelled
class PartialSecondOrderProblem(SecondOrderProblem):
    """The same where some head is not known."""


def keep_arcs(
    lengths: np.ndarray, starts: np.ndarray, allowed: Any, heads: np.ndarray | None
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Numbers of the arcs that are kept, and what a `SecondOrderProblem` says of them; arcs of the trees `heads` are kept."""
    full = np.concatenate([[0], np.cumsum(lengths * (lengths + 1))]).astype(np.int64)
    allowed = np.ascontiguousarray(allowed, np.bool_).copy()
    if allowed.shape != (full[-1],):
        raise ValueError(f"`allowed` must have one entry per arc, shape ({full[-1]},). Got {allowed.shape}.")
    sentence = np.repeat(np.arange(len(lengths)), lengths * (lengths + 1))
    number = np.arange(full[-1]) - full[:-1][sentence]
    n = lengths[sentence]
    word, head = number // (n + 1) + 1, number % (n + 1)
    allowed &= word != head
    if heads is not None:
        allowed[full[:-1][np.repeat(np.arange(len(lengths)), lengths)] + arc_numbers(lengths, starts, heads)] = True
    keep = np.flatnonzero(allowed)
    word, head, sentence = word[keep], head[keep], sentence[keep]
    arcs = np.concatenate([[0], np.cumsum(np.bincount(sentence, minlength=len(lengths)))]).astype(np.int64)
    own = np.arange(len(keep)) - arcs[:-1][sentence]
    words = starts[:-1] + np.arange(len(lengths))  # n + 1 entries for each sentence: words and one more, or root and words
    into = place_counts(words[sentence] + word - 1, int(starts[-1]) + len(lengths), words)
    leaving_at = starts[:-1] + 2 * np.arange(len(lengths))
    leaving = place_counts(leaving_at[sentence] + head, int(starts[-1]) + 2 * len(lengths), leaving_at)
    side = (word > head).astype(np.int64)
    order = np.lexsort((np.abs(word - head), side, head, sentence))
    left = np.bincount((words[sentence] + head)[side == 0], minlength=int(starts[-1]) + len(lengths)).astype(np.int64)
    sizes = [
        table_sizes(
            into[words[i] : words[i] + m + 1], leaving[leaving_at[i] : leaving_at[i] + m + 2], left[words[i] : words[i] + m + 1]
        )
        for i, m in enumerate(lengths.tolist())
    ]
    parts = np.concatenate([[0], np.cumsum(np.diff(arcs) + np.array(sizes, np.int64).reshape(-1))]).astype(np.int64)
    layout = {
        "arcs": arcs,
        "parts": parts,
        "head": head.astype(np.int32),
        "word": word.astype(np.int32),
        "into": into,
        "out": own[order].astype(np.int32),
        "left": left,
        "leaving": leaving,
    }
    return keep, layout


def arc_numbers(lengths: np.ndarray, starts: np.ndarray, heads: np.ndarray) -> np.ndarray:
    """The number of each word's arc in its sentence, among all arcs."""
    number = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
    return number * (np.repeat(lengths, lengths) + 1) + heads


def any_trees(rows, lengths, starts, allowed, gold, projective: bool, single_root: bool) -> np.ndarray:
    """Trees that agree with the known heads, of arcs that are allowed or known."""
    allowed, known = np.array(allowed, np.bool_), gold >= 0
    first = np.concatenate([[0], np.cumsum(lengths * (lengths + 1))]).astype(np.int64)
    at = np.repeat(first[:-1], lengths) + arc_numbers(lengths, starts, gold)
    allowed[at[known]] = True
    return tree_problem(rows, lengths, gold, allowed=allowed, projective=projective, single_root=single_root).targets


def place_counts(at: np.ndarray, size: int, first: np.ndarray) -> np.ndarray:
    """Offsets from counts, sentence by sentence: entry k is how many of its sentence lie in entries before k."""
    counts = np.concatenate([[0], np.bincount(at, minlength=size)[:size]])
    total = np.cumsum(counts)[:size]
    base = np.zeros(size, np.int64)
    base[first] = np.diff(np.concatenate([[0], total[first]]))
    return (total - np.cumsum(base)).astype(np.int64)


def table_sizes(into: np.ndarray, leaving: np.ndarray, left: np.ndarray) -> int:
    """Entries of the tables of all heads of a sentence; the root has no arcs in."""
    G = np.concatenate([[0], np.diff(into)])
    out = np.diff(leaving)
    right = out - left
    return int((G * out + left * (left + 1) // 2 + right * (right + 1) // 2).sum())


@kernels.take.implements(SecondOrderProblem)
def take(problem: SecondOrderProblem, which: np.ndarray) -> SecondOrderProblem:
    """The sentences numbered `which`, as a problem of their own, with the arcs that they have here."""
    which = which if isinstance(which, slice) else np.asarray(which, np.int64)
    number = np.arange(len(problem.starts))

    (starts, words), (arcs, kept), (parts, _) = (taken(some, which) for some in (problem.starts, problem.arcs, problem.parts))
    one_more, two_more = (taken(problem.starts + k * number, which)[1] for k in (1, 2))  # see `SecondOrderProblem`
    gold = problem.gold[words]
    kind = PartialSecondOrderProblem if kernels.is_partial(problem) and gold.min(initial=0) < 0 else SecondOrderProblem
    return kind(*problem)._replace(
        rows=take_rows(problem.rows, kept),
        pairs=problem.pairs._replace(root=problem.pairs.root[which]),
        starts=starts,
        arcs=arcs,
        parts=parts,
        head=problem.head[kept],
        word=problem.word[kept],
        out=problem.out[kept],
        into=problem.into[one_more],
        left=problem.left[one_more],
        leaving=problem.leaving[two_more],
        gold=gold,
        targets=problem.targets[words],
        status=problem.status[which],
    )


@helper
def arcs_of(problem, i):
    """First arc of each word, first of `out` of each head, arcs to its left, arcs head by head."""
    a = problem.starts[i]
    n = problem.starts[i + 1] - a
    return (
        problem.into[a + i : a + i + n + 1],
        problem.leaving[a + 2 * i : a + 2 * i + n + 2],
        problem.left[a + i : a + i + n + 1],
        problem.out[problem.arcs[i] : problem.arcs[i + 1]],
    )


@helper
def find_arc(problem, i, into, h, m):
    """Number of the arc h -> m in its sentence, or -1."""
    first = problem.arcs[i]
    for k in range(into[m - 1], into[m]):
        if problem.head[first + k] == h:
            return k
    return -1


# ---------------------------------------------------------------------------------------------------------------------
# Heads that are not known
# ---------------------------------------------------------------------------------------------------------------------


@kernels.is_labelled.implements(PartialSecondOrderProblem)
def is_labelled(problem, i):
    for m in range(problem.starts[i], problem.starts[i + 1]):
        if problem.gold[m] == UNKNOWN:
            return False
    return True


@kernels.restrict.implements(PartialSecondOrderProblem)
def restrict(problem, i, theta):
    first, words = problem.arcs[i], problem.starts[i]
    for k in range(problem.arcs[i + 1] - first):
        gold = problem.gold[words + problem.word[first + k] - 1]
        if gold != UNKNOWN and problem.head[first + k] != gold:
            theta[k] = -np.inf


@kernels.with_targets.implements(PartialSecondOrderProblem)
def with_targets(problem, targets):
    return SecondOrderProblem(*problem)._replace(targets=targets)
