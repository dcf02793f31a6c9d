"""Graphs whose variables all have as many states and are joined in pairs: pixels, nodes, labels of a multilabel problem.

Both variables and pairs have features, whose weights are two blocks, "node" and "edge". Such graphs need no description: what
does not depend on scores is arranged once for all graphs of one form (`arrange_pairs`), and rows of features are all there is to
add.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from partwise.structures.factor_graph.description import Factors, WeightBlock, tie_entries
from partwise.structures.factor_graph.layout import DENSE
from partwise.structures.factor_graph.packing import Arrangement, PackedGraph, arrange, join, nonzeros, with_completions
from partwise.structures.factor_graph.problem import GraphProblem

NODE, EDGE = "node", "edge"  #: the blocks of weights


def arrange_pairs(n: int, edges: np.ndarray, n_states: int) -> Arrangement:
    """n variables, the pairs `edges` (edges, 2) of them being joined."""
    literal = (n_states * edges[:, :, None] + np.arange(n_states)).reshape(-1)
    sizes, mark = np.full(len(edges), 2 * n_states), np.zeros(len(literal), np.int64)
    pairs = Factors(DENSE, edges, sizes, literal, mark, 0, n_states**2, None, [])
    return arrange(np.full(n, n_states), [pairs] if len(edges) else [], np.zeros(n, bool))[0]


def pairwise_problem(
    arranged: Sequence[Arrangement],
    rows: Iterable[tuple[Any, Any]],
    blocks: dict[str, WeightBlock],
    n_states: int,
    tie: str | None,
    y: np.ndarray | None,
    costs: np.ndarray | None,
    search: dict[str, Any],
    forbidden: np.ndarray | None = None,
    known: np.ndarray | None = None,
) -> GraphProblem:
    """Pack graphs: `rows` has features of the nodes and of the edges of each, dense or sparse; `y` the states of all variables.

    `forbidden`, bool (states, states), says which pairs no edge may have, `known` the only state that variables may be in, -1
    where it is not known. The other parameters are those of `graph_problem`, and of `FactorGraph.pairwise`.
    """
    packed = [pack(one, *features, blocks, tie is not None) for one, features in zip(arranged, rows, strict=True)]
    if forbidden is not None and forbidden.any():
        for one in packed:
            tables = one.given[int(one.arranged.graph.table[0]) :]  # those of pairs come first
            pairs = int((one.arranged.graph.slots[1:] - one.arranged.graph.slots[:-1] == 2).sum())
            tables[: pairs * n_states**2].reshape(pairs, -1)[:, forbidden.reshape(-1)] = -np.inf
    if known is not None:
        first = 0
        for one in packed:
            here = known[first : first + len(one.arranged.graph.states)]
            scores = one.given[: len(here) * n_states].reshape(-1, n_states)
            scores[(here[:, None] >= 0) & (here[:, None] != np.arange(n_states))] = -np.inf
            first += len(here)
    n = sum(len(one.graph.states) for one in arranged)
    gold = np.full(n, -1, np.int32) if y is None else y.astype(np.int32)
    ties = tie_entries(tie, [n_states, n_states])
    partial = y is not None and bool((gold < 0).any())
    return with_completions(join(packed, blocks, [] if ties is None else [ties], gold, costs, search, partial))


def pack(arranged: Arrangement, nodes: Any, edges: Any, blocks: dict[str, WeightBlock], tied: bool) -> PackedGraph:
    """One graph."""
    V, F = len(arranged.graph.states), len(arranged.graph.kind)
    counts, tie = np.zeros(V + F, np.int64), np.full(F, -1, np.int64)
    start, value = [np.zeros(0, np.int64)], [np.zeros(0)]
    for first, rows, name in ((0, nodes, NODE), (V, edges, EDGE)):
        n = rows.shape[0]
        if n:
            block = blocks[name]
            where, columns, values = nonzeros(rows)
            counts[first : first + n] = np.bincount(where, minlength=n)
            start.append(block.start + columns * block.size)
            value.append(values)
    if tied:
        tie[: edges.shape[0]] = 0
    given = np.zeros(int(arranged.graph.table[-1]))
    return PackedGraph(arranged, given, counts, np.concatenate(start), np.concatenate(value), tie)
