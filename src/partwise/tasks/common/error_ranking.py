"""How well a ranking finds what is wrong: average precision, precision and recall among the first.

Of examples (or tokens) it is known which are wrong, planted errors say, and each has a number that says how suspicious it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def average_precision(is_wrong: Any, suspicion: Any) -> float:
    """Mean precision of a ranking over its hits: sum_k (R_k - R_{k-1}) P_k, where P_k and R_k are precision and recall down to
    the k-th distinct value of `suspicion`, the largest first.

    Ties count together, so that their order is of no account: if all are tied, it is the share of the wrong ones, what chance
    would give. nan if nothing is wrong. O(n log n).

    Parameters
    ----------
    is_wrong : bool array (n,)
    suspicion : array (n,)
        The larger, the more suspicious; infinities are fine.

    Examples
    --------
    >>> average_precision([True, False, True, False], [0.9, 0.8, 0.7, -1.0])
    0.8333333333333333
    """
    wrong, suspicion = _ranking(is_wrong, suspicion)
    total = np.count_nonzero(wrong)
    if not total:
        return float("nan")
    order = np.argsort(-suspicion, kind="stable")
    values, hits = suspicion[order], np.cumsum(wrong[order])
    last = np.append(np.flatnonzero(values[1:] != values[:-1]), len(values) - 1)  # of each run of ties
    return float(np.diff(hits[last], prepend=0) @ (hits[last] / (last + 1)) / total)


def precision_at(is_wrong: Any, suspicion: Any, k: int | None = None) -> float:
    """Share of the wrong among the k most suspicious; of ties at the border their mean share counts. nan if k is 0.

    Parameters
    ----------
    is_wrong, suspicion
        As in `average_precision`.
    k : int, optional
        As many as are wrong, by default: then precision and recall are the same.

    Examples
    --------
    >>> precision_at([True, False, True, False], [0.9, 0.8, 0.7, -1.0], 2)
    0.5
    """
    hits, k, _ = _hits(is_wrong, suspicion, k)
    return hits / k if k else float("nan")


def recall_at(is_wrong: Any, suspicion: Any, k: int | None = None) -> float:
    """Share of the wrong ones that are among the k most suspicious, likewise; nan if nothing is wrong.

    Parameters
    ----------
    is_wrong : bool array (examples,)
    suspicion : array (examples,)
    k : int, optional
        As many as are wrong, by default.

    Examples
    --------
    >>> recall_at([True, False, True, False], [0.9, 0.8, 0.7, -1.0], 3)
    1.0
    """
    hits, _, total = _hits(is_wrong, suspicion, k)
    return hits / total if total else float("nan")


def _hits(is_wrong: Any, suspicion: Any, k: int | None) -> tuple[float, int, int]:
    """Wrong ones among the first k, a fraction of those tied at the border; k; wrong ones in all."""
    wrong, suspicion = _ranking(is_wrong, suspicion)
    total = int(np.count_nonzero(wrong))
    k = total if k is None else k
    if not isinstance(k, int | np.integer) or isinstance(k, bool) or not 0 <= k <= len(wrong):
        raise ValueError(f"k must be an int in the range [0, {len(wrong)}], the number of examples. Got {k!r} instead.")
    if k == 0:
        return 0.0, 0, total
    border = np.partition(suspicion, len(suspicion) - k)[len(suspicion) - k]
    above, tied = suspicion > border, suspicion == border
    rest = k - np.count_nonzero(above)
    return float(np.count_nonzero(wrong & above) + rest * wrong[tied].mean()), int(k), total


def _ranking(is_wrong: Any, suspicion: Any) -> tuple[np.ndarray, np.ndarray]:
    wrong, values = np.asarray(is_wrong), np.asarray(suspicion, np.float64)
    if wrong.ndim != 1 or wrong.shape != values.shape:
        raise ValueError(f"is_wrong and suspicion must be of one length. Got shapes {wrong.shape} and {values.shape}.")
    if np.isnan(values).any():
        raise ValueError(f"suspicion must not hold NaN. Got one at {int(np.argmax(np.isnan(values)))}.")
    return wrong.astype(np.bool_), values
