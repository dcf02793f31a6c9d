"""The seam between structures and solvers: what a structure can do, as generic functions.

A *structure* is a class of packed problems: a NamedTuple of flat arrays holding all examples. It implements the kernels
below for its class; solvers call them and never learn which structure they run on. Compiled, a solver's loop and the kernels
of one structure become one native loop; interpreted, the same source runs line by line (see `compilation`).

Notation (Martins et al. 2010, section 3.1): an output y of example i is made of *parts*, z(y) in {0, 1}^k (or counts, where
parts are tied); weights score the parts, theta = F(x)^T w; the score of an output is s(y) = theta . z(y) = w . F(x, y); its cost
is l(y) = p . z(y) against the gold output, and margins are measured against the *target*, normally the gold output itself.
(Give every alternative a part of its own, "item left out" too: then the cost has no constant term.)

A structure must implement ``n_examples n_weights n_parts length target score value_of cost add_features`` and the oracles it
has: ``best`` (perceptron, hinge), ``expected`` with ``indicate`` and ``add_parts`` (crf and every finite beta), ``kbest``
(k-best MIRA), ``add_cost`` (any loss that knows the cost), ``truth`` (losses that rescale the margin by the cost; exact with
``best_at_costs``, ``n_costs`` and ``counts_costs``), ``all_outputs`` with ``n_outputs`` (the summed loss, exactly). The rest have
defaults; a structure overrides them to be faster.

Where the truth of an example is not one output but a set of acceptable ones (partial labels, hidden parts, several right
answers), the structure says so with the decorator `partially_labelled` and the kernel ``restrict``; ``complete`` and
``expected_completion``, the oracles over acceptable outputs, follow from ``best`` and ``expected``. Cost is then measured against
the set.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from partwise.engine.accumulator import clear, dot, row  # noqa: F401 - `row` belongs to the vocabulary of structures
from partwise.engine.compilation import Kernel, MissingKernel, compiled_loop, kernel

SEARCHED = 32  # outputs of one example that a search over costs keeps at most


@kernel
def n_examples(problem):
    """Number of examples N."""


@kernel
def n_weights(problem):
    """Length of the weight vector w."""


@kernel(default=True)
def width(problem):
    """Weights come in rows of this many neighbours; sparse vectors are lists of touched rows."""
    return 1


@kernel
def n_parts(problem, i):
    """Number of parts of example i: the length of theta and of part marginals."""


@kernel
def length(problem, i):
    """Number of integers that write down an output of example i."""


@kernel
def target(problem, i):
    """The output t_i that margins are measured against, as an int32 array of ``length(problem, i)``."""


# ---------------------------------------------------------------------------------------------------------------------
# Scores and oracles
# ---------------------------------------------------------------------------------------------------------------------


@kernel
def score(problem, i, w, theta):
    """Part scores: theta[:] = F(x_i)^T w, with -inf where a part is forbidden."""


@kernel
def add_cost(problem, i, c, theta):
    """Augment (c > 0) or diminish (c < 0) part scores by the cost: theta += c * p_i."""


@kernel
def value_of(problem, i, theta, y):
    """Score of a given output from its parts: theta . z(y). No dot product in feature space."""


@kernel
def cost(problem, i, y):
    """Cost l_i(y) >= 0 of output y against the gold output, or against the nearest acceptable one."""


@kernel
def best(problem, i, theta, y):
    """Write an output of highest score into y and return its score; -inf if every output is forbidden."""


@kernel
def kbest(problem, i, theta, ys, values):
    """Write the k best outputs into the rows of ys, best first, their scores into values; return how many there are."""


@kernel
def hold(problem, i, theta, t, code, far):
    """theta = -inf for all but the outputs that have `code` at position t; where no part says so, add `far` to what does.

    With `forbid` it is all that `partition.kbest_by_partition` needs, which makes a `kbest` of any `best`.
    """


@kernel
def forbid(problem, i, theta, t, code, far):
    """theta = -inf for the outputs that have `code` at position t; else as `hold`."""


@kernel
def expected(problem, i, theta, parts):
    """Write the part marginals E[z] under p(y) ~ exp(theta . z(y)) into parts and return log sum_y exp(theta . z(y))."""


@kernel
def max_marginals(problem, i, theta, parts):
    """parts[k] = the score of the best output that has part k, -inf if none has; return that of the best of all."""


@kernel(default=True)
def is_exact(problem):
    """Whether `best` and `expected` find what they promise; else bounds are only as good as what was found. For Python only."""
    return True


@kernel(default=True)
def n_costs(problem, i):
    """How many outputs `best_at_costs` writes at most for example i."""
    return SEARCHED


@kernel
def best_at_costs(problem, i, theta, ys, values, costs):
    """Write outputs that include, for every attainable cost, a best one of that cost; returns how many there are.

    They go into the rows of ys, their scores and their costs into `values` and `costs`, in any order. What maximises any function
    of score and cost that does not fall with the score is among them: that is all that rescaled losses ask for.

    Where that is asking too much (see `counts_costs`), only the outputs on the upper hull of (cost, score) are written, from the
    best one to the costliest. `cost_search` finds them with `best` and `add_cost`, for every structure that has no better way.
    """


@kernel(default=True)
def counts_costs(problem, i):
    """Whether `best_at_costs` has the best output of *every* cost of example i, rather than those on the hull."""
    return False


@kernel
def n_outputs(problem, i):
    """How many outputs `all_outputs` writes at most for example i."""


@kernel
def all_outputs(problem, i, ys):
    """Write every output of example i that is not forbidden into the rows of ys; returns how many there are.

    For structures with few outputs, whose list is no longer than their part scores: losses that sum over outputs need it.
    """


@kernel
def agreement(problem, i, parts, given):
    """given[t] = the probability that position t of the truth is right, under the part marginals `parts` (see `expected`).

    Of several acceptable values at a position it is that of all of them together; 1 where nothing is known. With the indicator
    of an output for `parts` it says where that output agrees with the truth: 1 or 0. O(parts that the truth has).
    """


@kernel(default=True)
def n_values(problem):
    """How many values a position may have, if all have the same ones and the first parts are one for each position and value.

    Then values can be confused with each other (`solvers.noise`). 0 elsewhere, and where the truth may be a set.
    """
    return 0


@kernel
def outputs(problem, i):
    """All outputs of example i as int32 arrays: the brute-force twin of the oracles. Tiny inputs only, never compiled."""


# ---------------------------------------------------------------------------------------------------------------------
# Acceptable outputs: what is known of the truth
# ---------------------------------------------------------------------------------------------------------------------


@kernel
def truth(problem, i, y):
    """Write the gold output of example i into y, whatever its target. Never called for an example that was not `is_labelled`."""


@kernel(default=True)
def is_partial(problem):
    """Whether some example has a set of acceptable outputs for its truth rather than one: then the objective is not convex."""
    return False


@kernel(default=True)
def is_labelled(problem, i):
    """Whether the target is the only acceptable output of example i."""
    return not is_partial(problem)


@kernel
def restrict(problem, i, theta):
    """theta = -inf for parts of no acceptable output: what is left must be those outputs. Never called where i `is_labelled`."""


@kernel(default=True)
def complete(problem, i, theta, y):
    """Write the best acceptable output of example i into y and return its score: the target where it is the only one.

    Latent structural SVMs complete the truth by its best hidden part (Yu and Joachims 2009), CCCP takes it for its next target.
    Ties are broken as in `best`: where the best output of all is acceptable, it is that one. -inf if every acceptable output is
    forbidden.
    """
    t = target(problem, i)
    for k in range(len(t)):
        y[k] = t[k]
    return value_of(problem, i, theta, t)


@kernel(default=True)
def expected_completion(problem, i, theta, c, parts):
    """parts += c * E[z] under p(y) ~ exp(theta . z(y)) over the acceptable outputs of example i; returns their log sum exp.

    The soft twin of `complete`, an E-step: the score of the target and its own parts where it is the only one.
    """
    t = target(problem, i)
    indicate(problem, i, t, c, parts)
    return value_of(problem, i, theta, t)


def partially_labelled(structure: type) -> type:
    """Class decorator: problems of this type have sets of acceptable outputs, which their kernel `restrict` describes.

    The type decides, so that compiled loops over fully labelled problems know nothing of all this. Each oracle over acceptable
    outputs is one call of the oracle over all of them, with what contradicts the truth forbidden.
    """

    @is_partial.implements(structure)
    def always(problem):
        return True

    @complete.implements(structure)
    def complete_by_best(problem, i, theta, y):
        if is_labelled(problem, i):
            t = target(problem, i)
            for k in range(len(t)):
                y[k] = t[k]
            return value_of(problem, i, theta, t)
        restricted = theta.copy()
        restrict(problem, i, restricted)
        return best(problem, i, restricted, y)

    @expected_completion.implements(structure)
    def complete_by_expected(problem, i, theta, c, parts):
        if is_labelled(problem, i):
            t = target(problem, i)
            indicate(problem, i, t, c, parts)
            return value_of(problem, i, theta, t)
        restricted, marginals = theta.copy(), np.empty(len(theta))
        restrict(problem, i, restricted)
        value = expected(problem, i, restricted, marginals)
        for k in range(len(marginals)):
            parts[k] += c * marginals[k]
        return value

    return structure


@kernel(default=True)
def with_targets(problem, targets):
    """The same problem and cost with margins measured against `targets` (outputs end to end), one for each example: convex again.

    Called from Python only. Choosing targets and solving for them in turn is CCCP. The default replaces the field ``targets``.
    """
    if "targets" not in getattr(problem, "_fields", ()):
        raise TypeError(
            f"CCCP (ramp losses) needs the kernel 'with_targets', and {type(problem).__name__} has no field 'targets'."
        )
    return problem._replace(targets=targets)


@kernel
def forget(problem, which, targets):
    """The same problem where nothing is known of the positions `which`, (positions,) bool, end to end: no answer costs there.

    The acceptable outputs that it holds for its targets have those of `targets` there. Called from Python only.
    """


@kernel
def take(problem, which):
    """The examples numbered `which`, or in a slice (then views), as a problem of their own. Called from Python only."""


# ---------------------------------------------------------------------------------------------------------------------
# Features
# ---------------------------------------------------------------------------------------------------------------------


@kernel
def indicate(problem, i, y, c, parts):
    """parts += c * z(y)."""


@kernel
def add_features(problem, i, y, c, into):
    """into += c * F(x_i, y), where `into` is a weight vector or an `Accumulator`."""


@kernel
def add_parts(problem, i, parts, c, into):
    """into += c * F(x_i) parts, where `into` is a weight vector or an `Accumulator`."""


@kernel(default=True)
def difference(problem, i, t, y, c, into):
    """into += c * (F(x_i, t) - F(x_i, y)). Override where most of the two cancels."""
    add_features(problem, i, t, c, into)
    add_features(problem, i, y, -c, into)


@kernel(default=True)
def move_mass(problem, i, ys, changes, n, c, into):
    """into -= c * sum_k changes[k] F(x_i, ys[k]), for changes that sum to zero: what moving dual mass does to w.

    Whatever the target, sum_k a_k dF(ys[k]) = -sum_k a_k F(x_i, ys[k]) = sum_k a_k (F(x_i, ys[p]) - F(x_i, ys[k])) for any p.
    """
    pivot = 0
    for k in range(1, n):
        if abs(changes[k]) > abs(changes[pivot]):
            pivot = k
    for k in range(n):
        if k != pivot and changes[k] != 0.0:
            difference(problem, i, ys[pivot], ys[k], c * changes[k], into)


@kernel(default=True)
def margin(problem, i, w, t, y, scratch):
    """w . (F(x_i, t) - F(x_i, y)), touching only what differs; `scratch` is a cleared Accumulator."""
    difference(problem, i, t, y, 1.0, scratch)
    value = dot(scratch, w)
    clear(scratch)
    return value


@kernel(default=True)
def margins(problem, i, w, t, ys, n, values, scratch):
    """values[k] = margin of ys[k] for k < n. Override where scoring several outputs at once is cheaper."""
    for k in range(n):
        values[k] = margin(problem, i, w, t, ys[k], scratch)


@kernel(default=True)
def products(problem, i, t, y, ys, n, values, scratch, second):
    """values[k] = dF(y) . dF(ys[k]) for k < n, where dF(y) = F(x_i, t) - F(x_i, y): one row of `gram`."""
    difference(problem, i, t, y, 1.0, scratch)
    margins(problem, i, scratch.value, t, ys, n, values, second)
    clear(scratch)


@kernel(default=True)
def gram(problem, i, t, ys, n, products, scratch, second):
    """products[j, k] = dF(ys[j]) . dF(ys[k]) for j, k < n, where dF(y) = F(x_i, t) - F(x_i, y)."""
    for j in range(n):
        difference(problem, i, t, ys[j], 1.0, scratch)
        for k in range(j, n):
            products[j, k] = margin(problem, i, scratch.value, t, ys[k], second)
            products[k, j] = products[j, k]
        clear(scratch)


# ---------------------------------------------------------------------------------------------------------------------
# Asking a structure what it can do
# ---------------------------------------------------------------------------------------------------------------------


def require(problem: Any, kernels: Iterable[Any], who: str) -> None:
    """Raise a TypeError naming `who` and the structure unless `problem` implements all of `kernels`."""
    for generic in kernels:
        k: Kernel = generic.kernel
        if k.find(type(problem)) is None:
            error = MissingKernel(k, type(problem))
            raise TypeError(f"{who} needs the kernel {k.__name__!r}. {error}")


def implements(problem: Any, *kernels: Any) -> bool:
    """Whether the structure of `problem` has all of `kernels`."""
    return all(generic.kernel.find(type(problem)) is not None for generic in kernels)


@compiled_loop
def measure(problem, n, lengths):
    """Of n outputs the length of the longest, the most parts, and all parts; lengths[i] = length of output i, unless empty."""
    longest, widest, total = 0, 0, 0
    for i in range(n):
        own, parts = length(problem, i), n_parts(problem, i)
        if len(lengths):
            lengths[i] = own
        longest, widest, total = max(longest, own), max(widest, parts), total + parts
    return longest, widest, total


def check_weights(problem: Any, w: np.ndarray) -> None:
    """Compiled loops do not check indices: weights of another shape than the problem's must not reach them."""
    if w.ndim != 1 or w.size != n_weights(problem):
        raise ValueError(
            f"There are {w.size} weights of shape {w.shape}, where the problem has {n_weights(problem)}: they belong to another "
            "problem, or a parameter that decides the shape of the model was changed after fitting. Change it back, or fit again."
        )


MOST_CHUNKS = 8  # ranges of examples or of weights that threads take in turn


def chunks(problem: Any, most: int = MOST_CHUNKS) -> list[tuple[int, int]]:
    """Ranges of examples of about equal size: what one thread does at a time. Depends on the problem alone."""
    n = n_examples(problem)
    edges = np.linspace(0, n, min(most, max(n, 1)) + 1).astype(int)
    return [(int(a), int(b)) for a, b in zip(edges[:-1], edges[1:], strict=True)]


def extent(problem: Any) -> tuple[int, int, int]:
    """Length of the longest output, most parts of one example, parts of all; in memory that does not grow with them."""
    longest, widest, total = measure(problem, n_examples(problem), np.zeros(0, np.int64))
    return int(longest), int(widest), int(total)


def sizes(problem: Any) -> tuple[np.ndarray, int]:
    """Offsets of the outputs when laid end to end, and the largest number of parts of one example."""
    starts = np.zeros(n_examples(problem) + 1, np.int64)
    _, widest, _ = measure(problem, len(starts) - 1, starts[1:])
    return np.cumsum(starts, out=starts), int(widest)


def total_parts(problem: Any) -> int:
    """Number of parts of all examples together: the size of the problem, beside the number of weights."""
    return extent(problem)[2]
