"""What must hold of stored factor graphs.

Entries of most arrays are counted from the beginning of each graph. What is worked out of others (first literals, owners, the
order in which factors are visited) is worked out again and compared.
"""

from __future__ import annotations

import numpy as np

from partwise.features.stored import (
    MOST_WEIGHTS,
    check_array,
    check_arrays,
    check_flags,
    check_int,
    check_numbers,
    check_offsets,
    check_reals,
    expect,
    owners,
)
from partwise.structures.factor_graph.head import n_entries
from partwise.structures.factor_graph.layout import (
    DENSE,
    HEAD,
    KNAPSACK,
    NAMES,
    ONE_OF_K,
    PROJECTIVE,
    SINGLE_ROOT,
    TREE,
    FactorLayout,
    layout_for,
)
from partwise.structures.factor_graph.packing import plan_order
from partwise.structures.factor_graph.problem import GraphProblem, view

MOST_STATES = 2**31  # of all variables together


@check_arrays.register
def _(problem: GraphProblem) -> None:
    g = problem.graphs
    expect(isinstance(g, FactorLayout), "graphs is no layout")
    check_search(problem)
    N = len(problem.variables) - 1
    V, F, P = len(g.states), len(g.kind), len(g.literal)
    for name, offsets, total in (
        ("variables", problem.variables, V),
        ("literals", problem.literals, len(g.owner)),
        ("factors", problem.factors, F),
        ("ports", problem.ports, P),
        ("members", problem.members, len(g.members)),
        ("parts", problem.parts, len(problem.given)),
    ):
        check_offsets(name, offsets, N, total)
    check_numbers("states", g.states, V, 1, MOST_STATES)
    expect(g.states.sum(dtype=np.float64) < MOST_STATES, "there are too many states")
    check_inner("first", g.first, problem.variables, g.states, problem.literals)
    check_numbers("owner", g.owner, len(g.owner), 0, max(V, 1))
    own = np.arange(V) - np.repeat(problem.variables[:-1], np.diff(problem.variables))
    expect(np.array_equal(g.owner, np.repeat(own, g.states)), "owner does not fit the states")
    check_factors(problem)
    check_features(problem)
    choices = np.where(g.states == 1, 2, g.states)
    for name, states, least in (("gold", problem.gold, -1), ("targets", problem.targets, 0)):
        check_numbers(name, states, V, least, MOST_STATES)
        expect((states < choices).all(), f"{name} has states that are not there")
    check_reals("weight", problem.weight, V)
    parts = np.diff(problem.parts)[owners(problem.variables)]
    check_numbers("cost_at", problem.cost_at, V, -1, int(parts.max(initial=0)) + 1)
    expect(((problem.cost_at < 0) | (problem.cost_at + choices <= parts)).all(), "cost_at points beyond the parts")
    check_numbers("status", problem.status, N, 0, 4, "t")
    check_array("forest", problem.forest, (N,), "b")
    check_numbers("order", problem.order, F, 0, max(F, 1))
    check_numbers("parents", problem.parents, F, 0, max(V, 1))
    for i in range(N):
        a, b = problem.factors[i : i + 2]
        order, parents = np.zeros(b - a, np.int64), np.zeros(b - a, np.int64)
        forest = bool(plan_order(view(problem, i), order, parents))
        same = np.array_equal(order, problem.order[a:b]) and np.array_equal(parents, problem.parents[a:b])
        expect(same and forest == problem.forest[i], f"the factors of graph {i} are not visited in their order")


def check_search(problem: GraphProblem) -> None:
    """How oracles look for answers, and sizes of weights."""
    search = problem.search
    for name in ("iterations", "nodes", "sweeps"):
        check_int(name, getattr(search, name), 1, 2**31)
    for name in ("tol", "change", "damping"):
        expect(isinstance(getattr(search, name), int | float), f"{name} is {getattr(search, name)!r}")
    expect(0.0 <= search.damping < 1.0, f"damping is {search.damping!r}")
    check_flags(search, "exact", "residual", "bound")
    check_int("n_weights", problem.n_weights, 0, MOST_WEIGHTS)
    check_int("width", problem.width, 1, max(problem.n_weights, 1) + 1)


def check_inner(
    name: str, array: np.ndarray, outer: np.ndarray, sizes: np.ndarray, ends: np.ndarray, begins: np.ndarray | int = 0
) -> None:
    """Offsets of things of these sizes, in each graph from `begins` on, up to what `ends` leaves for the graph.

    The things of graph i are those from ``outer[i]`` to ``outer[i + 1]``; it has one entry more.
    """
    n = len(outer) - 1
    check_numbers(name, array, int(outer[-1]) + n, 0, 2**62)
    graph = np.repeat(np.arange(n), np.diff(outer) + 1)
    total = np.concatenate([[0], np.cumsum(sizes)])
    from_begin = total[np.arange(len(graph)) - graph] - total[outer[:-1]][graph]
    expect((array == from_begin + np.broadcast_to(begins, n)[graph]).all(), f"{name} does not fit what else there is")
    expect((total[outer[1:]] - total[outer[:-1]] + begins == np.diff(ends)).all(), f"{name} does not end where its graph does")


def check_factors(problem: GraphProblem) -> None:
    """Ports, members and tables of all factors."""
    g, graph = problem.graphs, owners(problem.factors)
    F, P = len(g.kind), len(g.literal)
    check_numbers("kind", g.kind, F, 0, len(NAMES))
    expect(isinstance(g, layout_for(g.kind)), "there are trees, and the layout is for graphs without")
    ports, slots = (inner_sizes(array, problem.factors) for array in (g.ports, g.slots))
    expect((ports >= 0).all() and (slots >= 0).all(), "ports or slots fall")
    check_inner("ports", g.ports, problem.factors, ports, problem.ports)
    check_inner("slots", g.slots, problem.factors, slots, problem.members)
    literals, variables = np.diff(problem.literals), np.diff(problem.variables)
    check_numbers("literal", g.literal, P, 0, max(int(literals.max(initial=0)), 1))
    expect((g.literal < literals[owners(problem.ports)]).all(), "ports look at literals that are not there")
    at, first = g.members, np.concatenate([[0], np.cumsum(slots)])  # where the members of each factor are
    check_numbers("members", at, len(at), 0, 2**62)
    kind_of_member, graph_of_member = np.repeat(g.kind, slots), np.repeat(graph, slots)
    named = (kind_of_member == DENSE) | (kind_of_member == ONE_OF_K)
    expect((at[named] < variables[graph_of_member[named]]).all(), "factors have members that are not there")
    states = np.zeros(len(at), np.int64)
    states[named] = g.states[at[named] + problem.variables[graph_of_member[named]]]
    entries = np.zeros(F, np.int64)
    # dense: the literals of its variables one after another; a table of all their states
    dense = np.flatnonzero(g.kind == DENSE)
    expect((slots[dense] > 0).all(), "a factor has no variables")
    literals_of = np.zeros(len(at), np.int64)
    literals_of[named] = g.first[at[named] + problem.variables[graph_of_member[named]] + graph_of_member[named]]
    expect((ports[dense] == np.add.reduceat(np.append(states, 0), first[:-1])[dense]).all(), "a table has too few ports")
    some = np.flatnonzero(kind_of_member == DENSE)
    begins = np.cumsum(states[some]) - states[some]
    wanted = np.repeat(literals_of[some] - begins, states[some]) + np.arange(int(states[some].sum()))
    expect(np.array_equal(g.literal[np.repeat(g.kind == DENSE, ports)], wanted), "a table looks at other literals than its own")
    sizes = np.multiply.reduceat(np.append(np.where(states == 1, 2, states), 1).astype(np.float64), first[:-1])[dense]
    expect((sizes < MOST_WEIGHTS).all(), "a table is too large")
    entries[dense] = sizes
    # a variable and its code
    codes = np.flatnonzero(g.kind == ONE_OF_K)
    expect((slots[codes] == 1).all(), "a code is one of one variable")
    expect(
        (ports[codes] == 2 * states[first[codes]]).all() and (states[first[codes]] > 1).all(),
        "a code is not that of its variable",
    )
    sacks = np.flatnonzero(g.kind == KNAPSACK)
    expect((slots[sacks] == ports[sacks]).all(), "what is in a knapsack has no cost")
    check_numbers("number", g.number, F, 0, 2**62)
    mark_most = np.full(F, 2)
    if (g.kind == TREE).any():
        tree = np.flatnonzero(g.kind == TREE)
        expect((slots[tree] == 2).all(), "a tree has words and a kind")
        n = at[first[tree]]
        expect(((1 <= n) & (n <= ports[tree])).all(), "a tree has words without arcs")
        expect((at[first[tree] + 1] <= SINGLE_ROOT | PROJECTIVE).all(), "there is no such kind of trees")
        mark_most[tree] = n * (n + 1)
    if (g.kind == HEAD).any():
        heads = np.flatnonzero(g.kind == HEAD)
        expect((slots[heads] == 3).all(), "a head has arcs in, to the left and to the right")
        G, L, R = (at[first[heads] + k] for k in range(3))
        expect(
            (np.maximum(np.maximum(G, L), R) <= ports[heads]).all() and (G + L + R == ports[heads]).all(), "a head has other arcs"
        )
        entries[heads] = n_entries(G, L, R)
    check_numbers("mark", g.mark, P, 0, max(int(mark_most.max(initial=2)), 2))
    expect((g.mark < np.repeat(mark_most, ports)).all(), "arcs are marked that are not there")
    check_inner("table", g.table, problem.factors, entries, problem.parts, literals)


def inner_sizes(array: np.ndarray, outer: np.ndarray) -> np.ndarray:
    """Sizes of things from their offsets, which have one entry more for each graph."""
    check_array("offsets", array, (int(outer[-1]) + len(outer) - 1,), "i")
    graph = owners(outer)
    at = np.arange(int(outer[-1])) + graph
    return array[at + 1] - array[at]


def check_features(problem: GraphProblem) -> None:
    """Weights that features score with, and ties of the entries of tables."""
    g, F = problem.graphs, len(problem.graphs.kind)
    V, n, features = len(g.states), len(problem.start), problem.features
    check_reals("given", problem.given, len(problem.given))
    check_offsets("features", features, V + F, n)
    check_numbers("start", problem.start, n, 0, max(problem.n_weights, 1))
    check_reals("value", problem.value, n)
    check_numbers("ties", problem.ties, len(problem.ties), -1 - max(problem.n_weights, 1), max(problem.n_weights, 1))
    check_numbers("tie", problem.tie, n, -1, len(problem.ties) + 1)
    graph_of_variable, graph_of_factor = owners(problem.variables), owners(problem.factors)
    variables = np.arange(V) + problem.factors[:-1][graph_of_variable]  # graph by graph, variables first
    factors = np.arange(F) + problem.variables[1:][graph_of_factor]
    sizes: np.ndarray = np.empty(V + F, np.int64)
    sizes[variables], sizes[factors] = g.states, inner_sizes(g.table, problem.factors)
    sizes = np.repeat(sizes, np.diff(features))
    tied = np.flatnonzero(problem.tie >= 0)
    expect((problem.tie[tied] + sizes[tied] <= len(problem.ties)).all(), "tie points beyond the ties")
    # of each feature: how far beyond its first weight others are
    numbers = np.maximum(problem.ties, -2 - problem.ties)  # -1: no weight; -2 - t: weight t with the other sign
    pairs, which = np.unique(np.stack([problem.tie[tied], sizes[tied]]), axis=1, return_inverse=True)
    reach = [numbers[tie : tie + size].max(initial=-1) + 1 for tie, size in pairs.T.tolist()]
    sizes[tied] = np.array(reach, np.int64)[which.reshape(-1)]
    expect((problem.start + sizes <= problem.n_weights).all(), "start points beyond the weights")
