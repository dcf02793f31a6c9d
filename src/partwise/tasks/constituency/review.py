"""Suspects of a file of trees, listed and as a page shows them: the text of a tree is one cell, what is believed another text.

A tree that is accepted is written on one line. What a model does not see is kept: function tags where their bracket stays, traces
below the bracket that they were in or, if that is gone, below the lowest one that is around their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from partwise.files.text_edits import EditableText
from partwise.tasks.common.judged_file import Doubted, JudgedFile, other_truth
from partwise.tasks.common.review import DoubtedWord, Passage, Review, ReviewItem
from partwise.tasks.constituency.files import TOKEN, TRACE, Brackets, Constituent, scan, strip_label
from partwise.tasks.constituency.suspects import JudgedBrackets, chains


@dataclass(frozen=True)
class JudgedTreeFile(JudgedFile):
    """Trees in brackets and what is to be thought of them."""

    data: Brackets
    judged: JudgedBrackets
    reading: dict[str, Any] = field(default_factory=dict)  #: how the file was read

    examples = "trees"
    parts = "brackets"
    alone = False  # a tree is corrected as a whole: of its brackets the worst decides where it stands

    @classmethod
    def check_truth(cls, truth: Brackets, data: Brackets) -> None:
        if [tree.words() for tree in truth.trees] != [tree.words() for tree in data.trees]:
            raise other_truth(truth, data, cls.examples)

    # -- lists --------------------------------------------------------------------------------------------------------

    def name(self, i: int) -> str:
        return f"tree {i}"

    def part_name(self, i: int, t: int) -> str:
        _, begin, end = self.judged.brackets[int(self.starts[i]) + t]
        return " ".join(self.data.trees[i].words()[begin:end])

    def said(self, value: Any) -> str:
        return "-" if value is None else str(value[0])

    def text(self, i: int) -> str:
        """The brackets in doubt, in their order, and after a plus those that are believed where none is given."""
        words = self.data.trees[i].words()
        first, last = self.starts[i : i + 2].tolist()
        pieces = []
        for position in sorted(self.judged.doubted(i)):
            given, believed = self.said_part(position)
            pieces.append(f"[{given} {self.part_name(i, position - first)} > {believed}]")
        spans = {(begin, end) for _, begin, end in self.judged.brackets[first:last]}
        pieces += [f"+{label} {' '.join(words[a:b])}" for label, a, b in chains(self.judged.trees[i]) if (a, b) not in spans]
        return " ".join(pieces)

    def same(self, truth: Brackets) -> np.ndarray:
        there = [set(chains(tree)) for tree in truth.trees]
        return np.array([bracket in there[self.at(k)[0]] for k, bracket in enumerate(self.judged.brackets)], bool)

    def same_examples(self, truth: Brackets) -> np.ndarray:
        """A bracket that is missing is a mistake too."""
        pairs = zip(truth.trees, self.data.trees, strict=True)
        return np.array([set(chains(a)) == set(chains(b)) for a, b in pairs], bool)

    # -- the page -----------------------------------------------------------------------------------------------------

    def review(self, source: EditableText, doubted: Sequence[Doubted], whole: bool) -> Review:
        functions = self.reading["functions"]
        places = list(tree_texts(source.text.decode(), self.reading["traces"], functions))
        passages, items = [], []
        for number, one in enumerate(doubted):
            begin, text = places[one.example]
            words = " ".join(self.data.trees[one.example].words())
            passages.append(Passage([words], [text], [begin], [self.line(one.example)]))
            believed = rewritten(text, self.judged.trees[one.example], functions)
            items.append(ReviewItem(number, one.wrong, [DoubtedWord(0, believed, one.wrong)]))
        return Review(
            passages=passages,
            items=items,
            labels=[],
            whole=True,
            pattern=r"\([\s\S]*\)",
            hint="A tree is text in brackets.",
            reading=self.reading,
            shape="brackets",
        )


def tree_texts(text: str, traces: bool, functions: bool) -> Iterator[tuple[int, str]]:
    """Where the trees of a text begin, in bytes of UTF-8, and their texts; without those in which there are only traces."""
    depth, begin, before, at = 0, 0, 0, 0
    for match in TOKEN.finditer(text):
        if match[0] == "(":
            if depth == 0:
                begin = match.start()
            depth += 1
        elif match[0] == ")":
            depth -= 1
            if depth == 0:
                own = text[begin : match.end()]
                at += len(text[before:begin].encode())
                before = begin
                if any(True for _ in scan(own, "<text>", traces, functions)):
                    yield at, own


@dataclass
class Grown:
    """A node of a tree that things are put into: its bracket, and what is below it."""

    label: str
    begin: int
    end: int
    children: list[Any]

    def text(self) -> str:
        """In brackets."""
        below = " ".join(child if isinstance(child, str) else child.text() for child in self.children)
        return f"({self.label} {below})" if self.label else below

    def nodes(self) -> Iterator[Grown]:
        """From the root down."""
        yield self
        for child in self.children:
            if isinstance(child, Grown):
                yield from child.nodes()


def grown(tree: Constituent, begin: int = 0, traces: bool = False) -> Grown:
    """The same tree; with `traces`, empty elements take no place."""
    if tree.is_word:
        return Grown(tree.label, begin, begin + (not (traces and tree.label == TRACE)), [tree.children[0]])
    made = Grown(tree.label, begin, begin, [])
    for child in tree.children:
        made.children.append(grown(child, made.end, traces))
        made.end = made.children[-1].end
    return made


def rewritten(text: str, believed: Constituent, functions: bool) -> str:
    """The tree that is believed in place of the text of another, with what a reader leaves out of that (see the module)."""
    content = [tree for tree, _ in scan(text, "<text>", True, True)][0]
    old, new = grown(content, traces=True), grown(believed)
    seen = {} if functions else {key(node, True): node.label for node in old.nodes()}
    for node in new.nodes():
        node.label = seen.pop(key(node, False), node.label)
    for above in list(old.nodes()):
        for child in above.children:
            if isinstance(child, Grown) and child.begin == child.end and above.begin < above.end:
                put(new, child, key(above, not functions))
    wrapped = text[1:].lstrip().startswith("(")
    return f"( {new.text()})" if wrapped else new.text()


def key(node: Grown, bare: bool) -> tuple[str, int, int]:
    """What two brackets have in common that are the same; `bare`: but for function tags."""
    return strip_label(node.label) if bare else node.label, node.begin, node.end


def put(tree: Grown, trace: Grown, wanted: tuple[str, int, int]) -> None:
    """Put an empty element below the bracket that is wanted, or the lowest one around its place."""
    around = [node for node in tree.nodes() if node.begin <= trace.begin <= node.end and isinstance(node.children[0], Grown)]
    same = [node for node in around if key(node, True) == wanted or key(node, False) == wanted]
    target = same[0] if same else min(around, key=lambda node: node.end - node.begin) if around else tree
    if not isinstance(target.children[0], Grown):
        return  # a single word without a bracket
    place = sum(child.end <= trace.begin for child in target.children)
    target.children.insert(place, trace)
