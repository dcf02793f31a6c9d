"""Constituency trees: brackets over words, by the rules of a binary grammar, or without any."""

from partwise.structures.constituency import kernels
from partwise.structures.constituency.free import SpanProblem
from partwise.structures.constituency.problem import Grammar, GrammarProblem, PartialGrammarProblem, grammar_problem, make_grammar

__all__ = ["Grammar", "GrammarProblem", "PartialGrammarProblem", "SpanProblem", "grammar_problem", "kernels", "make_grammar"]
