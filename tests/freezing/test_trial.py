"""A task whose machine code was made: all its commands run without numba, and what is missing is noticed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import partwise
from partwise.freezing.linking import NoCompiler, c_compiler
from partwise.freezing.targets import native
from partwise.freezing.trial import block_numba

SOURCE = Path(partwise.__file__).parents[1]


def module(name, *words, path, **environment):
    """``python -m name words``."""
    return subprocess.run(
        [sys.executable, "-m", name, *map(str, words)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_what_commands_run_that_set_nothing_is_frozen(tmp_path):
    try:
        c_compiler(native())
    except NoCompiler as why:
        pytest.skip(str(why))
    out = tmp_path / "frozen_code"
    words = (out, "--objects", tmp_path / "objects", "--tasks", "rank", "--defaults", "--jobs", 1)
    made = module("partwise.freezing", *words, path=[SOURCE])
    assert made.returncode == 0, made.stderr
    path = [block_numba(tmp_path), SOURCE]
    words = ("partwise.freezing.trial", "--tasks", "rank", "--defaults")
    tried = module(*words, path=path, PARTWISE_FROZEN=str(out))
    assert tried.returncode == 0 and ", 0 not frozen" in tried.stdout, tried.stdout + tried.stderr
    next(out.glob("ranking.*")).unlink()
    tried = module(*words, path=path, PARTWISE_FROZEN=str(out))
    assert tried.returncode == 1 and "numba is blocked in this trial" in tried.stdout
