"""Phrases that are known, and the spans of a text that are one of them: features of whole segments.

A phrase is a sequence of words, in lower case, and has some *kinds*: those that a dictionary lists it under, or the labels that
it had in the training data. All spans are looked up at once in a trie whose edges are sorted integers, ``node * words + word``: a
span of d words takes d binary searches, and a start that no phrase goes on from costs nothing more. O(tokens * log edges) time
for each word of the longest phrase; exact, no hash.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from partwise.features.rows import Binary
from partwise.files.packed_strings import pack_strings, unpack_strings
from partwise.text.columns import Columns

MANY = 3  # words of a phrase, from which on they are not counted
BETWEEN = "\x1f"  # between the words of a phrase in a file
LONGEST = 100  # words of a phrase

Phrase = tuple[str, ...]


class PhraseSpans(NamedTuple):
    """PhraseSpans that are phrases, by their first token and then by length."""

    first: np.ndarray  #: int64, of all tokens end to end
    length: np.ndarray  #: int64
    phrase: np.ndarray  #: int64, which one


class PhraseTable:
    """Phrases and their kinds.

    Parameters
    ----------
    phrases : mapping from phrase to kinds
        Words are put into lower case.
    kinds : sequence of str
        All of them, in the order that their features are numbered: two features for each, the second by the number of words.

    Examples
    --------
    >>> from partwise.text.columns import code_tokens
    >>> table = PhraseTable({("new", "york"): ["LOC"], ("york",): ["PER"]}, ["LOC", "PER"])
    >>> columns = code_tokens([[("in",), ("New",), ("York",)]])
    >>> spans = table.find(columns)
    >>> spans.first.tolist(), spans.length.tolist(), [table.feature_name(j) for j in table.rows(spans).index]
    ([1, 2], [2, 1], ['in(LOC)', 'in(LOC)|2 words', 'in(PER)', 'in(PER)|1 word'])
    """

    def __init__(self, phrases: Mapping[Phrase, Iterable[str]], kinds: Sequence[str]):
        self.kinds = list(kinds)
        number = {kind: k for k, kind in enumerate(self.kinds)}
        merged: dict[Phrase, set[int]] = {}
        for phrase, own in phrases.items():
            if not 1 <= len(phrase) <= LONGEST:
                raise ValueError(f"A phrase must have from 1 to {LONGEST} words. Got {len(phrase)}: {' '.join(phrase)[:60]!r}.")
            merged.setdefault(tuple(word.lower() for word in phrase), set()).update(number[kind] for kind in own)
        self.phrases = list(merged)
        self.member = np.zeros((len(self.phrases), len(self.kinds)), bool)
        for row, those in zip(self.member, merged.values(), strict=True):
            row[list(those)] = True
        self._index()

    def _index(self) -> None:
        """The trie: an edge for each prefix of a phrase, and which phrase ends there."""
        self.words = {word: k for k, word in enumerate(dict.fromkeys(word for phrase in self.phrases for word in phrase))}
        nodes: dict[tuple[int, int], int] = {}
        ends = {}
        for k, phrase in enumerate(self.phrases):
            node = 0
            for word in phrase:
                node = nodes.setdefault((node, self.words[word]), len(nodes) + 1)
            ends[node] = k
        width = max(len(self.words), 1)
        keys = np.array([node * width + word for node, word in nodes], np.int64)
        order = np.argsort(keys)
        self._edges, self._children = keys[order], np.array(list(nodes.values()), np.int64)[order]
        self._phrase_at = np.full(len(nodes) + 1, -1, np.int64)
        self._phrase_at[list(ends)] = list(ends.values())

    def __len__(self) -> int:
        return len(self.phrases)

    @property
    def n_features(self) -> int:
        return len(self.kinds) * (1 + MANY)

    def feature_name(self, j: int) -> str:
        """What feature j is called."""
        kind, words = divmod(j, 1 + MANY)
        if words == 0:
            return f"in({self.kinds[kind]})"
        return f"in({self.kinds[kind]})|{words}{'+' if words == MANY else ''} word{'s' if words > 1 else ''}"

    def find(self, columns: Columns, column: int = 0) -> PhraseSpans:
        """All spans of words, the cells of a column, that are phrases."""
        words = np.zeros(0, np.int64)  # of nothing but empty sentences, which have no columns
        if columns.n_columns:
            known = np.array([self.words.get(cell.lower(), -1) for cell in columns.cells[column]] or [-1], np.int64)
            words = known[columns.codes[column]]
        ends = np.repeat(columns.starts[1:], np.diff(columns.starts))
        at, node, found = np.arange(len(words)), np.zeros(len(words), np.int64), []
        for d in range(1, max(map(len, self.phrases), default=0) + 1):
            inside = at + d <= ends[at]
            at, node = at[inside], node[inside]
            word = words[at + d - 1]
            key = node * max(len(self.words), 1) + word
            place = np.minimum(np.searchsorted(self._edges, key), len(self._edges) - 1)
            there = (word >= 0) & (self._edges[place] == key)
            at, node = at[there], self._children[place[there]]
            whole = self._phrase_at[node] >= 0
            found.append(np.stack([at[whole], np.full(int(whole.sum()), d), self._phrase_at[node[whole]]]))
        first, length, phrase = np.concatenate([np.zeros((3, 0), np.int64), *found], axis=1)
        order = np.lexsort((length, first))
        return PhraseSpans(first[order], length[order], phrase[order])

    def rows(self, spans: PhraseSpans, member: np.ndarray | None = None) -> Binary:
        """Features of spans; `member`: the kinds of each, bool (spans, kinds), where they are not those of its phrase."""
        member = self.member[spans.phrase] if member is None else member
        which, kind = np.nonzero(member)
        words = np.minimum(spans.length, MANY)[which]
        index = np.stack([kind * (1 + MANY), kind * (1 + MANY) + words], axis=1).astype(np.int32)
        ptr = np.concatenate([[0], 2 * np.cumsum(member.sum(axis=1))]).astype(np.int64)
        return Binary(ptr, index.reshape(-1), self.n_features)

    # -- saving -------------------------------------------------------------------------------------------------------

    def to_state(self) -> tuple[list[str], dict[str, np.ndarray]]:
        """The kinds, and arrays."""
        text, offsets = pack_strings([BETWEEN.join(phrase) for phrase in self.phrases])
        return self.kinds, {"phrase_words": text, "phrase_offsets": offsets, "phrase_kinds": self.member.astype(np.uint8)}

    @classmethod
    def from_state(cls, kinds: Any, tensors: Mapping[str, np.ndarray]) -> PhraseTable:
        """The table again; what does not fit together is a ValueError."""
        if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
            raise ValueError("the kinds of phrases are not a list of strings")
        texts = unpack_strings(tensors.get("phrase_words"), tensors.get("phrase_offsets"), "the phrases")
        member = tensors.get("phrase_kinds")
        if member is None or member.dtype != np.uint8 or member.shape != (len(texts), len(kinds)):
            raise ValueError("the kinds of the phrases are missing or have a wrong shape")
        table = cls({}, kinds)
        table.phrases, table.member = [tuple(text.split(BETWEEN)) for text in texts], member > 0
        if any(len(phrase) > LONGEST for phrase in table.phrases):
            raise ValueError("a phrase is too long")
        table._index()
        return table
