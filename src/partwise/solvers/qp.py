"""The master problem of bundle methods: a small quadratic program over the simplex, solved to the last digits.

Problem: a model of an objective made of n cuts, ``1/2 ||w||^2 + max_j (a_j . w + b_j)``, is minimised through its dual,

    min_alpha f(alpha) = 1/2 alpha . G alpha - b . alpha    subject to  alpha >= 0,  sum_j alpha_j = 1,        G_jk = a_j . a_k,

and w = -sum_j alpha_j a_j. With the gradient g = G alpha - b, every feasible alpha certifies itself: the model's minimum lies in

    [ -f(alpha),  -f(alpha) + gap ],    gap = alpha . g - min_j g_j >= 0        (the value of the model at w is the right end)

Active set, primal; S is the support of alpha, r its heaviest member:

    repeat
        z = -(H + ridge)^-1 h     H_jk = (a_j - a_r) . (a_k - a_r),  h_j = g_j - g_r,  j, k in S without r
        move alpha along (z, -sum z) to the minimum on that line, or to where the first alpha_j becomes zero, which leaves S
        if S has no slope left: the j with the smallest g_j enters S, unless the gap is small enough

Cuts that are nearly the same make H singular. The ridge (`RIDGE` of the diagonal) keeps the system solvable: where H has no
curvature the step is then very long, ends at the boundary, and a cut leaves. Where it has some, the ridge makes the step a
little short, which the next one repairs: it changes the way, never the answer.

Cost: O(|S|^3 + n |S|) a step; from the last solution with one cut more, a handful of steps. Memory: G.

References
----------
P. Wolfe (1976). Finding the nearest point in a polytope. Mathematical Programming 11.
J. Nocedal, S. J. Wright (2006). Numerical optimization, 2nd ed., algorithm 16.3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

RIDGE = 1e-13  # part of the diagonal of H that is added to it
MOST_RIDGES = 9  # each a hundred times the one before: from rounding errors to the size of H itself
EPS = float(np.finfo(np.float64).eps)


class Master(NamedTuple):
    """A solution of the master problem, with its certificate."""

    alpha: np.ndarray  #: (n,) multipliers in the simplex; exact zeros outside the support
    value: float  #: -f(alpha): a lower bound of the model's minimum
    gap: float  #: the minimum is no higher than value + gap
    steps: int  #: of the active set method

    @property
    def support(self) -> np.ndarray:
        """Cuts that carry the solution."""
        return np.flatnonzero(self.alpha)


def solve_master(gram: np.ndarray, offset: np.ndarray, start: np.ndarray | None = None, tol: float = 1e-12) -> Master:
    """Minimise ``1/2 alpha . G alpha - b . alpha`` over the simplex (see the module).

    Parameters
    ----------
    gram : array (n, n)
        G_jk = a_j . a_k, symmetric, positive semidefinite up to rounding.
    offset : array (n,)
        b_j.
    start : array (n,), optional
        Multipliers to begin with; made feasible.
    tol : float
        Stop at gap <= tol * |value|, or where rounding errors are larger than what is left to gain.
    """
    n = len(offset)
    if n == 0 or np.shape(gram) != (n, n):
        raise ValueError(f"gram must have the shape (n, n) and offset (n,), n > 0. Got {np.shape(gram)} and {np.shape(offset)}.")
    alpha = feasible(gram, offset, start)
    support = np.flatnonzero(alpha)
    steps, most = 0, 20 * n + 200
    while True:
        product = gram[:, support] @ alpha[support]
        slope = product - offset
        # what the last digits of a product with G may hide: a gap below that is none
        noise = 8.0 * EPS * float(np.max(np.abs(gram[:, support]) @ alpha[support] + np.abs(offset)))
        value = float(offset @ alpha - 0.5 * (alpha[support] @ product[support]))
        enough = max(tol * abs(value), noise)
        mean = float(alpha[support] @ slope[support])
        lowest = int(np.argmin(slope))
        gap = mean - float(slope[lowest])
        inner = float(slope[support].max()) - float(slope[support].min())
        if gap <= enough and inner <= 2.0 * enough or steps >= most:
            break
        if inner <= enough or len(support) == 1:  # nothing to gain within S
            if alpha[lowest] > 0.0:
                break
            support = np.append(support, lowest)
        direction = within(gram, alpha, slope, support)
        rise = float(slope[support] @ direction)
        if not rise < 0.0:
            break
        curvature = float(direction @ (gram[np.ix_(support, support)] @ direction))
        shrinking = direction < 0.0
        ratios = np.where(shrinking, -alpha[support] / np.where(shrinking, direction, -1.0), np.inf)
        first = int(np.argmin(ratios))
        step = -rise / curvature if curvature > 0.0 else np.inf
        moved = alpha[support] + min(step, ratios[first]) * direction
        if ratios[first] <= step:
            moved[first] = 0.0
        alpha[support] = np.maximum(moved, 0.0)
        alpha /= alpha.sum()
        support = np.flatnonzero(alpha)
        steps += 1
    return Master(alpha, value, max(gap, 0.0), steps)


def feasible(gram: np.ndarray, offset: np.ndarray, start: np.ndarray | None) -> np.ndarray:
    """`start` in the simplex, or the best of its corners."""
    alpha = np.zeros(len(offset)) if start is None else np.maximum(np.asarray(start, np.float64), 0.0)
    if not alpha.sum() > 0.0:
        alpha[int(np.argmin(0.5 * np.diag(gram) - offset))] = 1.0
    return alpha / alpha.sum()


def within(gram: np.ndarray, alpha: np.ndarray, slope: np.ndarray, support: np.ndarray) -> np.ndarray:
    """The step to the minimum over the face `support` of the simplex, where the multipliers may become negative."""
    heaviest = int(np.argmax(alpha[support]))
    others = np.delete(support, heaviest)
    r = support[heaviest]
    cross = gram[others, r]
    hessian = gram[np.ix_(others, others)] - cross[:, None] - cross[None, :] + gram[r, r]
    # differences of large numbers: what rounding may have left of them can make H indefinite. Then a larger ridge, up to where
    # the step is one along the slope, finds the way down
    ridge = RIDGE * np.maximum(np.diag(hessian), 0.0) + EPS * (np.diag(gram)[others] + gram[r, r]) + np.finfo(float).tiny
    h = slope[r] - slope[others]
    direction = np.zeros(len(support))
    for _ in range(MOST_RIDGES):
        z = np.linalg.solve(hessian + np.diag(ridge), h)
        if float(h @ z) > 0.0:
            direction[np.arange(len(support)) != heaviest] = z
            direction[heaviest] = -z.sum()
            break
        ridge *= 100.0
    return direction
