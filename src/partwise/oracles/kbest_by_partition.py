"""The k best outputs of any structure whose oracle can be told what an output must and must not have: Lawler's partition.

The outputs left when y is found are cut into classes: those that agree with y before position t and differ from it there, for
every t from where the class of y itself begins to differ from its parent. The best output of each class is one call of `best`,
with scores in which `hold` and `forbid` have ruled out the rest:

    classes = {all outputs}
    repeat k times:  take the best of the classes' best outputs, y, and replace its class by the classes that y cuts it into

Cost: k n calls of the oracle for outputs of n integers, and as many outputs in memory.

References
----------
K. Murty (1968). An algorithm for ranking all the assignments in order of increasing cost. Operations Research 16.
E. L. Lawler (1972). A procedure for computing the k best solutions to discrete optimization problems. Management Science 18(7).
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.engine.compilation import helper
from partwise.engine.numerics import copy


@helper
def kbest_by_partition(problem, i, theta, ys, values):
    """See `kernels.kbest`; for structures that have `hold` and `forbid`."""
    n, most, parts = kernels.length(problem, i), len(values), kernels.n_parts(problem, i)
    room = most * n + 1
    found, tops = np.empty((room, n), np.int32), np.full(room, -np.inf)
    free, parents = np.zeros(room, np.int64), np.full(room, -1, np.int64)
    rest, y, far = np.empty(parts, theta.dtype), np.empty(n, np.int32), 1.0
    for k in range(parts):
        if theta[k] > -np.inf:
            far += 2.0 * abs(theta[k])
    tops[0] = kernels.best(problem, i, theta[:parts], y)
    copy(y, found[0])
    size, count = 1, 0
    while count < most:
        top = -1
        for k in range(size):
            if tops[k] > -np.inf and (top < 0 or tops[k] > tops[top]):
                top = k
        if top < 0:
            break
        copy(found[top], ys[count])
        values[count] = tops[top]
        tops[top] = -np.inf
        count += 1
        for first in range(free[top] if count < most else n, n):
            copy(theta[:parts], rest)
            for t in range(first):
                kernels.hold(problem, i, rest, t, found[top, t], far)
            node = top
            while node >= 0:  # what is at this position here, and in the ancestors that agree with it before
                kernels.forbid(problem, i, rest, first, found[node, first], far)
                parent = parents[node]
                node = parent if parent >= 0 and agree(found[parent], found[node], first) else -1
            value = kernels.best(problem, i, rest, y)
            if value > -np.inf and is_left(found, parents, top, y, first):
                tops[size] = kernels.value_of(problem, i, theta, y)
            copy(y, found[size])
            free[size], parents[size] = first, top
            size += 1
    return count


@helper
def agree(a, b, n):
    """Whether two outputs have the same at the first n positions."""
    for t in range(n):
        if a[t] != b[t]:
            return False
    return True


@helper
def is_left(found, parents, node, y, first):
    """Whether y is of the class it was asked for: where oracles can only be discouraged (`far`), an empty class gives another."""
    if not agree(y, found[node], first):
        return False
    while node >= 0:
        if agree(y, found[node], first + 1):
            return False
        node = parents[node]
    return True
