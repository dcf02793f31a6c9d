"""What users say about labels and examples, as arrays: costs, class weights, sample weights."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from partwise.features.given_labels import numbering


def encode_labels(labels: Sequence[Hashable], classes: np.ndarray, refuse: Callable[[int], Exception]) -> np.ndarray:
    """Labels as int32; for the first one that is not in `classes`, raises ``refuse(its place)``."""
    get = numbering(classes).get
    codes = np.fromiter((get(label, -1) for label in labels), np.int32, len(labels))
    if len(codes) and codes.min() < 0:
        raise refuse(int(np.argmin(codes)))
    return codes


def cost_matrix(cost: Any, classes: np.ndarray, who: str) -> np.ndarray | None:
    """The (L, L) matrix meant by `cost`: in the order of `classes`, or ``{(true, answered): cost}``, 1 where not named."""
    if cost is None:
        return None
    n = len(classes)
    if isinstance(cost, Mapping):
        matrix = 1.0 - np.eye(n)
        number = numbering(classes)
        for pair, value in cost.items():
            if not (isinstance(pair, tuple) and len(pair) == 2 and pair[0] in number and pair[1] in number):
                raise ValueError(
                    f"The 'cost' parameter of {who} names {pair!r}; its keys must be pairs (true, answered) of the labels "
                    f"{shown(classes)}."
                )
            matrix[number[pair[0]], number[pair[1]]] = value
    else:
        matrix = np.array(cost, np.float64)
    if matrix.shape != (n, n):
        raise ValueError(
            f"The 'cost' parameter of {who} must have shape ({n}, {n}), one row per true label. Got {matrix.shape} instead."
        )
    if not np.isfinite(matrix).all() or (matrix < 0).any() or np.diagonal(matrix).any():
        raise ValueError(f"The 'cost' parameter of {who} must be finite and non-negative, with a zero diagonal.")
    return matrix


def class_weights(class_weight: Any, classes: np.ndarray, codes: np.ndarray, weight: np.ndarray | None, who: str) -> np.ndarray:
    """One weight per class: ``{label: weight}``, 1 where not named, or ``"balanced"``, n / (classes * count)."""
    n = len(classes)
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(codes, weight, minlength=n).astype(np.float64)
        present = counts > 0
        weights = np.ones(n)
        weights[present] = counts.sum() / (present.sum() * counts[present])
        return weights
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"The 'class_weight' parameter of {who} must be a dict, 'balanced' or None. Got {class_weight!r} instead."
        )
    weights, number = np.ones(n), numbering(classes)
    for label, value in class_weight.items():
        if label not in number:
            raise ValueError(
                f"The 'class_weight' parameter of {who} names {label!r}, which is not one of the labels {shown(classes)}."
            )
        if not (isinstance(value, Real) and 0 <= float(value) < np.inf):
            raise ValueError(
                f"The 'class_weight' parameter of {who} must hold non-negative numbers. Got {value!r} for {label!r}."
            )
        weights[number[label]] = value
    return weights


def example_weights(sample_weight: Any, n: int, what: str) -> np.ndarray:
    """One non-negative weight per example; ones if None."""
    weight = np.ones(n) if sample_weight is None else np.array(sample_weight, np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have one number per {what}, shape ({n},). Got shape {weight.shape}.")
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError("sample_weight must be finite and non-negative.")
    if not weight.any():
        raise ValueError(f"sample_weight is zero for every {what}.")
    return weight


def check_k(k: Any, most: float = np.inf) -> None:
    """Raise unless k is a number of answers to ask for."""
    if not (isinstance(k, int | np.integer) and not isinstance(k, bool) and 1 <= k <= most):
        raise ValueError(f"k must be an int in the range [1, {'inf)' if most == np.inf else f'{most}]'}. Got {k!r} instead.")


def shown(classes: np.ndarray, most: int = 10) -> str:
    """The labels, for a message: not more than a line of them."""
    labels = classes.tolist()
    text = ", ".join(repr(label) for label in labels[:most])
    return text if len(labels) <= most else f"{text}, ... ({len(labels)} in all)"
