"""A user's type checker: the package says that it is typed, and a typed program passes."""

import importlib.util
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
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    (tmp_path / "program.py").write_text(EXAMPLE.read_text() + "\nwrong: int = train('three')\n")
    config = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent"] if checker == "mypy" else []
    fine = subprocess.run(
        [sys.executable, "-m", checker, *config, EXAMPLE], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert fine.returncode == 0, fine.stdout
    seen = subprocess.run(
        [sys.executable, "-m", checker, *config, "program.py"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert seen.returncode == 1 and seen.stdout.count("program.py") >= 2, seen.stdout  # it looks, and sees both mistakes
