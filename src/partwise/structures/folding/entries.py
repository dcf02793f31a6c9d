"""Which entries a given structure has: the walk over its loops, for scores and features of outputs.

O(n) time and memory.
"""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import helper
from partwise.structures.folding.inside import hairpin_bases, inner_end, outer_end
from partwise.structures.folding.loops import (
    BULGE,
    BULGE_BASE,
    BULGE_END,
    EXTERNAL_END,
    EXTERNAL_UNPAIRED,
    HAIRPIN,
    HAIRPIN_END,
    INTERNAL,
    INTERNAL_END,
    LONGEST,
    MULTI_BASE,
    MULTI_END,
    MULTI_UNPAIRED,
    ONE_BY_ONE,
    PAIR,
    STACK,
)


@helper
def loop_entries(bases, y, i, max_loop, out, count):
    """Append the entries of the loop that base i closes, its pair's included; -1 for a loop that is too long."""
    j, branches, first, unpaired = np.int64(y[i]), 0, -1, 0
    k = i + 1
    while k < j:
        if y[k] > k:
            branches += 1
            first = k if first < 0 else first
            k = np.int64(y[k])
        else:
            unpaired += 1
        k += 1
    out[count] = PAIR + 4 * bases[i] + bases[j]
    count += 1
    if branches == 0:
        out[count] = HAIRPIN + min(unpaired, LONGEST)
        out[count + 1] = inner_end(bases, HAIRPIN_END, i, j)
        count += 2
        if unpaired <= 4:
            e = hairpin_bases(bases, i, unpaired)
            if e >= 0:
                out[count] = e
                count += 1
    elif branches == 1:
        p, q = first, np.int64(y[first])
        left, right = p - i - 1, j - q - 1
        if unpaired > max_loop:
            out[count] = -1
            count += 1
        elif unpaired <= 1:
            out[count] = STACK + 16 * (4 * bases[i] + bases[j]) + 4 * bases[p] + bases[q]
            count += 1
            if unpaired:
                out[count], out[count + 1] = BULGE + 1, BULGE_BASE + (bases[i + 1] if left else bases[j - 1])
                count += 2
        elif left == 0 or right == 0:
            out[count] = BULGE + unpaired
            out[count + 1], out[count + 2] = BULGE_END + 4 * bases[i] + bases[j], BULGE_END + 4 * bases[q] + bases[p]
            count += 3
        else:
            out[count] = INTERNAL + left * (LONGEST + 1) + right
            out[count + 1], out[count + 2] = inner_end(bases, INTERNAL_END, i, j), outer_end(bases, INTERNAL_END, p, q)
            count += 3
            if unpaired == 2:
                out[count] = ONE_BY_ONE + 5 * bases[i + 1] + bases[j - 1]
                count += 1
    else:
        out[count], out[count + 1] = MULTI_BASE, inner_end(bases, MULTI_END, i, j)
        count += 2
        k = i + 1
        while k < j:
            if y[k] > k:
                out[count] = outer_end(bases, MULTI_END, k, np.int64(y[k]))
                k = np.int64(y[k])
            else:
                out[count] = MULTI_UNPAIRED
            count += 1
            k += 1
    return count


@helper
def entries_of(sequence, y, max_loop):
    """The entries of a structure, as often as it has them; -1 for a loop that is too long."""
    bases = sequence.astype(np.int64)
    n, count = len(bases), 0
    out = np.empty(6 * n + 6, np.int64)
    k = 0
    while k < n:
        if y[k] > k:
            out[count] = outer_end(bases, EXTERNAL_END, k, np.int64(y[k]))
            k = np.int64(y[k])
        else:
            out[count] = EXTERNAL_UNPAIRED
        count += 1
        k += 1
    for k in range(n):
        if y[k] > k:
            count = loop_entries(bases, y, k, max_loop, out, count)
    return out[:count]
