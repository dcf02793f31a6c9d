"""EG: online exponentiated gradient for every smooth loss L(beta, gamma), one example at a time, with a duality gap.

Problem: ``min_w 1/2 ||w||^2 + sum_i C_i L_i(w)`` through its dual, over distributions a_i of outputs (Collins et al. 2008):

    max_a  D(a) = sum_i C_i [ H(a_i) / beta + gamma E_{a_i} l_i ] - 1/2 ||w||^2,    w = sum_i C_i E_{a_i}[F(x_i, t_i) - F(x_i, y)]

with H the entropy. A distribution over outputs is too long to write down, but a step of exponentiated gradient only multiplies
a_i(y) by powers of products over parts. So a_i stays of the form exp(theta_i . z(y)) / Z with *part scores* theta_i, which are
what is kept:

    theta_i = large for the parts of t_i: a_i is nearly all on the target, w nearly 0
    repeat for each example i:
        tau     = beta ( part scores of w + gamma p_i )                         (at the optimum, a_i is the distribution of tau)
        theta   = theta_i + rate_i (tau - theta_i);   mu, Z = marginals and sum of theta                    (one oracle call)
        w'      = w + C_i F(x_i) (mu_i - mu)
        gain    = C_i / beta [ H - H_i + tau . (mu - mu_i) ] - 1/2 ||w' - w||^2,    H = log Z - theta . mu
        if gain > 0:  theta_i, mu_i, w <- theta, mu, w'
        rate_i  <- q / (q + beta C_i n),   q = (tau - theta_i) . (mu - mu_i) / rate,   n = ||F(x_i) (mu - mu_i)||^2 / rate^2

`gain` is the exact change of D, so D never falls and there is no learning rate to choose: rate_i, the best step for D taken to
second order, follows from what the last visit saw. All comes from the kernels `expected` and `add_parts`: any structure that has
a CRF has this.

This is the update of SDCA for CRFs (Le Priol et al. 2018) moved from marginals, where the entropy of most structures is not
known, to part scores, where it is. P - D certifies the result: D is computed from the theta_i alone, in float64.

Cost of an epoch: one oracle call per example, a few more at first. Memory: w, and 8 bytes for every part of every example (two
numbers of 32 bits).

References
----------
M. Collins, A. Globerson, T. Koo, X. Carreras, P. L. Bartlett (2008). Exponentiated gradient algorithms for conditional random
fields and max-margin Markov networks. JMLR 9.
R. Le Priol, A. Piche, S. Lacoste-Julien (2018). Adaptive stochastic dual coordinate ascent for conditional random fields. UAI.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import clear, squared_norm
from partwise.engine.compilation import compiled_loop, helper
from partwise.losses.in_loops import Softmax, Workspace, workspace
from partwise.losses.records import Loss
from partwise.objective import Value, losses_at
from partwise.solvers.base import Progress, Solver, State, Task
from partwise.solvers.weights import Weights, add, current, make_weights

SURE = 8.0  # theta_i of the parts of the target at first
FIRST, LEAST = 0.5, 1e-4  # rate_i at first, and at least
TRIES = 4  # calls of the oracle before an example is left as it is


@helper
def entropy_of(log_z, theta, mu):
    """H = log Z - theta . mu, for parts that may be forbidden."""
    total = 0.0
    for k in range(len(theta)):
        if mu[k] > 0.0:
            total += theta[k] * mu[k]
    return max(log_z - total, 0.0)


@compiled_loop
def start_pass(problem, loss, C, w, sure, first, scores, marginals, entropy, weights, work):
    """theta_i: those of w (sure = 0), or `sure` for the parts of the target; w = sum_i C_i F(x_i) (z(t_i) - mu_i)."""
    for i in range(len(C)):
        n = kernels.n_parts(problem, i)
        theta, mu, parts = scores[first[i] : first[i] + n], marginals[first[i] : first[i] + n], work.parts[:n]
        tau = work.theta[:n]
        kernels.score(problem, i, w, tau)
        if sure == 0.0:
            tau *= loss.beta
            if loss.gamma != 0.0:
                kernels.add_cost(problem, i, loss.beta * loss.gamma, tau)
        parts[:] = 0.0
        kernels.indicate(problem, i, kernels.target(problem, i), 1.0, parts)
        for k in range(n):
            theta[k] = tau[k] + (sure if parts[k] > 0.0 else 0.0)
        log_z = kernels.expected(problem, i, theta, parts)
        entropy[i] = entropy_of(log_z, theta, parts)
        for k in range(n):
            mu[k] = parts[k]
        kernels.indicate(problem, i, kernels.target(problem, i), -1.0, parts)
        kernels.add_parts(problem, i, parts, -C[i], work.gradient)
        add(weights, 1.0, work.gradient)


@compiled_loop
def eg_pass(problem, loss, order, C, first, scores, marginals, entropy, rates, weights, work):
    """Visit the examples in `order`; returns sum_i C_i L_i and the sum of the gaps, to second order, and the oracle calls."""
    losses, gaps, calls, beta = 0.0, 0.0, 0, loss.beta
    for i in order:
        n = kernels.n_parts(problem, i)
        theta, mu = scores[first[i] : first[i] + n], marginals[first[i] : first[i] + n]
        tau, new, parts = work.theta[:n], work.augmented[:n], work.parts[:n]
        kernels.score(problem, i, weights.v, tau)
        reference = float(kernels.value_of(problem, i, tau, kernels.target(problem, i)))
        tau *= beta
        if loss.gamma != 0.0:
            kernels.add_cost(problem, i, beta * loss.gamma, tau)
        tries = 0
        while tries < TRIES:
            tries += 1
            rate = rates[i]
            for k in range(n):
                new[k] = theta[k] + rate * (tau[k] - theta[k]) if tau[k] > -np.inf else -np.inf
            log_z = kernels.expected(problem, i, new, parts)
            h, along, ahead, rest = entropy_of(log_z, new, parts), 0.0, 0.0, 0.0
            for k in range(n):
                if tau[k] > -np.inf:
                    change = parts[k] - mu[k]
                    along += (tau[k] - theta[k]) * change
                    ahead += tau[k] * change
                    rest += (tau[k] - new[k]) * parts[k]
            for k in range(n):
                parts[k] -= mu[k]
            kernels.add_parts(problem, i, parts, -C[i], work.gradient)
            norm = squared_norm(work.gradient)
            gain = C[i] / beta * (h - entropy[i] + ahead) - 0.5 * norm
            q, curvature = max(along, 0.0) / rate, norm / (C[i] * rate * rate)
            best = q / (q + beta * curvature) if q > 0.0 else rate
            if gain >= 0.0:
                rates[i] = min(max(best, LEAST), 1.0)
                add(weights, 1.0, work.gradient)
                for k in range(n):
                    theta[k] = new[k]
                    mu[k] += parts[k]
                entropy[i] = h
                if tries == 1:
                    gaps += 0.5 * C[i] / beta * q
                    losses += C[i] * ((log_z + rest + 0.5 * (1.0 - rate) ** 2 * q) / beta - reference)
                break
            clear(work.gradient)
            if rates[i] <= LEAST:
                break
            rates[i] = max(min(best, 0.5 * rate), LEAST)
        calls += tries
    return losses, gaps, calls


@compiled_loop
def dual_pass(problem, loss, C, first, scores, work, gradient):
    """sum_i C_i [H(a_i) / beta + gamma E l_i], and gradient -= the weights of all a_i, which are those of theta_i alone."""
    total = 0.0
    for i in range(len(C)):
        n = kernels.n_parts(problem, i)
        theta, parts, costs = scores[first[i] : first[i] + n], work.parts[:n], work.augmented[:n]
        h = entropy_of(kernels.expected(problem, i, theta, parts), theta, parts)
        cost = 0.0
        if loss.gamma != 0.0:
            costs[:] = 0.0
            kernels.add_cost(problem, i, 1.0, costs)
            for k in range(n):
                cost += costs[k] * parts[k]
        total += C[i] * (h / loss.beta + loss.gamma * cost)
        kernels.indicate(problem, i, kernels.target(problem, i), -1.0, parts)
        kernels.add_parts(problem, i, parts, C[i], gradient)
    return total


@dataclass
class EGState(State):
    """The distributions a_i, as part scores, and what follows from them."""

    weights: Weights | None = None
    work: Workspace | None = None
    scores: np.ndarray | None = None  #: theta_i, end to end
    marginals: np.ndarray | None = None  #: mu_i
    entropy: np.ndarray | None = None  #: (N,) H(a_i)
    rates: np.ndarray | None = None  #: (N,) rate_i


@dataclass(frozen=True)
class EG(Solver):
    """Online exponentiated gradient in the dual of smooth losses (see the module).

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "crf", EG(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('eg', (4,))
    """

    name = "eg"
    default_epochs = 200
    accepted = "L(beta, gamma) with a finite beta"
    fixed_targets = True

    def accepts(self, loss: Loss) -> bool:
        return isinstance(loss.kernel, Softmax)

    def init(self, task: Task, start: np.ndarray | None = None) -> EGState:
        problem, n = task.problem, kernels.n_weights(task.problem)
        first = part_offsets(problem)
        state = EGState(
            weights=make_weights(n, task.dtype, average=False),
            work=workspace(problem, task.dtype),
            scores=np.zeros(first[-1], np.float32),
            marginals=np.zeros(first[-1], np.float32),
            entropy=np.zeros(task.n),
            rates=np.full(task.n, FIRST),
        )
        w = np.zeros(n, task.dtype) if start is None else np.asarray(start, task.dtype)
        start_pass(
            problem, task.loss.kernel, task.C, w, 0.0 if start is not None else SURE, first,
            state.scores, state.marginals, state.entropy, state.weights, state.work,
        )  # fmt: skip
        state.oracle_calls += task.n
        return state

    def epoch(self, task: Task, state: EGState) -> Progress:
        first, loss, gap = part_offsets(task.problem), 0.0, 0.0
        for order in task.slices(state.epochs):
            seen = eg_pass(
                task.problem, task.loss.kernel, order[task.C[order] > 0.0], task.C, first,
                state.scores, state.marginals, state.entropy, state.rates, state.weights, state.work,
            )  # fmt: skip
            loss, gap = loss + seen[0], gap + seen[1]
            state.oracle_calls += int(seen[2])
        state.epochs += 1
        w = state.weights.v.astype(np.float64, copy=False)
        return Progress(loss, gap, loss + 0.5 * float(w @ w))

    def weights(self, state: EGState) -> np.ndarray:
        return current(state.weights)

    def bounds(self, task: Task, state: EGState) -> Value:
        """P of the weights at hand, and D of the distributions, whose weights are summed afresh: nothing is lost by rounding."""
        w = current(state.weights).astype(np.float64, copy=False)
        primal = 0.5 * float(w @ w) + float(task.C @ losses_at(task.problem, task.loss, self.weights(state), task.n_jobs))
        fresh = np.zeros(len(w))
        total = dual_pass(task.problem, task.loss.kernel, task.C, part_offsets(task.problem), state.scores, state.work, fresh)
        return Value(primal, float(total) - 0.5 * float(fresh @ fresh), np.zeros(0))


@compiled_loop
def count_parts(problem, counts):
    """counts[i] = parts of example i."""
    for i in range(len(counts)):
        counts[i] = kernels.n_parts(problem, i)


def part_offsets(problem) -> np.ndarray:
    """Where the parts of each example begin when laid end to end, and the end."""
    first = np.zeros(kernels.n_examples(problem) + 1, np.int64)
    count_parts(problem, first[1:])
    return np.cumsum(first)
