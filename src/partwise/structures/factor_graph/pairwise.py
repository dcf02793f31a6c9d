"""Graphs whose variables all have as many states and are joined in pairs: pixels, nodes, labels of a multilabel problem.

Both variables and pairs have features. The weights of variables are one block; each feature of pairs has a block of its own, and
says itself which pairs of states share a weight (`PairWeights`). Such graphs need no description: what does not depend on scores
is arranged once for all graphs of one form (`arrange_pairs`), and rows of features are all there is to add.

**Sub- and supermodular tables.** With states in an order, a table T is *supermodular* if all

    T[a, b] + T[a + 1, b + 1] - T[a, b + 1] - T[a + 1, b] >= 0.

If all tables of pairs are, the best output is a minimum cut (two states: Kolmogorov and Zabih 2004; more: Ishikawa 2003,
Schlesinger and Flach 2006), and the relaxation that AD3 solves is tight (Werner 2007), with cycles or without: its answers are
proven to be the best. With features that are not negative, tables of weights that are supermodular are enough. `limits` are these
constraints on w, each in the form of an example: one bit that should be true, has the score a . w, and costs nothing. Its hinge,
max(0, -a . w), is an exact penalty: from some finite weight on the optimum is that of the constrained problem.

References
----------
V. Kolmogorov, R. Zabih (2004). What energy functions can be minimized via graph cuts? PAMI 26.
H. Ishikawa (2003). Exact optimization for Markov random fields with convex priors. PAMI 25.
D. Schlesinger, B. Flach (2006). Transforming an arbitrary MinSum problem into a binary one. Technical report, TU Dresden.
T. Werner (2007). A linear programming approach to max-sum problem: a review. PAMI 29.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from partwise.structures.common.hidden import mean_square
from partwise.structures.factor_graph.description import Factors, WeightBlock, tie_entries
from partwise.structures.factor_graph.layout import DENSE
from partwise.structures.factor_graph.packing import Arrangement, PackedGraph, arrange, join, nonzeros, with_completions
from partwise.structures.factor_graph.problem import GraphProblem

NODE, EDGE = "node", "edge"  #: the blocks of weights; "edge 0", "edge 1", .. of features of pairs


class PairWeights(NamedTuple):
    """Where the weights are, and which pairs of states share one."""

    n_states: int
    blocks: dict[str, WeightBlock]
    start: np.ndarray  #: (edge features,) first weight of each
    tie: np.ndarray  #: (edge features,) where its pairs begin in `ties`, -1: each has a weight of its own
    ties: list[np.ndarray]  #: as in `GraphProblem`, (states^2,) each

    @property
    def n_weights(self) -> int:
        """How many there are."""
        return sum(block.n_weights for block in self.blocks.values())

    def entries(self, feature: int) -> np.ndarray:
        """The weight of each pair of states, (states, states), in the code of `GraphProblem.ties`."""
        n = self.n_states
        at = int(self.tie[feature])
        return (np.arange(n * n) if at < 0 else self.ties[at // (n * n)]).reshape(n, n)

    def table(self, w: np.ndarray, feature: int) -> np.ndarray:
        """The weights of each pair of states, (states, states)."""
        entry, start = self.entries(feature), int(self.start[feature])
        values = w[start + np.where(entry < -1, -2 - entry, np.maximum(entry, 0))]
        return np.where(entry < -1, -values, np.where(entry < 0, np.zeros(1, w.dtype), values))

    def put(self, w: np.ndarray, feature: int, table: np.ndarray) -> None:
        """Make the weights those of a table, which has to be tied as they are."""
        entry = self.entries(feature)
        w[int(self.start[feature]) + entry[entry >= 0]] = table[entry >= 0]


def pair_weights(n_features: int, n_states: int, ties: Sequence[str | None]) -> PairWeights:
    """Weights of so many features of nodes, and of a feature of edges for each of `ties`: see `FactorGraph.pairwise`."""
    blocks, own = {NODE: WeightBlock(0, n_features, n_states)}, list(dict.fromkeys(tie for tie in ties if tie is not None))
    tables = [np.asarray(tie_entries(tie, [n_states, n_states])) for tie in own]
    start, tie, n = [], [], n_features * n_states
    for k, name in enumerate(ties):
        table = None if name is None else tables[own.index(name)]
        size = n_states**2 if table is None else int(table.max()) + 1
        blocks[f"{EDGE} {k}"] = WeightBlock(n, 1, size)
        start.append(n)
        tie.append(-1 if name is None else own.index(name) * n_states**2)
        n += size
    return PairWeights(n_states, blocks, np.array(start, np.int64), np.array(tie, np.int64), tables)


def arrange_pairs(n: int, edges: np.ndarray, n_states: int) -> Arrangement:
    """n variables, the pairs `edges` (edges, 2) of them being joined."""
    literal = (n_states * edges[:, :, None] + np.arange(n_states)).reshape(-1)
    sizes, mark = np.full(len(edges), 2 * n_states), np.zeros(len(literal), np.int64)
    pairs = Factors(DENSE, edges, sizes, literal, mark, 0, n_states**2, None, [])
    return arrange(np.full(n, n_states), [pairs] if len(edges) else [], np.zeros(n, bool))[0]


def pairwise_problem(
    arranged: Sequence[Arrangement],
    rows: Iterable[tuple[Any, Any]],
    weights: PairWeights,
    y: np.ndarray | None,
    costs: np.ndarray | None,
    search: dict[str, Any],
    forbidden: np.ndarray | None = None,
    allowed: np.ndarray | None = None,
    hidden: int = 1,
    limits: Sequence[PackedGraph] = (),
) -> GraphProblem:
    """Pack graphs: `rows` has features of the nodes and of the edges of each, dense or sparse; `y` the labels of all variables.

    `forbidden`, bool (states, states), says which pairs no edge may have, `allowed`, bool (variables, states), which states
    variables may be in. `hidden`: states of each label. `limits` become examples behind the others. What else there is, is that
    of `graph_problem`.
    """
    n_states = weights.n_states
    packed = [pack(one, *features, weights) for one, features in zip(arranged, rows, strict=True)]
    if forbidden is not None and forbidden.any():
        for one in packed:
            tables = one.given[int(one.arranged.graph.table[0]) :]  # those of pairs come first
            pairs = int((one.arranged.graph.slots[1:] - one.arranged.graph.slots[:-1] == 2).sum())
            tables[: pairs * n_states**2].reshape(pairs, -1)[:, forbidden.reshape(-1)] = -np.inf
    if allowed is not None:
        first = 0
        for one in packed:
            here = allowed[first : first + len(one.arranged.graph.states)]
            one.given[: here.size].reshape(here.shape)[~here] = -np.inf
            first += len(here)
    n = sum(len(one.graph.states) for one in arranged)
    gold = np.full(n, -1, np.int32) if y is None else y.astype(np.int32)
    partial = y is not None and (hidden > 1 or bool((gold < 0).any()))
    if limits:
        gold = np.concatenate([gold, np.ones(len(limits), np.int32)])
        costs = np.concatenate([np.ones(n) if costs is None else costs, np.zeros(len(limits))])
    problem = join([*packed, *limits], weights.blocks, weights.ties, gold, costs, search, partial, hidden)
    return with_completions(problem)


def pack(arranged: Arrangement, nodes: Any, edges: Any, weights: PairWeights) -> PackedGraph:
    """One graph."""
    V, F = len(arranged.graph.states), len(arranged.graph.kind)
    counts, none = np.zeros(V + F, np.int64), np.zeros(0, np.int64)
    start, value, tie = [none], [np.zeros(0)], [none]
    if n := nodes.shape[0]:
        where, columns, values = nonzeros(nodes)
        counts[:n] = np.bincount(where, minlength=n)
        start.append(columns * weights.n_states)
        value.append(values)
        tie.append(np.full(len(values), -1))
    if n := edges.shape[0]:
        where, columns, values = nonzeros(edges)
        counts[V : V + n] = np.bincount(where, minlength=n)
        start.append(weights.start[columns])
        value.append(values)
        tie.append(weights.tie[columns])
    given = np.zeros(int(arranged.graph.table[-1]))
    return PackedGraph(arranged, given, counts, *(np.concatenate(some) for some in (start, value, tie)))


@mean_square.register(GraphProblem)
def _(problem: GraphProblem) -> float:
    return float(np.square(problem.value).sum()) / max(len(problem.gold), 1)


# ---------------------------------------------------------------------------------------------------------------------
# Supermodular tables
# ---------------------------------------------------------------------------------------------------------------------


def limits(weights: PairWeights) -> list[PackedGraph]:
    """What makes all tables supermodular, each constraint as a graph of one bit (see the module)."""
    one, found = arrange(np.ones(1, np.int64), [], np.ones(1, bool))[0], []
    for feature, first in enumerate(weights.start.tolist()):
        entry = weights.entries(feature)
        for a in range(weights.n_states - 1):
            for b in range(weights.n_states - 1):
                four = np.array([entry[a, b], entry[a + 1, b + 1], entry[a, b + 1], entry[a + 1, b]])
                sign = np.where(four < -1, -1.0, 1.0) * np.array([1.0, 1.0, -1.0, -1.0])
                where, sign = first + np.where(four < -1, -2 - four, four)[four != -1], sign[four != -1]
                start, at = np.unique(where, return_inverse=True)
                value = np.bincount(at, sign, minlength=len(start))
                start, value = start[value != 0.0], value[value != 0.0]
                counts = np.zeros(1 + len(one.graph.kind), np.int64)
                counts[0] = len(start)
                if len(start):
                    given = np.zeros(int(one.graph.table[-1]))
                    found.append(PackedGraph(one, given, counts, start, value, np.full(len(start), -1)))
    return found


def excess(table: np.ndarray) -> np.ndarray:
    """T[a, b] + T[a + 1, b + 1] - T[a, b + 1] - T[a + 1, b]: a table is supermodular where none is negative."""
    return table[:-1, :-1] + table[1:, 1:] - table[:-1, 1:] - table[1:, :-1]


def make_supermodular(weights: PairWeights, w: np.ndarray) -> None:
    """Take off what is left of violated constraints: excesses below zero become zero, first rows and columns stay as they are."""
    for feature in range(len(weights.start)):
        table = weights.table(w, feature).astype(np.float64)
        over = excess(table)
        if not over.size or over.min() >= 0.0:
            continue
        if weights.entries(feature).max() == 0:  # one weight, of equal states
            w[weights.start[feature]] = 0.0
            continue
        if weights.entries(feature).min() < -1:  # antisymmetric: excesses come in pairs of opposite sign
            over = np.zeros_like(over)
        fixed = table.copy()
        fixed[1:, 1:] = table[1:, :1] + table[:1, 1:] - table[0, 0] + np.cumsum(np.cumsum(np.maximum(over, 0.0), 0), 1)
        weights.put(w, feature, fixed)
