"""Arcs worth a second look: a model of first order rules out the others, so that one of second order can afford its parts.

An arc is kept if its marginal under the trees of the first model, at a temperature, is at least `LEAST` of the largest one of
its word, and if it is among the `candidates` largest of its word. The best tree of the first model is kept as a whole, so that
there is always a tree.
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.compilation import entry
from partwise.objective import best_outputs, chunks, in_threads
from partwise.structures.tree import TreeProblem

LEAST = 1e-4
SHARPNESS = 3.0  # inverse temperature for margin losses, whose scores are counted in margins: three of them rule an arc out


@entry
def marginal_pass(problem, first, last, w, beta, theta, parts, out):
    """Marginals of all arcs of the examples first .. last."""
    for i in range(first, last):
        n = kernels.n_parts(problem, i)
        kernels.score(problem, i, w, theta[:n])
        for k in range(n):
            theta[k] *= beta
        kernels.expected(problem, i, theta[:n], parts[:n])
        at = problem.arcs[i]
        for k in range(n):
            out[at + k] = parts[k]


def likely_arcs(problem: TreeProblem, w: np.ndarray, beta: float, candidates: int, n_jobs: int | None = None) -> np.ndarray:
    """Which arcs to keep, a bool for each. One sum over trees for each sentence."""
    out = np.zeros(int(problem.arcs[-1]))
    largest = kernels.sizes(problem)[1]

    def work(chunk):
        marginal_pass(problem, *chunk, w, beta, np.zeros(largest, w.dtype), np.zeros(largest), out)

    in_threads(work, chunks(problem), n_jobs)
    keep = np.zeros(len(out), bool)
    heads = best_outputs(problem, w, n_jobs)[0]
    for i, n in enumerate(np.diff(problem.starts).tolist()):
        here = slice(int(problem.arcs[i]), int(problem.arcs[i + 1]))
        p = out[here].reshape(n, n + 1)
        fine = p >= LEAST * p.max(axis=1, keepdims=True, initial=0.0)
        if n + 1 > candidates:
            fine &= p >= np.partition(p, n + 1 - candidates, axis=1)[:, n + 1 - candidates, None]
        fine[np.arange(n), heads[problem.starts[i] : problem.starts[i + 1]]] = True
        keep[here] = fine.reshape(-1)
    return keep
