"""Losses and solvers spelled as text: what is read, what is refused and how, and that nothing in a text is ever run."""

import dataclasses
import math
import os
import typing

import numpy as np
import pytest
from typer.testing import CliRunner

import partwise
from every_record import EVERY_LOSS, with_other_values
from partwise import SequenceLabeler
from partwise.cli.app import app
from partwise.engine import spelling
from partwise.engine.compilation import interpret
from partwise.losses.records import (
    LOSS_KINDS,
    LOSSES,
    Family,
    Ramp,
    Rescaled,
    RescaledRamp,
    SoftRamp,
    SquaredHinge,
    Summed,
    get_loss,
)
from partwise.losses.records import SPELLING as LOSS_SPELLING
from partwise.solvers import CCCP, SOLVERS, Solver, get_solver
from partwise.solvers import SPELLING as SOLVER_SPELLING
from partwise.solvers.nslack import NSlack
from partwise.solvers.pegasos import Pegasos
from partwise.solvers.sdm import SDM
from partwise.solvers.sgd import SGD

TOKENS, TAGS = [[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]]
run = CliRunner().invoke


# -- reading ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        ("family(beta=1, gamma=3)", Family(1, 3)),
        ("family(1, 3)", Family(1, 3)),
        (" family( gamma = 3,beta=inf ) ", Family(math.inf, 3)),
        ("family(beta=1e999, gamma=+.5)", Family(math.inf, 0.5)),
        ("ramp", LOSSES["ramp"]),
        ("ramp()", Ramp()),
        ("ramp(a=1, b=0)", LOSSES["ramp_do"]),
        ("ramp(1, b=0.25, beta=2)", Ramp(1, 0.25, 2)),
        ("rescaled", Rescaled()),
        ("rescaled(power=0.5)", Rescaled(0.5)),
        ("rescaled_ramp", RescaledRamp()),
        ("rescaled_ramp(2)", RescaledRamp(2)),
        ("soft_ramp(beta=3)", SoftRamp(3)),
        ("summed(gamma=2)", Summed(2)),
        ("summed(2, squared=True)", Summed(2, True)),
        ("squared_hinge(gamma=2)", SquaredHinge(2)),
    ],
)
def test_losses(text, loss):
    assert get_loss(text) == loss and get_loss(loss) is loss


@pytest.mark.parametrize(
    ("text", "solver"),
    [
        ("sdm", SDM()),
        ("pegasos(project=False)", Pegasos(project=False)),
        ("nslack(variant='b')", NSlack("b")),
        ('nslack("b", 1, None)', NSlack("b", 1, None)),
        ("sgd(eta=0.3)", SGD(eta=0.3)),
        ("sgd(eta='auto')", SGD()),
        ("cccp", CCCP()),
        ("cccp(epochs=10)", CCCP(epochs=10)),
        ("cccp(solver='sdm', epochs=10)", CCCP(SDM(), 10)),
        ("cccp(sdm(cached_passes=3), epochs=5)", CCCP(SDM(cached_passes=3), 5)),
        ("cccp(pegasos)", CCCP(Pegasos())),
        ("cccp(pegasos(ball='paper'), targets_at='current')", CCCP(Pegasos(ball="paper"), targets_at="current")),
        ("""cccp(solver="nslack(variant='b')")""", CCCP(NSlack("b"))),
    ],
)
def test_solvers(text, solver):
    assert get_solver(text) == solver and repr(get_solver(text)) == repr(solver)


def test_a_solver_that_needs_convex_losses_still_comes_inside_cccp():
    assert get_solver("nslack(variant='b')", None, LOSSES["ramp"]) == CCCP(NSlack("b"))
    assert get_solver("cccp(sdm(cached_passes=3))", None, LOSSES["ramp"]) == CCCP(SDM(cached_passes=3))


def test_every_record_is_read_as_it_is_spelled():
    solvers = [with_other_values(kind) for kind in SOLVERS.values()] + [kind() for kind in SOLVERS.values()]
    around = [CCCP(s, epochs=3) for s in solvers if s.takes != "differences"] + [CCCP(), CCCP(epochs=4)]
    for solver in [*solvers, *around]:
        text = SOLVER_SPELLING.spell(solver)
        assert get_solver(text) == solver, text
    for loss in [*EVERY_LOSS, *LOSSES.values(), Family(0.1 + 0.2, 1e-300), Family(np.float64(0.3), 2), Ramp(2**60 + 1)]:
        assert get_loss(LOSS_SPELLING.spell(loss)) == loss == get_loss(loss.name)
    assert [loss.name for loss in EVERY_LOSS] == [
        "family(beta=3, gamma=0.5)", "ramp(a=0.5, b=2, beta=0.3)", "soft_ramp(beta=3, gamma=0.5)", "rescaled(power=0.7)",
        "rescaled_ramp(power=0.3)", "summed(gamma=2.5)", "summed(gamma=2.5, squared=True)", "squared_hinge(gamma=0.3)",
    ]  # fmt: skip
    assert SOLVER_SPELLING.spell(CCCP(NSlack("b", epsilon=0.1), 5)) == "cccp(solver=nslack(variant='b', epsilon=0.1), epochs=5)"


def test_every_field_has_a_type_that_can_be_checked():
    for kind in [*LOSS_KINDS.values(), *SOLVERS.values(), CCCP]:
        hints = typing.get_type_hints(kind)
        for field in dataclasses.fields(kind):
            assert all(o in spelling.KINDS or o in (typing.Any, Solver) for o in spelling.options_of(hints[field.name])), kind


# -- refusing ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hing", "'loss' parameter must be one of 'perceptron', 'hinge'.*'family', .*Got 'hing' instead. Did you mean 'hinge'?"),
        ("softramp(beta=1)", "Got 'softramp(beta=1)' instead. Did you mean 'soft_ramp'?"),
        ("Family(1, 2)", "Did you mean 'family'?"),
        ("", "Got '' instead"),
        ("ramp(a=1", "Got 'ramp(a=1' instead. It is not of the form name(parameter=value, ..)."),
        ("hinge(gamma=2)", "loss 'hinge(gamma=2)': 'hinge' has no parameters of its own; it is family(beta=inf, gamma=1)."),
        ("family", "loss 'family': it needs beta and gamma: family(beta, gamma)."),
        ("family(beta=1)", "it needs gamma: family(beta, gamma)."),
        ("ramp(c=1)", "ramp has no parameter 'c'. It is ramp(a=1, b=1, beta=inf)."),
        ("family(beta=1, gama=3)", "no parameter 'gama'. Did you mean 'gamma'? It is family(beta, gamma)."),
        ("summed(1, True, 2)", "there are 3 parameters, but summed has 2: summed(gamma=1, squared=False)."),
        ("ramp(1, a=2)", "the parameter 'a' is given twice"),
        ("ramp(a=1, a=2)", "the parameter 'a' is given twice"),
        ("ramp(a='1')", "a must be a number, got '1': ramp(a=1, b=1, beta=inf)."),
        ("ramp(a=True)", "a must be a number, got True"),
        ("ramp(a=None)", "a must be a number, got None"),
        ("ramp(a=-1)", "The 'a' parameter of Ramp must be a float in [0, inf). Got -1 instead."),
        ("ramp(beta=-inf)", "The 'beta' parameter of Ramp must be a float in (0, inf]. Got -inf instead."),
        ("ramp(a=nan)", "'nan' is no value for a parameter, which is a number, a string in quotes, True, False, None or inf."),
        ("ramp(a=hinge)", "'hinge' is no value for a parameter"),
        ("ramp(a=1" + "0" * 30 + ")", "is too large"),
        ("ramp(a=" + "1" * 300 + ")", "must have at most 300 characters. Got 308"),
    ],
)
def test_losses_that_are_none(text, message):
    with pytest.raises(ValueError) as caught:
        get_loss(text)
    for part in message.split(".*"):
        assert part in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pegasus", "'solver' parameter must be one of 'auto', 'perceptron', .*'cccp'.*Did you mean 'pegasos'?"),
        (
            "pegasos(project=0)",
            "project must be True or False, got 0: pegasos(average=True, average_power=2, project=True, ball='duality').",
        ),
        (
            "sdm(cached_passes=3.5)",
            "cached_passes must be an int, got 3.5: sdm(cached_passes=30, average=False, tau=0, inexact=0.1, shrinking=True).",
        ),
        ("cccp(epochs='3')", "epochs must be an int or None, got '3': cccp(solver=sdm, epochs=None, targets_at='model')."),
        ("cccp(solver=3)", "solver must be a solver, got 3"),
        ("cccp(solver=None)", "solver must be a solver, got None"),
        ("cccp(spam)", "'solver' parameter must be one of.*Got 'spam' instead"),
        ("cccp(solver='spam(1)')", "Got 'spam(1)' instead"),
        ("cccp(sdm(cached=3))", "solver 'sdm(cached=3)': sdm has no parameter 'cached'."),
        ("cccp(cccp)", "The 'solver' parameter of CCCP must be a solver of convex problems"),
        ("nslack('c')", "The 'variant' parameter of NSlack must be 'a' or 'b'. Got 'c' instead."),
        ("sgd(eta=sdm)", "'sdm' is no value for a parameter"),
        ("auto()", "Got 'auto()' instead"),
    ],
)
def test_solvers_that_are_none(text, message):
    with pytest.raises(ValueError) as caught:
        get_solver(text)
    for part in message.split(".*"):
        assert part in str(caught.value)


@pytest.mark.parametrize("value", [None, 3, b"hinge", ["hinge"], Family, SDM])
def test_what_is_no_text(value):
    for get in (get_loss, get_solver):
        with pytest.raises(ValueError, match="parameter must be one of"):
            get(value)


HOSTILE = [
    "__import__('os').system('touch spelled')",
    "__import__('os')",
    "ramp(a=__import__('os').system('touch spelled'))",
    "ramp(a=open('spelled', 'w'))",
    "ramp(__class__)",
    "ramp.__init__(1)",
    "ramp.__class__",
    "ramp(a=ramp.a)",
    "(ramp)(1)(2)",
    "ramp(*(1, 2))",
    "ramp(**dict(a=1))",
    "ramp(a=(1, 2))",
    "ramp(a=[1])",
    "ramp(a={})",
    "ramp(a=lambda: 1)",
    "lambda: 0",
    "(lambda: 0)()",
    "ramp(a=1 if True else 2)",
    "ramp(a=not 1)",
    "ramp(x for x in y)",
    "ramp(a=1 + 1)",
    "ramp(a=10**9**9)",
    "10**9**9",
    "ramp(a=9**9**9**9)",
    "ramp(a=--1)",
    "ramp(a=1j)",
    "ramp(a=b'x')",
    "ramp(a=f'x')",
    "ramp(a=...)",
    "ramp(a=-True)",
    "ramp(a='x' * 1000000000)",
    "ramp(a := 1)",
    "ramp(a=1); print(1)",
    "ramp(a=1)\nimport os",
    "ramp(a=1) # why",
    "ramp(a=1)\0",
    "ramp(ａ=1)",
    "r\ud800",
    "ramp(a=\\\n1)",
    "(" * 250 + "ramp" + ")" * 40,
    "(" * 1_000_000,
    "ramp(" * 59,
    "cccp(" * 50 + ")" * 50,
    "cccp(" * 1_000_000 + ")" * 1_000_000,
    "ramp(a=" + "-" * 290 + "1)",
    "cccp(solver=" + "not " * 70 + "1)",
    "cccp(solver=" + "-" * 280 + "1)",
    "1." + "ramp." * 58 + "a",
    "1" * 10_000_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:30]))
@pytest.mark.filterwarnings("error")
def test_hostile_texts_are_refused_and_not_run(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for get in (get_loss, get_solver):
        with pytest.raises(ValueError) as caught:
            get(text)
        assert len(str(caught.value)) < 1500
    assert os.listdir(tmp_path) == []


# -- users ------------------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("loss", "solver"),
    [
        ("family(beta=1, gamma=3)", "lbfgs(memory=3)"),
        ("ramp(a=1, b=0.5)", "cccp(sdm(cached_passes=2), epochs=2)"),
        ("hinge", "auto"),
    ],
)
def test_estimators_take_texts_and_keep_them(loss, solver, tmp_path, capsys):
    with interpret():
        model = SequenceLabeler(loss=loss, solver=solver, max_epochs=3, random_state=0, verbose=1).fit(TOKENS, TAGS)
        same = SequenceLabeler(get_loss(loss), solver=get_solver(solver) if solver != "auto" else solver, max_epochs=3)
        np.testing.assert_array_equal(model.weights_, same.set_params(random_state=0).fit(TOKENS, TAGS).weights_)
        if solver != "auto":
            assert repr(SOLVER_SPELLING.spell(get_solver(solver))) in capsys.readouterr().err
        model.save(tmp_path / "m")
        again = partwise.load(tmp_path / "m")
        assert (again.loss, again.solver) == (loss, solver) and again.predict(TOKENS) == model.predict(TOKENS)


def test_a_wrong_text_is_refused_before_any_work():
    with pytest.raises(ValueError, match="family has no parameter 'gama'"):
        SequenceLabeler(loss="family(beta=1, gama=3)").fit(None, None)
    with pytest.raises(ValueError, match="nslack has no parameter 'epsilom'. Did you mean 'epsilon'"):
        SequenceLabeler(solver="nslack(epsilom=1)").fit(None, None)


def test_the_command_line(tmp_path):
    (tmp_path / "train.txt").write_text("a x\nb y\n\nb y\na x\n\n")
    options = ["train", "tag", str(tmp_path / "train.txt"), "-o", str(tmp_path / "m"), "-t", "words", "--epochs", "5"]
    with interpret():
        done = run(app, [*options, "--loss", "family(beta=1, gamma=3)", "--solver", "lbfgs(memory=3)"])
        assert done.exit_code == 0, done.output
        done = run(app, ["inspect", str(tmp_path / "m")])
        assert done.exit_code == 0 and "family(beta=1, gamma=3)" in done.output
        (tmp_path / "test.txt").write_text("b\na\n\n")
        done = run(app, ["predict", str(tmp_path / "m"), str(tmp_path / "test.txt")])
        assert done.exit_code == 0 and [line.split()[-1] for line in done.output.split("\n") if line.strip()] == ["y", "x"]
        done = run(app, [*options, "--loss", "ramp(b=0.5)", "--solver", "cccp(nslack(variant='b'), epochs=2)"])
        assert done.exit_code == 0, done.output
        assert partwise.load(tmp_path / "m").solver == "cccp(nslack(variant='b'), epochs=2)"
        done = run(app, [*options, "--loss", "family(beta=0, gamma=3)"])
        assert done.exit_code == 1 and "The 'beta' parameter of Family must be a float" in done.stderr
