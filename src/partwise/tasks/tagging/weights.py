"""The weights of a trained model of sequences: what kind of model it is, its strongest features, how labels follow each other.

All work with any fitted `SequenceLabeler`, whatever its tokens are (attributes, matrices, columns), and name only the features
they show. Where labels have hidden states, weights are those of states, "NP/1" and "NP/2".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from partwise.features.given_labels import numbering
from partwise.features.sparse_weights import n_not_zero
from partwise.tasks.common.plots import heat_map, new_figure, save
from partwise.tasks.tagging.constraints import forbidden_transitions
from partwise.tasks.tagging.decoder import Decoder
from partwise.text.template_encoder import TemplateEncoder

BEGIN, END = "(begin)", "(end)"


def summary(model: Decoder) -> dict[str, Any]:
    """What kind of model it is: labels, features, how it was trained. Values are numbers, strings, lists and dicts of them."""
    encoder: Any = model.encoder_
    found: dict[str, Any] = {
        "labels": model.classes_.tolist(),
        "features": model.n_features_in_,
        "weights": int(model._kept_weights.size),
        "weights_not_zero": n_not_zero(model._kept_weights),
        "dtype": str(model._kept_weights.dtype),
        "tokens": encoder.kind,
    }
    if isinstance(encoder, TemplateEncoder):
        found["templates"] = [template.text for template in encoder.templates]
        found["columns"] = list(encoder.columns)
        found["hash_bits"] = encoder.hash_bits
    found |= {
        "min_count": getattr(encoder, "min_count", 1),
        "order": model.order,
        **({"hidden": model.hidden, "states": model.states_} if model.hidden > 1 else {}),
        "transitions": bool(model.use_transitions and getattr(encoder, "has_transitions", True)),
        "constraints": None if model.constraints is None else str(model.constraints),
        **model._how_learnt(),
        "temperature": model.temperature_,
        "label_column": model.label_column_,
        "given_scheme": model.given_scheme_,
        "training": model.training_,
    }
    return found


@dataclass(frozen=True)
class Feature:
    """A feature and its weight for some label."""

    number: int  #: column of ``model.coef_``
    name: str
    weight: float


@dataclass(frozen=True)
class TopFeatures:
    """The features that speak most for a label, and most against it, strongest first."""

    label: Any
    positive: list[Feature]
    negative: list[Feature]


def top_features(model: Decoder, n: int = 10, label: Any = None) -> dict[Any, TopFeatures]:
    """The n strongest features of each label, or of one.

    Parameters
    ----------
    model : SequenceLabeler
    n : int
        How many for, and how many against the label; features of weight zero are not shown.
    label : optional
        Only this one; with hidden states, those of this label.

    Returns
    -------
    dict
        ``{label: TopFeatures}``, in the order of ``model.classes_``, or of ``model.states_`` if labels have several states.

    Notes
    -----
    O(features) time for each label; names are made for the features shown.
    """
    if not (isinstance(n, int | np.integer) and n >= 1):
        raise ValueError(f"The 'n' parameter must be an int in the range [1, inf). Got {n!r} instead.")
    labels = model.states_
    wanted = range(len(labels)) if label is None else states_of(model, label)
    return {labels[k]: TopFeatures(labels[k], _strongest(model, k, n), _strongest(model, k, n, -1.0)) for k in wanted}


def _strongest(model: Decoder, k: int, n: int, sign: float = 1.0) -> list[Feature]:
    weights = sign * model.coef_[k].astype(np.float64)
    n = min(int(n), len(weights))
    first = np.argpartition(-weights, n - 1)[:n] if 0 < n < len(weights) else np.arange(len(weights))
    first = first[np.lexsort((first, -weights[first]))]
    return [Feature(j, model.feature_name(j), float(sign * weights[j])) for j in first.tolist() if weights[j] > 0]


@dataclass(frozen=True)
class FoundFeature:
    """A feature and its weights for all labels, in the order of ``model.states_``."""

    number: int
    name: str
    weights: np.ndarray = field(repr=False)


def find_features(model: Decoder, pattern: str, n: int | None = None) -> list[FoundFeature]:
    """Features whose name a regular expression finds something in, those with the largest weights first.

    Parameters
    ----------
    model : SequenceLabeler
    pattern : str
        As for `re.search`.
    n : int, optional
        At most so many.

    Notes
    -----
    Names are made in the order of the weights until n have matched: of all features if the pattern is rare.
    """
    try:
        search = re.compile(pattern).search
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}.") from None
    weights = model.coef_.T
    largest = np.abs(weights).max(1) if weights.size else np.zeros(0)
    found = []
    for j in np.argsort(-largest, kind="stable").tolist():
        name = model.feature_name(j)
        if search(name):
            found.append(FoundFeature(j, name, weights[j].astype(np.float64)))
            if n is not None and len(found) >= n:
                break
    return found


@dataclass(frozen=True)
class Transitions:
    """Weights of a label after another.

    Attributes
    ----------
    labels : list
    weights : array (labels + 1, labels + 1)
        From row to column; the last row is the beginning, the last column the end of a sequence; -inf where constraints
        forbid it. From the beginning to the end is 0.
    """

    labels: list[Any]
    weights: np.ndarray = field(repr=False)

    @property
    def rows(self) -> list[str]:
        """Names of the rows."""
        return [*map(str, self.labels), BEGIN]

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return [*map(str, self.labels), END]


def transitions(model: Decoder) -> Transitions:
    """The weights of transitions; of order 1 where the model has higher ones (see ``model.higher_transitions``)."""
    n = len(model.states_)
    weights = np.zeros((n + 1, n + 1))
    if model.use_transitions and getattr(model.encoder_, "has_transitions", True):
        weights[:n, :n] = model.transitions_
        weights[n, :n] = model.start_ if model.use_start else 0.0
        weights[:n, n] = model.stop_ if model.use_stop else 0.0
    forbidden = forbidden_transitions(model.constraints, model.classes_, type(model).__name__)
    for before, after in model._states.transitions(forbidden):
        weights[n if before is None else before, n if after is None else after] = -np.inf
    return Transitions(model.states_, weights)


def place_of(model: Decoder, label: Any) -> int:
    """The place of a label in ``model.classes_``."""
    number = numbering(model.classes_)
    if label not in number:
        raise ValueError(f"{label!r} is not one of the labels {', '.join(map(repr, number))}.")
    return number[label]


def states_of(model: Decoder, label: Any) -> range:
    """Rows of ``model.coef_`` that are about a label."""
    first = place_of(model, label) * model.hidden
    return range(first, first + model.hidden)


def draw_transitions(path: Path, transitions: Transitions) -> None:
    """Red: likely, blue: unlikely, grey: forbidden. From row to column; the last ones are the beginning and the end."""
    weights = np.where(np.isfinite(transitions.weights), transitions.weights, np.nan)
    n = len(weights)
    side = float(np.clip(1.5 + 0.38 * n, 4.0, 24.0))
    figure = new_figure(side + 1.0, side)
    image = heat_map(figure.add_subplot(), weights, transitions.rows, transitions.columns)
    figure.axes[0].set(xlabel="to", ylabel="from", title="Weights of transitions between labels")
    figure.colorbar(image, shrink=0.7)
    save(figure, path)
