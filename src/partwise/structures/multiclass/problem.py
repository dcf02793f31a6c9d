"""Examples of one class each, packed: what the kernels of multiclass see."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.features.rows import make_rows, n_rows
from partwise.structures.common.gold_labels import check_costs, check_gold, costs_of_sets, pack_sets


class MulticlassProblem(NamedTuple):
    """N packed examples of a K-class problem.

    Examples
    --------
    >>> from partwise import multiclass_problem
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    >>> problem.gold.tolist(), problem.n_classes, problem.costs.tolist()
    ([0, 1], 2, [[0.0, 1.0], [1.0, 0.0]])
    """

    rows: Any  #: feature rows, one per example
    gold: np.ndarray  #: (N,) int32 true classes, or K + the row of `known`: one of several
    targets: np.ndarray  #: (N,) int32 classes that margins are measured against
    costs: np.ndarray  #: (K + sets, K) cost of answering column for row, one row for every value of `gold`
    allowed: np.ndarray  #: (N,) int32 row of `sets`, or empty: everything is allowed
    sets: np.ndarray  #: (sets, K) bool
    n_classes: int
    known: np.ndarray  #: (sets, K) bool: acceptable classes, what `gold` above K refers to


@kernels.partially_labelled
class PartialMulticlassProblem(MulticlassProblem):
    """The same where some example has several acceptable classes: a type of its own, so that full labels pay nothing for it."""


def multiclass_problem(x, gold=None, n_classes=None, costs=None, allowed=None, dtype=np.float64, known=None) -> MulticlassProblem:
    """Pack a multiclass problem.

    Parameters
    ----------
    x : array or sparse matrix (N, n_features), or feature rows
    gold : integers (N,), optional
        True classes in [0, n_classes); left out for prediction.
    n_classes : int, optional
    costs : array (K, K), optional
        ``costs[true, answered]`` with a zero diagonal; 0/1 by default.
    allowed : bool array (N, K), optional
        Classes an example may be given; all by default.
    known : bool array (sets, K), optional
        Sets of acceptable classes: a gold of ``n_classes + k`` says that the truth is one of ``known[k]``. The answer to such an
        example is a PartialMulticlassProblem, if any set in use has more than one class.

    Examples
    --------
    >>> problem = multiclass_problem(np.eye(3), gold=[0, 2, 1])
    >>> problem.gold.tolist(), problem.rows.n_features
    ([0, 2, 1], 3)
    """
    rows = x if hasattr(x, "_fields") else make_rows(x, dtype)
    n = n_rows(rows)
    gold = np.zeros(n, np.int32) if gold is None else np.asarray(gold, np.int32)
    if gold.shape != (n,):
        raise ValueError(f"Expected one class per example: {n} examples, gold of shape {gold.shape}.")
    k = int(n_classes if n_classes is not None else gold.max(initial=-1) + 1)
    gold, targets, known = check_gold(gold, k, known, allowed, "Classes", lambda i: f"example {i}")
    which, sets = pack_sets(allowed, n, k)
    kind = PartialMulticlassProblem if len(known) else MulticlassProblem
    return kind(rows, gold, targets, costs_of_sets(check_costs(costs, k), known), which, sets, k, known)
