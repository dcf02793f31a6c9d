"""Classes that a model refuses to believe: see `partwise.tasks.common.suspects`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.suspects import (
    Judged,
    Listed,
    Listing,
    Suspect,
    fitted_like,
    found_among,
    learn_and_doubt,
    no_doubts,
    unfitted,
)

TITLES = ("example", "line", "margin", "given", "believed")


class ClassSuspects:
    """`suspects` and `suspicion` of classifiers."""

    def suspects(self, X, y, *, threshold=None, top=None, cv=None) -> list[Suspect]:
        """Examples whose label the model refuses to believe, largest margin first (see `partwise.tasks.common.suspects`).

        Parameters
        ----------
        X : array or sparse matrix (examples, features)
        y : array or list (examples,)
            The labels to be judged. One that is unknown, None, is never in doubt; of a set, "one of these", the best is.
        threshold : float, optional
            By default those are listed that the loss has given up: for ``"ramp"``, where another class is better by more than its
            cost; for others, where the prediction is not the given class. With a threshold, those whose prediction is not
            the given class and whose margin is larger.
        top : int, optional
            At most so many.
        cv : int, optional
            Judge every example by a model that has not seen it: train on all but one of so many parts, with the parameters of
            this estimator, which then need not be fitted.

        Returns
        -------
        list of Suspect
            Each with the fields ``example`` (its number in X), ``given``, ``believed``, ``margin``.
        """
        judged = self.judge(X, y, threshold=threshold, cv=cv)
        margins = judged.found.margins
        return [Suspect(i, judged.given[i], judged.believed[i], float(margins[i])) for i in judged.ranked(threshold, top)]

    def suspicion(self, X, y, *, cv=None) -> np.ndarray:
        """The margin of the best other class over the given one, of all examples, (examples,); -inf where none is given."""
        return self.judge(X, y, cv=cv).found.margins

    def judge(self, X, y, *, threshold=None, cv=None, judges: list[Any] | None = None) -> Judged:
        """What the model makes of all labels; the parameters are those of `suspects`.

        Those who judge are put into the list `judges`, if there is one: this model or, with `cv`, one for each part.
        """
        me: Any = self
        fitted = hasattr(me, "weights_")
        if cv is None:
            me._require_fitted()
            if hasattr(y, "__len__") and not len(y) and not (X.shape[0] if hasattr(X, "shape") else len(X)):
                return Judged(no_doubts(np.zeros(1, np.int64)), [], [])  # scikit-learn's checks refuse to look at no examples
        elif not fitted:
            me = unfitted(me)
            me._check_parameters()
        X, y = me._validate(X, y, reset=not fitted)
        classes = me.classes_ if fitted else me._learn_classes(y)
        truth = me._truth(y, classes)
        if not fitted:
            me._learn_scale(X)
        problem = me._problem(X, truth, classes)
        if fitted:
            me._check_size(problem, me.weights_)
        learners: list[Any] = []
        weights = me._weights_of(X, truth, classes, None)
        found = learn_and_doubt(me, problem, threshold, cv, weights, None if judges is None else learners)
        if judges is not None:
            judges += [fitted_like(me, one, classes_=classes) for one in learners] if cv else [me]
        given = [y.distinct[k] for k in y.codes.tolist()] if hasattr(y, "distinct") else y.tolist()
        states = found.believed if me.hidden == 1 else found.believed // me.hidden
        return Judged(found, given, classes[states].tolist())


def list_suspects(model: Any, data: Any, truth: Any, folds: int | None, page: bool = False) -> Listing:
    """What ``partwise suspects`` lists of a file (`Examples` of the command): rows whose class the model refuses to believe.

    `truth`: the same file with correct classes, if there is one. `page`: whether they are to be looked at in a page.
    """
    from partwise.tasks.classification.review import JudgedRows

    known = set(model.classes_.tolist())
    labels = data.truth(known)
    for i, label in enumerate(labels):
        if label not in known:
            raise Refusal(f"{data.table.place(i)}: the model knows no class {label!r}.")
    judges: list[Any] | None = [] if page else None
    judged = model.judge(data.X, labels, cv=folds or None, judges=judges)
    margins, rows = judged.found.margins, []
    for i in judged.ranked(None, None):
        line = int(data.table.lines[i])
        suspect = Suspect(i, judged.given[i], judged.believed[i], float(margins[i]))
        rows.append(Listed((i, line, suspect.margin, suspect.given, suspect.believed), partial(told, suspect, line)))
    found = None
    if truth is not None:
        right = truth.truth(known)
        if len(right) != len(labels):
            raise Refusal(f"--truth {truth.table.name}: it must have the rows of {data.table.name}, with other classes only.")
        wrong = np.array([a != b for a, b in zip(labels, right, strict=True)])
        found = found_among(wrong, judged.found.refused, margins)
    about = {"loss": str(getattr(model.loss, "name", model.loss)), "folds": folds or 0, "examples": len(labels)}
    shown, ranked = JudgedRows(model, data.table, data.X, data.labels, judged, judges or []), judged.ranked(None, None)
    review = lambda source, top: shown.review(source, ranked[:top])  # noqa: E731
    return Listing(TITLES, rows, (len(labels), "rows"), about, truth=found, review=review)


def told(suspect: Suspect, line: int) -> dict[str, Any]:
    """A suspect, for machines."""
    return {**suspect.as_dict(), "line": line}
