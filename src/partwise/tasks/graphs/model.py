"""What `GraphLabeler` knows of its graphs: classes, features and edges; packing, the weights by name, and the model file."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from partwise.features.given_labels import numbering
from partwise.features.rows import is_sparse
from partwise.structures.factor_graph.packing import Arrangement
from partwise.structures.factor_graph.pairwise import (
    NODE,
    PairWeights,
    arrange_pairs,
    limits,
    make_supermodular,
    pair_weights,
    pairwise_problem,
)
from partwise.structures.factor_graph.problem import OPTIONS, GraphProblem, make_search
from partwise.tasks.common.base import Structured
from partwise.tasks.common.checks import is_bool, is_count, one_of
from partwise.tasks.common.hidden_states import HiddenStates
from partwise.tasks.common.label_arrays import class_weights, shown
from partwise.tasks.common.model_file import count_in, labels_in
from partwise.tasks.graphs.data import DIRECTIONS, GRAPHS, MULTILABEL, PICTURES, Graphs, chow_liu, grid, in_blocks, read_data

PAIRWISE = ("full", "symmetric", "antisymmetric", "potts")
LABEL_EDGES = ("tree", "full", "none")


def _is_pairwise(value: Any) -> bool:
    values = value.values() if isinstance(value, Mapping) else [value]
    return all(isinstance(one, str) and one in PAIRWISE for one in values)


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
def arrange_picture(height: int, width: int, neighbours: int, n_states: int) -> Arrangement:
    """All pictures of one size are arranged alike, once."""
    return arrange_pairs(height * width, grid(height, width, neighbours)[0], n_states)


class GraphModel(HiddenStates, Structured):
    """Everything but training and answering."""

    pairwise: Any
    submodular: bool
    hidden: int
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
    node_types_: dict[Any, tuple[Any, ...]]  #: the labels of each type of nodes; empty: nodes have no types

    _checks = {
        **Structured._checks,
        "pairwise": (_is_pairwise, f"one of {', '.join(map(repr, PAIRWISE))}, or a dict of these by names of edge features"),
        "submodular": (is_bool, "a bool"),
        "hidden": (is_count(1), "an int in the range [1, inf)"),
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
        self.node_types_ = self._labels_of_types(given)
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

    # -- types of nodes -----------------------------------------------------------------------------------------------

    def _labels_of_types(self, given: Graphs) -> dict[Any, tuple[Any, ...]]:
        """The labels of each type: those that its nodes have."""
        if given.types is None:
            return {}
        seen: dict[Any, set[int]] = {}
        for name, code in zip(given.types, self._codes(given).tolist(), strict=True):
            seen.setdefault(name, set())
            if code >= 0:
                seen[name].add(code)
        for name, codes in seen.items():
            if not codes:
                raise ValueError(f"No node of type {name!r} has a label, so its labels are not known.")
        labels = self.classes_.tolist()
        return {name: tuple(labels[code] for code in sorted(codes)) for name, codes in seen.items()}

    def _of_types(self, given: Graphs) -> np.ndarray | None:
        """Which labels nodes may have, bool (nodes, classes); None: all."""
        if not self.node_types_:
            return None
        if given.types is None and given.starts[-1]:
            raise ValueError(f"This {self._who} was trained on nodes with types: give them as the fourth of a graph's parts.")
        number, labels = {name: k for k, name in enumerate(self.node_types_)}, numbering(self.classes_)
        table = np.zeros((len(number), len(self.classes_)), bool)
        for k, own in enumerate(self.node_types_.values()):
            table[k, [labels[label] for label in own]] = True
        for node, name in enumerate(given.types or ()):
            if name not in number:
                raise ValueError(f"{given.place(node)}: its type is {name!r}; this model knows {', '.join(map(repr, number))}.")
        return table[[number[name] for name in given.types or ()]]

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
            of = "" if self.kind_ == MULTILABEL else " of nodes"
            raise ValueError(
                f"X has {given.n_features} features{of}, but {self._who} is expecting {self.n_features_in_} features as input."
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
        return self._edge_names()

    def _edge_names(self) -> list[str]:
        if self.kind_ == MULTILABEL:
            return [f"{a} - {b}" for a, b in self.label_edges_.tolist()]
        names = list(DIRECTIONS[: self.n_edge_features_])
        if self.kind_ != PICTURES:
            names = [f"feature {k}" for k in range(self.n_edge_features_)]
            names += ["edge"] if self.fit_intercept or not names else []
        return names + (["contrast"] if self.contrast else [])

    def _weights_at(self) -> PairWeights:
        """Where the weights of nodes and edges are, and how those of edges are tied."""
        names = self._edge_names()
        if isinstance(self.pairwise, Mapping):
            if unknown := [name for name in self.pairwise if name not in names]:
                raise ValueError(
                    f"The 'pairwise' parameter of {self._who} names {unknown[0]!r}; the features of edges are {', '.join(names)}."
                )
            kinds = [self.pairwise.get(name, "full") for name in names]
        else:
            kinds = [self.pairwise] * len(names)
        d = (self.n_features_in_ + bool(self.fit_intercept)) * max(self.n_labels_, 1)
        return pair_weights(d, self._states.n, [None if kind == "full" else kind for kind in kinds])

    @property
    def _has_direction(self) -> bool:
        """Whether a pair of labels is another pair in the other order, for some feature of edges."""
        kinds = self.pairwise.values() if isinstance(self.pairwise, Mapping) else [self.pairwise]
        every = not isinstance(self.pairwise, Mapping) or set(self.pairwise) >= set(self._edge_names())
        return not every or any(kind in ("full", "antisymmetric") for kind in kinds)

    def _arranged(self, given: Graphs) -> list[Arrangement]:
        """What of each graph does not depend on its features."""
        k = self._states.n
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
        return table if self._has_direction else table | table.T

    def _check_types(self, given: Graphs, truth: np.ndarray, allowed: np.ndarray) -> None:
        """Raise, naming the node, if a label is not one of the node's type."""
        known = np.flatnonzero(truth >= 0)
        wrong = known[~allowed[known, truth[known]]]
        if len(wrong):
            node, types = int(wrong[0]), given.types or []
            raise ValueError(
                f"{given.place(node)}: the label {self.classes_.tolist()[truth[node]]!r} is not one of those of type "
                f"{types[node]!r}: {shown(np.array(self.node_types_[types[node]], object))}."
            )

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

    def _problem(
        self, given: Graphs, truth: np.ndarray | None = None, known: np.ndarray | None = None, limited: bool = False
    ) -> GraphProblem:
        """Packed graphs; with the numbers of their labels if they are to be learnt, or of those that are `known`.

        `limited`: with `submodular` as examples of their own, behind the graphs.
        """
        forbidden, allowed, states = self._forbidden(), self._of_types(given), self._states
        if forbidden is not None and truth is not None:
            self._check_truth(given, truth, forbidden)
        if allowed is not None and truth is not None:
            self._check_types(given, truth, allowed)
        if known is not None:
            of_known = (known[:, None] < 0) | (known[:, None] == np.arange(len(self.classes_)))
            allowed = of_known if allowed is None else allowed & of_known
        rows = (
            (self._node_rows(x), self._edge_rows(x, edges, features))
            for x, edges, features in zip(given.nodes, given.edges, given.edge_features, strict=True)
        )
        costs = None
        if truth is not None and self.class_weight is not None:
            of_class = class_weights(self.class_weight, self.classes_, truth[truth >= 0], None, self._who)
            costs = of_class[np.maximum(truth, 0)]
        search = {**(self.search or {}), "exact": self.inference == "exact"}
        pairs = None if forbidden is None else states.sets(states.sets(forbidden).T).T
        own = None if allowed is None else states.sets(allowed)
        weights = self._weights_at()
        extra = limits(weights) if limited else ()
        return pairwise_problem(self._arranged(given), rows, weights, truth, costs, search, pairs, own, self.hidden, extra)

    # -- submodular models --------------------------------------------------------------------------------------------

    def _check_submodular(self, given: Graphs) -> None:
        """Raise where features of edges, or ties, leave nothing for constraints on weights to say."""
        if self.hidden > 1:
            raise ValueError("submodular=True is about labels in their order, and hidden states have none: set hidden=1.")
        weights = self._weights_at()
        for feature, name in enumerate(self._edge_names()):
            if len(self.classes_) > 2 and weights.entries(feature).max() == 0:
                raise ValueError(
                    f"submodular=True: with more than two labels no weight but zero of pairwise='potts' ({name!r}) is "
                    "submodular. Take 'symmetric' or 'full'."
                )
        for i, features in enumerate(given.edge_features):
            if features is not None and features.size and features.min() < 0.0:
                e, k = (int(at) for at in np.unravel_index(int(np.argmin(features)), features.shape))
                raise ValueError(
                    f"graph {i}, edge {e}, feature {k}: submodular=True needs features of edges that are not negative. Got "
                    f"{features[e, k]}."
                )

    def _make_submodular(self) -> None:
        make_supermodular(self._weights_at(), self.weights_)

    # -- what it has learnt -------------------------------------------------------------------------------------------

    @property
    def coef_(self) -> np.ndarray:
        """Weights of nodes (features, states), the constant left out; of a multilabel problem (labels, features, states)."""
        return self._node_weights()[..., : self.n_features_in_, :]

    @property
    def intercept_(self) -> np.ndarray:
        """Those of the constant: (states,), or (labels, states)."""
        weights = self._node_weights()
        return weights[..., -1, :] if self.fit_intercept else np.zeros_like(weights[..., 0, :])

    def _node_weights(self) -> np.ndarray:
        w, block = self._require_fitted("coef_"), self._weights_at().blocks[NODE]
        table = w[: block.n_weights].reshape(max(self.n_labels_, 1), -1, block.size)
        return table if self.kind_ == MULTILABEL else table[0]

    @property
    def pairwise_(self) -> np.ndarray:
        """Tables (edge features, states, states), from the first node of an edge to the second; see `edge_names_`."""
        w, weights = self._require_fitted("pairwise_"), self._weights_at()
        n, e = weights.n_states, len(weights.start)
        return np.stack([weights.table(w, k) for k in range(e)]) if e else np.zeros((0, n, n), w.dtype)

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
        if self.node_types_:
            number = numbering(self.classes_)
            header["node_types"] = [[name, [number[label] for label in own]] for name, own in self.node_types_.items()]
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
        most = max(self.n_edge_features_, len(self.classes_) * self.hidden)
        if most > self._kept_weights.size:  # of each there is one at least; names and tables are made for all
            raise ValueError(f"there are {self._kept_weights.size} weights, and {most} features of edges, or states")
        self.label_edges_ = edges
        self.node_types_ = types_in(header, self.classes_)
        return self._weights_at().n_weights


def types_in(header: dict[str, Any], classes: np.ndarray) -> dict[Any, tuple[Any, ...]]:
    """Types of nodes and their labels, as a model file has them."""
    found: dict[Any, tuple[Any, ...]] = {}
    given, labels = header.get("node_types", []), classes.tolist()
    rows: list[Any] = given if isinstance(given, list) else [None]
    for row in rows:
        fine = isinstance(row, list) and len(row) == 2 and isinstance(row[0], str | int | float) and isinstance(row[1], list)
        if not fine or not all(type(k) is int and 0 <= k < len(labels) for k in row[1]) or not row[1] or row[0] in found:
            raise ValueError("the types of nodes are not a list of names, each with labels of its own")
        found[row[0]] = tuple(labels[k] for k in row[1])
    return found


def distances(x: Any, edges: np.ndarray) -> np.ndarray:
    """Squared distances between the features of the nodes of each edge."""
    difference = x[edges[:, 0]] - x[edges[:, 1]]
    squares = difference.multiply(difference) if is_sparse(difference) else difference * difference
    return np.asarray(squares.sum(axis=1)).reshape(-1)
