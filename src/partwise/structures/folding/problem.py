"""RNA sequences packed end to end: what its kernels see.

An output is written as n integers: the partner of each base, from 0, or -1 where it is unpaired. Parts of a sequence of n
bases: the weights of the model, which its loops share (`loops`), then its bases being unpaired, then its pairs i < j,
row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.ragged import taken
from partwise.structures.folding.loops import LONGEST, SHORTEST, N, tying

CANONICAL = ("AU", "CG", "GU")
CODES = np.full(256, -1, np.int8)  #: by letter; -1 for what is no base
for _letters, _code in (("ACGU", range(4)), ("T", [3]), ("NRYSWKMBDHVX", [N] * 12)):
    for _letter, _number in zip(_letters, _code, strict=True):
        CODES[ord(_letter)] = CODES[ord(_letter.lower())] = _number
TABLES = 15  # of n^2 doubles, at most, while one sequence is summed over; one more for its parts


class FoldingProblem(NamedTuple):
    """N packed sequences."""

    bases: np.ndarray  #: (bases,) int8, see `loops`
    starts: np.ndarray  #: (N + 1,) int64 first base of each sequence
    gold: np.ndarray  #: (bases,) int32 partners
    targets: np.ndarray  #: (bases,) int32 what margins are measured against
    missed: np.ndarray  #: (N,) cost of a true pair that is not found
    wrong: np.ndarray  #: (N,) cost of a pair that is not true
    pairable: np.ndarray  #: (25,) bool, which bases may pair
    ptr: np.ndarray  #: which weights each entry is the sum of
    members: np.ndarray
    n_tied: int  #: number of weights
    max_loop: int  #: unpaired bases of an internal loop or bulge, at most


def folding_problem(
    sequences: Sequence[Any],
    structures: Sequence[Any] | None = None,
    *,
    missed: Any = 1.0,
    wrong: Any = 1.0,
    pairs: Sequence[str] | None = CANONICAL,
    max_loop: int = LONGEST,
) -> FoldingProblem:
    """Pack sequences.

    Parameters
    ----------
    sequences : list of str, or of int arrays
        ACGU, or T for U; N and the other IUPAC codes stand for bases that are not known, and do not pair. Arrays of int8 are
        what `encode` makes of them.
    structures : list of integer sequences, optional
        The partner of each base, from 0, or -1. Pairs must be nested and possible: `possible_structure` makes them so. Left out
        for prediction.
    missed, wrong : float or array (N,)
        Cost of a true pair that is not found, and of a pair that is not true, in each sequence.
    pairs : list of str, optional
        Which bases pair, in either order: AU, CG and GU by default; None: all.
    max_loop : int
        Unpaired bases of internal loops and bulges, at most 30.
    """
    coded = [sequence if is_coded(sequence) else encode(sequence, f"sequence {i}") for i, sequence in enumerate(sequences)]
    lengths = np.array([len(codes) for codes in coded], np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    bases = np.concatenate([*coded, np.zeros(0, np.int8)])
    wrong_bases = np.flatnonzero((bases < 0) | (bases > N))
    if len(wrong_bases):  # compiled loops do not check indices
        i = int(np.searchsorted(starts, wrong_bases[0], side="right")) - 1
        raise ValueError(f"sequence {i}: bases must be numbers from 0 to {N}. Got {bases[wrong_bases[0]]}.")
    if not 0 <= max_loop <= LONGEST:
        raise ValueError(f"The 'max_loop' parameter must be an int in the range [0, {LONGEST}]. Got {max_loop} instead.")
    pairable = which_pair(pairs)
    gold = np.full(starts[-1], -1, np.int32)
    if structures is not None:
        if len(structures) != len(coded):
            raise ValueError(f"There are {len(coded)} sequences, but {len(structures)} structures.")
        for i, partners in enumerate(structures):
            why = trouble(coded[i], np.asarray(partners, np.int64), pairable, max_loop)
            if why:
                raise ValueError(f"sequence {i}: {why}")
            gold[starts[i] : starts[i + 1]] = partners
    costs: list[np.ndarray] = []
    for name, value in (("missed", missed), ("wrong", wrong)):
        value = np.broadcast_to(np.asarray(value, np.float64), len(coded)).copy()
        if not (np.isfinite(value).all() and (value >= 0).all()):
            raise ValueError(f"The {name!r} parameter must be a float in the range [0, inf), or one for each sequence.")
        costs.append(value)
    tied = tying()
    return FoldingProblem(
        bases, starts, gold, gold, costs[0], costs[1], pairable, tied.ptr, tied.members, tied.n_weights, int(max_loop)
    )


def is_coded(sequence: Any) -> bool:
    """Whether letters are numbers already."""
    return isinstance(sequence, np.ndarray) and sequence.dtype == np.int8 and sequence.ndim == 1


def encode(sequence: Any, place: str = "the sequence") -> np.ndarray:
    """Letters as numbers; an error names the letter and its place."""
    if not isinstance(sequence, str):
        codes = np.asarray(sequence)
        if codes.ndim != 1 or (codes.size and (codes.dtype.kind not in "iu" or codes.min() < 0 or codes.max() > N)):
            raise ValueError(f"{place}: expected a string of bases, or an array of integers from 0 to {N}. Got {sequence!r}.")
        return codes.astype(np.int8)
    letters = np.frombuffer(sequence.encode("latin-1", "replace"), np.uint8)
    codes = CODES[letters]
    wrong = np.flatnonzero(codes < 0)
    if len(wrong):
        k = int(wrong[0])
        raise ValueError(
            f"{place}, base {k + 1}: {sequence[k]!r} is no base. Expected A, C, G, U or T, or N or another IUPAC code "
            "where it is not known."
        )
    return codes


def which_pair(pairs: Sequence[str] | None) -> np.ndarray:
    """(25,) whether bases a and b may pair, at 5 a + b."""
    may = np.zeros((5, 5), bool)
    if pairs is None:
        may[:4, :4] = True
        return may.ravel()
    for pair in [pairs] if isinstance(pairs, str) else pairs:
        codes = encode(pair, f"The pair {pair!r}") if isinstance(pair, str) else np.zeros(0)
        if len(codes) != 2 or N in codes:
            raise ValueError(f"The 'pairs' parameter must be a list of pairs such as 'GU', or None for all. Got {pair!r} in it.")
        may[codes[0], codes[1]] = may[codes[1], codes[0]] = True
    return may.ravel()


def trouble(bases: np.ndarray, partners: np.ndarray, pairable: np.ndarray, max_loop: int) -> str:
    """Why these partners are no structure that a model may find; empty if they are one."""
    n = len(bases)
    if partners.shape != (n,):
        return f"it has {n} bases, but its structure {partners.size}."
    if n and (partners.min() < -1 or partners.max() >= n):
        return f"partners must be numbers from 0 to {n - 1}, or -1. Got {int(partners.min())} to {int(partners.max())}."
    paired = np.flatnonzero(partners >= 0)
    wrong = paired[partners[partners[paired]] != paired]
    if len(wrong):
        i = int(wrong[0])
        return f"base {i + 1} pairs with base {partners[i] + 1}, which does not pair with it."
    open_pairs: list[int] = []
    for i in paired.tolist():
        j = int(partners[i])
        if j <= i:
            if i == j or open_pairs.pop() != j:
                return f"the pair ({j + 1}, {i + 1}) crosses another one: a pseudoknot, which nested structures do not have."
            continue
        open_pairs.append(i)
        if j - i <= SHORTEST:
            return f"the pair ({i + 1}, {j + 1}) leaves {j - i - 1} bases between, fewer than {SHORTEST}."
        if not pairable[5 * bases[i] + bases[j]]:
            return f"bases {i + 1} and {j + 1}, {'ACGUN'[bases[i]]} and {'ACGUN'[bases[j]]}, may not pair."
    for i in range(n):
        p = inner_of(partners, i) if partners[i] > i else -1
        if p >= 0 and p - i + partners[i] - partners[p] - 2 > max_loop:
            return f"the loop of the pair ({i + 1}, {partners[i] + 1}) has more than {max_loop} unpaired bases."
    return ""


def inner_of(partners: np.ndarray, i: int) -> int:
    """The left base of the only pair next below that of base i, or -1 if there is none or more than one."""
    k, found = i + 1, -1
    while k < partners[i]:
        if partners[k] > k:
            if found >= 0:
                return -1
            found, k = k, int(partners[k])
        k += 1
    return found


def possible_structure(
    bases: np.ndarray, partners: np.ndarray, pairable: np.ndarray, max_loop: int = LONGEST
) -> tuple[np.ndarray, int]:
    """The structure without the pairs that no model may find, and how many those are.

    Pairs of bases that may not pair, and with fewer than three bases between them; and below a loop of more than `max_loop`
    unpaired bases all pairs up to the next hairpin or multi-loop.
    """
    found = np.array(partners, np.int64)
    before = int((found >= 0).sum())
    for i in np.flatnonzero(found > np.arange(len(found))).tolist():
        j = int(found[i])
        if j - i <= SHORTEST or not pairable[5 * bases[i] + bases[j]]:
            found[i] = found[j] = -1
    for i in range(len(found)):
        while found[i] > i and (p := inner_of(found, i)) >= 0 and p - i + found[i] - found[p] - 2 > max_loop:
            found[found[p]] = -1
            found[p] = -1
    return found, (before - int((found >= 0).sum())) // 2


def memory_needed(n: int) -> int:
    """Bytes that an oracle needs for a sequence of n bases, at most."""
    return 8 * (TABLES + 1) * n * n


@kernels.take.implements(FoldingProblem)
def take(problem: FoldingProblem, which: np.ndarray) -> FoldingProblem:
    """The sequences numbered `which`, as a problem of their own."""
    starts, bases = taken(problem.starts, which)
    return problem._replace(
        bases=problem.bases[bases],
        starts=starts,
        gold=problem.gold[bases],
        targets=problem.targets[bases],
        missed=problem.missed[which],
        wrong=problem.wrong[which],
    )
