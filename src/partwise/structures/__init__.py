"""What can be predicted: one module per structure, each a packed problem and its kernels."""

from partwise.structures import chain_costs as chain_costs  # registers the oracles of chains
from partwise.structures import chain_max_marginals as chain_max_marginals
from partwise.structures import chain_oracles as chain_oracles
from partwise.structures.alignment import AlignmentProblem, PartialAlignmentProblem, alignment_problem
from partwise.structures.chain import ChainProblem, PartialChainProblem, chain_problem
from partwise.structures.folding import FoldingProblem, folding_problem
from partwise.structures.grammar import Grammar, GrammarProblem, PartialGrammarProblem, grammar_problem, make_grammar
from partwise.structures.multiclass import MulticlassProblem, PartialMulticlassProblem, multiclass_problem
from partwise.structures.ranking import PartialRankingProblem, RankingProblem, ranking_problem
from partwise.structures.ranking_pairs import PairProblem, pair_problem
from partwise.structures.tree import PartialTreeProblem, TreeProblem, tree_problem

__all__ = [
    "AlignmentProblem",
    "ChainProblem",
    "FoldingProblem",
    "Grammar",
    "GrammarProblem",
    "MulticlassProblem",
    "PairProblem",
    "PartialAlignmentProblem",
    "PartialChainProblem",
    "PartialGrammarProblem",
    "PartialMulticlassProblem",
    "PartialRankingProblem",
    "PartialTreeProblem",
    "RankingProblem",
    "TreeProblem",
    "alignment_problem",
    "chain_problem",
    "folding_problem",
    "grammar_problem",
    "make_grammar",
    "multiclass_problem",
    "pair_problem",
    "ranking_problem",
    "tree_problem",
]
