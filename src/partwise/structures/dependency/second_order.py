"""Dependency trees of second order: arcs are scored, and so are consecutive siblings and grandparents.

    s(y) = sum over arcs h -> m of  w . x_{h m}  +  w . x_sibling(h, s, m)  +  w . x_grandparent(g, h, m)

As a factor graph: the head of every word is a variable, whose states are the arcs that are allowed (`kept_arcs`); one TREE factor
over all of them; and at every word one HEAD factor over its own head and the arcs out of it (`factor_graph.head`). AD3 finds the
best tree, with a bound that often proves it; sums are Bethe's, by loopy belief propagation with the matrix-tree theorem inside
(Smith and Eisner 2008), which are exact where only arcs score, or with ``sums="trw"`` never too low. `status` says what was not
proven, or did not converge. With few arcs left for each word (say 10, chosen by a model of first order) this is O(words) work
but for the TREE factor.

Outputs and costs are those of first order: n heads; the number of wrong ones. Parts: arcs, word by word; then the tables of the
heads.

References
----------
D. Smith, J. Eisner (2008). Dependency parsing by belief propagation. EMNLP.
T. Koo, A. Rush, M. Collins, T. Jaakkola, D. Sontag (2010). Dual decomposition for parsing with non-projective head
automata. EMNLP.
A. F. T. Martins, N. Smith, E. Xing, P. Aguiar, M. Figueiredo (2010). Turbo parsers. EMNLP.
"""

from __future__ import annotations

import itertools

import numpy as np

from partwise import kernels
from partwise.engine.compilation import helper
from partwise.features.arc_pairs import GRANDPARENT, MOST_PAIRS, SIBLING, add_pair, pair_score
from partwise.features.rows import add_label, emit, take_rows
from partwise.oracles.kbest_by_partition import kbest_by_partition
from partwise.structures.dependency import kept_arcs
from partwise.structures.dependency.kept_arcs import SecondOrderProblem, any_trees, arcs_of, find_arc, keep_arcs
from partwise.structures.dependency.problem import UNKNOWN, check_heads, check_trees, cycle, is_projective
from partwise.structures.factor_graph.ad3 import ad3
from partwise.structures.factor_graph.head import n_entries, siblings_from
from partwise.structures.factor_graph.layout import HEAD, PROJECTIVE, SINGLE_ROOT, TREE, WHOLE, TreeLayout
from partwise.structures.factor_graph.problem import NOT_CONVERGED, NOT_PROVEN, make_search
from partwise.structures.factor_graph.sums import propagate

NEGLIGIBLE = 1e-9  # probability of a part whose features are not added
ITERATIONS = 100  # of AD3, for one sentence
SWEEPS = {"bethe": 10, "trw": 50}  # of belief propagation


def second_order_problem(
    rows, pairs, lengths, allowed, heads=None, *, targets=None, projective=False, single_root=True, **search
) -> SecondOrderProblem:
    """Pack sentences: `rows` and `allowed` (bool) for all arcs as in `tree_problem`, of which only those allowed are kept.

    Where heads are not known (-1), `targets` are trees that agree with the others, for solvers to begin with; any by default.
    The arcs of true trees, or else of these, are kept whether they are allowed or not.
    `search`: options of `partwise.structures.factor_graph.problem.Search`, and `sums`, "bethe" or "trw".
    """
    lengths = np.asarray(lengths, np.int64)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    gold = check_heads(heads, None, 1, lengths, starts)
    if heads is not None:
        check_trees(np.asarray(heads, np.int64), starts, bool(projective), bool(single_root))
    partial = bool((gold < 0).any())
    if not partial:
        targets = gold
    elif targets is None:
        targets = any_trees(rows, lengths, starts, allowed, gold, bool(projective), bool(single_root))
    targets = np.asarray(targets, np.int32)
    if partial and (targets.shape != gold.shape or (targets != gold)[gold >= 0].any()):
        raise ValueError("The 'targets' of trees with unknown heads must agree with those that are known.")
    kept, layout = keep_arcs(lengths, starts, allowed, None if heads is None else targets)
    return (kept_arcs.PartialSecondOrderProblem if partial else SecondOrderProblem)(
        rows=take_rows(rows, kept),
        pairs=pairs,
        starts=starts,
        **layout,
        gold=gold,
        targets=targets,
        kind=SINGLE_ROOT * bool(single_root) + PROJECTIVE * bool(projective),
        status=np.zeros(len(lengths), np.int8),
        search=make_search(
            search, iterations=ITERATIONS, tol=1e-4, sweeps=SWEEPS.get(search.get("sums", "bethe"), 10), change=1e-4
        ),
    )


@helper
def view(problem, i):
    """The factor graph of sentence i."""
    n, A = length(problem, i), problem.arcs[i + 1] - problem.arcs[i]
    into, leaving, left, out = arcs_of(problem, i)
    F = 1 + n + 1
    kind, ports, slots, table = np.full(F, HEAD), np.zeros(F + 1, np.int64), np.zeros(F + 1, np.int64), np.zeros(F + 1, np.int64)
    literal, members = np.empty(3 * A, np.int64), np.empty(2 + 3 * (n + 1), np.int64)
    states, owner, mark = np.empty(n, np.int64), np.empty(A, np.int64), np.zeros(3 * A, np.int64)
    kind[0] = TREE
    ports[1], slots[1] = A, 2
    members[0], members[1] = n, problem.kind | WHOLE
    table[0] = table[1] = A
    first = problem.arcs[i]
    for m in range(n):
        states[m] = into[m + 1] - into[m]
    for k in range(A):
        owner[k] = problem.word[first + k] - 1
        literal[k], mark[k] = k, owner[k] * (n + 1) + problem.head[first + k]
    p = A
    for h in range(n + 1):
        G = into[h] - into[h - 1] if h else 0
        L, total = left[h], leaving[h + 1] - leaving[h]
        if total:  # a head without arcs out has nothing to say
            for k in range(G):
                literal[p + k] = into[h - 1] + k
            for k in range(total):
                literal[p + G + k] = out[leaving[h] + k]
            p += G + total
        else:
            G = 0
        members[2 + 3 * h], members[3 + 3 * h], members[4 + 3 * h] = G, L, total - L
        ports[h + 2], slots[h + 2] = p, 5 + 3 * h
        table[h + 2] = table[h + 1] + n_entries(G, L, total - L)
    return TreeLayout(states, into, owner, kind, ports, literal[:p], mark[:p], slots, members, table, np.zeros(F, np.int64))


# ---------------------------------------------------------------------------------------------------------------------
# Sizes
# ---------------------------------------------------------------------------------------------------------------------


@kernels.n_examples.implements(SecondOrderProblem)
def n_examples(problem):
    return problem.starts.size - 1


@kernels.is_exact.implements(SecondOrderProblem)
def is_exact(problem):
    return False


@kernels.n_weights.implements(SecondOrderProblem)
def n_weights(problem):
    return problem.rows.n_features


@kernels.n_parts.implements(SecondOrderProblem)
def n_parts(problem, i):
    return problem.parts[i + 1] - problem.parts[i]


@kernels.length.implements(SecondOrderProblem)
def length(problem, i):
    return problem.starts[i + 1] - problem.starts[i]


@kernels.target.implements(SecondOrderProblem)
def target(problem, i):
    return problem.targets[problem.starts[i] : problem.starts[i + 1]]


# ---------------------------------------------------------------------------------------------------------------------
# The parts of a tree
# ---------------------------------------------------------------------------------------------------------------------


@helper
def table_starts(problem, i):
    """Where the table of each head begins among the parts of sentence i."""
    n = length(problem, i)
    into, leaving, left, _ = arcs_of(problem, i)
    at = np.empty(n + 2, np.int64)
    at[0] = problem.arcs[i + 1] - problem.arcs[i]
    for h in range(n + 1):
        total, L = leaving[h + 1] - leaving[h], left[h]
        G = into[h] - into[h - 1] if h and total else 0
        at[h + 1] = at[h] + n_entries(G, L, total - L)
    return at


@helper
def parts_of(problem, i, y, found):
    """Write (part, kind, third word, head, word) of everything in tree y, kind -1 for arcs; how many, or -1: not allowed."""
    n, count = len(y), 0
    into, leaving, left, out = arcs_of(problem, i)
    at, first = table_starts(problem, i), problem.arcs[i]
    on = np.zeros(problem.arcs[i + 1] - first, np.bool_)
    for m in range(1, n + 1):
        k = find_arc(problem, i, into, y[m - 1], m)
        if k < 0:
            return -1
        on[k] = True
        found[count, 0], found[count, 1], found[count, 2], found[count, 3], found[count, 4] = k, -1, -1, y[m - 1], m
        count += 1
    for h in range(n + 1):
        total, L = leaving[h + 1] - leaving[h], left[h]
        if total == 0:
            continue
        G, g = 0, 0
        if h:
            G = into[h] - into[h - 1]
            g = find_arc(problem, i, into, y[h - 1], h) - into[h - 1]
        for side in range(2):
            size, start, before, sibling = (L, 0, 0, -1) if side == 0 else (total - L, L, 0, -1)
            for j in range(size):
                k = out[leaving[h] + start + j]
                if not on[k]:
                    continue
                m = problem.word[first + k]
                part = at[h] + siblings_from(G, L, total - L, side) + j * (j + 1) // 2 + before
                found[count, 0], found[count, 1], found[count, 2], found[count, 3], found[count, 4] = part, SIBLING, sibling, h, m
                count += 1
                if G:
                    part = at[h] + g * total + start + j
                    found[count, 0], found[count, 1], found[count, 2] = part, GRANDPARENT, y[h - 1]
                    found[count, 3], found[count, 4] = h, m
                    count += 1
                before, sibling = j + 1, m
    return count


@helper
def room_for(n):
    """An array for `parts_of`."""
    return np.empty((3 * n + 1, 5), np.int64)


@helper
def add_found(problem, i, part, kind, a, h, m, c, into, index):
    """into += c times the features of a part."""
    if kind < 0:
        add_label(problem.rows, problem.arcs[i] + part, 1, 0, c, into)
    else:
        add_pair(problem.pairs, i, kind, a, h, m, c, into, index)


# ---------------------------------------------------------------------------------------------------------------------
# Scores and oracles
# ---------------------------------------------------------------------------------------------------------------------


@kernels.score.implements(SecondOrderProblem)
def score(problem, i, w, theta):
    n, first = length(problem, i), problem.arcs[i]
    into, leaving, left, out = arcs_of(problem, i)
    index = np.empty(MOST_PAIRS, np.int64)
    for k in range(problem.arcs[i + 1] - first):
        theta[k] = 0.0
        emit(problem.rows, first + k, w, 1, theta[k : k + 1])
    at = table_starts(problem, i)
    for h in range(n + 1):
        total, L = leaving[h + 1] - leaving[h], left[h]
        if total == 0:
            continue
        G = into[h] - into[h - 1] if h else 0
        for g in range(G):
            grand = problem.head[first + into[h - 1] + g]
            for j in range(total):
                m = problem.word[first + out[leaving[h] + j]]
                theta[at[h] + g * total + j] = pair_score(problem.pairs, i, GRANDPARENT, grand, h, m, w, index)
        for side in range(2):
            size, start = (L, 0) if side == 0 else (total - L, L)
            base = at[h] + siblings_from(G, L, total - L, side)
            for j in range(size):
                m = problem.word[first + out[leaving[h] + start + j]]
                theta[base + j * (j + 1) // 2] = pair_score(problem.pairs, i, SIBLING, -1, h, m, w, index)
                for s in range(j):
                    sibling = problem.word[first + out[leaving[h] + start + s]]
                    value = pair_score(problem.pairs, i, SIBLING, sibling, h, m, w, index)
                    theta[base + j * (j + 1) // 2 + s + 1] = value


@kernels.add_cost.implements(SecondOrderProblem)
def add_cost(problem, i, c, theta):
    first, words = problem.arcs[i], problem.starts[i]
    for k in range(problem.arcs[i + 1] - first):
        gold = problem.gold[words + problem.word[first + k] - 1]
        if gold != UNKNOWN and problem.head[first + k] != gold:
            theta[k] += c


@kernels.cost.implements(SecondOrderProblem)
def cost(problem, i, y):
    total = 0.0
    for m in range(len(y)):
        gold = problem.gold[problem.starts[i] + m]
        total += gold != UNKNOWN and y[m] != gold
    return total


@kernels.truth.implements(SecondOrderProblem)
def truth(problem, i, y):
    for m in range(len(y)):
        y[m] = problem.gold[problem.starts[i] + m]


@kernels.value_of.implements(SecondOrderProblem)
def value_of(problem, i, theta, y):
    found, total = room_for(len(y)), 0.0
    count = parts_of(problem, i, y, found)
    if count < 0:
        return -np.inf
    for k in range(count):
        total += theta[found[k, 0]]
    return total


@kernels.best.implements(SecondOrderProblem)
def best(problem, i, theta, y):
    n, first = length(problem, i), problem.arcs[i]
    if n == 0:
        return 0.0
    graph, p, states = view(problem, i), np.empty(problem.arcs[i + 1] - first), np.zeros(n, np.int32)
    scores = theta[: n_parts(problem, i)].astype(np.float64)
    value, bound, _ = ad3(graph, scores, states, p, problem.search.iterations, problem.search.tol, p[:0])
    for m in range(n):
        y[m] = problem.head[first + graph.first[m] + (states[m] if graph.states[m] > 1 else 0)]
    problem.status[i] &= NOT_CONVERGED
    if not (bound - value <= 1e-6 * (1.0 + abs(bound))):
        problem.status[i] |= NOT_PROVEN
    return value


@kernels.kbest.implements(SecondOrderProblem)
def kbest(problem, i, theta, ys, values):
    """As good as `best` is: trees that it does not find are missing."""
    return kbest_by_partition(problem, i, theta, ys, values)


@kernels.hold.implements(SecondOrderProblem)
def hold(problem, i, theta, t, code, far):
    into, first = arcs_of(problem, i)[0], problem.arcs[i]
    for k in range(into[t], into[t + 1]):
        if problem.head[first + k] != code:
            theta[k] = -np.inf


@kernels.forbid.implements(SecondOrderProblem)
def forbid(problem, i, theta, t, code, far):
    k = find_arc(problem, i, arcs_of(problem, i)[0], code, t + 1)
    if k >= 0:
        theta[k] = -np.inf


@kernels.expected.implements(SecondOrderProblem)
def expected(problem, i, theta, parts):
    if length(problem, i) == 0:
        return 0.0
    graph, search = view(problem, i), problem.search
    scores, n = theta[: n_parts(problem, i)].astype(np.float64), n_parts(problem, i)
    log_z, converged, _ = propagate(graph, np.arange(len(graph.kind)), False, scores, search, parts[:n])
    problem.status[i] &= NOT_PROVEN
    if not converged:
        problem.status[i] |= NOT_CONVERGED
    return log_z


@kernels.agreement.implements(SecondOrderProblem)
def agreement(problem, i, parts, given):
    into, words = arcs_of(problem, i)[0], problem.starts[i]
    for m in range(length(problem, i)):
        if problem.gold[words + m] == UNKNOWN:
            given[m] = 1.0
            continue
        k = find_arc(problem, i, into, problem.gold[words + m], m + 1)
        given[m] = parts[k] if k >= 0 else 0.0


@kernels.outputs.implements(SecondOrderProblem)
def outputs(problem, i):
    n, found = int(length(problem, i)), room_for(int(length(problem, i)))
    for heads in itertools.product(range(n + 1), repeat=n):
        if any(h == m + 1 for m, h in enumerate(heads)) or cycle(np.array(heads, int)):
            continue
        if n and problem.kind & SINGLE_ROOT and heads.count(0) != 1:
            continue
        if problem.kind & PROJECTIVE and not is_projective(heads):
            continue
        y = np.array(heads, np.int32)
        if parts_of(problem, i, y, found) >= 0:
            yield y


# ---------------------------------------------------------------------------------------------------------------------
# Features
# ---------------------------------------------------------------------------------------------------------------------


@kernels.indicate.implements(SecondOrderProblem)
def indicate(problem, i, y, c, parts):
    found = room_for(len(y))
    for k in range(parts_of(problem, i, y, found)):
        parts[found[k, 0]] += c


@kernels.add_features.implements(SecondOrderProblem)
def add_features(problem, i, y, c, into):
    found, index = room_for(len(y)), np.empty(MOST_PAIRS, np.int64)
    for k in range(parts_of(problem, i, y, found)):
        add_found(problem, i, found[k, 0], found[k, 1], found[k, 2], found[k, 3], found[k, 4], c, into, index)


@kernels.difference.implements(SecondOrderProblem)
def difference(problem, i, t, y, c, into):
    right, wrong, index = room_for(len(y)), room_for(len(y)), np.empty(MOST_PAIRS, np.int64)
    n, m = parts_of(problem, i, t, right), parts_of(problem, i, y, wrong)
    shared = np.zeros(n_parts(problem, i), np.int8)
    for k in range(n):
        shared[right[k, 0]] = 1
    for k in range(m):
        if shared[wrong[k, 0]]:
            shared[wrong[k, 0]] = 2
        else:
            add_found(problem, i, wrong[k, 0], wrong[k, 1], wrong[k, 2], wrong[k, 3], wrong[k, 4], -c, into, index)
    for k in range(n):
        if shared[right[k, 0]] == 1:
            add_found(problem, i, right[k, 0], right[k, 1], right[k, 2], right[k, 3], right[k, 4], c, into, index)


@kernels.add_parts.implements(SecondOrderProblem)
def add_parts(problem, i, parts, c, into):
    n, first = length(problem, i), problem.arcs[i]
    enter, leaving, left, out = arcs_of(problem, i)
    index = np.empty(MOST_PAIRS, np.int64)
    for k in range(problem.arcs[i + 1] - first):
        if parts[k] != 0.0:
            add_label(problem.rows, first + k, 1, 0, c * parts[k], into)
    at = table_starts(problem, i)
    for h in range(n + 1):
        total, L = leaving[h + 1] - leaving[h], left[h]
        if total == 0:
            continue
        G = enter[h] - enter[h - 1] if h else 0
        for g in range(G):
            grand = problem.head[first + enter[h - 1] + g]
            for j in range(total):
                p = parts[at[h] + g * total + j]
                if abs(p) > NEGLIGIBLE:
                    m = problem.word[first + out[leaving[h] + j]]
                    add_pair(problem.pairs, i, GRANDPARENT, grand, h, m, c * p, into, index)
        for side in range(2):
            size, start = (L, 0) if side == 0 else (total - L, L)
            base = at[h] + siblings_from(G, L, total - L, side)
            for j in range(size):
                m = problem.word[first + out[leaving[h] + start + j]]
                for s in range(j + 1):
                    p = parts[base + j * (j + 1) // 2 + s]
                    if abs(p) > NEGLIGIBLE:
                        sibling = problem.word[first + out[leaving[h] + start + s - 1]] if s else -1
                        add_pair(problem.pairs, i, SIBLING, sibling, h, m, c * p, into, index)
