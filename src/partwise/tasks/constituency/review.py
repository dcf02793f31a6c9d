"""Suspects of a file of trees as a page shows them: the text of a tree is one cell, the tree that is believed another text.

A tree that is accepted is written on one line. What a model does not see is kept: function tags where their bracket stays, traces
below the bracket that they were in or, if that is gone, below the lowest one that is around their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from partwise.files.text_edits import EditableText
from partwise.tasks.common.review import DoubtedWord, Passage, Review, ReviewItem
from partwise.tasks.constituency.files import TOKEN, Brackets, Constituent, scan, strip_label
from partwise.tasks.constituency.suspects import JudgedBrackets


def review_brackets(
    judged: JudgedBrackets, data: Brackets, source: EditableText, ranked: Sequence[int], reading: dict[str, Any]
) -> Review:
    """The trees numbered `ranked`, for the page."""
    places = list(tree_texts(source.text.decode(), reading["traces"], reading["functions"]))
    passages, items = [], []
    for number, i in enumerate(ranked):
        begin, text = places[i]
        passages.append(Passage([" ".join(data.trees[i].words())], [text], [begin], [data.lines[i]]))
        believed = rewritten(text, judged.trees[i], reading["functions"])
        items.append(ReviewItem(number, judged.wrong(i), [DoubtedWord(0, believed, judged.wrong(i))]))
    return Review(
        passages=passages,
        items=items,
        labels=[],
        whole=True,
        pattern=r"\([\s\S]*\)",
        hint="A tree is text in brackets.",
        reading=reading,
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
        return Grown(tree.label, begin, begin + (not (traces and tree.label == "-NONE-")), [tree.children[0]])
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
