"""What is given may be wrong: a model of the noise, fitted by likelihood, and the probabilities that follow.

The truth y of an example is drawn by a model, p(y | x) ~ exp(beta s(y)), and comes to us as g through a noisy channel:

    p(g | y) = (1 - r) exp(-k [g != y] - tau l(g, y) + d(g, y)) / A + r / Y,        A = 1 + e^-k (sum_g exp(-tau l(g, y)) - 1).

With probability r, the share of *random* examples, g has nothing to do with y: it is any of the Y outputs. Otherwise mistakes are
the rarer the more they cost, and *trust* tau says how much: for a cost that counts wrong positions out of K values each, and
without care, a position is wrong with probability (K - 1) / (e^tau + K - 1), whatever the others are. *Care* k makes a first
mistake rarer than a further one: mistakes come together, and who moves the boundary of a span gets two tokens wrong.

Where all positions have the same K values (`kernels.n_values`), d says what is *confused* with what: where y is right, a wrong
position has the value g with probability Q(y, g), and d = log (K - 1) Q(y, g), summed over the wrong positions. Elsewhere d = 0.

Sums over outputs say how likely all that is, the costs l(y) = l(g, y) being those of the problem's truth, and A being taken at
the truth (by symmetry it is the same for every y where costs count positions): with Z(f) = sum_y exp f(y) and e(f) = exp f(g),

    p(g | x, not random) = (e(beta s) + e^-k (Z(beta s - tau l + d) - e(beta s))) / (Z(beta s) (1 + e^-k (Z(-tau l) - 1))),

and Y = Z(0). So any structure with `expected` and `add_cost` has this noise model. If there is a mistake, the truth, given both x
and g, is distributed as exp(beta s - tau l + d): its marginals weigh what the features say of a position against what is given
there and at its neighbours. Its best output is what ramp losses believe, with b = tau / beta (Mancev 2015). From the share of the
first term follows the probability that there is no mistake, from these marginals that of a position to be wrong.

All numbers, beta, tau, k, r and Q, are those of highest likelihood of all that is given, each example being scored by weights
that have not seen it. beta must be fitted together with the noise: a model of noisy labels is less sure than it should be, for it
explains noise by features. What likelihood cannot tell is whether surprises are mistakes or rare truths, where the model is no
surer than they are rare. We take it that at least `LEAST` of all positions are wrong, as in every corpus that people have made.

Neighbours that are wrong together vouch for each other. So there is a second opinion, of each position as if it were all that
is given, and what comes out is a mean of both (`partwise.solvers.second_opinion`).

Cost: three sums over outputs for each example (`MOST` of them at most) and step, some thirty steps; then one pass over all.

References
----------
D. Mancev (2015). A sequential dual method for the structured ramp loss minimization. Facta Universitatis 30(1).
A. P. Dawid, A. M. Skene (1979). Maximum likelihood estimation of observer error-rates using the EM algorithm. Applied
Statistics 28(1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop, helper
from partwise.engine.ragged import taken, totals
from partwise.engine.threads import in_threads
from partwise.kernels import chunks
from partwise.passes import Evidence, answer, gather, no_evidence
from partwise.solvers.second_opinion import LEAST, Alone, both_opinions, confused_alone, log_rest

MOST, MOST_PARTS = 2000, 4_000_000  # examples that the noise is fitted to, and parts of these
ROUNDS = 2  # of what is confused with what
PSEUDO = 20.0  # wrong positions of each value that were seen before the first, confused with all others alike
MOST_ODDS = 700.0  # log-odds: exp of more is no number
FURTHER = 0.03  # of the others are wrong at least where one is: what is rarer is so by care
# what is thought before anything was seen, normal, of this mean and deviation: log beta, tau, log r / (1 - r), k
BEFORE = np.array([[0.0, 2.0], [4.0, 1.0], [-7.0, 1.5], [0.0, 4.0]])


class Noise(NamedTuple):
    """How labels go wrong."""

    sharpness: float  #: beta, in units of the inverse temperature that each judge comes with
    trust: float  #: tau: a mistake of cost 1 is e^-tau times as likely as none
    random: float  #: r: share of the examples whose labels have nothing to do with them
    care: float  #: k: a first mistake is e^-k times as likely as a further one
    confused: np.ndarray  #: (K, K) d: log (K - 1) Q(true, given), 0 on the diagonal; (0, 0) where there are no such values


def dealt(n: int, k: int, seed: int) -> np.ndarray:
    """Which of k parts each of n examples is in, (n,): each is judged by what was learnt from the others."""
    return np.random.default_rng((seed, 3)).permutation(n) % k


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
    contradicted: np.ndarray | None = None  #: (positions,) bool: what the judge predicts by x alone is not what is given
    random: np.ndarray | None = None  #: (N,) probability that the example is random as a whole


# ---------------------------------------------------------------------------------------------------------------------
# Passes
# ---------------------------------------------------------------------------------------------------------------------

# what `noise_pass` finds of an example: log Z of beta s, beta s - tau l + d, -tau l and 0, and of beta s over what is acceptable;
# expected scores beta s and costs there
FREE, KEPT, CHANNEL, COUNT, GIVEN, FREE_SCORE, KEPT_SCORE, KEPT_COST, CHANNEL_COST, COLUMNS = range(10)


@helper
def weighed(marginals, scores):
    """The expected score; what is forbidden has probability zero and score -inf."""
    value = 0.0
    for k in range(len(scores)):
        if marginals[k] > 0.0:
            value += marginals[k] * scores[k]
    return value


@compiled_loop
def noise_pass(problem, first, last, w, beta, trust, confused, power, mistaken, answers, room, starts, sums, found):
    """Sums over the outputs of first <= i < last, into the rows of `sums`.

    `found` are the other arrays of `Found`. All but `nodes`, COUNT too, are found only with `answers`; `others` with the power
    and the weights of `Alone`.
    """
    given, others, kept, nodes, believed, disputed, predicted, contradicted = found
    for i in range(first, last):
        n = kernels.n_parts(problem, i)
        theta, costs, work, marginals = room[0, :n], room[1, :n], room[2, :n], room[3, :n]
        at, end = starts[i], starts[i + 1]
        kernels.score(problem, i, w, theta)
        theta *= beta
        costs[:] = 0.0
        kernels.add_cost(problem, i, 1.0, costs)
        sums[i, FREE] = kernels.expected(problem, i, theta, marginals)
        sums[i, FREE_SCORE] = weighed(marginals, theta)
        if len(confused):
            kernels.truth(problem, i, believed[at:end])
        if answers:
            kernels.agreement(problem, i, marginals, given[at:end])
            for t in range(end - at):
                others[at + t] = 0.0 if len(confused) else max(1.0 - given[at + t], 0.0)
                for c in range(len(confused)):
                    if c != believed[at + t]:
                        others[at + t] += marginals[t * len(confused) + c] ** power * mistaken[c, believed[at + t]]
            answer(problem, i, theta, marginals, predicted[at:end], contradicted[at:end])
            for k in range(n):
                work[k] = 0.0 if theta[k] > -np.inf else -np.inf
            sums[i, COUNT] = kernels.expected(problem, i, work, marginals)
        sums[i, GIVEN] = kernels.expected_completion(problem, i, theta, 0.0, marginals)
        for k in range(n):
            work[k] = -trust * costs[k] if theta[k] > -np.inf else -np.inf
        sums[i, CHANNEL] = kernels.expected(problem, i, work, marginals)
        sums[i, CHANNEL_COST] = weighed(marginals, costs)
        for k in range(n):
            work[k] = theta[k] - trust * costs[k]
        for t in range(end - at):
            for c in range(len(confused)):
                work[t * len(confused) + c] += confused[c, believed[at + t]]
        sums[i, KEPT] = kernels.expected(problem, i, work, marginals)
        sums[i, KEPT_SCORE], sums[i, KEPT_COST] = weighed(marginals, theta), weighed(marginals, costs)
        for t in range(at, end):
            for c in range(nodes.shape[1]):
                nodes[t, c] = marginals[(t - at) * nodes.shape[1] + c]
        if answers:
            kernels.agreement(problem, i, marginals, kept[at:end])
            answer(problem, i, work, marginals, believed[at:end], disputed[at:end])


class Found(NamedTuple):
    """What `noise_pass` finds."""

    starts: np.ndarray
    sums: np.ndarray  #: (N, columns), see above
    given: np.ndarray  #: (positions,) probability of what is given by x alone
    others: np.ndarray  #: (positions,) of all other values, to a power, each as often as it is taken for what is given (`Alone`)
    kept: np.ndarray  #: (positions,) that it is right, by x and all that is given, unless random
    nodes: np.ndarray  #: (positions, K) the same of all values
    believed: np.ndarray  #: (positions,) the best output by x and all that is given
    disputed: np.ndarray  #: (positions,) where it contradicts what is given
    predicted: np.ndarray  #: (positions,) the best output by x alone
    contradicted: np.ndarray  #: (positions,) where that one does


def look(judge: Judge, noise: Noise, answers: bool, n_jobs: int | None = None, alone: Alone | None = None) -> Found:
    """One pass over the examples of a judge, in threads: with answers, or with `nodes` instead."""
    alone = Alone(1.0, np.exp(noise.confused)) if alone is None else alone
    problem, w = judge.problem, judge.w
    kernels.check_weights(problem, w)
    starts, parts = kernels.sizes(problem)
    size = int(starts[-1])
    some = size if answers else 0
    found = Found(
        starts,
        np.zeros((len(starts) - 1, COLUMNS)),
        np.ones(some),
        np.ones(some),
        np.ones(some),
        np.zeros((0, 0) if answers else (size, len(noise.confused))),
        np.zeros(size, np.int32),
        np.zeros(some, np.bool_),
        np.zeros(some, np.int32),
        np.zeros(some, np.bool_),
    )
    beta = noise.sharpness * judge.beta

    def run(chunk):
        room = np.zeros((4, parts))
        how = (beta, noise.trust, noise.confused, alone.power, alone.weights, answers)
        noise_pass(problem, *chunk, w, *how, room, starts, found.sums, found[2:])

    in_threads(run, chunks(problem), n_jobs)
    return found


class Explained(NamedTuple):
    """How what is given is explained, of all examples."""

    meant: np.ndarray  #: log p(g, not random | x)
    at_random: np.ndarray  #: log p(g, random | x)
    mistaken: np.ndarray  #: log p(there is a mistake | g, not random, x)
    factor: np.ndarray  #: by which parts of what is wrong in the diminished model count
    charged: np.ndarray  #: the same of the channel's sum
    careless: np.ndarray  #: the share of what has mistakes in that sum

    @property
    def meaning(self) -> np.ndarray:
        """p(not random | g, x)."""
        return np.exp(self.meant - np.logaddexp(self.meant, self.at_random))


def explained(sums: np.ndarray, counts: np.ndarray, noise: Noise) -> Explained:
    """By what `noise_pass` found."""
    with np.errstate(divide="ignore"):
        faulty = sums[:, KEPT] + log_rest(sums[:, GIVEN] - sums[:, KEPT]) - noise.care
        kept = np.logaddexp(sums[:, GIVEN], faulty)
        faults = sums[:, CHANNEL] + log_rest(-sums[:, CHANNEL]) - noise.care
        charge = np.logaddexp(0.0, faults)
        meant = np.log1p(-noise.random) + kept - sums[:, FREE] - charge
        factor, charged = np.exp(sums[:, KEPT] - kept - noise.care), np.exp(sums[:, CHANNEL] - charge - noise.care)
        return Explained(meant, np.log(noise.random) - counts, faulty - kept, factor, charged, np.exp(faults - charge))


# ---------------------------------------------------------------------------------------------------------------------
# The likeliest noise
# ---------------------------------------------------------------------------------------------------------------------


def fit_noise(
    judges: Sequence[Judge], seed: int = 0, n_jobs: int | None = None, least: float = LEAST, most: int | None = None
) -> Noise:
    """The noise of highest likelihood of what is given (see the module); with few examples it stays near `BEFORE`.

    `least`: a share of all positions that is taken to be wrong at least. `most`: examples to fit it to, `MOST` by default.

    beta, tau and r by L-BFGS, and what is confused by `ROUNDS` of expectation maximisation.
    """
    judges = thinned(judges, seed, MOST if most is None else most)
    K = max((int(kernels.n_values(j.problem)) for j in judges), default=0)
    x, confused = BEFORE[:, 0], np.zeros((K, K))
    first = [look(j, noise_at(x, confused), True, n_jobs) for j in judges]
    positions = sum(int(one.starts[-1]) for one in first)
    if not positions:
        return noise_at(x, confused)
    counts = np.concatenate([one.sums[:, COUNT] for one in first])
    values = max(2.0, float(np.exp(counts.sum() / positions)))  # of a position, on average
    highest, trust = (float(np.log((values - 1.0) * (1.0 - share) / share)) for share in (least, max(least, FURTHER)))
    if any(kernels.is_partial(j.problem) for j in judges):
        trust = highest  # no care: whether there is a mistake is no single question where much is open
    x = fit_numbers(judges, counts, x, confused, (trust, highest), n_jobs)
    for _ in range(ROUNDS if K > 2 else 0):
        confused = confusions(judges, counts, noise_at(x, confused), n_jobs)
        x = fit_numbers(judges, counts, x, confused, (trust, highest), n_jobs)
    return noise_at(x, confused)


def fit_numbers(
    judges: Sequence[Judge], counts: np.ndarray, start: np.ndarray, confused: np.ndarray, most: tuple[float, float], n_jobs: Any
) -> np.ndarray:
    """What `noise_at` takes, of highest posterior, by L-BFGS; tau and tau + k are at most `most`."""
    import scipy.optimize

    value = log_posterior(judges, counts, confused, n_jobs)
    bounds = [(-4.0, 4.0), (0.1, max(0.2, most[0])), (-15.0, 4.0), (0.0, most[1] - most[0])]
    options = {"maxiter": 20, "ftol": 1e-5}
    minus = lambda x: tuple(-one / len(counts) for one in value(x))  # noqa: E731
    return scipy.optimize.minimize(minus, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x


def log_posterior(
    judges: Sequence[Judge], counts: np.ndarray, confused: np.ndarray, n_jobs: int | None = None
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """The log-likelihood of what is given and the prior together, and their gradient, as a function of what `noise_at` takes."""

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        noise = noise_at(x, confused)
        sums = np.concatenate([look(j, noise, False, n_jobs).sums for j in judges])
        how = explained(sums, counts, noise)
        total, p = np.logaddexp(how.meant, how.at_random), how.meaning
        mistaken = np.exp(how.mistaken)
        right = np.exp(np.minimum(sums[:, GIVEN] - sums[:, KEPT], 0.0))  # in the diminished model
        score = (1.0 - mistaken) * sums[:, GIVEN] + how.factor * (sums[:, KEPT_SCORE] - right * sums[:, GIVEN])
        rise = np.array(
            [
                p @ (score - sums[:, FREE_SCORE]),
                p @ (how.charged * sums[:, CHANNEL_COST] - how.factor * sums[:, KEPT_COST]),
                np.sum(1.0 - p) - noise.random * len(p),
                p @ (how.careless - mistaken),
            ]
        )
        away = (x - BEFORE[:, 0]) / BEFORE[:, 1]
        return float(total.sum() - 0.5 * away @ away), rise - away / BEFORE[:, 1]

    return value


def noise_at(x: np.ndarray, confused: np.ndarray) -> Noise:
    """Of log beta, tau, log r / (1 - r) and k."""
    return Noise(float(np.exp(x[0])), float(x[1]), float(1.0 / (1.0 + np.exp(-x[2]))), float(x[3]), confused)


def confusions(judges: Sequence[Judge], counts: np.ndarray, noise: Noise, n_jobs: int | None) -> np.ndarray:
    """d of the wrong positions, as they are expected to be in examples that are not random."""
    K, begin = len(noise.confused), 0
    pairs = np.zeros((K, K))  # true, given
    for j in judges:
        found = look(j, noise, False, n_jobs)
        how = explained(found.sums, counts[begin : begin + len(j.which)], noise)
        p = np.repeat(how.meaning * how.factor, np.diff(found.starts))
        np.add.at(pairs.T, truths(j.problem, found.starts), found.nodes * p[:, None])
        begin += len(j.which)
    np.fill_diagonal(pairs, 0.0)
    pairs += PSEUDO / (K - 1) * (1.0 - np.eye(K))
    return np.log((K - 1) * pairs / pairs.sum(axis=1, keepdims=True) + np.eye(K))


@compiled_loop
def truth_pass(problem, starts, out):
    """What is given, end to end."""
    for i in range(len(starts) - 1):
        kernels.truth(problem, i, out[starts[i] : starts[i + 1]])


def truths(problem: Any, starts: np.ndarray) -> np.ndarray:
    """What is given at all positions."""
    out = np.zeros(int(starts[-1]), np.int32)
    truth_pass(problem, starts, out)
    return out


def thinned(judges: Sequence[Judge], seed: int, most: int) -> list[Judge]:
    """Not too many of the examples, drawn at random."""
    n = sum(len(j.which) for j in judges)
    parts = sum(kernels.total_parts(j.problem) for j in judges)
    share = min(1.0, most / max(n, 1), MOST_PARTS / max(parts, 1))
    if share == 1.0:
        return list(judges)
    rng, found = np.random.default_rng((seed, 5)), []
    for j in judges:
        some = np.sort(rng.choice(len(j.which), max(1, round(share * len(j.which))), replace=False))
        found.append(j._replace(problem=kernels.take(j.problem, some), which=j.which[some]))
    return found


# ---------------------------------------------------------------------------------------------------------------------
# What follows
# ---------------------------------------------------------------------------------------------------------------------


def judged(
    problem: Any, judges: Sequence[Judge], noise: Noise, n_jobs: int | None = None, second_opinion: bool = True
) -> Judgement:
    """What judges and noise make of all examples of a problem, each of which has one judge."""
    whole = no_evidence(problem)
    examples, parts = np.full(len(whole.starts) - 1, -np.inf), np.full(int(whole.starts[-1]), -np.inf)
    contradicted, at_random = np.zeros(len(parts), np.bool_), np.zeros(len(examples))
    alone, counted = np.full(len(parts), -np.inf), 0.0
    second_opinion = second_opinion and bool(np.any(np.diff(whole.starts) > 1))
    mistaken = alone_of(judges, noise, n_jobs) if second_opinion and len(noise.confused) > 2 else None
    power = 1.0 if mistaken is None else mistaken.power
    for j in judges:
        found = look(j, noise, True, n_jobs, mistaken)
        sums, starts = found.sums, found.starts
        how = explained(sums, sums[:, COUNT], noise)
        at_random[j.which] = 1.0 - how.meaning
        random = np.repeat(at_random[j.which], np.diff(starts))
        factor = np.repeat(how.factor, np.diff(starts))
        # what is given says nothing of the truth where it is random; where it leaves no doubt, the prediction may have some
        told = np.repeat(totals(found.disputed, starts) > 0, np.diff(starts)) & (random < 0.5)
        believed = np.where(told, found.believed, found.predicted).astype(np.int32)
        gather(whole, j.which, Evidence(starts, found.given, believed, np.where(told, found.disputed, found.contradicted)))
        at = taken(whole.starts, j.which)[1]
        contradicted[at] = found.contradicted
        kept, given = np.minimum(found.kept, 1.0), np.minimum(found.given, 1.0)  # sums may round up
        by_chance = sums[:, GIVEN] - sums[:, FREE]
        with np.errstate(divide="ignore"):
            fault = factor * (1.0 - kept)
            right = np.where(factor > 0.5, 1.0 - factor + factor * kept, 1.0 - fault)  # no difference of equals where it counts
            wrong = (1.0 - random) * fault + random * (1.0 - given)
            parts[at] = np.log(wrong) - np.log((1.0 - random) * np.maximum(right, 0.0) + random * given)
            wrong = np.logaddexp(how.meant + how.mistaken, how.at_random + log_rest(by_chance))
            right = np.logaddexp(how.meant + log_rest(how.mistaken), how.at_random + by_chance)
            examples[j.which] = wrong - right
            alone[at] = np.clip(np.log(found.others) - power * np.log(given), -MOST_ODDS, MOST_ODDS)
        counted += sums[:, COUNT].sum()
    if second_opinion:
        values = max(2.0, float(np.exp(counted / len(parts))))
        examples, parts = both_opinions(whole.starts, examples, parts, alone - np.log(values - 1.0), at_random)
    return Judgement(whole, examples, parts, noise, contradicted, at_random)


def alone_of(judges: Sequence[Judge], noise: Noise, n_jobs: int | None) -> Alone:
    """What the second opinion takes mistakes for, by some of the examples."""
    free, p, given, counts = noise._replace(trust=0.0, confused=np.zeros_like(noise.confused)), [], [], []
    for j in thinned(judges, 0, MOST):
        found = look(j, noise, True, n_jobs)
        p.append(look(j, free, False, n_jobs).nodes)  # where nothing that is given is trusted, the model is alone
        given.append(truths(j.problem, found.starts))
        counts.append(np.repeat(explained(found.sums, found.sums[:, COUNT], noise).meaning, np.diff(found.starts)))
    return confused_alone(np.concatenate(p), np.concatenate(given), np.concatenate(counts))
