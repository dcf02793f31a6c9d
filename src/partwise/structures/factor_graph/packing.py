"""From described graphs to packed problems.

Packing numbers literals, ports and parts, lays tables end to end, decides in which order factors are visited (`Arrangement`: all
that does not depend on scores), and finds for every feature where its weights begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from partwise.engine.compilation import compiled_loop
from partwise.features.rows import is_sparse
from partwise.oracles.complete_all import complete_all
from partwise.structures.factor_graph import kernels, written  # noqa: F401 - what a packed problem can do
from partwise.structures.factor_graph.answers import first_violated
from partwise.structures.factor_graph.description import Description, Factors, Scored, WeightBlock, row_width, weight_blocks
from partwise.structures.factor_graph.layout import DENSE, WRITTEN, FactorLayout, WrittenLayout, layout_for, with_objects
from partwise.structures.factor_graph.order import plan
from partwise.structures.factor_graph.problem import GraphProblem, PartialGraphProblem, make_search, problem_class

NONE = np.zeros(0, np.int64)


class Arrangement(NamedTuple):
    """One graph as arrays, without its scores."""

    graph: FactorLayout
    order: np.ndarray
    parents: np.ndarray
    forest: bool
    cost_at: np.ndarray


class PackedGraph(NamedTuple):
    """One graph as arrays, with its scores."""

    arranged: Arrangement
    given: np.ndarray
    counts: np.ndarray  #: features of each variable and factor
    start: np.ndarray
    value: np.ndarray
    tie: np.ndarray  #: of each feature


# ---------------------------------------------------------------------------------------------------------------------
# One graph
# ---------------------------------------------------------------------------------------------------------------------


def arrange(states: np.ndarray, factors: Sequence[Factors], labelled: np.ndarray) -> tuple[Arrangement, list[Factors]]:
    """The arrays of a graph, and all groups of its factors: those given, and dense ones for variables that need their own.

    `labelled`: the variables whose truth is known.
    """
    states, V = np.asarray(states, np.int64), len(states)
    first = np.concatenate([[0], np.cumsum(states)]).astype(np.int64)
    bits, in_dense = states == 1, np.zeros(V, bool)
    for g in factors:
        if g.kind == DENSE:
            in_dense[g.members.reshape(-1)] = True
    own = np.where(bits, labelled, ~in_dense)  # so that its cost has a place; so that its states exclude each other
    groups = [*factors, *(single(np.flatnonzero(own & (states == n)), int(n), first) for n in np.unique(states[own]))]

    def each(pick: Any) -> np.ndarray:
        return np.concatenate([pick(g) for g in groups] or [NONE]).astype(np.int64)

    def offsets(sizes: np.ndarray) -> np.ndarray:
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    table = first[-1] + offsets(each(lambda g: np.full(len(g), g.entries)))
    kinds = each(lambda g: np.full(len(g), g.kind)).astype(np.int32)
    graph = layout_for(kinds)(
        states,
        first,
        np.repeat(np.arange(V), states).astype(np.int64),
        kinds,
        offsets(each(lambda g: g.sizes)),
        each(lambda g: g.literal),
        each(lambda g: g.mark),
        offsets(each(lambda g: np.full(len(g), g.members.shape[1]))),
        each(lambda g: g.members.reshape(-1)),
        table,
        each(lambda g: np.full(len(g), g.number)),
    )
    if isinstance(graph, WrittenLayout):
        with_objects(graph, tuple(g.written for g in groups if g.kind == WRITTEN))
        graph.number[graph.kind == WRITTEN] = np.repeat(
            np.arange(len(graph.objects)), [len(g) for g in groups if g.kind == WRITTEN]
        )
    k, cost_at = 0, np.where(bits, -1, first[:-1]).astype(np.int64)
    for g in groups:
        if g.kind == DENSE and g.members.shape[1] == 1 and g.scored is None:
            v = g.members[:, 0]
            cost_at[v[bits[v]]] = table[k : k + len(g)][bits[v]]
        k += len(g)
    order, parents = np.zeros(k, np.int64), np.zeros(k, np.int64)
    forest = bool(plan_order(graph, order, parents))
    return Arrangement(graph, order, parents, forest, cost_at), groups


@compiled_loop
def plan_order(graph, order, parents):
    """See `partwise.structures.factor_graph.order.plan`."""
    return plan(graph, np.zeros(len(graph.kind), np.bool_), order, parents)


def single(v: np.ndarray, size: int, first: np.ndarray) -> Factors:
    """A dense factor of nothing but zeros for each of these variables."""
    literal = (first[v][:, None] + np.arange(size)).reshape(-1)
    sizes, entries = np.full(len(v), size), 2 if size == 1 else size
    return Factors(DENSE, v[:, None], sizes, literal, np.zeros(len(literal), int), 0, entries, None, [""] * len(v))


def pack(described: Description, blocks: dict[str, WeightBlock], labelled: np.ndarray, tie_at: dict[str, int]) -> PackedGraph:
    """One graph. `tie_at`: where the ties of a block of weights begin."""
    arranged, groups = arrange(described.states, described.factors, labelled)
    graph = arranged.graph
    V, F = len(graph.states), len(graph.kind)
    given = np.zeros(int(graph.table[-1]))
    owner, start, value, tie = [NONE], [NONE], [np.zeros(0)], [NONE]  # of features

    def add(scored: Scored, parts: np.ndarray, owners: np.ndarray, size: int) -> None:
        if scored.given is not None:
            np.add.at(given, parts[:, None] + np.arange(size), scored.given)
        if scored.features is not None:
            block = blocks[scored.weights]
            rows, columns, values = nonzeros(scored.features)
            owner.append(owners[rows])
            start.append(block.start + columns * block.size)
            value.append(values)
            tie.append(np.full(len(values), -1 if scored.tie is None else tie_at[scored.weights]))

    for v, scored in described.unary:
        if len(v):
            add(scored, graph.first[v], v, int(graph.states[v[0]]))
    k = 0
    for g in groups:
        if g.scored is not None and len(g):
            add(g.scored, graph.table[k : k + len(g)], V + k + np.arange(len(g)), g.entries)
        k += len(g)
    where = np.concatenate(owner)
    sort = np.argsort(where, kind="stable")
    counts = np.bincount(where, minlength=V + F)
    return PackedGraph(arranged, given, counts, *(np.concatenate(some)[sort] for some in (start, value, tie)))


def nonzeros(x: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, columns and values of what is not zero, row by row."""
    if is_sparse(x):
        x = x.tocoo()
        return x.row.astype(np.int64), x.col.astype(np.int64), x.data
    rows, columns = np.nonzero(x)
    return rows, columns, np.asarray(x)[rows, columns]


# ---------------------------------------------------------------------------------------------------------------------
# All graphs
# ---------------------------------------------------------------------------------------------------------------------


def join(
    packed: Sequence[PackedGraph],
    blocks: dict[str, WeightBlock],
    ties: Sequence[np.ndarray],
    gold: np.ndarray,
    costs: np.ndarray | None,
    search: dict[str, Any],
    partial: bool,
    hidden: int = 1,
) -> GraphProblem:
    """All graphs end to end; `partial`: some state that is to be learnt is not known. `hidden`: states of each label."""

    def offsets(sizes):
        return np.concatenate([[0], np.cumsum(list(sizes))]).astype(np.int64)

    def together(pick, dtype=np.int64):
        return np.concatenate([pick(p) for p in packed] or [np.zeros(0)]).astype(dtype)

    arranged = [p.arranged for p in packed]
    graphs = [a.graph for a in arranged]
    weight = np.ones(len(gold)) if costs is None else costs
    if weight.shape != gold.shape or not (np.isfinite(weight) & (weight >= 0)).all():
        raise ValueError(f"costs must be numbers from 0 on, one for each of the {len(gold)} variables.")
    kinds = together(lambda p: p.arranged.graph.kind)
    every = layout_for(kinds)(*(together(lambda p, k=k: p.arranged.graph[k]) for k in range(len(FactorLayout._fields))))
    if isinstance(every, WrittenLayout):
        own = [g.objects if isinstance(g, WrittenLayout) else () for g in graphs]
        with_objects(every, tuple(one for some in own for one in some))
        before = np.repeat(offsets(map(len, own))[:-1], [len(g.kind) for g in graphs])
        every.number[kinds == WRITTEN] += before[kinds == WRITTEN]
    return problem_class(every, partial)(
        graphs=every,
        variables=offsets(len(g.states) for g in graphs),
        literals=offsets(len(g.owner) for g in graphs),
        factors=offsets(len(g.kind) for g in graphs),
        ports=offsets(len(g.literal) for g in graphs),
        members=offsets(len(g.members) for g in graphs),
        parts=offsets(len(p.given) for p in packed),
        order=together(lambda p: p.arranged.order),
        parents=together(lambda p: p.arranged.parents),
        forest=np.array([a.forest for a in arranged], np.bool_),
        given=together(lambda p: p.given, np.float64),
        features=offsets(together(lambda p: p.counts)),
        start=together(lambda p: p.start),
        value=together(lambda p: p.value, np.float64),
        tie=together(lambda p: p.tie),
        ties=np.concatenate([NONE, *ties]).astype(np.int64),
        gold=gold,
        targets=np.maximum(gold, 0) * np.int32(hidden),
        weight=weight,
        cost_at=together(lambda p: p.arranged.cost_at),
        status=np.zeros(len(packed), np.int8),
        n_weights=max((block.start + block.n_weights for block in blocks.values()), default=0),
        width=row_width(blocks),
        hidden=hidden,
        search=make_search(search),
    )


def with_completions(problem: GraphProblem) -> GraphProblem:
    """With some acceptable output as the target where states are not known."""
    if not isinstance(problem, PartialGraphProblem):
        return problem
    targets, wrong = complete_all(problem)
    if wrong >= 0:
        raise ValueError(f"graph {wrong}: no output agrees with its known states and its hard factors.")
    return problem._replace(targets=targets)


def graph_problem(
    graphs: Sequence[Any],
    y: Sequence[Any] | None = None,
    *,
    families: dict[str, WeightBlock] | None = None,
    costs: Sequence[Any] | None = None,
    **search: Any,
) -> GraphProblem:
    """Pack graphs.

    Parameters
    ----------
    graphs : list of FactorGraph
    y : list of integer arrays, optional
        The state of every variable of each graph, -1 where it is not known.
    families : optional
        Where the weights are, from `graph_families`; of these graphs by default.
    costs : list of arrays, optional
        Of each variable's being in the wrong state; 1 by default.
    search : see `partwise.structures.factor_graph.problem.Search`

    Examples
    --------
    >>> import numpy as np
    >>> from partwise import FactorGraph, solve
    >>> g = FactorGraph()
    >>> x = g.variables(2, states=2)
    >>> g.unary(x, features=np.eye(2), weights="colour")
    >>> solve(graph_problem([g], [[0, 1]]), "hinge", C=1.0).w.shape
    (4,)
    """
    make_search(search)  # says so early if that cannot be
    described = [g.describe() for g in graphs]
    own = weight_blocks(described)
    blocks = own if families is None else families
    for name, block in own.items():
        if name not in blocks or blocks[name][1:] != block[1:]:
            raise ValueError(f"weights={name!r}: {block[1:]} (features, weights of a feature) are not what the model has.")
    ties: dict[str, np.ndarray] = {}
    for group in (group for graph in described for group in graph.factors):
        if group.scored is not None and group.scored.tie is not None:
            ties.setdefault(group.scored.weights, group.scored.tie)
    tie_at = dict(zip(ties, np.cumsum([0, *map(len, ties.values())]).tolist(), strict=False))
    gold = [np.full(len(d.states), -1, np.int32) for d in described] if y is None else check_states(y, described)
    packed = [pack(d, blocks, states >= 0, tie_at) for d, states in zip(described, gold, strict=True)]
    truth = np.concatenate([np.zeros(0, np.int32), *gold])
    weight = None if costs is None else np.concatenate([np.zeros(0), *(np.asarray(c, float).reshape(-1) for c in costs)])
    problem = join(packed, blocks, list(ties.values()), truth, weight, search, y is not None and bool((truth < 0).any()))
    if y is not None:
        check_truth(problem, described)
    return with_completions(problem)


def graph_families(graphs: Sequence[Any]) -> dict[str, WeightBlock]:
    """Where the weights of each name are in w: ``w[f.start :][: f.n_weights].reshape(f.n_features, f.size)``.

    Parameters
    ----------
    graphs : list of FactorGraph

    Examples
    --------
    >>> import numpy as np
    >>> from partwise import FactorGraph
    >>> g = FactorGraph()
    >>> x = g.variables(2, states=2)
    >>> g.unary(x, features=np.eye(2), weights="colour")
    >>> family = graph_families([g])["colour"]
    >>> family.start, family.n_weights
    (0, 4)
    """
    return weight_blocks([g.describe() for g in graphs])


def check_states(y: Sequence[Any], graphs: Sequence[Description]) -> list[np.ndarray]:
    """The states as arrays; an error names the graph and the variable."""
    if len(y) != len(graphs):
        raise ValueError(f"There are {len(graphs)} graphs and states of {len(y)}.")
    checked = []
    for i, (states, graph) in enumerate(zip(y, graphs, strict=True)):
        found = np.asarray(states).reshape(-1)
        if found.shape != graph.states.shape:
            raise ValueError(f"graph {i}: expected {len(graph.states)} states, got {len(found)}.")
        most = np.where(graph.states == 1, 2, graph.states)
        bad = np.flatnonzero(~((found >= -1) & (found < most)) | (found != np.floor(found)))
        if len(bad):
            v = bad[0]
            raise ValueError(f"graph {i}, variable {v}: its state must be an int from 0 to {most[v] - 1}, or -1. Got {found[v]}.")
        checked.append(found.astype(np.int32))
    return checked


def check_truth(problem: GraphProblem, graphs: Sequence[Description]) -> None:
    """Raise, naming graph and factor, if a hard factor forbids a training output."""
    for i, graph in enumerate(graphs):
        gold = problem.gold[problem.variables[i] : problem.variables[i + 1]]
        if (gold >= 0).all() and (f := first_violated(problem, i, gold)) >= 0:
            name = [name for group in graph.factors for name in group.names][f]
            raise ValueError(f"graph {i}: the states that it is to learn are against the factor {name}.")
