"""The best outputs of any structure by cost: a search over lambda with the margin-rescaling oracle, and what it may have missed.

Losses that rescale the margin by the cost maximise Gamma(l(y)) (s(y) - s(r)) + l(y) over all outputs. That is no sum over parts,
but it does not fall with the score. So the maximiser is often a vertex of the upper hull of the points (l(y), s(y)), and always
under it. The oracle for part scores finds the vertices, as argmax_y s(y) + lambda l(y) for some lambda >= 0:

    A = argmax_y s(y),  B = argmax_y l(y);  edges = [(A, B)]
    repeat for each edge (A, B):
        lambda = (s(A) - s(B)) / (l(B) - l(A));  N = argmax_y s(y) + lambda l(y)
        if N lies above the edge:  edges += (A, N), (N, B)

Outputs cheaper than the prediction A are not looked for: score and cost of A are both higher, so none of them is the maximiser.
Each query also says that every output lies under the line s = max_y [s(y) + lambda l(y)] - lambda l, so the highest value of the
function under all these lines bounds the maximum from above, whether or not the search was complete (`envelope_bound`). Where the
maximiser is a vertex, the bound is met.

Cost: two oracle calls for each vertex, at most 2 `kernels.SEARCHED` of them.

References
----------
S. Sarawagi, R. Gupta (2008). Accurate max-margin training for structured output spaces. ICML.
H. Choi, O. Meshi, N. Srebro (2016). Fast and scalable structural SVM with slack rescaling. AISTATS.
"""

from __future__ import annotations

import numpy as np

from partwise import kernels
from partwise.engine.compilation import helper
from partwise.engine.numerics import copy

HALVINGS = 60  # of an interval: down to the last digits


@helper
def search_costs(problem, i, theta, ys, values, costs, lines):
    """Outputs on the upper hull of (cost, score) into ys, values, costs; (lambda, max_y s + lambda l) of each query into lines.

    Returns how many of either there are. No output is found if all are forbidden.
    """
    top = float(kernels.best(problem, i, theta, ys[0]))
    if top == -np.inf:
        return 0, 0
    values[0], costs[0] = top, kernels.cost(problem, i, ys[0])
    lines[0, 0], lines[0, 1] = 0.0, top
    if len(values) < 2:  # there is room for one only
        return 1, 1
    augmented = np.zeros(len(theta), theta.dtype)
    for k in range(len(theta)):
        if theta[k] == -np.inf:
            augmented[k] = -np.inf
    kernels.add_cost(problem, i, 1.0, augmented)
    kernels.best(problem, i, augmented, ys[1])
    values[1], costs[1] = kernels.value_of(problem, i, theta, ys[1]), kernels.cost(problem, i, ys[1])
    if costs[1] <= costs[0]:
        return 1, 1
    edges = np.empty((2 * len(values), 2), np.int64)
    edges[0, 0], edges[0, 1] = 0, 1
    n, queries, first, last = 2, 1, 0, 1
    while first < last and n < len(values) and queries < len(lines):
        a, b = edges[first]
        first += 1
        if not costs[b] > costs[a]:
            continue
        slope = max((values[a] - values[b]) / (costs[b] - costs[a]), 0.0)
        copy(theta, augmented)
        kernels.add_cost(problem, i, slope, augmented)
        lines[queries, 0], lines[queries, 1] = slope, float(kernels.best(problem, i, augmented, ys[n]))
        queries += 1
        value, cost = float(kernels.value_of(problem, i, theta, ys[n])), kernels.cost(problem, i, ys[n])
        line = values[a] + slope * costs[a]
        if value + slope * cost > line + (1e-9 if theta.itemsize == 8 else 1e-5) * (1.0 + abs(line)):
            values[n], costs[n] = value, cost
            edges[last, 0], edges[last, 1], edges[last + 1, 0], edges[last + 1, 1] = a, n, n, b
            n, last = n + 1, last + 2
    return n, queries


@kernels.best_at_costs.implements(object)
def best_at_costs(problem, i, theta, ys, values, costs):
    """For every structure without a better way."""
    return search_costs(problem, i, theta, ys, values, costs, np.empty((2 * len(values), 2)))[0]


@helper
def rescaled_value(cost, lead, power):
    """Gamma(l) (s - s(r)) + l with Gamma(l) = l^power."""
    return (cost**power if power > 0.0 else 1.0) * lead + cost


@helper
def highest_on_line(a, slope, low, high, power):
    """max over low <= c <= high of f(c) = c^power (a - slope c) + c, for slope >= 0.

    f'' has the sign of power (a (power - 1) - slope (power + 1) c), so f is convex up to some c and concave from there on, or the
    other way round where slope = 0: the ends, and the place in the concave part where f' = 0, are all that can be highest.
    """
    found = max(rescaled_value(low, a - slope * low, power), rescaled_value(high, a - slope * high, power))
    bend = a * (power - 1.0)
    if slope > 0.0:
        low = max(low, bend / (slope * (power + 1.0)))
    elif bend > 0.0:
        return found
    low = max(low, 1e-12 * high)  # f' may be infinite at 0
    if not low < high or power == 0.0:
        return found
    for _ in range(HALVINGS):
        c = 0.5 * (low + high)
        if power * a * c ** (power - 1.0) - (power + 1.0) * slope * c**power + 1.0 > 0.0:
            low = c
        else:
            high = c
    return max(found, rescaled_value(low, a - slope * low, power))


@helper
def envelope_bound(lines, queries, reference, most, power):
    """The highest Gamma(c) (s - reference) + c of any point (c, s) with 0 <= c <= most that lies under all lines."""
    bound = -np.inf
    for q in range(queries):
        slope, top, low, high = lines[q, 0], lines[q, 1], 0.0, most
        for p in range(queries):  # line q is the lowest between its meetings with flatter and with steeper ones
            if lines[p, 0] < slope:
                low = max(low, (top - lines[p, 1]) / (slope - lines[p, 0]))
            elif lines[p, 0] > slope:
                high = min(high, (lines[p, 1] - top) / (lines[p, 0] - slope))
            elif lines[p, 1] < top:
                high = -1.0
        if low <= high:
            bound = max(bound, highest_on_line(top - reference, slope, low, high, power))
    return bound
