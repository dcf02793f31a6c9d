"""Segments: a sequence is cut into labelled pieces, and a piece has features as a whole."""

from partwise.structures.semi_markov import best, kernels, max_marginals, sums
from partwise.structures.semi_markov.problem import PartialSegmentProblem, SegmentProblem, segment_problem

__all__ = ["PartialSegmentProblem", "SegmentProblem", "best", "kernels", "max_marginals", "segment_problem", "sums"]
