"""Every block of Python on the pages runs, in its order, page by page; examples in docstrings say what comes.

A block after ``<!-- beside: PACKAGE -->`` shows another tool and runs where that is installed. One after
``<!-- output of: COMMAND -->`` is what a command printed. Blocks that name a file are parts of it, and run in
``test_walkthroughs``.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import re
import warnings
from pathlib import Path

import pytest

import partwise
from page_setups import SETUPS, nothing

ROOT = Path(__file__).parent.parent.parent
PAGES = {path.name: path for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])}
BLOCK = re.compile(r"^(?:<!-- (beside|output of): ([^\n]*?) -->\n)?```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WALKTHROUGHS = {"add-a-task.md", "add-a-solver.md", "first-structure.md"}  # run by test_walkthroughs
QUICK = ["README.md", "start.md", "losses.md"]
SLOW = sorted({name for name, path in PAGES.items() if BLOCK.search(path.read_text())} - set(QUICK) - WALKTHROUGHS)


def blocks(page: str) -> list[tuple[str, str, str]]:
    return BLOCK.findall(PAGES[page].read_text(encoding="utf-8"))


def is_installed(package: str) -> bool:
    """Whether there is such a package; a folder of tests of its name is none."""
    spec = importlib.util.find_spec(package)
    return spec is not None and spec.origin is not None


def run(page: str, folder: Path, monkeypatch) -> int:
    """Run the blocks of a page; returns how many ran."""
    monkeypatch.chdir(folder)
    scope, n = SETUPS.get(page, nothing)(folder), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, what, text in blocks(page):
            if kind == "output of" or (kind == "beside" and not is_installed(what)):
                continue
            if what == "spacy":
                importlib.import_module("partwise.bridges.spacy_components")  # an installed package has entry points for that
            exec(compile(text, f"{page}, block {n + 1}", "exec"), scope)
            n += 1
    return n


@pytest.mark.interpreted
@pytest.mark.parametrize("page", QUICK)
def test_blocks_of_the_first_pages(page, tmp_path, monkeypatch):
    assert run(page, tmp_path, monkeypatch) > 0


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW)
def test_blocks(page, tmp_path, monkeypatch):
    import sklearn

    try:
        run(page, tmp_path, monkeypatch)
    finally:
        sklearn.set_config(enable_metadata_routing=False)  # a page shows how to switch it on


def test_every_block_can_be_read():
    """Quick for all pages: what is shown is Python, and blocks beside another tool name it."""
    for page in PAGES:
        for _, _, text in blocks(page):
            ast.parse(text, page)


LONG = {"partwise.DependencyParser", "partwise.RnaFolder"}  # many seconds in the interpreter


def names() -> list[str]:
    """Everything that the reference shows."""
    modules = ("partwise", "partwise.metrics", "partwise.datasets", "partwise.bridges", "partwise.objective", "partwise.passes")
    return sorted(
        f"{module}.{name}"
        for module in modules
        for name in getattr(importlib.import_module(module), "__all__", ())
        if not name.startswith("__")
    )


@pytest.mark.interpreted
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in names()])
def test_examples_of_the_reference(name):
    module, _, own = name.rpartition(".")
    value = getattr(importlib.import_module(module), own)
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    scope = {**vars(importlib.import_module(value.__module__)), own: value} if hasattr(value, "__module__") else {}
    for test in finder.find(value, own, globs={**scope, "partwise": partwise}):
        runner.run(test)
    assert runner.failures == 0
