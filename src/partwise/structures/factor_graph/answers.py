"""What a factor graph answers, and how: outputs with their bounds, marginals, and HiGHS as another way to the same answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.structures.factor_graph.ad3 import ad3
from partwise.structures.factor_graph.branch_and_bound import best_exactly
from partwise.structures.factor_graph.factors import allows
from partwise.structures.factor_graph.layout import DENSE, WRITTEN, n_literals
from partwise.structures.factor_graph.max_product import best_in_forest
from partwise.structures.factor_graph.problem import GraphProblem, view
from partwise.structures.factor_graph.rounding import is_closed
from partwise.structures.factor_graph.sums import propagate


@dataclass(frozen=True)
class Answer:
    """An output of highest score, as far as is known."""

    states: np.ndarray  #: of every variable
    value: float  #: its score
    bound: float  #: no output has a higher one
    proven: bool  #: the two are the same
    relaxed: np.ndarray  #: probability-like numbers of literals, of the linear relaxation
    n_iterations: int
    bounds: np.ndarray  #: after each iteration of AD3

    def of(self, x: Any) -> np.ndarray:
        """States of these variables, in their shape."""
        return self.states[x.numbers]


@dataclass(frozen=True)
class Beliefs:
    """Marginals of a factor graph."""

    literals: np.ndarray  #: probability of each
    parts: np.ndarray  #: of literals, then tables
    log_partition: float  #: log Z, or Bethe's approximation
    converged: bool
    n_sweeps: int
    exact: bool  #: the graph is a forest
    first: np.ndarray

    def of(self, x: Any) -> np.ndarray:
        """P(state) of these variables, an array (..., states)."""
        first = self.first[x.numbers]
        if x.is_bit:
            p = self.literals[first]
            return np.stack([1.0 - p, p], axis=-1)
        return self.literals[first[..., None] + np.arange(x.n_states)]


# one loop for each way to an answer: the code for all kinds of factors is in each of them, and takes long to compile


@compiled_loop
def best_by_messages(problem, i, theta, y):
    """The best output of graph i, a forest; returns its score."""
    a, b = problem.factors[i], problem.factors[i + 1]
    best_in_forest(view(problem, i), problem.order[a:b], problem.parents[a:b], theta, y)
    return kernels.value_of(problem, i, theta, y)


@compiled_loop
def best_by_ad3(problem, i, theta, y, p, bounds):
    """The best output of graph i that AD3 finds: (value, bound, iterations)."""
    return ad3(view(problem, i), theta, y, p, problem.search.iterations, problem.search.tol, bounds)


@compiled_loop
def best_by_branching(problem, i, theta, y):
    """The best output of graph i: (value, bound, nodes)."""
    search = problem.search
    return best_exactly(view(problem, i), theta, y, search.iterations, search.tol, search.nodes)


@compiled_loop
def sum_all(problem, i, theta, parts):
    """The marginals of graph i: (log Z, converged, sweeps)."""
    graph, order = view(problem, i), problem.order[problem.factors[i] : problem.factors[i + 1]]
    log_z, converged, sweeps = propagate(graph, order, problem.forest[i], theta, problem.search, parts)
    return log_z, converged, sweeps


@compiled_loop
def score_parts(problem, i, w, theta):
    """Scores of the parts of graph i."""
    kernels.score(problem, i, w, theta)


@compiled_loop
def first_violated(problem, i, y):
    """The first factor that forbids an output, or -1."""
    graph = view(problem, i)
    for f in range(len(graph.kind)):
        if not allows(graph, f, y):
            return f
    return -1


def scores_of(problem: GraphProblem, i: int, w: Any) -> np.ndarray:
    """Scores of all parts of graph i."""
    if w is None and problem.n_weights:
        raise ValueError("Some scores of this graph are learnt: give the weights w (and their families).")
    if not problem.n_weights:  # nothing is learnt: nothing to compile
        return problem.given[problem.parts[i] : problem.parts[i + 1]].astype(float)
    weights = np.asarray(w, float)
    if len(weights) < problem.n_weights:
        raise ValueError(f"There are {problem.n_weights} weights. Got {len(weights)}.")
    theta = np.zeros(int(kernels.n_parts(problem, i)))
    score_parts(problem, i, weights, theta)
    return theta


def find_best(problem: GraphProblem, i: int, w: Any, method: str) -> Answer:
    """By messages in a forest, else by AD3 and, on request, branch and bound."""
    graph, theta = view(problem, i), scores_of(problem, i, w)
    y = np.zeros(len(graph.states), np.int32)
    if method != "ad3" and problem.forest[i]:
        value = float(best_by_messages(problem, i, theta, y))
        return Answer(y, value, value, value > -np.inf, one_hot(graph, y), 0, np.array([value]))
    p, bounds = np.zeros(int(n_literals(graph))), np.full(problem.search.iterations, np.nan)
    value, bound, n = best_by_ad3(problem, i, theta, y, p, bounds)
    if (method == "exact" and not is_closed(value, bound)) or (value == -np.inf and bound > -np.inf):
        value, bound, _ = best_by_branching(problem, i, theta, y)
    if bound < impossible(theta):
        value = -np.inf
    return Answer(y, float(value), float(bound), is_closed(value, bound), p, int(n), bounds[:n].copy())


def impossible(theta: np.ndarray) -> float:
    """No output has a score as low as this."""
    return -1.0 - float(np.abs(theta[np.isfinite(theta)]).sum())


def one_hot(graph: Any, y: np.ndarray) -> np.ndarray:
    """Which literals an output turns on."""
    state = np.arange(len(graph.owner)) - graph.first[graph.owner]
    return np.where(graph.states[graph.owner] == 1, y[graph.owner], state == y[graph.owner]).astype(float)


def find_marginals(problem: GraphProblem, i: int, w: Any) -> Beliefs:
    """By messages. log Z = -inf if hard factors allow nothing."""
    graph, theta = view(problem, i), scores_of(problem, i, w)
    parts = np.zeros(len(theta))
    log_z, converged, sweeps = sum_all(problem, i, theta, parts)
    n, forest = int(n_literals(graph)), bool(problem.forest[i])
    if not (log_z >= impossible(theta)) or (not converged and (graph.kind != DENSE).any()):
        from partwise.structures.factor_graph.programs import possible

        log_z = log_z if possible(graph, theta) else -np.inf
    return Beliefs(parts[:n], parts, float(log_z), bool(converged), int(sweeps), forest, graph.first)


def answer_by_highs(problem: GraphProblem, i: int, w: Any, whole: bool) -> Answer:
    """The same by scipy's HiGHS: mixed-integer, or the linear relaxation."""
    from partwise.structures.factor_graph.programs import linear_program, solve_program

    graph, theta = view(problem, i), scores_of(problem, i, w)
    value, x = solve_program(linear_program(graph, theta), whole)
    n, y = int(n_literals(graph)), np.zeros(len(graph.states), np.int32)
    if value == -np.inf:
        return Answer(y, value, value, False, np.zeros(n), 0, np.zeros(0))
    for v, states in enumerate(graph.states):
        here = x[graph.first[v] : graph.first[v + 1]]
        y[v] = here[0] > 0.5 if states == 1 else int(np.argmax(here))
    return Answer(y, value, value, whole, x[:n], 0, np.zeros(0))


def refuse_infeasible(problem: GraphProblem, i: int, names: list[str]) -> None:
    """Raise, naming factors that cannot hold together: leave out factors as long as what is left is still impossible."""
    from partwise.structures.factor_graph.programs import conflicting

    if (view(problem, i).kind == WRITTEN).any():
        raise ValueError("No output is allowed: what the factors of the graph allow, some of them written in Python, is nothing.")
    which = conflicting(view(problem, i), problem.given[problem.parts[i] : problem.parts[i + 1]])
    said = ", ".join(names[f] for f in which if f < len(names))
    raise ValueError(
        f"No output is allowed: these factors cannot hold together: {said}."
        if said
        else "No output is allowed: a variable has no state whose score is not -inf."
    )
