"""The master problem of bundle methods: a small quadratic program over the simplex, solved to the last digits.

Problem: a model of an objective made of n cuts, ``1/2 ||w||^2 + max_j (a_j . w + b_j)``, is minimised through its dual,

    min_alpha f(alpha) = 1/2 alpha . G alpha - b . alpha    subject to  alpha >= 0,  sum_j alpha_j = 1,        G_jk = a_j . a_k,

and w = -sum_j alpha_j a_j. With the gradient g = G alpha - b, every feasible alpha certifies itself: the model's minimum lies in

    [ -f(alpha),  -f(alpha) + gap ],    gap = alpha . g - min_j g_j >= 0        (the value of the model at w is the right end)

Active set, primal; S is the support of alpha, e all ones, sigma the largest G_jj:

    repeat
        solve  (M + ridge) z = mu e - g  over S,  M = G + sigma e e',  mu such that sum z = 0
        move alpha along z to the minimum on that line, or to where the first alpha_j becomes zero, which leaves S
        if S has no slope left: the j with the smallest g_j enters S, unless the gap is small enough

On the plane sum z = 0 the term sigma e e' does nothing; with it M is regular whenever the minimum over that plane is unique
(Wolfe's device). M is kept as its Cholesky factor, to which a row is added when a cut enters, and from which one is taken by
plane rotations when a cut leaves.

Cuts that are nearly the same make M singular. Pivots are then kept at the size of their rounding errors (`PIVOT`), which is a
ridge: where M has no curvature the step is very long, ends at the boundary, and a cut leaves. Where it has some, the step is a
little short, which the next one repairs: it changes the way, never the answer. Where rounding errors have left no way down at
all, two members of S exchange weight.

Cost: O(|S|^3) for the first factor, O(n^2 + |S|^2) a step; from the last solution with one cut more, a handful of steps. Memory:
G and the factor. ``python -m benchmarks qp`` compares it with quadprog, daqp, clarabel and osqp.

References
----------
P. Wolfe (1976). Finding the nearest point in a polytope. Mathematical Programming 11.
J. Nocedal, S. J. Wright (2006). Numerical optimization, 2nd ed., algorithm 16.3.
P. E. Gill, G. H. Golub, W. Murray, M. A. Saunders (1974). Methods for modifying matrix factorizations. Math. of Computation 28.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise.engine.compilation import compiled_loop, helper

EPS = float(np.finfo(np.float64).eps)
PIVOT = 16.0 * EPS  # part of the diagonal of M below which a pivot is rounding error


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
    gram, offset = np.ascontiguousarray(gram, np.float64), np.ascontiguousarray(offset, np.float64)
    alpha = feasible(gram, offset, start)
    sigma = max(float(np.diag(gram).max()), float(np.finfo(np.float64).tiny))
    support, factor = np.empty(n, np.int64), np.empty((n, n))
    size = factorise(gram, sigma, np.flatnonzero(alpha), support, factor)
    value, gap, steps = active_set(gram, offset, alpha, sigma, support, factor, size, float(tol), 20 * n + 200)
    return Master(alpha, value, gap, steps)


def feasible(gram: np.ndarray, offset: np.ndarray, start: np.ndarray | None) -> np.ndarray:
    """`start` in the simplex, or the best of its corners."""
    alpha = np.zeros(len(offset)) if start is None else np.maximum(np.asarray(start, np.float64), 0.0)
    if not alpha.sum() > 0.0:
        alpha[int(np.argmin(0.5 * np.diag(gram) - offset))] = 1.0
    return alpha / alpha.sum()


def factorise(gram: np.ndarray, sigma: float, members: np.ndarray, support: np.ndarray, factor: np.ndarray) -> int:
    """The factor of M over `members`, as far as it is regular: by LAPACK; returns how many have been entered."""
    support[: len(members)] = members
    try:
        factor[: len(members), : len(members)] = np.linalg.cholesky(gram[np.ix_(members, members)] + sigma)
    except np.linalg.LinAlgError:  # singular: cut by cut, with a ridge
        return 0
    return len(members)


@compiled_loop
def active_set(gram, offset, alpha, sigma, support, factor, size, tol, most):
    """Move `alpha` to the minimum, in place; returns the value, the gap and the number of steps.

    `factor` is that of M over the first `size` members of `support`: all with alpha > 0, or none.
    """
    n, steps = len(offset), 0
    z, u, g = np.empty(n), np.empty(n), np.empty(n)  # the step, M^-1 e, the slope
    if size == 0:
        for j in range(n):
            if alpha[j] > 0.0:
                size = enter(gram, sigma, support, factor, size, j)
    while True:
        # what the last digits of a product with G may hide: a gap below that is none
        value, mean, noise = 0.0, 0.0, 0.0
        for j in range(n):
            row, total, terms = gram[j], 0.0, 0.0
            for k in range(n):
                term = row[k] * alpha[k]
                total += term
                terms += abs(term)
            g[j] = total - offset[j]
            noise = max(noise, terms + abs(offset[j]))
            value += alpha[j] * (offset[j] - 0.5 * total)
            mean += alpha[j] * g[j]
        lowest = 0
        for j in range(n):
            if g[j] < g[lowest]:
                lowest = j
        highest, least = -np.inf, np.inf
        for k in range(size):
            highest, least = max(highest, g[support[k]]), min(least, g[support[k]])
        enough = max(tol * abs(value), 8.0 * EPS * noise)
        gap, inner = mean - g[lowest], highest - least
        if gap <= enough and inner <= 2.0 * enough or steps >= most:
            break
        if inner <= enough or size == 1:  # nothing to gain within S
            if alpha[lowest] > 0.0:
                break
            size = enter(gram, sigma, support, factor, size, lowest)
        # z = M^-1 (mu e - g)
        over, under = 0.0, 0.0
        for k in range(size):
            z[k], u[k] = -g[support[k]], 1.0
        divide(factor, size, z)
        divide(factor, size, u)
        for k in range(size):
            over += z[k]
            under += u[k]
        rise, heaviest, total = 0.0, 0, 0.0
        for k in range(size):
            z[k] -= over / under * u[k]
            total += z[k]
            if alpha[support[k]] > alpha[support[heaviest]]:
                heaviest = k
        z[heaviest] -= total
        for k in range(size):
            rise += g[support[k]] * z[k]
        if not rise < 0.0:  # rounding errors of a singular M
            rise = exchange(g, support, size, z)
        if not rise < 0.0:
            break
        curvature = 0.0
        for k in range(size):
            row, total = gram[support[k]], 0.0
            for m in range(size):
                total += row[support[m]] * z[m]
            curvature += z[k] * total
        longest, first = np.inf, -1
        for k in range(size):
            if z[k] < 0.0 and -alpha[support[k]] / z[k] < longest:
                longest, first = -alpha[support[k]] / z[k], k
        step = longest
        if curvature > 0.0 and -rise / curvature < longest:
            step, first = -rise / curvature, -1
        if not 0.0 < step < np.inf:
            break
        total = 0.0
        for k in range(size):
            moved = 0.0 if k == first else max(alpha[support[k]] + step * z[k], 0.0)
            alpha[support[k]] = moved
            total += moved
        for k in range(size - 1, -1, -1):
            if alpha[support[k]] == 0.0:
                size = leave(support, factor, size, k)
            else:
                alpha[support[k]] /= total
        steps += 1
    return value, max(gap, 0.0), steps


@helper
def exchange(g, support, size, z):
    """The step from the steepest member of S to the least steep one, which always goes down; returns its slope."""
    high, low = 0, 0
    for k in range(size):
        z[k] = 0.0
        if g[support[k]] > g[support[high]]:
            high = k
        if g[support[k]] < g[support[low]]:
            low = k
    z[low] += 1.0
    z[high] -= 1.0
    return g[support[low]] - g[support[high]]


@helper
def enter(gram, sigma, support, factor, size, j):
    """Cut j joins S: a row more in the factor; returns the new size."""
    support[size] = j
    new, square = factor[size], 0.0
    for k in range(size):
        row, total = factor[k], gram[j, support[k]] + sigma
        for m in range(k):
            total -= row[m] * new[m]
        new[k] = total / row[k]
        square += new[k] * new[k]
    diagonal = gram[j, j] + sigma
    new[size] = np.sqrt(max(diagonal - square, PIVOT * diagonal))
    return size + 1


@helper
def leave(support, factor, size, k):
    """The member number k leaves S: its row goes, and rotations of neighbouring columns make the rest triangular again."""
    for i in range(k, size - 1):
        support[i] = support[i + 1]
        for m in range(i + 2):
            factor[i, m] = factor[i + 1, m]
    for m in range(k, size - 1):
        a, b = factor[m, m], factor[m, m + 1]
        length = np.sqrt(a * a + b * b)
        c, s = a / length, b / length
        for i in range(m, size - 1):
            a, b = factor[i, m], factor[i, m + 1]
            factor[i, m] = c * a + s * b
            factor[i, m + 1] = c * b - s * a
    return size - 1


@helper
def divide(factor, size, x):
    """x = M^-1 x by two triangular systems."""
    for k in range(size):
        row, total = factor[k], x[k]
        for m in range(k):
            total -= row[m] * x[m]
        x[k] = total / row[k]
    for k in range(size - 1, -1, -1):
        row = factor[k]
        x[k] /= row[k]
        c = x[k]
        for m in range(k):
            x[m] -= c * row[m]
