"""A binary grammar read from trees, and the way from trees to outputs of `partwise.structures.constituency` and back.

Chains of single children are one symbol, their labels joined: ``S+VP``, above a word with its tag, ``NP+PRP``. Nodes with more
than two children are made binary from the left: ``A -> B C D E`` becomes

    A -> B @A|B        @A|B -> C @A|B,C        @A|B,C -> D E

where a made-up symbol remembers the last `markov` children before it (all with None). With few, the grammar has trees that nobody
has seen: nodes with other sequences of children.

Without a grammar there is one made-up symbol, ``@``: the empty label. Where tags are given, symbols above words are without them:
``NP+``, and nothing where a word has no bracket of its own.

A tree with brackets labelled ``?`` is known in part: the others are in the right tree, as many more as there may be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.structures.constituency.grammar import NO_TAG, AnyLabels, Grammar, make_grammar, make_labels
from partwise.structures.constituency.problem import ANY_TAG, nodes_of
from partwise.tasks.constituency.files import Constituent

JOIN, MADE_UP, UNKNOWN = "+", "@", "?"


def binary_nodes(tree: Constituent, markov: int | None) -> list[tuple[str, int]]:
    """(symbol, split) of the nodes of the binary tree, in pre-order; the split of a word is 0."""
    out: list[tuple[str, int]] = []

    def visit(node: Constituent, begin: int) -> int:
        labels = [node.label]
        while not node.is_word and len(node.children) == 1:
            node = node.children[0]
            labels.append(node.label)
        symbol = JOIN.join(labels)
        if node.is_word:
            out.append((symbol, 0))
            return begin + 1
        children, end = node.children, begin
        for k, child in enumerate(children):
            place = len(out)
            if k < len(children) - 1:
                out.append((symbol, 0))
                end = visit(child, end)
                out[place] = (symbol, end)
            else:
                end = visit(child, end)
            last = [other.label for other in children[: k + 1]]
            last = last if markov is None else last[len(last) - min(markov, len(last)) :]
            symbol = f"{MADE_UP}{node.label}|{','.join(last)}"
        return end

    visit(tree, 0)
    return out


def labelled_nodes(tree: Constituent, tagged: bool) -> list[tuple[str, int]]:
    """The same without a grammar; `tagged`: whether tags are given, and no part of symbols."""

    def plain(symbol: str, split: int) -> str:
        if symbol.startswith(MADE_UP):
            return MADE_UP
        return symbol[: symbol.rfind(JOIN) + 1] if tagged and not split else symbol

    return [(plain(symbol, split), split) for symbol, split in binary_nodes(tree, 0)]


def is_partial(tree: Constituent) -> bool:
    """Whether some bracket is not known."""
    return not tree.is_word and (tree.label == UNKNOWN or any(map(is_partial, tree.children)))


def check_labels(tree: Constituent, place: str) -> None:
    """Raise, naming the place, if labels cannot be told from symbols."""
    if not tree.children:
        raise ValueError(f"{place}: a node {tree.label!r} has nothing below it.")
    if JOIN in tree.label or tree.label.startswith(MADE_UP):
        raise ValueError(
            f"{place}: the label {tree.label!r} begins with {MADE_UP!r} or has a {JOIN!r} in it, which joins labels of chains: "
            "rename it."
        )
    if not tree.is_word:
        for child in tree.children:
            check_labels(child, place)


@dataclass(frozen=True)
class TreeGrammar:
    """A grammar, or labels that need none, with the names of its symbols."""

    symbols: tuple[str, ...]  #: without the glue
    tags: tuple[str, ...]  #: without a grammar, if they are given: one for all, without a name
    packed: Grammar | AnyLabels
    main_root: str  #: what glued trees have for their root
    main_tag: str  #: the tag of a word above which there is only glue

    @property
    def glue(self) -> int:
        """The number of the glue, if there is any."""
        return len(self.symbols)

    @property
    def rules(self) -> np.ndarray:
        """(rules, 3) parent, first and second child; without glue."""
        g = self.packed
        if isinstance(g, AnyLabels):
            return np.zeros((0, 3), np.int32)
        return np.stack([g.parent, g.first, g.second], 1)[g.parent < self.glue]

    @property
    def ignores_tags(self) -> bool:
        """Whether symbols above words are without their tags."""
        return self.tags == ("",) and isinstance(self.packed, AnyLabels)

    def labels(self) -> list[str]:
        """The labels of brackets, sorted."""
        g, found = self.packed, set()
        for k, name in enumerate(self.symbols):
            if g.inner[k]:
                found.update(labels_of(name, False))
            if g.tag[k] != NO_TAG:
                found.update(labels_of(name, True))
        return sorted(found)

    def encode(self, tree: Constituent, markov: int | None) -> np.ndarray:
        """The output that is this tree; a KeyError for a symbol that the grammar does not have."""
        nodes = labelled_nodes(tree, self.ignores_tags) if isinstance(self.packed, AnyLabels) else binary_nodes(tree, markov)
        index, n = self._index(), (len(nodes) + 1) // 2
        return np.array([index[symbol] * n + split for symbol, split in nodes], np.int32)

    def known_brackets(self, tree: Constituent) -> list[tuple[int, int, list[int]]]:
        """(begin, end, symbols) of the spans of a tree that is known in part: all symbols that have its labels, and its tag."""
        labels: dict[tuple[int, int], list[str]] = {}
        for label, begin, end in tree.spans():
            if label != UNKNOWN:
                labels.setdefault((begin, end), []).append(label)
        tags = self.tags_of(tag for _, tag in tree.leaves())
        for k, tag in enumerate(tags):
            if tag != ANY_TAG:
                labels.setdefault((k, k + 1), [])
        return [
            (begin, end, [k for k, name in enumerate(self.symbols) if self._fits(k, name, own, end == begin + 1, tags[begin])])
            for (begin, end), own in labels.items()
        ]

    def _fits(self, symbol: int, name: str, labels: list[str], is_word: bool, tag: int) -> bool:
        """Whether a symbol has all these labels, and above a word its tag."""
        own = labels_of(name, is_word)
        return all(label in own for label in labels) and not (is_word and tag not in (ANY_TAG, self.packed.tag[symbol]))

    def _index(self) -> dict[str, int]:
        found = self.__dict__.get("_numbers")
        if found is None:
            found = {symbol: k for k, symbol in enumerate(self.symbols)}
            object.__setattr__(self, "_numbers", found)
        return found

    def tags_of(self, tags: Iterable[str]) -> list[int]:
        """Numbers of tags; one that the grammar does not have may be any."""
        if self.ignores_tags:
            return [0 for _ in tags]
        index = {tag: k for k, tag in enumerate(self.tags)}
        return [index.get(tag, ANY_TAG) for tag in tags]

    def is_glued(self, y: np.ndarray, n: int) -> bool:
        """Whether there is glue in an output, or none of the grammar's roots above it."""
        return n > 0 and not self.packed.root[int(y[0]) // n]

    def decode(self, y: np.ndarray, words: Sequence[str], tags: Sequence[str] | None) -> Constituent:
        """The tree that is this output; tags that are given go in place of those of its symbols."""
        n = len(words)
        stack: list[list[Constituent]] = []  # what is above the words from here on: one tree, or several below a made-up symbol
        for begin, _, symbol, split in reversed(nodes_of(y, n)):
            below = [*stack.pop(), *stack.pop()] if split else []
            if symbol == self.glue:
                stack.append(below or [Constituent(self.main_tag if tags is None else tags[begin], (words[begin],))])
                continue
            name = self.symbols[symbol]
            if name.startswith(MADE_UP):
                stack.append(below)
                continue
            labels = name.split(JOIN)
            if split:
                tree = Constituent(labels.pop(), tuple(below))
            else:
                own = labels.pop()
                tree = Constituent(own if tags is None else tags[begin], (words[begin],))
            for label in reversed(labels):
                tree = Constituent(label, (tree,))
            stack.append([tree])
        pieces = stack.pop()
        return pieces[0] if len(pieces) == 1 else Constituent(self.main_root, tuple(pieces))


def read_grammar(trees: Sequence[Constituent], markov: int | None) -> TreeGrammar:
    """The grammar of these trees. O(their nodes)."""
    symbols: dict[str, int] = {}
    rules: set[tuple[int, int, int]] = set()
    roots: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    tag_of: dict[int, str] = {}
    for tree in trees:
        nodes = binary_nodes(tree, markov)
        numbers = [symbols.setdefault(symbol, len(symbols)) for symbol, _ in nodes]
        begin = [0] * len(nodes)
        roots[nodes[0][0]] += 1
        for t, (symbol, split) in enumerate(nodes):
            if split:
                second = t + 2 * (split - begin[t])
                begin[t + 1], begin[second] = begin[t], split
                rules.add((numbers[t], numbers[t + 1], numbers[second]))
            else:
                tag_of[numbers[t]] = symbol.split(JOIN)[-1]
                tags[tag_of[numbers[t]]] += 1
    names = tuple(sorted(tags))
    index = {tag: k for k, tag in enumerate(names)}
    main = max(roots, key=lambda name: (roots[name], name)).split(JOIN)[0]
    return TreeGrammar(
        tuple(symbols),
        names,
        make_grammar(
            len(symbols),
            sorted(rules),
            [index[tag_of[k]] if k in tag_of else NO_TAG for k in range(len(symbols))],
            [symbols[name] for name in roots],
        ),
        main or "S",
        max(tags, key=lambda name: (tags[name], name)),
    )


def read_labels(trees: Sequence[Constituent], tagged: bool) -> TreeGrammar:
    """What is above several words in these trees, above one, and above all; `tagged`: whether tags are given. O(their nodes)."""
    symbols: dict[str, int] = {MADE_UP: 0}
    inner, tag_of = {0}, {}
    roots: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    if tagged:
        symbols[""], tag_of[1] = 1, ""  # every word may be without a bracket of its own
    for tree in trees:
        nodes = labelled_nodes(tree, tagged)
        roots[nodes[0][0]] += 1
        for symbol, split in nodes:
            number = symbols.setdefault(symbol, len(symbols))
            if split:
                inner.add(number)
            else:
                tag_of[number] = symbol.split(JOIN)[-1]
        tags.update(tag for _, tag in tree.leaves())
    names = ("",) if tagged else tuple(sorted(tags))
    index = {tag: k for k, tag in enumerate(names)}
    if not any(symbols[name] in inner for name in roots):  # all trees are single words
        roots[MADE_UP] = 0
    main = max(roots, key=lambda name: (roots[name], name)).split(JOIN)[0]
    return TreeGrammar(
        tuple(symbols),
        names,
        make_labels(
            [index[tag_of[k]] if k in tag_of else NO_TAG for k in range(len(symbols))],
            sorted(inner),
            [symbols[name] for name in roots],
        ),
        main or "S",
        max(tags, key=lambda name: (tags[name], name)),
    )


def labels_of(symbol: str, is_word: bool) -> list[str]:
    """The brackets that a symbol stands for: none for made-up ones, and no tags."""
    if symbol.startswith(MADE_UP):
        return []
    labels = symbol.split(JOIN)
    return labels[:-1] if is_word else labels


def rebuild(header: dict[str, Any], rules: np.ndarray, symbols: Sequence[str]) -> TreeGrammar:
    """The grammar in a model file."""
    tags = tuple(map(str, header["tags"]))
    tag_of, roots = [int(k) for k in header["tag_of"]], [int(k) for k in header["roots"]]
    packed: Grammar | AnyLabels
    if "inner" in header:
        if len(tag_of) != len(symbols):
            raise ValueError("there are not as many tags as symbols")
        packed = make_labels(tag_of, [int(k) for k in header["inner"]], roots)
    else:
        packed = make_grammar(len(symbols), rules, tag_of, roots)
    if packed.tag.max() >= len(tags):
        raise ValueError("a symbol has a tag that there is not")
    return TreeGrammar(tuple(symbols), tags, packed, str(header["main_root"]), str(header["main_tag"]))
