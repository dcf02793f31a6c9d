"""Held-out sequences: what early stopping judges a model by, after every epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from partwise.features.given_labels import GivenLabels, numbering
from partwise.objective import best_outputs
from partwise.structures.chain.problem import ChainProblem
from partwise.structures.common.hidden import States
from partwise.tasks.tagging.scores import span_scores_coded
from partwise.text.chunk_schemes import is_chunking


def metric_for(metric: str, classes: Any, names: Any) -> str:
    """What "auto" stands for: F1 where the model's labels, and those of held-out data, write down spans, else the error."""
    if metric != "auto":
        return metric
    return "f1" if is_chunking(classes) and is_chunking(names) else "error"


class HeldOut(NamedTuple):
    """Sequences to label, and what is right for them. Labels that training never saw are fine here: no answer is right there."""

    problem: ChainProblem
    gold: np.ndarray  #: (tokens,) which row of the tables below is about the token
    names: list[Any]  #: (rows,) labels; None or a set where there is not one
    right: np.ndarray  #: (rows, labels) bool
    costs: np.ndarray  #: (rows, labels)
    hidden: int = 1  #: states of each label

    def answers(self, w: np.ndarray, n_jobs: int | None) -> np.ndarray:
        """The best labels by these weights, (tokens,) int32."""
        states = States(self.right.shape[1], self.hidden)
        return states.labels(best_outputs(self.problem, w, n_jobs)[0])

    def judge(self, metric: str, classes: np.ndarray, n_jobs: int | None) -> Callable[[np.ndarray], float]:
        """A function of the weights, the less the better.

        =========  ====================================================================
        cost       mean cost of a sequence
        error      share of tokens labelled wrongly
        f1         1 - F1 of the spans that chunk labels write down
        auto       f1 where all labels are chunk labels, else error
        =========  ====================================================================
        """
        labels, starts = classes.tolist(), self.problem.starts
        metric = metric_for(metric, labels, self.names)
        if metric == "f1":  # labels that are no chunk labels are refused here
            span_scores_coded(self.gold, self.gold, starts, self.names)
            span_scores_coded(np.zeros(1, np.int32), np.zeros(1, np.int32), np.array([0, 1]), labels)

        def value(w: np.ndarray) -> float:
            answers = self.answers(w, n_jobs)
            if metric == "f1":
                return 1.0 - span_scores_coded(self.gold, answers, starts, self.names, labels).f1
            if metric == "error":
                return 1.0 - float(self.right[self.gold, answers].mean()) if len(answers) else 0.0
            return float(self.costs[self.gold, answers].sum()) / max(len(starts) - 1, 1)

        return value


def from_labels(problem: ChainProblem, given: GivenLabels, classes: np.ndarray, costs: np.ndarray, hidden: int = 1) -> HeldOut:
    """Held-out data of their own, packed without labels; `costs` (labels, labels) are those of the training problem."""
    right, number = given.allows(classes), numbering(classes)
    table = np.full(right.shape, costs.max(initial=0.0))
    for k, label in enumerate(given.distinct):
        if label in number:
            table[k] = costs[number[label]]
        elif right[k].any():
            table[k] = costs[right[k]].min(0)
    return HeldOut(problem, given.codes, given.distinct, right, table, hidden)


def from_problem(problem: ChainProblem, classes: np.ndarray, hidden: int = 1) -> HeldOut:
    """A part of the training data."""
    n = len(classes)
    states = States(n, hidden)
    gold, right = problem.gold, states.label_sets(problem.known)
    if hidden == 1:
        right = np.vstack([np.eye(n, dtype=bool), right])
    else:
        gold = gold - states.n  # every truth is a set of states, and the first sets are those of the labels
    names = [*classes.tolist(), *[None] * (len(right) - n)]
    return HeldOut(problem, gold, names, right, states.label_costs(problem.costs), hidden)
