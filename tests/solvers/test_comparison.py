"""`partwise compare` and `partwise.solvers.comparison`: solvers side by side, judged by one piece of code."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from typer.testing import CliRunner

from partwise.cli.app import app
from partwise.cli.compare_data import recognise
from partwise.datasets import make_digit_words
from partwise.losses.records import get_loss
from partwise.objective import objective
from partwise.solvers import make_task, solve
from partwise.solvers.comparison import Moment, SolverComparison, Trace, able, compare
from partwise.structures import chain_problem, multiclass_problem


def digit_problem(n=30):
    X, y = make_digit_words(n)
    return chain_problem(np.concatenate(X), [len(word) for word in y], np.concatenate(y).astype(np.int32), 10)


def invoke(*words):
    return CliRunner().invoke(app, ["compare", *map(str, words)])


def test_points_are_those_of_the_solvers():
    problem = digit_problem()
    found = compare(problem, ["sdm", "pegasos"], "hinge", 0.1, tol=1e-3, max_epochs=30, score=lambda w: {"size": float(w @ w)})
    sdm, pegasos = found.traces
    assert (sdm.solver, pegasos.solver) == ("sdm", "pegasos")
    assert sdm.status == "converged" and sdm.gap <= 1e-3
    assert pegasos.status in ("max_epochs", "converged")
    again = solve(problem, "hinge", "sdm", 0.1, tol=1e-3, max_epochs=sdm.last.epoch)
    assert sdm.last.primal == pytest.approx(again.primal, rel=1e-12)
    assert sdm.last.scores["size"] == pytest.approx(float(again.w @ again.w), rel=1e-12)
    assert sdm.last.oracle_calls == again.n_oracle_calls
    for trace in found.traces:
        assert [p.epoch for p in trace.points] == sorted({p.epoch for p in trace.points})
        assert all(p.dual <= q.primal + 1e-9 for p in trace.points for q in trace.points)
        assert all(a >= 0.0 for a in found.above(trace))
        assert all(p.seconds > 0 for p in trace.points)


def test_one_yardstick_for_all():
    points = {"quick": [(1, 5.0, 2.0), (2, 4.1, 3.9)], "blind": [(1, 4.5, math.nan), (9, 4.01, math.nan)]}
    traces = [
        Trace(name, [Moment(e, float(e), float(e), 10 * e, p, d) for e, p, d in rows], "max_epochs")
        for name, rows in points.items()
    ]
    found = SolverComparison("hinge", 1.0, 10, 3, True, 1e-4, traces)
    assert found.bound == 3.9
    assert found.above(traces[1])[-1] == pytest.approx(0.11 / 3.9)
    assert found.reached(traces[1], 0.03) is traces[1].points[1] and found.reached(traces[0], 0.03) is None
    assert math.isnan(traces[1].bound)
    assert traces[0].gap == pytest.approx(0.2 / 4.1)
    rows = found.rows()
    assert [row["solver"] for row in rows] == ["blind", "quick"]  # nobody reached a level: the lower objective first
    assert rows[0]["passes"] == 9.0
    json.dumps(found.to_dict())


def test_all_that_can_take_part():
    problem = multiclass_problem(np.eye(3), np.arange(3), 3)
    names = able(problem, get_loss("crf"))
    assert "lbfgs" in names and "sdm" not in names
    assert "sdm" in able(problem, get_loss("hinge"))
    with pytest.raises(ValueError, match="minimises max-margin losses"):
        compare(problem, ["lbfgs", "sdm"], "crf")


def test_the_objective_is_judged_by_one_piece_of_code():
    problem = digit_problem(10)
    seen = []
    found = compare(problem, ["dca"], "hinge", 0.1, max_epochs=2, score=lambda w: seen.append(w.copy()) or {})
    task = make_task(problem, "hinge", 0.1)
    for point, w in zip(found.traces[0].points, seen, strict=True):
        assert point.primal == pytest.approx(objective(problem, task.loss, task.C, w).primal, rel=1e-12)


def test_recognise(tmp_path):
    for text, kind in (
        ("the DT B-NP\n", "columns"), ("1 3:0.5 7:1\n", "svmlight"), ("2,0.5,1\n", "csv"), ("\na\tb\n", "columns"),
        ("a,b\tX\n", "columns"),
    ):  # fmt: skip
        path = tmp_path / "data"
        path.write_text(text)
        assert recognise(str(path)) == kind


def test_command_writes_table_picture_and_json(tmp_path):
    out = tmp_path / "there" / "comparison"
    ran = invoke("digits", "--first", 20, "--solvers", "sdm, pegasos", "--epochs", 5, "-o", out, "--json")
    assert ran.exit_code == 0, ran.output
    about = json.loads(ran.stdout)
    assert {row["solver"] for row in about["rows"]} == {"sdm", "pegasos"}
    assert all(0 <= row["accuracy"] <= 100 for row in about["rows"])
    assert about["examples"] == 20
    assert json.loads((out / "compare.json").read_text())["bound"] == about["bound"]
    assert (out / "compare.png").read_bytes().startswith(b"\x89PNG")
    text = (out / "compare.md").read_text()
    assert "| sdm " in text and "accuracy %" in text


def test_command_takes_files(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    csv = tmp_path / "data.csv"
    csv.write_text("\n".join(f"{c},{','.join(f'{v:.4f}' for v in row)}" for c, row in zip(y, x, strict=True)))
    ran = invoke(csv, "--solvers", "sdm", "--epochs", 3, "--json")
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["examples"] == 32
    columns = tmp_path / "train.txt"
    columns.write_text("the DT B-NP\ndog NN I-NP\n\nruns VB O\n\n" * 5)
    ran = invoke(columns, "--test", columns, "--solvers", "sdm", "--epochs", 3, "--json")
    assert ran.exit_code == 0, ran.output
    row = json.loads(ran.stdout)["rows"][0]
    assert row["f1"] == 100.0 and row["accuracy"] == 100.0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "no data set of that name"),
        (["digits", "--test", "x"], "test part of its own"),
        (["digits", "--solvers", "newton"], "'solver' parameter must be one of"),
        (["digits", "--solvers", ","], "name at least one"),
        (["digits", "--solvers", "lbfgs"], "not the loss 'hinge'"),
        (["digits", "--loss", "zero_one"], "'loss' parameter must be one of"),
        (["digits", "-C", "-1"], "'C' parameter must be"),
    ],
)
def test_bad_words(words, message):
    ran = invoke(*words)
    assert ran.exit_code == 1
    assert message in ran.output


def test_empty_file_and_missing_corpora(tmp_path, monkeypatch):
    (tmp_path / "empty").write_text("")
    assert "is empty" in invoke(tmp_path / "empty").output
    monkeypatch.delenv("PARTWISE_DATA", raising=False)
    ran = invoke("ocr")
    assert ran.exit_code == 1 and "PARTWISE_DATA" in ran.output
