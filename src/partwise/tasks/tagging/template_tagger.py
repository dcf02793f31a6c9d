"""What the readers of other programs' models make: a tagger of columns that writes out features as that program does.

The weights become those of a `SequenceLabeler` of attributes. Features that a label has alone are its attributes; those of pairs
of labels that do not look at the text are its transitions, and those that do, features of pairs
(`partwise.structures.chain.pairs`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from partwise.engine.memory import require_memory
from partwise.text.given_encoders import AttributeEncoder

#: the features of token t of a sentence
Written = Callable[[Sequence[Sequence[str]], int], list[str]]
Sparse = tuple[np.ndarray, np.ndarray]  #: places of weights that are not zero, and those weights


class TemplateTagger:
    """Labels sentences of columns with a model that was read.

    Attributes
    ----------
    labeler : SequenceLabeler
        Of attributes: the features that `attributes` writes out.
    templates : list of str
    n_columns : int
        Cells that a token needs, at least.
    """

    def __init__(self, labeler: Any, templates: list[str], n_columns: int, written: Written):
        self.labeler, self.templates, self.n_columns = labeler, templates, n_columns
        self._written = written

    def attributes(self, sentence: Sequence[Sequence[str]]) -> list[list[str]]:
        """The features of each token of a sentence, a list of rows of cells."""
        for t, row in enumerate(sentence):
            if len(row) < self.n_columns:
                raise ValueError(f"Token {t}: the model looks at {self.n_columns} columns. Got {len(row)}.")
        return [self._written(sentence, t) for t in range(len(sentence))]

    def tag(self, sentence: Sequence[Sequence[str]]) -> list[str]:
        """The best labels of one sentence."""
        return self.labeler.predict([self.attributes(sentence)])[0]

    def predict(self, sentences: Sequence[Any]) -> list[list[str]]:
        """The best labels of each sentence."""
        return self.labeler.predict([self.attributes(sentence) for sentence in sentences])

    def predict_marginals(self, sentences: Sequence[Any]) -> list[np.ndarray]:
        """Probabilities of labels, an array (tokens, labels) for each sentence; labels as in ``labeler.classes_``."""
        return self.labeler.predict_marginals([self.attributes(sentence) for sentence in sentences])


def check_room(n_labels: int, n_features: int) -> None:
    """Refuse what would not fit into memory: a weight for each feature and label takes room, whether it is in the file or not."""
    needed = 24.0 * (n_features + 2 * n_labels + 2) * n_labels  # as they are read, in another order, and put together
    require_memory(needed, 1, f"A model of {n_labels:,} labels and {n_features:,} features", "Train with fewer of either")


def labeler_of(
    labels: Sequence[str],
    single: Mapping[str, np.ndarray],
    moves: np.ndarray,
    pairs: Mapping[str, Sparse],
) -> Any:
    """A `SequenceLabeler` with given weights, labels in the order of `labels`.

    Parameters
    ----------
    labels : list of str
    single : dict {feature: array (L,)}
    moves : array (L, L)
        Of a label (column) after a label (row).
    pairs : dict {feature: (codes, values)}
        The same, where a token has the feature: label before x L + label, ascending, and the weight.
    """
    from partwise import SequenceLabeler

    size = len(labels)
    if len(set(labels)) != size:
        raise ValueError("a label occurs twice")
    check_room(size, len(single))
    order = sorted(range(size), key=lambda k: labels[k])
    place = np.argsort(order)
    rows = np.array(list(single.values()), float).reshape(len(single), size)
    table = np.concatenate([rows, moves[order], np.zeros((2, size))])[:, order]
    encoder = AttributeEncoder(1, np.float64)
    encoder.vocabulary = {name: k for k, name in enumerate(single)}
    weights = table.ravel()
    used = {name: some for name, some in pairs.items() if some[1].any()}
    if used:
        encoder.pairs = AttributeEncoder(1, np.float64)
        encoder.pairs.vocabulary = {name: k for k, name in enumerate(used)}
        codes, own = [], []
        for some, values in used.values():
            there = place[some // size] * size + place[some % size]
            codes.append(np.sort(there).astype(np.int32))
            own.append(values[np.argsort(there)])
        encoder.pair_table = np.cumsum([0, *map(len, codes)]), np.concatenate(codes)
        weights = np.concatenate([weights, *own, np.zeros(-sum(map(len, own)) % size)])
    labeler = SequenceLabeler(loss="crf", use_start=False, use_stop=False, dtype="float64")
    labeler.encoder_ = encoder
    labeler.classes_ = np.array([labels[k] for k in order])
    labeler.weights_ = np.ascontiguousarray(weights)
    labeler.label_column_, labeler.temperature_, labeler.solver_, labeler.C_ = None, 1.0, "lbfgs", 1.0
    return labeler
