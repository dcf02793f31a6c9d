"""What must hold of stored sentences and their trees."""

from __future__ import annotations

import numpy as np

from partwise.features.stored import (
    check_array,
    check_arrays,
    check_flags,
    check_int,
    check_numbers,
    check_offsets,
    check_rows,
    check_sizes,
    expect,
)
from partwise.structures.dependency.problem import UNKNOWN, TreeProblem

MOST_LABELS = 2**31


@check_arrays.register
def _(problem: TreeProblem) -> None:
    starts, n, L = problem.starts, len(problem.gold), problem.n_labels
    check_offsets("starts", starts, len(starts) - 1, n)
    lengths = np.diff(starts)
    check_sizes("arcs", problem.arcs, lengths * (lengths + 1))
    check_rows(problem.rows, int(problem.arcs[-1]))
    check_int("n_labels", L, 1, MOST_LABELS)
    expect(isinstance(problem.label_cost, int | float), f"label_cost is {problem.label_cost!r}")
    check_flags(problem, "projective", "single_root")
    check_array("allowed", problem.allowed, (int(problem.arcs[-1]),) if problem.allowed.size else (0,), "b")
    each = np.repeat(lengths, lengths)
    for name, codes, least in (("gold", problem.gold, -2 - n), ("targets", problem.targets, 0)):
        check_numbers(name, codes, n, least, (n + 1) * L)
        heads = np.where(codes >= 0, codes // L, np.where(codes == UNKNOWN, 0, -2 - codes))
        number = np.arange(n) - np.repeat(starts[:-1], lengths) + 1
        expect(((heads <= each) & (heads != number)).all(), f"{name} has heads that are no words of their sentence")
