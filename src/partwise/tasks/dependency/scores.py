"""How good dependency trees are: attachment scores.

UAS, the unlabelled attachment score, is the share of words with the right head; LAS, the labelled one, of those with the right
head and relation. Whether punctuation counts is a convention: the CoNLL shared tasks of 2006 and 2007 left it out, that of 2018,
on Universal Dependencies, did not, and cut subtypes off relations (``nsubj:pass`` is ``nsubj``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class AttachmentScores(NamedTuple):
    """Shares between 0 and 1, nan where there are no words; and how many words and sentences they are of.

    Examples
    --------
    >>> scores = attachment_scores([2, 0], [2, 0], ["nsubj", "root"], ["obj", "root"], starts=[0, 2])
    >>> scores.uas, scores.las, scores.words
    (1.0, 0.5, 2)
    """

    uas: float
    las: float
    label_accuracy: float  #: right relation, whatever the head
    complete: float  #: sentences with all heads right
    words: int
    sentences: int


def attachment_scores(
    heads: Sequence[int] | np.ndarray,
    predicted: Sequence[int] | np.ndarray,
    relations: Sequence[str] | None = None,
    predicted_relations: Sequence[str] | None = None,
    *,
    starts: np.ndarray | None = None,
    ignore: np.ndarray | None = None,
    subtypes: bool = True,
) -> AttachmentScores:
    """UAS and LAS.

    Parameters
    ----------
    heads, predicted : integers (words,)
        Sentences end to end. Words whose true head is not known (negative) do not count.
    relations, predicted_relations : sequences of str, optional
        Without them LAS is nan.
    starts : integers (sentences + 1,), optional
        Where sentences begin, for the share of complete ones.
    ignore : bool array (words,), optional
        Words that do not count: punctuation.
    subtypes : bool
        Whether what follows a colon in a relation matters.

    Examples
    --------
    >>> scores = attachment_scores([2, 0, 2], [2, 0, 1], ["nsubj", "root", "obj"], ["nsubj", "root", "obj"])
    >>> round(scores.uas, 2), round(scores.las, 2), scores.label_accuracy
    (0.67, 0.67, 1.0)
    """
    heads, predicted = np.asarray(heads), np.asarray(predicted)
    if heads.shape != predicted.shape or heads.ndim != 1:
        raise ValueError(f"heads and predicted must be as long as each other. Got {heads.shape} and {predicted.shape}.")
    counts = heads >= 0
    if ignore is not None:
        counts &= ~np.asarray(ignore, bool)
    right = heads == predicted
    n = int(counts.sum())

    def share(some: np.ndarray) -> float:
        return float(some[counts].mean()) if n else float("nan")

    las = labels = float("nan")
    if relations is not None and predicted_relations is not None:
        if len(relations) != len(heads) or len(predicted_relations) != len(heads):
            raise ValueError(f"There must be a relation for each of {len(heads)} words.")
        if not subtypes:
            relations, predicted_relations = ([r.partition(":")[0] for r in some] for some in (relations, predicted_relations))
        same = np.array([a == b for a, b in zip(relations, predicted_relations, strict=True)], bool)
        las, labels = share(right & same), share(same)
    complete, sentences = float("nan"), 0
    if starts is not None:
        wrong = np.concatenate([[0], np.cumsum(counts & ~right)])[np.asarray(starts)]
        sentences = len(wrong) - 1
        complete = float((np.diff(wrong) == 0).mean()) if sentences else float("nan")
    return AttachmentScores(share(right), las, labels, complete, n, sentences)
