"""The study of default settings: its data, its file and its tables. Nothing is trained but a toy."""

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent.parent
if not (ROOT / "benchmarks").is_dir():
    pytest.skip("the benchmarks come with the checkout only", allow_module_level=True)
sys.path.insert(0, str(ROOT))

from benchmarks import defaults, defaults_data  # noqa: E402

from partwise.features.rows import make_rows, spread_of  # noqa: E402
from partwise.solvers.defaults import choose  # noqa: E402
from partwise.structures import multiclass_problem  # noqa: E402
from partwise.structures.dependency.problem import is_projective  # noqa: E402
from partwise.tasks.common.registry import BY_VERB  # noqa: E402


def line(solver="dca", C=0.1, seed=0, score=90.0, noise=0.0):
    known = {"data": "conll2000", "noise": noise, "seed": seed, "examples": 10, "norm": 1.0, "spread": None}
    return {**known, "loss": "hinge", "solver": solver, "C": C, "at": {"10": [score, 0.5], "20": [score - 1, 1.0]}}


def test_the_file_keeps_every_run(tmp_path):
    lines = [line(), line(C=0.3), line(seed=1), line("pegasos", noise=0.2)]
    defaults.write(tmp_path / "results" / "found.json", lines)
    assert sorted(map(str, defaults.read(tmp_path / "results" / "found.json"))) == sorted(map(str, lines))
    assert defaults.read(tmp_path / "nothing.json") == []


def test_means_are_over_all_seeds_or_none():
    own = defaults.by_case([line(score=90), line(seed=1, score=92), line(C=0.3, score=99)], ["conll2000"])["conll2000", 0.0]
    assert own["hinge", "dca", 0.1, 10] == (91.0, 0.5)
    assert not any(settings[2] == 0.3 for settings in own)


def test_the_nearest_candidate():
    own = dict.fromkeys([("hinge", "dca", 0.1, 5), ("hinge", "dca", 0.1, 10), ("hinge", "dca", 0.3, 10)], (0.0, 0.0))
    assert defaults.nearest(own, ("hinge", "dca", 0.12, 9)) == ("hinge", "dca", 0.1, 10)
    assert defaults.nearest(own, ("hinge", "dca", 5.0, 10)) is None
    assert defaults.nearest(own, ("crf", "dca", 0.1, 10)) is None


def test_tables_tell_the_regret_of_the_rule():
    rule = choose("hinge", examples=10)
    lines = [line(rule.solver, rule.C, score=89.0), line(score=91.5)]
    text = defaults.tables(lines, ["conll2000"])
    assert "| conll2000 | 0 % | hinge, dca, C=0.1, 10 | 91.5 |" in text
    assert "| 88.0 | 3.5 |" in text  # the rule's epochs, more than 20, are not among those judged: the nearest are


def test_every_task_has_a_grid_and_a_declaration():
    tasks = {data.task for data in defaults_data.DATA.values()}
    own = set(BY_VERB) - {"segment"}  # which takes the rule of taggers: docs/defaults.md
    assert tasks == set(defaults.GRID) == own == set(defaults.BEFORE)


def test_a_run_is_judged_after_each_number_of_epochs():
    x = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [0.0, 2.0]])
    part = defaults_data.Part(multiclass_problem(x, [0, 1, 0, 1], 2), lambda w, loss: 50.0, spread=spread_of(make_rows(x)))
    points = defaults.judged(part, "hinge", "pegasos", 0.1, (2, 5))
    assert list(points) == ["2", "5"]
    assert [score for score, _ in points.values()] == [50.0, 50.0]
    assert defaults.facts(part)["spread"] == pytest.approx(x.var(axis=0).sum())


@pytest.mark.parametrize("n", [1, 2, 7, 20])
def test_wrong_trees_are_trees(n):
    rng = np.random.default_rng(n)
    for make in (defaults_data.random_heads, defaults_data.nested_heads):
        heads = make(n, rng)
        assert sum(head == 0 for head in heads) == 1
        for word in range(1, n + 1):
            seen = set()
            while word:
                assert word not in seen
                seen.add(word)
                word = heads[word - 1]
    assert is_projective(np.array(defaults_data.nested_heads(n, rng)))


def test_wrong_structures_and_alignments():
    assert defaults_data.mirrored(np.array([4, -1, -1, -1, 0, -1])).tolist() == [-1, 5, -1, -1, -1, 1]
    assert defaults_data.shifted(np.array([0, 1, -1, 3]), 8).tolist() == [5, 6, -1, -1]
    assert defaults_data.drawn(10, 0.2, 0).sum() == 2
