"""Loops over batches of chains that share their transitions, in float32: the loss of a CRF with its gradient, and decoding.

They do in one pass what `scores` does by parts: exponentials of transitions are taken once for a batch, expected transitions are
added up where they are, and nothing is copied into vectors of part scores and back. Numbers that float32 could not hold are
left to the float64 oracles of the library, sequence by sequence.

Emissions lie in rows (tokens, L), begins[i] being the row of the first token of sequence i.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.accumulator import row
from partwise.engine.compilation import compiled_loop, helper
from partwise.engine.numerics import copy, exp_of_float, fill
from partwise.structures.chain.best import max_sums
from partwise.structures.chain.sums import expected_log, expected_scaled, finite_range, sum_products

LANES = 16  # floats in 64 bytes
WIDEST = np.float32(60.0)  # scores of one step may differ by this much (e^-60 = 1e-26) before float64 takes over
SMALLEST = np.float32(1e-30)
FINE, BAD_TAG, BAD_SCORE = 0, 1, 2
INFINITE, MINUS_INFINITE = np.int32(0x7F800000), np.int32(-0x800000)  # the bits of +inf and -inf, as integers


@helper
def all_are_scores(values):
    """Whether none is NaN or +inf, by their bits: compiled loops may take for granted that there is no NaN."""
    bits, wrong = values.view(np.int32), 0
    for k in range(len(bits)):
        wrong += 1 if bits[k] >= INFINITE or MINUS_INFINITE < bits[k] < 0 else 0
    return wrong == 0


@helper
def whole_vectors(L):
    """L, rounded up to whole vectors."""
    return (L + LANES - 1) // LANES * LANES


@helper
def small_exponentials(scores, high, out):
    """out = exp(scores - high), zero where `out` is longer."""
    fill(out, np.float32(-np.inf))
    for c in range(len(scores)):
        out[c] = scores[c] - high
    for c in range(len(out)):
        out[c] = exp_of_float(out[c])


@helper
def scale_to_one(a):
    """Divide by the sum, which is returned; the second value says whether a positive entry is dangerously small."""
    total, smallest = np.float32(0.0), np.float32(1.0)
    for c in range(len(a)):
        total += a[c]
    if not total >= SMALLEST:
        return total, True
    inverse = np.float32(1.0) / total
    for c in range(len(a)):
        a[c] *= inverse
        positive = a[c] if a[c] > np.float32(0.0) else np.float32(1.0)
        smallest = positive if positive < smallest else smallest
    return total, smallest < SMALLEST


@compiled_loop
def chain_losses(
    nodes, begins, lengths, transitions, start, stop, tags, weights, of_nodes, of_transitions, of_start, of_stop, losses, state
):  # fmt: skip
    """losses[i] = log Z - s(tags[i]), and the gradient of sum_i weights[i] losses[i] in each kind of score.

    O(T L^2) time for each sequence, O(T L + L^2) memory. ``state`` = (what is wrong, sequence, token).
    """
    L, R = nodes.shape[1], whole_vectors(nodes.shape[1])
    longest = 0
    for i in range(len(lengths)):
        longest = max(longest, lengths[i])
    if not (all_are_scores(transitions.reshape(L * L)) and all_are_scores(start) and all_are_scores(stop)):
        state[0], state[1] = BAD_SCORE, -1
        return
    high, low = finite_range(transitions.reshape(L * L))
    start_high, start_low = finite_range(start)
    stop_high, stop_low = finite_range(stop)
    move, back = np.zeros(L * R, np.float32), np.zeros(L * R, np.float32)
    first, last = np.zeros(R, np.float32), np.zeros(R, np.float32)
    usual = high > -np.inf and start_high > -np.inf and stop_high > -np.inf
    usual = usual and start_high - start_low <= WIDEST and stop_high - stop_low <= WIDEST
    if usual:
        small_exponentials(start, start_high, first)
        small_exponentials(stop, stop_high, last)
        for s in range(L):
            out = row(move, s, R)
            small_exponentials(transitions[s], high, out)
            for c in range(L):
                back[c * R + s] = out[c]
    alpha, ahead = np.zeros(longest * R, np.float32), np.zeros(longest * R, np.float32)
    counts, coming = np.zeros(L * R, np.float32), np.zeros(longest, np.float32)
    room = longest * L + (L + 2) * L
    theta, parts = np.empty(room), np.empty(room)  # in float64: differences of large scores count
    for i in range(len(lengths)):
        T, top, w = lengths[i], begins[i], np.float32(weights[i])
        losses[i] = 0.0
        if T == 0:
            continue
        if not all_are_scores(nodes[top : top + T].reshape(T * L)):
            state[0], state[1] = BAD_SCORE, i
            return
        gold = np.float64(start[tags[i, 0]] if 0 <= tags[i, 0] < L else 0.0)
        for t in range(T):
            y = tags[i, t]
            if not 0 <= y < L:
                state[0], state[1], state[2] = BAD_TAG, i, t
                return
            gold += nodes[top + t, y]
            gold += transitions[tags[i, t - 1], y] if t > 0 else 0.0
        gold += stop[tags[i, T - 1]]
        log_z = np.inf
        if usual:
            log_z = narrow(
                nodes[top : top + T], R, high, low, start_high, stop_high, first, move, back, last, alpha, ahead, coming, counts,
                of_nodes[top : top + T], of_start, of_stop, w,
            )  # fmt: skip
        if log_z == np.inf:  # out of range
            log_z = wide(nodes[top : top + T], transitions, start, stop, theta, parts)
            if log_z > -np.inf:
                add_wide(parts, T, w, of_nodes[top : top + T], of_transitions, of_start, of_stop)
        losses[i] = log_z - gold if gold > -np.inf else np.inf
        for t in range(T):
            y = tags[i, t]
            of_nodes[top + t, y] -= w
            if t > 0:
                of_transitions[tags[i, t - 1], y] -= w
        of_start[tags[i, 0]] -= w
        of_stop[tags[i, T - 1]] -= w
    for s in range(L):
        for c in range(L):
            of_transitions[s, c] += counts[s * R + c] * move[s * R + c]


@helper
def narrow(
    nodes, R, high, low, start_high, stop_high, first, move, back, last, alpha, ahead, coming, counts, of_nodes, of_start,
    of_stop, w,
):  # fmt: skip
    """Forward-backward of one sequence in float32; its log-partition, or +inf where numbers could leave the range.

    Nothing is written into the gradients before that is known.
    """
    T, L = nodes.shape
    log_z = np.float64(start_high) + stop_high + (T - 1) * np.float64(high)
    product = np.float64(1.0)
    for t in range(T):
        node_high, node_low = finite_range(nodes[t])
        if not (node_high > -np.inf and high - low + node_high - node_low <= WIDEST):
            return np.inf
        emission, out = row(ahead, t, R), row(alpha, t, R)  # kept where the way back finds it
        small_exponentials(nodes[t], node_high, emission)
        if t == 0:
            copy(first, out)
        else:
            fill(out, np.float32(0.0))
            sum_products(row(alpha, t - 1, R), move, L, R, out)
        for c in range(R):
            out[c] *= emission[c]
        total, small = scale_to_one(out)
        if small:
            return np.inf
        product *= total
        if not 1e-150 < product < 1e150:
            log_z += np.log(product)
            product = 1.0
        log_z += node_high
    log_z += np.log(product)
    beta, probable = np.empty(R, np.float32), np.empty(T * R, np.float32)
    copy(last, beta)
    for t in range(T - 1, -1, -1):
        if t < T - 1:
            fill(beta, np.float32(0.0))
            sum_products(row(ahead, t + 1, R), back, L, R, beta)
        out, before = row(probable, t, R), row(alpha, t, R)
        total = np.float32(0.0)
        for c in range(R):
            out[c] = before[c] * beta[c]
            total += out[c]
        if not total >= SMALLEST:
            return np.inf
        if t == T - 1:
            log_z += np.log(np.float64(total))
        inverse = np.float32(1.0) / total
        for c in range(R):
            out[c] *= inverse
            before[c] *= inverse  # what expected transitions multiply
        _, small = scale_to_one(beta)
        if small:
            return np.inf
        into = row(ahead, t, R)
        for c in range(R):
            into[c] *= beta[c]
    for s in range(L):
        for t in range(T - 1):
            coming[t] = alpha[t * R + s] * w
        sum_products(coming, ahead[R:], T - 1, R, row(counts, s, R))
    for t in range(T):
        for c in range(L):
            of_nodes[t, c] = probable[t * R + c] * w
    for c in range(L):
        of_start[c] += probable[c] * w
        of_stop[c] += probable[(T - 1) * R + c] * w
    return log_z


@helper
def wide(nodes, transitions, start, stop, theta, parts):
    """The same of one sequence by the float64 oracle, parts as `structures.chain` numbers them."""
    T, L = nodes.shape
    size = (T + L + 2) * L
    for t in range(T):
        copy(nodes[t], row(theta, t, L))
    for s in range(L):
        copy(transitions[s], row(theta, T + s, L))
    copy(start, row(theta, T + L, L))
    copy(stop, row(theta, T + L + 1, L))
    fill(parts[:size], 0.0)
    value = expected_scaled(L, T, L + 1, theta[:size], parts[:size])
    if value == np.inf:
        fill(parts[:size], 0.0)
        value = expected_log(L, T, L + 1, theta[:size], parts[:size])
    return value


@helper
def add_wide(parts, T, w, of_nodes, of_transitions, of_start, of_stop):
    """Add expected parts to the gradients."""
    L = of_nodes.shape[1]
    for t in range(T):
        for c in range(L):
            of_nodes[t, c] = w * parts[t * L + c]
    for s in range(L):
        for c in range(L):
            of_transitions[s, c] += w * parts[(T + s) * L + c]
    for c in range(L):
        of_start[c] += w * parts[(T + L) * L + c]
        of_stop[c] += w * parts[(T + L + 1) * L + c]


@compiled_loop
def chain_bests(nodes, begins, lengths, transitions, start, stop, outputs, values, state):
    """outputs[i] = the best labels of sequence i, zero behind its end, and their score into values[i]: Viterbi.

    O(T L^2) time for each sequence, O(T L) memory; no back pointers: the way back looks for what attained the maximum.
    """
    if not (all_are_scores(transitions.reshape(transitions.size)) and all_are_scores(start) and all_are_scores(stop)):
        state[0], state[1] = BAD_SCORE, -1
        return
    L, R, longest = nodes.shape[1], whole_vectors(nodes.shape[1]), 0
    for i in range(len(lengths)):
        longest = max(longest, lengths[i])
    move = np.empty(L * R, np.float32)
    fill(move, np.float32(-np.inf))
    for s in range(L):
        copy(transitions[s], row(move, s, R))
    alpha, arrival = np.empty(longest * R, np.float32), np.empty(longest * R, np.float32)
    fill(alpha, np.float32(-np.inf))
    for i in range(len(lengths)):
        T, top = lengths[i], begins[i]
        for t in range(T, outputs.shape[1]):
            outputs[i, t] = 0
        values[i] = 0.0
        if T == 0:
            continue
        if not all_are_scores(nodes[top : top + T].reshape(T * L)):
            state[0], state[1] = BAD_SCORE, i
            return
        for c in range(L):
            alpha[c] = start[c] + nodes[top, c]
        for t in range(1, T):
            highest, out = row(arrival, t, R), row(alpha, t, R)
            fill(highest, np.float32(-np.inf))
            max_sums(row(alpha, t - 1, R), move, L, R, highest)
            scores = nodes[top + t]
            for c in range(L):
                out[c] = highest[c] + scores[c]
        y, value = 0, np.float32(-np.inf)
        for c in range(L):
            found = alpha[(T - 1) * R + c] + stop[c]
            if found > value:
                y, value = c, found
        values[i] = value
        for t in range(T - 1, 0, -1):
            outputs[i, t] = y
            wanted, k = arrival[t * R + y], 0
            if wanted > -np.inf:
                while k < L - 1 and alpha[(t - 1) * R + k] + move[k * R + y] < wanted:
                    k += 1
            y = k
        outputs[i, 0] = y
