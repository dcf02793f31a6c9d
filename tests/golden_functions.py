"""What functions of the public face answer on tiny data, beside estimators and commands: each function here is one question."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

import partwise
from golden_files import plain
from partwise import (
    FactorGraph,
    SequenceLabeler,
    chain_problem,
    crfsuite,
    datasets,
    graph_problem,
    metrics,
    multiclass_problem,
    solve,
)

TRUE = [["B-NP", "I-NP", "O", "B-VP"], ["B-NP", "O", "O"], ["B-VP", "I-VP", "B-NP"]]
FOUND = [["B-NP", "I-NP", "O", "B-NP"], ["B-NP", "I-NP", "O"], ["B-VP", "I-VP", "B-NP"]]


def hard_factors() -> Any:
    """Bits and states under constraints of every kind, on a cycle."""
    rng = np.random.default_rng(0)
    graph = FactorGraph()
    bits, states = graph.bits(6), graph.variables((2, 2), states=3)
    graph.unary(bits, rng.normal(size=6))
    graph.unary(states, rng.normal(size=(2, 2, 3)))
    graph.pairwise(states[0], states[1], np.eye(3))
    graph.pairwise(states[:, 0], states[:, 1], rng.normal(size=(3, 3)))
    graph.xor(bits[:3], "one of three")
    graph.at_most_one(bits[2:5])
    graph.or_([bits[5], states[0, 0].is_(1)])
    graph.budget(bits, 3)
    graph.imply([bits[0]], states[1, 1].is_(2))
    found = {}
    for method in ("auto", "exact", "highs"):
        answer = graph.best(method)
        found[method] = [answer.of(bits), answer.of(states), answer.value, answer.proven]
    beliefs = graph.marginals(damping=0.2)
    return found | {"marginals": [beliefs.of(bits), beliefs.of(states), beliefs.log_partition, beliefs.converged]}


def learnt_factors() -> Any:
    """Weights of factor graphs, partly labelled."""
    graphs, y = [], []
    for rng in map(np.random.default_rng, range(5)):
        graph, labels = FactorGraph(), np.sort(rng.integers(3, size=4))
        x = graph.variables(4, states=3)
        graph.unary(x, features=np.eye(3)[labels] + rng.normal(0.0, 0.4, (4, 3)), weights="node")
        graph.pairwise(x[:-1], x[1:], weights="edge", tie="symmetric")
        graphs.append(graph)
        y.append(np.where(np.arange(4) == 1, -1, labels))
    places = {name: tuple(family) for name, family in partwise.graph_families(graphs).items()}
    return [places, numbers(solve(graph_problem(graphs, y), "hinge", "dca", 0.5, max_epochs=3, tol=0.0))]


def numbers(result: Any) -> list[Any]:
    """What a solver came to."""
    return [result.primal, result.dual, float(np.abs(result.w).sum()), result.n_epochs, result.status]


def solved() -> Any:
    """Classes and chains, by solvers that differ."""
    rng = np.random.default_rng(1)
    x, gold = rng.normal(size=(20, 3)), rng.integers(3, size=20)
    classes = multiclass_problem(x, gold, 3)
    chains = chain_problem(x, [4, 0, 7, 9], gold, 3, forbidden=[])
    of_2013 = partwise.SOLVERS["bcfw"](pairwise=False, gap_sampling=False, cached_passes=0)  # type: ignore[call-arg]
    return {
        "sdm": numbers(solve(classes, "hinge", "sdm", 0.5, max_epochs=20, tol=1e-6)),
        "lbfgs": numbers(solve(chains, "crf", "lbfgs", 0.5, max_epochs=20, tol=1e-6)),
        "ramp": numbers(solve(chains, partwise.Ramp(1, 0.5), partwise.CCCP(of_2013), 0.5, max_epochs=6)),
        "owlqn": numbers(solve(classes, "crf", "owlqn", 0.5, l1_ratio=0.5, max_epochs=20)),
    }


def measures() -> Any:
    """Metrics of labels, rankings, trees, structures."""
    counts = metrics.sequence_counts(TRUE, FOUND)
    other = metrics.sequence_counts(TRUE, [["O"] * len(labels) for labels in TRUE])
    return {
        "spans": metrics.spans(TRUE[0]),
        "span_scores": metrics.span_scores(TRUE, FOUND),
        "report": str(metrics.report(TRUE, FOUND, n_resamples=50, random_state=0)),
        "compare": metrics.compare(counts, other, n_resamples=50, random_state=0),
        "token_accuracy": metrics.token_accuracy(TRUE, FOUND),
        "sequence_accuracy": metrics.sequence_accuracy(TRUE, FOUND),
        "ndcg": metrics.ndcg([2, 0, 1, 0, 1], [0.3, 0.2, 0.1, 0.5, 0.4], [0, 0, 0, 1, 1], 2),
        "map": metrics.mean_average_precision([1, 0, 1, 0, 1], [0.3, 0.2, 0.1, 0.5, 0.4], [0, 0, 0, 1, 1]),
        "attachment": metrics.attachment_scores(np.array([2, 0, 2]), np.array([2, 0, 1])),
        "base_pairs": metrics.base_pair_scores(
            [datasets.read_dot_bracket("((...))")[0]], [datasets.read_dot_bracket("(.....)")[0]]
        ),
        "nodes": metrics.node_scores([["a", "b"], ["b"]], [["a", "a"], ["b"]]),
        "flat_f1": crfsuite.metrics.flat_f1_score(TRUE, FOUND, average="macro"),
    }


def made_data() -> Any:
    """Data made from a seed stay the same; long ones by their digest."""

    def digest(value: Any) -> str:
        return hashlib.sha256(json.dumps(plain(value)).encode()).hexdigest()[:16]

    return {
        "sentences": [datasets.make_sentences(1, seed=3)[0], digest(datasets.make_sentences(20))],
        "tagged": [
            datasets.make_tagged_sequences(2, seed=3, longest=4),
            digest(datasets.make_tagged_sequences(20, as_dicts=True)),
        ],
        "brackets": [datasets.make_brackets(2, seed=3, depth=2), digest(datasets.make_brackets(20))],
        "pictures": np.asarray(datasets.make_pictures(2, seed=3, size=(4, 4))[1]),
        "digits": datasets.make_digit_words(5, seed=3)[1],
    }


def crfsuite_face() -> Any:
    """The interface of sklearn-crfsuite."""
    X, y = datasets.make_tagged_sequences(15, 0, types=("PER",), n_words=5, longest=5)
    crf = crfsuite.CRF(algorithm="lbfgs", c1=0.0, c2=0.5, max_iterations=20, all_possible_transitions=True).fit(X, y)
    features = sorted(crf.state_features_.items())[:10]
    return [
        crf.predict(X[:4]),
        crf.predict_marginals_single(X[0]),
        crf.score(X, y),
        sorted(crf.transition_features_.items()),
        features,
    ]


def bit_by_bit() -> Any:
    """A stream of sentences, and going on with it."""
    X, y = datasets.make_tagged_sequences(12, 0, types=("PER",), n_words=5, longest=5)
    labeler = SequenceLabeler("hinge", C=0.2, solver="dca", random_state=0)
    for k in range(0, 12, 4):
        labeler.partial_fit(X[k : k + 4], y[k : k + 4], classes=["B-PER", "I-PER", "O"])
    return [labeler.predict(X[:3]), labeler.decision_value(X), labeler.n_features_in_]


QUESTIONS = (hard_factors, learnt_factors, solved, measures, made_data, crfsuite_face, bit_by_bit)


def answer(question: Any) -> Any:
    """The answer as JSON."""
    return plain(question())
