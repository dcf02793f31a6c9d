"""The rule that fills in what users leave open: solver, C, epochs."""

import doctest
import math

import pytest

from partwise.losses import LOSSES, Family, Ramp, RescaledRamp, SoftRamp
from partwise.solvers import SOLVERS, can_minimise, defaults
from partwise.solvers.defaults import Choice, Defaults, choose, kind_of


def test_examples_in_the_text():
    assert doctest.testmod(defaults).failed == 0


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        ("hinge", "margin"),
        (Family(math.inf, 2.0), "margin"),
        ("crf", "log"),
        ("softmax_margin", "log"),
        (Family(3.0, 1.0), "log"),
        ("ramp", "ramp"),
        ("ramp_do", "ramp"),
        (Ramp(0.0, 1.0, 1.0), "ramp"),
        ("ramp_2", "no margin"),
        ("perceptron", "no margin"),
        ("soft_ramp", "soft ramp"),
        (SoftRamp(2.0, 1.0), "soft ramp"),
        ("slack", "rescaled"),
        (RescaledRamp(1.0), "rescaled ramp"),
        ("summed", "summed"),
        ("squared_summed", "summed"),
        ("squared_hinge", "squared"),
    ],
)
def test_kinds(loss, kind):
    assert kind_of(loss) == kind


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("streamed", [False, True])
def test_auto_is_always_a_solver_that_can(loss, streamed):
    choice = choose(loss, streamed=streamed)
    assert choice.solver in can_minimise(LOSSES[loss]) or (choice.solver, loss) == ("out_of_fold", "ramp")
    assert choice.C > 0.0


@pytest.mark.parametrize("loss", LOSSES)
def test_with_an_l1_penalty_too(loss):
    choice = choose(loss, l1_ratio=0.5)
    assert choice.solver == ("owlqn" if LOSSES[loss].has_gradient else "admm")
    assert choice.C == defaults.SPARSE_C


@pytest.mark.parametrize("solver", SOLVERS)
def test_what_users_say_stays(solver):
    assert choose("hinge", solver=solver, C=7.0, epochs=3, average=False) == Choice(solver, 7.0, 3, False)
    assert choose("hinge", solver=SOLVERS[solver](), C=7.0).solver == solver


def test_the_ramp_gets_no_solver_that_makes_it_useless():
    assert choose("ramp").solver == "out_of_fold" and choose("ramp", can_judge=False).solver == "pegasos"
    assert choose("ramp_do").solver == "pegasos"
    assert choose("ramp", spread=4.0).C == choose("hinge", spread=4.0).C  # what judges leave is learnt from as by the hinge


def test_c_of_a_step_is_a_share():
    whole = choose("hinge").C
    for epochs in (1, 5, 20):
        assert choose("hinge", solver="dca", epochs=epochs).C == pytest.approx(whole / epochs)
        assert choose("hinge", solver="sdm", epochs=epochs).C == whole
    assert choose("hinge", solver="dca", C=whole).C == whole  # what users say is taken as it is


def test_a_stream_gets_what_can_follow_it():
    assert choose("hinge", streamed=True).solver == choose("ramp", streamed=True).solver == "dca"
    assert choose("hinge", solver="pegasos", streamed=True).solver == "pegasos"


def test_features_of_any_scale():
    a, b = choose("hinge", spread=1.0), choose("hinge", spread=100.0)
    assert a.C == pytest.approx(100 * b.C)
    assert choose("hinge", C=2.0, spread=100.0).C == 2.0
    for useless in (None, 0.0, math.inf, math.nan):
        assert choose("hinge", spread=useless) == choose("hinge")


def test_few_examples_get_more_epochs():
    assert choose("hinge", examples=100_000) == choose("hinge", examples=100) == choose("hinge")
    assert choose("hinge", examples=50).epochs == 20
    assert choose("hinge", examples=1).epochs == defaults.MOST_EPOCHS
    assert choose("hinge", solver="dca", examples=50).C == pytest.approx(choose("hinge").C / 20)
    assert choose("hinge", solver="sdm", examples=50).epochs is None
    assert choose("hinge", epochs=3, examples=50).epochs == 3


def test_a_task_may_differ():
    task = Defaults(C={"log": 0.5}, solver={"log": "lbfgs"}, epochs={"sdm": 4})
    assert choose("crf", task=task) == Choice("lbfgs", 0.5, None, None)
    assert choose("hinge", task=task) == choose("hinge")
    assert choose("hinge", task=task, solver="sdm").epochs == 4


def test_a_task_that_names_no_kind_is_refused():
    with pytest.raises(ValueError, match="kinds of losses, margin, squared, log, .* Got 'hinge'"):
        Defaults(C={"hinge": 1.0})
