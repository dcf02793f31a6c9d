"""Pairwise alignments: which places of two sequences stand opposite each other."""

from partwise.structures.alignment import kernels
from partwise.structures.alignment.problem import AlignmentProblem, PartialAlignmentProblem, alignment_problem

__all__ = ["AlignmentProblem", "PartialAlignmentProblem", "alignment_problem", "kernels"]
