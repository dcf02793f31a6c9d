"""What `GraphLabeler` is given: graphs, pictures or rows of a multilabel problem; all become nodes, edges and their features.

A picture is a graph whose nodes are its pixels, row by row, and whose edges join neighbours; each direction of edges has a
feature of its own. In a multilabel problem every example is a graph whose nodes are the labels, with the example's features in a
block of their own for each label, and whose edges have a feature each: they have weights of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from partwise.features.given_labels import GivenLabels, number_labels
from partwise.features.rows import as_csr, is_sparse
from partwise.tasks.graphs.files import GraphSet

GRAPHS, PICTURES, MULTILABEL = "graphs", "pictures", "multilabel"
DIRECTIONS = ("right", "down", "down right", "down left")


@dataclass(frozen=True)
class Graphs:
    """Graphs, as they were given but checked."""

    kind: str
    nodes: list[Any]  #: of each graph (nodes, features), dense or sparse; of a multilabel problem (1, features)
    edges: list[np.ndarray]  #: (edges, 2)
    edge_features: list[np.ndarray | None]  #: of pictures, the direction
    shapes: list[tuple[int, ...]]  #: of the labels
    labels: GivenLabels | None = None  #: of all nodes, end to end
    types: list[Any] | None = None  #: of all nodes, end to end; None: they have none

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def starts(self) -> np.ndarray:
        """First node of each graph."""
        return np.concatenate([[0], np.cumsum([int(np.prod(shape)) for shape in self.shapes])]).astype(np.int64)

    def place(self, node: int) -> str:
        """Where a node is, in words."""
        starts = self.starts
        i = int(np.searchsorted(starts, node, side="right")) - 1
        where = np.unravel_index(node - starts[i], self.shapes[i])
        if self.kind == PICTURES:
            return f"picture {i}, row {where[0]}, column {where[1]}"
        names = ("example", "label") if self.kind == MULTILABEL else ("graph", "node")
        return f"{names[0]} {i}, {names[1]} {where[0]}"

    def take(self, which: Sequence[int] | np.ndarray) -> Graphs:
        """The graphs numbered `which`."""
        starts, labels = self.starts, self.labels
        if labels is not None:
            codes = [labels.codes[starts[i] : starts[i + 1]] for i in which]
            labels = labels._replace(codes=np.concatenate(codes or [labels.codes[:0]]))
        types = None if self.types is None else [one for i in which for one in self.types[starts[i] : starts[i + 1]]]
        lists = {key: [getattr(self, key)[i] for i in which] for key in ("nodes", "edges", "edge_features", "shapes")}
        return replace(self, labels=labels, types=types, **lists)  # type: ignore[arg-type]

    @property
    def n_features(self) -> int:
        """Of a node."""
        return next((x.shape[1] for x in self.nodes if x.shape[0]), 0)

    @property
    def n_edge_features(self) -> int:
        """Of an edge, 0 where there are none."""
        return next((x.shape[1] for x in self.edge_features if x is not None and len(x)), 0)


def read_data(X: Any, y: Any, neighbours: int, unknown: Any, n_labels: int | None = None) -> Graphs:
    """Recognise what X is and check it.

    X : 2-D array (multilabel), list of 3-D arrays or 4-D array (pictures), list of tuples (graphs), or a `GraphSet`
    y : labels in the form of X, None for none
    n_labels : of a multilabel problem, where y does not tell
    """
    if isinstance(X, GraphSet):
        y = X.labels if y is None and X.has_labels else y
        X = X.graphs
    if hasattr(X, "__array__") and not isinstance(X, np.ndarray):
        X = np.asarray(X)
    if isinstance(X, np.ndarray) and X.ndim < 2 and X.dtype.kind in "biufc":
        raise ValueError(
            f"X must be a list of graphs, a list of pictures, or a 2-D array. Got a {X.ndim}-D array. Reshape your data: "
            "array.reshape(-1, 1) if it is one feature, array.reshape(1, -1) if it is one example."
        )
    if is_sparse(X) or (hasattr(X, "shape") and len(X.shape) == 2):
        given = read_examples(X, y, n_labels)
    elif isinstance(X, str | bytes) or not (hasattr(X, "__len__") and hasattr(X, "__getitem__")):
        raise TypeError(f"X must be a list of graphs, a list of pictures, or a 2-D array. Got {type(X).__name__} instead.")
    elif len(X) and isinstance(X[0], np.ndarray):
        given = read_pictures(X, neighbours)
    else:
        given = read_lists(X)
    return given if y is None else replace(given, labels=read_labels(y, given, unknown))


def finite(values: np.ndarray, place: str) -> np.ndarray:
    """The values, or an error that says where the first is that is no finite number: `place` with its indices filled in."""
    if not np.isfinite(values).all():
        where = tuple(int(k) for k in np.argwhere(~np.isfinite(values))[0])
        found = "NaN" if np.isnan(values[where]) else values[where]
        raise ValueError(f"{place.format(*where)}: features must be finite numbers. Got {found}.")
    return values


def as_rows(x: Any, what: str) -> Any:
    """A 2-D array of floats, or a sparse matrix."""
    if getattr(getattr(x, "dtype", None), "kind", "") == "c":
        raise ValueError(f"Complex data not supported: {what} has features of type {x.dtype}.")
    if is_sparse(x):
        x = as_csr(x).astype(np.float64)
        finite(x.data, what + ", non-zero {}")
        return x
    try:
        x = np.asarray(x, np.float64)
    except (ValueError, TypeError) as error:
        if isinstance(error, TypeError) and isinstance(x, np.ndarray):
            raise TypeError(f"{what}: features must be numbers ({error}).") from None
        raise ValueError(f"{what}: features must be numbers, as many in each row.") from None
    if x.ndim != 2 and x.size == 0:
        x = x.reshape(0, 0)
    if x.ndim != 2:
        raise ValueError(f"{what}: features must be a 2-D array, a row for each. Got shape {x.shape}.")
    return x


def read_lists(X: Sequence[Any]) -> Graphs:
    """Tuples (nodes, edges), (nodes, edges, edge features) or (nodes, edges, edge features, types of nodes)."""
    found, types = Graphs(GRAPHS, [], [], [], []), []
    for i, graph in enumerate(X):
        if not isinstance(graph, tuple | list) or len(graph) not in (2, 3, 4):
            size = f" of {len(graph)}" if hasattr(graph, "__len__") else ""
            raise TypeError(
                f"graph {i} must be a pair (node features, edges), a triple with edge features, or that with types of nodes; a "
                f"picture is an array (height, width, features). Got {type(graph).__name__}{size}."
            )
        nodes, edges = as_rows(graph[0], f"graph {i}"), np.asarray(graph[1])
        n = nodes.shape[0]
        if not is_sparse(nodes):
            finite(nodes, f"graph {i}, node {{}}, feature {{}}")
        edges = check_edges(edges, n, i)
        features = graph[2] if len(graph) > 2 else None
        types.append(check_types(graph[3], n, i) if len(graph) == 4 and graph[3] is not None else None)
        if features is not None:
            features = np.zeros((0, 0)) if not len(edges) and not np.size(features) else as_rows(features, f"graph {i}, edges")
            if features.shape[0] != len(edges):
                raise ValueError(f"graph {i} has {len(edges)} edges, but {features.shape[0]} rows of edge features.")
            finite(features, f"graph {i}, edge {{}}, feature {{}}")
        found.nodes.append(nodes)
        found.edges.append(edges)
        found.edge_features.append(features)
        found.shapes.append((n,))
    check_alike(found)
    without = [i for i, own in enumerate(types) if own is None and found.shapes[i][0]]
    if len(without) == sum(shape[0] > 0 for shape in found.shapes):
        return found
    if without:
        raise ValueError(f"graph {without[0]}: its nodes have no types, those of others have.")
    return replace(found, types=[one for own in types for one in own or ()])


def check_types(types: Any, n: int, i: int) -> list[Any]:
    """A name for each node."""
    found = types.tolist() if isinstance(types, np.ndarray) else list(types)
    if isinstance(types, str) or len(found) != n:
        raise ValueError(f"graph {i} has {n} nodes, but {len(found)} types of nodes.")
    for node, name in enumerate(found):
        if not isinstance(name, str | int | float) or name != name:
            raise ValueError(f"graph {i}, node {node}: a type is a string or a number. Got {name!r}.")
    return found


def check_edges(edges: np.ndarray, n: int, i: int) -> np.ndarray:
    """Pairs of nodes that there are."""
    if edges.size == 0:
        return np.zeros((0, 2), np.int64)
    if edges.ndim != 2 or edges.shape[1] != 2 or edges.dtype.kind not in "iu":
        raise ValueError(f"graph {i}: edges must be an integer array (edges, 2). Got shape {edges.shape}, {edges.dtype}.")
    bad = np.flatnonzero(((edges < 0) | (edges >= n)).any(axis=1))
    if len(bad):
        raise ValueError(
            f"graph {i}, edge {bad[0]}: nodes {edges[bad[0]].tolist()}, but the graph has {n} nodes, counted from 0."
        )
    loops = np.flatnonzero(edges[:, 0] == edges[:, 1])
    if len(loops):
        raise ValueError(f"graph {i}, edge {loops[0]}: it joins node {edges[loops[0], 0]} with itself.")
    return edges.astype(np.int64)


def check_alike(given: Graphs) -> None:
    """The same features in all graphs."""
    for i in range(len(given)):
        nodes, edges = given.nodes[i], given.edge_features[i]
        if nodes.shape[0] and nodes.shape[1] != given.n_features:
            raise ValueError(f"graph {i}: its nodes have {nodes.shape[1]} features, those of others {given.n_features}.")
        width = 0 if edges is None else edges.shape[1]
        if len(given.edges[i]) and width != given.n_edge_features:
            raise ValueError(f"graph {i}: its edges have {width} features, those of others {given.n_edge_features}.")


def read_pictures(X: Any, neighbours: int) -> Graphs:
    """Arrays (height, width, features)."""
    found = Graphs(PICTURES, [], [], [], [])
    for i, picture in enumerate(X):
        pixels = np.asarray(picture)
        if pixels.ndim != 3 or pixels.dtype.kind not in "biuf":
            raise ValueError(f"picture {i} must be an array of numbers (height, width, features). Got shape {pixels.shape}.")
        finite(pixels, f"picture {i}, row {{}}, column {{}}, feature {{}}")
        height, width, d = pixels.shape
        edges, directions = grid(height, width, neighbours)
        found.nodes.append(pixels.reshape(-1, d).astype(np.float64))
        found.edges.append(edges)
        found.edge_features.append(directions)
        found.shapes.append((height, width))
        if d != found.nodes[0].shape[1]:
            raise ValueError(f"picture {i}: its pixels have {d} features, those of others {found.nodes[0].shape[1]}.")
    return found


@functools.lru_cache(maxsize=4)
def grid(height: int, width: int, neighbours: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges between neighbours (edges, 2), from left to right and from above, and their direction, one of `DIRECTIONS`."""
    number = np.arange(height * width).reshape(height, width)
    pairs = [(number[:, :-1], number[:, 1:]), (number[:-1], number[1:])]
    if neighbours == 8:
        pairs += [(number[:-1, :-1], number[1:, 1:]), (number[:-1, 1:], number[1:, :-1])]
    edges = np.concatenate([np.stack([a.reshape(-1), b.reshape(-1)], axis=1) for a, b in pairs])
    directions = np.eye(len(pairs))[np.repeat(np.arange(len(pairs)), [a.size for a, _ in pairs])]
    edges.flags.writeable = directions.flags.writeable = False  # all pictures of that size share them
    return edges, directions


def read_examples(X: Any, y: Any, n_labels: int | None) -> Graphs:
    """Rows of features; labels are the columns of y."""
    X = as_rows(X, "X")
    for what, n in zip(("sample", "feature"), X.shape, strict=True):
        if n == 0 and (what == "feature" or y is not None):
            raise ValueError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required.")
    if not is_sparse(X):
        finite(X, "example {}, feature {}")
    if y is not None:
        shape = np.shape(y)
        if len(shape) != 2 or shape[0] != X.shape[0]:
            raise ValueError(
                f"X is a 2-D array of {X.shape[0]} examples, so y must be a matrix ({X.shape[0]}, labels) of 0 and 1. Got shape "
                f"{shape}. Graphs are given as a list of pairs (node features, edges)."
            )
        if n_labels is not None and shape[1] != n_labels:
            raise ValueError(f"y has {shape[1]} labels, but this model has {n_labels}.")
        n_labels = shape[1]
    n = X.shape[0]
    none = np.zeros((0, 2), np.int64)
    return Graphs(MULTILABEL, [X[i : i + 1] for i in range(n)], [none] * n, [None] * n, [(n_labels or 0,)] * n)


def read_labels(y: Any, given: Graphs, unknown: Any) -> GivenLabels:
    """The labels of all nodes, numbered; `unknown` becomes None."""
    if len(y) != len(given):
        raise ValueError(f"X has {len(given)} graphs, but y has labels of {len(y)}.")
    flat: list[Any] = []
    for i, (labels, shape) in enumerate(zip(y, given.shapes, strict=True)):
        if given.kind == PICTURES and not isinstance(labels, np.ndarray):
            rows = [list(row) for row in labels]
            if len(rows) != shape[0] or any(len(row) != shape[1] for row in rows):
                raise ValueError(f"picture {i} has shape {shape}, but its labels do not.")
            flat += [label for row in rows for label in row]
            continue
        found = np.shape(labels) if isinstance(labels, np.ndarray) else (len(labels),)
        if found != shape:
            what = "picture" if given.kind == PICTURES else "graph"
            raise ValueError(f"{what} {i}: expected labels of shape {shape}, one for each node. Got shape {found}.")
        flat += labels.reshape(-1).tolist() if isinstance(labels, np.ndarray) else list(labels)
    numbered = number_labels(flat, given.place)
    distinct = [None if unknown is not None and label == unknown else label for label in numbered.distinct]
    for k, label in enumerate(distinct):
        if isinstance(label, frozenset):
            raise ValueError(f"{given.place(numbered.where(k))}: a node has one label, or None. Got {set(label)!r}.")
    return numbered._replace(distinct=distinct)


# ---------------------------------------------------------------------------------------------------------------------
# Multilabel problems
# ---------------------------------------------------------------------------------------------------------------------


def chow_liu(codes: np.ndarray) -> np.ndarray:
    """Edges of the tree of highest total mutual information between the columns of a matrix of 0, 1 and -1 (unknown).

    The best tree-shaped approximation of their joint distribution. O(labels^2 examples).

    References
    ----------
    C. Chow, C. Liu (1968). Approximating discrete probability distributions with dependence trees. IEEE Trans. Inf. Theory 14.
    """
    on, off = (codes == 1).astype(np.float64), (codes == 0).astype(np.float64)
    joint = np.stack([np.stack([a.T @ b for b in (off, on)]) for a in (off, on)])  # [state, state, label, label]
    joint = (joint + 1e-9) / (joint + 1e-9).sum(axis=(0, 1))
    rows, columns = joint.sum(axis=1, keepdims=True), joint.sum(axis=0, keepdims=True)
    information = (joint * np.log(joint / (rows * columns))).sum(axis=(0, 1))
    n = codes.shape[1]
    edges, best, parent, inside = [], np.full(n, -np.inf), np.zeros(n, int), np.zeros(n, bool)  # Prim's algorithm
    node = 0
    for _ in range(n - 1):
        inside[node] = True
        better = information[node] > best
        best[better], parent[better] = information[node][better], node
        node = int(np.argmax(np.where(inside, -np.inf, best)))
        edges.append((min(parent[node], node), max(parent[node], node)))
    return np.array(sorted(edges), np.int64).reshape(-1, 2)


def in_blocks(x: Any, n: int) -> Any:
    """Row k of n has the one row of x in block k, and zeros elsewhere."""
    import scipy.sparse

    x = scipy.sparse.csr_matrix(x)
    d = x.shape[1]
    index = (x.indices[None, :] + d * np.arange(n)[:, None]).reshape(-1)
    return scipy.sparse.csr_matrix((np.tile(x.data, n), index, x.nnz * np.arange(n + 1)), (n, n * d))
