"""Factor graphs as linear programs, for HiGHS: an outside referee, exact answers, and which constraints contradict each other.

One column for each literal and each entry of a dense table, and for trees one flow from the root to each word:

    dense       sum over entries with state s of table entries = literal s;  the entries sum to one
    xor, at_most_one, or, budget        sum of literals = 1, <= 1, >= 1, <= number
    knapsack    sum of cost times literal <= number
    and_out     out <= each condition,  out >= sum of conditions - (their number - 1)
    imply       sum of (1 - condition) + out >= 1
    one_of_k    literal s = state s
    tree        every word has one arc in; a unit of flow to each word k over arcs that hold (Wong 1984): sum_h f_k(h, m) =
                sum_w f_k(m, w) for words m other than k, f_k <= arc

But for knapsacks, rows describe their factors' configurations tightly, so that the linear program is the one that AD3 solves;
of a knapsack AD3's is the tighter one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise.structures.factor_graph.layout import (
    AND_OUT,
    AT_MOST_ONE,
    BUDGET,
    DENSE,
    HEAD,
    IMPLY,
    KNAPSACK,
    NAMES,
    ONE_OF_K,
    OR,
    PROJECTIVE,
    SINGLE_ROOT,
    TREE,
    WRITTEN,
    XOR,
)


class LinearProgram(NamedTuple):
    """max c . x over low <= A x <= high, 0 <= x <= top, the first so many columns whole if asked for."""

    c: np.ndarray
    top: np.ndarray
    rows: list[int]
    columns: list[int]
    values: list[float]
    low: list[float]
    high: list[float]
    n_literals: int


def linear_program(graph: Any, theta: np.ndarray, without: frozenset[int] = frozenset()) -> LinearProgram:
    """The program of a graph, but for the factors in `without`."""
    n, extra = int(graph.first[-1]), 0
    for f in np.flatnonzero(graph.kind == TREE).tolist():
        extra += int(graph.members[graph.slots[f]]) * int(graph.ports[f + 1] - graph.ports[f])
    c = np.concatenate([theta, np.zeros(extra)])
    top = np.where(np.isneginf(c), 0.0, 1.0)
    program = LinearProgram(np.where(np.isneginf(c), 0.0, c), top, [], [], [], [], [], n)
    flow = len(theta)
    for v, states in enumerate(graph.states):
        if states > 1:
            add(program, range(graph.first[v], graph.first[v + 1]), 1.0, 1.0, 1.0)
    for f, kind in enumerate(graph.kind.tolist()):
        if kind in (HEAD, WRITTEN) or (kind == TREE and graph.members[graph.slots[f] + 1] & PROJECTIVE):
            raise ValueError(f"HiGHS cannot be asked about factors of the kind {NAMES[kind]!r} (projective). Use method='exact'.")
        if f in without:
            continue
        if kind == TREE:
            flow = add_tree(program, graph, f, flow)
        elif kind == DENSE:
            add_dense(program, graph, f)
        else:
            add_logic(program, graph, f)
    return program


def add(program: LinearProgram, columns: Any, values: Any, low: float, high: float) -> None:
    """One row."""
    columns = list(columns)
    program.rows.extend([len(program.low)] * len(columns))
    program.columns.extend(columns)
    program.values.extend(np.broadcast_to(values, len(columns)).tolist())
    program.low.append(low)
    program.high.append(high)


def add_dense(program: LinearProgram, graph: Any, f: int) -> None:
    """Entries of the table agree with the states of its variables."""
    members = graph.members[graph.slots[f] : graph.slots[f + 1]]
    sizes = [2 if graph.states[v] == 1 else int(graph.states[v]) for v in members]
    entries = np.arange(graph.table[f], graph.table[f + 1]).reshape(sizes)
    add(program, entries.reshape(-1), 1.0, 1.0, 1.0)
    for j, v in enumerate(members):
        for s in range(sizes[j]):
            if graph.states[v] == 1 and s == 0:
                continue
            here = np.take(entries, s, axis=j).reshape(-1)
            literal = graph.first[v] + (0 if graph.states[v] == 1 else s)
            add(program, [*here, literal], [1.0] * len(here) + [-1.0], 0.0, 0.0)


def add_logic(program: LinearProgram, graph: Any, f: int) -> None:
    """Hard factors; "not a literal" is one less it."""
    kind, a, b = graph.kind[f], graph.ports[f], graph.ports[f + 1]
    literal, mark = graph.literal[a:b], graph.mark[a:b]

    def say(ports: list[int], signs: list[float], low: float, high: float) -> None:
        shift = sum(s for p, s in zip(ports, signs, strict=True) if mark[p])
        values = [-s if mark[p] else s for p, s in zip(ports, signs, strict=True)]
        add(program, literal[ports], values, low - shift, high - shift)

    n = b - a
    every, ones = list(range(n)), [1.0] * n
    if kind == XOR:
        say(every, ones, 1.0, 1.0)
    elif kind == AT_MOST_ONE:
        say(every, ones, -np.inf, 1.0)
    elif kind == OR:
        say(every, ones, 1.0, np.inf)
    elif kind == KNAPSACK:
        costs = graph.members[graph.slots[f] : graph.slots[f + 1]].astype(float).tolist()
        say(every, costs, -np.inf, float(graph.number[f]))
    elif kind == BUDGET:
        say(every, ones, -np.inf, float(graph.number[f]))
    elif kind in (AND_OUT, IMPLY):
        say(every, [-1.0] * (n - 1) + [1.0], 1.0 - (n - 1), np.inf)
        for p in range(n - 1 if kind == AND_OUT else 0):
            say([p, n - 1], [1.0, -1.0], 0.0, np.inf)
    elif kind == ONE_OF_K:
        for s in range(n // 2):
            say([s, n // 2 + s], [1.0, -1.0], 0.0, 0.0)


def add_tree(program: LinearProgram, graph: Any, f: int, flow: int) -> int:
    """One flow for each word; returns where the next columns begin."""
    a, b = graph.ports[f], graph.ports[f + 1]
    n, single = int(graph.members[graph.slots[f]]), graph.members[graph.slots[f] + 1] & SINGLE_ROOT
    arcs, literal = graph.mark[a:b], graph.literal[a:b]
    words, heads = arcs // (n + 1) + 1, arcs % (n + 1)
    for m in range(1, n + 1):
        add(program, literal[words == m], 1.0, 1.0, 1.0)
    if single and n:
        add(program, literal[heads == 0], 1.0, 1.0, 1.0)
    for k in range(1, n + 1):
        own = flow + np.arange(b - a)
        for m in range(1, n + 1):
            into, out = own[words == m], own[heads == m]
            add(program, [*into, *out], [1.0] * len(into) + [-1.0] * len(out), float(m == k), float(m == k))
        for p in range(b - a):
            add(program, [own[p], literal[p]], [1.0, -1.0], -np.inf, 0.0)
        flow += b - a
    return flow


def solve_program(program: LinearProgram, whole: bool) -> tuple[float, np.ndarray]:
    """The highest value (-inf: there is none) and the columns."""
    import scipy.optimize
    import scipy.sparse

    shape = (len(program.low), len(program.c))
    matrix = scipy.sparse.csr_matrix((program.values, (program.rows, program.columns)), shape=shape)
    integrality = np.zeros(len(program.c))
    if whole:
        integrality[: program.n_literals] = 1
    found = scipy.optimize.milp(
        -program.c,
        constraints=scipy.optimize.LinearConstraint(matrix, program.low, program.high) if shape[0] else (),
        bounds=scipy.optimize.Bounds(0.0, program.top),
        integrality=integrality,
        options={"mip_rel_gap": 0.0},
    )
    if found.status == 2 or found.x is None:
        return -np.inf, np.zeros(len(program.c))
    return float(program.c @ found.x), found.x


def possible(graph: Any, theta: np.ndarray) -> bool:
    """Whether any output is allowed. Where HiGHS cannot be asked, yes."""
    if np.isin(graph.kind, (HEAD, WRITTEN)).any() or any(
        graph.members[graph.slots[f] + 1] & PROJECTIVE for f in np.flatnonzero(graph.kind == TREE).tolist()
    ):
        return True
    return solve_program(linear_program(graph, np.where(np.isneginf(theta), -np.inf, 0.0)), True)[0] > -np.inf


def conflicting(graph: Any, given: np.ndarray) -> list[int]:
    """Hard factors that cannot hold together, none of which can be spared: a deletion filter, one feasibility problem each."""
    zero = np.where(np.isneginf(given), -np.inf, 0.0)
    hard = [int(f) for f in np.flatnonzero(graph.kind != DENSE)]
    spared: set[int] = set()
    for f in hard:
        if solve_program(linear_program(graph, zero, frozenset(spared | {f})), True)[0] == -np.inf:
            spared.add(f)
    return [f for f in hard if f not in spared]
