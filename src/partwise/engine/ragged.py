"""Things of different sizes laid end to end, example i having those from starts[i] to starts[i + 1]: taking some, adding up."""

from __future__ import annotations

import numpy as np


def taken(starts: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where the examples numbered `which` begin when they lie end to end, and where all that they have lies now.

    Examples
    --------
    >>> [x.tolist() for x in taken(np.array([0, 2, 2, 5]), np.array([2, 0]))]
    [[0, 3, 5], [2, 3, 4, 0, 1]]
    """
    sizes = np.diff(starts)[which]
    own = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=own[1:])
    # entry k of the result is as far into its example as k is from where that begins now
    return own, np.arange(own[-1]) + np.repeat(starts[:-1][which] - own[:-1], sizes)


def totals(values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The sum of the values of each example, (N,); 0 where it has none. Of bools, how many are true.

    Examples
    --------
    >>> totals(np.array([True, False, True, True]), np.array([0, 2, 2, 4])).tolist()
    [1, 0, 2]
    """
    return np.diff(np.concatenate([[0], np.cumsum(values)])[starts])
