"""Hidden sub-states: a label is made of H states that nobody sees, in chains and in multiclass problems.

State c H + h is the h-th of label c. The model works over the L H states, with weights for each. What is known of a token is a
set of states, those of its label, so a problem with hidden states is a partially labelled one, and every loss is what it is for
such problems:

    L(w) = max_{y, h} [s(y, h) + l(y)] - max_h s(y_i, h)                              (hinge: the latent structural SVM)
    L(w) = log sum_{y, h} exp s(y, h) - log sum_h exp s(y_i, h)                       (crf: the hidden-state CRF)

States of one label cost nothing against each other. The oracle that completes the truth by its best hidden part is the kernel
``complete``. Oracles cost what L H labels cost: H^2 times as much in a chain of order 1.

All states of a label are alike at w = 0, and a gradient there never tells them apart: training has to begin at `small_weights`.

References
----------
C.-N. Yu, T. Joachims (2009). Learning structural SVMs with latent variables. ICML.
A. Quattoni, S. Wang, L.-P. Morency, M. Collins, T. Darrell (2007). Hidden conditional random fields. PAMI 29(10).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.features.rows import n_rows, row_norm

SMALL = 0.1  # standard deviation of a token's scores at the start: against margins of 1, and probabilities near one half

Transition = tuple[int | None, int | None]


class States(NamedTuple):
    """The states of some labels; with one state for each, they are the labels, and everything stays as it is.

    Examples
    --------
    >>> states = States(n_labels=2, hidden=3)
    >>> states.n, states.labels(np.array([0, 2, 3, 5])).tolist(), states.names(["a", "b"])[:4]
    (6, [0, 0, 1, 1], ['a/1', 'a/2', 'a/3', 'b/1'])
    """

    n_labels: int
    hidden: int  #: states of each label

    @property
    def n(self) -> int:
        """Number of states."""
        return self.n_labels * self.hidden

    # -- from labels to states ----------------------------------------------------------------------------------------

    def sets(self, labels: np.ndarray) -> np.ndarray:
        """Sets of labels, bool (sets, L), as sets of states."""
        return labels if self.hidden == 1 else np.repeat(labels, self.hidden, axis=-1)

    def truth(self, gold: np.ndarray, known: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        """True labels in the way of `chain_problem`, codes from L on being rows of `known`, as such codes of sets of states."""
        if self.hidden == 1:
            return gold, known
        labels = np.eye(self.n_labels, dtype=bool)
        return gold + self.n, self.sets(labels if known is None else np.vstack([labels, known]))

    def costs(self, costs: np.ndarray | None) -> np.ndarray | None:
        """A cost matrix (L, L), None: 0/1, over states: what it costs that the label is wrong."""
        if self.hidden == 1:
            return costs
        costs = 1.0 - np.eye(self.n_labels) if costs is None else costs
        return np.kron(costs, np.ones((self.hidden, self.hidden)))

    def transitions(self, pairs: Iterable[Transition]) -> list[Transition]:
        """Pairs of labels (None: the beginning or the end) as all the pairs of their states."""
        return [(a, b) for before, after in pairs for a in self._of(before) for b in self._of(after)]

    def _of(self, label: int | None) -> Iterable[int | None]:
        return (None,) if label is None else range(label * self.hidden, (label + 1) * self.hidden)

    # -- and back -----------------------------------------------------------------------------------------------------

    def labels(self, states: np.ndarray) -> np.ndarray:
        """The labels of states."""
        return states if self.hidden == 1 else states // self.hidden

    def label_sets(self, known: np.ndarray) -> np.ndarray:
        """Sets of labels, of sets of states."""
        return known[:, :: self.hidden]

    def label_costs(self, costs: np.ndarray) -> np.ndarray:
        """Costs of labels, a row for every value of `gold` that a problem over labels would have, of those of one over states."""
        if self.hidden == 1:
            return costs
        first = self.n if len(costs) > self.n else 0  # the sets of states that are labels, then those that are several
        return costs[first :: 1 if first else self.hidden, :: self.hidden]

    def total(self, p: np.ndarray, axis: int = -1) -> np.ndarray:
        """Probabilities of labels: those of their states, which lie along an axis, added up."""
        if self.hidden == 1:
            return p
        axis %= p.ndim
        return p.reshape(*p.shape[:axis], self.n_labels, self.hidden, *p.shape[axis + 1 :]).sum(axis + 1)

    def highest(self, scores: np.ndarray) -> np.ndarray:
        """Scores of labels, (..., labels): that of their best state."""
        return scores if self.hidden == 1 else scores.reshape(*scores.shape[:-1], self.n_labels, self.hidden).max(-1)

    def names(self, labels: Iterable[Any]) -> list[Any]:
        """What to call the states: "NP/1", "NP/2"; the labels themselves where they have one state each."""
        if self.hidden == 1:
            return list(labels)
        return [f"{label}/{h}" for label in labels for h in range(1, self.hidden + 1)]


def small_weights(problem: Any, seed: int, dtype: Any = np.float64) -> np.ndarray:
    """Random weights to start from, w_j ~ N(0, SMALL^2 / mean ||x||^2): scores of order SMALL, whatever the features' scale.

    They decide which state a token falls into at first, so another seed may lead to another local minimum.
    """
    norms = mean_square(problem)
    scale = SMALL / math.sqrt(norms) if norms > 0 else SMALL
    w = np.random.default_rng((seed, 2)).normal(scale=scale, size=kernels.n_weights(problem)).astype(dtype)
    clear_unused(problem, w)
    return w


@functools.singledispatch
def mean_square(problem: Any) -> float:
    """The mean of ||x||^2 over what has features: rows, or variables of graphs."""
    return total_norm(problem.rows) / max(n_rows(problem.rows), 1)


@compiled_loop
def total_norm(rows):
    """sum_r ||x_r||^2."""
    total = 0.0
    for r in range(n_rows(rows)):
        total += row_norm(rows, r)
    return total


@functools.singledispatch
def clear_unused(problem: Any, w: np.ndarray) -> None:
    """Zeros for what has a place among the weights of a problem, but no weight; of most structures nothing has."""
