"""Fenced blocks of the pages: what each is, and how one of shell commands is checked and run.

====================================  ===================================================================================
``<!-- beside: PACKAGE -->``           shows another tool: run where that is installed
``<!-- program of: PACKAGE -->``       a program for a tool that needs a Python of its own, $PARTWISE_PEERS/PACKAGE/bin/python
``<!-- output of: COMMAND -->``        what a command printed
``<!-- checked only: WHY -->``         takes minutes, a cluster, a machine: commands are parsed, Python is compiled
a fence with the name of a file       its text is put there before what follows is run
====================================  ===================================================================================
"""

from __future__ import annotations

import ast
import configparser
import glob
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import typer.main
from typer.testing import CliRunner

from partwise.cli.app import app

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^(?:<!-- ([a-z ]+): ([^\n]*?) -->\n)?```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARKS = ("beside", "program of", "output of", "checked only")
#: languages of blocks that are neither run nor output: formulas and lists of pages for Sphinx
SET = ("math", "{toctree}")


class PageBlock(NamedTuple):
    """A fenced block."""

    mark: str
    what: str  #: after the mark
    language: str
    file: str  #: where its text belongs
    text: str


def blocks_of(path: Path) -> list[PageBlock]:
    """All of a page."""
    return [
        PageBlock(mark, what, *(header.split(None, 1) + ["", ""])[:2], text)
        for mark, what, header, text in FENCE.findall(path.read_text(encoding="utf-8"))
    ]


def own_python(package: str) -> Path | None:
    """Where a tool has a Python of its own: in the folder of environments that PARTWISE_PEERS names."""
    path = Path(os.environ.get("PARTWISE_PEERS", ""), package, "bin", "python")
    return path if "PARTWISE_PEERS" in os.environ and path.exists() else None


def is_installed(package: str) -> bool:
    """Whether there is such a package, here or in a Python of its own; a folder of tests of its name is none."""
    spec = importlib.util.find_spec(package)
    return (spec is not None and spec.origin is not None) or own_python(package) is not None


def commands(text: str) -> list[str]:
    """The lines of a block of shell, comments left out."""
    lines = (line.split(" #")[0].strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def why_unmarked(block: PageBlock) -> str:
    """What is wrong with a block that nobody could run or check; nothing, if all is well."""
    if block.mark and block.mark not in MARKS:
        return f"there is no mark {block.mark!r}"
    if block.mark == "output of" or block.language in SET or block.file:
        return ""
    if block.language in ("python", "sh", "console", "ini", "json"):
        return ""
    return "it is neither run nor marked as output of a command: <!-- output of: COMMAND -->"


def check(block: PageBlock, page: str) -> None:
    """Quick: what is shown can be read, and commands are those that there are."""
    if block.mark == "output of" or block.file:
        return
    if block.language == "python":
        ast.parse(block.text, page)
    elif block.language == "json":
        for line in block.text.splitlines():
            json.loads(line)
    elif block.language == "ini":
        configparser.ConfigParser().read_string(block.text)
    elif block.language == "sh":
        for line in commands(block.text):
            for words in pieces(line):
                check_command(words)


def pieces(line: str) -> list[list[str]]:
    """The commands of a line as words, without what they read from and write to."""
    found: list[list[str]] = [[]]
    words = iter(shlex.split(line))
    for word in words:
        if word in ("|", "&&"):
            found.append([])
        elif word in (">", "<"):
            next(words)
        else:
            found[-1].append(word)
    return found


def check_command(words: list[str]) -> None:
    """An option that does not exist, a target of make, a module or an extra that is not there: an AssertionError, or click's."""
    program, *rest = words
    if program == "partwise":
        parse(rest)
    elif program == "make":
        targets = re.findall(r"^([a-z-]+(?: [a-z-]+)*):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        known = {name for names in targets for name in names.split()}
        assert {word for word in rest if "=" not in word} <= known, words
    elif program == "pip":
        extras = re.findall(r"^([a-z]+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
        assert all(extra in extras for word in rest for inner in re.findall(r"\[(.*)\]", word) for extra in inner.split(",")), (
            words
        )
    elif program == "python" and rest[0] == "-m":
        assert importlib.util.find_spec(rest[1]) is not None or (ROOT / rest[1].replace(".", "/")).with_suffix(".py").exists(), (
            words
        )
    else:
        assert program in ("python", "cat", "head", "export", ".", "source", "spacy"), words


def parse(words: list[str]) -> None:
    """Parse a command, and do nothing."""
    command = typer.main.get_command(app)
    name, left = "partwise", list(words)
    while hasattr(command, "resolve_command"):
        if left and left[0].startswith("-"):
            return  # --version
        context = command.make_context(name, left, resilient_parsing=True)
        name, command, left = command.resolve_command(context, list(left))
        assert command is not None, words
    command.make_context(name, left)


def run(line: str) -> None:
    """Run a line where we are, as a shell would; make and pip are checked only."""
    if "|" not in line and pieces(line)[0][0] not in ("partwise", "python", "cat"):
        return check_command(pieces(line)[0])
    stdin = b""
    for part in line.split(" | "):
        words, outputs = [], []
        given = iter(shlex.split(part))
        for word in given:
            if word == ">":
                outputs.append(next(given))
            elif word == "<":
                stdin = Path(next(given)).read_bytes()
            else:
                words += sorted(glob.glob(word)) if "*" in word else [word]
        program, *rest = words
        if program == "partwise":
            ran = CliRunner().invoke(app, rest, input=stdin, catch_exceptions=False)
            assert ran.exit_code == 0, (part, ran.output)
            stdin = ran.stdout_bytes
        elif program == "cat":
            stdin = Path(rest[0]).read_bytes()
        elif program == "head":
            stdin = b"".join(stdin.splitlines(True)[: int(rest[0].lstrip("-"))])
        else:
            done = subprocess.run([sys.executable, *rest], input=stdin, capture_output=True, check=False)
            assert done.returncode == 0, (part, done.stderr.decode())
            stdin = done.stdout
        for name in outputs:
            Path(name).write_bytes(stdin)
    return None
