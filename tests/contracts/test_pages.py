"""Every block of Python and of shell on the pages runs, in its order, page by page; examples in docstrings say what comes.

What is not run is marked (`page_blocks`): an unmarked block is an error. Blocks that name a file of the sources are parts of it,
and run in ``test_walkthroughs``.
"""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import partwise
from page_blocks import ROOT, PageBlock, blocks_of, check, commands, is_installed, own_python, why_unmarked
from page_blocks import run as run_command
from page_setups import SETUPS, nothing

sys.path.append(str(ROOT / "docs" / "_ext"))
import kernel_words  # noqa: E402
import reference  # noqa: E402

PAGES = {path.name: path for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])}
WALKTHROUGHS = {"add-a-task.md", "add-a-solver.md", "first-structure.md"}  # run by test_walkthroughs
QUICK = ["README.md", "start.md", "losses.md"]


def runs(block: PageBlock, languages: tuple[str, ...]) -> bool:
    """Whether a block is to be run."""
    return block.language in languages and block.mark not in ("output of", "checked only")


def pages_with(*languages: str) -> list[str]:
    return sorted(
        {name for name, path in PAGES.items() if any(runs(block, languages) for block in blocks_of(path))} - WALKTHROUGHS
    )


def run(page: str, folder: Path, monkeypatch, languages: tuple[str, ...]) -> int:
    """Run the blocks of a page; returns how many ran."""
    monkeypatch.chdir(folder)
    scope, n = SETUPS.get(page, nothing)(folder), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for block in blocks_of(PAGES[page]):
            if block.file and block.language == "text":
                Path(block.file).write_text(block.text)
            if not runs(block, languages) or (block.mark in ("beside", "program of") and not is_installed(block.what)):
                continue
            if block.what == "spacy":
                importlib.import_module("partwise.bridges.spacy_components")  # an installed package has entry points for that
            if block.mark == "program of":
                subprocess.run([own_python(block.what) or sys.executable, "-c", block.text], check=True, capture_output=True)
            elif block.language == "python":
                exec(compile(block.text, f"{page}, block {n + 1}", "exec"), scope)
            else:
                for line in commands(block.text):
                    run_command(line)
            n += 1
    return n


@pytest.mark.interpreted
@pytest.mark.parametrize("page", QUICK)
def test_blocks_of_the_first_pages(page, tmp_path, monkeypatch):
    assert run(page, tmp_path, monkeypatch, ("python",)) > 0


@pytest.mark.slow
@pytest.mark.parametrize("page", pages_with("python", "sh"))
def test_blocks(page, tmp_path, monkeypatch):
    import sklearn

    try:
        run(page, tmp_path, monkeypatch, ("python", "sh"))
    finally:
        sklearn.set_config(enable_metadata_routing=False)  # a page shows how to switch it on


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_run_or_marked_and_can_be_read(page):
    """Quick for all pages: Python is Python, options of commands exist, and what is not run says what it is."""
    for number, block in enumerate(blocks_of(PAGES[page]), 1):
        assert (number, why_unmarked(block)) == (number, "")
        check(block, page)


@pytest.mark.parametrize("page", PAGES)
def test_commands_are_not_hidden_in_indented_blocks(page):
    lines = PAGES[page].read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith(("    partwise ", "    make ", "    python "))] == []


@pytest.mark.parametrize(
    ("mark", "language", "text", "wrong"),
    [
        ("", "", "$ partwise doctor\n", "neither run nor marked"),
        ("shown", "python", "pass\n", "no mark 'shown'"),
        ("output of", "", "anything\n", ""),
        ("", "sh", "partwise doctor\n", ""),
    ],
)
def test_an_unmarked_block_is_seen(mark, language, text, wrong):
    assert wrong in why_unmarked(PageBlock(mark, "x", language, "", text)) and bool(wrong) == bool(
        why_unmarked(PageBlock(mark, "x", language, "", text))
    )


@pytest.mark.parametrize(
    "line", ["partwise train tag f -o m --no-such-option", "make nothing", "pip install 'partwise[nothing]'", "rm -r x"]
)
def test_a_command_that_does_not_exist_is_seen(line):
    with pytest.raises((AssertionError, Exception)):
        check(PageBlock("", "", "sh", "", line + "\n"), "page")


LONG = {"partwise.DependencyParser", "partwise.RnaFolder"}  # many seconds in the interpreter
#: modules and tables in the reference, whose members have the words; kernels whose examples need structures of their own
WITHOUT_EXAMPLES = {
    "partwise.crfsuite.metrics", "partwise.crfsuite.pycrfsuite", "partwise.crfsuite.scorers", "partwise.crfsuite.utils",
    "partwise.bridges.FORMATS", *(f"partwise.kernels.{name}" for name in kernel_words.ELSEWHERE),
}  # fmt: skip


def names() -> list[str]:
    """Everything that the reference shows."""
    return sorted(
        {
            f"{module}.{name}"
            for _, _, module, _ in reference.LISTS
            for name in reference.names_of(module)
            if (module, name) not in reference.TABLES
        }
    )


def value_of(name: str):
    """What a name of the reference stands for."""
    module, _, own = name.rpartition(".")
    return getattr(importlib.import_module(module), own)


def words_of(name: str) -> str:
    """Its docstring, with what the site adds to that of kernels."""
    value, own = value_of(name), name.rpartition(".")[2]
    shown = {"partwise.kernels": own, "partwise.objective": f"objective.{own}"}.get(name.rpartition(".")[0])
    added = [] if shown is None else kernel_words.words(shown, value)
    return "\n".join([inspect.getdoc(value) or "", *added, ""])


@pytest.mark.interpreted
@pytest.mark.parametrize("name", names())
def test_the_reference_has_parameters_attributes_and_examples(name):
    value, words = value_of(name), words_of(name)
    if name in WITHOUT_EXAMPLES:
        return
    assert "Examples\n" in words and ">>> " in words
    if inspect.isclass(value):
        fields = list(getattr(value, "_fields", ())) or (
            [one.name for one in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
        )
        said = any(f"{title}\n---" in words for title in ("Parameters", "Attributes")) or "#: " in inspect.getsource(value)
        assert said or not fields, f"{name}: neither parameters nor attributes"
    elif inspect.isfunction(value) and list(inspect.signature(value).parameters):
        assert "Parameters\n---" in words, f"{name}: no parameters"


@pytest.mark.interpreted
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in names()])
def test_examples_of_the_reference(name, tmp_path, monkeypatch):
    if "import pandas" in words_of(name):
        pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)  # some write files
    value, own = value_of(name), name.rpartition(".")[2]
    home = importlib.import_module(name.rpartition(".")[0])
    public = {one: getattr(home, one) for one in getattr(home, "__all__", ()) if not one.startswith("__")}
    scope = {**vars(importlib.import_module(value.__module__)), **public, own: value} if hasattr(value, "__module__") else {}
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(parser.get_doctest(words_of(name), {**scope, "partwise": partwise}, own, name, 0))
    assert runner.failures == 0
