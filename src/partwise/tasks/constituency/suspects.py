"""Constituency trees that are probably wrong. See `partwise.tasks.common.suspects`.

All nodes of the binary tree are judged (`partwise.structures.constituency`), and all count for whether there is a mistake in a
tree: also the made-up ones, and words without a bracket of their own, which disagree where a bracket is missing. *Parts*, which
are listed one by one, are the brackets that are given, from the root down; those of a chain of single children, ``S+VP``, are one
part.

In folds, the grammar is that of all trees that are given; weights of rules that only the judged part has are zero.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from partwise import kernels
from partwise.passes import Evidence
from partwise.structures.constituency.problem import GrammarProblem, nodes_of
from partwise.tasks.common.suspects import FindsSuspects, Judged, fitted_like, folds_of, judge, unfitted
from partwise.tasks.constituency.data import Constituents, read_constituents
from partwise.tasks.constituency.files import Constituent
from partwise.tasks.constituency.grammar import JOIN, is_partial, labels_of

if TYPE_CHECKING:
    from partwise.solvers.noise import Judgement


@dataclass(frozen=True)
class JudgedBrackets(Judged):
    """What is believed of all trees, and which brackets are given."""

    brackets: list[tuple[str, int, int]] = None  # type: ignore[assignment]  #: (labels, begin, end) of all trees, end to end
    trees: list[Constituent] = None  # type: ignore[assignment]  #: those believed


class BracketSuspects(FindsSuspects):
    """`suspects` and `suspicion` of constituency parsers. Parts are brackets: (label, begin, end)."""

    def judge(self, X, y=None, *, folds="auto", judges: list[Any] | None = None) -> JudgedBrackets:
        """What is to be thought of all trees; the parameters are those of `suspects`.

        Those who judge are put into the list `judges`, if there is one: this model or, in folds, one for each part.
        """
        me: Any = self
        fitted = hasattr(me, "weights_")
        if folds is None:
            me._require_fitted()
        me = copy.copy(me) if fitted else unfitted(me)
        me._check_parameters()
        given = read_constituents(X, y, me._tagged)
        if given.trees is None:
            raise ValueError("There are no trees to judge: give y, or trees in brackets.")
        folds = folds_of(me, folds, len(given))
        problem = to_judge(me, given, folds)
        learners: list[Any] = []
        found = judge(me, problem, folds, judges=learners)
        if judges is not None:
            judges += [fitted_like(me, one) for one in learners]
        return judged_brackets(me, given, problem, found)


def to_judge(me: Any, given: Constituents, folds: int | None) -> GrammarProblem:
    """Packed trees, by the grammar of the model or, in folds, by their own."""
    if folds is not None:
        complete = [tree for tree in given.trees or () if not is_partial(tree)]
        if not complete:
            raise ValueError("A grammar is read from complete trees, and there are none: all have brackets labelled '?'.")
        me.grammar_ = me._read_grammar(complete)
        return me._problem(given, labelled=True, sums=True)
    for tree, place in zip(given.trees or (), given.places, strict=True):
        try:
            if not is_partial(tree):
                me.grammar_.encode(tree, me.markov)
        except KeyError as error:
            raise ValueError(f"{place}: this model does not have the symbol {error.args[0]!r}. {IN_FOLDS}") from None
    try:
        return me._problem(given, labelled=True, sums=True)
    except ValueError as error:
        raise ValueError(f"{error} {IN_FOLDS}") from None


IN_FOLDS = (
    "Trees that the model's grammar does not have can be judged in folds (folds=5): the grammar is then that of all of them."
)


def judged_brackets(me: Any, given: Constituents, problem: GrammarProblem, found: Judgement) -> JudgedBrackets:
    """The same for people: trees, and brackets that are given."""
    evidence, symbols = found.evidence, me.grammar_.symbols
    brackets, kept, counts = [], [], [0]
    lengths = given.lengths.tolist()
    for i, n in enumerate(lengths):
        truth = problem.targets if kernels.is_partial(problem) and problem.partial[i] else problem.gold
        for t, (a, b, symbol, _) in enumerate(nodes_of(truth[problem.nodes[i] : problem.nodes[i + 1]], n) if n else ()):
            if labels := labels_of(symbols[symbol], b == a + 1):
                brackets.append((JOIN.join(labels), a, b))
                kept.append(int(problem.nodes[i]) + t)
        counts.append(len(kept))
    at, starts = np.array(kept, np.int64), np.array(counts, np.int64)
    believed = me._trees(given, evidence.believed)
    labels_there = [{(a, b): label for label, a, b in chains(tree)} for tree in believed]

    def part(k: int) -> tuple[Any, Any]:
        label, a, b = brackets[k]
        there = labels_there[int(np.searchsorted(starts, k, side="right")) - 1].get((a, b))
        return (label, a, b), None if there is None else (there, a, b)

    of_brackets = Evidence(starts, evidence.given[at], evidence.believed[at], evidence.disputed[at])
    return JudgedBrackets(
        found._replace(evidence=of_brackets, parts=found.parts[at]),
        lambda i: ((given.trees or [])[i], believed[i]),
        part,
        brackets,
        believed,
    )


def chains(tree: Constituent) -> list[tuple[str, int, int]]:
    """(labels, begin, end) of the brackets of a tree, those of a chain joined."""
    found: dict[tuple[int, int], list[str]] = {}
    for label, begin, end in tree.spans():
        found.setdefault((begin, end), []).append(label)
    return [(JOIN.join(labels), begin, end) for (begin, end), labels in found.items()]
