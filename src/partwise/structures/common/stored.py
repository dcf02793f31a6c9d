"""Packed problems that come from a file: whether their arrays agree with each other, so that no loop reads beyond one."""

from __future__ import annotations

import functools
import importlib
from typing import Any

import numpy as np

from partwise import kernels
from partwise.features.stored import check_array, check_int, check_numbers, check_reals

MOST_WEIGHTS = 2**48  # far more than there can be, and far from where 64 bits end


def check_stored(problem: Any) -> None:
    """Raise a ValueError where a packed problem contradicts itself, or points beyond what it has.

    Each structure has a module ``stored`` that knows what must hold of it. O(entries of all arrays), in whole passes.
    """
    home = type(problem).__module__.rpartition(".")[0]
    try:
        importlib.import_module(f"{home}.stored")
    except ModuleNotFoundError:
        raise ValueError(f"nothing is known of what a {type(problem).__name__} must be") from None
    try:
        check_arrays(problem)
        check_int("the number of weights", kernels.n_weights(problem), 0, MOST_WEIGHTS)
    except (LookupError, TypeError, AttributeError, OverflowError) as error:  # a field that is something else altogether
        raise ValueError(f"{type(problem).__name__}: {type(error).__name__}: {error}") from None


@functools.singledispatch
def check_arrays(problem: Any) -> None:
    """`check_stored` for one structure; each registers its own."""
    raise ValueError(f"nothing is known of what a {type(problem).__name__} must be")


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
