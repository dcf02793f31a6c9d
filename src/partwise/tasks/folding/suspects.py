"""Structures that are probably wrong: see `partwise.tasks.common.suspects`. A part is a base, with its partner or without."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.tasks.common.suspects import FindsSuspects, Judged, by_rates, fitted_like, judge, unfitted
from partwise.tasks.folding.data import Sequences, read_sequences
from partwise.tasks.folding.files import CLOSING, OPENING, RnaSet, write_dot_bracket


class FoldingSuspects(FindsSuspects):
    """`suspects` and `suspicion` of models of RNA.

    Parts are bases: ``given`` and ``believed`` are their partners, from 0, None where there is none. Pairs that no model may
    find are left out, as in training; bases of pseudoknots are never in doubt.
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
        chance = np.repeat(1.0 / np.maximum(given.lengths, 1), given.lengths)  # another base, or none
        known = is_judged(X, y, given, problem.gold)
        found = judge(me, problem, folds, judges=learners, conclude=by_rates(chance, known))
        if judges is not None:
            judges += [fitted_like(me, one) for one in learners]
        both, starts = (problem.gold, found.evidence.believed), problem.starts

        def example(i: int) -> tuple[str, str]:
            return tuple(write_dot_bracket(partners[starts[i] : starts[i + 1]]) for partners in both)  # type: ignore[return-value]

        def part(t: int) -> tuple[int | None, int | None]:
            return tuple(None if partners[t] < 0 else int(partners[t]) for partners in both)  # type: ignore[return-value]

        return Judged(found, example, part)


def is_judged(X: Any, y: Any, given: Sequences, gold: np.ndarray) -> np.ndarray:
    """Of every base, whether it is given at all: not in a pair of a pseudoknot."""
    texts = y if y is not None else X.structures if isinstance(X, RnaSet) else []
    paired = [mark in OPENING or mark in CLOSING for text in texts if isinstance(text, str) for mark in text]
    partners = np.concatenate([np.zeros(0, np.int64), *(given.partners or [])])
    return (partners >= 0) | ~np.array(paired, bool) if len(paired) == len(gold) else np.ones(len(gold), bool)
