"""Results of many cells in one file."""

import json

import pytest

from partwise.experiments.experiment import Result, complete
from partwise.experiments.stored import finite, match, read_results, rounded, write_results
from toy_experiment import Cell

CELLS = [Cell(loss, seed) for seed in range(2) for loss in ("hinge", "ramp")]


def test_groups_count_when_they_are_complete():
    results = [Result(cell, {"f1": 1.0}, 0.0) for cell in CELLS[:3]]
    assert [r.cell for r in complete(CELLS, results, ("seed",))] == CELLS[:2]
    assert [r.cell for r in complete(CELLS, results, ("loss",))] == [CELLS[0], CELLS[2]]
    assert complete(CELLS, results, ()) == [] and len(complete(CELLS, results, ("loss", "seed"))) == 3


def test_written_and_read_again(tmp_path):
    path, stamp = tmp_path / "r.json", [["version", 1]]
    results = [Result(cell, {"f1": 1 / 3, "curve": [1.0, float("nan")], "n": 12345678}, 1 / 3) for cell in CELLS[:2]]
    write_results(path, {"a": 1}, stamp, {}, results, digits=3)
    assert read_results(path, CELLS, [["version", 2]]) == []
    found = read_results(path, CELLS, stamp)
    assert found == [Result(cell, {"f1": 0.333, "curve": [1.0, None], "n": 12345678}, 0.33) for cell in CELLS[:2]]
    assert (
        len(path.read_text().splitlines())
        == len(json.dumps({"summary": {"a": 1}, "stamp": stamp, "versions": {}}, indent=1).splitlines()) + 4
    )
    assert match(CELLS[1:], json.loads(path.read_text())["cells"])[0].cell == CELLS[1]


def test_a_file_of_something_else(tmp_path):
    (tmp_path / "r.json").write_text("[]")
    with pytest.raises(ValueError, match="no results of an experiment"):
        read_results(tmp_path / "r.json", CELLS, [])


def test_numbers():
    assert finite({1: (float("inf"), 2)}) == {"1": [None, 2]}
    assert rounded([0.00012345, 2, None, "x"], 2) == [0.00012, 2, None, "x"] and rounded(1 / 3, None) == 1 / 3
