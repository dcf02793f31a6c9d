"""Graphs and pictures in files: JSON lines, and numpy's .npz for pictures of one size.

**JSON lines**: one graph a line,

    {"nodes": [[0.3, 1], [0, 2.5]], "edges": [[0, 1]], "edge_features": [[0.7]], "labels": ["sky", null]}

``nodes``: features of each node; ``edges``: pairs of nodes, counted from 0; ``edge_features``, optional, features of each edge;
``types``, optional: a string or a number for each node; ``labels``, optional: strings or numbers, null where a label is not
known. A picture is a line with ``image`` (rows of pixels, a pixel being its features or one number) instead of nodes and edges;
its labels are rows too.

**.npz**: the arrays ``images`` (pictures, height, width, features), or (pictures, height, width) for grey ones, and ``labels``
(pictures, height, width), optional.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from partwise.files.text_source import open_bytes, read_bytes, to_text
from partwise.files.whole_file import whole_file


class Graph(NamedTuple):
    """Nodes with features, and edges between them.

    Examples
    --------
    >>> import numpy as np
    >>> graph = Graph(np.eye(3), np.array([[0, 1], [1, 2]]))
    >>> graph.nodes.shape, graph.edges.tolist()
    ((3, 3), [[0, 1], [1, 2]])
    """

    nodes: Any  #: (nodes, features), dense or sparse
    edges: Any  #: (edges, 2): numbers of nodes; an edge has a direction, which matters if you want it to
    edge_features: Any = None  #: (edges, features)
    types: Any = None  #: (nodes,) strings or numbers


@dataclass(frozen=True)
class GraphSet:
    r"""Graphs or pictures, and their labels.

    Examples
    --------
    >>> data = read_graphs(b'{"nodes": [[1.0], [0.0]], "edges": [[0, 1]], "labels": ["a", "b"]}\n')
    >>> len(data), data.labels[0]
    (1, ['a', 'b'])
    """

    graphs: list[Any]  #: `Graph`, or arrays (height, width, features)
    labels: list[Any]  #: of each, None where there are none
    lines: list[int]
    name: str

    def __len__(self) -> int:
        return len(self.graphs)

    def __repr__(self) -> str:
        return f"<GraphSet: {len(self)} graphs, {sum(y is not None for y in self.labels)} with labels, from {self.name}>"

    @property
    def is_pictures(self) -> bool:
        """Whether they are pictures."""
        return bool(self.graphs) and not isinstance(self.graphs[0], Graph)

    @property
    def n_nodes(self) -> int:
        """Of all together."""
        return sum(len(g.nodes) if isinstance(g, Graph) else g.shape[0] * g.shape[1] for g in self.graphs)

    @property
    def has_labels(self) -> bool:
        """Whether all of them have."""
        return all(y is not None for y in self.labels)

    def place(self, i: int) -> str:
        """Where a graph is, in words."""
        return f"{self.name}, line {self.lines[i]}" if self.lines else f"{self.name}, picture {i}"


def read_graphs(source: Any, encoding: str = "utf-8", first: int | None = None) -> GraphSet:
    r"""Read graphs; see the module for the formats.

    Parameters
    ----------
    source : path, ``"-"``, bytes or binary file
        JSON lines, gzipped or not, or .npz, which is known by its content.
    encoding : str
    first : int, optional
        Stop after so many.

    Raises
    ------
    ValueError
        Naming the file and the line.

    Examples
    --------
    >>> read_graphs(b'{"nodes": [[1.0], [0.0]], "edges": [[0, 1]]}\n').graphs[0].nodes.shape
    (2, 1)
    """
    with open_bytes(source) as (stream, name):
        data = read_bytes(stream, -1, name)
    if data[:4] == b"PK\x03\x04":
        return read_arrays(data, name, first)
    lines = to_text(data, encoding, name).split("\n")  # strings may hold other line breaks
    found = GraphSet([], [], [], name)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if first is not None and len(found) == first:
            break
        place = f"{name}, line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{place}: not JSON ({error}).") from None
        graph, labels = read_row(row, place)
        if found.graphs and isinstance(graph, Graph) != isinstance(found.graphs[0], Graph):
            raise ValueError(f"{place}: graphs and pictures are mixed.")
        found.graphs.append(graph)
        found.labels.append(labels)
        found.lines.append(number)
    if not found.graphs:
        raise ValueError(f"{name}: there are no graphs.")
    return found


def read_row(row: Any, place: str) -> tuple[Any, Any]:
    """One line."""
    if not isinstance(row, dict) or not ("image" in row or ("nodes" in row and "edges" in row)):
        raise ValueError(f"{place}: expected an object with 'nodes' and 'edges', or with 'image'.")
    labels = row.get("labels")
    if labels is not None and not isinstance(labels, list):
        raise ValueError(f"{place}: 'labels' must be a list.")
    if "image" in row:
        image = as_array(row["image"], "image", place)
        if image.ndim not in (2, 3):
            raise ValueError(f"{place}: 'image' must be rows of pixels, a pixel a list of features or a number.")
        if labels is not None:
            ragged = [len(labels), *(len(r) if isinstance(r, list) else -1 for r in labels)]
            if ragged != [image.shape[0], *[image.shape[1]] * image.shape[0]]:
                raise ValueError(f"{place}: 'labels' must have {image.shape[0]} rows of {image.shape[1]}, as the image has.")
        return image.reshape(*image.shape[:2], -1), labels
    nodes = as_array(row["nodes"], "nodes", place)
    nodes = nodes.reshape(0, 0) if not nodes.size else nodes
    edges = as_array(row["edges"], "edges", place).reshape(-1, 2) if not row["edges"] else as_array(row["edges"], "edges", place)
    features = row.get("edge_features")
    features = None if features is None else as_array(features, "edge_features", place)
    if nodes.ndim != 2 or edges.ndim != 2 or edges.shape[1] != 2 or (edges != np.floor(edges)).any():
        raise ValueError(f"{place}: 'nodes' must be lists of features, 'edges' pairs of numbers of nodes.")
    types = row.get("types")
    if types is not None and not (isinstance(types, list) and len(types) == len(nodes)):
        raise ValueError(f"{place}: 'types' must be a list, a string or a number for each node.")
    return Graph(nodes, edges.astype(np.int64), features, types), labels


def as_array(value: Any, key: str, place: str) -> np.ndarray:
    """Numbers."""
    try:
        return np.array(value, np.float64)
    except (ValueError, TypeError, OverflowError):  # of an integer that no float comes near
        raise ValueError(f"{place}: {key!r} must be numbers, as many in each row.") from None


def read_arrays(data: bytes, name: str, first: int | None) -> GraphSet:
    """Pictures in an .npz file."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {key: file[key] for key in ("images", "labels") if key in file.files}
            if not all(isinstance(array, np.ndarray) for array in arrays.values()):
                raise ValueError("what is in it are no arrays")
    except (ValueError, OSError, EOFError, RuntimeError, SyntaxError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{name}: not an .npz file of plain arrays ({error}).") from None
    images, labels = arrays.get("images"), arrays.get("labels")
    if images is None or images.ndim not in (3, 4) or images.dtype.kind not in "biuf":
        raise ValueError(f"{name}: expected an array 'images' of numbers, (pictures, height, width, features).")
    if labels is not None and labels.shape != images.shape[:3]:
        raise ValueError(f"{name}: 'labels' must have shape {images.shape[:3]}, as the images have. Got {labels.shape}.")
    images = images.reshape(*images.shape[:3], -1)[:first].astype(np.float64)
    known = [None] * len(images) if labels is None else list(labels[:first])
    return GraphSet(list(images), known, [], name)


def write_graphs(path: Any, graphs: list[Any], labels: list[Any] | None = None) -> None:
    """Write JSON lines; numbers as short as they can be read back.

    Parameters
    ----------
    path : path
    graphs : list of Graph or of arrays (height, width, features)
    labels : list, optional
        Of each.

    Examples
    --------
    >>> import numpy as np
    >>> write_graphs("two.jsonl", [Graph(np.eye(2), np.array([[0, 1]]))], [["a", "b"]])
    >>> [list(labels) for labels in read_graphs("two.jsonl").labels]
    [['a', 'b']]
    """
    rows = [as_row(g, None if labels is None else y) for g, y in zip(graphs, labels or [None] * len(graphs), strict=True)]
    with whole_file(path) as file:
        file.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())


def as_row(graph: Any, labels: Any = None) -> dict[str, Any]:
    """What one line says."""
    row: dict[str, Any]
    if isinstance(graph, np.ndarray):
        row = {"image": graph.tolist()}
    else:
        graph = Graph(*graph)
        row = {"nodes": np.asarray(graph.nodes).tolist(), "edges": np.asarray(graph.edges).tolist()}
        if graph.edge_features is not None:
            row["edge_features"] = np.asarray(graph.edge_features).tolist()
        if graph.types is not None:
            row["types"] = np.asarray(graph.types).tolist()
    if labels is not None:
        row["labels"] = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    return row
