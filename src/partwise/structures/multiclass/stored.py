"""What must hold of stored examples."""

from __future__ import annotations

from partwise.features.stored import check_arrays, check_int, check_rows
from partwise.structures.common.stored import check_labels
from partwise.structures.multiclass.problem import MulticlassProblem


@check_arrays.register
def _(problem: MulticlassProblem) -> None:
    n = len(problem.gold)
    check_rows(problem.rows, n)
    check_int("n_classes", problem.n_classes, 0, len(problem.costs) + 1)
    check_labels(problem, n, problem.n_classes)
