"""Spanning trees with arc scores: the best one, and the sum over all of them.

A sentence of n words and a root, numbered 0, has the arcs h -> m from heads h = 0 .. n to words m = 1 .. n. Scores are a matrix
with a row for each word and a column for each head, ``scores[m - 1, h]``, -inf where an arc is forbidden (and for h = m). A tree
gives every word one head, so that all of them hang from the root. *Single-rooted* trees have one word below the root.

**Best tree** (Chu and Liu 1965, Edmonds 1967, in the form of Tarjan 1977 for dense graphs). A path grows backwards: its last node
takes the best arc into it. If that comes from the root or from a node that is settled, so is the path. If it comes from the
path itself, the cycle is contracted into one node, for which an arc into member c counts by how much it is worse than the arc
that c has in the cycle. At most 2n nodes choose an arc, each by reading n numbers, and each node is merged once: O(n^2) time and
memory; the merged row overwrites that of a member. In the end, the arc into a contracted node breaks its cycle where it enters.

**Sum over trees** (Tutte's matrix-tree theorem; Smith and Smith 2007, Koo et al. 2007, McDonald and Satta 2007). With
A[h, m] = exp(score) the sum is the determinant of a Laplacian, but a determinant by the usual elimination subtracts, and where a
cycle scores much higher than all trees nothing is left. Here words are eliminated without any subtraction (Grassmann, Taksar
and Heyman 1985): word k, whose arcs from those that are left weigh S_k together, hands its children on to its head,

    S_k = sum_{h < k} A[h, k],    log Z += log S_k,    A[h, m] += A[h, k] A[k, m] / S_k    for h, m < k.

All numbers are sums of products of weights of arcs: each is right to the last digits, however large or small. Marginals are
p(h -> m) = A[h, m] d log Z / d A[h, m], by the same steps backwards. O(n^3) time, O(n^2) memory. The arcs into a word are scaled
by their maximum, since every word has one head; should numbers leave the range of floats even so, it is done again with
logarithms, which takes some twenty times as long. Rows are words and padded to whole vectors, so that all inner loops run along
rows and leave no remainder.

**Single root**. A node takes an arc from the root only if there is no other into it, so that only the node that all words have
been contracted into does: trees are compared by the number of words below the root, and by their scores only if that is equal.
In the sum such arcs are made infinitely light: then S_k has no share of them while other words are left, and only the last word
takes one. Neither costs time.

References
----------
R. E. Tarjan (1977). Finding optimum branchings. Networks 7.
D. Smith, N. Smith (2007). Probabilistic models of nonprojective dependency trees. EMNLP.
T. Koo, A. Globerson, X. Carreras, M. Collins (2007). Structured prediction models via the matrix-tree theorem. EMNLP.
W. Grassmann, M. Taksar, D. Heyman (1985). Regenerative analysis and steady state distributions for Markov chains. Operations
Research 33.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper
from partwise.engine.numerics import copy, exp, fill, larger, smaller

UNSEEN, ON_PATH, SETTLED = 0, 1, 2
TINY, HUGE = 1e-270, 1e270  # beyond, numbers are on their way out of the range of floats


@helper
def best_tree(scores, n, single_root, heads):
    """Write the heads of a best tree, heads[m - 1], and return its score; -inf if there is no tree."""
    rows = np.empty((n, n + 1))  # arcs into each node that is left, by original head
    enters = np.empty((n, n + 1), np.int32)  # at which word such an arc enters
    for m in range(n):
        copy(scores[m, : n + 1], rows[m])
        fill(enters[m], m)
        rows[m, m + 1] = -np.inf
    by_row = np.empty((4, n + 1), np.int64)
    of_word, status, path = by_row[0], by_row[1], by_row[2]  # of_word: the row of the node that a word is in
    node = by_row[3]  # the node that a row stands for; contracted ones are numbered from n
    by_node = np.empty((3, 2 * n), np.int32)
    parent, head, word = by_node[0], by_node[1], by_node[2]
    fill(parent, -1)
    for k in range(n):
        of_word[k], node[k], status[k] = k, k, UNSEEN
    score = np.empty(n)  # of the arc that a row has chosen
    n_nodes, first = n, 1 if single_root else 0
    for start in range(n):
        r = of_word[start]
        if status[r] == SETTLED:
            continue
        status[r], path[0], length = ON_PATH, r, 1
        while True:
            r = path[length - 1]
            row, top = rows[r], -np.inf
            for h in range(first, n + 1):
                top = larger(top, row[h])
            if top > -np.inf:
                h = first
                while row[h] != top:
                    h += 1
            elif row[0] > -np.inf:
                h, top = 0, row[0]
            else:
                return -np.inf
            head[node[r]], word[node[r]], score[r] = h, enters[r, h], top
            if h == 0 or status[of_word[h - 1]] == SETTLED:
                break
            p = of_word[h - 1]
            if status[p] == UNSEEN:
                status[p], path[length] = ON_PATH, p
                length += 1
                continue
            # a cycle, from p to the end of the path: it becomes one node, in the row of p
            merged, into, gain = rows[p], enters[p], score[p]
            for k in range(n + 1):
                merged[k] -= gain
            while path[length - 1] != p:
                length -= 1
                c = path[length]
                parent[node[c]] = n_nodes
                member, at, gain = rows[c], enters[c], score[c]
                for k in range(n + 1):
                    if member[k] - gain > merged[k]:
                        merged[k], into[k] = member[k] - gain, at[k]
                for k in range(n):
                    if of_word[k] == c:
                        of_word[k] = p
            parent[node[p]] = n_nodes
            node[p] = n_nodes
            n_nodes += 1
            for k in range(n):
                if of_word[k] == p:
                    merged[k + 1] = -np.inf  # arcs within
        for k in range(length):
            status[path[k]] = SETTLED
    for u in range(n_nodes - 1, n - 1, -1):  # the newest first: parents before their children
        c = np.int64(word[u])
        while parent[c] != u:
            c = np.int64(parent[c])
        head[c], word[c] = head[u], word[u]
    total, roots = 0.0, 0
    for m in range(n):
        heads[m] = head[m]
        total += scores[m, heads[m]]
        roots += head[m] == 0
    return -np.inf if single_root and roots > 1 else total  # with several words below the root only if there is no other way


@helper
def sum_over_trees(scores, n, single_root, marginals):
    """log sum over trees of exp(score), and the probability of every arc, marginals[m - 1, h]; -inf if there is no tree."""
    log_z, fine = eliminate(scores, n, single_root, marginals)
    if fine:
        return log_z
    if best_tree(scores, n, single_root, np.empty(n, np.int32)) == -np.inf:
        marginals[:n, : n + 1] = 0.0
        return -np.inf
    return eliminate_in_logs(scores, n, penalty_of_root(scores, n) if single_root else 0.0, marginals)


@helper
def whole_vectors(k):
    """k rounded up to whole vectors of 64 bytes."""
    return (k + 7) // 8 * 8


@helper
def eliminate(scores, n, single_root, marginals):
    """`sum_over_trees` with floats; the second answer says whether their range was enough."""
    N, width, log_z = n + 1, whole_vectors(n + 1), 0.0
    A, given = np.zeros((N, width)), np.empty((N, width))  # [word, head]
    for m in range(1, N):
        row, own, top = scores[m - 1], given[m], -np.inf
        for h in range(N):
            own[h] = row[h]
        own[m] = -np.inf
        for h in range(N):
            top = larger(top, own[h])
        if top == -np.inf:
            marginals[:n, :N] = 0.0
            return -np.inf, True
        log_z += top
        for h in range(N):
            own[h] = exp(own[h] - top)
        copy(own[:N], A[m])
    total, shares = np.empty(N), np.zeros((N, width))  # S_k, A[h, k] / S_k; zero beyond h < k
    for k in range(n, 0, -1):
        last, share, s = A[k], shares[k], 0.0
        for h in range(1 if single_root and k > 1 else 0, k):
            s += last[h]
        if not TINY < s < HUGE:
            return 0.0, False
        total[k] = s
        log_z += np.log(s)
        for h in range(k):
            share[h] = last[h] / s
        for m in range(1, k):
            c, row = A[m, k], A[m]
            if c > 0.0:
                for h in range(whole_vectors(k)):
                    row[h] += c * share[h]
    G, onto = (
        np.zeros((N, width)),
        np.empty(width),
    )  # d log Z / d A, of the arcs between words that are back, and d log Z / d share
    for k in range(1, N):
        share, s, mean = shares[k], total[k], 0.0
        fill(onto, 0.0)
        for m in range(1, k):
            row, c, q = G[m], A[m, k], 0.0
            for h in range(whole_vectors(k)):
                q += row[h] * share[h]
                onto[h] += c * row[h]
            row[k] = q
            mean += c * q
            if not abs(q) < HUGE:
                return 0.0, False
        if not abs(mean) < HUGE:
            return 0.0, False
        back = G[k]
        for h in range(k):
            back[h] = (1.0 - mean + onto[h]) / s
        if single_root and k > 1:
            back[0] = onto[0] / s
    for m in range(1, N):
        weight, slope, out, low, high = given[m], G[m], marginals[m - 1], 0.0, 0.0
        for h in range(N):
            value = weight[h] * slope[h]
            low, high = smaller(low, value), larger(high, value)
            out[h] = min(max(value, 0.0), 1.0)
        if low < -1e-6 or high > 1.0 + 1e-6:
            return 0.0, False
    return log_z, True


@helper
def penalty_of_root(scores, n):
    """What to take off arcs from the root so that trees with two of them weigh nothing."""
    low, high = np.inf, -np.inf
    for m in range(n):
        for h in range(n + 1):
            if scores[m, h] > -np.inf:
                low, high = min(low, float(scores[m, h])), max(high, float(scores[m, h]))
    return 0.0 if high == -np.inf else 40.0 + n * (high - low)


@helper
def log_add(a, b):
    """log(e^a + e^b)."""
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + np.log1p(np.exp(b - a))


@helper
def signed_add(a, a_sign, b, b_sign):
    """The logarithm and the sign of a_sign e^a + b_sign e^b."""
    if a_sign == b_sign:
        return log_add(a, b), a_sign
    if a < b:
        a, a_sign, b = b, b_sign, a
    if a == b:
        return -np.inf, 1.0
    return (a if b == -np.inf else a + np.log1p(-np.exp(b - a))), a_sign


@helper
def eliminate_in_logs(scores, n, penalty, marginals):
    """`sum_over_trees` with logarithms, for any scores."""
    N = n + 1
    A, first = np.full((N, N), -np.inf), np.full((N, N), -np.inf)
    for m in range(1, N):
        for h in range(N):
            if h != m:
                first[h, m] = scores[m - 1, h] - penalty if h == 0 else float(scores[m - 1, h])
                A[h, m] = first[h, m]
    total, log_z = np.empty(N), penalty
    for k in range(n, 0, -1):
        s = -np.inf
        for h in range(k):
            s = log_add(s, A[h, k])
        if s == -np.inf:
            marginals[:n, :N] = 0.0
            return -np.inf
        total[k] = s
        log_z += s
        for h in range(k):
            if A[h, k] > -np.inf:
                for m in range(1, k):
                    if m != h:
                        A[h, m] = log_add(A[h, m], A[h, k] - s + A[k, m])
    G, sign = np.full((N, N), -np.inf), np.ones((N, N))
    for k in range(1, N):
        s, mean, mean_sign = total[k], -np.inf, 1.0
        for h in range(k):
            q, q_sign = -np.inf, 1.0
            for m in range(1, k):
                if m != h and G[h, m] > -np.inf:
                    q, q_sign = signed_add(q, q_sign, G[h, m] + A[k, m] - s, sign[h, m])
                    G[k, m], sign[k, m] = signed_add(G[k, m], sign[k, m], G[h, m] + A[h, k] - s, sign[h, m])
            G[h, k], sign[h, k] = signed_add(q, q_sign, -s, 1.0)
            mean, mean_sign = signed_add(mean, mean_sign, A[h, k] - s + q, q_sign)
        for h in range(k):
            G[h, k], sign[h, k] = signed_add(G[h, k], sign[h, k], mean, -mean_sign)
    for m in range(1, N):
        for h in range(N):
            possible = h != m and first[h, m] > -np.inf and G[h, m] > -np.inf
            value = sign[h, m] * np.exp(first[h, m] + G[h, m]) if possible else 0.0
            marginals[m - 1, h] = min(max(value, 0.0), 1.0)
    return log_z
