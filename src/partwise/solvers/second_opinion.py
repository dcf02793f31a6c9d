"""What positions say by themselves: a second opinion beside the joint one of `partwise.solvers.noise`.

Neighbours that are wrong together vouch for each other: who renames a span has made one mistake, and to the channel of `noise` it
is three, so that a whole corpus of them may look like a bad model without any. Hence a second opinion, of each position as if it
were all that is given. With p_t its probabilities by x alone, V values a position and a the share of positions that are wrong,
the log-odds are

    log sum_y p_t(y) e^d(y, g) / p_t(g) - log (V - 1) + log a / (1 - a)        over all y != g,

a being the likeliest share (of a composite likelihood: positions are taken for independent; those of examples that are random as
a whole do not count), and from all of these follows the probability that there is a mistake in an example. Log-odds are weighted
means of both opinions, of examples and of positions. The first one, by all that is given, has half of the weight if it finds as
many mistakes as the second; if it finds fewer, in proportion less, min(1, a' / a) / 2 with a' its own share: what positions show
by themselves, it has explained away. That an example is random as a whole only the first can say: there it counts alone. Classes
have no neighbours, and one opinion.

What is confused with what, d = log (V - 1) Q(y, g), it finds by itself (`confused_alone`): where the first opinion sees no
mistakes, it has no idea of what they are like. Who moves boundaries makes a few kinds of mistakes, again and again, and a model
that learns from them comes to expect them: they surprise it less than rare truths do. By Q they are told apart. And a model of
noisy labels is less sure than the truth: p_t(y)^b stands for p_t(y). Share, Q and b are those of highest composite likelihood,

    sum_t log ((1 - a) p_t(g)^b / Z_t + a sum_y p_t(y)^b / Z_t Q(y, g)),        Z_t = sum_y p_t(y)^b.

Cost: O(positions) a step, and for what is confused O(positions x values), of some of them (`MOST_CELLS`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise.engine.ragged import totals

LEAST = 0.002  # of all positions are wrong, as in every corpus that people have made
STEPS = 200  # of expectation and maximisation, at most
TINY = 1e-9
MOST_CELLS = 1_000_000  # positions times values that confusions are fitted to
PSEUDO = 20.0  # wrong positions of each value that were seen before the first, confused as values are frequent
CERTAIN = 1e-4  # a position whose other values have less probability than this says nothing of mistakes
FROM, TO, TRIALS = -1.0, 1.5, 12  # log b, and how many are tried
FEW_STEPS = 15  # of expectation and maximisation for each of them


class Alone(NamedTuple):
    """What the second opinion takes mistakes for."""

    power: float  #: b
    weights: np.ndarray  #: (V, V) of (true, given): (V - 1) Q, 0 on the diagonal


def both_opinions(
    starts: np.ndarray, examples: np.ndarray, parts: np.ndarray, alone: np.ndarray, random: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted means of log-odds and of what each position says by itself; `alone` lacks the share that is wrong.

    `random`: (N,) how probably an example is random as a whole, as the joint opinion has it.
    """
    known, judged_ones = parts > -np.inf, examples > -np.inf
    if not known.any():
        return examples, parts
    meant = np.maximum(np.repeat(1.0 - random, np.diff(starts))[known], TINY)
    share = share_alone(alone[known], meant)
    weight = 0.5 * min(1.0, float(np.average(sigmoid(parts[known]), weights=meant)) / share)
    weights = np.clip(weight + (1.0 - weight) * random, TINY, 1.0 - TINY)  # never zero times infinity
    each = np.repeat(weights, np.diff(starts))
    second = np.where(known, alone + np.log(share) - np.log1p(-share), -np.inf)
    none = -totals(np.logaddexp(0.0, second), starts)
    with np.errstate(divide="ignore"):
        second_examples = log_rest(none) - none
    parts, examples = parts.copy(), examples.copy()
    parts[known] = each[known] * parts[known] + (1.0 - each[known]) * second[known]
    weights = weights[judged_ones]
    examples[judged_ones] = weights * examples[judged_ones] + (1.0 - weights) * second_examples[judged_ones]
    return examples, parts


def confused_alone(p: np.ndarray, given: np.ndarray, counts: np.ndarray) -> Alone:
    """The sharpness and the confusions of highest composite likelihood.

    p: (positions, V) probabilities by x alone; given: (positions,); each position counts as `counts` says.
    """
    import scipy.optimize

    V = p.shape[1]
    telling = p[np.arange(len(p)), given] < 1.0 - CERTAIN
    enough = int(np.searchsorted(np.cumsum(telling) * V, MOST_CELLS, side="right"))
    p, given, counts, telling = p[:enough], given[:enough], counts[:enough], telling[:enough]
    frequent = np.bincount(given, counts, minlength=V) + TINY
    base = np.tile(frequent, (V, 1)) * (1.0 - np.eye(V))
    base /= base.sum(axis=1, keepdims=True)
    order = np.flatnonzero(telling)
    order = order[np.argsort(given[order], kind="stable")]
    log_p, codes, weights = np.log(np.maximum(p[order], TINY)), given[order], counts[order]
    first, rows = np.flatnonzero(np.r_[True, np.diff(codes) > 0][: len(codes)]), np.arange(len(codes))
    sure, Q, share = float(counts.sum() - weights.sum()), base, 0.02
    if not len(order):
        return Alone(1.0, (V - 1) * base)

    def fit(power: float, steps: int) -> float:
        """Steps from where the last sharpness has ended; minus the likelihood."""
        nonlocal Q, share
        others = np.exp(power * log_p)
        others /= others.sum(axis=1, keepdims=True)
        right = others[rows, codes]
        others[rows, codes] = 0.0
        for _ in range(steps):
            wrong = others * Q.T[codes]
            total = wrong.sum(axis=1)
            either = (1.0 - share) * right + share * total
            pairs = base * PSEUDO
            wrong *= (share * weights / either)[:, None]
            pairs[:, codes[first]] += np.add.reduceat(wrong, first, axis=0).T
            Q = pairs / pairs.sum(axis=1, keepdims=True)
            share = float(np.clip((share * weights * total / either).sum() / counts.sum(), LEAST, 0.5))
        return -float(weights @ np.log(either) + sure * np.log1p(-share))

    options = {"maxiter": TRIALS, "xatol": 0.02}
    found = scipy.optimize.minimize_scalar(
        lambda log_power: fit(float(np.exp(log_power)), FEW_STEPS), bounds=(FROM, TO), method="bounded", options=options
    )
    power = float(np.exp(found.x))
    fit(power, 2 * FEW_STEPS)
    return Alone(power, (V - 1) * Q)


def share_alone(log_odds: np.ndarray, counts: np.ndarray) -> float:
    """The likeliest share of wrong positions, at least `LEAST`, by expectation and maximisation; each counts as `counts` says."""
    share = 0.02
    for _ in range(STEPS):
        before = share
        wrong = sigmoid(log_odds + np.log(share) - np.log1p(-share))
        share = float(np.clip(np.average(wrong, weights=counts), LEAST, 0.5))
        if abs(share - before) < 1e-4 * before:
            break
    return share


def sigmoid(log_odds: np.ndarray) -> np.ndarray:
    """p of log p / (1 - p)."""
    return 0.5 * (1.0 + np.tanh(0.5 * log_odds))


def log_rest(log_p: np.ndarray) -> np.ndarray:
    """log(1 - p) of log p."""
    log_p = np.minimum(log_p, 0.0)
    return np.where(log_p > -0.5, np.log(-np.expm1(log_p)), np.log1p(-np.exp(log_p)))
