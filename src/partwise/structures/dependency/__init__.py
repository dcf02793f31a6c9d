"""Dependency trees: a head for every word."""

from partwise.structures.dependency import kernels
from partwise.structures.dependency.problem import PartialTreeProblem, TreeProblem, tree_problem
from partwise.structures.dependency.siblings import SiblingTreeProblem

__all__ = ["PartialTreeProblem", "SiblingTreeProblem", "TreeProblem", "kernels", "tree_problem"]
