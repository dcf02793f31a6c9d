"""What must hold of stored sequences."""

from __future__ import annotations

from partwise.features.stored import check_arrays, check_flags, check_int, check_numbers, check_offsets, check_rows
from partwise.structures.chain.problem import ChainProblem, PairChainProblem
from partwise.structures.common.stored import check_barrier, check_labels

MOST_ORDER = 64  # 2^64 histories and more: weights for them cannot be


@check_arrays.register(ChainProblem)
@check_arrays.register(PairChainProblem)
def _(problem: ChainProblem | PairChainProblem) -> None:
    n, L = len(problem.gold), problem.n_labels
    check_rows(problem.rows, n)
    check_offsets("starts", problem.starts, len(problem.starts) - 1, n)
    check_int("n_labels", L, 0, len(problem.costs) + 1)
    check_int("order", problem.order, 1, MOST_ORDER)
    check_flags(problem, "use_start", "use_stop", "use_transitions")
    check_labels(problem, n, L)
    check_barrier(problem.barrier, L)
    if isinstance(problem, PairChainProblem):
        check_int("order", problem.order, 1, 2)
        check_rows(problem.pair_rows, n)
        check_offsets("pair_ptr", problem.pair_ptr, problem.pair_rows.n_features, len(problem.pair_codes))
        check_numbers("pair_codes", problem.pair_codes, len(problem.pair_codes), 0, L * L)
