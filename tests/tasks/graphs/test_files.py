"""Graphs and pictures in files: what is read back is what was written, and errors say where they are."""

from __future__ import annotations

import numpy as np
import pytest

from graph_cases import paths
from partwise import GraphLabeler, interpret
from partwise.datasets import make_pictures, read_graphs, write_graphs


def test_reading_and_writing(tmp_path):
    X, y = paths(2, edge_features=True)
    write_graphs(tmp_path / "some.jsonl", X, y)
    data = read_graphs(tmp_path / "some.jsonl")
    assert len(data) == 2 and data.n_nodes == sum(map(len, y)) and data.labels[0] == y[0].tolist() and "2 graphs" in repr(data)
    for (nodes, edges, features), graph in zip(X, data.graphs, strict=True):
        assert np.array_equal(graph.nodes, nodes) and np.array_equal(graph.edges, edges)
        assert np.array_equal(graph.edge_features, features)
    with interpret():
        assert GraphLabeler(max_epochs=2, random_state=0).fit(data).score(data) > 0.5
    images, labels = make_pictures(2, size=(3, 4))
    np.savez(tmp_path / "some.npz", images=images, labels=labels)
    pictures = read_graphs(tmp_path / "some.npz")
    assert (
        pictures.is_pictures and np.array_equal(pictures.graphs[1], images[1]) and np.array_equal(pictures.labels[1], labels[1])
    )
    write_graphs(tmp_path / "pictures.jsonl", list(images), list(labels))
    again = read_graphs(tmp_path / "pictures.jsonl", first=1)
    assert np.array_equal(again.graphs[0], images[0]) and again.labels[0] == labels[0].tolist() and again.n_nodes == 12
    grey = read_graphs(b'{"image": [[1, 2], [3, 4]], "labels": [["x", null], ["y", "y"]]}\n\n')
    assert grey.graphs[0].shape == (2, 2, 1) and grey.place(0).endswith("line 1")
    broken = read_graphs('{"nodes": [[1]], "edges": [], "labels": ["a\u2028b"]}\n'.encode())  # a line break of another kind
    assert broken.labels == [["a\u2028b"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "there are no graphs"),
        (b"{\n", "line 1: not JSON"),
        (b'{"nodes": [[1]], "edges": []}\n\xff\n', "line 2: not valid utf-8 text"),
        (b'\n{"nodes": [[1]]}\n', "line 2: expected an object with 'nodes' and 'edges'"),
        (b'{"nodes": [[1], [1, 2]], "edges": []}\n', "line 1: 'nodes' must be numbers, as many in each row"),
        (b'{"nodes": [[1], [2]], "edges": [[0, 1, 1]]}\n', "line 1: 'nodes' must be lists of features, 'edges' pairs"),
        (b'{"nodes": [[1]], "edges": [], "labels": 3}\n', "'labels' must be a list"),
        (b'{"nodes": [[1]], "edges": []}\n{"image": [[1]]}\n', "line 2: graphs and pictures are mixed"),
        (b'{"image": [1]}\n', "line 1: 'image' must be rows of pixels"),
        (b'{"image": [[1, 2]], "labels": [[1]]}\n', "line 1: 'labels' must have 1 rows of 2"),
        (b"PK\x03\x04 nonsense", "not an .npz file"),
    ],
)
def test_files_with_errors(text, message):
    with pytest.raises(ValueError, match=message):
        read_graphs(text)


def test_arrays_with_errors(tmp_path):
    np.savez(tmp_path / "a.npz", pictures=np.zeros(3))
    with pytest.raises(ValueError, match="expected an array 'images'"):
        read_graphs(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", images=np.zeros((1, 2, 2)), labels=np.zeros((1, 2, 3)))
    with pytest.raises(ValueError, match=r"'labels' must have shape \(1, 2, 2\)"):
        read_graphs(tmp_path / "b.npz")
