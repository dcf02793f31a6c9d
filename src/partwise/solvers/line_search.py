"""Line searches of bundle methods: the minimum of J(w) = 1/2 ||w||^2 + R(w), R convex, on a ray w_b + eta d, eta >= 0.

**Any convex risk** (`minimise`). A pass over the examples at a trial eta tells the risk there and its slope: a tangent, which is
nowhere above the risk. With one tangent on the left of the minimum and one on the right, the next trial is where the higher of
the two, plus the parabola 1/2 ||w_b + eta d||^2, is lowest:

    low = the tangent at 0;  high = none
    repeat
        eta = argmin over eta >= 0 of  1/2 ||w_b + eta d||^2 + max(low(eta), high(eta))
        stop if the best J so far is within the accuracy of that minimum
        the tangent at eta replaces low if J still falls there, else high

That is the cutting plane method in one dimension. For a piecewise linear risk every trial ends the search or finds another piece:
it ends, exactly.

**L(inf, gamma)** (`search_maxima`), as OCAS has it, for every structure. Each example by itself is a maximum of lines,

    C_i max_y (A_y + eta B_y),    A_y = s_b(y) + gamma l(y) - s_b(t),    B_y = s_d(y) - s_d(t),

where s_b and s_d score by w_b and by d. All examples are scored twice, once by each; then the part scores at any eta are a
combination, and a trial is a call of `best`.

For the ends of the bracket [low, high] the line of the best output is kept, example by example:

    settled     the same line is best at both ends: it is best everywhere between, and the example is never asked again
    others      at least the higher of their two lines

The sum of these, a model with N pieces rather than two, is minimised over the bracket by sorting where the lines of an example
cross. If the examples that are not settled have no other line there, the model was exact and so is the minimum. Otherwise that
point becomes an end of the bracket. In practice that is two to three calls of `best` per example and search, all trials together.

Cost: two scorings and a few calls of `best` per example, and O(N log N) a trial. Memory: two numbers per part of all examples.

References
----------
V. Franc, S. Sonnenburg (2008). Optimized cutting plane algorithm for support vector machines. ICML.
C. H. Teo, S. V. N. Vishwanathan, A. Smola, Q. Le (2010). Bundle methods for regularized risk minimization. JMLR 11, section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.engine.threads import in_threads, parts_elsewhere
from partwise.kernels import MOST_CHUNKS, chunks

MOST_TRIALS = 100
WIDER = 4.0  # times the trial before, as long as J falls there
SAME = 1e-13  # part of the terms of a line within which two lines have the same height


class Tangent(NamedTuple):
    """The risk on the ray of a search: its value and its slope at one step."""

    step: float
    value: float
    slope: float


def between(low: Tangent, here: Tangent, along: float, square: float) -> float:
    """The step that minimises the higher of two tangents plus 1/2 ||w_b + s d||^2, with w_b . d and ||d||^2 given."""
    valleys = sorted((-(along + low.slope) / square, -(along + here.slope) / square))
    if low.slope == here.slope:
        return valleys[0]
    cross = (here.value - here.step * here.slope - low.value + low.step * low.slope) / (low.slope - here.slope)
    return min(max(cross, valleys[0]), valleys[1])


def minimise(
    evaluate: Callable[[float], Tangent], start: Tangent, along: float, square: float, accuracy: float, first: float = 1.0
) -> Tangent:
    """The tangent at the step >= 0 that minimises risk(step) + along * step + 1/2 square * step^2, a convex function.

    Parameters
    ----------
    evaluate : function of the step
        The tangent of the risk there.
    start : Tangent
        At step 0.
    along, square : float
        w_b . d and ||d||^2 > 0.
    accuracy : float
        How much higher than the minimum the answer may be. Rounding ends a search that asks for more than there is.
    first : float > 0
        The trial to begin with.
    """

    def height(tangent: Tangent, step: float) -> float:
        return tangent.value + (step - tangent.step) * tangent.slope + along * step + 0.5 * square * step * step

    best = low = start
    high: Tangent | None = None
    if along + start.slope >= 0.0:
        return start
    step = min(first, -(along + low.slope) / square)  # where one tangent is lowest, J does not fall any more
    for _ in range(MOST_TRIALS):
        here = evaluate(step)
        if height(here, step) < height(best, best.step):
            best = here
        if along + square * step + here.slope < 0.0:
            low = here
        else:
            high = here
        if high is None:
            last = -(along + low.slope) / square
            step, floor = min(WIDER * low.step, last), height(low, last)
        else:
            step = between(low, high, along, square)
            floor = max(height(low, step), height(high, step))
        if height(best, best.step) - floor <= accuracy or not low.step < step < (np.inf if high is None else high.step):
            break
    return best


# ---------------------------------------------------------------------------------------------------------------------
# Maxima of lines, example by example
# ---------------------------------------------------------------------------------------------------------------------


@compiled_loop
def count_parts(problem, counts):
    """counts[i] = number of parts of example i."""
    for i in range(len(counts)):
        counts[i] = kernels.n_parts(problem, i)


@compiled_loop
def score_pass(problem, gamma, first, last, w, direction, starts, here, ahead, references):
    """Part scores of the examples in [first, last) by w, with gamma times the cost, and by `direction`; scores of the targets."""
    for i in range(first, last):
        of_w, of_d = here[starts[i] : starts[i + 1]], ahead[starts[i] : starts[i + 1]]
        kernels.score(problem, i, w, of_w)
        kernels.score(problem, i, direction, of_d)
        t = kernels.target(problem, i)
        references[i, 0] = kernels.value_of(problem, i, of_w, t)
        references[i, 1] = kernels.value_of(problem, i, of_d, t)
        if gamma != 0.0:
            kernels.add_cost(problem, i, gamma, of_w)


@compiled_loop
def line_pass(problem, which, step, starts, here, ahead, references, theta, y, lines):
    """lines[k] = (A, B) of the best output of example which[k] at `step`."""
    for k in range(len(which)):
        i = which[k]
        of_w, of_d = here[starts[i] : starts[i + 1]], ahead[starts[i] : starts[i + 1]]
        scores, out = theta[: len(of_w)], y[: kernels.length(problem, i)]
        for p in range(len(of_w)):  # what is forbidden is so in both
            scores[p] = of_w[p] + step * of_d[p] if of_w[p] > -np.inf else -np.inf
        kernels.best(problem, i, scores, out)
        lines[k, 0] = kernels.value_of(problem, i, of_w, out) - references[i, 0]
        lines[k, 1] = kernels.value_of(problem, i, of_d, out) - references[i, 1]


class Minimum(NamedTuple):
    """The end of a search: where J is lowest, the risk there, and what it cost."""

    step: float
    risk: float
    calls: int  #: of `best`
    trials: int
    exact: bool  #: whether the model was right there


class Ray:
    """All examples on the ray w + eta d: asks for their best lines at any eta, in threads."""

    def __init__(self, problem: Any, gamma: float, w: np.ndarray, direction: np.ndarray, n_jobs: Any = None):
        self.calls, self.parts = 0, parts_elsewhere(n_jobs, problem)
        if self.parts is not None:  # a ray in each place, of the examples there
            self.edges = n_jobs.edges
            self.parts = self.parts.then(ray_of_part, gamma, w.copy(), direction.copy())
            return
        n = kernels.n_examples(problem)
        counts = np.zeros(n + 1, np.int64)
        count_parts(problem, counts[1:])
        self.longest, self.widest, _ = kernels.extent(problem)
        self.problem, self.n_jobs, self.starts = problem, n_jobs, np.cumsum(counts)
        self.here, self.ahead = np.zeros(self.starts[-1]), np.zeros(self.starts[-1])
        self.references = np.zeros((n, 2))

        def run(chunk):
            score_pass(problem, gamma, *chunk, w, direction, self.starts, self.here, self.ahead, self.references)

        in_threads(run, chunks(problem), n_jobs)

    def lines(self, step: float, which: np.ndarray) -> np.ndarray:
        """(A, B) of the best output at `step` of the examples `which`."""
        if self.parts is not None:
            cuts = np.searchsorted(which, self.edges)
            pieces = [(which[a:b] - first,) for a, b, first in zip(cuts[:-1], cuts[1:], self.edges, strict=False)]
            self.calls += len(which)
            return np.concatenate(self.parts.each(lines_of_part, step, pieces=pieces))
        lines = np.zeros((len(which), 2))
        edges = np.linspace(0, len(which), MOST_CHUNKS + 1).astype(int)

        def run(k):
            span = slice(edges[k], edges[k + 1])
            theta, y = np.zeros(self.widest), np.zeros(self.longest, np.int32)
            found = lines[span]
            line_pass(self.problem, which[span], step, self.starts, self.here, self.ahead, self.references, theta, y, found)

        in_threads(run, range(MOST_CHUNKS), self.n_jobs)
        self.calls += len(which)
        return lines


def ray_of_part(part: Any, gamma: float, w: np.ndarray, direction: np.ndarray) -> Ray:
    """Some of the examples on the ray, where they are."""
    return Ray(part, gamma, w, direction)


def lines_of_part(ray: Ray, which: np.ndarray, step: float) -> np.ndarray:
    """Their best lines."""
    return ray.lines(step, which)


def lowest(low: np.ndarray, high: np.ndarray, C: np.ndarray, slope: float, square: float, begin: float, end: float) -> float:
    """argmin over [begin, end] of slope * eta + 1/2 square * eta^2 + sum_i C_i max(low_i(eta), high_i(eta)), lines (A, B) each.

    Left of where the lines of an example cross, `low` is the higher one. O(N log N).
    """
    rise = C * (high[:, 1] - low[:, 1])
    cross = np.clip((low[:, 0] - high[:, 0]) / (high[:, 1] - low[:, 1]), begin, end)
    order = np.argsort(cross, kind="stable")
    cross = np.append(cross[order], end)
    slopes = slope + float(C @ low[:, 1]) + np.append(0.0, np.cumsum(rise[order]))  # left of each crossing, without the parabola
    k = int(np.argmax(np.append(slopes + square * cross >= 0.0, True)))  # the first one where the sum does not fall any more
    if k == len(cross):
        return end
    left = cross[k - 1] if k else begin
    return float(min(max(-slopes[k] / square, left), cross[k]))


def search_maxima(ray: Ray, C: np.ndarray, along: float, square: float, first: float = 1.0) -> Minimum:
    """The minimum over eta >= 0 of ``along * eta + 1/2 square * eta^2 + sum_i C_i max_y (A_iy + eta B_iy)``, exactly.

    Parameters
    ----------
    ray : Ray
        The examples, scored.
    C : array (N,)
    along, square : float
        w_b . d and ||d||^2 > 0.
    first : float > 0
        The trial to begin with: the closer it is behind the minimum, the more examples are settled at once.
    """
    everyone = np.flatnonzero(C > 0)
    begin, end = 0.0, np.inf
    low = ray.lines(0.0, everyone)
    C = C[everyone]
    slope = along + float(C @ low[:, 1])
    if slope >= 0.0:
        return Minimum(0.0, float(C @ low[:, 0]), ray.calls, 1, True)
    last, trials = -slope / square, 1  # at the minimum of the lines seen so far, J does not fall any more
    step, high = min(first, last), low
    while not np.isfinite(end):
        found, trials = ray.lines(step, everyone), trials + 1
        slope = along + float(C @ found[:, 1])
        if slope + square * step >= 0.0 or step == last:
            high, end = found, step
        else:
            last = min(last, -slope / square)
            low, begin, step = found, step, min(WIDER * step, last)
    settled, slope = 0.0, along  # of the examples that are settled: the sum of their A, and of their B with `along`
    which = everyone
    exact = False
    while True:
        scale = np.abs(low[:, 0]) + np.abs(high[:, 0]) + end * (np.abs(low[:, 1]) + np.abs(high[:, 1])) + 1e-300
        # an end where the other line is as high settles an example too
        at_begin = low[:, 0] + begin * low[:, 1] - high[:, 0] - begin * high[:, 1] <= SAME * scale
        at_end = high[:, 0] + end * high[:, 1] - low[:, 0] - end * low[:, 1] <= SAME * scale
        done = at_begin | at_end | (low[:, 1] >= high[:, 1])
        line = np.where(at_begin[:, None], high, low)[done]
        settled += float(C[done] @ line[:, 0])
        slope += float(C[done] @ line[:, 1])
        which, C, low, high = which[~done], C[~done], low[~done], high[~done]
        step = lowest(low, high, C, slope, square, begin, end)
        if exact or not begin < step < end or not len(which) or trials >= MOST_TRIALS:
            break
        found, trials = ray.lines(step, which), trials + 1
        known = np.maximum(low[:, 0] + step * low[:, 1], high[:, 0] + step * high[:, 1])
        size = np.abs(found[:, 0]) + step * np.abs(found[:, 1]) + np.abs(low[:, 0]) + step * np.abs(low[:, 1])
        new = found[:, 0] + step * found[:, 1] > known + SAME * (size + 1e-300)
        if not new.any():
            exact = True
            break
        higher = (low[:, 0] + step * low[:, 1] >= high[:, 0] + step * high[:, 1])[:, None]
        found = np.where(new[:, None], found, np.where(higher, low, high))
        if slope + square * step + float(C @ found[:, 1]) < 0.0:
            low, begin = found, step
        else:
            high, end = found, step
    risk = settled + (slope - along) * step + float(C @ np.maximum(low[:, 0] + step * low[:, 1], high[:, 0] + step * high[:, 1]))
    return Minimum(step, risk, ray.calls, trials, exact or not len(which) or not begin < step < end)
