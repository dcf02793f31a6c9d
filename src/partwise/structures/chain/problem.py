"""Sequences packed end to end: what the kernels of `chain` see.

What is known of a token is one label or a set of acceptable ones. A set is written as a label of its own: gold is L + k for the
k-th set, and the cost matrix has a row for it, the cost against the nearest acceptable label. So the cost of an answer is
``costs[gold, answer]`` in either case.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.ragged import lay_out, taken
from partwise.features.rows import make_rows, n_rows, take_rows
from partwise.structures.common.gold_labels import check_costs, check_gold, costs_of_sets, pack_sets
from partwise.structures.common.hidden import clear_unused


class ChainProblem(NamedTuple):
    """N packed sequences over L labels.

    Examples
    --------
    >>> from partwise import chain_problem
    >>> problem = chain_problem([[1.0], [0.0], [1.0]], lengths=[2, 1], gold=[0, 1, 0])
    >>> problem.starts.tolist(), problem.gold.tolist(), problem.n_labels
    ([0, 2, 3], [0, 1, 0], 2)
    """

    rows: Any  #: feature rows, one per token, sequences end to end
    starts: np.ndarray  #: (N + 1,) int64 first token of each sequence
    gold: np.ndarray  #: (tokens,) int32 true labels, or L + the row of `known`: one of several
    targets: np.ndarray  #: (tokens,) int32 labels that margins are measured against
    costs: np.ndarray  #: (L + sets, L) cost of answering column for row, per token; one row for every value of `gold`
    allowed: np.ndarray  #: (tokens,) int32 row of `sets`, or empty: everything is allowed
    sets: np.ndarray  #: (sets, L) bool
    barrier: np.ndarray  #: (L + 1, L + 1) 0 or -inf: previous label or begin (last row), next or end (last column); empty: all 0
    n_labels: int
    order: int
    use_start: bool  #: whether transitions out of the begin symbol have weights
    use_stop: bool  #: whether the last label has a stop weight
    use_transitions: bool  #: whether transitions have weights at all
    known: np.ndarray  #: (sets, L) bool: acceptable labels, what `gold` above L refers to


@kernels.partially_labelled
class PartialChainProblem(ChainProblem):
    """The same where some token has several acceptable labels: a type of its own, so that full labels pay nothing for it."""


class PairChainProblem(NamedTuple):
    """The same with features of label pairs: transitions that look at the input (see `pairs`). Order 1 only."""

    rows: Any
    starts: np.ndarray
    gold: np.ndarray
    targets: np.ndarray
    costs: np.ndarray
    allowed: np.ndarray
    sets: np.ndarray
    barrier: np.ndarray
    n_labels: int
    order: int
    use_start: bool
    use_stop: bool
    use_transitions: bool
    known: np.ndarray
    pair_rows: Any  #: Binary: features of the transition into each token; those of first tokens are not looked at
    pair_ptr: np.ndarray  #: (pair features + 1,) int64 offsets: which weights are a feature's
    pair_codes: np.ndarray  #: int32 of each weight, the pair L * label before + label


@kernels.partially_labelled
class PartialPairChainProblem(PairChainProblem):
    """Both."""


lay_out(ChainProblem, offsets=("starts",), each=("gold", "targets", "allowed"))


def chain_problem(
    x,
    lengths,
    gold=None,
    n_labels=None,
    *,
    order=1,
    costs=None,
    allowed=None,
    forbidden=(),
    use_start=True,
    use_stop=True,
    use_transitions=True,
    known=None,
    dtype=np.float64,
) -> ChainProblem:
    """Pack sequences.

    Parameters
    ----------
    x : array or sparse matrix (tokens, n_features), or feature rows
        The tokens of all sequences, end to end.
    lengths : integers (N,)
        Number of tokens of each sequence; zero is fine.
    gold : integers (tokens,), optional
        True labels in [0, n_labels); left out for prediction.
    n_labels : int, optional
    order : int
        How many previous labels a transition looks at.
    costs : array (L, L), optional
        Cost of one token, ``costs[true, answered]``, with a zero diagonal; Hamming by default.
    allowed : bool array (tokens, L), optional
        Labels each token may be given; all by default.
    forbidden : iterable of (previous, next)
        Transitions that may not happen. ``None`` as previous is the beginning, as next the end of a sequence.
    use_start, use_stop : bool
        Whether the first and last label have weights of their own.
    use_transitions : bool
        Whether transitions have weights; without, there are no start and stop weights either, and labels are tied by what is
        forbidden alone. The weights keep their places, as zeros.
    known : bool array (sets, L), optional
        Sets of acceptable labels: a gold of ``n_labels + k`` says that the true label is one of ``known[k]`` (all of them:
        nothing is known). The answer is then a PartialChainProblem, if any set in use has more than one label.

    Examples
    --------
    >>> problem = chain_problem(np.eye(5), lengths=[3, 2], gold=[0, 1, 0, 1, 1])
    >>> problem.starts.tolist()
    [0, 3, 5]
    """
    rows = x if hasattr(x, "_fields") else make_rows(x, dtype)
    lengths = np.asarray(lengths, np.int64).reshape(-1)
    if (lengths < 0).any() or lengths.sum() != n_rows(rows):
        raise ValueError(f"The lengths sum to {lengths.sum()}, but there are {n_rows(rows)} tokens.")
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n = int(starts[-1])
    gold = np.zeros(n, np.int32) if gold is None else np.asarray(gold, np.int32)
    if gold.shape != (n,):
        raise ValueError(f"Expected one label per token: {n} tokens, gold of shape {gold.shape}.")
    k = int(n_labels if n_labels is not None else gold.max(initial=-1) + 1)
    gold, targets, known = check_gold(gold, k, known, allowed, "Labels", lambda t: place(starts, t))
    if order < 1:
        raise ValueError(f"The order of a chain must be at least 1. Got {order} instead.")
    forbidden = list(forbidden)
    barrier = np.zeros((k + 1, k + 1) if forbidden else (0, 0))
    for before, after in forbidden:
        barrier[k if before is None else before, k if after is None else after] = -np.inf
    which, sets = pack_sets(allowed, n, k)
    return chain_type(gold, k)(
        rows=rows,
        starts=starts,
        gold=gold,
        targets=targets,
        costs=costs_of_sets(check_costs(costs, k), known),
        allowed=which,
        sets=sets,
        barrier=barrier,
        n_labels=k,
        order=int(order),
        use_start=bool(use_start and use_transitions),
        use_stop=bool(use_stop and use_transitions),
        use_transitions=bool(use_transitions),
        known=known,
    )


def chain_type(gold: np.ndarray, n_labels: int) -> type[ChainProblem]:
    """The type of a problem with these true labels."""
    return PartialChainProblem if gold.max(initial=-1) >= n_labels else ChainProblem


def place(starts: np.ndarray, token: int) -> str:
    """Where a token of the sequences laid end to end is found."""
    i = int(np.searchsorted(starts, token, side="right")) - 1
    return f"sequence {i}, token {token - int(starts[i])}"


@kernels.take.implements(ChainProblem, PairChainProblem)
def take(problem: ChainProblem, which: np.ndarray) -> ChainProblem:
    """The sequences numbered `which`, as a problem of their own."""
    starts, tokens = taken(problem.starts, which)
    gold = problem.gold[tokens]
    partial = kernels.is_partial(problem) and gold.max(initial=-1) >= problem.n_labels
    paired = isinstance(problem, PairChainProblem)
    more: dict[str, Any] = {"pair_rows": take_rows(problem.pair_rows, tokens)} if isinstance(problem, PairChainProblem) else {}
    return TYPES[paired, partial](*problem)._replace(
        rows=take_rows(problem.rows, tokens),
        starts=starts,
        gold=gold,
        targets=problem.targets[tokens],
        allowed=problem.allowed[tokens] if problem.allowed.size else problem.allowed,
        **more,
    )


#: by whether they have features of pairs, and whether they are partially labelled
TYPES: dict[tuple[bool, bool], Any] = {
    (False, False): ChainProblem,
    (False, True): PartialChainProblem,
    (True, False): PairChainProblem,
    (True, True): PartialPairChainProblem,
}


@kernels.forget.implements(ChainProblem, PairChainProblem)
def forget(problem: ChainProblem, which: np.ndarray, targets: np.ndarray) -> ChainProblem:
    """The same sequences with unknown labels for the tokens `which`."""
    known = np.vstack([problem.known.reshape(-1, problem.n_labels), np.ones((1, problem.n_labels), np.bool_)])
    return TYPES[isinstance(problem, PairChainProblem), True](*problem)._replace(
        gold=np.where(which, problem.n_labels + len(known) - 1, problem.gold).astype(np.int32),
        targets=np.where(which, targets, problem.targets).astype(np.int32),
        costs=np.vstack([problem.costs, np.zeros((1, problem.n_labels))]),
        known=known,
    )


def chain_blocks(n_features: int, n_labels: int, order: int) -> dict[str, tuple[int, int]]:
    """First row and number of rows (of n_labels weights each) of every block of the weight vector."""
    blocks = {"features": (0, n_features)}
    start = n_features
    for j in range(1, order + 1):
        blocks[f"transitions_{j}"] = (start, (n_labels + 1) ** j)
        start += (n_labels + 1) ** j
    blocks["stop"] = (start, 1)
    return blocks


@clear_unused.register
def _(problem: ChainProblem, w: np.ndarray) -> None:
    """Transitions that have a place among the weights, but no weight."""
    S, w = problem.n_labels, w.reshape(-1, problem.n_labels)
    for name, (first, n) in chain_blocks(problem.rows.n_features, S, problem.order).items():
        rows = w[first : first + n]
        if name == "stop":
            rows[:] = rows if problem.use_stop else 0.0
        elif name != "features" and not problem.use_start:
            histories = np.arange(n)
            begins = np.zeros(n, bool)
            while histories.any():
                begins |= histories % (S + 1) == S
                histories //= S + 1
            rows[begins | (not problem.use_transitions)] = 0.0
