"""What is given may be wrong: a model of the noise, fitted by likelihood, and the probabilities that follow.

The truth y of an example is drawn by a model, p(y | x) ~ exp(beta s(y)), and comes to us through a noisy channel as g:

    p(g | y) = (1 - r) exp(-tau l(g, y)) / A(tau) + r / Y,        A(tau) = sum_g exp(-tau l(g, y)).

With probability r, the share of *random* examples, g has nothing to do with y: it is any of the Y outputs. Otherwise mistakes are
the rarer the more they cost; for a cost that counts wrong positions out of K values each, every position is wrong with
probability (K - 1) / (e^tau + K - 1), independently. *Trust* tau is infinite where all is right.

Three log-partitions say how likely that is, the costs l(y) = l(g, y) being those of the problem's truth, and A being taken
at the truth (by symmetry it is the same for every y where costs count positions):

    log p(g | x, not random) = log Z(beta s - tau l) - log Z(beta s) - log Z(-tau l),        log Y = log Z(0).

So any structure with `expected` and `add_cost` has this noise model. The truth, given both x and g, is distributed as
exp(beta s(y) - tau l(y)): the marginals of this *diminished* model weigh what the features say of a position against what is
given there, and at its neighbours. Its best output is what ramp losses believe, with b = tau / beta (Mancev 2015).

    P(no mistake, not random)  ~  (1 - r) exp(beta s(g)) / (Z(beta s) Z(-tau l))
    P(position t is wrong)     =  P(random) (1 - p_t(g_t | x)) + (1 - P(random)) (1 - p_t(g_t | x, g))

The three numbers, beta, tau and r, are those of highest likelihood of all that is given, each example being scored by weights
that have not seen it. beta must be fitted together with the noise: a model of noisy labels is less sure than it should be, for it
explains noise by features. Clean data drive r to zero and tau up, so that nothing is in doubt but what the model finds absurd.

Cost: three sums over outputs for each example (`MOST` of them at most) and step, some twenty steps, then one pass over all.

References
----------
D. Mancev (2015). A sequential dual method for the structured ramp loss minimization. Facta Universitatis 30(1).
A. P. Dawid, A. M. Skene (1979). Maximum likelihood estimation of observer error-rates using the EM algorithm. Applied
Statistics 28(1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.engine.threads import in_threads
from partwise.kernels import chunks
from partwise.passes import Evidence, gather, no_evidence

MOST = 2000  # examples that the noise is fitted to
MOST_TRUST = 30.0  # a mistake of cost 1 in e^30: none
# what is thought of log beta, tau and log r / (1 - r) before anything was seen: normal, of this mean and deviation
BEFORE = np.array([[0.0, 3.0], [4.0, 3.0], [-3.0, 2.0]])


class Noise(NamedTuple):
    """How labels go wrong."""

    sharpness: float  #: beta, in units of the inverse temperature that each judge comes with
    trust: float  #: tau: a mistake of cost 1 is e^-tau times as likely as none
    random: float  #: r: share of the examples whose labels have nothing to do with them


class Judge(NamedTuple):
    """Weights that judge some of the examples."""

    problem: Any  #: those examples
    which: np.ndarray  #: their numbers among all
    w: np.ndarray
    beta: float  #: a first guess of the inverse temperature


class Judgement(NamedTuple):
    """What is to be thought of all that is given. Log-odds: log p / (1 - p) of the probability of being wrong."""

    evidence: Evidence  #: `given` is the probability of what is given by x alone; believed is what is most probably the truth
    examples: np.ndarray  #: (N,) log-odds that there is a mistake in the example; -inf where nothing is given
    parts: np.ndarray  #: (positions,) log-odds that the position is wrong
    noise: Any  #: `Noise`, or `partwise.solvers.error_rates.ErrorRates`


# columns of what `noise_pass` finds
FREE, KEPT, CHANNEL, GIVEN, COUNT, FREE_SCORE, KEPT_SCORE, KEPT_COST, CHANNEL_COST = range(9)


@compiled_loop
def noise_pass(problem, first, last, w, beta, trust, room, starts, sums, answers, free, kept, believed, disputed, held, retold):
    """Log-partitions (columns of `sums`) and, with `answers`, probabilities and best outputs, of first <= i < last.

    free[t] and kept[t] are the probabilities of what is given, by x alone and in the diminished model; `believed` and `held` are
    their best outputs, `disputed` and `retold` where these contradict what is given.
    """
    for i in range(first, last):
        n = kernels.n_parts(problem, i)
        theta, costs, work, marginals = room[0, :n], room[1, :n], room[2, :n], room[3, :n]
        at, end = starts[i], starts[i + 1]
        kernels.score(problem, i, w, theta)
        theta *= beta
        costs[:] = 0.0
        kernels.add_cost(problem, i, 1.0, costs)
        sums[i, FREE] = kernels.expected(problem, i, theta, marginals)
        value = 0.0
        for k in range(n):
            if marginals[k] > 0.0:
                value += marginals[k] * theta[k]
        sums[i, FREE_SCORE] = value
        if answers:
            kernels.agreement(problem, i, marginals, free[at:end])
            sums[i, GIVEN] = kernels.expected_completion(problem, i, theta, 0.0, marginals)
            kernels.best(problem, i, theta, believed[at:end])
            marginals[:] = 0.0
            kernels.indicate(problem, i, believed[at:end], 1.0, marginals)
            kernels.agreement(problem, i, marginals, kept[at:end])
            for t in range(at, end):
                disputed[t] = kept[t] < 0.5
            for k in range(n):
                work[k] = 0.0 if theta[k] > -np.inf else -np.inf
            sums[i, COUNT] = kernels.expected(problem, i, work, marginals)
        for k in range(n):
            work[k] = -trust * costs[k] if theta[k] > -np.inf else -np.inf
        sums[i, CHANNEL] = kernels.expected(problem, i, work, marginals)
        value = 0.0
        for k in range(n):
            value += marginals[k] * costs[k]
        sums[i, CHANNEL_COST] = value
        for k in range(n):
            work[k] = theta[k] - trust * costs[k]
        sums[i, KEPT] = kernels.expected(problem, i, work, marginals)
        score, cost = 0.0, 0.0
        for k in range(n):
            if marginals[k] > 0.0:
                score += marginals[k] * theta[k]
                cost += marginals[k] * costs[k]
        sums[i, KEPT_SCORE], sums[i, KEPT_COST] = score, cost
        if answers:
            kernels.best(problem, i, work, held[at:end])
            costs[:] = 0.0
            kernels.indicate(problem, i, held[at:end], 1.0, costs)
            kernels.agreement(problem, i, costs, kept[at:end])
            for t in range(at, end):
                retold[t] = kept[t] < 0.5
            kernels.agreement(problem, i, marginals, kept[at:end])


class Found(NamedTuple):
    """What `noise_pass` finds."""

    starts: np.ndarray
    sums: np.ndarray
    free: np.ndarray
    kept: np.ndarray
    believed: np.ndarray
    disputed: np.ndarray
    held: np.ndarray
    retold: np.ndarray


def look(problem: Any, w: np.ndarray, beta: float, trust: float, answers: bool, n_jobs: int | None) -> Found:
    """One pass, in threads."""
    kernels.check_weights(problem, w)
    starts, parts = kernels.sizes(problem)
    n = int(starts[-1])
    found = Found(
        starts,
        np.zeros((len(starts) - 1, 9)),
        np.ones(n),
        np.ones(n),
        np.zeros(n, np.int32),
        np.zeros(n, np.bool_),
        np.zeros(n, np.int32),
        np.zeros(n, np.bool_),
    )

    def run(chunk):
        noise_pass(problem, *chunk, w, beta, trust, np.zeros((4, parts)), starts, found.sums, answers, *found[2:])

    in_threads(run, chunks(problem), n_jobs)
    return found


# ---------------------------------------------------------------------------------------------------------------------
# The likeliest noise
# ---------------------------------------------------------------------------------------------------------------------


def fit_noise(judges: Sequence[Judge], seed: int = 0, n_jobs: int | None = None) -> Noise:
    """The noise of highest likelihood of what is given (see the module), by L-BFGS; with few examples it stays near `BEFORE`."""
    import scipy.optimize

    judges = thinned(judges, MOST, seed)
    counts = np.concatenate([look(j.problem, j.w, j.beta, 1.0, True, n_jobs).sums[:, COUNT] for j in judges] or [np.zeros(0)])
    single = all(int(np.diff(kernels.sizes(j.problem)[0]).max(initial=0)) < 2 for j in judges)
    if not len(counts):
        return Noise(1.0, MOST_TRUST, 0.0)

    def minus_log_posterior(x: np.ndarray) -> tuple[float, np.ndarray]:
        noise = noise_at(x, single)
        sums = np.concatenate([look(j.problem, j.w, noise.sharpness * j.beta, noise.trust, False, n_jobs).sums for j in judges])
        known, at_random = joint(sums, counts, noise.random)
        total = np.logaddexp(known, at_random)
        right = np.exp(known - total)
        away = (x - BEFORE[:, 0]) / BEFORE[:, 1]
        gradient = np.array(
            [
                right @ (sums[:, KEPT_SCORE] - sums[:, FREE_SCORE]),
                right @ (sums[:, CHANNEL_COST] - sums[:, KEPT_COST]),
                0.0 if single else np.sum(1.0 - right) - noise.random * len(right),
            ]
        )
        value = total.sum() - 0.5 * away @ away
        return -float(value) / len(total), (away / BEFORE[:, 1] - gradient) / len(total)

    bounds = [(-4.0, 4.0), (0.1, MOST_TRUST), (-14.0, 4.0)]
    found = scipy.optimize.minimize(
        minus_log_posterior, BEFORE[:, 0], jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 30, "ftol": 1e-6}
    )
    return noise_at(found.x, single)


def noise_at(x: np.ndarray, single: bool) -> Noise:
    """Of log beta, tau, log r / (1 - r). In outputs of a single position none is random that the channel would not explain."""
    return Noise(float(np.exp(x[0])), float(x[1]), 0.0 if single else float(1.0 / (1.0 + np.exp(-x[2]))))


def joint(sums: np.ndarray, counts: np.ndarray, random: float) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities of what is given, drawn by the channel and drawn at random."""
    known = np.log1p(-random) + sums[:, KEPT] - sums[:, FREE] - sums[:, CHANNEL]
    return known, (np.log(random) if random > 0.0 else -np.inf) - counts


def thinned(judges: Sequence[Judge], most: int, seed: int) -> list[Judge]:
    """At most so many of the examples, drawn at random."""
    n = sum(len(j.which) for j in judges)
    if n <= most:
        return list(judges)
    rng, found = np.random.default_rng((seed, 5)), []
    for j in judges:
        some = np.sort(rng.choice(len(j.which), max(1, round(most * len(j.which) / n)), replace=False))
        found.append(j._replace(problem=kernels.take(j.problem, some), which=j.which[some]))
    return found


# ---------------------------------------------------------------------------------------------------------------------
# What follows
# ---------------------------------------------------------------------------------------------------------------------


def judged(problem: Any, judges: Sequence[Judge], noise: Noise, n_jobs: int | None = None) -> Judgement:
    """What judges and noise make of all examples of a problem, each of which has one judge."""
    whole = no_evidence(problem)
    examples, parts = np.full(len(whole.starts) - 1, -np.inf), np.full(int(whole.starts[-1]), -np.inf)
    lengths = np.diff(whole.starts)
    for j in judges:
        found = look(j.problem, j.w, noise.sharpness * j.beta, noise.trust, True, n_jobs)
        odds, of_parts, random = log_odds(found, noise)
        # where labels are random they say nothing; where the diminished model contradicts nothing, the prediction may
        contradicted = np.diff(np.concatenate([[0], np.cumsum(found.retold)])[found.starts]) > 0
        plain = np.repeat((random > 0.5) | ~contradicted, np.diff(found.starts))
        evidence = Evidence(
            found.starts,
            found.free,
            np.where(plain, found.believed, found.held).astype(np.int32),
            np.where(plain, found.disputed, found.retold),
        )
        gather(whole, j.which, evidence)
        examples[j.which] = odds
        at = np.repeat(whole.starts[j.which] - found.starts[:-1], lengths[j.which]) + np.arange(found.starts[-1])
        parts[at] = of_parts
    return Judgement(whole, examples, parts, noise)


def log_odds(found: Found, noise: Noise) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log-odds of examples and of positions, and the probability that an example is random."""
    sums = found.sums
    known, at_random = joint(sums, sums[:, COUNT], noise.random)
    with np.errstate(divide="ignore", invalid="ignore"):
        right = known + sums[:, GIVEN] - sums[:, KEPT]  # no mistake in what the channel has left
        by_chance = at_random + sums[:, GIVEN] - sums[:, FREE]
        wrong = np.logaddexp(
            known + log_rest(sums[:, GIVEN] - sums[:, KEPT]), at_random + log_rest(sums[:, GIVEN] - sums[:, FREE])
        )
        examples = wrong - np.logaddexp(right, by_chance)
        random = np.exp(at_random - np.logaddexp(known, at_random))
        r = np.repeat(random, np.diff(found.starts))
        right = np.minimum(r * found.free + (1.0 - r) * found.kept, 1.0)  # sums of probabilities may round up
        rest = r * (1.0 - found.free) + (1.0 - r) * (1.0 - found.kept)
        parts = np.log(np.maximum(rest, 0.0)) - np.log(right)
    return examples, parts, random


def log_rest(log_p: np.ndarray) -> np.ndarray:
    """log(1 - p)."""
    log_p = np.minimum(log_p, 0.0)
    return np.where(log_p > -0.5, np.log(-np.expm1(log_p)), np.log1p(-np.exp(log_p)))
