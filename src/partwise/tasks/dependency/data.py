"""What a parser is given: sentences in Python or a treebank, with trees or without, as numbered words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from partwise.tasks.dependency.files import COLUMNS, Treebank
from partwise.text.columns import Columns, code_tokens


class Tree(NamedTuple):
    """A dependency tree: for each word the number of its head, from 1, or 0 for the root; and the relation to it."""

    heads: list[int]
    relations: list[str] | None = None

    def draw(self, words: Sequence[str]) -> str:
        """The tree as text, a word a line, each word below its head."""
        from partwise.tasks.dependency.drawing import as_text

        return as_text(words, self.heads, self.relations)


@dataclass(frozen=True)
class Sentences:
    """Words end to end, and what is known of their trees."""

    words: Columns
    names: tuple[str, ...]  #: of the columns
    heads: np.ndarray | None  #: -1: not known
    relations: list[str | None] | None

    @property
    def lengths(self) -> np.ndarray:
        """Words of each sentence."""
        return np.diff(self.words.starts)

    def take(self, which: np.ndarray) -> Sentences:
        """The sentences numbered `which`."""
        starts = self.words.starts
        words = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in which] or [np.zeros(0, int)])
        return Sentences(
            self.words.take(which),
            self.names,
            None if self.heads is None else self.heads[words],
            None if self.relations is None else [self.relations[k] for k in words.tolist()],
        )


def read_sentences(X: Any, y: Any, columns: Sequence[str] | None, need: Sequence[str] | None = None) -> Sentences:
    """From a treebank, or from lists of words: dicts, or tuples of cells in the order of `columns`; strings are forms.

    need : names of columns that a model was trained with; others are left out, and one that is missing is an error.
    """
    heads: np.ndarray | None
    if isinstance(X, Treebank):
        names: tuple[str, ...] = COLUMNS
        words = X.words
        heads = X.heads
        relations: list[str | None] | None = [X.names[k] if k >= 0 else None for k in X.relations.tolist()]
    else:
        words, names = read_words(X, columns, need)
        heads, relations = None, None
    if y is not None:
        heads, relations = read_trees(y, np.diff(words.starts))
    if need is not None and tuple(need) != names:
        missing = [name for name in need if name not in names]
        if missing:
            raise ValueError(f"This model looks at the column {missing[0]!r}, which these sentences do not have.")
        order = [names.index(name) for name in need]
        words = Columns(words.codes[order], words.starts, [words.cells[k] for k in order], words.name)
        names = tuple(need)
    return Sentences(words, names, heads, relations)


def read_words(X: Any, columns: Sequence[str] | None, need: Sequence[str] | None) -> tuple[Columns, tuple[str, ...]]:
    """Numbered cells, and the names of their columns."""
    if isinstance(X, str | bytes) or not isinstance(X, Sequence):
        raise TypeError(f"Sentences must be a Treebank, or a list of lists of words. Got {type(X).__name__} instead.")
    first = next((word for sentence in X for word in sentence), None)
    if isinstance(first, dict):
        names = tuple(columns or need or [name for name in COLUMNS if any(name in word for s in X for word in s)])
        cells = [[tuple(str(word.get(name, "_")) for name in names) for word in sentence] for sentence in X]
        return code_tokens(cells), names
    if first is None:  # no word at all
        names = tuple(columns or need or COLUMNS)
        starts = np.concatenate([[0], np.cumsum([0 for _ in X])]).astype(np.int64)
        return Columns(np.zeros((len(names), 0), np.int32), starts, [[] for _ in names]), names
    if isinstance(first, str):
        return code_tokens([[(str(word),) for word in sentence] for sentence in X]), ("form",)
    names = tuple(columns or COLUMNS[: len(first)])
    if len(names) != len(first):
        raise ValueError(f"Words have {len(first)} cells, but {len(names)} columns are named: {', '.join(names)}.")
    return code_tokens(X), names


def read_trees(y: Any, lengths: np.ndarray) -> tuple[np.ndarray, list[str | None] | None]:
    """Heads end to end, and relations where there are any, from a `Tree`, (heads, relations) or heads for each sentence."""
    if len(y) != len(lengths):
        raise ValueError(f"There are {len(lengths)} sentences, but {len(y)} trees.")
    heads: list[int] = []
    relations: list[str | None] = []
    labelled = False
    for i, tree in enumerate(y):
        pair = isinstance(tree, tuple) and len(tree) == 2 and not isinstance(tree[0], int | np.integer)
        own, names = tree if pair else (tree, None)
        own = [-1 if h is None else int(h) for h in own]
        names = [None] * len(own) if names is None else list(names)
        if len(own) != lengths[i] or len(names) != lengths[i]:
            raise ValueError(f"sentence {i} has {lengths[i]} words, but its tree {len(own)} heads and {len(names)} relations.")
        labelled |= any(name is not None for name in names)
        heads += own
        relations += names
    return np.array(heads, np.int64), relations if labelled else None


def one_root(given: Sentences) -> np.ndarray:
    """Which sentences have no more than one word below the root."""
    starts = given.words.starts
    roots = np.concatenate([[0], np.cumsum(given.heads == 0)])[starts]
    return np.diff(roots) <= 1


def several_roots(given: Sentences, i: int, X: Any) -> str:
    """What to say of sentence i, where one word alone should hang from the root; of a treebank, also the line."""
    a, b = given.words.starts[i : i + 2]
    roots = np.flatnonzero(np.asarray(given.heads)[a:b] == 0)
    place = f"{X.place(a + roots[1])}, sentence {i}" if isinstance(X, Treebank) else f"sentence {i}"
    words = ", ".join(str(k + 1) for k in roots)
    return (
        f"{place}: words {words} hang from the root, but there may be one only. Give them another head, or take "
        "single_root=False."
    )
