"""What `GraphLabeler` knows of its graphs: classes, features and edges; packing, the weights by name, and the model file."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from partwise.features.given_labels import numbering
from partwise.features.rows import is_sparse
from partwise.structures.factor_graph.description import WeightBlock
from partwise.structures.factor_graph.packing import Arrangement
from partwise.structures.factor_graph.pairwise import EDGE, NODE, arrange_pairs, pairwise_problem
from partwise.structures.factor_graph.problem import OPTIONS, GraphProblem, make_search
from partwise.tasks.common.base import Structured
from partwise.tasks.common.checks import is_bool, one_of
from partwise.tasks.common.label_arrays import class_weights, shown
from partwise.tasks.common.model_file import count_in, labels_in
from partwise.tasks.graphs.data import DIRECTIONS, GRAPHS, MULTILABEL, PICTURES, Graphs, chow_liu, grid, in_blocks, read_data

PAIRWISE = ("full", "symmetric", "potts")
LABEL_EDGES = ("tree", "full", "none")


def _is_search(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, dict) or not set(value) <= set(OPTIONS) - {"exact"}:
        return False
    try:
        make_search(value)
    except (ValueError, TypeError):
        return False
    return True


@functools.lru_cache(maxsize=4)  # a few: an arrangement is as large as a packed picture
def arrange_picture(height: int, width: int, neighbours: int, n_labels: int) -> Arrangement:
    """All pictures of one size are arranged alike, once."""
    return arrange_pairs(height * width, grid(height, width, neighbours)[0], n_labels)


class GraphModel(Structured):
    """Everything but training and answering."""

    pairwise: str
    inference: str
    search: dict[str, Any] | None
    neighbours: int
    contrast: bool
    label_edges: str
    class_weight: Any
    unknown: Any
    constraints: Any
    fit_intercept: bool

    weights_: np.ndarray
    kind_: str  #: what it was trained on: "graphs", "pictures" or "multilabel"
    contrast_scale_: float = 1.0
    label_edges_: np.ndarray  #: (pairs, 2) of a multilabel problem

    _checks = {
        **Structured._checks,
        "pairwise": one_of(*PAIRWISE),
        "inference": one_of("auto", "exact"),
        "search": (_is_search, f"None or a dict of {', '.join(name for name in OPTIONS if name != 'exact')}"),
        "neighbours": one_of(4, 8),
        "contrast": (is_bool, "a bool"),
        "label_edges": one_of(*LABEL_EDGES),
        "fit_intercept": (is_bool, "a bool"),
    }

    # -- what is the same in all data ----------------------------------------------------------------------------------

    def _learn_shape(self, given: Graphs) -> None:
        """Classes, numbers of features, edges between labels: what must be the same in all that comes later."""
        assert given.labels is not None
        classes = given.labels.learn(given.place)
        if given.kind == MULTILABEL:
            strange = [label for label in classes.tolist() if label not in (0, 1)]
            if strange:
                raise ValueError(f"y must be a matrix of 0 and 1. Got {strange[0]!r} in it.")
            classes = np.array([0, 1])
        if len(classes) < 2:
            raise ValueError(f"{self._who} needs at least two labels; y has one only: {classes.tolist()[0]!r}.")
        self.kind_, self.classes_ = given.kind, classes
        self.n_features_in_, self.n_edge_features_ = given.n_features, given.n_edge_features
        self.n_labels_ = given.shapes[0][0] if given.kind == MULTILABEL else 0
        self.label_edges_ = self._choose_edges(given)
        self.contrast_scale_ = 1.0
        if self.contrast and given.kind != MULTILABEL:
            squares = [distances(x, e) for x, e in zip(given.nodes, given.edges, strict=True)]
            mean = float(np.concatenate(squares).mean()) if sum(map(len, squares)) else 0.0
            self.contrast_scale_ = mean or 1.0

    def _choose_edges(self, given: Graphs) -> np.ndarray:
        n = self.n_labels_
        if self.label_edges == "full":
            return np.stack(np.triu_indices(n, 1), axis=1)
        if self.label_edges == "tree" and n > 1:
            return chow_liu(self._codes(given).reshape(-1, n))
        return np.zeros((0, 2), np.int64)

    # -- packing ------------------------------------------------------------------------------------------------------

    def _read_known(self, X: Any, y: Any = None) -> Graphs:
        self._require_fitted()
        return self._read_like(X, y)

    def _read_like(self, X: Any, y: Any = None) -> Graphs:
        """Read what must be of the kind that the model knows."""
        given = read_data(X, y, self.neighbours, self.unknown, self.n_labels_ or None)
        if given.kind != self.kind_ and len(given):
            raise ValueError(f"This {self._who} was trained on {self.kind_}. Got {given.kind}.")
        if sum(x.shape[0] for x in given.nodes) and given.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {given.n_features} features of nodes, but {self._who} is expecting {self.n_features_in_} features."
            )
        if sum(map(len, given.edges)) and given.n_edge_features != self.n_edge_features_:
            raise ValueError(
                f"X has {given.n_edge_features} features of edges, but {self._who} is expecting {self.n_edge_features_}."
            )
        return given

    def _codes(self, given: Graphs) -> np.ndarray:
        """Numbers of all labels, -1 for unknown."""
        assert given.labels is not None
        number = numbering(self.classes_)
        for k, label in enumerate(given.labels.distinct):
            if label is not None and label not in number and (given.labels.codes == k).any():
                place = given.place(given.labels.where(k))
                raise ValueError(f"{place}: the label {label!r} is not one of {shown(self.classes_)}.")
        table = [-1 if label is None else number.get(label, -1) for label in given.labels.distinct]
        return np.array(table or [-1], np.int32)[given.labels.codes]

    def _node_rows(self, x: Any) -> Any:
        """Features of nodes as the model sees them."""
        if self.fit_intercept:
            if is_sparse(x):
                import scipy.sparse

                x = scipy.sparse.hstack([x, np.ones((x.shape[0], 1))]).tocsr()
            else:
                x = np.concatenate([x, np.ones((len(x), 1))], axis=1)
        return in_blocks(x, self.n_labels_) if self.kind_ == MULTILABEL else x

    def _edge_rows(self, x: Any, edges: np.ndarray, features: np.ndarray | None) -> np.ndarray:
        """Features of edges as the model sees them; see `edge_names_`."""
        if self.kind_ == MULTILABEL:
            return np.eye(len(self.label_edges_))
        if not len(edges):
            return np.zeros((0, 0))
        parts = [] if features is None else [features]
        if self.kind_ != PICTURES and (self.fit_intercept or not self.n_edge_features_):
            parts.append(np.ones((len(edges), 1)))
        if self.contrast:
            parts.append(np.exp(-0.5 * distances(x, edges) / self.contrast_scale_)[:, None])
        return np.concatenate(parts, axis=1)

    @property
    def edge_names_(self) -> list[str]:
        """What the features of edges are called."""
        self._require_fitted("edge_names_")
        if self.kind_ == MULTILABEL:
            return [f"{a} - {b}" for a, b in self.label_edges_.tolist()]
        names = list(DIRECTIONS[: self.n_edge_features_])
        if self.kind_ != PICTURES:
            names = [f"feature {k}" for k in range(self.n_edge_features_)]
            names += ["edge"] if self.fit_intercept or not names else []
        return names + (["contrast"] if self.contrast else [])

    def _blocks(self) -> dict[str, WeightBlock]:
        """Where the weights of nodes and edges are."""
        n = len(self.classes_)
        d = (self.n_features_in_ + bool(self.fit_intercept)) * max(self.n_labels_, 1)
        if self.kind_ == MULTILABEL:
            e = len(self.label_edges_)
        else:
            constant = self.kind_ != PICTURES and (self.fit_intercept or not self.n_edge_features_)
            e = self.n_edge_features_ + constant + bool(self.contrast)
        size = {"full": n * n, "symmetric": n * (n + 1) // 2, "potts": 1}[self.pairwise]
        return {NODE: WeightBlock(0, d, n)} | ({EDGE: WeightBlock(d * n, e, size)} if e else {})

    def _arranged(self, given: Graphs) -> list[Arrangement]:
        """What of each graph does not depend on its features."""
        k = len(self.classes_)
        if self.kind_ == MULTILABEL:
            return [arrange_pairs(self.n_labels_, self.label_edges_, k)] * len(given)
        if self.kind_ == PICTURES:
            sizes = {shape: arrange_picture(*shape, self.neighbours, k) for shape in set(given.shapes)}
            return [sizes[shape] for shape in given.shapes]
        return [arrange_pairs(shape[0], edges, k) for shape, edges in zip(given.shapes, given.edges, strict=True)]

    def _forbidden(self) -> np.ndarray | None:
        """The pairs of labels that `constraints` forbid, bool (classes, classes), from the first node of an edge on."""
        if self.constraints is None:
            return None
        table, number = np.zeros((len(self.classes_),) * 2, bool), numbering(self.classes_)
        if isinstance(self.constraints, str) or not hasattr(self.constraints, "__iter__"):
            raise ValueError(f"The 'constraints' parameter of {self._who} must be a list of pairs. Got {self.constraints!r}.")
        for pair in self.constraints:
            if not (isinstance(pair, tuple | list) and len(pair) == 2):
                raise ValueError(f"The 'constraints' parameter of {self._who} must hold pairs of labels. Got {pair!r} in it.")
            for label in pair:
                if label not in number:
                    raise ValueError(
                        f"The 'constraints' parameter of {self._who} names {label!r}, which is not one of the labels "
                        f"{shown(self.classes_)}."
                    )
            table[number[pair[0]], number[pair[1]]] = True
        return table if self.pairwise == "full" else table | table.T

    def _check_truth(self, given: Graphs, truth: np.ndarray, forbidden: np.ndarray) -> None:
        """Raise, naming the nodes, if the labels of an edge are forbidden."""
        for start, one in zip(given.starts[:-1].tolist(), self._edges_of(given), strict=True):
            a, b = truth[start + one[:, 0]], truth[start + one[:, 1]]
            wrong = (a >= 0) & (b >= 0) & forbidden[a, b]
            if wrong.any():
                k = int(np.argmax(wrong))
                first, second = (given.place(int(start + node)) for node in one[k])
                labels = self.classes_.tolist()
                raise ValueError(
                    f"{first} has the label {labels[a[k]]!r} and {second} the label {labels[b[k]]!r}, and they are joined: the "
                    "constraints forbid that. Correct the labels or the 'constraints' parameter."
                )

    def _edges_of(self, given: Graphs) -> list[np.ndarray]:
        return [self.label_edges_] * len(given) if self.kind_ == MULTILABEL else given.edges

    def _problem(self, given: Graphs, truth: np.ndarray | None = None, known: np.ndarray | None = None) -> GraphProblem:
        """Packed graphs; with the numbers of their labels if they are to be learnt, or of those that are `known`."""
        forbidden = self._forbidden()
        if forbidden is not None and truth is not None:
            self._check_truth(given, truth, forbidden)
        rows = (
            (self._node_rows(x), self._edge_rows(x, edges, features))
            for x, edges, features in zip(given.nodes, given.edges, given.edge_features, strict=True)
        )
        costs = None
        if truth is not None and self.class_weight is not None:
            of_class = class_weights(self.class_weight, self.classes_, truth[truth >= 0], None, self._who)
            costs = of_class[np.maximum(truth, 0)]
        search = {**(self.search or {}), "exact": self.inference == "exact"}
        tie = None if self.pairwise == "full" else self.pairwise
        n = len(self.classes_)
        return pairwise_problem(self._arranged(given), rows, self._blocks(), n, tie, truth, costs, search, forbidden, known)

    # -- what it has learnt -------------------------------------------------------------------------------------------

    @property
    def coef_(self) -> np.ndarray:
        """Weights of nodes (features, classes), the constant left out; of a multilabel problem (labels, features, classes)."""
        return self._node_weights()[..., : self.n_features_in_, :]

    @property
    def intercept_(self) -> np.ndarray:
        """Those of the constant: (classes,), or (labels, classes)."""
        weights = self._node_weights()
        return weights[..., -1, :] if self.fit_intercept else np.zeros_like(weights[..., 0, :])

    def _node_weights(self) -> np.ndarray:
        w, block = self._require_fitted("coef_"), self._blocks()[NODE]
        table = w[: block.n_weights].reshape(max(self.n_labels_, 1), -1, block.size)
        return table if self.kind_ == MULTILABEL else table[0]

    @property
    def pairwise_(self) -> np.ndarray:
        """Tables (edge features, classes, classes), from the first node of an edge to the second; see `edge_names_`."""
        w, n = self._require_fitted("pairwise_"), len(self.classes_)
        block = self._blocks().get(EDGE)
        if block is None:
            return np.zeros((0, n, n), w.dtype)
        table = w[block.start : block.start + block.n_weights].reshape(block.n_features, block.size)
        if self.pairwise == "potts":
            return table[:, :, None] * np.eye(n, dtype=w.dtype)
        if self.pairwise == "symmetric":
            low, high = np.minimum.outer(range(n), range(n)), np.maximum.outer(range(n), range(n))
            return table[:, high * (high + 1) // 2 + low]
        return table.reshape(-1, n, n)

    # -- the model file -----------------------------------------------------------------------------------------------

    def _to_file(self):
        header = {
            "labels": self.classes_,
            "n_features": int(self.n_features_in_),
            "n_edge_features": int(self.n_edge_features_),
            "n_labels": int(self.n_labels_),
            "kind": self.kind_,
            "contrast_scale": float(self.contrast_scale_),
            "label_edges": [[int(a), int(b)] for a, b in self.label_edges_],
        }
        return header, {}

    def _from_file(self, header, tensors, need):
        self.classes_, self.kind_ = labels_in(header), need(header, "kind", str)
        self.n_features_in_, self.n_edge_features_ = count_in(header), count_in(header, "n_edge_features")
        self.n_labels_, self.contrast_scale_ = count_in(header, "n_labels"), need(header, "contrast_scale", float)
        edges = np.array(need(header, "label_edges", list), np.int64).reshape(-1, 2)
        multilabel = self.kind_ == MULTILABEL
        if self.kind_ not in (GRAPHS, PICTURES, MULTILABEL):
            raise ValueError(f"the kind {self.kind_!r} is not known")
        if multilabel != (self.n_labels_ > 0) or (edges.size and not 0 <= edges.min() <= edges.max() < self.n_labels_):
            raise ValueError("the edges between labels are not between labels")
        if len(self.classes_) < 2 or (edges[:, 0] == edges[:, 1]).any() or not self.contrast_scale_ > 0.0:
            raise ValueError("there are fewer than two labels, or a label is joined with itself")
        self.label_edges_ = edges
        return sum(block.n_weights for block in self._blocks().values())


def distances(x: Any, edges: np.ndarray) -> np.ndarray:
    """Squared distances between the features of the nodes of each edge."""
    difference = x[edges[:, 0]] - x[edges[:, 1]]
    squares = difference.multiply(difference) if is_sparse(difference) else difference * difference
    return np.asarray(squares.sum(axis=1)).reshape(-1)
