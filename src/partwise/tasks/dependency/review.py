"""Suspects of a treebank as a page shows them: sentences, their words in doubt, and where in the text each arc stands.

The cells HEAD and DEPREL of a word are side by side in its line: together, with the tab between them, they are one cell of the
page. So heads and relations are corrected, and every other byte stays: comments, multi-word tokens, empty nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from partwise.files.text_edits import EditableText
from partwise.tasks.common.review import DoubtedWord, Passage, Review, ReviewItem
from partwise.tasks.dependency.files import HEAD, RELATION, UNKNOWN, Treebank
from partwise.tasks.dependency.suspects import JudgedTrees


def review_trees(
    judged: JudgedTrees, treebank: Treebank, source: EditableText, ranked: Sequence[int], words: bool, encoding: str
) -> Review:
    """The suspects numbered `ranked`, sentences or single words, for the page."""
    starts = treebank.words.starts
    sentences = [sentence_of(starts, t) for t in ranked] if words else list(ranked)
    shown = list(dict.fromkeys(sentences))
    number = {sentence: k for k, sentence in enumerate(shown)}
    passages = [passage(treebank, source, sentence) for sentence in shown]
    items = []
    for suspect, sentence in zip(ranked, sentences, strict=True):
        first, own = int(starts[sentence]), passages[number[sentence]]
        doubts = [suspect] if words else judged.doubted(sentence)
        made = [DoubtedWord(t - first, believed_cell(judged, t, own.given[t - first]), judged.wrong_part(t)) for t in doubts]
        wrong = judged.wrong_part(suspect) if words else judged.wrong(suspect)
        items.append(ReviewItem(number[sentence], wrong, made))
    return Review(
        passages=passages,
        items=items,
        labels=treebank.names,
        whole=not words,
        pattern=r"([0-9]+|_)\t[^\s]+",
        hint="A head is a number, 0 for the root, and a relation has no blanks in it.",
        reading={"encoding": encoding},
        shape="heads",
    )


def sentence_of(starts: np.ndarray, t: int) -> int:
    """The sentence of word t of all."""
    return int(np.searchsorted(starts, t, side="right")) - 1


def believed_cell(judged: JudgedTrees, t: int, given: str) -> str:
    """What is believed of word t, as the file would have it; a relation that nobody knows stays as it was."""
    relation = None if judged.relations is None else judged.relations[t]
    return f"{int(judged.heads[t])}\t{relation or given.partition(chr(9))[2]}"


def passage(treebank: Treebank, source: EditableText, sentence: int) -> Passage:
    """A sentence, and where its heads and relations stand."""
    given, begins, lines = [], [], []
    first, last = treebank.words.starts[sentence : sentence + 2]
    for line in treebank.at[first:last].tolist():
        cells = treebank.lines[line].split("\t")
        begin = int(source.newlines[line - 1]) + 1 if line else 0
        given.append("\t".join(cells[HEAD : RELATION + 1]))
        begins.append(begin + len("\t".join(cells[:HEAD]).encode()) + 1)
        lines.append(line + 1)
    return Passage(treebank.forms(sentence), given, begins, lines)


def without_trees(treebank: Treebank) -> list[str]:
    """The text, line by line, with nothing in the cells of heads and relations: what a correction may not change."""
    lines = list(treebank.lines)
    for line in treebank.at.tolist():
        cells = lines[line].split("\t")
        cells[HEAD] = cells[RELATION] = UNKNOWN
        lines[line] = "\t".join(cells)
    return lines
