"""Mistakes that come together: rates of drawn mistakes are found again, and probabilities are what they say."""

from __future__ import annotations

import numpy as np
import pytest

from partwise.passes import Evidence
from partwise.solvers.error_rates import fit_rates, rates_of


def drawn(n=400, length=20, values=50, seed=0):
    """Examples of which a tenth has half of its positions wrong, others none; the model is right about most of the truth."""
    rng = np.random.default_rng(seed)
    bad = rng.random(n) < 0.1
    wrong = (rng.random((n, length)) < 0.5) & bad[:, None]
    sure = rng.beta(6, 1, (n, length))  # of the truth, and it is: that often
    right = rng.random((n, length)) < sure
    given = np.where(wrong, (1 - sure) / values, np.where(right, sure, 1 - sure)).ravel()
    starts = np.arange(n + 1) * length
    return (
        Evidence(starts, given, np.zeros(n * length, np.int32), np.ones(n * length, bool)),
        wrong,
        np.full(n * length, 1 / values),
    )


def test_rates_are_found_again():
    evidence, wrong, chance = drawn()
    rates, examples, parts, *_ = rates_of(evidence, chance, np.ones(len(chance), bool))
    assert rates.share == pytest.approx(0.1, abs=0.04) and rates.high == pytest.approx(0.5, abs=0.15) and rates.low < 0.01
    p = 0.5 * (1 + np.tanh(0.5 * parts))
    assert p.sum() == pytest.approx(wrong.sum(), rel=0.2)
    likely = p > 0.5
    assert wrong.ravel()[likely].mean() > 0.9
    assert ((examples > 0) == wrong.any(axis=1)).mean() > 0.97


def test_what_is_not_given_is_never_in_doubt():
    evidence, _, chance = drawn(20)
    known = np.ones(len(chance), bool)
    known[:20], known[25] = False, False
    _, examples, parts, *_ = rates_of(evidence, chance, known)
    assert examples[0] == -np.inf and (parts[:20] == -np.inf).all() and parts[25] == -np.inf and np.isfinite(examples[1:]).all()
    rates, examples, parts, *_ = rates_of(evidence, chance, np.zeros(len(chance), bool))
    assert (examples == -np.inf).all() and (parts == -np.inf).all() and np.isfinite(rates).all()


def test_the_likeliest_sharpness_is_taken():
    evidence, _, chance = drawn()
    known, seen = np.ones(len(chance), bool), []

    def look(sharpness):
        """Everything else is less likely than what was drawn."""
        seen.append(sharpness)
        return evidence._replace(given=np.exp(-((np.log(sharpness) - 0.5) ** 2)) * evidence.given)

    found = fit_rates(look, chance, known)
    assert found.rates.sharpness == pytest.approx(np.exp(0.5), rel=0.1) and 1.0 in seen and len(seen) < 20
    assert found.likelihood == max(rates_of(look(one), chance, known).likelihood for one in list(seen))
