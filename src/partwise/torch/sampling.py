"""Outputs drawn from p(y) ~ exp s(y), exactly.

Chains are drawn label by label from the front, each given the one before and the sums over all that may follow: O(T L^2) for the
sums, O(T L) for each sample. Trees of spans are drawn from the root, a label and a split at a time: O(n^3) for the sums,
O(n^2 + n L) for most samples; with rules it is a rule and a split. Other structures are drawn position by position too; the probabilities of what a position may be
come from `expected` with all that was drawn so far held fixed: one call for each position of each sample.

Random numbers come from outside, one for each position, so that torch's generators decide.
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop, helper, kernel
from partwise.structures.constituency.best import span_number
from partwise.structures.constituency.free import number_of, sums_inside, sums_of_labels
from partwise.structures.constituency.scored_rules import as_in_grammar
from partwise.structures.constituency.sums import inside_sums, log_entry, make_sums
from partwise.torch.scores import PairScores, SegmentScores, SiblingScores, TreeScores, lay_out


@helper
def pick(weights, n, u):
    """The k < n where the running sum of the weights passes u times their total; never one without weight."""
    total, last = 0.0, -1
    for k in range(n):
        total += max(weights[k], 0.0)
    run = 0.0
    for k in range(n):
        if weights[k] > 0.0:
            run += weights[k]
            last = k
            if run > u * total:
                return k
    return last


@compiled_loop
def sample_chains(problem, scores, numbers, outputs, largest, first, last):
    """outputs[i, s, t] drawn with numbers[i, s, t], uniform in [0, 1); outputs stay -1 where nothing is possible."""
    L = problem.n_labels
    theta, weights = np.empty(largest), np.empty(L)
    for i in range(first, last):
        T = kernels.length(problem, i)
        lay_out(scores, problem, i, theta)
        base = (T + L + 2) * L
        stepwise = kernels.n_parts(problem, i) > base  # transitions that differ from token to token stand behind the others
        after = np.zeros((T, L))  # log sums over all that may follow a label
        for t in range(T - 1, -1, -1):
            for a in range(L):
                if t == T - 1:
                    after[t, a] = theta[(T + L + 1) * L + a]
                    continue
                high = -np.inf
                for c in range(L):
                    weights[c] = theta[(T + a) * L + c] + theta[(t + 1) * L + c] + after[t + 1, c]
                    if stepwise:
                        weights[c] += theta[base + (t * L + a) * L + c]
                    high = max(high, weights[c])
                if high == -np.inf:
                    after[t, a] = high
                    continue
                total = 0.0
                for c in range(L):
                    total += np.exp(weights[c] - high)
                after[t, a] = high + np.log(total)
        for s in range(numbers.shape[1]):
            state = L
            for t in range(T):
                high = -np.inf
                for c in range(L):
                    weights[c] = theta[(T + state) * L + c] + theta[t * L + c] + after[t, c]
                    if stepwise and t > 0:
                        weights[c] += theta[base + ((t - 1) * L + state) * L + c]
                    high = max(high, weights[c])
                if high == -np.inf:
                    break
                for c in range(L):
                    weights[c] = np.exp(weights[c] - high)
                state = pick(weights, L, numbers[i, s, t])
                outputs[i, s, t] = state


@compiled_loop
def sample_spans(problem, scores, numbers, outputs, largest, first, last):
    """outputs[i, s] = the spans of a tree in pre-order; one random number decides about the label and the split of a span."""
    L = problem.n_labels
    theta = np.empty(largest)
    for i in range(first, last):
        n = problem.starts[i + 1] - problem.starts[i]
        spans = n * (n + 1) // 2
        lay_out(scores, problem, i, theta)
        own, by_begin, by_end = np.empty(spans), np.empty((n, n + 1)), np.empty((n + 1, n))
        weights, todo = np.empty(max(n, 1) * L), np.empty((n + 1, 2), np.int64)
        sums_of_labels(theta, spans, L, own)
        sums_inside(n, own, by_begin, by_end)
        for s in range(numbers.shape[1] if n > 0 and by_begin[0, n] > -np.inf else 0):
            todo[0, 0], todo[0, 1] = 0, n
            top, t = 1, 0
            while top > 0:
                top -= 1
                a, b = todo[top, 0], todo[top, 1]
                span, ways = number_of(a, b), max(b - a - 1, 1)
                below = by_begin[a, b] - own[span]
                for c in range(L):
                    own_share = np.exp(theta[span * L + c] - own[span])
                    for w in range(ways):
                        share = np.exp(by_begin[a, a + 1 + w] + by_end[b, a + 1 + w] - below) if b > a + 1 else 1.0
                        weights[c * ways + w] = own_share * share
                chosen = pick(weights, L * ways, numbers[i, s, t])
                outputs[i, s, t] = span * L + chosen // ways
                t += 1
                if b > a + 1:
                    k = a + 1 + chosen % ways
                    todo[top, 0], todo[top, 1] = k, b
                    todo[top + 1, 0], todo[top + 1, 1] = a, k
                    top += 2


@compiled_loop
def sample_derivations(problem, scores, numbers, outputs, largest, first, last):
    """The same where rules have scores; one random number decides about the label of the whole, a rule and a split."""
    L, grammar, theta = problem.n_labels, problem.grammar, np.empty(largest)
    R = problem.n_parents * L * L
    for i in range(first, last):
        n = problem.starts[i + 1] - problem.starts[i]
        if n == 0:
            continue
        lay_out(scores, problem, i, theta)
        given, base = as_in_grammar(problem, i, theta), n * (n + 1) // 2 * (L + 1)
        chart = make_sums(grammar, n, given)
        inside_sums(grammar, n, given, chart)
        weights, todo = np.empty(R * max(n - 1, 1) + L), np.empty((n + 1, 3), np.int64)
        high = -np.inf
        for a in range(L):
            high = max(high, log_entry(chart, n, 0, n, a))
        for s in range(numbers.shape[1] if high > -np.inf else 0):
            todo[0, 0], todo[0, 1], todo[0, 2] = 0, n, -1  # any label
            top, t = 1, 0
            while top > 0:
                top -= 1
                a, b, label = todo[top, 0], todo[top, 1], todo[top, 2]
                low, end = (0, L) if label < 0 else (label, label + 1)
                ways, whole = max(b - a - 1, 1), high if label < 0 else log_entry(chart, n, a, b, label)
                span, begin = span_number(a, b, n) * (L + 1), low if b == a + 1 else grammar.begins[low]
                stop = end if b == a + 1 else min(grammar.begins[end], R)
                for r in range(begin, stop):
                    c = r if b == a + 1 else np.int64(grammar.parent[r])
                    for w in range(ways):
                        value = given[span + c] - whole
                        if b > a + 1:
                            value += given[base + r] + log_entry(chart, n, a, a + 1 + w, grammar.first[r])
                            value += log_entry(chart, n, a + 1 + w, b, grammar.second[r])
                        weights[(r - begin) * ways + w] = np.exp(value)
                chosen = pick(weights, (stop - begin) * ways, numbers[i, s, t])
                r, k = begin + chosen // ways, a + 1 + chosen % ways
                label = r if b == a + 1 else np.int64(grammar.parent[r])
                outputs[i, s, t] = number_of(a, b) * L + label
                t += 1
                if b > a + 1:
                    todo[top, 0], todo[top, 1], todo[top, 2] = k, b, np.int64(grammar.second[r])
                    todo[top + 1, 0], todo[top + 1, 1], todo[top + 1, 2] = a, k, np.int64(grammar.first[r])
                    top += 2


@kernel
def weigh(scores, problem, i, t, parts, weights):
    """weights[k] = probability of the k-th value that position t may have, by marginals of parts; returns how many there are."""


@kernel
def condition(scores, problem, i, theta, t, k):
    """theta = -inf for outputs that have another than the k-th value at position t; returns that value."""


@weigh.implements(SegmentScores)
def weigh_codes(scores, problem, i, t, parts, weights):
    codes = 2 * problem.n_labels
    for k in range(codes):
        weights[k] = parts[t * codes + k]
    return codes


@condition.implements(SegmentScores)
def condition_code(scores, problem, i, theta, t, k):
    codes = 2 * problem.n_labels
    for other in range(codes):
        if other != k:
            theta[t * codes + other] = -np.inf
    return k


@weigh.implements(TreeScores, SiblingScores)
def weigh_heads(scores, problem, i, t, parts, weights):
    size = (kernels.length(problem, i) + 1) * problem.n_labels
    for k in range(size):
        weights[k] = parts[t * size + k]
    return size


@condition.implements(TreeScores, SiblingScores)
def condition_head(scores, problem, i, theta, t, k):
    size = (kernels.length(problem, i) + 1) * problem.n_labels
    for other in range(size):
        if other != k:
            theta[t * size + other] = -np.inf
    return k


@weigh.implements(PairScores)
def weigh_partners(scores, problem, i, t, parts, weights):
    n, m = kernels.length(problem, i), problem.others[i + 1] - problem.others[i]
    for j in range(m):
        weights[j + 1] = parts[t * m + j]
    weights[0] = 0.0
    for kind in range(4):
        weights[0] += parts[n * m + kind * n + t]
    return m + 1


@condition.implements(PairScores)
def condition_partner(scores, problem, i, theta, t, k):
    n, m = kernels.length(problem, i), problem.others[i + 1] - problem.others[i]
    for j in range(m):
        if j != k - 1:
            theta[t * m + j] = -np.inf
    if k > 0:
        for kind in range(4):
            theta[n * m + kind * n + t] = -np.inf
    return k - 1


@compiled_loop
def sample_by_conditioning(problem, scores, numbers, outputs, largest, first, last):
    """The same for any structure that has `weigh` and `condition`."""
    theta, held, parts, weights = np.empty(largest), np.empty(largest), np.empty(largest), np.empty(largest + 1)
    for i in range(first, last):
        n = kernels.n_parts(problem, i)
        lay_out(scores, problem, i, theta[:n])
        for s in range(numbers.shape[1]):
            held[:n] = theta[:n]
            for t in range(kernels.length(problem, i)):
                if kernels.expected(problem, i, held[:n], parts[:n]) == -np.inf:
                    break
                k = pick(weights, weigh(scores, problem, i, t, parts[:n], weights), numbers[i, s, t])
                outputs[i, s, t] = condition(scores, problem, i, held[:n], t, k)
