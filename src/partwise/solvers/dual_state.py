"""What dual solvers remember, and what they certify: P(w) and D(lambda) of the multipliers in their active sets (`active`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.losses.in_loops import Workspace
from partwise.losses.linear_pieces import piece_value, score_pieces
from partwise.losses.slacks import ridge, shares_slack
from partwise.objective import losses_at
from partwise.solvers.active import RECORDS, ActiveSets, find, output_of, weights_of
from partwise.solvers.base import State, Task
from partwise.solvers.weights import Weights


@dataclass
class DualState(State):
    """What dual solvers remember: the multipliers in their active sets, the weights they stand for, and scratch memory."""

    sets: ActiveSets | None = None
    weights: Weights | None = None
    work: Workspace | None = None


def dual_value(sets: ActiveSets, w: np.ndarray, gamma: float) -> float:
    """-1/2 ||w||^2 + sum_i sum_y lambda_i(y) o_i(y), o_i(y) = gamma l_i(y), for the weights w of these sets.

    That is D(lambda), but for `slack_cost`.
    """
    used = sets.used[RECORDS]
    w = w.astype(np.float64, copy=False)
    return gamma * float(sets.weight[:used] @ sets.cost[:used]) - 0.5 * float(w @ w)


@compiled_loop
def squares_of(problem, loss, sets, C):
    """What quadratic slacks take from D: sum_i 1/(2 C_i) (sum of the multipliers of other outputs than t_i)^2.

    Where each output has a slack of its own (`found`), it is the sum of the squares of all multipliers.
    """
    value = 0.0
    for i in range(len(C)):
        if C[i] > 0.0:
            free, record = find(sets, i, kernels.target(problem, i)) if shares_slack(loss) else -1, sets.head[i]
            total, squares = 0.0, 0.0
            while record >= 0:
                if record != free:
                    total += sets.weight[record]
                    squares += sets.weight[record] * sets.weight[record]
                record = sets.next[record]
            value += 0.5 * ridge(loss, C[i]) * (total * total if shares_slack(loss) else squares)
    return value


def slack_cost(task: Task, sets: ActiveSets) -> float:
    """What quadratic slacks take from D; nothing where slacks are linear."""
    return float(squares_of(task.problem, task.loss.kernel, sets, task.C)) if task.loss.is_squared else 0.0


@compiled_loop
def raise_to_known(problem, loss, sets, w, work, losses):
    """losses[i] = max { losses[i], max over S_i of o_i(y) - w . v_i(y) }."""
    for i in range(len(sets.head)):
        reference, shift = score_pieces(loss, problem, i, w, work)
        theta, length, record = work.theta[: kernels.n_parts(problem, i)], kernels.length(problem, i), sets.head[i]
        while record >= 0:
            y = output_of(sets, record, length)
            losses[i] = max(losses[i], float(piece_value(loss, problem, i, theta, reference, shift, y)))
            record = sets.next[record]


def primal_value(task: Task, state: DualState, w: np.ndarray) -> float:
    """P(w). One oracle call per example.

    Where the oracle only searches, what it finds may be less than what S_i knows: then both are looked at, so that P is never
    below D.
    """
    losses = losses_at(task.problem, task.loss, w, task.n_jobs)
    if task.loss.is_searched(task.problem):
        raise_to_known(task.problem, task.loss.kernel, state.sets, w, state.work, losses)
    w = w.astype(np.float64, copy=False)
    return 0.5 * float(w @ w) + float(task.C @ losses)


def certified_dual(task: Task, state: DualState) -> float:
    """D(lambda), with weights summed afresh where those at hand are rounded to less than float64."""
    w = state.weights.v
    if w.dtype != np.float64:
        w = weights_of(task.problem, state.sets, task.loss.kernel)
    return dual_value(state.sets, w, task.loss.gamma) - slack_cost(task, state.sets)
