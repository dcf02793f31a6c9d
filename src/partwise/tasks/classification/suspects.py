"""Classes that are probably wrong: see `partwise.tasks.common.suspects`."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from partwise.passes import Evidence
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.suspect_list import Listed, Listing, about_judgement, found_among
from partwise.tasks.common.suspects import FindsSuspects, Judged, Suspect, fitted_like, folds_of, judge, unfitted

TITLES = ("example", "line", "probability", "given", "believed")


class ClassSuspects(FindsSuspects):
    """`suspects` and `suspicion` of classifiers."""

    def judge(self, X, y, *, folds="auto", judges: list[Any] | None = None) -> Judged:
        """What is to be thought of all labels; the parameters are those of `suspects`.

        Those who judge are put into the list `judges`, if there is one: this model or, in folds, one for each part.
        """
        me: Any = self
        fitted = hasattr(me, "weights_")
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        folds = folds_of(me, folds, n)
        if folds is None:
            me._require_fitted()
            if hasattr(y, "__len__") and not len(y) and not n:
                return nothing_judged()  # scikit-learn's checks refuse to look at no examples
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
        found = judge(me, problem, folds, weights, learners)
        if judges is not None:
            judges += [fitted_like(me, one, classes_=classes) for one in learners]
        given = [y.distinct[k] for k in y.codes.tolist()] if hasattr(y, "distinct") else y.tolist()
        codes = found.evidence.believed
        believed = classes[codes if me.hidden == 1 else codes // me.hidden].tolist()
        return Judged(found, lambda i: (given[i], believed[i]))


def nothing_judged() -> Judged:
    """Of no examples."""
    from partwise.solvers.noise import Judgement, fit_noise

    none = np.zeros(0)
    evidence = Evidence(np.zeros(1, np.int64), none, none.astype(np.int32), none.astype(np.bool_))
    return Judged(Judgement(evidence, none, none, fit_noise([])), lambda i: (None, None))


def list_suspects(model: Any, data: Any, truth: Any, options: Any) -> Listing:
    """What ``partwise suspects`` lists of a file (`Examples` of the command): rows whose class is probably wrong.

    `truth`: the same file with correct classes, if there is one.
    """
    from partwise.tasks.classification.review import JudgedRows

    known = set(model.classes_.tolist())
    labels = data.truth(known)
    for i, label in enumerate(labels):
        if label not in known:
            raise Refusal(f"{data.table.place(i)}: the model knows no class {label!r}.")
    judges: list[Any] | None = None if options.html is None else []
    folds = options.folds_to_judge()
    judged = model.judge(data.X, labels, folds=folds, judges=judges)
    ranked, rows = judged.ranked(options.precision), []
    for i in ranked:
        line, suspect = int(data.table.lines[i]), judged.suspect(i)
        rows.append(Listed((i, line, suspect.probability, suspect.given, suspect.believed), partial(told, suspect, line)))
    found = None
    if truth is not None:
        right = truth.truth(known)
        if len(right) != len(labels):
            raise Refusal(f"--truth {truth.table.name}: it must have the rows of {data.table.name}, with other classes only.")
        wrong = np.array([a != b for a, b in zip(labels, right, strict=True)])
        found = found_among(wrong, ranked, judged.found.examples)
    about = {**about_judgement(model, folds, judged.found), "examples": len(labels)}
    shown = JudgedRows(model, data.table, data.X, data.labels, judged, judges or [])
    review = lambda source, top: shown.review(source, ranked[:top])  # noqa: E731
    return Listing(TITLES, rows, (len(labels), "rows"), about, truth=found, review=review)


def told(suspect: Suspect, line: int) -> dict[str, Any]:
    """A suspect, for machines."""
    return {**suspect.as_dict(), "line": line}
