"""Sentences packed end to end: what the kernels of dependency trees see.

A sentence of n words has n (n + 1) arcs h -> m, from heads h = 0 (the root) .. n to words m = 1 .. n. Each has a row of features;
they lie word by word, the arc h -> m as number (m - 1)(n + 1) + h of its sentence. An output is written as n integers
``h L + label``, L being the number of labels; L = 1 is an unlabelled tree.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.ragged import taken, totals
from partwise.features.rows import make_rows, n_rows, take_rows
from partwise.oracles.complete_all import complete_all

UNKNOWN = -1  # head and label; -2 - h: the head is h, its label is not known


class TreeProblem(NamedTuple):
    """N packed sentences."""

    rows: Any  #: feature rows, one per arc, sentences end to end
    starts: np.ndarray  #: (N + 1,) int64 first word of each sentence
    arcs: np.ndarray  #: (N + 1,) int64 first arc of each sentence
    gold: np.ndarray  #: (words,) int32 ``head L + label``, or what is known of them: see UNKNOWN
    targets: np.ndarray  #: (words,) int32 what margins are measured against
    allowed: np.ndarray  #: (arcs,) bool, or empty: all of them
    n_labels: int
    label_cost: float  #: of a wrong label where the head is right
    projective: bool
    single_root: bool


@kernels.partially_labelled
class PartialTreeProblem(TreeProblem):
    """The same where some head or label is not known."""


def tree_problem(
    x,
    lengths,
    heads=None,
    labels=None,
    n_labels=1,
    *,
    allowed=None,
    label_cost=1.0,
    projective=False,
    single_root=True,
    dtype=np.float64,
) -> TreeProblem:
    """Pack sentences.

    Parameters
    ----------
    x : array or sparse matrix (arcs, n_features), or feature rows
        One row for each arc: sentence by sentence, word by word, heads 0 .. n; the row of a word with itself is never looked at.
    lengths : integers (N,)
        Words of each sentence; zero is fine.
    heads : integers (words,), optional
        0 for the root, else the number of the head in its sentence, from 1; -1 where it is not known. Left out for prediction.
    labels : integers (words,), optional
        In [0, n_labels); -1 where it is not known.
    allowed : bool array (arcs,), optional
        Arcs that a tree may have.
    label_cost : float
        Cost of a wrong label where the head is right; a wrong head costs 1.
    projective, single_root : bool
        Which trees there are.
    """
    rows = x if hasattr(x, "_fields") else make_rows(x, dtype)
    lengths = np.asarray(lengths, np.int64).reshape(-1)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    arcs = np.concatenate([[0], np.cumsum(lengths * (lengths + 1))]).astype(np.int64)
    if (lengths < 0).any() or arcs[-1] != n_rows(rows):
        raise ValueError(f"Sentences of these lengths have {arcs[-1]} arcs, but there are {n_rows(rows)} rows of features.")
    allowed = np.zeros(0, np.bool_) if allowed is None else np.ascontiguousarray(allowed, np.bool_)
    if allowed.size and allowed.shape != (arcs[-1],):
        raise ValueError(f"`allowed` must have one entry per arc, shape ({arcs[-1]},). Got {allowed.shape}.")
    gold = check_heads(heads, labels, int(n_labels), lengths, starts)
    projective, single_root = bool(projective), bool(single_root)
    if heads is not None:
        check_trees(np.asarray(heads, np.int64), starts, projective, single_root)
    kind = PartialTreeProblem if gold.min(initial=0) < 0 else TreeProblem
    problem = kind(rows, starts, arcs, gold, gold, allowed, int(n_labels), float(label_cost), projective, single_root)
    return problem if kind is TreeProblem else problem._replace(targets=any_completion(problem))


def check_heads(heads: Any, labels: Any, n_labels: int, lengths: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Codes of heads and labels; an error names the sentence and the word. Without heads, all words hang from the root."""
    n = int(starts[-1])
    if n_labels < 1:
        raise ValueError(f"The 'n_labels' parameter must be at least 1. Got {n_labels} instead.")
    if heads is None:
        return np.zeros(n, np.int32)
    heads = np.asarray(heads, np.int64)
    labels = np.zeros(n, np.int64) if labels is None else np.asarray(labels, np.int64)
    if heads.shape != (n,) or labels.shape != (n,):
        raise ValueError(f"Expected one head and one label per word: {n} words, heads {heads.shape}, labels {labels.shape}.")
    number = np.arange(n) - np.repeat(starts[:-1], lengths) + 1

    def place(k):
        return f"sentence {int(np.searchsorted(starts, k, side='right')) - 1}, word {number[k]}"

    wrong = np.flatnonzero((heads < -1) | (heads > np.repeat(lengths, lengths)) | (heads == number))
    if len(wrong):
        k = wrong[0]
        n_words = int(np.repeat(lengths, lengths)[k])
        raise ValueError(f"{place(k)}: its head must be another word, 1 to {n_words}, or 0 for the root. Got {heads[k]}.")
    wrong = np.flatnonzero((labels < -1) | (labels >= n_labels))
    if len(wrong):
        raise ValueError(f"{place(wrong[0])}: labels must be in [0, {n_labels}). Got {labels[wrong[0]]}.")
    codes = np.where(labels >= 0, heads * n_labels + labels, -2 - heads)
    return np.where(heads < 0, UNKNOWN, codes).astype(np.int32)


def check_trees(heads: np.ndarray, starts: np.ndarray, projective: bool, single_root: bool) -> None:
    """Raise, naming the sentence, unless its heads, where all of them are known, make a tree of the wanted kind."""
    for i in range(len(starts) - 1):
        here = heads[starts[i] : starts[i + 1]]
        if in_cycle := cycle(here):
            raise ValueError(f"sentence {i}: words {', '.join(map(str, in_cycle))} are each other's heads; that is no tree.")
        if here.min(initial=0) < 0:
            continue
        roots = np.flatnonzero(here == 0) + 1
        if single_root and len(roots) > 1:
            raise ValueError(
                f"sentence {i}: words {', '.join(map(str, roots))} hang from the root, but there may be one only. Give them "
                "another head, or take single_root=False."
            )
        if projective and not is_projective(here):
            raise ValueError(
                f"sentence {i}: its arcs cross, but trees are to be projective. Leave it out, or take projective=False."
            )


def cycle(heads: np.ndarray) -> list[int]:
    """The words of a cycle, from 1; empty if there is none."""
    settled = np.zeros(len(heads) + 1, np.int64)
    settled[0] = -1
    for start in range(1, len(heads) + 1):
        m = start
        while m > 0 and settled[m] == 0:
            settled[m] = start
            m = int(heads[m - 1])
        if m > 0 and settled[m] == start:
            found = [m]
            while (m := int(heads[m - 1])) != found[0]:
                found.append(m)
            return found
    return []


def any_completion(problem: TreeProblem) -> np.ndarray:
    """A target for every sentence: some tree that agrees with what is known; the solvers look for better ones."""
    targets, wrong = complete_all(problem)
    if wrong >= 0:
        raise ValueError(f"sentence {wrong}: no tree agrees with its known heads and the arcs that are allowed.")
    return targets


@kernels.forget.implements(TreeProblem)
def forget(problem: TreeProblem, which: np.ndarray, targets: np.ndarray) -> TreeProblem:
    """The same sentences with unknown heads for the words `which`. `targets` are trees, and taken whole where any is unknown."""
    anywhere = np.repeat(totals(which, problem.starts) > 0, np.diff(problem.starts))
    return PartialTreeProblem(*problem)._replace(
        gold=np.where(which, UNKNOWN, problem.gold).astype(np.int32),
        targets=np.where(anywhere, targets, problem.targets).astype(np.int32),
    )


@kernels.take.implements(TreeProblem)
def take(problem: TreeProblem, which: np.ndarray) -> TreeProblem:
    """The sentences numbered `which`, as a problem of their own."""
    (starts, words), (arcs, chosen) = taken(problem.starts, which), taken(problem.arcs, which)
    gold = problem.gold[words]
    kind = PartialTreeProblem if kernels.is_partial(problem) and gold.min(initial=0) < 0 else TreeProblem
    return kind(*problem)._replace(
        rows=take_rows(problem.rows, chosen),
        starts=starts,
        arcs=arcs,
        gold=gold,
        targets=problem.targets[words],
        allowed=problem.allowed[chosen] if problem.allowed.size else problem.allowed,
    )


def is_projective(heads) -> bool:
    """Whether every head has all words between it and one of its words below itself."""

    def below(w, h):
        while w != h and w:
            w = int(heads[w - 1])
        return w == h

    return all(below(w, h) for m, h in enumerate(heads, 1) for w in range(min(m, h) + 1, max(m, h)))
