"""Treebanks: dependency trees in CoNLL-U and CoNLL-X files, read and written so that nothing in them is lost.

A word is a line of ten cells with tabs between them, a blank line ends a sentence::

    # text = They buy books.
    1   They    they   PRON    PRP   Case=Nom   2   nsubj   _   _
    2   buy     buy    VERB    VBP   _          0   root    _   _

Cells: number, form, lemma, tag (UPOS; CPOSTAG in CoNLL-X), fine tag (XPOS, POSTAG), features, head (0: the root), relation.
Comments, lines of multi-word tokens (``3-4``) and of empty nodes (``5.1``), and the last two cells are kept as they are:
predictions go into the cells of head and relation, and the rest of the file is written as it was read. A head or relation of
``_`` is not known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.files.text_source import read_lines
from partwise.text.columns import Columns, code_tokens

CELLS = 10
HEAD, RELATION = 6, 7
COLUMNS = ("form", "lemma", "upos", "xpos", "feats")  #: names of the cells 1 to 5
NOT_A_WORD = re.compile(r"\d+[-.]\d+")
UNKNOWN = "_"


@dataclass(frozen=True, eq=False)
class Treebank:
    r"""Sentences with what is known of their trees.

    Attributes
    ----------
    words : Columns
        The cells form, lemma, upos, xpos and feats (`COLUMNS`) of every word, numbered.
    heads : int64 array (words,)
        Numbers of heads within the sentence, 0 for the root, -1 where they are not known.
    relations : int64 array (words,)
        Index into `names`, -1 where it is not known.
    names : list of str
        The relations, sorted.
    lines : list of str
        The text, line by line, without ends of lines.
    at : int64 array (words,)
        The line of each word.
    name : str
        Where it came from.

    Examples
    --------
    >>> bank = read_treebank(b"1\tdogs\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tbark\t_\tVERB\t_\t_\t0\troot\t_\t_\n")
    >>> bank.forms(0), bank.heads.tolist(), bank.names
    (['dogs', 'bark'], [2, 0], ['nsubj', 'root'])
    """

    words: Columns
    heads: np.ndarray
    relations: np.ndarray
    names: list[str]
    lines: list[str]
    at: np.ndarray
    name: str

    def __len__(self) -> int:
        return self.words.n_sentences

    def __repr__(self) -> str:
        known = "" if (self.heads >= 0).all() else f", {int((self.heads < 0).sum())} heads not known"
        return f"<Treebank: {len(self)} sentences, {self.words.n_tokens} words{known} from {self.name}>"

    @property
    def lengths(self) -> np.ndarray:
        """Words of each sentence."""
        return np.diff(self.words.starts)

    def forms(self, sentence: int) -> list[str]:
        """The words of a sentence."""
        a, b = self.words.starts[sentence : sentence + 2]
        return [self.words.cells[0][code] for code in self.words.codes[0, a:b]]

    def place(self, word: int) -> str:
        """Where a word is, in words."""
        return f"{self.name}, line {int(self.at[word]) + 1}"

    def is_punctuation(self) -> np.ndarray:
        """(words,) whether all characters of a form are punctuation, as the CoNLL shared tasks have it; UPOS PUNCT counts too."""
        import unicodedata

        marks = np.array([all(unicodedata.category(c).startswith("P") for c in form) for form in self.words.cells[0]], bool)
        tags = np.array([tag == "PUNCT" for tag in self.words.cells[2]], bool)
        return marks[self.words.codes[0]] | tags[self.words.codes[2]]

    def with_trees(self, heads: Sequence[int] | np.ndarray, relations: Sequence[str] | None = None) -> str:
        """The text with these heads, and relations if they are given, in place of those it has."""
        heads = np.asarray(heads)
        if heads.shape != self.heads.shape or (relations is not None and len(relations) != len(heads)):
            raise ValueError(f"Expected a head, and a relation, for each of {len(self.heads)} words. Got {len(heads)}.")
        lines = list(self.lines)
        for k, line in enumerate(self.at.tolist()):
            cells = lines[line].split("\t")
            cells[HEAD] = str(int(heads[k]))
            if relations is not None:
                cells[RELATION] = relations[k]
            lines[line] = "\t".join(cells)
        return "\n".join([*lines, ""])


def read_treebank(source: Any, encoding: str = "utf-8", first: int | None = None) -> Treebank:
    r"""Read CoNLL-U or CoNLL-X.

    Parameters
    ----------
    source : path, ``"-"``, bytes or binary file
        Gzipped or not.
    encoding : str
    first : int, optional
        Stop after so many sentences.

    Raises
    ------
    ValueError
        Naming the file, the line and the sentence (from 0): wrong number of cells, words out of order, a head that is no number
        or no word of the sentence, a word that is its own head, heads in a circle.

    Examples
    --------
    >>> read_treebank(b"1\tGo\t_\tVERB\t_\t_\t0\troot\t_\t_\n").heads.tolist()
    [0]
    """
    lines, name = read_lines(source, encoding)
    sentences: list[list[tuple[str, ...]]] = []
    heads: list[int] = []
    relations: list[str] = []
    at: list[int] = []
    words: list[tuple[str, ...]] = []
    end = len(lines)
    for number, line in enumerate([*lines, ""]):
        if not line.strip():
            if words:
                check_sentence(heads[-len(words) :], at[-len(words) :], name, len(sentences))
                sentences.append(words)
                words = []
                if first is not None and len(sentences) >= first:
                    end = number
                    break
            continue
        if line.startswith("#"):
            continue
        cells, place = line.split("\t"), f"{name}, line {number + 1}, sentence {len(sentences)}"
        if len(cells) != CELLS:
            raise ValueError(f"{place}: expected {CELLS} cells with tabs between them, got {len(cells)}: {line[:60]!r}.")
        if NOT_A_WORD.fullmatch(cells[0]):
            continue
        if cells[0] != str(len(words) + 1):
            raise ValueError(f"{place}: expected word number {len(words) + 1}, got {cells[0]!r}.")
        words.append(tuple(cells[1:HEAD]))
        heads.append(read_head(cells[HEAD], place))
        relations.append(cells[RELATION])
        at.append(number)
    if not sentences:
        raise ValueError(
            f"{name}: there are no sentences in it; expected CoNLL-U: a word a line, {CELLS} cells with tabs between them."
        )
    names = sorted(set(relations) - {UNKNOWN})
    index = {relation: k for k, relation in enumerate(names)} | {UNKNOWN: -1}
    return Treebank(
        words=code_tokens(sentences),
        heads=np.array(heads, np.int64),
        relations=np.array([index[relation] for relation in relations], np.int64),
        names=names,
        lines=lines[:end],
        at=np.array(at, np.int64),
        name=name,
    )


def read_head(cell: str, place: str) -> int:
    """The number in a cell, -1 for an underscore."""
    if cell == UNKNOWN:
        return -1
    if not (cell.isascii() and cell.isdigit() and len(cell) < 10):
        raise ValueError(f"{place}: the head must be one number, 0 for the root, or '_' if it is not known. Got {cell!r}.")
    return int(cell)


def check_sentence(heads: Sequence[int], at: Sequence[int], name: str, sentence: int) -> None:
    """Raise, naming line and sentence, if a head is no other word of it, if there is no root, or if heads go in a circle."""
    from partwise.structures.dependency.problem import cycle

    def place(m: int) -> str:
        return f"{name}, line {at[m - 1] + 1}, sentence {sentence}"

    n = len(heads)
    for m, h in enumerate(heads, 1):
        if h > n or h == m:
            why = "is itself" if h == m else f"is word {h}, but the sentence has {n}"
            raise ValueError(f"{place(m)}: the head of word {m} {why}.")
    circle = cycle(np.array(heads, np.int64))
    if circle:
        listed = ", ".join(map(str, sorted(circle)))
        raise ValueError(f"{place(min(circle))}: the heads of the words {listed} go in a circle: that is no tree.")
    if 0 not in heads and -1 not in heads:
        raise ValueError(f"{place(1)}: no word of this sentence has the root, 0, for its head.")
