"""From factor graphs as they are described (`partwise.FactorGraph`) to packed problems.

A graph is described by *groups*: many variables, or many factors of one kind, at once, as arrays. Packing numbers literals, ports
and parts, lays tables end to end and finds for every feature where its weights begin. What has weights names its *family*: all
groups of one name, in all graphs, share one block of weights [feature, entry of the table].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any, NamedTuple

import numpy as np

from partwise.engine.compilation import entry
from partwise.features.rows import is_sparse
from partwise.structures.factor_graph.layout import DENSE, Graph
from partwise.structures.factor_graph.order import plan


class Family(NamedTuple):
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
    """Scores of tables: given ones, and features of a family; one row for each table."""

    given: np.ndarray | None  #: (tables, entries)
    features: Any = None  #: (tables, features), dense or sparse
    family: str = ""
    tie: np.ndarray | None = None  #: (entries,) weight of an entry, -1 for none

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

    def __len__(self) -> int:
        return len(self.sizes)


@dataclass
class Description:
    """A graph: states of its variables, their scores, its factors."""

    states: np.ndarray  #: (V,), 1 for a bit
    unary: list[tuple[np.ndarray, Scored]]  #: variables, and a row of scores for each
    factors: list[Factors]

    @property
    def first(self) -> np.ndarray:
        """First literal of each variable."""
        return np.concatenate([[0], np.cumsum(self.states)]).astype(np.int64)

    def families(self) -> dict[str, tuple[int, int]]:
        """Features and weights of a feature, by the name of the family."""
        found: dict[str, tuple[int, int]] = {}
        scored = [(s, int(self.states[v[0]])) for v, s in self.unary if len(v)]
        scored += [(g.scored, g.entries) for g in self.factors if g.scored is not None and len(g)]
        for s, size in scored:
            if s.features is None:
                continue
            shape = (int(s.features.shape[1]), s.n_slots(size))
            if found.setdefault(s.family, shape) != shape:
                raise ValueError(
                    f"weights={s.family!r} is said of tables of {found[s.family]} and of {shape} (features, weights of a "
                    "feature). Tables that share weights must be alike: give the others a name of their own."
                )
        return found


def families_of(graphs: Sequence[Description]) -> dict[str, Family]:
    """The weights of all graphs together, in the order in which they are first named."""
    found: dict[str, Family] = {}
    n = 0
    for i, graph in enumerate(graphs):
        for name, (d, size) in graph.families().items():
            if name not in found:
                found[name] = Family(n, d, size)
                n += d * size
            elif (found[name].n_features, found[name].size) != (d, size):
                known = (found[name].n_features, found[name].size)
                raise ValueError(
                    f"graph {i}: weights={name!r} has {(d, size)} (features, weights of a feature), others have {known}."
                )
    return found


class Packed(NamedTuple):
    """One graph as arrays; the fields of `GraphProblem` that grow with graphs."""

    graph: Graph
    given: np.ndarray
    counts: np.ndarray  #: features of each variable and factor
    start: np.ndarray
    value: np.ndarray
    tie: np.ndarray
    cost_at: np.ndarray
    order: np.ndarray
    parents: np.ndarray
    forest: bool


def pack(graph: Description, families: dict[str, Family], labelled: np.ndarray, tie_at: dict[str, int]) -> Packed:
    """One graph. `labelled`: the variables whose truth is known; `tie_at`: where the ties of a family begin."""
    first, states, V = graph.first, np.asarray(graph.states, np.int64), len(graph.states)
    own = np.zeros(V, bool)  # a dense factor of its own: so that its states exclude each other; so that its cost has a place
    bits = states == 1
    for g in graph.factors:
        if g.kind == DENSE:
            own[g.members.reshape(-1)] = True
    own = np.where(bits, labelled, ~own)
    groups = [*graph.factors]
    for size in np.unique(states[own]):
        v = np.flatnonzero(own & (states == size))
        groups.append(single(v, int(size), first))
    F = sum(len(g) for g in groups)
    kind = np.concatenate([np.full(len(g), g.kind, np.int32) for g in groups] or [np.zeros(0, np.int32)])
    ports = np.concatenate([[0], np.cumsum(np.concatenate([g.sizes for g in groups] or [np.zeros(0, int)]))]).astype(np.int64)
    literal = np.concatenate([g.literal for g in groups] or [np.zeros(0, int)]).astype(np.int64)
    mark = np.concatenate([g.mark for g in groups] or [np.zeros(0, int)]).astype(np.int64)
    members = np.concatenate([g.members.reshape(-1) for g in groups] or [np.zeros(0, int)]).astype(np.int64)
    arity = np.concatenate([np.full(len(g), g.members.shape[1]) for g in groups] or [np.zeros(0, int)])
    entries = np.concatenate([np.full(len(g), g.entries) for g in groups] or [np.zeros(0, int)])
    slots = np.concatenate([[0], np.cumsum(arity)]).astype(np.int64)
    table = (first[-1] + np.concatenate([[0], np.cumsum(entries)])).astype(np.int64)
    number = np.concatenate([np.full(len(g), g.number) for g in groups] or [np.zeros(0, int)]).astype(np.int64)
    owner = np.repeat(np.arange(V), states).astype(np.int64)
    layout = Graph(states, first, owner, kind, ports, literal, mark, slots, members, table, number)

    given, tie = np.zeros(int(table[-1])), np.full(F, -1, np.int64)
    block, start, value = [], [], []  # of features

    def add(scored: Scored, parts: np.ndarray, blocks: np.ndarray, size: int) -> None:
        if scored.given is not None:
            np.add.at(given, parts[:, None] + np.arange(size), scored.given)
        if scored.features is not None:
            family = families[scored.family]
            rows, columns, values = nonzeros(scored.features)
            block.append(blocks[rows])
            start.append(family.start + columns * family.size)
            value.append(values)

    for v, scored in graph.unary:
        if len(v):
            add(scored, first[v], v, int(states[v[0]]))
    k, cost_at = 0, np.where(bits, -1, first[:-1])
    for g in groups:
        if g.scored is not None and len(g):
            add(g.scored, table[k : k + len(g)], V + k + np.arange(len(g)), g.entries)
            if g.scored.features is not None and g.scored.tie is not None:
                tie[k : k + len(g)] = tie_at[g.scored.family]
        if g.kind == DENSE and g.members.shape[1] == 1 and g.scored is None:
            v = g.members[:, 0]
            cost_at[v[bits[v]]] = table[k : k + len(g)][bits[v]]
        k += len(g)
    where = np.concatenate(block) if block else np.zeros(0, np.int64)
    sort = np.argsort(where, kind="stable")
    counts = np.bincount(where, minlength=V + F).astype(np.int64)
    starts = (np.concatenate(start) if start else np.zeros(0, np.int64))[sort].astype(np.int64)
    values = (np.concatenate(value) if value else np.zeros(0))[sort].astype(np.float64)
    order, parents = np.zeros(F, np.int64), np.zeros(F, np.int64)
    forest = bool(plan_order(layout, order, parents))
    return Packed(layout, given, counts, starts, values, tie, cost_at.astype(np.int64), order, parents, forest)


@entry
def plan_order(graph, order, parents):
    """See `graph_order.plan`."""
    return plan(graph, order, parents)


def single(v: np.ndarray, size: int, first: np.ndarray) -> Factors:
    """A dense factor of nothing but zeros for each of these variables."""
    literal = (first[v][:, None] + np.arange(size)).reshape(-1)
    sizes, entries = np.full(len(v), size), 2 if size == 1 else size
    return Factors(DENSE, v[:, None], sizes, literal, np.zeros(len(literal), int), 0, entries, None, [""] * len(v))


def nonzeros(x: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and values of what is not zero."""
    if is_sparse(x):
        x = x.tocoo()
        return x.row.astype(np.int64), x.col.astype(np.int64), x.data
    rows, columns = np.nonzero(x)
    return rows, columns, np.asarray(x)[rows, columns]


def join(packed: Sequence[Packed]) -> dict[str, np.ndarray | Graph]:
    """All graphs end to end."""

    def offsets(sizes):
        return np.concatenate([[0], np.cumsum(list(sizes))]).astype(np.int64)

    def together(pick, dtype=np.int64):
        return np.concatenate([pick(p) for p in packed] or [np.zeros(0)]).astype(dtype)

    graphs = Graph(*(together(lambda p, k=k: p.graph[k]) for k in range(len(Graph._fields))))
    return {
        "graphs": graphs,
        "variables": offsets(len(p.graph.states) for p in packed),
        "literals": offsets(len(p.graph.owner) for p in packed),
        "factors": offsets(len(p.graph.kind) for p in packed),
        "ports": offsets(len(p.graph.literal) for p in packed),
        "members": offsets(len(p.graph.members) for p in packed),
        "parts": offsets(len(p.given) for p in packed),
        "order": together(lambda p: p.order),
        "parents": together(lambda p: p.parents),
        "forest": np.array([p.forest for p in packed], np.bool_),
        "given": together(lambda p: p.given, np.float64),
        "features": offsets(together(lambda p: p.counts)),
        "start": together(lambda p: p.start),
        "value": together(lambda p: p.value, np.float64),
        "tie": together(lambda p: p.tie),
        "cost_at": together(lambda p: p.cost_at),
    }


def row_width(families: dict[str, Family]) -> int:
    """The largest number of neighbouring weights that no family cuts apart."""
    width = 0
    for family in families.values():
        width = gcd(width, family.size)
    return max(width, 1)
