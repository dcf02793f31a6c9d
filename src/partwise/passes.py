"""Passes over all examples that callers need beside those of `partwise.objective`: marginals, k best outputs, scores, evidence.

Written over the kernels, for any structure whose first parts are its *nodes*, ``length * width`` of them: one part per position
and label.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop, helper
from partwise.engine.memory import require_memory
from partwise.engine.ragged import taken
from partwise.engine.threads import in_threads, n_threads
from partwise.kernels import chunks

__all__ = ["Evidence", "evidence", "kbest", "marginals", "parts", "values_of_targets"]


@compiled_loop
def marginal_pass(problem, first, last, w, beta, theta, parts, starts, out, log_z):
    """Node marginals under p(y) ~ exp(beta s(y)), laid end to end in the rows of `out`, and the log-partitions."""
    width = kernels.width(problem)
    for i in range(first, last):
        scores = theta[: kernels.n_parts(problem, i)]
        kernels.score(problem, i, w, scores)
        if beta != 1.0:
            scores *= beta
        log_z[i] = kernels.expected(problem, i, scores, parts)
        for t in range(starts[i + 1] - starts[i]):
            for c in range(width):
                out[starts[i] + t, c] = parts[t * width + c]


@compiled_loop
def max_marginal_pass(problem, first, last, w, theta, parts, starts, out):
    """Node max-marginals, laid end to end in the rows of `out`."""
    width = kernels.width(problem)
    for i in range(first, last):
        scores = theta[: kernels.n_parts(problem, i)]
        kernels.score(problem, i, w, scores)
        kernels.max_marginals(problem, i, scores, parts)
        for t in range(starts[i + 1] - starts[i]):
            for c in range(width):
                out[starts[i] + t, c] = parts[t * width + c]


@compiled_loop
def kbest_pass(problem, first, last, w, theta, starts, out, values, found):
    """The k best outputs of every example in the k rows of `out`, their scores, and how many there are."""
    for i in range(first, last):
        scores = theta[: kernels.n_parts(problem, i)]
        kernels.score(problem, i, w, scores)
        found[i] = kernels.kbest(problem, i, scores, out[:, starts[i] : starts[i + 1]], values[i])


@compiled_loop
def value_pass(problem, first, last, w, theta, values):
    """The scores of the target outputs."""
    for i in range(first, last):
        scores = theta[: kernels.n_parts(problem, i)]
        kernels.score(problem, i, w, scores)
        values[i] = kernels.value_of(problem, i, scores, kernels.target(problem, i))


class Evidence(NamedTuple):
    """What weights make of the truth of all examples, position by position of their outputs, end to end.

    Examples
    --------
    >>> import numpy as np
    >>> from partwise import LOSSES, multiclass_problem
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    >>> w = np.array([0.5, 0.0, 0.0, 0.5])
    >>> Evidence._fields
    ('starts', 'given', 'believed', 'disputed')
    """

    starts: np.ndarray  #: (N + 1,) where the positions of the examples begin
    given: np.ndarray  #: (positions,) probability of what is given there; 1 where nothing is
    believed: np.ndarray  #: (positions,) int32 the outputs of highest score
    disputed: np.ndarray  #: (positions,) bool: the output of highest score has something else than what is given


def no_evidence(problem: Any) -> Evidence:
    """Room for the evidence about a problem."""
    starts, _ = kernels.sizes(problem)
    n = int(starts[-1])
    return Evidence(starts, np.ones(n), np.zeros(n, np.int32), np.zeros(n, np.bool_))


def gather(whole: Evidence, which: np.ndarray, found: Evidence) -> None:
    """Put what was found about the examples numbered `which` into the evidence about all, in place."""
    at = taken(whole.starts, which)[1]
    whole.given[at], whole.believed[at], whole.disputed[at] = found.given, found.believed, found.disputed


@helper
def answer(problem, i, theta, parts, y, disputed):
    """Write the best output into y, and where it contradicts what is given into `disputed`; `parts` is room to work in."""
    kernels.best(problem, i, theta, y)
    agrees = np.empty(len(y))
    parts[:] = 0.0
    kernels.indicate(problem, i, y, 1.0, parts)
    kernels.agreement(problem, i, parts, agrees)
    for t in range(len(y)):
        disputed[t] = agrees[t] < 0.5


@compiled_loop
def evidence_pass(problem, first, last, w, beta, theta, parts, starts, given, believed, disputed):
    """Fill in what `Evidence` holds for first <= i < last."""
    for i in range(first, last):
        n = kernels.n_parts(problem, i)
        scores, marginals = theta[:n], parts[:n]
        at, end = starts[i], starts[i + 1]
        kernels.score(problem, i, w, scores)
        answer(problem, i, scores, marginals, believed[at:end], disputed[at:end])
        if beta != 1.0:
            scores *= beta
        kernels.expected(problem, i, scores, marginals)
        kernels.agreement(problem, i, marginals, given[at:end])


@compiled_loop
def score_pass(problem, i, w, theta):
    """Part scores of one example."""
    kernels.score(problem, i, w, theta)


def marginals(problem: Any, w: np.ndarray, beta: float, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Node marginals (positions of all examples, labels) under p(y) ~ exp(beta s(y)), and the log-partition of every example.

    Parameters
    ----------
    problem : packed problem
    w : array (weights,)
    beta : float
        The inverse temperature.
    n_jobs : int, optional
        Threads; never changes the result.

    Examples
    --------
    >>> import numpy as np
    >>> from partwise import LOSSES, multiclass_problem
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    >>> w = np.array([0.5, 0.0, 0.0, 0.5])
    >>> p, log_z = marginals(problem, w, 1.0)
    >>> p.round(3).tolist()
    [[0.622, 0.378], [0.378, 0.622]]
    """
    kernels.check_weights(problem, w)
    starts, parts = kernels.sizes(problem)
    out, log_z = np.zeros((starts[-1], kernels.width(problem))), np.zeros(len(starts) - 1)

    def run(chunk):
        marginal_pass(problem, *chunk, w, beta, np.zeros(parts), np.zeros(parts), starts, out, log_z)

    in_threads(run, chunks(problem), n_jobs)
    return out, log_z


def max_marginals(problem: Any, w: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """Node max-marginals (positions of all examples, labels): the score of the best output that has that label there."""
    kernels.check_weights(problem, w)
    starts, parts = kernels.sizes(problem)
    out = np.zeros((starts[-1], kernels.width(problem)))

    def run(chunk):
        max_marginal_pass(problem, *chunk, w, np.zeros(parts), np.zeros(parts), starts, out)

    in_threads(run, chunks(problem), n_jobs)
    return out


def evidence(problem: Any, w: np.ndarray, beta: float, n_jobs: int | None = None) -> Evidence:
    """What weights make of the truth, under p(y) ~ exp(beta s(y)). One pass: the best output, and sums over all, in threads.

    Parameters
    ----------
    problem : packed problem
    w : array (weights,)
    beta : float
        The inverse temperature.
    n_jobs : int, optional
        Threads; never changes the result.

    Examples
    --------
    >>> import numpy as np
    >>> from partwise import LOSSES, multiclass_problem
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    >>> w = np.array([0.5, 0.0, 0.0, 0.5])
    >>> evidence(problem, w, 1.0).believed.tolist()
    [0, 1]
    """
    kernels.check_weights(problem, w)
    _, parts = kernels.sizes(problem)
    found = no_evidence(problem)

    def run(chunk):
        room = np.zeros(parts), np.zeros(parts)
        evidence_pass(problem, *chunk, w, beta, *room, found.starts, found.given, found.believed, found.disputed)

    in_threads(run, chunks(problem), n_jobs)
    return found


def kbest(problem: Any, w: np.ndarray, k: int, n_jobs: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The k best outputs end to end (k, positions), their scores (N, k), and how many each example has (N,).

    Parameters
    ----------
    problem : packed problem
    w : array (weights,)
    k : int
    n_jobs : int, optional
        Threads; never changes the result.

    Examples
    --------
    >>> import numpy as np
    >>> from partwise import LOSSES, multiclass_problem
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    >>> w = np.array([0.5, 0.0, 0.0, 0.5])
    >>> outputs, scores, found = kbest(problem, w, 2)
    >>> outputs.tolist(), scores.tolist()
    ([[0, 1], [1, 0]], [[0.5, 0.0], [0.5, 0.0]])
    """
    kernels.check_weights(problem, w)
    starts, parts = kernels.sizes(problem)
    n = len(starts) - 1
    longest = int(np.diff(starts).max(initial=0))
    require_memory(
        k * (4.0 * float(starts[-1]) + 8.0 * (len(starts) - 1) + 4.0 * n_threads(n_jobs) * longest * (longest + 6)),
        n_jobs,
        f"Finding the {k:,} best outputs of {len(starts) - 1:,} examples",
        "Ask for fewer of them",
    )
    out, values, found = np.zeros((k, starts[-1]), np.int32), np.full((n, k), -np.inf), np.zeros(n, np.int64)

    def run(chunk):
        kbest_pass(problem, *chunk, w, np.zeros(parts), starts, out, values, found)

    in_threads(run, chunks(problem), n_jobs)
    return out, values, found


def values_of_targets(problem: Any, w: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
    """The score of every example's target output.

    Parameters
    ----------
    problem : packed problem
    w : array (weights,)
    n_jobs : int, optional
        Threads; never changes the result.

    Examples
    --------
    >>> import numpy as np
    >>> from partwise import LOSSES, multiclass_problem
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    >>> w = np.array([0.5, 0.0, 0.0, 0.5])
    >>> values_of_targets(problem, w).tolist()
    [0.5, 0.5]
    """
    kernels.check_weights(problem, w)
    _, parts = kernels.sizes(problem)
    values = np.zeros(kernels.n_examples(problem))

    def run(chunk):
        value_pass(problem, *chunk, w, np.zeros(parts), values)

    in_threads(run, chunks(problem), n_jobs)
    return values


@compiled_loop
def part_pass(problem, i, w, beta, theta, parts):
    """Part marginals of one example under p(y) ~ exp(beta s(y)); returns the log-partition."""
    kernels.score(problem, i, w, theta)
    if beta != 1.0:
        theta *= beta
    return kernels.expected(problem, i, theta, parts)


def parts(problem: Any, i: int, w: np.ndarray, beta: float) -> np.ndarray:
    """The probability of every part of example i.

    Parameters
    ----------
    problem : packed problem
    i : int
        The example.
    w : array (weights,)
    beta : float
        The inverse temperature.

    Examples
    --------
    >>> import numpy as np
    >>> from partwise import LOSSES, multiclass_problem
    >>> problem = multiclass_problem([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    >>> w = np.array([0.5, 0.0, 0.0, 0.5])
    >>> parts(problem, 0, w, 1.0).round(3).tolist()
    [0.622, 0.378]
    """
    kernels.check_weights(problem, w)
    n = int(kernels.n_parts(problem, i))
    theta, out = np.zeros(n), np.zeros(n)
    part_pass(problem, i, w, beta, theta, out)
    return out
