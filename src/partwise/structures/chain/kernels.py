"""Linear chains of any order: an output is one label per position.

    s(y) = sum_t x_t . W[:, y_t]  +  sum_t sum_{j=1..k} A_j[y_{t-j} .. y_{t-1}, y_t]  +  stop[y_T]

Before the first position stands a begin symbol, so the start weights are simply the rows of A_j with that symbol in their
history. A chain of order k (a (k+1)-gram model) is a first-order chain over states that are k-tuples of symbols (Martins et al.
2010, section 2.2): with H = L + 1 symbols, a state s is a number in base H, and reading label c moves s to
``(s mod H^(k-1)) H + c``. One recursion therefore serves every order.

Parts: (t, label) nodes, then tied (state, label) transitions, then stop labels. Cost of an oracle: O(T H^k L) time, O(T H^k)
memory. Weights lie in rows of L: features, then A_1 .. A_k, then stop.

What is known of a token may be a set of labels instead of one: the acceptable outputs are the product of the sets.
"""

from __future__ import annotations

import itertools

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import row
from partwise.engine.compilation import helper
from partwise.engine.numerics import copy, fill, padded_width
from partwise.features.rows import Dense, add_label, add_labels, add_row, emit, emit_difference, n_emitted
from partwise.structures.chain.problem import (
    ChainProblem,
    PartialChainProblem,
)

SCALAR = 8  # labels scored one by one that take as long as as many scored side by side

# ---------------------------------------------------------------------------------------------------------------------
# Sizes
# ---------------------------------------------------------------------------------------------------------------------


@helper
def n_states(problem):
    """H^k: histories of `order` symbols, the begin symbol included."""
    return (problem.n_labels + 1) ** problem.order


@kernels.n_examples.implements(ChainProblem)
def n_examples(problem):
    return problem.starts.size - 1


@kernels.n_weights.implements(ChainProblem)
def n_weights(problem):
    histories = 0
    for j in range(1, problem.order + 1):
        histories += (problem.n_labels + 1) ** j
    return (problem.rows.n_features + histories + 1) * problem.n_labels


@kernels.width.implements(ChainProblem)
def width(problem):
    return problem.n_labels


@n_emitted.implements(ChainProblem)
def n_read_by_emit(problem):
    return 0 if isinstance(problem.rows, Dense) else problem.rows.n_features


@kernels.n_parts.implements(ChainProblem)
def n_parts(problem, i):
    return (problem.starts[i + 1] - problem.starts[i] + n_states(problem) + 1) * problem.n_labels


@kernels.length.implements(ChainProblem)
def length(problem, i):
    return problem.starts[i + 1] - problem.starts[i]


@kernels.target.implements(ChainProblem)
def target(problem, i):
    return problem.targets[problem.starts[i] : problem.starts[i + 1]]


# ---------------------------------------------------------------------------------------------------------------------
# Scores and costs
# ---------------------------------------------------------------------------------------------------------------------


@helper
def has_weight(problem, state, j):
    """Whether transitions of order j out of `state` have weights (begin symbols only if use_start)."""
    if problem.use_start:
        return True
    if not problem.use_transitions:
        return False
    symbols = problem.n_labels + 1
    for _ in range(j):
        if state % symbols == problem.n_labels:
            return False
        state //= symbols
    return True


@kernels.score.implements(ChainProblem)
def score(problem, i, w, theta):
    L, first = problem.n_labels, problem.starts[i]
    T = problem.starts[i + 1] - first
    rows = problem.rows
    whole = min(padded_width(L, theta.itemsize), theta.size - (T - 1) * L)  # what spills over is overwritten below
    for t in range(T):
        out = theta[t * L : t * L + whole]
        fill(out, 0.0)
        emit(rows, first + t, w, L, out)
    if problem.allowed.size:
        for t in range(T):
            fine = problem.sets[problem.allowed[first + t]]
            for c in range(L):
                if not fine[c]:
                    theta[t * L + c] = -np.inf
    symbols, walled = L + 1, problem.barrier.size > 0
    for s in range(n_states(problem)):
        out = row(theta, T + s, L)
        block, histories = problem.rows.n_features, symbols
        if has_weight(problem, s, 1):
            copy(row(w, block + s % histories, L), out)
        else:
            fill(out, 0.0)
        for j in range(2, problem.order + 1):
            block += histories
            histories *= symbols
            if has_weight(problem, s, j):
                weight = row(w, block + s % histories, L)
                for c in range(L):
                    out[c] += weight[c]
        if walled:
            wall = problem.barrier[s % symbols]
            for c in range(L):
                out[c] += wall[c]
    out = row(theta, T + n_states(problem), L)
    weight = row(w, n_weights(problem) // L - 1, L)
    for c in range(L):
        out[c] = problem.barrier[c, L] if walled else 0.0
        if problem.use_stop:
            out[c] += weight[c]


@kernels.add_cost.implements(ChainProblem)
def add_cost(problem, i, c, theta):
    L, first = problem.n_labels, problem.starts[i]
    for t in range(problem.starts[i + 1] - first):
        costs = problem.costs[problem.gold[first + t]]
        node = row(theta, t, L)
        for label in range(L):
            node[label] += c * costs[label]


@kernels.value_of.implements(ChainProblem)
def value_of(problem, i, theta, y):
    L, T = problem.n_labels, len(y)
    if T == 0:
        return 0.0
    S = n_states(problem)
    s, total = S - 1, 0.0
    for t in range(T):
        total += theta[t * L + y[t]] + theta[(T + s) * L + y[t]]
        s = np.int64(y[t]) if problem.order == 1 else (s * (L + 1) + y[t]) % S  # states are labels: no division
    return total + theta[(T + S) * L + y[T - 1]]


@kernels.cost.implements(ChainProblem)
def cost(problem, i, y):
    total = 0.0
    for t in range(len(y)):
        total += problem.costs[problem.gold[problem.starts[i] + t], y[t]]
    return total


@kernels.n_values.implements(ChainProblem)
def n_values(problem):
    return problem.n_labels


@kernels.n_values.implements(PartialChainProblem)
def n_values_of_sets(problem):
    return 0


@kernels.agreement.implements(ChainProblem)
def agreement(problem, i, parts, given):
    L, first = problem.n_labels, problem.starts[i]
    for t in range(problem.starts[i + 1] - first):
        truth = problem.gold[first + t]
        if truth < L:
            given[t] = parts[t * L + truth]
            continue
        given[t] = 0.0
        for c in range(L):
            if problem.known[truth - L, c]:
                given[t] += parts[t * L + c]


@kernels.is_labelled.implements(PartialChainProblem)
def is_labelled(problem, i):
    for k in range(problem.starts[i], problem.starts[i + 1]):
        if problem.gold[k] >= problem.n_labels:
            return False
    return True


@kernels.restrict.implements(PartialChainProblem)
def restrict(problem, i, theta):
    L, first = problem.n_labels, problem.starts[i]
    for t in range(problem.starts[i + 1] - first):
        truth, node = problem.gold[first + t], row(theta, t, L)
        for c in range(L):
            fine = c == truth if truth < L else problem.known[truth - L, c]
            if not fine:
                node[c] = -np.inf


@kernels.with_targets.implements(PartialChainProblem)
def with_targets(problem, targets):
    return ChainProblem(*problem)._replace(targets=targets)


@kernels.outputs.implements(ChainProblem)
def outputs(problem, i):
    T = problem.starts[i + 1] - problem.starts[i]
    for y in itertools.product(range(problem.n_labels), repeat=int(T)):
        yield np.array(y, np.int32)


# ---------------------------------------------------------------------------------------------------------------------
# Features
# ---------------------------------------------------------------------------------------------------------------------


@kernels.indicate.implements(ChainProblem)
def indicate(problem, i, y, c, parts):
    L, T, S = problem.n_labels, len(y), n_states(problem)
    s = S - 1
    for t in range(T):
        parts[t * L + y[t]] += c
        parts[(T + s) * L + y[t]] += c
        s = (s * (L + 1) + y[t]) % S
    if T:
        parts[(T + S) * L + y[T - 1]] += c


@helper
def add_transitions(problem, y, c, into):
    """into += c * (transition and stop features of y)."""
    L, S = problem.n_labels, n_states(problem)
    s = S - 1
    for t in range(len(y)):
        block, histories = problem.rows.n_features, L + 1
        for j in range(1, problem.order + 1):
            if has_weight(problem, s, j):
                row(into, block + s % histories, L)[y[t]] += c
            block += histories
            histories *= L + 1
        s = (s * (L + 1) + y[t]) % S
    if len(y) and problem.use_stop:
        row(into, n_weights(problem) // L - 1, L)[y[len(y) - 1]] += c


@kernels.add_features.implements(ChainProblem)
def add_features(problem, i, y, c, into):
    for t in range(len(y)):
        add_label(problem.rows, problem.starts[i] + t, problem.n_labels, y[t], c, into)
    add_transitions(problem, y, c, into)


@kernels.add_parts.implements(ChainProblem)
def add_parts(problem, i, parts, c, into):
    L, first = problem.n_labels, problem.starts[i]
    T = problem.starts[i + 1] - first
    if T == 0:
        return
    for t in range(T):
        add_row(problem.rows, first + t, L, row(parts, t, L), c, into)
    symbols = L + 1
    for s in range(n_states(problem)):
        p = row(parts, T + s, L)
        total = 0.0
        for label in range(L):
            total += abs(p[label])
        if total == 0.0:
            continue
        block, histories = problem.rows.n_features, symbols
        for j in range(1, problem.order + 1):
            if has_weight(problem, s, j):
                out = row(into, block + s % histories, L)
                for label in range(L):
                    out[label] += c * p[label]
            block += histories
            histories *= symbols
    if problem.use_stop:
        out = row(into, n_weights(problem) // L - 1, L)
        p = row(parts, T + n_states(problem), L)
        for label in range(L):
            out[label] += c * p[label]


@kernels.difference.implements(ChainProblem)
def difference(problem, i, t, y, c, into):
    first, differ, rows = problem.starts[i], False, problem.rows
    for k in range(len(y)):
        if t[k] != y[k]:
            differ = True
            add_labels(rows, first + k, problem.n_labels, t[k], y[k], c, into)
    if differ:
        difference_of_transitions(problem, t, y, c, into)


@helper
def difference_of_transitions(problem, a, b, c, into):
    """into += c * (transition and stop features of a, less those of b), where they differ."""
    L, S = problem.n_labels, n_states(problem)
    s, u = S - 1, S - 1
    if problem.order == 1 and problem.use_transitions:  # states are labels: no division
        block = problem.rows.n_features
        for t in range(len(a)):
            if (s != u or a[t] != b[t]) and (t > 0 or problem.use_start):
                row(into, block + s, L)[a[t]] += c
                row(into, block + u, L)[b[t]] -= c
            s, u = np.int64(a[t]), np.int64(b[t])
    for t in range(len(a) if problem.order > 1 else 0):
        if s != u or a[t] != b[t]:
            block, histories = problem.rows.n_features, L + 1
            for j in range(1, problem.order + 1):
                if has_weight(problem, s, j):
                    row(into, block + s % histories, L)[a[t]] += c
                if has_weight(problem, u, j):
                    row(into, block + u % histories, L)[b[t]] -= c
                block += histories
                histories *= L + 1
        s = (s * (L + 1) + a[t]) % S
        u = (u * (L + 1) + b[t]) % S
    last = len(a) - 1
    if last >= 0 and problem.use_stop and a[last] != b[last]:
        out = row(into, n_weights(problem) // L - 1, L)
        out[a[last]] += c
        out[b[last]] -= c


@kernels.move_mass.implements(ChainProblem)
def move_mass(problem, i, ys, changes, n, c, into):
    """Position by position, each row of features once, however many outputs change.

    The pivot, the output whose mass changes most, stands for what cancels: where all have its label, nothing moves.
    """
    L, first, rows = problem.n_labels, problem.starts[i], problem.rows
    pivot = 0
    for k in range(1, n):
        if abs(changes[k]) > abs(changes[pivot]):
            pivot = k
    moved = np.zeros(L)
    for j in range(problem.starts[i + 1] - first):
        of, total, differ = ys[pivot, j], 0.0, 0
        for k in range(n):
            if ys[k, j] != of and changes[k] != 0.0:
                moved[ys[k, j]] -= changes[k]
                total += changes[k]
                differ += 1
        if differ * SCALAR > L:
            moved[of] += total
            add_row(rows, first + j, L, moved, c, into)
            moved[:] = 0.0
        elif differ:
            for k in range(n):
                a = ys[k, j]
                if moved[a] != 0.0:
                    add_labels(rows, first + j, L, of, a, -c * moved[a], into)
                    moved[a] = 0.0
    for k in range(n):
        if k != pivot and changes[k] != 0.0:
            difference_of_transitions(problem, ys[pivot, : len(ys[k])], ys[k], c * changes[k], into)


@helper
def margin_of_transitions(problem, w, t, y):
    """w . (transition and stop features of t, less those of y), where they differ."""
    L, S = problem.n_labels, n_states(problem)
    s, u, total = S - 1, S - 1, 0.0
    if problem.order == 1 and problem.use_transitions:  # states are labels: no division
        block = problem.rows.n_features * L
        for k in range(len(t)):
            if (s != u or t[k] != y[k]) and (k > 0 or problem.use_start):
                total += w[block + s * L + t[k]] - w[block + u * L + y[k]]
            s, u = np.int64(t[k]), np.int64(y[k])
    for k in range(len(t) if problem.order > 1 else 0):
        if s != u or t[k] != y[k]:
            block, histories = problem.rows.n_features, L + 1
            for j in range(1, problem.order + 1):
                if has_weight(problem, s, j):
                    total += w[(block + s % histories) * L + t[k]]
                if has_weight(problem, u, j):
                    total -= w[(block + u % histories) * L + y[k]]
                block += histories
                histories *= L + 1
        s = (s * (L + 1) + t[k]) % S
        u = (u * (L + 1) + y[k]) % S
    if len(t) and problem.use_stop:
        start = n_weights(problem) - L
        total += w[start + t[len(t) - 1]] - w[start + y[len(t) - 1]]
    return total


@kernels.margin.implements(ChainProblem)
def margin(problem, i, w, t, y, scratch):
    total = margin_of_transitions(problem, w, t, y)
    for k in range(len(t)):
        if t[k] != y[k]:
            total += emit_difference(problem.rows, problem.starts[i] + k, w, problem.n_labels, t[k], y[k])
    return total


@kernels.margins.implements(ChainProblem)
def margins(problem, i, w, t, ys, n, values, scratch):
    """Where many outputs differ from t at a position, all its labels are scored at once: contiguous, and only once."""
    L, first, rows = problem.n_labels, problem.starts[i], problem.rows
    if problem.order == 1 and problem.use_transitions:  # in line: to pass a slice costs as much as to look at it
        block, stop, use_start, use_stop = rows.n_features * L, n_weights(problem) - L, problem.use_start, problem.use_stop
        for k in range(n):
            s, u, total = np.int64(L), np.int64(L), 0.0
            for j in range(len(t)):
                a, b = np.int64(t[j]), np.int64(ys[k, j])
                if (s != u or a != b) and (j > 0 or use_start):
                    total += w[block + s * L + a] - w[block + u * L + b]
                s, u = a, b
            values[k] = total + (w[stop + s] - w[stop + u] if use_stop and len(t) else 0.0)
    else:
        for k in range(n):
            values[k] = margin_of_transitions(problem, w, t, ys[k, : len(t)])
    node = np.empty(L, w.dtype)
    for j in range(len(t)):
        differ = 0
        for k in range(n):
            differ += ys[k, j] != t[j]
        if differ * SCALAR > L:
            fill(node, 0.0)
            emit(rows, first + j, w, L, node)
            for k in range(n):
                values[k] += node[t[j]] - node[ys[k, j]]
        elif differ:
            for k in range(n):
                if ys[k, j] != t[j]:
                    values[k] += emit_difference(rows, first + j, w, L, t[j], ys[k, j])
