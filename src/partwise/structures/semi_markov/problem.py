"""Sequences to be cut into labelled segments, packed end to end: what the kernels of `semi_markov` see.

An output is written down token by token: K + k where a segment of label k begins, k where one goes on. So an output is as long
as its sequence, what is known of a token may be a set of such codes, and a cost is a matrix of codes, ``costs[gold, answer]``,
all as in `partwise.structures.chain`. A label has a longest segment; that of a label for what is outside of all segments is 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.ragged import taken
from partwise.features.rows import Binary, Dense, make_rows, n_rows, take_rows
from partwise.structures.common.gold_labels import check_costs, check_gold, costs_of_sets, pack_sets
from partwise.structures.common.hidden import clear_unused

COSTS = ("tokens", "labels", "boundaries")


class SegmentProblem(NamedTuple):
    """N packed sequences over K labels of segments."""

    rows: Any  #: feature rows, one per token, sequences end to end
    starts: np.ndarray  #: (N + 1,) int64 first token of each sequence
    gold: np.ndarray  #: (tokens,) int32 true codes, or 2 K + the row of `known`: one of several
    targets: np.ndarray  #: (tokens,) int32 codes that margins are measured against
    costs: np.ndarray  #: (2 K + sets, 2 K) cost of answering column for row, per token; one row for every value of `gold`
    allowed: np.ndarray  #: (tokens,) int32 row of `sets`, or empty: everything is allowed
    sets: np.ndarray  #: (sets, 2 K) bool
    barrier: np.ndarray  #: (K + 1, K + 1) 0 or -inf: label of the segment before or begin, of the next or end; empty: all 0
    limits: np.ndarray  #: (K,) int64 the longest segment of each label
    n_labels: int
    use_ends: bool  #: whether features of its last token have weights of their own for a segment
    known: np.ndarray  #: (sets, 2 K) bool: acceptable codes, what `gold` above 2 K refers to
    span_ptr: np.ndarray  #: (tokens + 1,) int64 offsets: the spans with features that begin at each token, shortest first
    span_length: np.ndarray  #: (spans,) int32
    span_rows: Any  #: feature rows of the spans; their features are numbered after those of tokens


@kernels.partially_labelled
class PartialSegmentProblem(SegmentProblem):
    """The same where some token has several acceptable codes."""


def named_costs(name: str, K: int) -> np.ndarray:
    """A matrix (2 K, 2 K): what a token costs whose code is wrong, or only its label, or only whether a segment begins there."""
    if name not in COSTS:
        raise ValueError(f"The cost of segments must be one of {', '.join(COSTS)}, or a matrix. Got {name!r} instead.")
    label, begins = np.tile(np.arange(K), 2), np.repeat([0, 1], K)
    labels, boundaries = label[:, None] != label, begins[:, None] != begins
    wrong = {"tokens": labels | boundaries, "labels": labels, "boundaries": boundaries}
    return wrong[name].astype(np.float64)


def segment_problem(
    x,
    lengths,
    gold=None,
    n_labels=None,
    *,
    limits=None,
    costs=None,
    allowed=None,
    forbidden=(),
    known=None,
    spans=None,
    use_ends=True,
    dtype=np.float64,
) -> SegmentProblem:
    """Pack sequences.

    Parameters
    ----------
    x : array or sparse matrix (tokens, n_features), or feature rows
        The tokens of all sequences, end to end.
    lengths : integers (N,)
        Number of tokens of each sequence; zero is fine.
    gold : integers (tokens,), optional
        True codes: K + k where a segment of label k begins, k where it goes on; left out for prediction.
    n_labels : int, optional
        K; as many as `gold` has by default.
    limits : int or integers (K,), optional
        The longest segment of each label; as in `gold` by default, or the longest sequence without it.
    costs : {"tokens", "labels", "boundaries"} or array (2 K, 2 K), optional
        What a token costs: 1 if its code is wrong (the default), if its label is, if a segment wrongly begins there or does not;
        or a matrix ``costs[true, answered]`` of codes, with a zero diagonal.
    allowed : bool array (tokens, 2 K), optional
        Codes each token may be given; all by default.
    forbidden : iterable of (before, after)
        Labels of segments that may not follow each other; ``None`` is the beginning or the end of a sequence.
    known : bool array (sets, 2 K), optional
        Sets of acceptable codes: a gold of ``2 K + j`` says that the true code is one of ``known[j]``.
    spans : tuple (first token, length, sparse matrix or rows), optional
        Features of whole spans of tokens, where there are some: a segment has those of its span. Each span once.
    use_ends : bool
        Whether segments have weights for the features of their last token, beside those of their first and of the others.
    """
    rows = x if hasattr(x, "_fields") else make_rows(x, dtype)
    lengths = np.asarray(lengths, np.int64).reshape(-1)
    if (lengths < 0).any() or lengths.sum() != n_rows(rows):
        raise ValueError(f"The lengths sum to {lengths.sum()}, but there are {n_rows(rows)} tokens.")
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    n = int(starts[-1])
    given = gold is not None
    gold = np.asarray(gold, np.int32) if given else np.zeros(n, np.int32)
    if gold.shape != (n,):
        raise ValueError(f"Expected one code per token: {n} tokens, gold of shape {gold.shape}.")
    K = int(n_labels if n_labels is not None else (gold.max(initial=-1) + 2) // 2)
    gold, targets, known = check_gold(gold, 2 * K, known, allowed, "Codes", lambda t: place(starts, t))
    partial = gold.max(initial=-1) >= 2 * K
    if given and not partial:
        check_segments(gold, starts, K)
    targets = repaired(targets, starts, K)  # outputs, also where the truth is a set and nobody has chosen yet
    if limits is None:
        limits = longest_segments(gold, K) if given and not partial else max(int(lengths.max(initial=1)), 1)
    limits = np.ascontiguousarray(np.broadcast_to(np.asarray(limits, np.int64), (K,)))
    if (limits < 1).any():
        raise ValueError(f"The longest segment of a label must have one token at least. Got {limits.tolist()}.")
    if given and not partial and (longest_segments(gold, K) > limits).any():
        k = int(np.flatnonzero(longest_segments(gold, K) > limits)[0])
        raise ValueError(
            f"A true segment of label {k} has {longest_segments(gold, K)[k]} tokens, more than its limit {limits[k]}."
        )
    forbidden = list(forbidden)
    barrier = np.zeros((K + 1, K + 1) if forbidden else (0, 0))
    for before, after in forbidden:
        barrier[K if before is None else before, K if after is None else after] = -np.inf
    which, sets = pack_sets(allowed, n, 2 * K)
    costs = named_costs("tokens" if costs is None else costs, K) if costs is None or isinstance(costs, str) else costs
    return (PartialSegmentProblem if partial else SegmentProblem)(
        rows, starts, gold, targets, costs_of_sets(check_costs(costs, 2 * K), known), which, sets, barrier, limits, K,
        bool(use_ends), known, *pack_spans(spans, starts, rows.n_features),
    )  # fmt: skip


def place(starts: np.ndarray, token: int) -> str:
    """Where a token of the sequences laid end to end is found."""
    i = int(np.searchsorted(starts, token, side="right")) - 1
    return f"sequence {i}, token {token - int(starts[i])}"


def not_begun(codes: np.ndarray, starts: np.ndarray, K: int) -> np.ndarray:
    """Where a segment goes on that has not begun."""
    first = np.zeros(len(codes), bool)
    first[starts[:-1][np.diff(starts) > 0]] = True
    before = np.concatenate([[-1], codes[:-1] % max(K, 1)])[: len(codes)]
    return (codes < K) & (first | (before != codes))


def check_segments(codes: np.ndarray, starts: np.ndarray, K: int) -> None:
    """Raise, naming the token, where a segment goes on that has not begun."""
    wrong = np.flatnonzero(not_begun(codes, starts, K))
    if len(wrong):
        raise ValueError(f"At {place(starts, int(wrong[0]))} a segment of label {codes[wrong[0]]} goes on that has not begun.")


def repaired(codes: np.ndarray, starts: np.ndarray, K: int) -> np.ndarray:
    """The same labels, cut into segments: one begins wherever none could go on."""
    return (codes + K * not_begun(codes, starts, K)).astype(np.int32)


def longest_segments(codes: np.ndarray, K: int) -> np.ndarray:
    """(K,) tokens of the longest segment of each label, 1 where there is none; codes may be those of several sequences."""
    begin = np.flatnonzero(codes >= K)
    found = np.ones(K, np.int64)
    np.maximum.at(found, codes[begin] - K, np.diff(np.append(begin, len(codes))))
    return found


def pack_spans(spans: Any, starts: np.ndarray, n_features: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """The last three fields of a problem: spans by first token and length."""
    n = int(starts[-1])
    if spans is None:
        return np.zeros(n + 1, np.int64), np.zeros(0, np.int32), Binary(np.zeros(1, np.int64), np.zeros(0, np.int32), n_features)
    first, length, rows = np.asarray(spans[0], np.int64), np.asarray(spans[1], np.int64), spans[2]
    rows = rows if hasattr(rows, "_fields") else make_rows(rows)
    if isinstance(rows, Dense):
        raise TypeError("Features of spans must be sparse: most spans have none.")
    if first.shape != length.shape or len(first) != n_rows(rows):
        raise ValueError(f"Spans: {len(first)} first tokens, {len(length)} lengths, {n_rows(rows)} rows of features.")
    end = starts[np.minimum(np.searchsorted(starts, first, side="right"), len(starts) - 1)]
    wrong = np.flatnonzero((first < 0) | (first >= n) | (length < 1) | (first + length > end))
    if len(wrong):
        raise ValueError(f"Span {wrong[0]}, {length[wrong[0]]} tokens from token {first[wrong[0]]} on, is not within a sequence.")
    order = np.lexsort((length, first))
    first, length = first[order], length[order]
    twice = np.flatnonzero((np.diff(first) == 0) & (np.diff(length) == 0))
    if len(twice):
        raise ValueError(f"The span of {length[twice[0]]} tokens at {place(starts, int(first[twice[0]]))} is given twice.")
    ptr = np.searchsorted(first, np.arange(n + 1)).astype(np.int64)
    shifted = rows._replace(index=rows.index + np.int32(n_features), n_features=rows.n_features + n_features)
    return ptr, length.astype(np.int32), take_rows(shifted, order)


@kernels.take.implements(SegmentProblem)
def take(problem: SegmentProblem, which: np.ndarray) -> SegmentProblem:
    """The sequences numbered `which`, as a problem of their own."""
    starts, tokens = taken(problem.starts, which)
    gold = problem.gold[tokens]
    partial = gold.max(initial=-1) >= 2 * problem.n_labels
    kind = PartialSegmentProblem if kernels.is_partial(problem) and partial else SegmentProblem
    ptr, spans = taken(problem.span_ptr, tokens)
    return kind(*problem)._replace(
        rows=take_rows(problem.rows, tokens),
        starts=starts,
        gold=gold,
        targets=problem.targets[tokens],
        allowed=problem.allowed[tokens] if problem.allowed.size else problem.allowed,
        span_ptr=ptr,
        span_length=problem.span_length[spans],
        span_rows=take_rows(problem.span_rows, spans),
    )


@kernels.forget.implements(SegmentProblem)
def forget(problem: SegmentProblem, which: np.ndarray, targets: np.ndarray) -> SegmentProblem:
    """The same sequences with unknown codes for the tokens `which`."""
    n_codes = 2 * problem.n_labels
    known = np.vstack([problem.known.reshape(-1, n_codes), np.ones((1, n_codes), np.bool_)])
    targets = np.where(which, targets, problem.targets).astype(np.int32)
    return PartialSegmentProblem(*problem)._replace(
        gold=np.where(which, n_codes + len(known) - 1, problem.gold).astype(np.int32),
        targets=repaired(targets, problem.starts, problem.n_labels),
        costs=np.vstack([problem.costs, np.zeros((1, n_codes))]),
        known=known,
    )


@clear_unused.register
def _(problem: SegmentProblem, w: np.ndarray) -> None:
    """Rows of spans, transitions, stop and lengths have weights at the places of "begin" only."""
    K, roles = problem.n_labels, 3 if problem.use_ends else 2
    rows = w.reshape(-1, roles, K)[problem.rows.n_features :]
    rows[:, [role for role in range(roles) if role != 1]] = 0.0
