"""Mistakes that come together: how probably each position of an output is wrong, where neighbours are wrong with it.

`partwise.solvers.noise` takes mistakes for independent. In an alignment they are not: one gap in the wrong place shifts
ten letters, and ten independent mistakes are less likely than a bad model. A structure copied from the wrong record has hardly a
base pair right. So positions are judged one by one, each by the probability p_t of what is given there by x alone, and what
couples them is a rate of mistakes for each example: *low* a for most, *high* b for a share r of them,

    p(g) = (1 - r) prod_t ((1 - a) p_t + a u_t)  +  r prod_t ((1 - b) p_t + b u_t),

where u_t is the chance that a mistake has come out as what is given: one over the number of values that a position can have. r, a
and b are those of highest likelihood (a composite one: positions are taken for independent, given the rate), found by
expectation and maximisation; so is the inverse temperature of p, since a model of few or noisy data is less sure than it should
be. With q the probability that an example has the high rate,

    P(t is wrong) = (1 - q) a u_t / ((1 - a) p_t + a u_t) + q b u_t / ((1 - b) p_t + b u_t),
    P(a mistake)  = 1 - prod_t (1 - P(t is wrong)).

Cost: some ten passes over the data (`partwise.passes.evidence`), then O(positions) a step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from partwise.passes import Evidence

STEPS = 500
LEAST, MOST = 1e-6, 0.95  # rates
SHARPEST = 1.5  # log of the sharpness, at most
NEVER = 1e-30  # in place of a probability of zero


class ErrorRates(NamedTuple):
    """How often positions are wrong."""

    sharpness: float  #: of the model, in units of the inverse temperature that it comes with
    share: float  #: r: share of the examples that have the high rate
    low: float  #: a
    high: float  #: b


class RatesFound(NamedTuple):
    """The rates of highest likelihood, and what follows."""

    rates: ErrorRates
    examples: np.ndarray  #: (N,) log-odds that there is a mistake
    parts: np.ndarray  #: (positions,) log-odds of being wrong
    evidence: Evidence  #: at that sharpness
    likelihood: float


def fit_rates(look: Callable[[float], Evidence], chance: np.ndarray, known: np.ndarray) -> RatesFound:
    """The sharpness and the rates of highest likelihood: a line search over the one, `rates_of` within.

    `look`: the evidence of weights that have not seen the examples, at a sharpness; the others are those of `rates_of`.
    """
    import scipy.optimize

    tried: dict[float, RatesFound] = {}

    def minus_log_likelihood(log_sharpness: float) -> float:
        evidence = look(float(np.exp(log_sharpness)))
        tried[log_sharpness] = rates_of(evidence, chance, known, float(np.exp(log_sharpness)))
        return -tried[log_sharpness].likelihood

    minus_log_likelihood(0.0)
    if known.any():
        options = {"xatol": 0.05, "maxiter": 12}
        scipy.optimize.minimize_scalar(minus_log_likelihood, bounds=(-SHARPEST, SHARPEST), method="bounded", options=options)
    return max(tried.values(), key=lambda one: one.likelihood)


def rates_of(evidence: Evidence, chance: np.ndarray, known: np.ndarray, sharpness: float = 1.0) -> RatesFound:
    """The rates of highest likelihood, given the probabilities of what is given.

    Parameters
    ----------
    evidence : Evidence
    chance : array (positions,)
        u: that a mistake is what is given.
    known : bool array (positions,)
        Whether anything is given there; else it is never in doubt.
    """
    n, lengths = len(evidence.starts) - 1, np.diff(evidence.starts)
    owner = np.repeat(np.arange(n), lengths)[known]
    p, u = np.maximum(evidence.given[known], NEVER), np.asarray(chance, float)[known]
    r, a, b = 0.1, 0.01, 0.4
    q, wrong_low, wrong_high, likelihood = np.zeros(len(p)), np.zeros(len(p)), np.zeros(len(p)), 0.0
    for _ in range(STEPS if len(p) else 0):
        low, high = (1.0 - a) * p + a * u, (1.0 - b) * p + b * u
        odds = np.log(r) - np.log1p(-r) + np.bincount(owner, np.log(high) - np.log(low), n)
        likelihood = float(np.log(low).sum() + np.logaddexp(odds, 0.0).sum() + n * np.log1p(-r))
        each = 0.5 * (1.0 + np.tanh(0.5 * odds))
        q, wrong_low, wrong_high = each[owner], a * u / low, b * u / high
        before = (r, a, b)
        seen = np.bincount(owner, minlength=n) > 0
        r = float(np.clip(each[seen].mean(), LEAST, 0.5))
        a = float(np.clip(((1.0 - q) @ wrong_low) / max((1.0 - q).sum(), NEVER), LEAST, 0.5))
        b = float(np.clip((q @ wrong_high) / max(q.sum(), NEVER), LEAST, MOST))
        if np.allclose(before, (r, a, b), rtol=1e-6, atol=0.0):
            break
    wrong = (1.0 - q) * wrong_low + q * wrong_high
    right = np.maximum(1.0 - wrong, NEVER)
    parts, examples = np.full(len(known), -np.inf), np.full(n, -np.inf)
    with np.errstate(divide="ignore"):
        parts[known] = np.log(wrong) - np.log(right)
        all_right = np.bincount(owner, np.log(right), n)
        some = np.bincount(owner, minlength=n) > 0
        examples[some] = np.log(-np.expm1(all_right[some])) - all_right[some]
    return RatesFound(ErrorRates(sharpness, r, a, b), examples, parts, evidence, likelihood)
