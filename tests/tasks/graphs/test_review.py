"""Suspects of graphs in a file: listed, shown, corrected."""

from __future__ import annotations

import numpy as np
import pytest

from judged_cases import Asked, accepted, made_up
from partwise import GraphLabeler
from partwise.files.text_edits import EditableText
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.suspects import Judged
from partwise.tasks.graphs.command import COMMAND
from partwise.tasks.graphs.files import read_graphs
from partwise.tasks.graphs.review import JudgedGraphs, label_spans

GRAPHS = """{"labels": ["é", "a" , null], "nodes": [[1], [2], [3]], "edges": [[0, 1]]}

{"nodes": [[1]], "edges": [], "note": "labels: [\\"b\\"]", "labels": ["b"]}
"""
PICTURE = '{"image": [[1, 2], [3, 4]], "labels": [[0, 1], [1, 0]]}\n'


def judged(path, classes, believed):
    """The file and a judgement of its labels: others, by number, are believed."""
    data = read_graphs(path)
    flat = [[x for row in y for x in (row if isinstance(row, list) else [row])] for y in data.labels]
    codes = [[classes.index(x) if x in classes else believed[i][t] for t, x in enumerate(y)] for i, y in enumerate(flat)]
    found = made_up(codes, believed)
    given = [x for y in flat for x in y]
    model = GraphLabeler()
    model.classes_ = np.array(classes, object)
    part = lambda t: (given[t], classes[found.evidence.believed[t]])  # noqa: E731
    return JudgedGraphs(model, data, Judged(found, lambda i: (data.labels[i], None), part))


def test_graphs_are_listed_and_corrected_in_place(tmp_path):
    path = tmp_path / "graphs.jsonl"
    path.write_text(GRAPHS)
    file = judged(path, ["a", "b", "é"], [[0, 0, 1], [0]])
    listing = file.listing(Asked(parts=True))
    assert [row.cells[1:] for row in listing.rows] == [
        (1, pytest.approx(0.95, abs=0.01), "graph 1: node 0", 0, "é", "a"),
        (3, pytest.approx(0.95, abs=0.01), "graph 2: node 0", 0, "b", "a"),
    ]
    review = listing.review(EditableText.read(str(path)), None)
    assert not review.whole and review.labels[:3] == ['"a"', '"b"', '"é"']
    after = accepted(COMMAND, review, "graph", path)
    assert after == GRAPHS.replace('["é"', '["a"').replace('"labels": ["b"]', '"labels": ["a"]')
    assert file.listing(Asked(), read_graphs(path)).truth["wrong"] == 0


def test_pictures_have_rows(tmp_path):
    path = tmp_path / "pictures.jsonl"
    path.write_text(PICTURE)
    file = judged(path, [0, 1], [[0, 1, 1, 1]])
    listing = file.listing(Asked())
    assert listing.rows[0].cells[3] == "picture 1: [1,1 0 > 1]"
    review = listing.review(EditableText.read(str(path)), None)
    assert review.passages[0].width == 2 and review.whole
    assert accepted(COMMAND, review, "graph", path) == PICTURE.replace("[1, 0]]", "[1, 1]]")


def test_what_is_no_label_is_refused():
    before, options = PICTURE.encode(), COMMAND.options()
    with pytest.raises(Refusal, match="more than labels"):
        COMMAND.check_repaired(before, before.replace(b"[3, 4]", b"[3, 5]"), options)
    with pytest.raises(Refusal, match="labels"):
        COMMAND.check_repaired(before, before.replace(b"[1, 0]]", b"[1]]"), options)


def test_where_labels_are():
    assert label_spans('{"labels": [ [1 ,"a]"], [] ], "x": {"labels": [3]}}') == [(14, 15), (17, 21)]
    assert label_spans('{"x": 1}') is None and label_spans('{"labels": []}') == []


def test_archives_cannot_be_corrected(tmp_path):
    np.savez(tmp_path / "pictures.npz", images=np.zeros((1, 2, 2)))
    with pytest.raises(ValueError, match="archive of arrays .* JSON lines"):
        EditableText.read(str(tmp_path / "pictures.npz"))
