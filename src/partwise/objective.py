"""The objective, its gradient, its certificate, and predictions: passes over all examples, in threads.

    P(w) = 1/2 ||w||^2 + sum_i C_i L_i(w)                                                             (P)

Threads share nothing but the weights. Sums are formed over a fixed set of chunks in a fixed order, so the number of threads
never changes the answer.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.compilation import entry
from partwise.losses import Family, add_gradient, evaluate, workspace

MOST_CHUNKS = 8


@entry
def loss_pass(problem, loss, first, last, C, w, work, losses, gradient):
    """losses[i] = L_i(w) for first <= i < last; gradient += sum_i C_i dL_i(w), unless `gradient` is empty."""
    for i in range(first, last):
        losses[i] = evaluate(loss, problem, i, w, 1.0, work)
        if gradient.size and C[i] > 0.0:
            add_gradient(loss, problem, i, work, C[i], gradient)


@entry
def best_pass(problem, first, last, w, theta, starts, out, values):
    """Best outputs of the examples in [first, last), laid end to end in `out`, and their scores."""
    for i in range(first, last):
        kernels.score(problem, i, w, theta)
        values[i] = kernels.best(problem, i, theta, out[starts[i] : starts[i + 1]])


@entry
def cost_pass(problem, starts, out, costs):
    """Cost of every output in `out`."""
    for i in range(len(costs)):
        costs[i] = kernels.cost(problem, i, out[starts[i] : starts[i + 1]])


def n_threads(n_jobs: int | None) -> int:
    """Threads meant by `n_jobs`: None is 1, negative counts from the number of cores as in joblib."""
    if n_jobs is None:
        return 1
    if not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(f"The 'n_jobs' parameter must be None or a non-zero integer. Got {n_jobs!r} instead.")
    cores = os.cpu_count() or 1
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))


def in_threads(function: Callable[[Any], Any], items: Iterable[Any], n_jobs: int | None) -> list[Any]:
    """[function(item) for item in items], in order, on `n_jobs` threads."""
    items = list(items)
    threads = min(n_threads(n_jobs), len(items))
    if threads <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def chunks(problem: Any, most: int = MOST_CHUNKS) -> list[tuple[int, int]]:
    """Ranges of examples of about equal size: what one thread does at a time. Depends on the problem alone."""
    n = kernels.n_examples(problem)
    edges = np.linspace(0, n, min(most, max(n, 1)) + 1).astype(int)
    return [(int(a), int(b)) for a, b in zip(edges[:-1], edges[1:], strict=True)]


class Value(NamedTuple):
    """The objective at one point. `dual` is a lower bound of the optimum, `gradient` that of P."""

    primal: float
    dual: float
    gradient: np.ndarray

    @property
    def gap(self) -> float:
        """How far at most the primal is above the optimum."""
        return self.primal - self.dual


def losses_at(problem: Any, loss: Family, w: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """L_i(w) of every example. One oracle call each."""
    losses, none = np.zeros(kernels.n_examples(problem)), np.zeros(0)

    def run(chunk):
        loss_pass(problem, loss.kernel, *chunk, losses, w, workspace(problem, w.dtype), losses, none)

    in_threads(run, chunks(problem), n_jobs)
    return losses


def objective(problem: Any, loss: Family, C: np.ndarray, w: np.ndarray, n_jobs: int | None = None) -> Value:
    """P(w) with its gradient and a dual bound, in one pass over the examples.

    The dual point is the one that w itself suggests: alpha_i = C_i p_i(. | w), whose weights are w' = -sum_i C_i dL_i(w). Then

        D(alpha) = sum_i C_i L_i(w) + w . w' - 1/2 ||w'||^2,    P(w) - D(alpha) = 1/2 ||w - w'||^2.

    For finite beta that is half the squared norm of the gradient of P, tight at the optimum. For beta = inf it is valid but loose;
    dual solvers know better points.

    Cost: one oracle call per example; memory: one vector of length d per thread.
    """
    losses = np.zeros(kernels.n_examples(problem))
    d = kernels.n_weights(problem)
    # a chunk costs a pass over d: few chunks where the weights outnumber the parts
    parts = sum(kernels.n_parts(problem, i) for i in range(len(losses)))
    plan = chunks(problem, most=int(np.clip(2 * parts // max(d, 1), 1, MOST_CHUNKS)))
    total = np.zeros(d)
    spare = [] if n_threads(n_jobs) > 1 else [np.zeros(d)] * (len(plan) > 1)

    def run(chunk):
        if chunk == plan[0]:
            gradient = total
        elif spare:
            gradient = spare[0]
            gradient[:] = 0.0
        else:
            gradient = np.zeros(d)
        loss_pass(problem, loss.kernel, *chunk, C, w, workspace(problem, w.dtype), losses, gradient)
        if spare and gradient is not total:
            np.add(total, gradient, out=total)
        return gradient

    gradients = in_threads(run, plan, n_jobs)
    if not spare:
        for gradient in gradients[1:]:
            total += gradient
    loss_sum = float(C @ losses)
    w = w.astype(np.float64, copy=False)
    primal = 0.5 * float(w @ w) + loss_sum
    total += w
    return Value(primal, primal - 0.5 * float(total @ total), total)


def best_outputs(problem: Any, w: np.ndarray, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Best output of every example: outputs end to end, their offsets (N + 1,), and their scores (N,)."""
    starts, parts = kernels.sizes(problem)
    out, values = np.zeros(starts[-1], np.int32), np.zeros(len(starts) - 1)

    def run(chunk):
        best_pass(problem, *chunk, w, np.zeros(parts, w.dtype), starts, out, values)

    in_threads(run, chunks(problem), n_jobs)
    return out, starts, values


def mean_cost(problem: Any, w: np.ndarray, n_jobs: int | None = None) -> float:
    """Mean cost of the best outputs against the gold ones."""
    out, starts, _ = best_outputs(problem, w, n_jobs)
    costs = np.zeros(len(starts) - 1)
    cost_pass(problem, starts, out, costs)
    return float(costs.mean()) if len(costs) else 0.0
