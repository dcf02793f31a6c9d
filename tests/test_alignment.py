"""Alignments: counting, sums in floats and in logarithms, ties, bad input, and every kind of loss on top of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from partwise import interpret, kernels, solve
from partwise.engine.compilation import entry
from partwise.objective import best_outputs, completions
from partwise.structures import alignment_problem
from partwise.structures.alignment.best import best_path
from partwise.structures.alignment.pair_tables import PROTEIN_PROPERTIES, PROTEINS, pair_tables
from partwise.structures.alignment.problem import END_EXTEND, END_OPEN, EXTEND, OPEN
from partwise.structures.alignment.sums import sum_in_floats, sum_in_logarithms


@entry
def everything(theta, n, m, local, y, floats, logs):
    value = best_path(theta, n, m, local, y)
    fast, fine = sum_in_floats(theta, n, m, local, floats)
    return value, fast, fine, sum_in_logarithms(theta, n, m, local, logs)


def run(theta, n, m, local=False):
    y, floats, logs = np.zeros(n, np.int32), np.full(len(theta), 7.0), np.full(len(theta), 7.0)
    return *everything(theta, n, m, local, y, floats, logs), y, floats, logs


def scores(rng, n, m, gaps=(-8.0, -0.5, -3.0, -0.2), deviation=1.5):
    """Random matches, the same gaps everywhere."""
    theta = rng.normal(size=n * m + 4 * (n + m)) * deviation
    for kind, value in zip((OPEN, EXTEND, END_OPEN, END_EXTEND), gaps, strict=True):
        theta[n * m + kind * n : n * m + (kind + 1) * n] = value
        theta[n * m + 4 * n + kind * m : n * m + 4 * n + (kind + 1) * m] = value
    return theta


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


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 3), (1, 1), (7, 5), (60, 40), (700, 800)])
def test_every_alignment_is_counted_once(n, m, local):
    """sum_k C(n, k) C(m, k) = C(n + m, n) alignments: those of 700 and 800 places are e^1036."""
    value, fast, fine, slow, _, floats, logs = run(np.zeros(n * m + 4 * (n + m)), n, m, local)
    exact = math.lgamma(n + m + 1) - math.lgamma(n + 1) - math.lgamma(m + 1)
    assert value == 0.0 and fine
    assert fast == pytest.approx(exact, rel=1e-12, abs=1e-12) and slow == pytest.approx(exact, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(floats, logs, atol=1e-9)


@pytest.mark.parametrize("local", [False, True])
@pytest.mark.parametrize("deviation", [1.5, 12.0])
def test_floats_and_logarithms_agree(local, deviation):
    n, m = 90, 120
    theta = scores(np.random.default_rng(1), n, m, deviation=deviation)
    _, fast, fine, slow, _, floats, logs = run(theta, n, m, local)
    assert fine and fast == pytest.approx(slow, rel=1e-12)
    np.testing.assert_allclose(floats, logs, atol=1e-11)
    of_x = floats[: n * m].reshape(n, m).sum(1) + floats[n * m : n * m + 4 * n].reshape(4, n).sum(0)
    of_y = floats[: n * m].reshape(n, m).sum(0) + floats[n * m + 4 * n :].reshape(4, m).sum(0)
    np.testing.assert_allclose(of_x, 1.0, atol=1e-10)
    np.testing.assert_allclose(of_y, 1.0, atol=1e-10)


@pytest.mark.parametrize("local", [False, True])
def test_large_scores_are_left_to_logarithms(local):
    rng, n, m = np.random.default_rng(2), 20, 30
    theta = 1e3 * rng.normal(size=n * m + 4 * (n + m))
    value, _, fine, slow, y, _, logs = run(theta, n, m, local)
    assert not fine and slow >= value and slow == pytest.approx(value, rel=1e-3)
    matched = np.flatnonzero(y >= 0)
    np.testing.assert_allclose(logs[matched * m + y[matched]], 1.0, atol=1e-6)


def test_a_path_that_falls_behind_for_long_is_not_lost():
    """One way gains 90 in each of the first 12 rows and is at the last column then; the other gains more, but later.

    Forwards it is e^1080 behind at row 12, out of the range of floats.
    """
    n = m = 26
    theta = scores(np.random.default_rng(0), n, m, (-1.0, -1.0, -1.0, -1.0), 0.1)
    match = theta[: n * m].reshape(n, m)
    match[np.arange(12), np.arange(12) + 14] = 90.0
    match[np.arange(12, n), np.arange(12, n)] = 90.0
    for local in (False, True):
        value, _, fine, slow, y, _, logs = run(theta, n, m, local)
        assert not fine and value > 1200 and slow >= value and (y[12:] == np.arange(12, n)).all()
        np.testing.assert_allclose(logs[: n * m].reshape(n, m).diagonal()[12:], 1.0, atol=1e-9)


def test_gradients_against_differences():
    rng, n, m, step = np.random.default_rng(3), 6, 5, 1e-5
    for local in (False, True):
        theta = rng.normal(size=n * m + 4 * (n + m))
        parts = run(theta, n, m, local)[5]
        for k in range(len(theta)):
            moved = [run(theta + sign * step * np.eye(len(theta))[k], n, m, local)[1] for sign in (1, -1)]
            assert (moved[0] - moved[1]) / (2 * step) == pytest.approx(parts[k], abs=1e-7)


def test_the_best_is_that_of_gotoh():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        n, m = rng.integers(1, 14, 2)
        gaps = (-4.0, -0.5, -1.5, -0.25) if seed % 2 else (-4.0, -0.5, -4.0, -0.5)
        theta = scores(rng, n, m, gaps)
        assert run(theta, n, m)[0] == pytest.approx(plain_gotoh(theta[: n * m].reshape(n, m), *gaps))


def test_ties_are_broken_in_one_way():
    n, m = 3, 2
    y = run(np.zeros(n * m + 4 * (n + m)), n, m)[4]
    assert y.tolist() == [-1, 0, 1]  # matches as late as possible
    assert run(np.zeros(n * m + 4 * (n + m)), n, m, True)[4].tolist() == [-1, -1, -1]  # nothing is as good as something
    ys, values = np.zeros((2, n), np.int32), np.zeros(2)
    for local in (False, True):
        with interpret():
            kernels.kbest(
                alignment_problem(one_letter([(n, m)]), [(n, m)], local=local), 0, np.zeros(n * m + 4 * (n + m)), ys, values
            )
        assert ys[0].tolist() == run(np.zeros(n * m + 4 * (n + m)), n, m, local)[4].tolist()


def test_a_local_alignment_leaves_the_ends_out():
    first, second = "xxxGATTACAyy", "zGATACAzzz"
    theta = scores(np.random.default_rng(0), len(first), len(second), (-1.5, -1.0, 9.0, 0.0), 0.0)
    theta[: len(first) * len(second)] = [1.0 if a == b else -3.0 for a in first for b in second]
    value, *_, y, _, _ = run(theta, len(first), len(second), True)
    assert value == 4.5 and y.tolist() == [-1] * 3 + [1, 2, -1, 3, 4, 5, 6] + [-1] * 2


# ---------------------------------------------------------------------------------------------------------------------
# Packing
# ---------------------------------------------------------------------------------------------------------------------


def small_pairs(seed=0, pairs=6, **more):
    """Pairs of short sequences in which equal letters belong together, with noise."""
    rng = np.random.default_rng(seed)
    lengths, partners, codes = [], [], ([], [])
    for _ in range(pairs):
        first = rng.integers(0, 4, rng.integers(2, 6))
        kept = np.flatnonzero(rng.random(len(first)) < 0.8)
        second = np.where(rng.random(len(kept)) < 0.8, first[kept], rng.integers(0, 4, len(kept)))
        own = np.full(len(first), -1)
        own[kept] = np.arange(len(kept))
        lengths.append((len(first), len(second)))
        partners.append(own)
        codes[0].append(first)
        codes[1].append(second)
    lengths = np.array(lengths)
    sides = [(np.concatenate(codes[k]), np.concatenate([[0], np.cumsum(lengths[:, k])])) for k in (0, 1)]
    tables = pair_tables(*sides, "ACGT", ("a.letter|b.letter", "g"))
    return alignment_problem(tables, lengths, np.concatenate(partners), **more)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"partners": [0, 5, -1]}, "pair 0, place 1: its partner 5 is no place of a second sequence of 2"),
        ({"partners": [1, 0, -1]}, "pair 0, place 1: its partner 0 is not after that of the place before"),
        ({"partners": [0]}, "a partner for each of 3 places"),
        ({"partners": [0, 1, -7]}, "its partner -7 is no place"),
        ({"counts": [True]}, "`counts` must have an entry for each of 3 places"),
        ({"allowed": [True]}, "`allowed` must have one entry per part"),
        ({"precision_weight": 2.0}, "'precision_weight' parameter must be a float in the range"),
        ({"cost_scale": -1.0}, "'cost_scale' parameter must be 'pairs' or a positive float"),
        ({"lengths": [(4, 2)]}, "have 32 parts, but there are 26 rows"),
        ({"memory": 1e-7}, "pair 0: sequences of 3 and 2 places need about 2.9e-07 GB, more than the 1e-07 GB allowed. Cut them"),
    ],
)
def test_bad_pairs_are_refused(change, message):
    settings = {"lengths": [(3, 2)], "partners": [0, 1, -1], **change}
    with pytest.raises(ValueError, match=message):
        alignment_problem(np.ones((26, 1)), settings.pop("lengths"), settings.pop("partners"), **settings)


@pytest.mark.parametrize(
    ("templates", "message"),
    [
        (["a.letter"], "expected both of a and b"),
        (["a.letter|b.colour", "g"], "a and b must have the same columns"),
        (["a.colour|b.colour", "g"], "There is no column 'colour'"),
        (["a.letter|b.letter"], "and one of gaps"),
        (["a.letter[99]|b.letter[99]", "g"], "cannot read 'a.letter\\[99\\]'"),
        (["h.letter", "g"], "cannot read 'h.letter'"),
        (["a.p|b.p", "g"], "no value for any letter"),
    ],
)
def test_bad_templates_are_refused(templates, message):
    one = (np.zeros(2, int), np.array([0, 2]))
    with pytest.raises(ValueError, match=message):
        pair_tables(one, one, "ab", templates, {"p": {"z": 1}})


def test_a_pair_of_two_thousand_places_fits():
    lengths = [(2000, 2000)]
    assert kernels.n_parts(alignment_problem(one_letter(lengths), lengths), 0) == 2000 * 2000 + 4 * 4000
    with pytest.raises(ValueError, match="sequences of 20,000 and 20,000 places need about 19 GB"):
        alignment_problem(one_letter([(20000, 20000)]), [(20000, 20000)])


def one_letter(lengths):
    sides = [(np.zeros(sum(pair[k] for pair in lengths), int), np.cumsum([0, *(pair[k] for pair in lengths)])) for k in (0, 1)]
    return pair_tables(*sides, "a")


def test_properties_of_proteins():
    """Windows end with the sequence, neighbours outside it have a value of their own."""
    letters = "ACDEFGHIKLMNPQRSTVWYX"
    codes, starts = np.array([letters.index(c) for c in "IIIIIIIDDDDDDDW"]), np.array([0, 14, 15])
    tables = pair_tables((codes, starts), (codes, starts), letters, PROTEINS, PROTEIN_PROPERTIES)
    hydropathy = tables.x[5].tolist()
    assert hydropathy[0] == max(hydropathy) and hydropathy[13] == min(hydropathy)
    assert hydropathy[:14] == sorted(hydropathy[:14], reverse=True)
    assert tables.x[1, 0] == len(letters) and tables.x[1, 14] == len(letters) and tables.x[1, 1] == codes[0]
    assert tables.n_features > 3 * 21 * 21
    alone = (codes[14:], np.array([0, 1]))
    assert pair_tables(alone, alone, letters, PROTEINS, PROTEIN_PROPERTIES).x[5, 0] == hydropathy[14]


def test_sequences_of_different_kinds_have_gaps_of_their_own():
    one = (np.zeros(1, int), np.array([0, 1]))
    for symmetric in (True, False):
        problem = alignment_problem(pair_tables(one, one, "a", symmetric=symmetric), [(1, 1)])
        theta = np.zeros(kernels.n_parts(problem, 0))
        kernels.score(problem, 0, np.arange(kernels.n_weights(problem), dtype=float) ** 2, theta)
        assert (theta[1:5] == theta[5:]).all() == symmetric


def test_cost_is_recall_and_precision():
    problem = alignment_problem(
        one_letter([(3, 3)]), [(3, 3)], [0, 1, -1], counts=[True, False, True], precision_weight=0.25, cost_scale=8.0
    )
    cost = [kernels.cost(problem, 0, np.array(y, np.int32)) for y in ([0, 1, -1], [-1, 1, -1], [1, 2, -1], [0, -1, 2])]
    assert cost == [0.0, 6.0, 8.0, 2.0]  # missed, missed and wrong, wrong; the second place does not count


# ---------------------------------------------------------------------------------------------------------------------
# Losses and solvers
# ---------------------------------------------------------------------------------------------------------------------


def test_solvers_meet():
    with interpret():
        problem = small_pairs()
        margin = [solve(problem, "hinge", solver, 0.3, tol=1e-3, max_epochs=300) for solver in ("sdm", "bmrm")]
        assert all(result.converged for result in margin)
        assert margin[0].primal == pytest.approx(margin[1].primal, rel=2e-3)
        smooth = solve(problem, "crf", "lbfgs", 0.3, tol=1e-6)
        assert smooth.converged and smooth.gap >= -1e-9
        online = solve(problem, "crf", "dca", 0.3, max_epochs=5)
        assert smooth.primal - 1e-9 <= online.primal < np.inf
        kbest = solve(problem, "hinge", "kbest_mira", 0.3, max_epochs=3)
        assert np.isfinite(kbest.w).all() and kbest.w.any()
        rescaled = solve(problem, "slack", "dca", 0.3, max_epochs=3)
        assert np.isfinite(rescaled.w).all() and rescaled.w.any()


def test_ramp_and_taking_examples():
    with interpret():
        whole = small_pairs(local=True)
        problem = kernels.take(whole, np.array([3, 1, 4]))
        assert kernels.n_examples(problem) == 3
        theta, other = np.zeros(kernels.n_parts(problem, 1)), np.zeros(kernels.n_parts(whole, 1))
        w = np.random.default_rng(0).normal(size=kernels.n_weights(problem))
        kernels.score(problem, 1, w, theta)
        kernels.score(whole, 1, w, other)
        np.testing.assert_array_equal(theta, other)
        result = solve(problem, "ramp", "sdm", 0.3)
        objectives = [r.objective for r in result.rounds]
        assert all(b <= a + 1e-9 for a, b in zip(objectives[:-1], objectives[1:], strict=True))
        out, starts, _ = best_outputs(problem, result.w)
        assert len(out) == starts[-1] == len(problem.gold)


def test_places_that_are_not_known_are_completed():
    with interpret():
        problem = small_pairs()
        gold = problem.gold.copy()
        gold[::3] = -2
        some = alignment_problem(problem.rows, np.column_stack([np.diff(problem.starts), np.diff(problem.others)]), gold)
        assert kernels.is_partial(some) and not kernels.is_partial(problem)
        w = solve(some, "hinge", "sdm", 0.3, tol=1e-2).w
        found, starts, values = completions(some, w)
        assert (values > -np.inf).all() and ((gold == -2) | (found == gold)).all()
        parts = np.zeros(kernels.n_parts(some, 0))
        theta = parts.copy()
        kernels.score(some, 0, w, theta)
        kernels.expected_completion(some, 0, theta, 1.0, parts)
        m = int(np.diff(some.others)[0])
        for i, j in enumerate(gold[: starts[1]]):
            assert j < 0 or parts[i * m + j] == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.data
def test_learnt_scores_beat_blosum62(corpora):
    """Held-out families of BAliBASE, core columns: probabilities learnt from other families against tuned gaps."""
    from partwise.experiments.do_table_2 import Cell, Table2

    found = {m: Table2().run(corpora, Cell(m, 0, 4, (0.01,), 5))["recall"] for m in ("blosum62", "hinge", "crf, mea")}
    assert found["crf, mea"] > found["blosum62"] + 1.0 and found["hinge"] > found["blosum62"] + 1.0
