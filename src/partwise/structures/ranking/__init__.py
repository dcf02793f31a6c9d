"""Rankings: the documents of a query in order, by linear assignment or by pairs."""

from partwise.structures.ranking import kernels, pairs
from partwise.structures.ranking.problem import (
    PairProblem,
    PartialRankingProblem,
    RankingProblem,
    pair_problem,
    ranking_problem,
)

__all__ = ["PairProblem", "PartialRankingProblem", "RankingProblem", "kernels", "pair_problem", "pairs", "ranking_problem"]
