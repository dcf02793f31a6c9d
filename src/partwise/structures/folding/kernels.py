"""RNA secondary structure: an output is a set of nested base pairs, written as the partner of each base.

    s(y) = sum over loops of y of the entries of that loop,   an entry being a sum of weights           (`loops`)

Bases pair if they are at least three apart and their letters match; pairs do not cross. The best structure: `best`;
sums over all of them and the probabilities of pairs: `sums`; both over the recursions of `inside`. Parts: the
weights, which loops share, then every base being unpaired, then every pair (`problem`).

Cost: ``missed`` for each true pair that is not found, ``wrong`` for each pair found that is not true. It has no constant term:
half of a missed pair is charged to either of its bases, for being unpaired or paired with another.

Cost of an oracle: O(n^2 30^2 / 2 + n^3 / 6) time, O(n^2) memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from partwise import kernels
from partwise.engine.accumulator import row
from partwise.engine.compilation import helper
from partwise.engine.numerics import copy, fill
from partwise.oracles.kbest_by_partition import kbest_by_partition
from partwise.structures.common.semirings import LARGEST, make_semiring
from partwise.structures.folding.best import best_structure
from partwise.structures.folding.entries import entries_of
from partwise.structures.folding.inside import pair_part, prepare
from partwise.structures.folding.loops import N_ENTRIES, SHORTEST
from partwise.structures.folding.problem import FoldingProblem
from partwise.structures.folding.sums import sum_over_structures

# ---------------------------------------------------------------------------------------------------------------------
# Sizes
# ---------------------------------------------------------------------------------------------------------------------


@kernels.n_examples.implements(FoldingProblem)
def n_examples(problem):
    return problem.starts.size - 1


@kernels.n_weights.implements(FoldingProblem)
def n_weights(problem):
    return problem.n_tied


@kernels.n_parts.implements(FoldingProblem)
def n_parts(problem, i):
    n = length(problem, i)
    return problem.n_tied + n + n * (n - 1) // 2


@kernels.length.implements(FoldingProblem)
def length(problem, i):
    return problem.starts[i + 1] - problem.starts[i]


@kernels.target.implements(FoldingProblem)
def target(problem, i):
    return problem.targets[problem.starts[i] : problem.starts[i + 1]]


@helper
def bases_of(problem, i):
    """The letters of a sequence."""
    return problem.bases[problem.starts[i] : problem.starts[i + 1]]


# ---------------------------------------------------------------------------------------------------------------------
# Scores and oracles
# ---------------------------------------------------------------------------------------------------------------------


@kernels.score.implements(FoldingProblem)
def score(problem, i, w, theta):
    K, bases, pairable = problem.n_tied, bases_of(problem, i), problem.pairable
    n = len(bases)
    copy(w, theta)
    fill(theta[K : K + n], 0.0)
    k = K + n
    for a in range(n):
        for b in range(a + 1, n):
            theta[k] = 0.0 if b - a > SHORTEST and pairable[5 * bases[a] + bases[b]] else -np.inf
            k += 1


@kernels.add_cost.implements(FoldingProblem)
def add_cost(problem, i, c, theta):
    K, n = problem.n_tied, length(problem, i)
    gold = problem.gold[problem.starts[i] : problem.starts[i + 1]]
    half, wrong = 0.5 * c * problem.missed[i], c * problem.wrong[i]
    k = K + n
    for a in range(n):
        lost = half if gold[a] >= 0 else 0.0
        theta[K + a] += lost
        for b in range(a + 1, n):
            if gold[a] != b:
                theta[k] += wrong + lost + (half if gold[b] >= 0 else 0.0)
            k += 1


@kernels.cost.implements(FoldingProblem)
def cost(problem, i, y):
    gold, missed, wrong = problem.gold[problem.starts[i] : problem.starts[i + 1]], 0, 0
    for a in range(len(y)):
        if y[a] != gold[a]:
            missed += gold[a] > a
            wrong += y[a] > a
    return problem.missed[i] * missed + problem.wrong[i] * wrong


@kernels.truth.implements(FoldingProblem)
def truth(problem, i, y):
    for a in range(len(y)):
        y[a] = problem.gold[problem.starts[i] + a]


@helper
def tied_entries(problem, theta):
    """Every entry: the sum of its weights."""
    entries, ptr, members = np.zeros(N_ENTRIES), problem.ptr, problem.members
    for e in range(N_ENTRIES):
        total = 0.0
        for k in range(ptr[e], ptr[e + 1]):
            total += theta[members[k]]
        entries[e] = total
    return entries


@kernels.value_of.implements(FoldingProblem)
def value_of(problem, i, theta, y):
    K, n, ptr, members, total = problem.n_tied, len(y), problem.ptr, problem.members, 0.0
    for e in entries_of(bases_of(problem, i), y, problem.max_loop):
        if e < 0:
            return -np.inf
        for k in range(ptr[e], ptr[e + 1]):
            total += theta[members[k]]
    for a in range(n):
        if y[a] < 0:
            total += theta[K + a]
        elif y[a] > a:
            total += theta[K + n + pair_part(n, a, y[a])]
    return total


@kernels.best.implements(FoldingProblem)
def best(problem, i, theta, y):
    entries, bases = tied_entries(problem, theta), bases_of(problem, i)
    scores, _ = prepare(make_semiring(LARGEST), bases, len(bases), entries, theta, problem.n_tied, problem.max_loop, 0.0)
    value = best_structure(scores, y)
    return value_of(problem, i, theta, y) if value > -np.inf else -np.inf


@kernels.expected.implements(FoldingProblem)
def expected(problem, i, theta, parts):
    K, n, ptr, members = problem.n_tied, length(problem, i), problem.ptr, problem.members
    counts, probabilities = np.zeros(N_ENTRIES), np.zeros((n, n))
    tied = tied_entries(problem, theta)
    log_z = sum_over_structures(bases_of(problem, i), tied, theta, K, problem.max_loop, counts, probabilities)
    fill(parts[: n_parts(problem, i)], 0.0)
    if log_z == -np.inf:
        return log_z
    for e in range(N_ENTRIES):
        if counts[e] != 0.0:
            for k in range(ptr[e], ptr[e + 1]):
                parts[members[k]] += counts[e]
    for a in range(n):
        parts[K + a] = 1.0 if theta[K + a] > -np.inf else 0.0
    k = K + n
    for a in range(n):
        for b in range(a + 1, n):
            p = probabilities[a, b]
            parts[k] = p
            parts[K + a] = max(parts[K + a] - p, 0.0)
            parts[K + b] = max(parts[K + b] - p, 0.0)
            k += 1
    return log_z


@kernels.agreement.implements(FoldingProblem)
def agreement(problem, i, parts, given):
    K, n, first = problem.n_tied, length(problem, i), problem.starts[i]
    for a in range(n):
        b = problem.gold[first + a]
        given[a] = parts[K + a] if b < 0 else parts[K + n + pair_part(n, min(a, b), max(a, b))]


@kernels.hold.implements(FoldingProblem)
def hold(problem, i, theta, t, code, far):
    K, n = problem.n_tied, length(problem, i)
    if code >= 0:
        theta[K + t] = -np.inf
    for b in range(n):
        if b != t and b != code:
            theta[K + n + pair_part(n, min(t, b), max(t, b))] = -np.inf


@kernels.forbid.implements(FoldingProblem)
def forbid(problem, i, theta, t, code, far):
    K, n = problem.n_tied, length(problem, i)
    if code < 0:
        theta[K + t] = -np.inf
    else:
        theta[K + n + pair_part(n, min(t, code), max(t, code))] = -np.inf


@kernels.kbest.implements(FoldingProblem)
def kbest(problem, i, theta, ys, values):
    return kbest_by_partition(problem, i, theta, ys, values)


@kernels.outputs.implements(FoldingProblem)
def outputs(problem, i):
    bases = bases_of(problem, i)
    n = len(bases)

    def spans(a: int, b: int) -> Iterator[list[tuple[int, int]]]:
        """All sets of nested pairs of the bases a .. b - 1."""
        if b - a <= SHORTEST + 1:
            yield []
            return
        yield from spans(a + 1, b)
        for k in range(a + SHORTEST + 1, b):
            if problem.pairable[5 * bases[a] + bases[k]]:
                for inside in spans(a + 1, k):
                    for after in spans(k + 1, b):
                        yield [(a, k), *inside, *after]

    for pairs in spans(0, n):
        y = np.full(n, -1, np.int32)
        for a, b in pairs:
            y[a], y[b] = b, a
        if -1 not in entries_of(bases_of(problem, i), y, problem.max_loop):
            yield y


# ---------------------------------------------------------------------------------------------------------------------
# Features
# ---------------------------------------------------------------------------------------------------------------------


@kernels.indicate.implements(FoldingProblem)
def indicate(problem, i, y, c, parts):
    K, n, ptr, members = problem.n_tied, len(y), problem.ptr, problem.members
    for e in entries_of(bases_of(problem, i), y, problem.max_loop):
        for k in range(ptr[e], ptr[e + 1]):
            parts[members[k]] += c
    for a in range(n):
        if y[a] < 0:
            parts[K + a] += c
        elif y[a] > a:
            parts[K + n + pair_part(n, a, y[a])] += c


@kernels.add_features.implements(FoldingProblem)
def add_features(problem, i, y, c, into):
    ptr, members = problem.ptr, problem.members
    for e in entries_of(bases_of(problem, i), y, problem.max_loop):
        for k in range(ptr[e], ptr[e + 1]):
            row(into, np.int64(members[k]), 1)[0] += c


@kernels.add_parts.implements(FoldingProblem)
def add_parts(problem, i, parts, c, into):
    for k in range(problem.n_tied):
        if parts[k] != 0.0:
            row(into, k, 1)[0] += c * parts[k]
