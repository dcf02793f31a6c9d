"""Rankings: the documents of a query in order, by linear assignment or by pairs."""

from partwise.structures.ranking.kernels import PartialRankingProblem, RankingProblem, ranking_problem
from partwise.structures.ranking.pairs import PairProblem, pair_problem

__all__ = ["PairProblem", "PartialRankingProblem", "RankingProblem", "pair_problem", "ranking_problem"]
