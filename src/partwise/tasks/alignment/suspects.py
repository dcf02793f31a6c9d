"""Alignments that are probably wrong: see `partwise.tasks.common.suspects`. A part is a place of the first sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.structures.alignment.problem import UNKNOWN
from partwise.tasks.alignment.data import Alignment, read_pairs
from partwise.tasks.common.suspects import FindsSuspects, Judged, by_rates, fitted_like, judge, unfitted


class AlignmentSuspects(FindsSuspects):
    """`suspects` and `suspicion` of models of alignments.

    Parts are places of the first sequence: ``given`` and ``believed`` are the places of the second opposite them, from 0, None
    for a gap. What is not known is never in doubt, nor are places outside reliable columns, unless ``core="ignore"``.
    """

    def judge(self, X, y=None, *, folds="auto", judges: list[Any] | None = None) -> Judged:
        """What is to be thought of all alignments; the parameters are those of `suspects`."""
        me: Any = self
        given = read_pairs(X, y)
        if given.partners is None:
            raise ValueError("There are no alignments to judge: give y, or AlignedPairs that are aligned.")
        fitted = hasattr(me, "weights_")
        if folds is None:
            me._require_fitted()
        elif not fitted:
            me = unfitted(me)
            me._check_parameters()
            me._choose_letters(given)
        problem = me._problem(given)
        if fitted:
            me._check_size(problem, me.weights_)
        learners: list[Any] = []
        lengths = given.lengths
        chance = np.repeat(1.0 / (lengths[:, 1] + 1.0), lengths[:, 0])  # a place of the second sequence, or a gap
        counts = me._core(given)
        known = (problem.gold != UNKNOWN) & (True if counts is None else np.concatenate([np.zeros(0, bool), *counts]))
        found = judge(me, problem, folds, judges=learners, conclude=by_rates(chance, known))
        if judges is not None:
            judges += [fitted_like(me, one) for one in learners]
        believed, starts = found.evidence.believed, problem.starts

        def example(i: int) -> tuple[tuple[str, str], tuple[str, str]]:
            both = given.partners[i], believed[starts[i] : starts[i + 1]]  # type: ignore[index]
            return tuple(Alignment(given.first[i], given.second[i], p.tolist()).rows() for p in both)  # type: ignore[return-value]

        def part(t: int) -> tuple[int | None, int | None]:
            return tuple(None if partners[t] < 0 else int(partners[t]) for partners in (problem.gold, believed))  # type: ignore[return-value]

        return Judged(found, example, part)
