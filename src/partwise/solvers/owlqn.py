"""OWL-QN: orthant-wise limited-memory quasi-Newton descent, for sparse models.

Problem: ``min_w P(w) = r ||w||_1 + (1 - r)/2 ||w||^2 + sum_i C_i L_i(w)``, r = l1_ratio in [0, 1], for losses of finite beta.
For the CRF it is what CRFsuite minimises with c1 > 0. (Max-margin losses: `admm`.) With f the smooth part, (1 - r)/2 ||w||^2 +
sum_i C_i L_i(w), and g its gradient (Andrew and Gao 2007, Algorithm 1, but for one condition):

    repeat:
        pg_j = g_j + r sign(w_j)  if w_j != 0,  else g_j moved by r towards zero        the pseudo-gradient: the steepest way down
        d = -H pg                                                H: of pairs s = w' - w, y = g' - g and of scales, as in `lbfgs`
        d_j = 0  where d_j has not the sign of -pg_j, and w_j = 0 or P fell by more than 0.3 % in the last iteration
        w(t) = w + t d,  with zero for what would leave the orthant of w (where w_j = 0: that of -pg_j)
        the first t of 1, 1/2, ... with  P(w(t)) <= P(w) + c1 pg . (w(t) - w);   w <- w(t); the new pair replaces the oldest

Within an orthant ||w||_1 is linear, so H need not know of it. Weights become zero exactly and stay so until |g_j| > r.

**When to align.** The paper, and CRFsuite, align d with -pg in all coordinates in every iteration. Where w_j = 0 this must be.
Where w_j != 0 the direction is one of descent without. Far from the optimum aligning helps all the same: orthants change with
every step, pairs (s, y) of others mislead H, and a coordinate that goes uphill is more likely wrong than clever. Near the optimum
it spoils the direction: where features are correlated, d rightly has other signs than -pg, and hundreds of iterations become
thousands. So it is done as long as the last iteration lowered P by more than 0.3 % of P (`STEEP`).

**The scale** is that of `lbfgs`, D = (1 + F)^(1/3), until then, and D = (1 + F)^(1/2) from then on (`SHARPER`): weights that
are to be zero become so earlier. Both rules were found on the training parts of CoNLL-2002 Spanish and WNUT-17; ``python -m
benchmarks.crfsuite_curves`` has the objective beside CRFsuite's, iteration by iteration.

**The certificate** is the bound of `partwise.losses.penalty`: the dual point that w suggests, mixed with the targets until it is
feasible. It takes no pass of its own; the best bound so far counts. For r < 1 it is tight soon. For r = 1 one weight whose
gradient is too large spoils it, so that with many rare features P is within 0.1 % of the optimum while the gap still shows 10 %
of it: then stop by `max_epochs` or on held-out data, or take r = 0.9. A problem that is not convex (partial labels, soft ramp)
has no bound: there 1/2 ||pg||^2 tells how far from a stationary point w is.

Cost of an iteration: as `lbfgs`, one oracle call per example and about 2m + 7 vectors of length d. Memory: 2m d floats of 4 bytes
and 7 d of 8.

References
----------
G. Andrew, J. Gao (2007). Scalable training of L1-regularized log-linear models. ICML.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.engine.compilation import compiled_loop
from partwise.engine.threads import in_threads
from partwise.objective import BLOCK, Value, objective, spans, take
from partwise.solvers.base import Progress, Task
from partwise.solvers.lbfgs import DECREASE
from partwise.solvers.quasi_newton import QuasiNewton, QuasiNewtonState, learn, move, told_anew
from partwise.solvers.weight_scale import scaled_square, scaling

SHARPER = 1.5  # power of D^-1/2 that is the scale of the end
STEEP = 3e-3  # a fall of P, in one iteration and relative to it, that is far from the optimum


@compiled_loop
def pseudo_gradient(pseudo, w, gradient, l1_ratio, first, last):
    """The pseudo-gradient into `pseudo`, for weights in [first, last); returns its squared norm and ||w||_1 there."""
    square, norm = 0.0, 0.0
    for start in range(first, last, BLOCK):
        square_sum, norm_sum, stop = 0.0, 0.0, min(start + BLOCK, last)
        for j in range(start, stop):
            v, g = float(w[j]), gradient[j]
            if v > 0.0:
                g += l1_ratio
            elif v < 0.0:
                g -= l1_ratio
            else:
                g = max(g - l1_ratio, 0.0) + min(g + l1_ratio, 0.0)
            pseudo[j] = g
        for j in range(start, stop):  # sums apart from stores: see `objective.add_weights`
            square_sum += pseudo[j] * pseudo[j]
            norm_sum += abs(float(w[j]))
        square += square_sum
        norm += norm_sum
    return square, norm


@compiled_loop
def align(to, w, pseudo, l1_ratio, everywhere, first, last):
    """Make of to = w + t d the point w(t) of the module, for weights in [first, last); returns pg . (w(t) - w) there.

    `everywhere`: also weights that are not zero may only go downhill. Without an L1 penalty there are no orthants.
    """
    slope = 0.0
    for start in range(first, last, BLOCK):
        slope_sum, stop = 0.0, min(start + BLOCK, last)
        for j in range(start, stop if l1_ratio > 0.0 else start):
            v, g = w[j], pseudo[j]
            if v == 0.0:
                if to[j] * g >= 0.0:
                    to[j] = 0.0
            elif to[j] * v <= 0.0:
                to[j] = 0.0
            if everywhere and v != 0.0 and (to[j] - v) * g >= 0.0:
                to[j] = v
        for j in range(start, stop):
            slope_sum += (float(to[j]) - float(w[j])) * pseudo[j]
        slope += slope_sum
    return slope


@dataclass
class OWLQNState(QuasiNewtonState):
    """Where it is, the pseudo-gradient there, and the best bound; `residual` and `scaled` are of the pseudo-gradient."""

    pseudo: np.ndarray | None = None
    dual: float = -math.inf  #: the best so far
    sharp: bool = False  #: whether the scale is that of the end


@dataclass(frozen=True)
class OWLQN(QuasiNewton):
    """Orthant-wise limited-memory quasi-Newton (see the module); one epoch is one iteration.

    Parameters
    ----------
    memory : int
        Pairs (s, y) to remember; each costs 8 bytes per weight.
    max_evaluations : int
        Most points that one line search may try.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "crf", OWLQN(), C=1.0, max_epochs=20, l1_ratio=0.5)
    >>> result.solver.name, result.w.shape
    ('owlqn', (4,))
    """

    name = "owlqn"
    default_epochs = 300
    sparse = True
    state = OWLQNState

    def bounds(self, task: Task, state: OWLQNState) -> Value:
        """Value at the current point, known already; the gradient is the state's own, which the next epoch will overwrite."""
        if state.gradient is None:
            self.evaluate_start(task, state)
        return Value(state.primal, state.dual, state.gradient, state.residual)

    def retarget(self, before: Task, task: Task, state: OWLQNState, changed: np.ndarray) -> OWLQNState:
        """The curvature that was seen is that of the convex half, which stays; gradient and bound do not."""
        state.gradient, state.dual, state.fall, state.exhausted = None, -math.inf, math.inf, False
        return state

    def epoch(self, task: Task, state: OWLQNState) -> Progress:
        if state.gradient is None:
            self.evaluate_start(task, state)
        self.iterate(task, state)
        state.epochs += 1
        return Progress(state.loss, state.primal - state.dual, state.primal, state.exhausted)

    def evaluate_start(self, task: Task, state: OWLQNState) -> None:
        """Value and gradient at the weights to start from; the scale, if there is none yet."""
        if not state.scale.any():
            state.scale = scaling(task, state.pool)
            state.oracle_calls += task.n
        value = objective(task.problem, task.loss, task.C, state.w, task.n_jobs, state.pool, task.l1_ratio)
        state.__dict__.update(self.seen(task, state, state.w, value), oracle_calls=state.oracle_calls + task.n)
        state.scaled = scaled_square(state.pseudo, state.scale)

    def seen(self, task: Task, state: OWLQNState, w: np.ndarray, value: Value) -> dict[str, Any]:
        """What the state will know of the point `w`."""
        r, pseudo = task.l1_ratio, take(state.pool, len(w))
        ranges = spans(len(w))
        sums = in_threads(lambda span: pseudo_gradient(pseudo, w, value.gradient, r, *span), ranges, task.n_jobs)
        square, norm = (sum(column) for column in zip(*sums, strict=True))
        exact = w.astype(np.float64, copy=False)
        return {
            "gradient": value.gradient,
            "pseudo": pseudo,
            "primal": value.primal,
            "dual": value.dual if math.isnan(value.dual) else max(state.dual, value.dual),
            "residual": 0.5 * square,
            "loss": value.primal - r * norm - 0.5 * (1.0 - r) * float(exact @ exact),
        }

    def iterate(self, task: Task, state: OWLQNState) -> None:
        if not (state.sharp or state.fall > STEEP):
            known = told_anew(state.memory, state.scale, state.scale**SHARPER, state.pseudo)
            state.__dict__.update(known, sharp=True)
        super().iterate(task, state)

    def descend(self, task: Task, state: OWLQNState) -> bool:
        w, to, memory, old, pseudo = state.w, state.trial, state.memory, state.gradient, state.pseudo
        if not state.residual:
            return False
        direction = memory.direction(state.scaled, state.primal)
        noise, least = (10.0 * float(np.finfo(kind).eps) * abs(state.primal) for kind in (w.dtype, np.float64))
        ranges = spans(len(w))

        def for_ranges(loop, *arguments):
            return in_threads(lambda span: loop(*arguments, *span), ranges, task.n_jobs)

        step = 1.0
        for _ in range(self.max_evaluations):
            factors = state.scale, step * direction.c_gradient, memory.pairs, direction.rows, step * direction.c
            for_ranges(move, to, w, pseudo, *factors)
            slope = sum(for_ranges(align, to, w, pseudo, task.l1_ratio, state.fall > STEEP))
            if not -slope > 0.01 * least:
                return False
            value = objective(task.problem, task.loss, task.C, to, task.n_jobs, state.pool, task.l1_ratio)
            state.oracle_calls += task.n
            seen = self.seen(task, state, to, value)
            # differences below the noise mean nothing: then pg, which is far more exact, tells up from down
            close = value.primal <= state.primal + noise and seen["residual"] < state.residual
            if value.primal <= state.primal + DECREASE * slope or close:
                break
            state.pool += [value.gradient, seen["pseudo"]]
            # where a parabola with this slope and these two values is lowest
            rise = value.primal - state.primal - slope
            step *= min(max(-0.5 * slope / rise, 0.1), 0.5) if rise < math.inf else 0.1
        else:
            return False
        slot = memory.free()
        rows = np.array([*memory.rows(), 2 * slot, 2 * slot + 1], np.int64)
        found = for_ranges(learn, to, w, value.gradient, old, seen["pseudo"], state.scale, memory.pairs, slot, rows)
        products, square = sum(part[2] for part in found), sum(part[1] for part in found)
        # in one stroke: an interrupt must not find a new point beside an old gradient
        known = {**seen, "scaled": square, "fall": (state.primal - value.primal) / max(abs(value.primal), 1e-300)}
        state.__dict__.update(known, w=to, trial=w, pool=[*state.pool, old, pseudo], memory=memory.after(slot, rows, products))
        return True
