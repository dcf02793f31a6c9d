"""Constituency trees: brackets over words, by a binary grammar, with labels that need none, or as scores of spans alone."""

from partwise.structures.constituency import kernels
from partwise.structures.constituency.free import SpanProblem
from partwise.structures.constituency.grammar import AnyLabels, Grammar, make_grammar, make_labels
from partwise.structures.constituency.problem import GrammarProblem, PartialGrammarProblem, grammar_problem
from partwise.structures.constituency.scored_rules import ScoredRuleProblem, scored_rule_problem

__all__ = [
    "AnyLabels",
    "Grammar",
    "GrammarProblem",
    "PartialGrammarProblem",
    "ScoredRuleProblem",
    "SpanProblem",
    "grammar_problem",
    "kernels",
    "make_grammar",
    "make_labels",
    "scored_rule_problem",
]
