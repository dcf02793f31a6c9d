"""`RnaFolder`: training, answers, the model file, scikit-learn's habits."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import RnaFolder, kernels, solve
from partwise.engine.compilation import interpret
from partwise.structures import folding_problem
from partwise.tasks.common.model_file import ModelFileError, load
from partwise.tasks.folding.data import read_sequences
from partwise.tasks.folding.files import read_dot_bracket, read_rna
from small_rna import hairpins


@pytest.fixture(autouse=True)
def interpreted():
    """Sequences are tiny here: compiling takes longer than interpreting."""
    with interpret():
        yield


@pytest.fixture(scope="module")
def fitted():
    with interpret():
        return RnaFolder(max_epochs=4, random_state=0).fit(*hairpins())


def test_it_learns(fitted):
    sequences, structures = hairpins(4, seed=1)
    assert fitted.predict(sequences) == structures
    assert fitted.score(sequences, structures) == 1.0
    scores = fitted.base_pairs(sequences, structures)
    assert scores.sensitivity == scores.selectivity == scores.complete == 1.0 and scores.sequences == 4
    assert fitted.predict(["", "A", "NNNN"]) == ["", ".", "...."]
    assert set(fitted.weights_by_name()) == set(fitted.tying_.names)


def test_probabilities_and_the_best_few(fitted):
    sequences, structures = hairpins(2, seed=2)
    for sequence, structure, table in zip(sequences, structures, fitted.predict_marginals(sequences), strict=True):
        assert table.shape == (len(sequence),) * 2 and np.allclose(table, table.T)
        partners = read_dot_bracket(structure)[0]
        assert all(table[i, j] > 0.5 for i, j in enumerate(partners) if j >= 0) and table.sum(0).max() <= 1.0 + 1e-9
    few = fitted.predict_kbest(sequences[:1], k=3)[0]
    assert len(few) == 3 and few[0][0] == structures[0] and few[0][1] >= few[1][1] >= few[2][1]
    assert fitted.decision_value(sequences[:1])[0] == pytest.approx(few[0][1])
    assert fitted.decision_value(sequences[:1], [few[1][0]])[0] == pytest.approx(few[1][1])
    with pytest.raises(ValueError, match="k must be an int"):
        fitted.predict_kbest(sequences, k=0)


def test_gamma_trades_selectivity_for_sensitivity(fitted):
    sequences, structures = hairpins(3, seed=3)
    few, many = (RnaFolder(gamma=gamma) for gamma in (0.01, 100.0))
    for model in (few, many):
        model.weights_, model.temperature_ = 0.2 * fitted.weights_, 1.0
    counts = [sum(text.count("(") for text in model.predict(sequences)) for model in (few, many)]
    assert counts[0] < sum(text.count("(") for text in structures) <= counts[1]
    hot = RnaFolder()
    hot.weights_, hot.temperature_ = fitted.weights_, 1e6  # all structures are equally likely: no pair is
    assert not any("(" in text for text in hot.predict(sequences)) and fitted.predict(sequences) == structures


@pytest.mark.parametrize(
    ("loss", "solver"), [("hinge", "dca"), ("crf", "lbfgs"), ("hinge", "sdm"), ("ramp", "pegasos"), ("softmax_margin", "dca")]
)
def test_losses_and_solvers(loss, solver):
    sequences, structures = hairpins(3)
    model = RnaFolder(loss, C=0.5, solver=solver, max_epochs=4, tol=0.2, random_state=0)
    assert model.fit(sequences, structures).score(sequences, structures) > 0.9
    if loss in ("hinge", "ramp"):
        with pytest.raises(ValueError, match="fits scores, not probabilities"):
            model.predict_marginals(sequences)


def test_two_solvers_meet_at_the_optimum():
    sequences, structures = hairpins(2, seed=4)
    problem = folding_problem(sequences, [read_dot_bracket(text)[0] for text in structures])
    found = [solve(problem, "hinge", solver, 0.02, max_epochs=60, tol=1e-3, seed=0) for solver in ("sdm", "bcfw")]
    assert found[0].converged and found[0].primal == pytest.approx(found[1].primal, rel=5e-3)
    assert found[0].dual <= found[1].primal + 1e-9


def test_costs_are_what_they_say():
    sequences, structures = ["GGGAAACCC"], ["(((...)))"]
    given = read_sequences(sequences, structures)
    other = read_dot_bracket("((.....))")[0].astype(np.int32)
    wrong = np.full(9, -1, np.int32)
    wrong[[1, 7, 2, 6]] = 7, 1, 6, 2
    for parameters, expected in (
        ({"trade_off": 0.0, "relative_cost": True}, [1 / 3, 1 / 3]),  # 1 - sensitivity
        ({"trade_off": 0.25}, [0.75, 0.75]),
        ({"trade_off": 1.0}, [0.0, 0.0]),
    ):
        problem, lost = RnaFolder(**parameters)._problem(given, labelled=True)
        assert lost == 0 and [kernels.cost(problem, 0, y) for y in (other, wrong)] == pytest.approx(expected)


def test_what_is_left_out_is_told():
    with pytest.warns(UserWarning, match="no base pair in the training structures"):
        assert RnaFolder(max_epochs=1).fit(["", "A", "AC"], ["", ".", ".."]).predict(["GGGAAAACCC", ""])[1] == ""
    with pytest.raises(ValueError, match="there are no structures of the held-out sequences"):
        RnaFolder(max_epochs=1).fit(*hairpins(2), validation=hairpins(2)[:1])
    with pytest.warns(UserWarning, match="2 pairs of the training structures cross others .* and 1 are impossible"):
        RnaFolder(max_epochs=1).fit(["GGCCAAAACCGGAA", "GAAAG"], ["((<<....))..>>", "(...)"])
    with pytest.raises(ValueError, match="sequence 0: some of its pairs cross"):
        RnaFolder(pseudoknots="refuse").fit(["GGCCAAAACCGGAA"], ["((<<....))..>>"])
    with pytest.raises(ValueError, match="<bytes>, line 2: some of its pairs cross"):
        RnaFolder(pseudoknots="refuse").fit(read_rna(b">a\nGGCCAAAACCGGAA\n((<<....))..>>\n"))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"C": 0}, r"'C' parameter of RnaFolder must be a float in the range \(0, inf\)"),
        ({"trade_off": 1.5}, "'trade_off' parameter"),
        ({"decode": "x"}, "'auto', 'best' or 'mea'"),
        ({"decode": "mea", "loss": "hinge"}, "needs probabilities"),
        ({"gamma": 0.0}, "'gamma' parameter"),
        ({"pairs": ("AX",)}, "such as 'GU'"),
        ({"max_loop": 40}, "'max_loop' parameter"),
        ({"pseudoknots": "keep"}, "'drop' or 'refuse'"),
        ({"relative_cost": 1}, "a bool"),
    ],
)
def test_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        RnaFolder(**parameters).fit(*hairpins(2))


@pytest.mark.parametrize(
    ("X", "y", "error", "message"),
    [
        ("ACGU", None, TypeError, "a list of strings"),
        (["ACGU"], None, ValueError, "no structures to learn from"),
        ([], [], ValueError, "at least one sequence"),
        (["ACGU"], ["...."] * 2, ValueError, "1 sequences, but 2 structures"),
        (["ACGU"], ["..."], ValueError, "has 4 bases, but its structure 3"),
        (["AC!U"], ["...."], ValueError, "sequence 0, base 3: '!' is no base"),
        (["ACGU"], ["(..."], ValueError, "sequence 0: the bracket '\\(' at 1 is never closed"),
        (["ACGU"], [[1, 5, -1, -1]], ValueError, "partner"),
    ],
)
def test_bad_input(X, y, error, message):
    with pytest.raises(error, match=message):
        RnaFolder(max_epochs=1).fit(X, y)


def test_a_long_sequence_asks_for_memory_first(fitted, monkeypatch):
    monkeypatch.setattr("partwise.engine.memory.available_memory", lambda: 1e8)
    with pytest.raises(MemoryError, match=r"sequence 0 has 2000 bases; folding it takes up to 0\.5 GB"):
        fitted.predict(["A" * 2000])
    with pytest.raises(MemoryError, match=r"sequence 1 has 2000 bases; folding it takes up to 1\.0 GB with n_jobs=2"):
        RnaFolder(n_jobs=2).fit(["", "A" * 2000], ["", "." * 2000])


def test_the_model_file(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    sequences, _ = hairpins(2, seed=5)
    for other in (RnaFolder.load(tmp_path / "model"), load(tmp_path / "model", plain=True)):
        assert other.predict(sequences) == fitted.predict(sequences) and other.parameters() == fitted.parameters()
        np.testing.assert_array_equal(other.weights_, fitted.weights_)
    damaged = (tmp_path / "model").read_bytes()
    (tmp_path / "damaged").write_bytes(damaged[:-8])
    with pytest.raises(ModelFileError):
        RnaFolder.load(tmp_path / "damaged")


def test_scikit_learn_habits():
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV

    sequences, structures = hairpins(4)
    model = clone(RnaFolder(loss="hinge", C=0.5, max_epochs=2, random_state=0))
    search = GridSearchCV(model, {"trade_off": [0.3, 0.7]}, cv=2).fit(sequences, structures)
    assert search.best_score_ > 0.5
    warm = RnaFolder(loss="hinge", max_epochs=1, warm_start=True, random_state=0).fit(sequences, structures)
    before = warm.weights_.copy()
    assert not np.array_equal(warm.fit(sequences, structures).weights_, before)
    stopped = RnaFolder(loss="hinge", max_epochs=2, early_stopping=True, validation_fraction=0.5, random_state=0)
    assert stopped.fit(sequences, structures, sample_weight=[1, 1, 0, 2]).result_.history[-1].validation >= 0.0
