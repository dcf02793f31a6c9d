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
from partwise.structures.factor_graph.layout import DENSE, n_literals
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


FOREST, AD3, EXACT, MARGINALS = range(4)


@compiled_loop
def ask(problem, i, how, theta, y, p, bounds, parts):
    """Answer one question about graph i: (value, bound, iterations), or (log Z, converged, sweeps).

    One function for all questions: the code for every kind of factor is long, and so it is compiled once.
    """
    graph, search, a, b = view(problem, i), problem.search, problem.factors[i], problem.factors[i + 1]
    order, parents = problem.order[a:b], problem.parents[a:b]
    if how == FOREST:
        best_in_forest(graph, order, parents, theta, y)
        value = kernels.value_of(problem, i, theta, y)
        return value, value, 0
    if how == AD3:
        return ad3(graph, theta, y, p, search.iterations, search.tol, bounds)
    if how == EXACT:
        return best_exactly(graph, theta, y, search.iterations, search.tol, search.nodes)
    log_z, converged, sweeps = propagate(graph, order, problem.forest[i], theta, search, parts)
    return log_z, 1.0 if converged else 0.0, sweeps


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
    weights = np.zeros(0) if w is None else np.asarray(w, float)
    if len(weights) < problem.n_weights:
        raise ValueError(f"There are {problem.n_weights} weights. Got {len(weights)}.")
    theta = np.zeros(int(kernels.n_parts(problem, i)))
    score_parts(problem, i, weights, theta)
    return theta


def question(problem: GraphProblem, i: int, theta: np.ndarray, how: int, bounds: np.ndarray | None = None) -> tuple:
    """Ask; returns the three numbers, states, relaxed literals and marginals."""
    graph = view(problem, i)
    y, p, parts = np.zeros(len(graph.states), np.int32), np.zeros(int(n_literals(graph))), np.zeros(len(theta))
    found = ask(problem, i, how, theta, y, p, np.zeros(0) if bounds is None else bounds, parts)
    return found, y, p, parts


def find_best(problem: GraphProblem, i: int, w: Any, method: str) -> Answer:
    """By messages in a forest, else by AD3 and, on request, branch and bound."""
    graph, theta = view(problem, i), scores_of(problem, i, w)
    if method != "ad3" and problem.forest[i]:
        (value, bound, n), y, *_ = question(problem, i, theta, FOREST)
        return Answer(y, float(value), float(bound), value > -np.inf, one_hot(graph, y), 0, np.array([value]))
    bounds = np.full(problem.search.iterations, np.nan)
    (value, bound, n), y, p, _ = question(problem, i, theta, AD3, bounds)
    if (method == "exact" and not is_closed(value, bound)) or (value == -np.inf and bound > -np.inf):
        (value, bound, _), y, *_ = question(problem, i, theta, EXACT)
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
    (log_z, converged, sweeps), _, _, parts = question(problem, i, theta, MARGINALS)
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

    which = conflicting(view(problem, i), problem.given[problem.parts[i] : problem.parts[i + 1]])
    said = ", ".join(names[f] for f in which if f < len(names))
    raise ValueError(
        f"No output is allowed: these factors cannot hold together: {said}."
        if said
        else "No output is allowed: a variable has no state whose score is not -inf."
    )
