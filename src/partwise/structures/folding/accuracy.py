"""The structure of maximum expected accuracy: many probable pairs rather than one probable structure.

    maximise  sum over pairs of 2 gamma p_ij  +  sum over unpaired bases of q_i,        q_i = 1 - sum_j p_ij

over nested structures. The higher gamma, the more pairs: it trades selectivity for sensitivity. A pair that gives less than its
two bases unpaired is in no best structure, so few of the n^2 / 2 pairs need be looked at:

    M(i, j) = max( q_i + M(i + 1, j),  max_k 2 gamma p_ik + M(i + 1, k - 1) + M(k + 1, j) )

Cost: O(n^2) time for each pair a base may have, O(n^2) memory.

References
----------
C. B. Do, D. A. Woods, S. Batzoglou (2006). CONTRAfold: RNA secondary structure prediction without physics-based models.
Bioinformatics.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import compiled_loop


@compiled_loop
def most_accurate(parts, n, gamma, y):
    """Write the partners of the most accurate structure into y and return its expected accuracy.

    parts : the probabilities of bases being unpaired, then of pairs i < j, row by row, as `folding` has them after its weights.
    """
    first, count = np.zeros(n + 1, np.int64), 0
    partner, gain = np.empty(n * (n - 1) // 2, np.int64), np.empty(n * (n - 1) // 2)
    k = n
    for i in range(n):
        first[i] = count
        for j in range(i + 1, n):
            value = 2.0 * gamma * parts[k]
            if value > parts[i] + parts[j]:
                partner[count], gain[count] = j, value
                count += 1
            k += 1
    first[n] = count
    best = np.zeros((n + 2, n + 1))  # best[i, j]: of the bases i .. j - 1
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n + 1):
            top = parts[i] + best[i + 1, j]
            for c in range(first[i], first[i + 1]):
                if partner[c] >= j:
                    break
                top = max(top, gain[c] + best[i + 1, partner[c]] + best[partner[c] + 1, j])
            best[i, j] = top
    for i in range(n):
        y[i] = -1
    stack, height = np.empty((n + 1, 2), np.int64), 1
    stack[0, 0], stack[0, 1] = 0, n
    while height:
        height -= 1
        i, j = stack[height, 0], stack[height, 1]
        while i < j:
            top, found = parts[i] + best[i + 1, j], -1
            for c in range(first[i], first[i + 1]):
                if partner[c] >= j:
                    break
                value = gain[c] + best[i + 1, partner[c]] + best[partner[c] + 1, j]
                if value > top:
                    top, found = value, partner[c]
            if found >= 0:
                y[i], y[found] = found, i
                stack[height, 0], stack[height, 1] = i + 1, found
                height += 1
                i = found
            i += 1
    return best[0, n]
