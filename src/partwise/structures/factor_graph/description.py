"""Factor graphs as they are described (`partwise.FactorGraph`): by *groups*, many variables or many factors of one kind at once.

What has weights names them: all groups of one name, in all graphs, share one block of weights [feature, entry of the table].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, NamedTuple

import numpy as np

TIES = ("symmetric", "antisymmetric", "potts")


class WeightBlock(NamedTuple):
    """Weights that many tables share."""

    start: int  #: the first of them
    n_features: int
    size: int  #: weights of one feature

    @property
    def n_weights(self) -> int:
        """How many."""
        return self.n_features * self.size


@dataclass
class Scored:
    """Scores of tables: given ones, or features and the name of their weights; one row for each table."""

    given: np.ndarray | None  #: (tables, entries)
    features: Any = None  #: (tables, features), dense or sparse
    weights: str = ""
    tie: np.ndarray | None = None  #: (entries,) weight of an entry, -1 for none, -2 - t for weight t with the other sign

    def n_slots(self, size: int) -> int:
        """Weights of one feature."""
        return size if self.tie is None else int(self.tie.max(initial=-1)) + 1


@dataclass
class Factors:
    """Factors of one kind: dense ones have `members` (factors, arity), all others have ports."""

    kind: int
    members: np.ndarray  #: (factors, members)
    sizes: np.ndarray  #: ports of each factor
    literal: np.ndarray  #: ports end to end
    mark: np.ndarray
    number: int
    entries: int
    scored: Scored | None
    names: list[str]
    written: Any = None  #: an object in Python (`partwise.structures.factor_graph.written`)

    def __len__(self) -> int:
        return len(self.sizes)


@dataclass
class Description:
    """A graph: states of its variables, their scores, its factors."""

    states: np.ndarray  #: (V,), 1 for a bit
    unary: list[tuple[np.ndarray, Scored]]  #: variables, and a row of scores for each
    factors: list[Factors]

    def block_sizes(self) -> dict[str, tuple[int, int]]:
        """Features and weights of a feature, by the name of the weights."""
        found: dict[str, tuple[int, int]] = {}
        scored = [(s, int(self.states[v[0]])) for v, s in self.unary if len(v)]
        scored += [(g.scored, g.entries) for g in self.factors if g.scored is not None and len(g)]
        for s, size in scored:
            if s.features is None:
                continue
            shape = (int(s.features.shape[1]), s.n_slots(size))
            if found.setdefault(s.weights, shape) != shape:
                raise ValueError(
                    f"weights={s.weights!r} is said of tables of {found[s.weights]} and of {shape} (features, weights of a "
                    "feature). Tables that share weights must be alike: give the others a name of their own."
                )
        return found


def weight_blocks(graphs: Sequence[Description]) -> dict[str, WeightBlock]:
    """The weights of all graphs together, in the order in which they are first named."""
    found: dict[str, WeightBlock] = {}
    n = 0
    for i, graph in enumerate(graphs):
        for name, (d, size) in graph.block_sizes().items():
            if name not in found:
                found[name] = WeightBlock(n, d, size)
                n += d * size
            elif found[name][1:] != (d, size):
                raise ValueError(
                    f"graph {i}: weights={name!r} has {(d, size)} (features, weights of a feature), others have "
                    f"{tuple(found[name][1:])}."
                )
    return found


def row_width(blocks: dict[str, WeightBlock]) -> int:
    """The largest number of neighbouring weights that no block cuts apart."""
    width = 0
    for block in blocks.values():
        width = gcd(width, block.size)
    return max(width, 1)


def tie_entries(tie: Any, sizes: list[int]) -> np.ndarray | None:
    """Which weight each entry of a table of these sizes has, as in `Scored`; None: each has its own."""
    if tie is None:
        return None
    if isinstance(tie, str):
        if tie not in TIES or len(set(sizes)) != 1 or len(sizes) != 2:
            names = ", ".join(map(repr, TIES))
            raise ValueError(
                f"The 'tie' parameter must be one of {names}, for pairs of variables with as many states each, or "
                f"an array of shape {tuple(sizes)}. Got {tie!r} instead."
            )
        k = sizes[0]
        if tie == "potts":
            return np.where(np.eye(k, dtype=bool), 0, -1).reshape(-1)
        low, high = np.minimum.outer(range(k), range(k)), np.maximum.outer(range(k), range(k))
        if tie == "symmetric":
            return (high * (high + 1) // 2 + low).reshape(-1)
        number = high * (high - 1) // 2 + low
        return np.where(np.triu(np.ones((k, k), bool), 1), number, np.where(np.eye(k, dtype=bool), -1, -2 - number)).reshape(-1)
    tie = np.asarray(tie, int)
    if tie.shape != tuple(sizes) or tie.min(initial=0) < -1 or tie.max(initial=-1) < 0:
        raise ValueError(f"The 'tie' array must have shape {tuple(sizes)} and numbers of weights from 0 on, -1 for none.")
    return tie.reshape(-1)
