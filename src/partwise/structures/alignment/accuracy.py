"""The alignment of maximum expected accuracy, from the probabilities of pairs.

References
----------
I. Holmes, R. Durbin (1998). Dynamic programming alignment accuracy. J. Comput. Biol. 5.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import compiled_loop
from partwise.structures.alignment.best import best_path

LEAST = 0.01  # pairs less likely than that are not worth aligning


@compiled_loop
def path_of(theta, n, m, y):
    """The best global alignment by these part scores."""
    return best_path(theta, n, m, False, y)


def most_expected(probabilities: np.ndarray) -> np.ndarray:
    """The alignment with the highest expected number of right pairs, sum of P(i, j), as partners. O(n m)."""
    n, m = probabilities.shape
    theta, y = np.zeros(n * m + 4 * (n + m)), np.zeros(n, np.int32)
    theta[: n * m] = probabilities.ravel() - LEAST
    path_of(theta, n, m, y)
    return y
