"""Relations of arcs: one example for each arc of a tree, to be classified given the arc."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.features.arc_rows import ArcRows
from partwise.features.rows import take_rows
from partwise.losses.records import Loss, get_loss
from partwise.tasks.dependency.data import Sentences

RELATION_BITS = 17  # features of an arc's relation are 2^17, each with a weight for every relation


def relation_rows(parser: Any, given: Sentences, heads: np.ndarray) -> ArcRows:
    """Features of the arcs of these trees, a row for each word; for a head that is not known, the arc from the root."""
    rows, lengths = parser._arcs(given, RELATION_BITS), given.lengths
    first = np.cumsum(lengths * (lengths + 1)) - lengths * (lengths + 1)
    number = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return take_rows(rows, np.repeat(first, lengths) + number * np.repeat(lengths + 1, lengths) + np.maximum(heads, 0))


def learns_relations_by(loss: Loss) -> Loss:
    """The loss of a parser, where it can be that of classes too."""
    return loss if loss.is_convex and loss.uses_cost else get_loss("hinge")
