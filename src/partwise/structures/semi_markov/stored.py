"""What must hold of stored sequences that are cut into segments."""

from __future__ import annotations

import numpy as np

from partwise.features.rows import Binary, Sparse
from partwise.features.stored import (
    check_arrays,
    check_flags,
    check_int,
    check_numbers,
    check_offsets,
    check_rows,
    expect,
    owners,
)
from partwise.structures.common.stored import check_barrier, check_labels
from partwise.structures.semi_markov.problem import SegmentProblem, check_segments

MOST_TOKENS = 2**40  # of a segment


@check_arrays.register
def _(problem: SegmentProblem) -> None:
    n, K, starts = len(problem.gold), problem.n_labels, problem.starts
    check_rows(problem.rows, n)
    check_offsets("starts", starts, len(starts) - 1, n)
    check_int("n_labels", K, 0, len(problem.costs) + 1)
    check_flags(problem, "use_ends")
    check_labels(problem, n, 2 * K)
    check_barrier(problem.barrier, K)
    check_numbers("limits", problem.limits, K, 1, MOST_TOKENS)
    check_segments(problem.targets, starts, K)
    if not len(problem.known):
        check_segments(problem.gold, starts, K)
    spans = len(problem.span_length)
    check_offsets("span_ptr", problem.span_ptr, n, spans)
    check_numbers("span_length", problem.span_length, spans, 1, MOST_TOKENS)
    expect(isinstance(problem.span_rows, Binary | Sparse), "features of spans must be sparse")
    check_rows(problem.span_rows, spans)
    expect(problem.span_rows.n_features >= problem.rows.n_features, "features of spans are not numbered after those of tokens")
    first = owners(problem.span_ptr)
    expect((first + problem.span_length <= starts[1:][owners(starts)][first]).all(), "a span is not within its sequence")
    twice = (first[1:] == first[:-1]) & (np.diff(problem.span_length.astype(np.int64)) <= 0)
    expect(not twice.any(), "spans are not in order, or there twice")
