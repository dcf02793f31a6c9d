"""What happened while training, in the shape of python-crfsuite's log; and CRFsuite's rules to stop by."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from partwise.crfsuite.utils import flatten
from partwise.metrics import sequence_accuracy
from partwise.solvers import Record


class LabelScore(NamedTuple):
    """How well one label was found in held-out data: tokens (found rightly, found, there), and the ratios of these."""

    match: int
    model: int
    ref: int
    precision: float
    recall: float
    f1: float


class Rule(NamedTuple):
    """When CRFsuite stops.

    With F = c1 ||w||_1 + c2 ||w||^2 - log-likelihood, when either is true of

        ||grad F|| <= epsilon max(1, ||w||)                 F(period iterations ago) - F <= delta F

    The gradient is known to L-BFGS only, so other solvers are left with the second; so is L-BFGS if c1 > 0, where F has none.
    """

    epsilon: float = 0.0
    delta: float = 0.0
    period: int = 0  #: 0: the second is not looked at


class TrainingLog:
    """Called with a `Record` after every epoch; answers whether to stop.

    Attributes
    ----------
    iterations : list of dicts
        ``num``, ``loss``, ``feature_norm``, ``active_features``, ``time``; for L-BFGS ``error_norm``; with held-out data
        ``item_accuracy_float``, in the last one ``instance_accuracy_float``, ``avg_precision``, ``avg_recall``, ``avg_f1`` and
        ``scores`` of the labels too.
    last_iteration : dict or None
    """

    def __init__(self, C: float, rule: Rule | None, l1_ratio: float = 0.0):
        self.C, self.rule, self.l1_ratio = C, rule, l1_ratio
        self.iterations: list[dict[str, Any]] = []
        self.weights: Any = None  #: of the last epoch
        self.watch: Callable[[dict[str, Any]], None] | None = None  #: called with what each iteration saw
        self._seconds = 0.0

    @property
    def last_iteration(self) -> dict[str, Any] | None:
        """What the last iteration saw."""
        return self.iterations[-1] if self.iterations else None

    def __call__(self, record: Record) -> bool:
        self.weights = w = record.weights()
        square = float(w @ w)
        # theirs is our objective divided by C; where it is not known exactly, by the losses seen on the way
        total = record.primal if math.isfinite(record.primal) else record.loss + (0.5 * square if self.rule else 0.0)
        seen: dict[str, Any] = {
            "num": record.epoch,
            "scores": {},
            "loss": total / self.C,
            "feature_norm": math.sqrt(square),
            "active_features": int((w != 0).sum()),
            "time": record.seconds - self._seconds,
        }
        if math.isfinite(record.gap) and not self.l1_ratio:
            seen["error_norm"] = math.sqrt(max(2.0 * record.gap, 0.0)) / self.C  # the gap is 1/2 ||grad P||^2
        if math.isfinite(record.validation):
            seen["item_accuracy_float"] = 1.0 - record.validation
        self.iterations.append(seen)
        self._seconds = record.seconds
        if self.watch is not None:
            self.watch(seen)
        return self.rule is not None and self._is_enough(self.rule)

    def _is_enough(self, rule: Rule) -> bool:
        last = self.iterations[-1]
        if last.get("error_norm", math.inf) <= rule.epsilon * max(1.0, last["feature_norm"]):
            return True
        if not 0 < rule.period < len(self.iterations):
            return False
        return self.iterations[-1 - rule.period]["loss"] - last["loss"] <= rule.delta * last["loss"]

    def finish(self, y_true: Any = None, y_pred: Any = None) -> None:
        """Let go of the weights; with held-out data, score the labels in them."""
        self.weights = self.watch = None
        if y_true is None or not self.iterations:
            return
        from sklearn.metrics import precision_recall_fscore_support

        true, found = flatten(y_true), flatten(y_pred)
        labels = list(dict.fromkeys([*true, *found]))
        columns = precision_recall_fscore_support(true, found, labels=labels, zero_division=0.0)
        last = self.iterations[-1]
        for label, *ratios, ref in zip(labels, *(column.tolist() for column in columns), strict=True):
            match = sum(a == b == label for a, b in zip(true, found, strict=True))
            last["scores"][label] = LabelScore(match, found.count(label), ref, *ratios)
        for name, column in zip(("avg_precision", "avg_recall", "avg_f1"), columns, strict=False):
            last[name] = float(column.mean())
        last["instance_accuracy_float"] = sequence_accuracy(y_true, y_pred)
