"""What must hold of stored pairs of sequences."""

from __future__ import annotations

import numpy as np

from partwise.features.stored import (
    MOST_WEIGHTS,
    check_array,
    check_arrays,
    check_flags,
    check_int,
    check_numbers,
    check_offsets,
    check_reals,
    check_rows,
    check_sizes,
    expect,
)
from partwise.structures.alignment.pair_tables import KINDS, PairTables
from partwise.structures.alignment.problem import GAP, UNKNOWN, AlignmentProblem, check_partners

MOST_PLACES = 2**31  # of all second sequences: so that products of lengths are far from where 64 bits end


@check_arrays.register
def _(problem: AlignmentProblem) -> None:
    starts, others, n = problem.starts, problem.others, len(problem.gold)
    N = len(starts) - 1
    check_offsets("starts", starts, N, n)
    check_offsets("others", others, N)
    expect(max(n, int(others[-1])) < MOST_PLACES, "there are too many places")
    lengths = np.stack([np.diff(starts), np.diff(others)], axis=1)
    check_sizes("firsts", problem.firsts, lengths[:, 0] * lengths[:, 1] + 4 * lengths.sum(axis=1))
    parts = int(problem.firsts[-1])
    if isinstance(problem.rows, PairTables):
        check_tables(problem.rows, lengths)
    else:
        check_rows(problem.rows, parts)
    for name, partners, least in (("gold", problem.gold, UNKNOWN), ("targets", problem.targets, GAP)):
        check_numbers(name, partners, n, least, int(others[-1]) + 1)
        check_partners(partners, starts, lengths)
    check_reals("miss", problem.miss, n)
    check_reals("wrong", problem.wrong, n)
    check_array("allowed", problem.allowed, (parts if problem.allowed.size else 0,), "b")
    check_flags(problem, "local")


def check_tables(tables: PairTables, lengths: np.ndarray) -> None:
    """Codes are in their tables, tables among the weights, and sequences among the codes."""
    T, G = len(tables.first), len(tables.gap_first)
    check_flags(tables, "symmetric")
    check_int("n_features", tables.n_features, 0, MOST_WEIGHTS)
    for side, codes, gaps, column in (("x", tables.x, tables.gap_x, 0), ("z", tables.z, tables.gap_z, 1)):
        places = codes.shape[1] if codes.ndim == 2 else -1
        own = tables.x_starts if side == "x" else tables.z_starts
        check_numbers(f"{side}_starts", own, len(lengths), 0, places + 1)
        ends = own + lengths[:, column]
        expect((ends <= places).all(), f"{side}_starts points at sequences that do not fit")
        used = slice(int(own.min(initial=places)), int(ends.max(initial=0)))  # the codes of others are there, too
        _check_codes(side, codes, places, used, tables.x_codes if side == "x" else tables.z_codes, T)
        _check_codes(f"gap_{side}", gaps, places, used, tables.gap_codes, G)
    expect(T > 0 and G > 0, "there is no table")
    expect(not tables.symmetric or (tables.x_codes == tables.z_codes).all(), "symmetric tables are not square")
    check_numbers("first", tables.first, T, 0, MOST_WEIGHTS)
    check_numbers("gap_first", tables.gap_first, G, 0, MOST_WEIGHTS)
    shapes = zip(*(x.tolist() for x in (tables.first, tables.x_codes, tables.z_codes)), strict=True)
    kinds, last = KINDS * (1 if tables.symmetric else 2), [first + rows * columns for first, rows, columns in shapes]
    last += [first + kinds * n for first, n in zip(tables.gap_first.tolist(), tables.gap_codes.tolist(), strict=True)]
    expect(max(last) <= tables.n_features, f"tables end at {max(last)}, beyond {tables.n_features} weights")


def _check_codes(name: str, codes: np.ndarray, places: int, used: slice, sizes: np.ndarray, n: int) -> None:
    check_numbers(f"sizes of {name}", sizes, n, 0, MOST_PLACES)
    check_array(name, codes, (n, places), "i")
    fine = (codes[:, used].min(axis=1, initial=0) >= 0) & (codes[:, used].max(axis=1, initial=-1) < sizes)
    expect(fine.all(), f"{name} has codes beyond their table")
