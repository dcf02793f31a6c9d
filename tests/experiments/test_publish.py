"""Results in the docs: the page says what the files give, some cells may be missing, nothing can be edited by hand."""

import json
import re
from pathlib import Path

import pytest

from partwise.experiments import EXPERIMENTS, get_experiment
from partwise.experiments.publish import BLOCK, DIGITS, PAGE, file_in, main, read_published, renewed
from partwise.experiments.runner import run_cells
from partwise.experiments.stored import finite, rounded, shown_results

DOCS = Path(__file__).parents[2] / "docs"
PUBLISHED = [name for name in EXPERIMENTS if file_in(DOCS, name, "full").exists()]


def test_the_page_is_what_the_files_give():
    text = (DOCS / PAGE).read_text(encoding="utf-8")
    assert renewed(text, DOCS) == text, "run python -m partwise.experiments.publish"
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("<!-- results:") == text.count("<!-- end of results -->") > 0
    for name in PUBLISHED:  # what is published is shown
        found = [what for _, of, setting, what, _ in blocks if (of, setting) == (name, "full")]
        assert "plot" in found and {str(k + 1) for k in range(len(read_published(DOCS, name, "full").tables()))} <= set(found)


def test_one_digit_edited_is_noticed():
    text = (DOCS / PAGE).read_text(encoding="utf-8")
    tables = [m for m in BLOCK.finditer(text) if re.search(r"\| *-?\d", m.group(0)) and m.group(4).isdigit()]
    assert tables
    for block in tables:
        at = block.start() + re.search(r"\| *[-+]?\d", block.group(0)).end() - 1
        edited = text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]
        assert renewed(edited, DOCS) == text != edited


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_published(name):
    path = file_in(DOCS, name, "full")
    stored, published = json.loads(path.read_text()), read_published(DOCS, name, "full")
    assert path.stat().st_size < 250_000 and len(stored["cells"]) == len(published.results) == stored["summary"]["cells"] > 0
    assert stored["summary"]["tables"] == rounded(finite([table.to_json() for table in published.tables()]), DIGITS)
    assert stored["summary"]["of"] == len(get_experiment(name).cells("full")) and stored["versions"][0]["numba"]
    if published.shown:
        assert file_in(DOCS, name, "full", "png").stat().st_size < 250_000
        assert f"results/{name}.png" in (DOCS / PAGE).read_text(encoding="utf-8")


# ---------------------------------------------------------------------------------------------------------------------
# On a page of its own
# ---------------------------------------------------------------------------------------------------------------------

MARKED = """# Page

<!-- results: toy quick 1 -->
<!-- end of results -->
in between
<!-- results: toy quick plot -->
old
<!-- end of results -->
<!-- results: all quick status -->
<!-- end of results -->
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A folder with data and docs for the toy experiment, three of its four cells run."""
    monkeypatch.setitem(EXPERIMENTS, "toy", "toy_experiment:Toy")
    (tmp_path / "data/toy").mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "data/toy/numbers.txt").write_text("90.123456789")
    (tmp_path / "docs" / PAGE).write_text(MARKED)
    run(tmp_path)
    next((tmp_path / "runs/toy/cells/quick").glob("loss=ramp,seed=1*")).unlink()
    return tmp_path


def run(folder, **more):
    return run_cells(get_experiment("toy"), "quick", folder / "data", folder / "runs/toy", **more)


def publish(folder, *more):
    given = ["toy", "--setting", "quick", "--runs", folder / "runs", "--docs", folder / "docs", *more]
    return main([str(value) for value in given])


def page(folder):
    return (folder / "docs" / PAGE).read_text()


def test_some_cells_are_missing_and_then_there(toy, capsys):
    assert publish(toy) == 0 and "3 of 4 cells" in capsys.readouterr().out
    text = page(toy)
    assert "| hinge | 90.12 | -          |" in text and "| ramp  | 91.12 | +1.00      |" in text  # of seed 0 alone
    assert "*3 of 4 cells are there; left out until theirs are: seed 1.*" in text and "| 3 of 4 " in text
    assert "\nin between\n" in text and "old" not in text and "(results/toy.quick.png)" in text
    stored = json.loads((toy / "docs/results/toy.quick.json").read_text())
    assert stored["summary"]["missing"] and stored["cells"][0]["numbers"] == {"f1": 90.12346, "none": None}
    assert stored["stamp"] == [["version", 1], ["toy/numbers.txt", 12]]

    run(toy)
    assert publish(toy) == 0 and "4 of 4 cells" in capsys.readouterr().out
    assert "cells are there" not in page(toy) and "| ramp  | 91.62 [" in page(toy)
    before = page(toy)
    assert publish(toy, "--check") == 0
    (toy / "docs" / PAGE).write_text(before.replace("91.62", "91.63"))
    assert publish(toy, "--check") == 1 and "91.63" in page(toy)
    publish(toy)
    assert page(toy) == before


def test_published_cells_stay_without_their_folder_and_go_with_their_version(toy, monkeypatch):
    publish(toy)
    text = page(toy)
    for path in (toy / "runs/toy/cells/quick").glob("*.json"):
        path.unlink()
    publish(toy)
    assert page(toy) == text
    log = toy / "data/toy/log.txt"
    log.unlink()
    messages = []
    results = run(toy, known=toy / "docs/results/toy.quick.json", report=messages.append)
    assert log.read_text().splitlines() == ["ramp 1"] and len(results) == 4  # the one that was missing
    assert "3 of 4 cells are in" in messages[0]
    monkeypatch.setattr(type(get_experiment("toy")), "version", 2)
    run(toy, known=toy / "docs/results/toy.quick.json")
    assert len(log.read_text().splitlines()) == 1 + 4
    assert "Not run yet in this version: 0 of 4 cells" in renewed(text, toy / "docs")


def test_cells_of_a_method_that_has_changed_are_forgotten_and_run_again(toy, capsys):
    run(toy)
    publish(toy)
    for path in (toy / "runs/toy/cells/quick").glob("*.json"):
        path.unlink()
    publish(toy, "--forget", "loss=ramp", "seed=1")
    assert "3 of 4 cells are there; left out until theirs are: seed 1" in page(toy)
    log = toy / "data/toy/log.txt"
    log.unlink()
    run(toy, known=toy / "docs/results/toy.quick.json")
    assert log.read_text().splitlines() == ["ramp 1"]
    publish(toy, "--forget", "loss=ramp")  # what the folder has is new
    assert "*3 of 4" in page(toy) and "until theirs are: seed 0" in page(toy)
    with pytest.raises(ValueError, match="have the settings loss, seed. Got method"):
        publish(toy, "--forget", "method=ramp")
    with pytest.raises(SystemExit):
        publish(toy, "--forget", "ramp")


def test_no_group_is_complete(toy):
    for path in (toy / "runs/toy/cells/quick").glob("loss=ramp*"):
        path.unlink()
    publish(toy)
    assert "Not run yet in this version: 2 of 4 cells" in page(toy) and "*No plot yet.*" in page(toy)
    assert shown_results(get_experiment("toy"), "quick", read_published(toy / "docs", "toy", "quick").results) == []


def test_a_marker_that_names_no_setting(toy):
    with pytest.raises(ValueError, match="must name a setting, quick or full. Got 'slow'"):
        renewed("<!-- results: toy slow 1 -->\n<!-- end of results -->", toy / "docs")
