"""``partwise solve``."""

import json

import pytest
from typer.testing import CliRunner

from partwise.cli.app import app

pytestmark = pytest.mark.interpreted

UAI = "MARKOV\n2\n2 2\n2\n1 0\n2 0 1\n2\n1 3\n4\n2 1\n1 2\n"


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, ["solve", *map(str, arguments)], input=stdin)


def test_for_machines_and_people(tmp_path):
    (tmp_path / "g.uai").write_text(UAI)
    result = run(tmp_path / "g.uai", "--marginals", "--json")
    (found,) = json.loads(result.stdout)["graphs"]
    assert found["states"] == [1, 1] and found["proven"] and found["value"] == pytest.approx(1.791759, abs=1e-5)
    assert found["marginals"][0] == pytest.approx([0.25, 0.75]) and found["log_partition"] == pytest.approx(2.484907, abs=1e-5)
    shown = run("-", "--method", "exact", stdin=UAI).stdout
    assert "score 1.79176" in shown and "proven" in shown and "1 1" in shown
    assert run(tmp_path / "g.uai", "-o", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out").read_text() == "MPE\n2 1 1\n"
    run(tmp_path / "g.uai", "-o", tmp_path / "out", "--marginals")
    assert (tmp_path / "out").read_text().startswith("MAR\n2 2 0.25 0.75 2 ")


def test_refusals(tmp_path):
    for arguments, words in ((["-"], "expected a factor graph"), (["-", "--method", "best"], "--method must be one of")):
        result = run(*arguments, stdin="nothing")
        assert result.exit_code == 1 and words in result.stderr and result.stderr.count("\n") == 1
    result = run("-", stdin="2\n2\n1\n1\nXOR 2 1 2\nATMOSTONE 1 1\n".replace("ATMOSTONE 1 1", "XOR 2 1 -2"))
    assert result.exit_code == 1 and "partwise: error" in result.stderr
