"""Linear chains: one label per position."""

from partwise.structures.chain import best, by_cost, kernels, max_marginals, pairs, sums
from partwise.structures.chain.problem import (
    ChainProblem,
    PairChainProblem,
    PartialChainProblem,
    PartialPairChainProblem,
    chain_problem,
)

__all__ = [
    "ChainProblem",
    "PairChainProblem",
    "PartialChainProblem",
    "PartialPairChainProblem",
    "best",
    "by_cost",
    "chain_problem",
    "kernels",
    "max_marginals",
    "pairs",
    "sums",
]
