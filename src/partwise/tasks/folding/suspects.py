"""Structures that are probably wrong: see `partwise.tasks.common.suspects`. A part is a base, with its partner or without."""

from __future__ import annotations

from typing import Any

from partwise.tasks.common.suspects import FindsSuspects, Judged, fitted_like, judge, unfitted
from partwise.tasks.folding.data import read_sequences
from partwise.tasks.folding.files import write_dot_bracket


class FoldingSuspects(FindsSuspects):
    """`suspects` and `suspicion` of models of RNA.

    Parts are bases: ``given`` and ``believed`` are their partners, from 0, None where there is none. Pairs that no model may
    find, pseudoknots among them, are left out, as in training.
    """

    def judge(self, X, y=None, *, folds="auto", judges: list[Any] | None = None) -> Judged:
        """What is to be thought of all structures; the parameters are those of `suspects`."""
        me: Any = self
        if folds is None:
            me._require_fitted()
        elif not hasattr(me, "weights_"):
            me = unfitted(me)
            me._check_parameters()
        given = read_sequences(X, y, me.pseudoknots)
        if given.partners is None:
            raise ValueError("There are no structures to judge: give y, or an RnaSet with structures.")
        me._check_memory(given)
        problem = me._problem(given, labelled=True)[0]
        learners: list[Any] = []
        found = judge(me, problem, folds, judges=learners)
        if judges is not None:
            judges += [fitted_like(me, one) for one in learners]
        both, starts = (problem.gold, found.evidence.believed), problem.starts

        def example(i: int) -> tuple[str, str]:
            return tuple(write_dot_bracket(partners[starts[i] : starts[i + 1]]) for partners in both)  # type: ignore[return-value]

        def part(t: int) -> tuple[int | None, int | None]:
            return tuple(None if partners[t] < 0 else int(partners[t]) for partners in both)  # type: ignore[return-value]

        return Judged(found, example, part)
