"""The best alignment: against the recursion as in the books, ties, ends that are left out."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import interpret, kernels
from partwise.engine.compilation import compiled_loop
from partwise.structures import alignment_problem
from partwise.structures.alignment.best import best_path, best_paths
from small_alignments import one_letter, random_scores, run_paths


def plain_gotoh(match, opened, extended, end_opened, end_extended):
    """The recursion as in the books, cell by cell, gaps in any order."""
    n, m = match.shape
    M, X, Y = (np.full((n + 1, m + 1), -np.inf) for _ in range(3))
    M[0, 0] = 0.0
    for i in range(n + 1):
        for j in range(m + 1):
            if i and j:
                M[i, j] = match[i - 1, j - 1] + max(M[i - 1, j - 1], X[i - 1, j - 1], Y[i - 1, j - 1])
            if i:
                o, e = (end_opened, end_extended) if j in (0, m) else (opened, extended)
                X[i, j] = max(max(M[i - 1, j], Y[i - 1, j]) + o, X[i - 1, j] + e)
            if j:
                o, e = (end_opened, end_extended) if i in (0, n) else (opened, extended)
                Y[i, j] = max(max(M[i, j - 1], X[i, j - 1]) + o, Y[i, j - 1] + e)
    return max(M[n, m], X[n, m], Y[n, m])


def test_the_best_is_that_of_gotoh():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n, m = rng.integers(1, 14, 2)
        gaps = (-4.0, -0.5, -1.5, -0.25) if seed % 2 else (-4.0, -0.5, -4.0, -0.5)
        theta = random_scores(rng, n, m, gaps)
        assert run_paths(theta, n, m)[0] == pytest.approx(plain_gotoh(theta[: n * m].reshape(n, m), *gaps))


@compiled_loop
def in_both_ways(theta, n, m, local, y, ys, values):
    """By strips of diagonals, and cell by cell as the k best are found."""
    best_paths(theta, n, m, local, ys, values)
    return best_path(theta, n, m, local, y)


def test_strips_of_diagonals_find_what_cells_in_order_do():
    rng = np.random.default_rng(0)
    for n, m in [(0, 3), (3, 0), (1, 1), (1, 40), (40, 1), (7, 9), (8, 8), (15, 17), (16, 16), (17, 15), (33, 31), (50, 65)]:
        for local in (False, True):
            for dtype in (np.float64, np.float32):
                theta = rng.integers(-4, 5, n * m + 4 * (n + m)).astype(dtype) / 2  # exact sums, many ties
                theta[n * m :] -= 1
                theta[rng.random(len(theta)) < 0.05] = -np.inf
                y, ys, values = np.zeros(n, np.int32), np.zeros((1, n), np.int32), np.full(1, -np.inf)
                assert in_both_ways(theta, n, m, local, y, ys, values) == values[0]
                if values[0] > -np.inf:
                    assert y.tolist() == ys[0].tolist()


def test_ties_are_broken_in_one_way():
    n, m = 3, 2
    y = run_paths(np.zeros(n * m + 4 * (n + m)), n, m)[4]
    assert y.tolist() == [-1, 0, 1]  # matches as late as possible
    assert run_paths(np.zeros(n * m + 4 * (n + m)), n, m, True)[4].tolist() == [-1, -1, -1]  # nothing is as good as something
    ys, values = np.zeros((2, n), np.int32), np.zeros(2)
    for local in (False, True):
        with interpret():
            kernels.kbest(
                alignment_problem(one_letter([(n, m)]), [(n, m)], local=local), 0, np.zeros(n * m + 4 * (n + m)), ys, values
            )
        assert ys[0].tolist() == run_paths(np.zeros(n * m + 4 * (n + m)), n, m, local)[4].tolist()


def test_a_local_alignment_leaves_the_ends_out():
    first, second = "xxxGATTACAyy", "zGATACAzzz"
    theta = random_scores(np.random.default_rng(0), len(first), len(second), (-1.5, -1.0, 9.0, 0.0), 0.0)
    theta[: len(first) * len(second)] = [1.0 if a == b else -3.0 for a in first for b in second]
    value, *_, y, _, _ = run_paths(theta, len(first), len(second), True)
    assert value == 4.5 and y.tolist() == [-1] * 3 + [1, 2, -1, 3, 4, 5, 6] + [-1] * 2
