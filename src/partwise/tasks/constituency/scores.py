"""How good constituency trees are: precision, recall and F1 of labelled brackets, as the program evalb counts them.

A bracket is a label with the words it is above. Tags do not count. Brackets that occur several times, in a chain of single
children, count as often as they occur in both trees. Where punctuation does not count, its words are taken out of both trees
before, so that it does not matter how high a comma hangs; evalb does so with the tags of `PUNCTUATION`, and leaves out the root
(``TOP``, ``ROOT``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from partwise.tasks.constituency.files import Constituent

PUNCTUATION = frozenset({",", ".", ":", "``", "''", "PUNCT"})  #: tags that may be left out


class BracketScores(NamedTuple):
    """Shares between 0 and 1, nan where there is nothing to count; and how much they are of.

    Examples
    --------
    >>> from partwise.datasets import Constituent
    >>> truth, found = (Constituent.read(f"(S (A a) ({x} (B b) (C c)))") for x in "XY")
    >>> scores = bracket_scores([truth], [found])
    >>> scores.f1, scores.unlabelled_f1, scores.tags
    (0.5, 1.0, 1.0)
    """

    precision: float
    recall: float
    f1: float
    unlabelled_f1: float
    exact: float  #: trees with all brackets right
    tags: float  #: words with the right tag
    brackets: int  #: in the right trees
    trees: int


def bracket_scores(
    truth: Sequence[Constituent],
    predicted: Sequence[Constituent],
    *,
    ignore: Collection[str] = (),
    skip: Collection[str] = ("TOP", "ROOT"),
) -> BracketScores:
    """Labelled precision, recall and F1.

    Parameters
    ----------
    truth, predicted : sequences of Constituent
        With the same words.
    ignore : collection of str
        Tags whose words are left out of both trees: `PUNCTUATION`, say. What their words are is decided by the right tree.
    skip : collection of str
        Labels of brackets that do not count.

    Examples
    --------
    >>> from partwise.datasets import Constituent
    >>> right = Constituent.read("(S (NP (D the) (N dog)) (VP (V barks)))")
    >>> found = Constituent.read("(S (D the) (NP (N dog) (V barks)))")
    >>> scores = bracket_scores([right], [found])
    >>> scores.precision, round(scores.recall, 2), scores.tags
    (0.5, 0.33, 1.0)
    """
    if len(truth) != len(predicted):
        raise ValueError(f"There are {len(truth)} trees, but {len(predicted)} predictions.")
    both = bare_both = wanted = given = exact = right_tags = words = 0
    for i, (a, b) in enumerate(zip(truth, predicted, strict=True)):
        leaves, other = a.leaves(), b.leaves()
        if [word for word, _ in leaves] != [word for word, _ in other]:
            raise ValueError(f"tree {i}: the predicted tree has other words than the right one.")
        position, n = [0], 0  # of each word among those that count
        for _, tag in leaves:
            n += tag not in ignore
            position.append(n)
        first, second = brackets(a, position, skip), brackets(b, position, skip)
        same = (first & second).total()
        both, wanted, given, exact = both + same, wanted + first.total(), given + second.total(), exact + (first == second)
        bare_both += (without_labels(first) & without_labels(second)).total()
        right_tags += sum(x[1] == y[1] for x, y in zip(leaves, other, strict=True) if x[1] not in ignore)
        words += n

    def share(part: float, whole: float) -> float:
        return part / whole if whole else float("nan")

    return BracketScores(
        share(both, given),
        share(both, wanted),
        share(2 * both, given + wanted),
        share(2 * bare_both, given + wanted),
        share(exact, len(truth)),
        share(right_tags, words),
        wanted,
        len(truth),
    )


def brackets(tree: Constituent, position: Sequence[int], skip: Collection[str]) -> Counter[tuple[str, int, int]]:
    """The brackets of a tree over the words that count; those above none are gone."""
    spans = ((label, position[begin], position[end]) for label, begin, end in tree.spans() if label not in skip)
    return Counter(span for span in spans if span[1] < span[2])


def without_labels(found: Counter[tuple[str, int, int]]) -> Counter[tuple[int, int]]:
    """How many brackets each span has."""
    bare: Counter[tuple[int, int]] = Counter()
    for (_, begin, end), times in found.items():
        bare[begin, end] += times
    return bare
