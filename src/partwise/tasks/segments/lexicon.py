"""Phrases that a model of segments knows: those of dictionaries, and segments that it was trained on.

That a span was a segment of label X in the training data is a feature, too. In training itself it counts only if a sentence far
from its own says so: else every true segment would have the feature, as would names that one text has again and again, and the
model would rely on it where it is not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from partwise.features.rows import Binary
from partwise.tasks.segments.data import OUTSIDE, Coding, SegmentedText
from partwise.text.phrases import LONGEST, PhraseSpans, PhraseTable

NEAR = 100  # sentences away, or a tenth of all: what is nearer may be of the same text, which new sentences are not
SEEN = "seen:"  #: before the label of a segment of the training data

Found = tuple[np.ndarray, np.ndarray, Binary]  #: what `segment_problem` takes as spans


def read_phrases(dictionary: Any) -> dict[str, list[tuple[str, ...]]]:
    """A dictionary as users give it, {name: phrases}, a phrase being a string or a sequence of words, checked."""
    if not isinstance(dictionary, Mapping):
        raise TypeError(f"dictionary must be a dict of lists of phrases, {{name: phrases}}. Got a {type(dictionary).__name__}.")
    found = {}
    for name, phrases in dictionary.items():
        if not isinstance(name, str) or isinstance(phrases, str | bytes) or not isinstance(phrases, Iterable):
            raise TypeError(
                f"dictionary must be a dict of lists of phrases, {{name: phrases}}. Got {name!r}: {type(phrases).__name__}."
            )
        if name.startswith(SEEN):
            raise ValueError(f"The name of a dictionary cannot begin with {SEEN!r}, which is what the training data are called.")
        found[name] = [tuple(phrase.split()) if isinstance(phrase, str) else tuple(phrase) for phrase in phrases]
        for phrase in found[name]:
            if not phrase or not all(isinstance(word, str) for word in phrase):
                raise ValueError(f"dictionary: {phrase!r} under {name!r} is no phrase: a string, or a list of words.")
    return found


def learn_phrases(
    text: SegmentedText, codes: np.ndarray, coding: Coding, dictionary: Any, learn: bool
) -> tuple[PhraseTable | None, Found | None]:
    """The phrases of dictionaries and, if they are to be learnt, of the true segments; and the spans of the training data.

    Nothing is learnt where true codes are sets.
    """
    given = {} if dictionary is None else read_phrases(dictionary)
    phrases: dict[tuple[str, ...], set[str]] = {}
    for name, own in given.items():
        for phrase in own:
            phrases.setdefault(tuple(word.lower() for word in phrase), set()).add(name)
    K = len(coding.kinds)
    learn = learn and codes.max(initial=-1) < 2 * K
    seen = [SEEN + kind for kind in coding.kinds if kind != OUTSIDE] if learn else []
    occurrences = list(true_phrases(text, codes, coding)) if learn else []
    for _, phrase, kind in occurrences:
        phrases.setdefault(phrase, set()).add(seen[kind])
    if not phrases:
        return None, None
    table = PhraseTable(phrases, [*given, *seen])
    spans = table.find(text.columns, form_of(text))
    if not occurrences:
        return table, (spans.first, spans.length, table.rows(spans))
    return table, without_own(table, spans, text, occurrences, len(given), len(seen))


def true_phrases(text: SegmentedText, codes: np.ndarray, coding: Coding) -> Iterable[tuple[int, tuple[str, ...], int]]:
    """(sentence, phrase, label) of every true segment."""
    column = form_of(text)
    lower = [cell.lower() for cell in text.columns.cells[column]] if text.columns.n_columns else []
    words, starts, K = text.columns.codes[column].tolist(), text.columns.starts, len(coding.kinds)
    begins = np.flatnonzero(codes >= K)
    owner = np.searchsorted(starts, begins, side="right") - 1
    ends = np.minimum(np.append(begins[1:], len(codes)), starts[owner + 1])
    outside = K + coding.kinds.index(OUTSIDE)
    for i, a, b, code in zip(owner.tolist(), begins.tolist(), ends.tolist(), codes[begins].tolist(), strict=True):
        if code != outside and b - a <= LONGEST:
            yield i, tuple(lower[k] for k in words[a:b]), code - K


def without_own(
    table: PhraseTable,
    spans: PhraseSpans,
    text: SegmentedText,
    occurrences: list[tuple[int, tuple[str, ...], int]],
    n: int,
    K: int,
) -> Found:
    """Spans of the training data: a label that a phrase was seen with counts if that was more than `NEAR` sentences away."""
    number = {phrase: k for k, phrase in enumerate(table.phrases)}
    place = np.array([number[phrase] * K + kind for _, phrase, kind in occurrences], np.int64)
    sentence = np.array([i for i, _, _ in occurrences], np.int64)
    first, last = np.full(len(table) * K, len(text), np.int64), np.full(len(table) * K, -1, np.int64)
    np.minimum.at(first, place, sentence)
    np.maximum.at(last, place, sentence)
    owner = (np.searchsorted(text.columns.starts, spans.first, side="right") - 1)[:, None]
    member = table.member[spans.phrase]
    near = min(NEAR, len(text) // 10)
    member[:, n:] = (first.reshape(-1, K)[spans.phrase] < owner - near) | (last.reshape(-1, K)[spans.phrase] > owner + near)
    kept = member.any(axis=1)
    spans = PhraseSpans(spans.first[kept], spans.length[kept], spans.phrase[kept])
    return spans.first, spans.length, table.rows(spans, member[kept])


def find_phrases(table: PhraseTable | None, text: SegmentedText) -> Found | None:
    """PhraseSpans of other sentences."""
    if table is None:
        return None
    spans = table.find(text.columns, form_of(text))
    return spans.first, spans.length, table.rows(spans)


def form_of(text: SegmentedText) -> int:
    """The column of the words."""
    return int(text.label_column == 0 and text.columns.n_columns > 1)


def dictionaries_of(table: PhraseTable | None) -> dict[str, list[tuple[str, ...]]] | None:
    """Those that a model was given."""
    if table is None:
        return None
    names = [name for name in table.kinds if not name.startswith(SEEN)]
    found = {name: [table.phrases[k] for k in np.flatnonzero(table.member[:, j])] for j, name in enumerate(names)}
    return found or None
