"""Constituency trees: brackets over words, by the rules of a binary grammar or with labels that need none."""

from partwise.structures.constituency import kernels
from partwise.structures.constituency.grammar import AnyLabels, Grammar, make_grammar, make_labels
from partwise.structures.constituency.problem import GrammarProblem, PartialGrammarProblem, grammar_problem

__all__ = [
    "Grammar",
    "GrammarProblem",
    "AnyLabels",
    "PartialGrammarProblem",
    "grammar_problem",
    "kernels",
    "make_grammar",
    "make_labels",
]
