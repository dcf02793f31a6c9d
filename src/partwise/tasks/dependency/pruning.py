"""Arcs worth a second look: a model of first order rules out the others, so that one of second order can afford its parts.

An arc is kept if its marginal under the trees of the first model, at a temperature, is at least `LEAST` of the largest one of
its word, and if it is among the `candidates` largest of its word. The best tree of the first model is kept as a whole, so that
there is always a tree.
"""

from __future__ import annotations

import numpy as np

from partwise import passes
from partwise.engine.threads import in_threads
from partwise.objective import best_outputs
from partwise.structures.dependency.problem import TreeProblem

LEAST = 1e-4
SHARPNESS = 3.0  # inverse temperature for margin losses, whose scores are counted in margins: three of them rule an arc out


def likely_arcs(problem: TreeProblem, w: np.ndarray, beta: float, candidates: int, n_jobs: int | None = None) -> np.ndarray:
    """Which arcs to keep, a bool for each. One sum over trees for each sentence."""
    keep = np.zeros(int(problem.arcs[-1]), bool)
    heads = best_outputs(problem, w, n_jobs)[0]

    def choose(i: int) -> None:
        a, b = problem.starts[i], problem.starts[i + 1]
        n = int(b - a)
        p = passes.parts(problem, i, w, beta).reshape(n, n + 1)
        fine = p >= LEAST * p.max(axis=1, keepdims=True, initial=0.0)
        if n + 1 > candidates:
            fine &= p >= np.partition(p, n + 1 - candidates, axis=1)[:, n + 1 - candidates, None]
        fine[np.arange(n), heads[a:b]] = True
        keep[problem.arcs[i] : problem.arcs[i + 1]] = fine.reshape(-1)

    in_threads(choose, range(len(problem.starts) - 1), n_jobs)
    return keep
