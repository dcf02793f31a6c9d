"""Labels of segments that are probably wrong: see `partwise.tasks.common.suspects`. Parts are the labels of tokens."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from partwise.features.given_labels import GivenLabels
from partwise.tasks.common.suspects import FindsSuspects, Judged, fitted_like, folds_of, judge, unfitted
from partwise.tasks.segments.data import read_segmented


@dataclass(frozen=True)
class JudgedSegments(Judged):
    """What is given and believed of all tokens, end to end, as labels."""

    given: GivenLabels = None  # type: ignore[assignment]
    believed: GivenLabels = None  # type: ignore[assignment]


class SegmentSuspects(FindsSuspects):
    """`suspects` and `suspicion` of models of segments."""

    def judge(self, X, y=None, *, folds="auto", judges: list[Any] | None = None) -> JudgedSegments:
        """What is to be thought of all labels; the parameters are those of `suspects`.

        In folds, features and phrases are those of all sentences; a phrase counts if another sentence has it (`lexicon`).
        """
        me: Any = self
        fitted = hasattr(me, "weights_")
        if folds is None:
            me._require_fitted()
        me = copy.copy(me) if fitted else unfitted(me)
        me._check_parameters()
        text = read_segmented(X, y)
        folds = folds_of(me, folds, len(text))
        problem = me._problem(text, labelled=True) if folds is None else me._learn(text)
        learners: list[Any] = []
        found = judge(me, problem, folds, judges=learners)
        if judges is not None:
            judges += [fitted_like(me, one) for one in learners]
        given, believed = text.truth(), me._labels(me._states.labels(found.evidence.believed), text.columns.starts)
        starts = found.evidence.starts

        def said(labels: GivenLabels, a: int, b: int) -> list[Any]:
            return [labels.distinct[k] for k in labels.codes[a:b].tolist()]

        def example(i: int) -> tuple[list[Any], list[Any]]:
            a, b = starts[i : i + 2].tolist()
            return said(given, a, b), said(believed, a, b)

        def part(t: int) -> tuple[Any, Any]:
            return said(given, t, t + 1)[0], said(believed, t, t + 1)[0]

        return JudgedSegments(found, example, part, given, believed)
