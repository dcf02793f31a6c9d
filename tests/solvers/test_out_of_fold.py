"""Out-of-fold refusal: what it refuses, that it is the hinge where nothing is wrong, and that a run can be cut in two."""

import numpy as np
import pytest

from oracle_checks import check_agreement
from partwise import kernels
from partwise.solvers import OutOfFold, get_solver, make_task, solve
from partwise.solvers.checkpoint import Checkpoint
from partwise.solvers.loop import run
from partwise.solvers.out_of_fold import OutOfFoldState
from partwise.solvers.pegasos import Pegasos
from partwise.structures import chain_problem, multiclass_problem
from partwise.structures.dependency.problem import tree_problem

EPOCHS = 4
SHORT = OutOfFold(epochs=EPOCHS)


def sequences(n=60, wrong=0, tokens=0, seed=0):
    """Features all but tell the labels; the first `wrong` sequences have random labels, `tokens` tokens elsewhere a wrong one."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(4, 9, n)
    true = rng.integers(0, 3, lengths.sum())
    x = np.eye(3)[true] + 0.25 * rng.normal(size=(len(true), 3))
    gold, starts = true.copy(), np.concatenate([[0], np.cumsum(lengths)])
    gold[: starts[wrong]] = rng.integers(0, 3, starts[wrong])
    some = starts[wrong] + rng.permutation(len(true) - starts[wrong])[:tokens]
    gold[some] = (gold[some] + 1) % 3
    return chain_problem(x, lengths, gold, 3), gold != true


def fitted(problem, **more):
    return solve(problem, "ramp", SHORT, C=0.1, tol=0, evaluate="never", **more)


def test_wrong_sequences_are_left_out_and_wrong_tokens_unknown():
    problem, wrong = sequences(wrong=10, tokens=15)
    state = fitted(problem).state
    assert isinstance(state, OutOfFoldState) and state.is_judged
    assert not state.left_out[10:].any() and state.left_out[:10].sum() >= 8
    found = state.refused & wrong
    assert found.sum() >= 0.8 * wrong.sum() and found.sum() >= 0.9 * state.refused.sum()
    last = fitted(problem).rounds[-1]
    assert 10 <= last.refused <= 30


def test_what_is_refused_is_unknown_and_what_is_believed_a_target_for_dual_solvers_only():
    """Believed labels may be wrong: the last problem is the one of labels that nobody knows."""
    problem, _ = sequences(tokens=15)
    state = fitted(problem).state
    starts, _ = kernels.sizes(problem)
    assert np.count_nonzero(state.refused) >= 10
    task = make_task(problem, "ramp", 0.1)
    last = SHORT.convex(task, state).problem
    assert kernels.is_partial(last)
    for i in range(kernels.n_examples(last)):
        theta, y = np.zeros(kernels.n_parts(last, i)), np.zeros(kernels.length(last, i), np.int32)
        theta[: 3 * len(y)] = np.tile([0.0, 0.0, 5.0], len(y))
        kernels.complete(last, i, theta, y)
        at = slice(starts[i], starts[i + 1])
        np.testing.assert_array_equal(y, np.where(state.refused[at], 2, problem.gold[at]))
    assert not kernels.is_partial(OutOfFold(solver=get_solver("sdm")).convex(task, state).problem)


def test_where_nothing_is_wrong_it_is_the_hinge():
    problem, _ = sequences()
    found = fitted(problem)
    hinge = solve(problem, "hinge", "pegasos", C=0.1, max_epochs=EPOCHS, tol=0, evaluate="never")
    np.testing.assert_array_equal(found.w, hinge.w)
    assert [r.refused for r in found.rounds] == [0] and found.n_epochs == SHORT.default_epochs


def test_few_examples_are_not_judged():
    problem = kernels.take(sequences(wrong=3)[0], np.arange(9))
    hinge = solve(problem, "hinge", "pegasos", C=0.1, max_epochs=3 * EPOCHS, tol=0, evaluate="never")
    found = fitted(problem)
    np.testing.assert_array_equal(found.w, hinge.w)
    assert found.rounds == []


@pytest.mark.slow
def test_classes_and_partial_labels():
    rng = np.random.default_rng(1)
    true = rng.integers(0, 4, 200)
    x = 2 * np.eye(4)[true] + 0.4 * rng.normal(size=(200, 4))
    gold = true.copy()
    gold[:30] = (gold[:30] + 1 + rng.integers(0, 3, 30)) % 4
    state = fitted(multiclass_problem(x, gold, 4)).state
    assert state.left_out[:30].sum() >= 27 and state.left_out[30:].sum() <= 3
    gold[60:70] = 4  # not known: never refused
    state = fitted(multiclass_problem(x, gold, 4, known=np.ones((1, 4), bool))).state
    assert state.left_out[:30].sum() >= 25 and not state.left_out[60:70].any()


def test_a_run_from_a_checkpoint_is_the_run(tmp_path):
    problem, _ = sequences(wrong=10)
    whole = fitted(problem)
    for stop in (2, EPOCHS + 1, 2 * EPOCHS + 1):  # in each of the three stages
        task = make_task(problem, "ramp", 0.1)
        saver = Checkpoint(tmp_path / f"run{stop}", 0.0)
        assert saver.load(SHORT, task) is None
        options = {"max_epochs": SHORT.default_epochs, "tol": 0.0, "evaluate": "never"}
        run(SHORT, task, callbacks=[saver.save, lambda record, stop=stop: record.epoch == stop], **options)
        rest = run(SHORT, task, resume=Checkpoint(tmp_path / f"run{stop}", 0.0).load(SHORT, task), **options)
        np.testing.assert_array_equal(rest.w, whole.w)


def test_held_out_data_judge_the_last_problem_only():
    problem, _ = sequences(wrong=10)
    found = fitted(problem, validation=sequences(20, seed=5)[0], patience=1)
    assert all(np.isnan(record.validation) for record in found.history[: 2 * EPOCHS])
    assert not np.isnan(found.history[-1].validation) and found.n_epochs > 2 * EPOCHS


def test_epochs_are_divided_and_parameters_checked():
    assert OutOfFold().within(12).epochs == 4 and OutOfFold().within(2).epochs == 1
    assert get_solver("out_of_fold(solver=dca, folds=3)").solver.name == "dca"
    problem, _ = sequences(30)
    assert solve(problem, "ramp", "out_of_fold", 0.1, max_epochs=2, tol=0).n_epochs == 2  # judged, not solved: their mean
    for wrong in ({"folds": 1}, {"repeats": 0}, {"epochs": 1.5}, {"solver": SHORT}, {"solver": "dca"}):
        with pytest.raises(ValueError, match=f"'{next(iter(wrong))}' parameter of OutOfFold"):
            OutOfFold(**wrong)
    with pytest.raises(ValueError, match="ramp losses with a convex half that 'pegasos' takes"):
        solve(problem, "hinge", "out_of_fold")
    assert not OutOfFold(Pegasos()).accepts(get_loss_of("soft_ramp"))


def test_what_is_not_plausible_is_said():
    problem, _ = sequences(wrong=10)
    found = fitted(problem)
    assert found.caution == ""
    found.state.left_out[:35] = True
    task = make_task(problem, "ramp", 0.1)
    assert SHORT.caution(task, found.state, 1.0).startswith("35 of 60 examples are refused as a whole")
    n = 120  # an example has a feature of its own: everything can be learnt by heart
    alone = multiclass_problem(np.eye(n), np.arange(n) % 3, 3)
    by_heart = solve(alone, "ramp", "cccp(sdm)", 1000.0, max_epochs=50)
    assert by_heart.caution.startswith("the ramp has refused nothing") and by_heart.rounds[-1].refused == 0
    assert solve(alone, "ramp", "cccp(sdm)", 0.01, max_epochs=50).caution == ""


@pytest.mark.parametrize(("lost", "share", "harmed"), [(True, 0.1, True), (False, 0.1, False), (True, 10.0, False)])
def test_where_refusing_makes_judges_worse_nothing_is_refused(lost, share, harmed, monkeypatch):
    """Unless what is lost is little, beside what is refused."""
    monkeypatch.setattr("partwise.solvers.out_of_fold.HARM", share)
    problem, _ = sequences(wrong=10)
    judgement, rounds = OutOfFold.judgement, []

    def worse(self, task, state):
        found = judgement(self, task, state)
        rounds.append(found.contradicted.copy())
        if len(rounds) == 2:  # twenty that the first judges knew; or as many that they did not
            at = np.flatnonzero(~rounds[0] if lost else rounds[0])[:20]
            found.contradicted[:] = rounds[0]
            found.contradicted[at] = lost
        return found

    monkeypatch.setattr(OutOfFold, "judgement", worse)
    found = fitted(problem)
    hinge = solve(problem, "hinge", "pegasos", C=0.1, max_epochs=EPOCHS, tol=0, evaluate="never")
    assert found.state.harmed == harmed and (found.rounds[-1].refused == 0) == harmed and len(rounds) == 2
    assert np.array_equal(found.w, hinge.w) == harmed
    assert found.caution.startswith("nothing is refused, for models that refused") == harmed


def get_loss_of(name):
    from partwise.losses.records import get_loss

    return get_loss(name)


# ---------------------------------------------------------------------------------------------------------------------
# The kernels that it needs
# ---------------------------------------------------------------------------------------------------------------------


def trees():
    rng, lengths = np.random.default_rng(2), [3, 0, 2]
    arcs = sum(n * (n + 1) for n in lengths)
    return tree_problem(rng.normal(size=(arcs, 2)), lengths, [0, 1, 2, 2, 0])


@pytest.mark.interpreted
@pytest.mark.parametrize("make", [lambda: sequences(3)[0], trees])
def test_what_is_forgotten_costs_nothing(make):
    problem = kernels.take(make(), np.arange(2))
    starts, _ = kernels.sizes(problem)
    which = np.arange(starts[-1]) % 2 == 0
    targets = np.concatenate([list(kernels.outputs(problem, i))[-1] for i in range(2) if starts[i] < starts[i + 1]])
    forgot = kernels.forget(problem, which, targets)
    assert kernels.is_partial(forgot)
    for i in range(2):
        at = slice(starts[i], starts[i + 1])
        gold = problem.gold[at]
        for y in kernels.outputs(problem, i):
            assert kernels.cost(forgot, i, y) == np.count_nonzero((y != gold) & ~which[at])
        theta = np.zeros(kernels.n_parts(problem, i))
        target = kernels.target(forgot, i)
        assert np.isfinite(kernels.value_of(forgot, i, theta, target))  # an output, a tree
        if which[at].any():
            np.testing.assert_array_equal(target[which[at]], targets[at][which[at]])


@pytest.mark.interpreted
def test_agreement_by_enumeration():
    rng = np.random.default_rng(0)
    chain = chain_problem(rng.normal(size=(6, 2)), [3, 0, 2, 1], rng.integers(0, 3, 6), 3)
    classes = multiclass_problem(rng.normal(size=(4, 2)), [0, 1, 2, 0], 3)
    for problem in (chain, classes, trees()):
        check_agreement(problem, rng.normal(size=kernels.n_weights(problem)))
