"""Alignments: every kind of loss on top of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from oracle_cases import alignment_cases
from oracle_checks import check_agreement
from partwise import interpret, kernels, solve
from partwise.objective import best_outputs, completions
from partwise.structures import alignment_problem
from partwise.structures.alignment.pair_tables import pair_tables
from partwise.structures.alignment.problem import UNKNOWN, PartialAlignmentProblem


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


@settings(max_examples=30, deadline=None)
@given(alignment_cases())
def test_agreement_by_enumeration(case):
    problem, w = case
    with interpret():
        check_agreement(problem, w)
        gold = problem.gold.copy()
        gold[::2] = UNKNOWN
        check_agreement(PartialAlignmentProblem(*problem)._replace(gold=gold), w, UNKNOWN)


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

    found = {m: Table2().run(corpora, Cell("balibase", m, 0, 4, (0.01,), 5))["recall"] for m in ("blosum62", "hinge", "crf, mea")}
    assert found["crf, mea"] > found["blosum62"] + 1.0 and found["hinge"] > found["blosum62"] + 1.0
