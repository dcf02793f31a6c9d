"""Chance: scores of examples drawn anew, and the interval that they fall into.

Examples are the units that are drawn, not tokens, arcs or pairs: what is in one example depends on the rest of it. All measures
here are functions of sums over examples, so that counts of each are all that is needed (`Measure`).

Cost: O(R n) time for R draws of n examples, in blocks of bounded memory. The same seed gives the same draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

BLOCK = 1 << 20  # numbers drawn at a time


class Interval(NamedTuple):
    """A measure and the interval that chance could have moved it in.

    Attributes
    ----------
    value : float
        The measure.
    low, high : float
        The ends of the interval.

    Examples
    --------
    >>> counts = sequence_counts([["A"], ["B"]], [["A"], ["A"]])
    >>> bootstrap_intervals(counts, n_resamples=100)[None]["accuracy"].value
    0.5
    """

    value: float
    low: float
    high: float


def check_resampling(n_resamples: Any, level: Any) -> None:
    """Raise, in scikit-learn's words, for parameters that make no sense."""
    if not (isinstance(n_resamples, int | np.integer) and not isinstance(n_resamples, bool) and n_resamples >= 1):
        raise ValueError(f"The 'n_resamples' parameter must be an int in the range [1, inf). Got {n_resamples!r} instead.")
    if not (isinstance(level, float | np.floating) and 0 < level < 1):
        raise ValueError(f"The 'level' parameter must be a float in the range (0, 1). Got {level!r} instead.")


def draws(n: int, n_resamples: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Blocks (draws, n): how often each of n examples is in each draw; n_resamples draws in all."""
    for block in blocks(n, n_resamples):
        drawn = rng.integers(n, size=(block, n))
        drawn += n * np.arange(block)[:, None]
        yield np.bincount(drawn.ravel(), minlength=block * n).reshape(block, n).astype(np.float64)


def swaps(n: int, n_resamples: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Blocks (draws, n) of zeros and ones, by the toss of a coin."""
    for block in blocks(n, n_resamples):
        bits = np.unpackbits(rng.integers(256, size=(block, -(-n // 8)), dtype=np.uint8), axis=1, count=n)
        yield bits.astype(np.float64)


def blocks(n: int, n_resamples: int) -> Iterator[int]:
    """How many draws to make at a time."""
    size = max(1, BLOCK // max(n, 1))
    for done in range(0, n_resamples, size):
        yield min(size, n_resamples - done)


def sums_over(blocks: Iterator[np.ndarray], table: np.ndarray) -> np.ndarray:
    """(draws, columns): the sums of a table's rows over each draw."""
    return np.concatenate([block @ table for block in blocks])


def limits(values: np.ndarray, level: float) -> tuple[float, float]:
    """The middle `level` of the values; nan if there are none (a draw of empty examples has no accuracy and does not count)."""
    values = values[~np.isnan(values)]
    if not len(values):
        return float("nan"), float("nan")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


class Measure(NamedTuple):
    """A score that is a function of sums over examples."""

    name: str
    title: str  #: for people
    table: np.ndarray  #: (examples, columns)
    of: Callable[[np.ndarray], np.ndarray]  #: from sums (..., columns) to scores (...)


def ratio(name: str, title: str, above: Any, below: Any) -> Measure:
    """Sum of `above` over that of `below`, each (examples,); nan where the latter is zero. A mean, if `below` counts examples."""

    def share(sums: np.ndarray) -> np.ndarray:
        return np.divide(sums[..., 0], sums[..., 1], out=np.full(sums.shape[:-1], np.nan), where=sums[..., 1] > 0)

    return Measure(name, title, np.stack([np.asarray(above, float), np.asarray(below, float)], axis=1), share)


def with_intervals(measures: Sequence[Measure], n_resamples: int, level: float, seed: Any) -> dict[str, Interval]:
    """Percentile bootstrap intervals of all measures, from the same draws; their values alone if `n_resamples` is 0.

    Examples
    --------
    >>> found = with_intervals([ratio("accuracy", "right", [1, 0, 2], [2, 2, 2])], 100, 0.9, 0)
    >>> found["accuracy"].value
    0.5
    """
    table = np.concatenate([measure.table for measure in measures], axis=1)
    total, n = table.sum(0), len(table)
    drawn = np.full((1, table.shape[1]), np.nan)
    if n_resamples and n:
        check_resampling(n_resamples, level)
        drawn = sums_over(draws(n, n_resamples, np.random.default_rng(seed)), table)
    found, at = {}, 0
    for measure in measures:
        own = slice(at, at + measure.table.shape[1])
        at = own.stop
        found[measure.name] = Interval(float(measure.of(total[own])), *limits(measure.of(drawn[:, own]), level))
    return found
