"""How good labels of nodes are, be they pixels, nodes of any graph, or the labels of a multilabel problem.

Accuracy is the share of right nodes (of a multilabel problem, one less the Hamming loss); ``complete`` the share of graphs with
no wrong node (subset accuracy). For each label: precision, recall, F1, and intersection over union, the usual measure of
segmentations,

    IoU = nodes that have the label and got it / nodes that have it or got it.

Nodes whose true label is not known do not count.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np


class LabelScores(NamedTuple):
    """Of one label, shares between 0 and 1; nan where it does not occur.

    Examples
    --------
    >>> node_scores([["a", "b"]], [["a", "a"]]).labels["a"].precision
    0.5
    """

    precision: float
    recall: float
    f1: float
    iou: float
    nodes: int  #: that have it


class NodeScores(NamedTuple):
    """Shares between 0 and 1; nan where there are no nodes.

    Examples
    --------
    >>> scores = node_scores([["a", "b"]], [["a", "a"]])
    >>> scores.accuracy, scores.complete, scores.confusion.tolist()
    (0.5, 0.0, [[1, 0], [1, 0]])
    """

    accuracy: float
    complete: float  #: graphs without a wrong node
    macro_f1: float  #: mean over labels that occur
    mean_iou: float
    labels: dict[Hashable, LabelScores]
    confusion: np.ndarray  #: [true, answered]
    nodes: int
    graphs: int

    @property
    def hamming_loss(self) -> float:
        """The share of wrong nodes."""
        return 1.0 - self.accuracy


def node_scores(truth: Sequence[Any], found: Sequence[Any], classes: Sequence[Hashable] | np.ndarray | None = None) -> NodeScores:
    """Compare labels graph by graph.

    Parameters
    ----------
    truth, found : lists of arrays or lists of labels
        Of the same shapes. Integers from 0 on with -1 for unknown, if `classes` is given; else any labels, None for unknown.
    classes : optional
        What the numbers stand for.

    Examples
    --------
    >>> node_scores([["a", "b"]], [["a", "b"]]).accuracy
    1.0
    """
    if len(truth) != len(found):
        raise ValueError(f"There are {len(truth)} graphs, but answers to {len(found)}.")
    true = [_flat(labels) for labels in truth]
    answered = [_flat(labels) for labels in found]
    for i, (a, b) in enumerate(zip(true, answered, strict=True)):
        if len(a) != len(b):
            raise ValueError(f"graph {i} has {len(a)} nodes, but the answer {len(b)}.")
    sizes = [len(a) for a in true]
    t, f = [label for a in true for label in a], [label for b in answered for label in b]
    if classes is None:
        from partwise.features.given_labels import learn_labels, numbering

        classes = learn_labels([label for label in (*t, *f) if label is not None])
        number = numbering(classes)
        t, f = [-1 if label is None else number[label] for label in t], [number.get(label, -1) for label in f]
    return node_scores_coded(np.array(t, np.int64), np.array(f, np.int64), np.array(sizes, np.int64), list(classes))


def node_scores_coded(truth: np.ndarray, found: np.ndarray, sizes: np.ndarray, classes: Sequence[Hashable]) -> NodeScores:
    """The same for numbers of labels end to end, -1: unknown.

    Parameters
    ----------
    truth, found : int arrays (nodes,)
        Numbers of labels, graphs end to end; -1: unknown.
    sizes : int array (graphs,)
        Nodes of each.
    classes : sequence
        What the numbers stand for.

    Examples
    --------
    >>> import numpy as np
    >>> node_scores_coded(np.array([0, 1]), np.array([0, 0]), np.array([2]), ["a", "b"]).accuracy
    0.5
    """
    n, known = len(classes), truth >= 0
    confusion = np.zeros((n, n), np.int64)
    np.add.at(confusion, (truth[known], found[known]), 1)
    has, got, right = confusion.sum(axis=1), confusion.sum(axis=0), np.diagonal(confusion)
    labels = {}
    for k, label in enumerate(classes):
        either = has[k] + got[k] - right[k]
        labels[label] = LabelScores(
            _share(right[k], got[k]),
            _share(right[k], has[k]),
            _share(2 * right[k], has[k] + got[k]),
            _share(right[k], either),
            int(has[k]),
        )
    graph = np.repeat(np.arange(len(sizes)), sizes)
    told = np.bincount(graph[known], minlength=len(sizes)) > 0
    wrong = np.bincount(graph[known & (truth != found)], minlength=len(sizes)) > 0
    return NodeScores(
        _share(right.sum(), has.sum()),
        _share((told & ~wrong).sum(), told.sum()),
        _mean([scores.f1 for scores in labels.values()]),
        _mean([scores.iou for scores in labels.values()]),
        labels,
        confusion,
        int(has.sum()),
        int(told.sum()),
    )


def _flat(labels: Any) -> list[Any]:
    if isinstance(labels, np.ndarray):
        return labels.reshape(-1).tolist()
    labels = list(labels)
    if labels and all(isinstance(row, list | tuple | np.ndarray) for row in labels):  # a picture
        return [label for row in labels for label in row]
    return labels


def _share(part: Any, whole: Any) -> float:
    return float(part / whole) if whole else float("nan")


def _mean(values: list[float]) -> float:
    known = [value for value in values if value == value]
    return float(np.mean(known)) if known else float("nan")
