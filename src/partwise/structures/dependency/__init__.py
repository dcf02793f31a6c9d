"""Dependency trees: a head for every word."""

from partwise.structures.dependency import kernels
from partwise.structures.dependency.problem import PartialTreeProblem, TreeProblem, tree_problem

__all__ = ["PartialTreeProblem", "TreeProblem", "kernels", "tree_problem"]
