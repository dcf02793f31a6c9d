"""Pages that take a newcomer by the hand: what they say to write runs as it stands, and every file they name is there."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

import partwise
from partwise import kernels
from partwise.cli.app import VERBS, app
from partwise.tasks.common import registry

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
FENCE = re.compile(r"^```(\w*)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)")
PATH = re.compile(r"`([a-z_./-]*(?:/|\.(?:py|md|toml))[a-z_./-]*)`")


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    file: str  #: where its text belongs; empty: it is to be run
    text: str


def blocks(page: str) -> list[Block]:
    return [Block(*found) for found in FENCE.findall((ROOT / "docs" / page).read_text())]


@pytest.fixture
def placed(tmp_path, monkeypatch):
    """Puts new modules of partwise where their names say, for one test; returns their names."""
    before = set(sys.modules)

    def place(written: list[Block]) -> list[str]:
        names = []
        for block in written:
            inside = Path(block.file).relative_to("src/partwise")
            package = importlib.import_module(f"partwise.{inside.parts[0]}")
            beside = str(tmp_path / "site" / inside.parts[0])
            if beside not in package.__path__:
                monkeypatch.setattr(package, "__path__", [*package.__path__, beside])
            (tmp_path / "site" / inside).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "site" / inside).write_text(block.text)
            names.append(".".join(("partwise", *inside.with_suffix("").parts)).removesuffix(".__init__"))
        importlib.invalidate_caches()
        return names

    yield place
    for name in sorted(set(sys.modules) - before, reverse=True):  # what is inside a package before the package
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            parent, _, own = name.rpartition(".")
            vars(sys.modules[parent]).pop(own, None)
            del sys.modules[name]


def run_console(text: str) -> None:
    """Run the lines after ``$``; what stands below each must be what it prints."""
    for command, expected in re.findall(r"^\$ partwise (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
        ran = CliRunner().invoke(app, shlex.split(command), catch_exceptions=False)
        assert ran.exit_code == 0, ran.output
        assert ran.stdout == expected, command


# -- add a task -------------------------------------------------------------------------------------------------------


def test_the_task_of_the_page_is_trained_asked_and_scored(placed, tmp_path, monkeypatch):
    page = blocks("add-a-task.md")
    code = [block for block in page if block.file.startswith("src/")]
    new = [block for block in code if not (ROOT / block.file).exists()]
    names = placed(new)
    roles = {name.removeprefix("partwise.tasks.guessing").removeprefix(".") for name in names}
    assert roles == {"", "data", "files", "scores", "estimator", "command"}

    (line,) = (block.text for block in code if block not in new)
    (task,) = eval(f"({line})", vars(registry))
    longer = (*registry.TASKS, task)
    for verb in VERBS:  # what is imported first while the table is longer would keep the longer one for the tests that follow
        importlib.import_module(f"partwise.cli.{verb}")
    keepers = [sys.modules[name] for name in list(sys.modules) if name.startswith("partwise.")]
    for module in [one for one in keepers if getattr(one, "TASKS", None) is registry.TASKS]:
        monkeypatch.setattr(module, "TASKS", longer)
    monkeypatch.setitem(registry.BY_VERB, task.verb, task)
    monkeypatch.setitem(registry.BY_ESTIMATOR, task.estimator, task)

    monkeypatch.chdir(tmp_path)
    for block in page:
        if block.language == "text" and block.file:
            Path(block.file).write_text(block.text)
    with partwise.interpret():
        for block in page:
            if block.language == "console":
                run_console(block.text)
            elif block.language == "python" and not block.file:
                exec(block.text, {})
        check_every_verb(task, tmp_path)
    assert "guess" in CliRunner().invoke(app, ["train", "--help"]).output


def check_every_verb(task, folder: Path) -> None:
    """Options that the page does not show, and mistakes that users make."""
    file, model = str(task.command.workload(folder)), str(folder / "other.model")
    run = CliRunner().invoke
    done = run(app, ["train", "guess", file, "-o", model, "--dev", file, "--letters", "aetk", "--json"], catch_exceptions=False)
    assert done.exit_code == 0 and '"features": 4' in done.stdout and '"dev": {"accuracy": 1.0}' in done.stdout
    bare = folder / "bare.txt"
    bare.write_text("the cat\n")
    assert run(app, ["predict", model, str(bare)]).stdout == "en\tthe cat\n"
    for words, complaint in (
        (["evaluate", model, str(bare)], "without languages"),
        (["inspect", model, "--picture", "x.png"], "nothing to draw"),
        (["train", "guess", file, "-o", model, "-C", "-1"], "The 'C' parameter of LanguageGuesser must be"),
    ):
        refused = run(app, words)
        assert refused.exit_code == 1 and complaint in refused.stderr
    assert task.public(early_stopping=True).fit(*[["aaa", "kkk"] * 4, ["x", "y"] * 4]).predict(["ak", "kkka"])[1] == "y"


# -- add a solver -----------------------------------------------------------------------------------------------------


def test_the_solver_of_the_page_finds_the_optimum_that_another_one_does(placed, monkeypatch, capsys):
    file, *run = (block for block in blocks("add-a-solver.md") if block.language == "python")
    assert placed([file]) == ["partwise.solvers.subgradient"]
    monkeypatch.setitem(partwise.SOLVERS, "subgradient", None)  # the page puts it there; so it is taken away again
    scope: dict = {}
    with partwise.interpret():
        for block in run:
            exec(block.text, scope)
        check_the_bound(scope["problem"])
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["MulticlassProblem", "ChainProblem"]


def check_the_bound(problem) -> None:
    """The dual never exceeds the optimum, with other losses and inside CCCP too."""
    crf = partwise.solve(problem, "crf", "subgradient", C=0.1, tol=0.01, evaluate="epoch")
    best = partwise.solve(problem, "crf", "lbfgs", C=0.1, tol=1e-6)
    assert crf.converged and best.primal <= crf.primal <= 1.01 * best.primal
    assert all(record.dual <= best.primal for record in crf.history)
    ramp = partwise.solve(problem, "ramp", "subgradient", C=0.1, max_epochs=60)
    assert isinstance(ramp.solver, partwise.CCCP) and len(ramp.rounds) > 1
    assert all(one.dual <= one.primal for one in ramp.rounds)
    again = partwise.solve(problem, "hinge", "subgradient", C=0.1, tol=0.001, start=np.ones(kernels.n_weights(problem)))
    assert again.dual <= partwise.solve(problem, "hinge", "sdm", C=0.1, tol=0.001).primal


# -- add a structure --------------------------------------------------------------------------------------------------


def test_the_structure_of_the_page_is_the_one_of_the_example(monkeypatch):
    page, source = blocks("first-structure.md"), (ROOT / "examples" / "first_structure.py").read_text()
    shown = [block for block in page if block.file]
    assert {block.file for block in shown} == {"examples/first_structure.py"}
    assert all(block.text in source for block in shown)

    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.delitem(sys.modules, "first_structure", raising=False)
    example = importlib.import_module("first_structure")
    monkeypatch.delitem(sys.modules, "first_structure")
    with partwise.interpret():
        for block in page:
            if block.language == "python" and not block.file:
                exec(block.text, vars(example))


# -- what pages name --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = [link for link in LINK.findall(FENCE.sub("", page.read_text())) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/first-structure.md"])
def test_paths_exist(page):
    homes = (ROOT, ROOT / "src" / "partwise")
    roles = {path.name for path in homes[1].rglob("*.py")}
    paths = [path for path in PATH.findall(FENCE.sub("", (ROOT / page).read_text())) if path not in roles]
    assert [path for path in paths if not any((home / path).exists() for home in homes)] == []


def test_contributing_names_every_package():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    folders = [path.parent for path in (ROOT / "src" / "partwise").glob("*/__init__.py")]
    assert [folder.name for folder in folders if f"| [{folder.name}](src/partwise/{folder.name}) |" not in text] == []


def test_the_picture_shows_the_layers_that_are_checked():
    """Names in the picture from top to bottom, those of a layer from left to right, are the contract of pyproject.toml."""
    contract = re.search(r"^layers = \[\n(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE | re.DOTALL)
    layers = [re.findall(r"partwise\.(\w+)", line) for line in contract[1].splitlines()]
    places: dict[float, list[tuple[float, str]]] = {}
    for text in ElementTree.parse(ROOT / "docs" / "layers.svg").iter("{http://www.w3.org/2000/svg}text"):
        if text.get("class") == "name":
            places.setdefault(float(text.get("y")), []).append((float(text.get("x")), text.text))
    assert [[name for _, name in sorted(row)] for _, row in sorted(places.items())] == layers


def test_every_package_says_what_it_is():
    silent = [
        str(path.parent.relative_to(ROOT))
        for path in (ROOT / "src" / "partwise").rglob("__init__.py")
        if not path.read_text().startswith('"""')
    ]
    assert silent == []
