"""A constant is chosen on training data from a grid; a best value at the end of a grid says only that the grid was too short."""

from __future__ import annotations

from collections.abc import Callable, Sequence

MOST = 4  #: values that a grid may grow by


def choose_inside(judge: Callable[[float], float], grid: Sequence[float], most: int | None = None) -> float:
    """The value with the highest score; while it is the first or last of the grid, the grid grows there by its own step.

    Parameters
    ----------
    judge : callable
        Score of a value, the higher the better, on held-out parts of the training data. Called once for each value.
    grid : sequence of float
        Two or more, positive.
    most : int, optional
        Values that may be added in all, `MOST` by default.

    Returns
    -------
    float
        Of two that tie, the smaller one.

    Examples
    --------
    >>> choose_inside(lambda C: -abs(C - 27.0), (1.0, 3.0))
    27.0
    """
    if len(grid) < 2 or min(grid) <= 0:
        raise ValueError(f"A grid that can grow must have two positive values or more. Got {grid!r}.")
    found = {value: judge(value) for value in sorted(grid)}
    for _ in range(MOST if most is None else most):
        tried = sorted(found)
        best = max(tried, key=found.__getitem__)
        if best == tried[-1]:
            further = tried[-1] * tried[-1] / tried[-2]
        elif best == tried[0] and found[tried[0]] > found[tried[1]]:  # a tie is no reason to go on
            further = tried[0] * tried[0] / tried[1]
        else:
            break
        further = float(f"{further:.2g}")
        found[further] = judge(further)
    return max(sorted(found), key=found.__getitem__)
