"""RNA secondary structure: nested base pairs, scored by the loops they close."""

from partwise.structures.folding import kernels
from partwise.structures.folding.problem import FoldingProblem, folding_problem

__all__ = ["FoldingProblem", "folding_problem", "kernels"]
