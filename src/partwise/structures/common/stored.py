"""What must hold of stored problems of several structures (`partwise.features.stored`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.features.stored import check_array, check_numbers, check_reals


def check_labels(problem: Any, n: int, k: int) -> None:
    """What structures with one label of k for each of n places share: gold, targets, costs, what is allowed and known."""
    sets, known = len(problem.sets), len(problem.known)
    check_numbers("gold", problem.gold, n, 0, k + known)
    check_numbers("targets", problem.targets, n, 0, k)
    check_reals("costs", problem.costs, (k + known, k))
    check_array("sets", problem.sets, (sets, k), "b")
    check_array("known", problem.known, (known, k), "b")
    check_numbers("allowed", problem.allowed, n if problem.allowed.size else 0, 0, sets)


def check_barrier(barrier: np.ndarray, k: int) -> None:
    """0 or -inf for each label after each other, begin and end among them; or empty."""
    check_reals("barrier", barrier, (k + 1, k + 1) if barrier.size else (0, 0))
