"""The objective, its gradient, its certificate, and predictions: passes over all examples, in threads.

    P(w) = 1/2 ||w||^2 + sum_i C_i L_i(w)                                                             (P)

(with an L1 penalty: `partwise.losses.penalty`). Threads share nothing but the weights. Sums are formed over a fixed set of chunks
in a fixed order, so the number of threads never changes the answer.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.engine.threads import in_threads, parts_elsewhere
from partwise.kernels import MOST_CHUNKS, chunks
from partwise.losses.in_loops import add_gradient, evaluate, workspace
from partwise.losses.penalty import Entropy, above, add_penalty, mixed_bound, penalty
from partwise.losses.records import Family, Loss

__all__ = ["Value", "best_outputs", "completions", "is_convex", "likeliest_beta", "losses_at", "mean_cost", "objective"]

SLICE = 4096  # examples per call of a compiled loop: how long Ctrl-C may have to wait
BLOCK = 4096  # weights per block: a few vectors of that length stay in the nearest cache
BELOW = 1e-4  # a loss less than zero by more than that is no rounding error


@compiled_loop
def loss_pass(problem, loss, first, last, C, w, work, losses, gradient):
    """losses[i] = L_i(w) for first <= i < last; gradient += sum_i C_i dL_i(w), unless `gradient` is empty.

    No loss is negative; where an oracle is approximate it may come out so. Then it is none, and has no gradient: else the
    objective would be minimised by what the oracle gets most wrong.
    """
    for i in range(first, last):
        losses[i] = evaluate(loss, problem, i, w, 1.0, work)
        if losses[i] < 0.0:
            losses[i] = 0.0
        elif gradient.size and C[i] > 0.0:
            add_gradient(loss, problem, i, work, C[i], gradient)


@compiled_loop
def skipped_pass(problem, loss, first, last, w, work, skipped):
    """skipped[i] = 1 where the loss comes out below zero."""
    for i in range(first, last):
        skipped[i] = evaluate(loss, problem, i, w, 1.0, work) < -BELOW


@compiled_loop
def best_pass(problem, first, last, w, theta, starts, out, values):
    """Best outputs of the examples in [first, last), laid end to end in `out`, and their scores."""
    for i in range(first, last):
        kernels.score(problem, i, w, theta)
        values[i] = kernels.best(problem, i, theta, out[starts[i] : starts[i + 1]])


@compiled_loop
def complete_pass(problem, first, last, w, theta, starts, out, values):
    """Best acceptable outputs of the examples in [first, last), laid end to end in `out`, and their scores."""
    for i in range(first, last):
        scores = theta[: kernels.n_parts(problem, i)]
        kernels.score(problem, i, w, scores)
        values[i] = kernels.complete(problem, i, scores, out[starts[i] : starts[i + 1]])


@compiled_loop
def cost_pass(problem, starts, out, costs):
    """Cost of every output in `out`."""
    for i in range(len(costs)):
        costs[i] = kernels.cost(problem, i, out[starts[i] : starts[i + 1]])


class Value(NamedTuple):
    """The objective at one point. `dual` is a lower bound of the optimum (nan: none is known), `gradient` that of P.

    With an L1 penalty, which has no gradient, `gradient` is that of the rest of P.
    `residual` is 1/2 ||gradient||^2 (nan: not computed): how far from a stationary point; if P is convex, the gap is no larger.

    Attributes
    ----------
    primal : float
        P(w).
    dual : float
        A lower bound of the optimum; nan: none is known.
    gradient : array (weights,)
        Of P.
    residual : float
        1/2 ||gradient||^2; nan: not computed.
    """

    primal: float
    dual: float
    gradient: np.ndarray
    residual: float = math.nan

    @property
    def gap(self) -> float:
        """How far at most the primal is above the optimum."""
        return self.primal - self.dual


def is_convex(problem: Any, loss: Loss) -> bool:
    """Whether P is convex: then it has a dual bound.

    Parameters
    ----------
    problem : packed problem
    loss : Loss
        From `partwise.LOSSES`, or a record with parameters.
    """
    return loss.is_convex and not kernels.is_partial(problem)


def losses_at(problem: Any, loss: Loss, w: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """L_i(w) of every example. One oracle call each.

    Parameters
    ----------
    problem : packed problem
    loss : Loss
        From `partwise.LOSSES`, or a record with parameters.
    w : array (weights,)
    n_jobs : int, optional
        Threads; never changes the result.
    """
    kernels.check_weights(problem, w)
    if (parts := parts_elsewhere(n_jobs, problem)) is not None:
        return np.concatenate(parts.each(losses_at, loss, w))
    losses, none = np.zeros(kernels.n_examples(problem)), np.zeros(0)

    def run(chunk):
        loss_pass(problem, loss.kernel, *chunk, losses, w, workspace(problem, w.dtype), losses, none)

    in_threads(run, chunks(problem), n_jobs)
    return losses


def count_skipped(problem: Any, loss: Loss, w: np.ndarray, n_jobs: int | None = None) -> int:
    """How many examples have a loss that comes out below zero, as only that of an approximate oracle does."""
    if kernels.is_exact(problem):
        return 0
    if (parts := parts_elsewhere(n_jobs, problem)) is not None:
        return sum(parts.each(count_skipped, loss, w))
    skipped = np.zeros(kernels.n_examples(problem), np.int8)

    def run(chunk):
        skipped_pass(problem, loss.kernel, *chunk, w, workspace(problem, w.dtype), skipped)

    in_threads(run, chunks(problem), n_jobs)
    return int(skipped.sum())


@compiled_loop
def add_weights(gradient, w, first, last):
    """gradient += w for first <= j < last; returns ||w||^2 and ||gradient||^2 there, a block at a time: it stays in the cache.

    Summing block by block keeps the rounding error at that of BLOCK + d / BLOCK terms rather than d. Sums are loops of their own:
    where a loop also stores, the compiler guards against vectors that overlap, and takes the slow way, which rounds differently,
    for some that only lie side by side. The same numbers must give the same sums wherever they are in memory.
    """
    w_norm, norm = 0.0, 0.0
    for start in range(first, last, BLOCK):
        w_sum, total, stop = 0.0, 0.0, min(start + BLOCK, last)
        for j in range(start, stop):
            gradient[j] += float(w[j])
        for j in range(start, stop):
            w_sum += float(w[j]) * float(w[j])
            total += gradient[j] * gradient[j]
        w_norm += w_sum
        norm += total
    return w_norm, norm


def spans(d: int) -> list[tuple[int, int]]:
    """Ranges of weights that one thread works on at a time: whole blocks, few if there are few weights."""
    step = max(-(-d // MOST_CHUNKS // BLOCK) * BLOCK, 32 * BLOCK)
    return [(first, min(first + step, d)) for first in range(0, max(d, 1), step)]


def take(pool: list[np.ndarray], d: int) -> np.ndarray:
    """A vector of d zeros, from the pool if it has one."""
    try:
        vector = pool.pop()
    except IndexError:
        return np.zeros(d)
    vector.fill(0.0)
    return vector


def loss_gradient(problem: Any, loss: Loss, C, w, losses, n_jobs, pool, each: bool = True) -> tuple[np.ndarray, float]:
    """sum_i C_i dL_i(w) and sum_i C_i L_i(w); losses[i] = L_i(w), which may be left out if not `each` is wanted."""
    if (parts := parts_elsewhere(n_jobs, problem)) is not None:
        total, risk, found = parts.total(add_found, gradient_of_part, loss, w, each, pieces=n_jobs.cut(C))
        if each:
            losses[:] = np.concatenate(found)
        return total, risk

    def add(first: int, last: int, gradient: np.ndarray) -> None:
        work = workspace(problem, w.dtype)
        for start in range(first, last, SLICE):
            loss_pass(problem, loss.kernel, start, min(start + SLICE, last), C, w, work, losses, gradient)

    total = summed(problem, add, n_jobs, pool)
    return total, float(C @ losses)


Found = tuple[np.ndarray, float, list[np.ndarray]]


def gradient_of_part(part: Any, C: np.ndarray, loss: Loss, w: np.ndarray, each: bool) -> Found:
    """The gradient and the losses of some of the examples, where they are: their sum, and each of them if that is wanted."""
    losses = np.zeros(len(C))
    return (*loss_gradient(part, loss, np.ascontiguousarray(C), w, losses, None, []), [losses] if each else [])


def add_found(left: Found, right: Found) -> Found:
    """What two ranges of examples found, together."""
    return left[0] + right[0], left[1] + right[1], left[2] + right[2]


def summed(problem: Any, add: Callable[[int, int, np.ndarray], None], n_jobs: int | None, pool: list[np.ndarray]) -> np.ndarray:
    """A vector as long as the weights to which every example adds its part: add(first, last, vector) does it for some of them.

    Every chunk of examples is summed in a vector of its own and the chunks are added in their order, whichever thread was first.
    A chunk costs a pass over d, so there are few of them where the weights outnumber the parts.
    """
    d = kernels.n_weights(problem)
    plan = chunks(problem, most=int(np.clip(2 * kernels.total_parts(problem) // max(d, 1), 1, MOST_CHUNKS)))
    total, turn, done = take(pool, d), threading.Condition(), [0]

    def run(k):
        vector = take(pool, d) if k else total
        try:
            add(*plan[k], vector)
            with turn:
                turn.wait_for(lambda: done[0] >= k)
            if k:
                np.add(total, vector, out=total)
                pool.append(vector)
        finally:  # also after an error, or the others would wait for ever
            with turn:
                done[0] = max(done[0], k + 1)
                turn.notify_all()

    in_threads(run, range(len(plan)), n_jobs)
    return total


def objective(
    problem: Any,
    loss: Loss,
    C: np.ndarray,
    w: np.ndarray,
    n_jobs: int | None = None,
    pool: list[np.ndarray] | None = None,
    l1_ratio: float = 0.0,
    penalty_weight: np.ndarray | None = None,
) -> Value:
    """P(w) with its gradient and a dual bound, in one pass over the examples.

    The dual point is the one that w itself suggests: alpha_i = C_i p_i(. | w), whose weights are w' = -sum_i C_i dL_i(w). Then

        D(alpha) = sum_i C_i L_i(w) + w . w' - 1/2 ||w'||^2,    P(w) - D(alpha) = 1/2 ||w - w'||^2.

    For finite beta that is half the squared norm of the gradient of P, tight at the optimum. For beta = inf it is valid but
    loose; dual solvers know better points. Where P is not convex (`is_convex`), there is no bound: nan. With an L1 penalty
    (`l1_ratio` > 0) the dual point is mixed with the targets: see `partwise.losses.penalty`. With a `penalty_weight` the
    norm of a gradient g is that of the conjugate, sum_j g_j^2 / lambda_j.

    Cost: one oracle call per example; memory: the gradient and one vector of length d per thread. A caller who comes
    again and again hands in a `pool`, a list of vectors (d,) float64 that may be overwritten: they are used instead of
    new memory, whose first touch costs as much as a pass of arithmetic. The gradient is the caller's to put back.

    Parameters
    ----------
    problem : packed problem
    loss : Loss
        From `partwise.LOSSES`, or a record with parameters.
    C : array (examples,)
        Weights of the losses.
    w : array (weights,)
    n_jobs : int, optional
        Threads; never changes the result.
    pool : list, optional
        Vectors to work in, kept from call to call.
    l1_ratio : float
        Share of the L1 norm in the regulariser.
    penalty_weight : array (weights,), optional
        Weights of squares in the regulariser, 1 by default.
    """
    pool = [] if pool is None else pool
    losses = np.zeros(kernels.n_examples(problem))
    gradient, risk = loss_gradient(problem, loss, C, w, losses, n_jobs, pool, each=l1_ratio > 0.0)
    if l1_ratio > 0.0:
        return penalised(problem, loss, C, w, n_jobs, losses, gradient, l1_ratio)
    if penalty_weight is not None:
        gradient += penalty_weight * w
        primal = penalty(w.astype(np.float64, copy=False), 0.0, penalty_weight) + risk
        residual = 0.5 * float(np.square(gradient) @ (1.0 / penalty_weight))
        return Value(primal, primal - residual if is_convex(problem, loss) else math.nan, gradient, residual)
    norms = in_threads(lambda span: add_weights(gradient, w, *span), spans(len(gradient)), n_jobs)
    w_norm, norm = (sum(column) for column in zip(*norms, strict=True))
    primal = 0.5 * w_norm + risk
    dual = primal - 0.5 * norm if is_convex(problem, loss) else math.nan
    return Value(primal, dual, gradient, 0.5 * norm)


def penalised(problem, loss, C, w, n_jobs, losses, gradient, r: float) -> Value:
    """`objective` with an L1 penalty, from the losses and the gradient of their sum, to which that of the rest is added."""
    ranges = spans(len(gradient))
    parts = in_threads(lambda span: add_penalty(gradient, w, r, BLOCK, *span), ranges, n_jobs)
    norm, square, along, _ = (sum(column) for column in zip(*parts, strict=True))
    risk = float(C @ losses)
    primal = r * norm + 0.5 * (1.0 - r) * square + risk
    if not is_convex(problem, loss):
        return Value(primal, math.nan, gradient)
    large = np.zeros(0)
    if r < 1.0:
        large = np.concatenate(in_threads(lambda span: above(gradient, w, r, *span), ranges, n_jobs))
    entropy = Entropy(C / loss.beta, loss.beta * losses) if loss.is_smooth and isinstance(loss, Family) else None
    return Value(primal, mixed_bound(risk - along, entropy, large, max(part[3] for part in parts), r), gradient)


Outputs = tuple[np.ndarray, np.ndarray, np.ndarray]


def best_outputs(problem: Any, w: np.ndarray, n_jobs: int | None = None) -> Outputs:
    """Best output of every example: outputs end to end, their offsets (N + 1,), and their scores (N,).

    Parameters
    ----------
    problem : packed problem
    w : array (weights,)
    n_jobs : int, optional
        Threads; never changes the result.
    """
    if (parts := parts_elsewhere(n_jobs, problem)) is not None:
        return end_to_end(parts.each(best_outputs, w))
    return outputs_by(best_pass, problem, w, n_jobs)


def completions(problem: Any, w: np.ndarray, n_jobs: int | None = None) -> Outputs:
    """Best acceptable output of every example, in the form of `best_outputs`: the targets where labels are complete.

    A score of -inf: no acceptable output of that example obeys the constraints. ``kernels.with_targets(problem, outputs)`` is
    the next convex problem of CCCP.

    Parameters
    ----------
    problem : packed problem
    w : array (weights,)
    n_jobs : int, optional
        Threads; never changes the result.
    """
    if (parts := parts_elsewhere(n_jobs, problem)) is not None:
        return end_to_end(parts.each(completions, w))
    return outputs_by(complete_pass, problem, w, n_jobs)


def end_to_end(found: list[Outputs]) -> Outputs:
    """Outputs of several parts as those of one problem."""
    outputs, starts, values = zip(*found, strict=True)
    lengths = np.concatenate([np.diff(own) for own in starts])
    return np.concatenate(outputs), np.concatenate([[0], np.cumsum(lengths)]), np.concatenate(values)


def outputs_by(oracle: Any, problem: Any, w: np.ndarray, n_jobs: int | None) -> Outputs:
    """What the loop `oracle` finds for every example."""
    kernels.check_weights(problem, w)
    starts, parts = kernels.sizes(problem)
    out, values = np.zeros(starts[-1], np.int32), np.zeros(len(starts) - 1)

    def run(chunk):
        oracle(problem, *chunk, w, np.zeros(parts, w.dtype), starts, out, values)

    in_threads(run, chunks(problem), n_jobs)
    return out, starts, values


def mean_cost(problem: Any, w: np.ndarray, n_jobs: int | None = None) -> float:
    """Mean cost of the best outputs against the gold ones.

    Parameters
    ----------
    problem : packed problem
    w : array (weights,)
    n_jobs : int, optional
        Threads; never changes the result.
    """
    out, starts, _ = best_outputs(problem, w, n_jobs)
    costs = np.zeros(len(starts) - 1)
    cost_pass(problem, starts, out, costs)
    return float(costs.mean()) if len(costs) else 0.0


def likeliest_beta(problem: Any, w: np.ndarray, n_jobs: int | None = None) -> float:
    """The inverse temperature of highest likelihood: minimises the convex beta -> sum_i log sum_y exp beta (s(y) - s(y_i)).

    About twenty passes over the examples.

    Parameters
    ----------
    problem : packed problem
    w : array (weights,)
    n_jobs : int, optional
        Threads; never changes the result.
    """
    import scipy.optimize

    def negative_log_likelihood(log_beta: float) -> float:
        beta = math.exp(log_beta)
        return beta * float(losses_at(problem, Family(beta, 0.0), w, n_jobs).sum())

    # the right temperature depends on the scale of the scores: look around the one where typical scores are of order one
    scale = float(np.abs(losses_at(problem, Family(math.inf, 1.0), w, n_jobs)).mean())
    centre = -math.log(scale) if scale > 0 else 0.0
    found = scipy.optimize.minimize_scalar(
        negative_log_likelihood, bounds=(centre - 12.0, centre + 12.0), method="bounded", options={"xatol": 1e-4}
    )
    return math.exp(float(found.x))
