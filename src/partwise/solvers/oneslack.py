"""1-slack cutting planes: one slack variable for all examples together, and a cache of outputs (Joachims, Finley, Yu 2009).

Problem: ``min_w 1/2 ||w||^2 + xi  subject to  sum_i C_i [o_i(y_i) - w . v_i(y_i)] <= xi  for all choices y_1 .. y_N``, for
max-margin losses, whose pieces o_i(y) - w . v_i(y) are those of `linear_pieces`. The optimal xi is R(w) = sum_i C_i L_i(w), so
the problem is that of `bundle`, and a joint constraint is a cut of R, made of one piece of every example:

    c(w) = sum_i C_i o_i(y_i) - w . sum_i C_i v_i(y_i)

    u = 0, the caches are empty
    repeat                                                                                                        an epoch
        y_i = argmax_y o_i(y) - u . v_i(y) for all i                          (the oracle; y_i enters the cache of example i)
        add their cut;  w_b = u if J(u) is the lowest so far
        w = argmin_w J_CP(w) = 1/2 ||w||^2 + max_j c_j(w)                     (a small QP, see `qp`)
        w_c = w_b;  a few times, while J_cache(w_c) - J_CP(w) > gap / 2:      (no oracle)
            the same at w_c + step (w - w_c), each y_i being the best in the *cache* of example i;
            w_c becomes the point with the lowest J_cache, the objective over the outputs in the caches
        u = w_b + step (w - w_b)
    until gap = J(w_b) - min J_CP <= tolerance
    polish: the cached iterations go on, to a tenth of the tolerance; then the oracle is asked once more, at w_c

With step = 1 and no cache this is Algorithm 3 of the paper, which is BMRM. Its points jump: cuts are taken far from where they
matter. Here they are taken between the best point and the minimiser of the model: either J falls there, or the cut, a tangent
that rises towards w, lifts the model at w. On OCR words step = 0.2 halves the number of passes, and more.

Any choice of outputs makes a cut that is nowhere above R, so the bound min J_CP stays valid whatever the caches hold, and J(w_b)
comes from the oracle alone: the certificate is the same with and without them. Caches save calls of the oracle, not passes over
the data: scores are computed either way, once per example and cut. Where the oracle costs much more than scores (cubic parsers,
folding, slack rescaling on chains), that is nearly everything, and `cached_passes` = 10 is right; where it is a Viterbi pass with
few labels, a cached pass takes two thirds of the time of one with the oracle.

Cost of an epoch: a pass with the oracle, up to `cached_passes` without, and for each cut one reading of the others and the QP.
Memory: the cuts (see `bundle`), and `cache` outputs of every example, 4 bytes per integer.

References
----------
T. Joachims, T. Finley, C.-N. Yu (2009). Cutting-plane training of structural SVMs. Machine Learning 77.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop, helper
from partwise.engine.numerics import copy
from partwise.engine.threads import parts_elsewhere
from partwise.losses.in_loops import Workspace, workspace
from partwise.losses.linear_pieces import PIECEWISE, add_piece, best_piece, piece_value, score_pieces
from partwise.losses.records import Loss
from partwise.objective import SLICE, summed
from partwise.solvers.base import Progress, Task
from partwise.solvers.bundle import Bundle, BundleState, Point, check_share, look_at
from partwise.solvers.sdm import MAX_MARGIN

PART = 0.5  # of the gap: when what is left of the problem over the caches is that small, the oracle is asked again
TIGHTER = 0.1  # of the tolerance: how far the polish goes
POLISH = 20  # cuts of the polish at most


class Cache(NamedTuple):
    """The last outputs that the oracle found for every example."""

    outputs: np.ndarray  #: (room, integers of all outputs) int32: the k-th output of every example, end to end
    used: np.ndarray  #: (room, N) int64: the iteration in which it was last the best one; 0: empty
    starts: np.ndarray  #: (N + 1,) where the outputs of an example begin

    def check(self, like: Cache, task: Task) -> None:
        """Raise a ValueError, unless a cache that was read from a file has the outputs of fresh ones."""
        if (self.starts != like.starts).any():
            raise ValueError("the outputs in the cache do not begin where they should")


@helper
def remember(cache, i, y, now):
    """Put y into the cache of example i, in the place of the output that has not been the best for longest."""
    first, place = cache.starts[i], 0
    for k in range(cache.used.shape[0]):
        same = cache.used[k, i] > 0
        for j in range(len(y)):
            if not same:
                break
            same = cache.outputs[k, first + j] == y[j]
        if same:
            cache.used[k, i] = now
            return
        if cache.used[k, i] < cache.used[place, i]:
            place = k
    cache.used[place, i] = now
    copy(y, cache.outputs[place, first : first + len(y)])


@compiled_loop
def oracle_pass(problem, loss, first, last, C, w, work, cache, now, losses, gradient):
    """losses[i] = L_i(w) and gradient += C_i dL_i(w) for first <= i < last; what is found enters the cache."""
    for i in range(first, last):
        if C[i] == 0.0:
            continue
        length, theta = kernels.length(problem, i), work.theta[: kernels.n_parts(problem, i)]
        y = work.y[:length]
        reference, shift = score_pieces(loss, problem, i, w, work)
        losses[i] = best_piece(loss, problem, i, theta, reference, shift, y)
        add_piece(loss, problem, i, work.t[:length], y, -C[i], gradient)
        if cache.used.size:
            remember(cache, i, y, now)


@compiled_loop
def cached_pass(problem, loss, first, last, C, w, work, cache, now, losses, gradient):
    """The same with the best of the target and the outputs in the cache, which is a lower bound of L_i(w)."""
    for i in range(first, last):
        if C[i] == 0.0:
            continue
        start, stop, theta = cache.starts[i], cache.starts[i + 1], work.theta[: kernels.n_parts(problem, i)]
        reference, shift = score_pieces(loss, problem, i, w, work)
        t = work.t[: stop - start]
        top, which = float(piece_value(loss, problem, i, theta, reference, shift, t)), -1
        for k in range(cache.used.shape[0]):
            if cache.used[k, i] > 0:
                value = float(piece_value(loss, problem, i, theta, reference, shift, cache.outputs[k, start:stop]))
                if value > top:
                    top, which = value, k
        losses[i] = top
        if which >= 0:
            cache.used[which, i] = now
            add_piece(loss, problem, i, t, cache.outputs[which, start:stop], -C[i], gradient)


@dataclass
class OneSlackState(BundleState):
    """Besides: the caches, and how many cuts were made, with the oracle and without."""

    centre: np.ndarray | None = None  #: where the oracle is asked next
    cache: Cache | None = None
    passes: int = 0
    cached: int = 0
    works: list[Workspace] = field(default_factory=list)  #: scratch memory for each thread


@dataclass(frozen=True)
class OneSlack(Bundle):
    """The 1-slack cutting plane method with an oracle cache (see the module); one epoch is one pass with the oracle.

    Parameters
    ----------
    max_cuts, memory
        See `bundle.Bundle`.
    step : float in (0, 1]
        How far from the best point towards the minimiser of the model the oracle is asked; 1 is the paper to the letter.
    cache : int
        Outputs to remember of each example; 0: the method without a cache.
    cached_passes : int
        Cuts from the caches after each pass with the oracle, at most.
    polish : bool
        At the end, refine the solution on the caches to a tenth of the tolerance.

    Examples
    --------
    >>> from partwise import multiclass_problem, solve
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [0, 1, 0])
    >>> result = solve(problem, "hinge", OneSlack(), C=1.0, max_epochs=20)
    >>> result.solver.name, result.w.shape
    ('oneslack', (4,))
    """

    name = "oneslack"
    accepted = MAX_MARGIN

    step: float = 0.2
    cache: int = 10
    cached_passes: int = 1
    polish: bool = True

    def __post_init__(self):
        super().__post_init__()
        check_share(self, "step", self.step)
        for name in ("cache", "cached_passes"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0:
                raise ValueError(
                    f"The {name!r} parameter of OneSlack must be an int in the range [0, inf). Got {value!r} instead."
                )

    def accepts(self, loss: Loss) -> bool:
        return isinstance(loss.kernel, PIECEWISE)

    def init(self, task: Task, start: np.ndarray | None = None) -> OneSlackState:
        starts, _ = kernels.sizes(task.problem)
        cache = Cache(np.zeros((self.cache, starts[-1]), np.int32), np.zeros((self.cache, task.n), np.int64), starts)
        state = OneSlackState(cache=cache)
        self.fill(state, task, start)
        state.centre = state.best.astype(np.float64)
        return state

    def retarget(self, before: Task, task: Task, state: OneSlackState, changed: np.ndarray) -> OneSlackState:
        """Cuts belong to their targets, but outputs once found may be violated again."""
        fresh = super().retarget(before, task, state, changed)
        fresh.cache, fresh.passes, fresh.cached = state.cache, state.passes, state.cached
        return fresh

    def epoch(self, task: Task, state: OneSlackState) -> Progress:
        self.add_with_oracle(task, state, state.centre)
        if self.cache and parts_elsewhere(task.n_jobs, task.problem) is None:  # outputs that were found are not kept elsewhere
            self.refine(task, state, self.cached_passes, PART * state.gap)
            enough = task.tol * abs(state.objective)
            if self.polish and task.tol > 0 and state.noise < state.gap <= enough:
                self.add_with_oracle(task, state, self.refine(task, state, POLISH, TIGHTER * enough))
        best = state.best.astype(np.float64)
        state.centre = best + self.step * (state.candidate - best)
        return self.progress(state)

    def refine(self, task: Task, state: OneSlackState, passes: int, enough: float) -> np.ndarray:
        """Cuts from the caches, until the gap that is left of the problem over these outputs is `enough`; its best point."""
        best, objective = state.best.astype(np.float64), state.objective
        for _ in range(passes):
            if objective - state.model <= max(enough, state.noise):
                break
            point = self.look_by(cached_pass, task, state, best + self.step * (state.candidate - best))
            state.cached += 1
            if point.objective < objective:
                best, objective = point.w, point.objective
            self.add_cut(task, state, point)
            self.minimise_model(task, state)
        return best

    def add_with_oracle(self, task: Task, state: OneSlackState, w: np.ndarray) -> None:
        """The cut of the most violated outputs of all, J(w), and the next candidate."""
        point = self.look_by(oracle_pass, task, state, w)
        state.oracle_calls += int(np.count_nonzero(task.C))
        if point.objective < state.objective:
            self.add_best(task, state, point)
        else:
            self.add_cut(task, state, point)
        self.minimise_model(task, state)

    def look_by(self, one_pass, task: Task, state: OneSlackState, w: np.ndarray) -> Point:
        """The cut that `one_pass` over the examples makes at `w`, in threads."""
        if parts_elsewhere(task.n_jobs, task.problem) is not None:
            state.passes += 1
            return look_at(task, state.pool, w)
        problem, loss, w, losses = task.problem, task.loss.kernel, w.astype(task.dtype, copy=False), np.zeros(task.n)
        state.passes += 1

        def add(first: int, last: int, gradient: np.ndarray) -> None:
            work = state.works.pop() if state.works else workspace(problem, w.dtype)
            for start in range(first, last, SLICE):
                stop = min(start + SLICE, last)
                one_pass(problem, loss, start, stop, task.C, w, work, state.cache, state.passes, losses, gradient)
            state.works.append(work)

        a = summed(problem, add, task.n_jobs, state.pool)
        exact = w.astype(np.float64, copy=False)
        return Point(exact, float(task.C @ losses), a, float(exact @ exact), float(a @ exact))
