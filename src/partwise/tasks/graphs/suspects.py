"""Labels of graphs that are probably wrong: see `partwise.tasks.common.suspects`. A part is a node or a pixel."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.tasks.common.suspects import FindsSuspects, Judged, by_joint_noise, fitted_like, judge, unfitted
from partwise.tasks.graphs.data import read_data


class GraphSuspects(FindsSuspects):
    """`suspects` and `suspicion` of models of graphs.

    Parts are nodes, of pictures pixels row by row, of a multilabel problem its labels. Probabilities are those of belief
    propagation where there are cycles.
    """

    def judge(self, X, y=None, *, folds="auto", judges: list[Any] | None = None) -> Judged:
        """What is to be thought of all labels; the parameters are those of `suspects`."""
        me: Any = self
        fitted = hasattr(me, "weights_")
        if folds is None:
            me._require_fitted()
        elif not fitted:
            me = unfitted(me)
            me._check_parameters()
        given = me._read_known(X, y) if fitted else read_data(X, y, me.neighbours, me.unknown)
        if given.labels is None:
            raise ValueError("There are no labels to judge: give y.")
        if not fitted:
            me._learn_shape(given)
        problem = me._problem(given, me._codes(given))
        if fitted:
            me._check_size(problem, me.weights_)
        learners: list[Any] = []
        found = judge(me, problem, folds, judges=learners, conclude=by_joint_noise)
        if judges is not None:
            judges += [fitted_like(me, one) for one in learners]
        names, labels, starts, believed = (
            me.classes_.tolist(),
            given.labels,
            given.starts,
            me._states.labels(found.evidence.believed),
        )

        def part(t: int) -> tuple[Any, Any]:
            return labels.distinct[labels.codes[t]], names[believed[t]]

        def example(i: int) -> tuple[Any, Any]:
            pairs = [part(t) for t in range(int(starts[i]), int(starts[i + 1]))]
            return tuple(shaped(column, given.shapes[i]) for column in (zip(*pairs, strict=True) if pairs else ((), ())))  # type: ignore[return-value]

        return Judged(found, example, part)


def shaped(labels: Any, shape: tuple[int, ...]) -> list[Any]:
    """A list, or a list of rows."""
    array = np.empty(len(labels), object)
    array[:] = list(labels)
    return array.reshape(shape).tolist()
