"""What must hold of stored sequences and their structures."""

from __future__ import annotations

import numpy as np

from partwise.features.stored import (
    check_array,
    check_arrays,
    check_int,
    check_numbers,
    check_offsets,
    check_reals,
    expect,
    owners,
)
from partwise.structures.folding.loops import LONGEST, SHORTEST, N, tying
from partwise.structures.folding.problem import FoldingProblem


@check_arrays.register
def _(problem: FoldingProblem) -> None:
    n, starts = len(problem.bases), problem.starts
    check_offsets("starts", starts, len(starts) - 1, n)
    check_numbers("bases", problem.bases, n, 0, N + 1, "t")
    check_reals("missed", problem.missed, len(starts) - 1)
    check_reals("wrong", problem.wrong, len(starts) - 1)
    check_array("pairable", problem.pairable, ((N + 1) ** 2,), "b")
    may = problem.pairable.reshape(N + 1, N + 1)
    expect(not may[N].any() and not may[:, N].any(), "bases that are not known pair")
    tied = tying()
    stored, own = ((x.ptr, x.members) for x in (problem, tied))
    same = [(a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes()) for a, b in zip(stored, own, strict=True)]
    expect(all(same) and problem.n_tied == tied.n_weights, "its weights are not tied as those of this version")
    check_int("max_loop", problem.max_loop, 0, LONGEST + 1)
    for name, partners in (("gold", problem.gold), ("targets", problem.targets)):
        check_partners(name, problem.bases, partners, starts, problem.pairable, problem.max_loop)


def check_partners(
    name: str, bases: np.ndarray, partners: np.ndarray, starts: np.ndarray, pairable: np.ndarray, max_loop: int
) -> None:
    """What `partwise.structures.folding.problem.trouble` asks of one structure, of all of them at once. O(n log n)."""
    n, owner = len(bases), owners(starts)
    check_numbers(name, partners, n, -1, max(n, 1))
    paired = np.flatnonzero(partners >= 0)
    other = partners[paired] + starts[owner[paired]]
    expect((partners[paired] < np.diff(starts)[owner[paired]]).all(), f"{name} has partners beyond the sequence")
    mutual = (partners[other] == paired - starts[owner[paired]]) & (other != paired)
    expect(mutual.all(), f"{name} has bases whose partners have others")
    left, right = paired[other > paired], other[other > paired]
    expect((right - left > SHORTEST).all(), f"{name} has a hairpin of less than {SHORTEST} bases")
    expect(pairable[(N + 1) * bases[left].astype(np.int64) + bases[right]].all(), f"{name} has bases that may not pair")
    opens, closes = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    opens[left], closes[right + 1] = 1, 1
    around = np.cumsum(opens - closes)[:n]  # pairs that a base is in, its own counts
    brackets = paired[np.argsort(around[paired], kind="stable")]  # of nested ones, left and right follow each other
    expect((partners[brackets[0::2]] + starts[owner[brackets[0::2]]] == brackets[1::2]).all(), f"{name} has pairs that cross")
    keys = np.sort(around[left] * (n + 1) + left)  # a place is in the last of the pairs of its level that begin before it

    def above(places: np.ndarray, level: np.ndarray) -> np.ndarray:
        return np.searchsorted(keys, level * (n + 1) + places, side="right") - 1

    inner = left[around[left] > 1]
    branches = np.bincount(above(inner, around[inner] - 1), minlength=len(left))
    loose = np.setdiff1d(np.flatnonzero(around > 0), paired, assume_unique=True)
    unpaired = np.bincount(above(loose, around[loose]), minlength=len(left))
    expect(not ((branches == 1) & (unpaired > max_loop)).any(), f"{name} has a loop of more than {max_loop} bases")
