"""Bracketed trees, as in the Penn Treebank: read from files and written, a tree over many lines or several on one.

    (S (NP (DT the) (NN dog)) (VP (VBZ barks)))

A bracket holds a label and what is below it; one with a label and a single word is a tag. Words may stand among brackets without
a tag of their own: ``(E (E 1) + (E 2))``. A bracket without a label around a whole tree, as the Penn Treebank has it, is left
out. Traces (``-NONE-``) and what is left empty without them are dropped unless they are asked for, and so are function tags
(``NP-SBJ-1``, ``NP=2``). Brackets that are words are written ``-LRB-`` and ``-RRB-``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from partwise.files.text_source import read_text

TRACE = "-NONE-"
DEEPEST = 300  # brackets within one another
TOKEN = re.compile(r"[()]|[^\s()]+")


class Constituent(NamedTuple):
    """A tree: a label, and what is below it: other trees, or one word (then the label is its tag, empty if it has none).

    Attributes
    ----------
    label : str
        Of the bracket; of a word, its tag.
    children : tuple
        Other trees, or one word.

    Examples
    --------
    >>> tree = Constituent.read("(S (NP (D the) (N dog)) (V barks))")
    >>> tree.words()
    ['the', 'dog', 'barks']
    >>> tree.spans()
    [('S', 0, 3), ('NP', 0, 2)]
    """

    label: str
    children: tuple[Any, ...]

    @classmethod
    def read(cls, text: str) -> Constituent:
        """The one tree in a text, as it is: traces and function tags stay."""
        trees = [tree for tree, _ in scan(text, "<text>", True, True)]
        if len(trees) != 1:
            raise ValueError(f"Expected one tree in brackets. Got {len(trees)} in {text[:60]!r}.")
        return trees[0]

    @property
    def is_word(self) -> bool:
        """Whether it is a tag above a word."""
        return len(self.children) == 1 and isinstance(self.children[0], str)

    def leaves(self) -> list[tuple[str, str]]:
        """(word, tag) of each word."""
        if self.is_word:
            return [(self.children[0], self.label)]
        return [leaf for child in self.children for leaf in child.leaves()]

    def words(self) -> list[str]:
        """The words."""
        return [word for word, _ in self.leaves()]

    def spans(self) -> list[tuple[str, int, int]]:
        """(label, begin, end) of every bracket but tags, from the root down; those of a chain of single children all have one."""
        found: list[tuple[str, int, int]] = []

        def visit(tree: Constituent, begin: int) -> int:
            if tree.is_word:
                return begin + 1
            place, end = len(found), begin
            found.append((tree.label, begin, begin))
            for child in tree.children:
                end = visit(child, end)
            found[place] = (tree.label, begin, end)
            return end

        visit(self, 0)
        return found

    def __str__(self) -> str:
        below = " ".join(map(str, self.children))
        return below if self.is_word and not self.label else f"({self.label} {below})"

    def draw(self) -> str:
        """The tree as text, one label or word a line."""
        from partwise.tasks.constituency.drawing import as_text

        return as_text(self)


@dataclass(frozen=True, eq=False)
class Brackets:
    """Trees of a file.

    Attributes
    ----------
    trees : list of Constituent
    lines : list of int
        Where each begins.
    name : str
        Where they came from.

    Examples
    --------
    >>> brackets = read_brackets(b"(S (A a) (B b))")
    >>> len(brackets), brackets.n_words, str(brackets.trees[0])
    (1, 2, '(S (A a) (B b))')
    """

    trees: list[Constituent]
    lines: list[int]
    name: str

    def __len__(self) -> int:
        return len(self.trees)

    def __repr__(self) -> str:
        return f"<Brackets: {len(self)} trees, {self.n_words} words from {self.name}>"

    @property
    def n_words(self) -> int:
        """Words of all trees."""
        return sum(len(tree.leaves()) for tree in self.trees)

    def place(self, i: int) -> str:
        """Where a tree is, in words."""
        return f"{self.name}, line {self.lines[i]}"

    def take(self, which: Iterable[int]) -> Brackets:
        """The trees numbered `which`."""
        which = list(which)
        return Brackets([self.trees[i] for i in which], [self.lines[i] for i in which], self.name)


def read_brackets(
    source: Any, encoding: str = "utf-8", first: int | None = None, *, traces: bool = False, functions: bool = False
) -> Brackets:
    """Read bracketed trees.

    Parameters
    ----------
    source : path, ``"-"``, bytes or binary file
        Gzipped or not.
    encoding : str
    first : int, optional
        Stop after so many trees.
    traces, functions : bool
        Whether to keep empty elements, and what follows ``-`` or ``=`` in a label.

    Raises
    ------
    ValueError
        Naming the file and the line: brackets that do not match, are empty, or are nested deeper than 300; words outside
        brackets.

    Examples
    --------
    >>> [tree.words() for tree in read_brackets(b"(S (A a) (B b)) (S (A c))").trees]
    [['a', 'b'], ['c']]
    """
    return brackets_in(*read_text(source, encoding), first, traces, functions)


def read_brackets_or_lines(source: Any, encoding: str = "utf-8") -> Brackets | list[list[str]]:
    """Trees, if a text begins with a bracket; else sentences, one a line, words with blanks between them."""
    text, name = read_text(source, encoding)
    if text.lstrip().startswith("("):
        return brackets_in(text, name, None, False, False)
    return [line.split() for line in text.splitlines() if line.strip()]


def brackets_in(text: str, name: str, first: int | None, traces: bool, functions: bool) -> Brackets:
    """The trees of a text: see `read_brackets`."""
    trees, lines = [], []
    for tree, line in scan(text, name, traces, functions):
        trees.append(tree)
        lines.append(line)
        if first is not None and len(trees) >= first:
            break
    if not trees:
        raise ValueError(f"{name}: there are no trees in it; expected brackets, (S (NP (DT the) (NN dog)) (VP (VBZ barks))).")
    return Brackets(trees, lines, name)


def scan(text: str, name: str, traces: bool, functions: bool) -> Iterator[tuple[Constituent, int]]:
    """The trees of a text, and the lines that they begin on."""
    stack: list[tuple[int, list[Any]]] = []  # of each open bracket, its line, its label if it has one, and what is below it
    at, line = 0, 1
    for match in TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at, token, place = match.start(), match[0], f"{name}, line {line}"
        if token == "(":
            stack.append((line, []))
            if len(stack) > DEEPEST:
                raise ValueError(f"{place}: brackets are nested deeper than {DEEPEST}.")
        elif not stack:
            what = "closes no bracket" if token == ")" else "is outside all brackets"
            raise ValueError(f"{place}: {token!r} {what}.")
        elif token != ")":
            stack[-1][1].append(token)
        else:
            begun, content = stack.pop()
            tree = make_tree(content, traces, functions, place, not stack)
            if stack:
                stack[-1][1].append(tree)
            elif tree is not None:
                yield tree, begun
    if stack:
        raise ValueError(f"{name}, line {stack[0][0]}: this bracket is never closed.")


def from_heads(words: Sequence[str], tags: Sequence[str], heads: Sequence[int], suffix: str = "P") -> Constituent:
    """The constituents of a projective dependency tree: each word that is a head, with all below it, labelled by its tag.

    Words that hang from the root (0), if there are several, are below a bracket ``S``.

    Examples
    --------
    >>> print(from_heads(["the", "dog", "barks"], ["DET", "NOUN", "VERB"], [2, 3, 0]))
    (VERBP (NOUNP (DET the) (NOUN dog)) (VERB barks))
    """
    below: list[list[int]] = [[] for _ in range(len(words) + 1)]
    for m, h in enumerate(heads, 1):
        below[h].append(m)

    def visit(m: int) -> Constituent:
        own = Constituent(tags[m - 1], (words[m - 1],))
        if not below[m]:
            return own
        left, right = [k for k in below[m] if k < m], [k for k in below[m] if k > m]
        return Constituent(f"{tags[m - 1]}{suffix}", (*map(visit, left), own, *map(visit, right)))

    tops = [visit(m) for m in below[0]]
    tree = tops[0] if len(tops) == 1 else Constituent("S", tuple(tops))
    if tree.words() != list(words):
        raise ValueError("These arcs cross, or go in a circle: words below one head are not side by side.")
    return tree


def make_tree(content: list[Any], traces: bool, functions: bool, place: str, whole: bool) -> Constituent | None:
    """What a bracket with this content is; None for a trace, or if nothing else was below it."""
    label = content.pop(0) if content and isinstance(content[0], str) else ""
    if not content:
        raise ValueError(f"{place}: there is nothing in the bracket ({label}).")
    if label == TRACE and not traces:
        return None
    children = [child for child in content if child is not None]
    if not children:
        return None
    if not functions:
        label = strip_label(label)
    if not label:
        if not (whole and len(children) == 1):
            raise ValueError(f"{place}: a bracket within a tree, or above several trees, must have a label.")
        return children[0] if isinstance(children[0], Constituent) else Constituent("", (children[0],))
    if len(children) > 1:
        children = [Constituent("", (child,)) if isinstance(child, str) else child for child in children]
    return Constituent(label, tuple(children))


def strip_label(label: str) -> str:
    """A label without function tags."""
    return re.split("[-=]", label, maxsplit=1)[0] if label and label[0] not in "-=" else label
