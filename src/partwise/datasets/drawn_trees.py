"""Trees drawn from small probabilistic grammars: corpora of brackets without files.

``arithmetic``: expressions with two levels of operators and parentheses, written ``-LRB-`` and ``-RRB-``; each has one tree.
``english``: a toy grammar with ambiguous attachments: ``saw the man with the telescope``. Where a phrase with *of* goes is
certain, where one with *with* goes depends on the noun in it: what learning can find out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.tasks.constituency.files import Constituent

NUMBERS, SIGNS, FACTORS = "0 1 2 3 4 5 6 7 8 9 x y z".split(), "+ -".split(), "* /".split()
ANIMATE, TOOLS = "man woman dog child teacher".split(), "telescope stick camera spoon".split()
WORN, VERBS = "hat scarf beard coat".split(), "saw hit found liked fed".split()
ADJECTIVES = "old small red quiet".split()


def make_brackets(n: int = 100, kind: str = "english", seed: int = 0, depth: int = 4) -> list[Constituent]:
    """n random trees.

    Parameters
    ----------
    n : int
    kind : {"english", "arithmetic"}
    seed : int
    depth : int
        Of recursion, at most.

    Examples
    --------
    >>> print(make_brackets(1, "arithmetic", seed=6)[0])
    (E (T (F (N 5)) (O /) (F (N 5))))
    """
    if kind not in ("english", "arithmetic"):
        raise ValueError(f"The 'kind' parameter of make_brackets must be 'english' or 'arithmetic'. Got {kind!r} instead.")
    rng = np.random.default_rng(seed)
    draw = sentence if kind == "english" else expression
    return [draw(rng, depth) for _ in range(n)]


def tag(rng: Any, label: str, words: list[str]) -> Constituent:
    """A random word."""
    return Constituent(label, (words[rng.integers(len(words))],))


def expression(rng: Any, depth: int) -> Constituent:
    """E -> E + T | T;  T -> T * F | F;  F -> ( E ) | number. Chains of single children are E over T over F."""

    def factor(d: int) -> Constituent:
        if d > 0 and rng.random() < 0.2:
            brackets = (Constituent("L", ("-LRB-",)), addition(d - 1), Constituent("R", ("-RRB-",)))
            return Constituent("F", brackets)
        return Constituent("F", (tag(rng, "N", NUMBERS),))

    def product(d: int) -> Constituent:
        if d > 0 and rng.random() < 0.35:
            return Constituent("T", (product(d - 1), tag(rng, "O", FACTORS), factor(d - 1)))
        return factor(d)

    def addition(d: int) -> Constituent:
        if d > 0 and rng.random() < 0.5:
            return Constituent("E", (addition(d - 1), tag(rng, "A", SIGNS), product(d - 1)))
        return product(d)

    top = addition(depth)
    return top if top.label == "E" else Constituent("E", (top,))


def sentence(rng: Any, depth: int) -> Constituent:
    """S -> NP VP; VP -> V NP (PP); NP -> D (A)* N (PP); PP -> P NP."""

    def noun_phrase(nouns: list[str], d: int, phrase: bool = True) -> Constituent:
        adjectives = [tag(rng, "JJ", ADJECTIVES) for _ in range(int(rng.random() < 0.3) + int(rng.random() < 0.1))]
        plain = Constituent("NP", (tag(rng, "DT", ["the", "a"]), *adjectives, tag(rng, "NN", nouns)))
        if d <= 0 or not phrase or rng.random() < 0.6:
            return plain
        if rng.random() < 0.4:
            return Constituent("NP", (plain, prepositional(["of"], ANIMATE, d - 1)))
        return Constituent("NP", (plain, prepositional(["with"], WORN, d - 1)))

    def prepositional(words: list[str], nouns: list[str], d: int) -> Constituent:
        return Constituent("PP", (tag(rng, "IN", words), noun_phrase(nouns, d, words == ["of"])))

    thing = noun_phrase(ANIMATE + WORN, depth - 1)
    verb = Constituent("VBD", (VERBS[rng.integers(len(VERBS))],))
    below = [verb, thing]
    if rng.random() < 0.5:
        below.append(prepositional(["with"], TOOLS, depth - 2))
    subject = Constituent("NP", (tag(rng, "PRP", ["he", "she", "they"]),)) if rng.random() < 0.4 else noun_phrase(ANIMATE, 0)
    return Constituent("S", (subject, Constituent("VP", tuple(below)), Constituent(".", (".",))))
