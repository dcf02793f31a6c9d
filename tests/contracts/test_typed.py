"""A user's type checker: the package says that it is typed, and a typed program passes."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import partwise

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "typed_example.py"


def test_the_package_says_that_it_has_types():
    assert (Path(partwise.__file__).parent / "py.typed").exists()


@pytest.mark.slow
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_typed_program(checker, tmp_path):
    program = [sys.executable, "-m", checker] if importlib.util.find_spec(checker) else [shutil.which(checker)]
    if program == [None]:
        pytest.skip(f"{checker} is not installed")
    (tmp_path / "fine.py").write_text(EXAMPLE.read_text())
    (tmp_path / "program.py").write_text(EXAMPLE.read_text() + "\nwrong: int = train('three')\n")
    source = str(ROOT / "src")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [source]}))
    options = {
        "mypy": ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent"],
        "pyright": ["--pythonpath", sys.executable],
    }

    def check(file):
        return subprocess.run(
            [*program, *options[checker], file],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
            env={**os.environ, "MYPYPATH": source},
        )

    fine, seen = check("fine.py"), check("program.py")
    assert fine.returncode == 0, fine.stdout
    assert seen.returncode == 1 and seen.stdout.count("error:") == 2, seen.stdout  # it looks, and sees both mistakes
