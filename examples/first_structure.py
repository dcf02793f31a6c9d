"""A structure of your own in one file: name the m topics of a document.

An output is a set of exactly m of K topics; its parts are the topics in it. Solvers never learn any of this: they call the
kernels below, and the same loops that train chains train this structure, compiled. Run as::

    python examples/first_structure.py
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from partwise import LOSSES, SOLVERS, kernels, solve
from partwise.features.rows import add_label, add_row, emit, make_rows
from partwise.objective import best_outputs


class TopicProblem(NamedTuple):
    """N documents with m of K topics each: the packed problem that solvers carry around without looking inside."""

    rows: Any  #: feature rows, one per document
    gold: np.ndarray  #: (N, m) int32 true topics
    n_topics: int


# --- Sizes. F(x, y) is the sum of x (x) e_k over the topics k in y, so there is a weight for every (feature, topic).


@kernels.n_examples.implements(TopicProblem)
def n_examples(problem):
    return problem.gold.shape[0]


@kernels.n_weights.implements(TopicProblem)
def n_weights(problem):
    return problem.rows.n_features * problem.n_topics


@kernels.width.implements(TopicProblem)
def width(problem):
    return problem.n_topics  # weights lie in rows of this many neighbours, one row per feature


@kernels.n_parts.implements(TopicProblem)
def n_parts(problem, i):
    return problem.n_topics


@kernels.length.implements(TopicProblem)
def length(problem, i):
    return problem.gold.shape[1]  # an output is written down as m integers


@kernels.target.implements(TopicProblem)
def target(problem, i):
    return problem.gold[i]


# --- Scores and costs.


@kernels.score.implements(TopicProblem)
def score(problem, i, w, theta):
    theta[: problem.n_topics] = 0.0
    emit(problem.rows, i, w, problem.n_topics, theta)  # theta += W^T x


@kernels.value_of.implements(TopicProblem)
def value_of(problem, i, theta, y):
    total = 0.0
    for k in y:
        total += theta[k]
    return total


@kernels.cost.implements(TopicProblem)
def cost(problem, i, y):
    wrong = 0.0
    for k in y:
        if k not in problem.gold[i]:
            wrong += 1.0
    return wrong


@kernels.add_cost.implements(TopicProblem)
def add_cost(problem, i, c, theta):
    for k in range(problem.n_topics):
        if k not in problem.gold[i]:
            theta[k] += c


# --- Features.


@kernels.add_features.implements(TopicProblem)
def add_features(problem, i, y, c, into):
    for k in y:
        add_label(problem.rows, i, problem.n_topics, k, c, into)  # W[:, k] += c x


# --- The first oracle: all that the perceptron, MIRA, SVMs and their solvers ask for.


@kernels.best.implements(TopicProblem)
def best(problem, i, theta, y):
    total = 0.0
    for j in range(len(y)):  # the m highest scores, one after the other
        y[j] = -1
        for k in range(problem.n_topics):
            if k not in y[:j] and (y[j] < 0 or theta[k] > theta[y[j]]):
                y[j] = k
        total += theta[y[j]]
    return total


# --- The second oracle and its two helpers: CRFs and everything else with a finite temperature.


@kernels.expected.implements(TopicProblem)
def expected(problem, i, theta, parts):
    # log_z[k, r]: log-sum-exp over all ways to choose r of the topics k, k + 1, ... (r <= K - k)
    K, m = problem.n_topics, problem.gold.shape[1]
    log_z = np.zeros((K + 1, m + 1))
    for k in range(K - 1, -1, -1):
        for r in range(1, min(m, K - k) + 1):
            take = theta[k] + log_z[k + 1, r - 1]
            log_z[k, r] = take if r == K - k else np.logaddexp(take, log_z[k + 1, r])
    # walk through the topics with the distribution over how many are still to be chosen
    todo = np.zeros(m + 1)
    todo[m] = 1.0
    for k in range(K):
        parts[k] = 0.0
        for r in range(1, min(m, K - k) + 1):
            chosen = todo[r] * np.exp(theta[k] + log_z[k + 1, r - 1] - log_z[k, r])
            parts[k] += chosen
            todo[r] -= chosen
            todo[r - 1] += chosen
    return log_z[0, m]


@kernels.indicate.implements(TopicProblem)
def indicate(problem, i, y, c, parts):
    for k in y:
        parts[k] += c


@kernels.add_parts.implements(TopicProblem)
def add_parts(problem, i, parts, c, into):
    add_row(problem.rows, i, problem.n_topics, parts, c, into)  # W += c x parts^T


# --- The brute-force twin of the oracles, for tests only.


@kernels.outputs.implements(TopicProblem)
def outputs(problem, i):
    for y in itertools.combinations(range(problem.n_topics), problem.gold.shape[1]):
        yield np.array(y, np.int32)


# --- Use it.


def make_documents(n: int, n_features: int = 20, n_topics: int = 6, m: int = 2, seed: int = 0) -> TopicProblem:
    """Documents whose topics are the m highest of K noisy linear scores."""
    truth = np.random.default_rng(2010).normal(size=(n_features, n_topics))
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, n_features))
    scores = x @ truth + rng.normal(size=(n, n_topics))
    gold = np.sort(np.argsort(-scores, axis=1)[:, :m], axis=1).astype(np.int32)
    return TopicProblem(make_rows(x), gold, n_topics)


def exact_matches(problem: TopicProblem, w: np.ndarray) -> float:
    """Share of documents whose topics are all right."""
    predicted = best_outputs(problem, w)[0].reshape(problem.gold.shape)
    return float((np.sort(predicted, axis=1) == problem.gold).all(axis=1).mean())


def main() -> None:
    train, test = make_documents(500, seed=1), make_documents(500, seed=2)
    for name, make in SOLVERS.items():
        for loss in ("hinge", "crf"):
            if name == "kbest_mira" or not make().accepts(LOSSES[loss]):
                continue  # k-best MIRA asks for one more kernel, `kbest`
            result = solve(train, loss, name, C=0.1, max_epochs=20)
            right = exact_matches(test, result.w)
            print(f"{name:<12}{loss:<8}{100 * right:5.1f} % right   {result.seconds:6.2f} s   {result.message}")


if __name__ == "__main__":
    main()
