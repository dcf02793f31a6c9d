"""One of K classes."""

from partwise.structures.multiclass import kernels
from partwise.structures.multiclass.problem import MulticlassProblem, PartialMulticlassProblem, multiclass_problem

__all__ = ["MulticlassProblem", "PartialMulticlassProblem", "kernels", "multiclass_problem"]
