"""Problems without features: what the oracles of a structure need to know of a batch when scores come from elsewhere."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from partwise import kernels
from partwise.features.rows import Binary
from partwise.structures.alignment import alignment_problem
from partwise.structures.chain import chain_problem
from partwise.structures.chain.pairs import with_pairs
from partwise.structures.constituency import SpanProblem, scored_rule_problem
from partwise.structures.dependency import SiblingTreeProblem, tree_problem
from partwise.structures.ranking import RankingProblem
from partwise.structures.semi_markov import segment_problem

ANY_SIZE = 1e6  # GB: whoever has made the scores of all pairs has had the memory for them


def _chain_shell(lengths: np.ndarray, n_labels: int, longest: int, padded: int) -> Any:
    return chain_problem(np.zeros((int(lengths.sum()), 0)), lengths, n_labels=n_labels)


def _stepwise_shell(lengths: np.ndarray, n_labels: int, longest: int, padded: int) -> Any:
    """Every step has scores of its own; none has features."""
    rows = Binary(np.zeros(int(lengths.sum()) + 1, np.int64), np.zeros(0, np.int32), 0)
    return with_pairs(_chain_shell(lengths, n_labels, longest, padded), rows, np.zeros(1, np.int64), np.zeros(0, np.int32))


def _segment_shell(lengths: np.ndarray, n_labels: int, longest: int) -> Any:
    """Every span has a score of its own; none has features."""
    lasts = np.repeat(np.cumsum(lengths), lengths)
    token = np.arange(int(lengths.sum()))
    most = np.minimum(longest, lasts - token)
    first = np.repeat(token, most)
    length = np.arange(len(first)) - np.repeat(np.cumsum(most) - most, most) + 1
    rows = Binary(np.zeros(len(first) + 1, np.int64), np.zeros(0, np.int32), 0)
    x = np.zeros((len(token), 0))
    return segment_problem(x, lengths, n_labels=n_labels, limits=max(longest, 1), spans=(first, length, rows), use_ends=False)


def _tree_shell(lengths: np.ndarray, n_labels: int, projective: int, single_root: int) -> Any:
    arcs = np.zeros((int((lengths * (lengths + 1)).sum()), 0))
    return tree_problem(arcs, lengths, n_labels=n_labels, projective=projective, single_root=single_root)


def _sibling_shell(lengths: np.ndarray, n_labels: int, single_root: int) -> Any:
    return SiblingTreeProblem(np.concatenate([[0], np.cumsum(lengths)]), n_labels, bool(single_root))


def _alignment_shell(lengths: np.ndarray, local: int) -> Any:
    n, m = lengths.T
    parts = np.zeros((int((n * m + 4 * (n + m)).sum()), 0))
    return alignment_problem(parts, lengths, local=local, memory=ANY_SIZE)


def _span_shell(lengths: np.ndarray, n_labels: int) -> Any:
    return SpanProblem(np.concatenate([[0], np.cumsum(lengths)]), n_labels)


def _assignment_shell(lengths: np.ndarray) -> Any:
    """Rows are the positions of a ranking and columns its documents."""
    rows, columns = (np.concatenate([[0], np.cumsum(sizes)]) for sizes in lengths.T)
    none, outputs = np.zeros(0), np.zeros(int(rows[-1]), np.int32)
    features = Binary(np.zeros(int(columns[-1]) + 1, np.int64), np.zeros(0, np.int32), 0)
    return RankingProblem(features, columns, rows, none, none, outputs, outputs, none, none)


SHELLS: dict[str, Callable[..., Any]] = {
    "chain": _chain_shell,
    "stepwise_chain": _stepwise_shell,
    "segments": _segment_shell,
    "tree": _tree_shell,
    "sibling_tree": _sibling_shell,
    "alignment": _alignment_shell,
    "spans": _span_shell,
    "rules": scored_rule_problem,
    "assignment": _assignment_shell,
}


@functools.lru_cache(64)
def _shell(structure: str, lengths: bytes, shape: tuple[int, ...], sizes: tuple[int, ...]) -> tuple[Any, int]:
    problem = SHELLS[structure](np.frombuffer(lengths, np.int64).reshape(shape), *sizes)
    return problem, kernels.sizes(problem)[1]


def shell(structure: str, lengths: np.ndarray, sizes: tuple[int, ...]) -> tuple[Any, int]:
    """A packed problem of that structure without features, and the number of parts of its largest example."""
    lengths = np.ascontiguousarray(lengths, np.int64)
    return _shell(structure, lengths.tobytes(), lengths.shape, tuple(sizes))
