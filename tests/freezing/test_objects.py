"""Machine code of recorded calls: it is compiled with all kernels at hand."""

import re
from pathlib import Path

import pytest

import partwise
from partwise.engine.compilation import sources
from partwise.freezing.objects import LAYERS, import_kernels
from partwise.objective import loss_pass
from partwise.structures.chain.problem import ChainProblem

PACKAGE = Path(partwise.__file__).parent
SEAM = {"engine", "kernels.py"}  # imported by all the others
EXTRAS = {"torch"}  # no command calls their loops


def test_whatever_implements_kernels_is_imported():
    found = {
        file.relative_to(PACKAGE).parts[0]
        for file in PACKAGE.rglob("*.py")
        if re.search(r"^@.*\.implements\(", file.read_text(), re.M)
    }
    assert found - SEAM - EXTRAS <= set(LAYERS)


def test_sources_are_those_of_this_package():
    """Also of what is wrapped: a wheel would look for the file of the wrapper, somewhere on the machine that built it."""
    import_kernels()
    found = sources(loss_pass.interpreted, ChainProblem)
    assert len(found) > 10 and all(Path(file).is_relative_to(PACKAGE) for file in found)


@pytest.mark.parametrize("name", ["kernels.py", "structures/chain/kernels.py", "structures/chain/best.py", "losses/in_loops.py"])
def test_sources_are_complete(name):
    import_kernels()
    assert str(PACKAGE / name) in sources(loss_pass.interpreted, ChainProblem)
