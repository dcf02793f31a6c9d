"""Labels that are known, as packed problems keep them: one of K, or a set of them; what mistakes cost; what is allowed."""

from __future__ import annotations

import numpy as np


def check_gold(gold, k: int, known, allowed, what: str, place) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Check true labels in [0, k + sets); returns them, labels to start as targets, and the sets (none if all are single labels).

    A set of one label becomes that label. `place` names the position of an entry of `gold` in words.
    """
    known = np.zeros((0, k), np.bool_) if known is None else np.ascontiguousarray(known, np.bool_)
    if known.ndim != 2 or known.shape[1] != k:
        raise ValueError(f"`known` must have one row of {k} booleans for each set of acceptable labels. Got shape {known.shape}.")
    if len(gold) and (gold.min() < 0 or gold.max() >= k + len(known)):
        raise ValueError(f"{what} must be integers in [0, {k + len(known)}). Got {gold.min()} to {gold.max()}.")
    if not len(known) or not (gold >= k).any():
        return gold, gold, known[:0]
    several = known.sum(axis=1)
    empty = np.flatnonzero((gold >= k) & (several[np.maximum(gold - k, 0)] == 0))
    if len(empty):
        where = place(int(empty[0]))
        raise ValueError(f"The set of acceptable labels of {where} is empty. Where nothing is known, all are acceptable.")
    first = np.concatenate([np.arange(k), known.argmax(axis=1)]).astype(np.int32)  # the first label of each set
    single = np.concatenate([np.ones(k, np.bool_), several == 1])
    gold = np.where(single[gold], first[gold], gold).astype(np.int32)
    if gold.max() < k:
        return gold, gold, known[:0]
    targets = first[gold]
    if allowed is not None:  # rather a target that may be answered, where there is one
        some = np.flatnonzero(gold >= k)
        both = known[gold[some] - k] & np.asarray(allowed, np.bool_)[some]
        targets[some] = np.where(both.any(axis=1), both.argmax(axis=1), targets[some])
    return gold, targets, known


def costs_of_sets(costs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The cost matrix with a row for each set below: the cost against the nearest acceptable label, zero for those in the set."""
    rows = [np.where(fine[:, None], costs, np.inf).min(axis=0, initial=np.inf) for fine in known]
    rows = [np.where(np.isfinite(row), row, 0.0) for row in rows]  # an empty set that nobody refers to
    return np.ascontiguousarray(np.vstack([costs, *rows]))


def check_costs(costs, k: int) -> np.ndarray:
    """A (k, k) cost matrix: 0/1 if None, else validated."""
    if costs is None:
        return 1.0 - np.eye(k)
    costs = np.ascontiguousarray(costs, np.float64)
    if costs.shape != (k, k):
        raise ValueError(f"The cost matrix must have shape ({k}, {k}), one row per true label. Got {costs.shape}.")
    if not np.isfinite(costs).all() or (costs < 0).any() or np.diagonal(costs).any():
        raise ValueError("The cost matrix must be finite and non-negative, with a zero diagonal.")
    return costs


def pack_sets(allowed, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows of a boolean (n, k) array and which row each line uses; both empty if None."""
    if allowed is None:
        return np.zeros(0, np.int32), np.ones((1, k), np.bool_)
    allowed = np.asarray(allowed, np.bool_)
    if allowed.shape != (n, k):
        raise ValueError(f"`allowed` must have shape ({n}, {k}). Got {allowed.shape}.")
    sets, which = np.unique(allowed, axis=0, return_inverse=True)
    return which.reshape(-1).astype(np.int32), np.ascontiguousarray(sets)
