"""How far chance could have moved a score: bootstrap intervals, and paired tests between two models.

Sequences are the units that are resampled, not tokens or spans: the labels of one sentence depend on one another.

*Interval* (percentile bootstrap; Efron, "Bootstrap methods: another look at the jackknife", 1979): draw n sequences out of n with
replacement, R times, and compute the measure of each draw; the interval holds the middle `level` of the R values.

*Paired bootstrap* (Koehn, "Statistical significance tests for machine translation evaluation", EMNLP 2004): the same draws for
both models, and the difference of their measures, d*. The p-value of "no difference" is twice the share of draws in which the
model that is better on all the data, by d, is not better::

    p = min(1, 2 (1 + #{d* <= 0}) / (1 + R))        if d > 0, and alike if d < 0; 1 if d = 0

*Approximate randomisation* (Noreen, "Computer-intensive methods for testing hypotheses", 1989; Yeh, "More accurate tests for the
statistical significance of result differences", COLING 2000): if the models did not differ, it would not matter which of them
said what. So swap their outputs for each sequence with probability 1/2, R times::

    p = (1 + #{|d*| >= |d|}) / (1 + R)

It assumes less than the bootstrap does, and is the test to report.

Cost: O(R n) time, in blocks of bounded memory. All sums are of integers, so results depend on the seed alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.tasks.common.resampling import Interval, check_resampling, draws, limits, sums_over, swaps
from partwise.tasks.tagging.counts import SPAN_MEASURES, SequenceCounts, measure_of

TESTS = ("randomisation", "bootstrap")


def bootstrap_intervals(
    counts: SequenceCounts,
    measures: Sequence[str] | None = None,
    types: Sequence[str | None] = (None,),
    *,
    n_resamples: int = 1000,
    level: float = 0.95,
    random_state: Any = 0,
) -> dict[str | None, dict[str, Interval]]:
    """Percentile bootstrap intervals of measures, all from the same draws.

    Parameters
    ----------
    counts : SequenceCounts
        From `sequence_counts`. Without sequences, values and limits are what the measures of nothing are (0 or nan).
    measures : sequence of str, optional
        Among ``counts.measures``: accuracy, sequence_accuracy and, of chunk tags, precision, recall, f1; None: all.
    types : sequence of str or None
        Types of spans, None for all together; for a single type there are precision, recall and f1.
    n_resamples : int
    level : float
        How much of the resampled values the interval holds.
    random_state : int, numpy Generator or None
        The same seed gives the same intervals; None draws anew each time.

    Returns
    -------
    dict
        ``{None: {measure: Interval}, type: {measure: Interval}}``

    Examples
    --------
    >>> from partwise.metrics import sequence_counts
    >>> counts = sequence_counts([["B-X"], ["B-X"], ["O"], ["B-X"]], [["B-X"], ["O"], ["O"], ["B-X"]])
    >>> bootstrap_intervals(counts, ["recall"])[None]["recall"].value
    0.6666666666666666
    """
    check_resampling(n_resamples, level)
    for name in measures or ():
        counts.check_measure(name)
    tables = [counts.table(kind) for kind in types]
    asked = [[name for name in measures or counts.measures if kind is None or name in SPAN_MEASURES] for kind in types]
    n = len(counts)
    rng = np.random.default_rng(random_state)
    if n and tables:
        drawn = np.split(sums_over(draws(n, n_resamples, rng), np.concatenate(tables, axis=1)), len(tables), axis=1)
    else:
        drawn = [np.zeros((1, table.shape[1])) for table in tables]
    found: dict[str | None, dict[str, Interval]] = {}
    for kind, table, sums, names in zip(types, tables, drawn, asked, strict=True):
        total = table.sum(0)
        found[kind] = {name: Interval(float(measure_of(name, total)), *limits(measure_of(name, sums), level)) for name in names}
    return found


@dataclass(frozen=True)
class Comparison:
    """Two models' outputs for the same sequences; made by `compare`.

    Attributes
    ----------
    measure, type : str
        What was compared.
    a, b, difference : float
        The measure of both, and a - b.
    low, high : float
        Bootstrap interval of the difference, paired.
    p_value : float
        Two-sided, of "there is no difference".
    test : str
        Where the p-value is from: "randomisation" or "bootstrap".
    n_resamples, level
        As given to `compare`.

    Examples
    --------
    >>> y, a, b = [["A", "B"]] * 20, [["A", "B"]] * 20, [["A", "A"]] * 20
    >>> found = compare(sequence_counts(y, a), sequence_counts(y, b), "accuracy")
    >>> found.difference, found.p_value < 0.01
    (0.5, True)
    """

    measure: str
    type: str | None
    a: float
    b: float
    difference: float
    low: float
    high: float
    p_value: float
    test: str
    n_resamples: int
    level: float

    def __str__(self) -> str:
        of_type = f" of {self.type}" if self.type is not None else ""
        name = {"randomisation": "approximate randomisation", "bootstrap": "paired bootstrap"}[self.test]
        return (
            f"{self.measure}{of_type}: {100 * self.a:.2f} against {100 * self.b:.2f}, difference {100 * self.difference:+.2f} "
            f"[{100 * self.low:+.2f}, {100 * self.high:+.2f}] ({100 * self.level:g} %), p = {self.p_value:.4f} ({name})"
        )


def compare(
    a: SequenceCounts,
    b: SequenceCounts,
    measure: str = "f1",
    type: str | None = None,
    *,
    test: str = "randomisation",
    n_resamples: int = 2000,
    level: float = 0.95,
    random_state: Any = 0,
) -> Comparison:
    """Whether one model's outputs are better than another's: difference, paired interval, p-value.

    Parameters
    ----------
    a, b : SequenceCounts
        From ``sequence_counts(y_true, y_pred)`` of both models, on the same sequences.
    measure : str
        Among ``a.measures``: accuracy, sequence_accuracy, precision, recall, f1.
    type : str, optional
        Compare only spans of this type.
    test : {"randomisation", "bootstrap"}
        Approximate randomisation or the paired bootstrap, see the module's docstring.
    n_resamples : int
        Draws for the interval and as many for the p-value, whose smallest value is 1 / (1 + n_resamples) (the bootstrap's, twice
        that).
    level, random_state
        As in `bootstrap_intervals`.

    Returns
    -------
    Comparison
        With difference 0, interval [0, 0] and p-value 1 where there is no difference to test; nan where a measure is.

    Examples
    --------
    >>> y, a, b = [["A", "B"]] * 20, [["A", "B"]] * 20, [["A", "A"]] * 20
    >>> compare(sequence_counts(y, a), sequence_counts(y, b), "accuracy").difference
    0.5
    """
    check_resampling(n_resamples, level)
    if test not in TESTS:
        raise ValueError(f"The 'test' parameter must be one of {', '.join(map(repr, TESTS))}. Got {test!r} instead.")
    for counts in (a, b):
        counts.check_measure(measure)
    _check_same_sequences(a, b)
    table_a, table_b = _table(a, type, b), _table(b, type, a)
    total_a, total_b = table_a.sum(0), table_b.sum(0)
    rng = np.random.default_rng(random_state)

    def difference(sums_a: np.ndarray, sums_b: np.ndarray) -> np.ndarray:
        return measure_of(measure, sums_a) - measure_of(measure, sums_b)

    observed = float(difference(total_a, total_b))
    k = table_a.shape[1]
    if len(a):
        sums = sums_over(draws(len(a), n_resamples, rng), np.concatenate([table_a, table_b], axis=1))
    else:
        sums = np.zeros((1, 2 * k))
    drawn = difference(sums[:, :k], sums[:, k:])
    low, high = limits(drawn, level)
    if np.isnan(observed):
        p_value = float("nan")
    elif observed == 0:
        p_value = 1.0
    elif test == "bootstrap":
        lost = np.count_nonzero(~(drawn * np.sign(observed) > 0))
        p_value = min(1.0, 2 * (1 + lost) / (1 + n_resamples))
    else:
        swap = table_a - table_b
        swap = swap[swap.any(1)]  # where both say the same, swapping changes nothing
        moved = sums_over(swaps(len(swap), n_resamples, rng), swap)
        swapped = difference(total_a - moved, total_b + moved)
        as_large = np.count_nonzero(np.abs(swapped) >= abs(observed) - 1e-12)  # ties are ties, whatever the rounding
        p_value = (1 + as_large) / (1 + n_resamples)
    return Comparison(
        measure,
        type,
        float(measure_of(measure, total_a)),
        float(measure_of(measure, total_b)),
        observed,
        low,
        high,
        float(p_value),
        test,
        int(n_resamples),
        float(level),
    )


def _table(counts: SequenceCounts, type: str | None, other: SequenceCounts) -> np.ndarray:
    """The counts of that type; all zero where only the other model found such spans."""
    if type is not None and type not in counts.types and type in other.types:
        table = counts.table()
        table[:, -3:] = 0
        return table
    return counts.table(type)


def _check_same_sequences(a: SequenceCounts, b: SequenceCounts) -> None:
    if len(a) != len(b):
        raise ValueError(f"The outputs to compare must be of the same sequences. Got {len(a)} and {len(b)} sequences.")
    pairs = [("tokens", a.n_tokens, b.n_tokens)]
    if a.n_true is not None and b.n_true is not None:
        pairs.append(("true spans", a.n_true.sum(1), b.n_true.sum(1)))
    for what, total_a, total_b in pairs:
        if (total_a != total_b).any():
            i = int(np.argmax(total_a != total_b))
            raise ValueError(
                f"The outputs to compare must be of the same sequences. Sequence {i} has {total_a[i]} {what} in one and "
                f"{total_b[i]} in the other."
            )
