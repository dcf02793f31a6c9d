"""What a constituency parser is given: bracketed trees, or sentences in Python with trees or without, as numbered words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.tasks.constituency.files import Brackets, Constituent
from partwise.tasks.constituency.grammar import check_labels
from partwise.text.columns import Columns, code_tokens

NAMES, BARE = ("form", "tag", "suffix", "shape", "coarse"), ("form", "suffix", "shape")


@dataclass(frozen=True)
class Constituents:
    """Sentences, with tags or without, and their trees, if they are known."""

    words: list[list[str]]
    tags: list[list[str]] | None
    trees: list[Constituent] | None
    places: list[str]  #: where each came from, for messages

    def __len__(self) -> int:
        return len(self.words)

    @property
    def lengths(self) -> np.ndarray:
        """Words of each sentence."""
        return np.array([len(words) for words in self.words], np.int64)

    def take(self, which: np.ndarray) -> Constituents:
        """The sentences numbered `which`."""
        given = (self.words, self.tags, self.trees, self.places)
        return Constituents(*(None if some is None else [some[i] for i in which] for some in given))  # type: ignore[arg-type]

    def columns(self, tagged: bool) -> tuple[Columns, tuple[str, ...]]:
        """Numbered cells of the words, and the names of their columns."""
        names = NAMES if tagged else BARE
        if not any(self.words):
            starts = np.zeros(len(self) + 1, np.int64)
            return Columns(np.zeros((len(names), 0), np.int32), starts, [[] for _ in names]), names
        cells = []
        for i, words in enumerate(self.words):
            own = [(word, word[-3:].lower(), shape(word)) for word in words]
            if tagged and self.tags is not None:
                own = [(a, tag, b, c, tag[:2]) for (a, b, c), tag in zip(own, self.tags[i], strict=True)]  # type: ignore[misc]
            cells.append(own)
        return code_tokens(cells), names


def shape(word: str) -> str:
    """Capital, other letters, digits, other signs; runs of one kind are one letter."""
    kinds = ["X" if c.isupper() else "x" if c.isalpha() else "9" if c.isdigit() else c for c in word]
    return "".join(kind for k, kind in enumerate(kinds) if k == 0 or kinds[k - 1] != kind)


def read_constituents(X: Any, y: Any = None, tagged: bool = True) -> Constituents:
    """From `Brackets`, a list of trees, or a list of sentences: lists of words, or of (word, tag).

    y : trees, or texts in brackets; of brackets and trees, they themselves by default.
    tagged : whether tags are needed; a sentence without is an error then.
    """
    if isinstance(X, str | bytes) or not isinstance(X, Sequence | Brackets):
        raise TypeError(
            f"Sentences must be Brackets, a list of trees, or a list of lists of words. Got {type(X).__name__} instead."
        )
    given = X.trees if isinstance(X, Brackets) else list(X)
    words: list[list[str]] = []
    tags: list[list[str]] = []
    trees, known = [], True
    for i, one in enumerate(given):
        if isinstance(one, Constituent):
            trees.append(one)
            leaves: list[Any] = one.leaves()
        elif isinstance(one, str):
            raise TypeError(
                f"sentence {i}: a sentence is a list of words, or a tree (see Constituent.read). Got a string instead."
            )
        else:
            leaves = list(one)
        bare = all(isinstance(leaf, str) for leaf in leaves)
        known = known and (not bare or not leaves)
        words.append([str(leaf) if bare else str(leaf[0]) for leaf in leaves])
        tags.append([] if bare else [str(leaf[1]) for leaf in leaves])
    if tagged and not known:
        raise ValueError("This model looks at tags: give sentences as lists of (word, tag), or take tags='predicted'.")
    answers = None if len(trees) < len(given) or not trees else trees
    if y is not None:
        answers = [Constituent.read(tree) if isinstance(tree, str) else tree for tree in y]
        if len(answers) != len(words):
            raise ValueError(f"There are {len(words)} sentences, but {len(answers)} trees.")
    places = [X.place(i) if isinstance(X, Brackets) else f"sentence {i}" for i in range(len(words))]
    for i, (tree, place) in enumerate(zip(answers or (), places, strict=False)):
        if not isinstance(tree, Constituent):
            raise TypeError(f"{place}: a tree must be a Constituent, or text in brackets. Got {type(tree).__name__} instead.")
        check_labels(tree, place)
        own = tree.leaves()
        if [word for word, _ in own] != words[i]:
            k = next((k for k, (leaf, word) in enumerate(zip(own, words[i], strict=False)) if leaf[0] != word), None)
            what = f"{len(own)} words" if k is None else f"{own[k][0]!r} for word {k + 1}"
            there = f"{len(words[i])} words" if k is None else repr(words[i][k])
            raise ValueError(f"{place}: its tree has {what}, the sentence {there}.")
        if tagged and [tag for _, tag in own] != tags[i]:
            raise ValueError(f"{place}: its tree has other tags than the sentence. Give the same, or take tags='predicted'.")
    return Constituents(words, tags if known else None, answers, places)
