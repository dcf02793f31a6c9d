"""An acceptable output of every example, of any structure that has partial labels: targets for solvers to begin with.

What weights would say does not matter yet, only what is forbidden: all scores that are not -inf are zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop


@compiled_loop
def complete_examples(problem, w, starts, theta, targets):
    """Write an acceptable output of every example into `targets`; returns the first example that has none, or -1."""
    for i in range(len(starts) - 1):
        scores = theta[: kernels.n_parts(problem, i)]
        kernels.score(problem, i, w, scores)
        for k in range(len(scores)):
            scores[k] = -np.inf if scores[k] == -np.inf else 0.0
        if kernels.complete(problem, i, scores, targets[starts[i] : starts[i + 1]]) == -np.inf:
            return i
    return -1


def complete_all(problem: Any) -> tuple[np.ndarray, int]:
    """Outputs end to end, and the number of the first example that has no acceptable one, or -1. One oracle call each."""
    starts, parts = kernels.sizes(problem)
    targets = np.zeros(starts[-1], np.int32)
    wrong = complete_examples(problem, np.zeros(kernels.n_weights(problem)), starts, np.zeros(parts), targets)
    return targets, int(wrong)
