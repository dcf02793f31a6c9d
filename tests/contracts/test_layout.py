"""The house: where things are, by rules that a stranger can rely on."""

from __future__ import annotations

import ast
import itertools
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SOURCE, TESTS = ROOT / "src" / "partwise", ROOT / "tests"
ROLES = {"estimator", "data", "files", "scores", "drawing", "inspection", "command"}
MODULES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))


def test_at_most_five_modules_at_the_root():
    assert {path.name for path in SOURCE.glob("*.py")} == {
        "__init__.py",
        "__main__.py",
        "kernels.py",
        "objective.py",
        "passes.py",
    }


def test_every_unit_test_has_a_source_twin():
    tests = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    orphans = [
        str(test)
        for test in tests
        if test.parts[0] != "contracts" and not (SOURCE / test.parent / test.name.removeprefix("test_")).exists()
    ]
    assert orphans == []


@pytest.mark.parametrize("task", sorted(path.name for path in (SOURCE / "tasks").iterdir() if (path / "estimator.py").exists()))
def test_a_task_has_the_usual_rooms(task):
    found = {path.stem for path in (SOURCE / "tasks" / task).glob("*.py")}
    assert {"estimator", "data", "files", "scores", "command"} <= found


@pytest.mark.parametrize("structure", sorted(path.name for path in (SOURCE / "structures").iterdir() if path.is_dir()))
def test_a_structure_has_a_problem_and_kernels(structure):
    if structure not in ("common", "__pycache__"):
        assert {"problem.py", "kernels.py"} <= {path.name for path in (SOURCE / "structures" / structure).glob("*.py")}


def test_no_two_names_of_a_folder_differ_only_by_their_ending():
    folders = defaultdict(set)
    for module in MODULES:
        if module.stem != "__init__":
            folders[module.parent].add(module.stem)
        for parent in module.parents:
            if parent.name:
                folders[parent.parent].add(parent.name)
    clashes = [
        (str(folder), a, b)
        for folder, names in folders.items()
        for a, b in itertools.permutations(sorted(names), 2)
        if b in (f"{a}s", f"{a}es", f"{a}er", f"{a}or", f"{a}ing")
    ]
    assert clashes == []


def test_no_class_is_called_like_another():
    """One name, one meaning; but verbs and tasks have their options, experiments their cells and their names in the papers."""
    homes = defaultdict(list)
    for module in MODULES:
        if module.parts[0] == "experiments":
            continue
        for node in ast.parse((SOURCE / module).read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(module))
    many = {name: places for name, places in homes.items() if len(places) > 1}
    shared = {"Options", "Predict", "Evaluate", "Inspect", "Suspects", "ReportOptions"}
    shared |= {"CRF", "Alignment", "Constituency"}  # layers for torch are called as others call them, and like their structures
    assert {name: places for name, places in many.items() if name not in shared} == {}


def test_files_fit_in_one_sitting():
    long = {str(path): n for path in MODULES if (n := len((SOURCE / path).read_text().splitlines())) > 450}
    assert long == {}
