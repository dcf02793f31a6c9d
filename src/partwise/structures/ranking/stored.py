"""What must hold of stored queries, and of stored pairs of documents."""

from __future__ import annotations

import numpy as np

from partwise.features.rows import n_rows
from partwise.features.stored import check_arrays, check_numbers, check_offsets, check_reals, check_rows, expect, owners
from partwise.structures.ranking.problem import PairProblem, RankingProblem


@check_arrays.register
def _(problem: RankingProblem) -> None:
    documents, positions = len(problem.gains), len(problem.gold)
    N = len(problem.starts) - 1
    check_rows(problem.rows, documents)
    check_offsets("starts", problem.starts, N, documents)
    check_offsets("places", problem.places, N, positions)
    own, ranked = np.diff(problem.starts), np.diff(problem.places)
    check_reals("gains", problem.gains, documents)
    check_reals("ideal", problem.ideal, positions)
    check_reals("scores", problem.scores, len(problem.scores))
    check_reals("discounts", problem.discounts, len(problem.discounts))
    most = min(len(problem.scores), len(problem.discounts))
    expect((ranked <= np.minimum(own, most)).all(), "queries have more positions than documents, or than positions have weights")
    owner = owners(problem.places)
    for name, ranking in (("gold", problem.gold), ("targets", problem.targets)):
        check_numbers(name, ranking, positions, 0, max(documents, 1))
        expect((ranking < own[owner]).all(), f"{name} has documents of other queries")
        keys = np.sort(problem.starts[owner] + ranking)
        expect((keys[1:] != keys[:-1]).all(), f"{name} has a document twice")


@check_arrays.register
def _(problem: PairProblem) -> None:
    n, documents = len(problem.first), int(n_rows(problem.rows))
    check_rows(problem.rows, documents)
    check_numbers("first", problem.first, n, 0, documents)
    check_numbers("second", problem.second, n, 0, documents)
    check_numbers("targets", problem.targets, n, 0, 2)
