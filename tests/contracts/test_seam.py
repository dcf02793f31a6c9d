"""The seam: one source compiled and interpreted, cached on disk, open to structures that users write."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import partwise
from budget_structure import BudgetProblem, PlainBudget, make_budget
from partwise import kernels
from partwise.engine.compilation import interpret, kernel, sources, stamp
from partwise.features.rows import Binary
from partwise.losses.in_loops import Maximum
from partwise.losses.records import LOSSES, Family
from partwise.solvers import SOLVERS, solve
from partwise.solvers.dca import dca_pass
from partwise.structures import ChainProblem, MulticlassProblem, multiclass_problem

SCRIPT = """
import json, sys
import numpy as np
from partwise.engine.compilation import cache_stats
from partwise.solvers import solve
from partwise.structures import multiclass_problem
x = np.random.default_rng(0).normal(size=(9, 3))
result = solve(multiclass_problem(x, np.arange(9) % 3, 3), "hinge", "dca", max_epochs=2, evaluate="never")
print(json.dumps({**cache_stats(), "w": result.w.tolist()}))
"""


def run_script(package: Path, cache: Path) -> dict:
    environment = {**os.environ, "PYTHONPATH": str(package), "PARTWISE_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_second_process_does_not_compile_and_an_edited_structure_is_compiled_anew(tmp_path):
    package = tmp_path / "site"
    shutil.copytree(Path(partwise.__file__).parent, package / "partwise", ignore=shutil.ignore_patterns("__pycache__"))
    first = run_script(package, tmp_path / "cache")
    assert first["misses"] > 0 and first["hits"] == 0
    second = run_script(package, tmp_path / "cache")
    assert second["misses"] == 0 and second["hits"] == first["misses"]
    assert second["w"] == first["w"]

    # the solver's own file is untouched; numba's cache would go on running the old structure
    structure = package / "partwise" / "structures" / "multiclass" / "kernels.py"
    text = structure.read_text()
    edited = text.replace("theta[k] += c * problem.costs", "theta[k] += 10.0 * c * problem.costs")
    assert edited != text
    structure.write_text(edited)
    third = run_script(package, tmp_path / "cache")
    assert third["misses"] > 0
    assert third["w"] != first["w"]

    # a damaged cache file is no reason to fail
    for file in (tmp_path / "cache").glob("*.bin"):
        file.write_bytes(b"not code")
    fourth = run_script(package, tmp_path / "cache")
    assert fourth["misses"] == third["misses"] and fourth["w"] == third["w"]


def test_the_stamp_covers_what_a_loop_is_compiled_from_and_nothing_else():
    names = {"/".join(Path(f).parts[-2:]) for f in sources(dca_pass.interpreted, ChainProblem, Binary, Maximum)}
    assert {"solvers/dca.py", "partwise/kernels.py", "chain/kernels.py", "chain/best.py", "chain/sums.py"} <= names
    assert {"features/rows.py", "engine/accumulator.py", "losses/in_loops.py"} <= names
    others = {"solvers/sgd.py", "solvers/sdm.py", "multiclass/kernels.py", "tagging/estimator.py", "tests/budget_structure.py"}
    assert not (others | {"features/arc_rows.py", "losses/squared.py"}) & names  # whatever other tests have imported
    assert "budget_structure.py" in {Path(f).name for f in sources(dca_pass.interpreted, BudgetProblem)}
    assert stamp(dca_pass.interpreted, ChainProblem) != stamp(dca_pass.interpreted, MulticlassProblem)


def every_solver():
    """(solver, loss) for each solver with every convex loss it takes, and some that are not convex."""
    convex = {name: loss for name, loss in LOSSES.items() if isinstance(loss, Family)}
    pairs = [(s, name) for s, make in SOLVERS.items() for name, loss in convex.items() if make().accepts(loss)]
    return [*pairs, ("sdm", "ramp"), ("dca", "ramp_do"), ("lbfgs", "soft_ramp")]


@pytest.mark.parametrize(("solver", "loss"), every_solver())
def test_a_users_structure_runs_under_every_solver_compiled_and_in_plain_python(solver, loss):
    compiled = solve(make_budget(), loss, solver, C=0.3, max_epochs=3, evaluate="epoch", tol=0)
    plain = solve(make_budget(structure=PlainBudget), loss, solver, C=0.3, max_epochs=3, evaluate="epoch", tol=0)
    np.testing.assert_allclose(plain.w, compiled.w, rtol=1e-5, atol=1e-7)  # iterative steps stop at their tolerance
    assert plain.n_oracle_calls == compiled.n_oracle_calls > 0
    for record in compiled.history:  # weak duality at every recorded iterate
        assert record.dual <= record.primal + 1e-9 or not LOSSES[loss].is_convex


def test_interpreting_a_built_in_structure_changes_nothing():
    x = np.random.default_rng(1).normal(size=(12, 3))
    problem = multiclass_problem(x, np.arange(12) % 3, 3)
    compiled = solve(problem, "hinge", "dca", max_epochs=2)
    with interpret():
        plain = solve(problem, "hinge", "dca", max_epochs=2)
    np.testing.assert_allclose(plain.w, compiled.w, rtol=1e-12)
    assert plain.primal == pytest.approx(compiled.primal, rel=1e-12)


class Nothing:
    """Not a structure at all."""


def test_a_missing_kernel_is_named_together_with_who_needs_it():
    with pytest.raises(TypeError, match=r"The loss 'hinge' needs the kernel .* Nothing does not implement"):
        solve_nothing()


def solve_nothing():
    kernels.n_examples.implements(Nothing)(lambda problem: 2)
    return solve(Nothing(), "hinge", "dca")


def test_an_implementation_with_other_parameters_is_refused():
    @kernel
    def area(shape, scale):
        """A kernel for this test."""

    with pytest.raises(TypeError, match=r"must take \(shape, scale\). Got \(shape, factor\) instead"):

        @area.implements(Nothing)
        def _(shape, factor):
            return 0.0


def test_a_kernel_without_implementation_says_what_there_is():
    with pytest.raises(TypeError, match="Nothing does not implement the kernel 'best'"):
        kernels.best(Nothing(), 0, np.zeros(1), np.zeros(1, np.int32))


def test_a_structure_whose_targets_cannot_be_replaced_is_told_what_to_write():
    class NoTargets(NamedTuple):
        gold: np.ndarray

    with pytest.raises(TypeError, match="needs the kernel 'with_targets', and NoTargets has no field 'targets'"):
        kernels.with_targets(NoTargets(np.zeros(2)), np.zeros(2, np.int32))
