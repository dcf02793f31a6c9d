"""The table of docs/latent.md that says which structure has what is that of the kernels there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import partwise.structures.dependency.second_order
import partwise.structures.factor_graph.kernels  # noqa: F401
from partwise import kernels, structures
from partwise.structures.dependency.kept_arcs import SecondOrderProblem
from partwise.structures.factor_graph.problem import GraphProblem
from partwise.tasks.common.registry import BY_ESTIMATOR, TASKS

PAGE = Path(__file__).parents[2] / "docs" / "latent.md"
ELSEWHERE = {"SecondOrderProblem": SecondOrderProblem, "GraphProblem": GraphProblem}


def rows():
    """The cells of the table, by the name of the problem."""
    text = PAGE.read_text().split("## Which structure has what")[1]
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return {re.search(r"`(\w+)`", cells[0])[1]: dict(zip(found[0][1:], cells[1:], strict=True)) for cells in found[2:]}


def problem_type(name):
    return ELSEWHERE.get(name) or getattr(structures, name)


def has(kernel, problem):
    return kernel.kernel.find(problem) is not None


@pytest.mark.parametrize("name", sorted(rows()))
def test_a_row_says_what_is_there(name):
    row, problem = rows()[name], problem_type(name)
    partial = [one for one in problem.__subclasses__() if one.__name__.startswith("Partial")]
    there = {
        "k best": has(kernels.kbest, problem),
        "sums": has(kernels.expected, problem),
        "max-marginals": has(kernels.max_marginals, problem),
        "unknown parts": any(has(kernels.restrict, one) for one in partial),
    }
    assert {what: row[what] != "-" for what in there} == there


def test_all_structures_have_a_row():
    exported = {name for name in structures.__all__ if name.endswith("Problem") and not name.startswith("Partial")}
    assert set(rows()) == exported | set(ELSEWHERE)


def test_estimators_with_hidden_states_are_named():
    able = {task.estimator for task in TASKS if "hidden" in task.core().parameters()}
    named = {row["hidden states"].strip("`") for row in rows().values() if row["hidden states"] != "-"}
    assert named == able and named <= set(BY_ESTIMATOR)
