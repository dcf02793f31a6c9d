"""`RnaFolder`: training, answers, the model file, scikit-learn's habits; readers and measures of RNA structures."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import kernels
from partwise.engine.compilation import interpret
from partwise.estimators import RnaFolder
from partwise.experiments.do_table_3 import Cell, split
from partwise.metrics import base_pair_scores
from partwise.solvers import solve
from partwise.structures.folding.kernels import folding_problem
from partwise.tasks.common.model_file import ModelFileError, load
from partwise.tasks.folding.data import read_sequences, read_structure
from partwise.tasks.folding.drawing import as_svg, draw
from partwise.tasks.folding.estimator import Folder
from partwise.tasks.folding.files import read_dot_bracket, read_rna, write_dot_bracket


@pytest.fixture(autouse=True)
def interpreted():
    """Sequences are tiny here: compiling takes longer than interpreting."""
    with interpret():
        yield


def hairpins(n=6, seed=0):
    """Short sequences whose structure is one helix of G and C around a loop of A and U."""
    rng = np.random.default_rng(seed)
    sequences, structures = [], []
    for _ in range(n):
        stem, loop = int(rng.integers(2, 4)), int(rng.integers(3, 5))
        left = "".join(rng.choice(list("GC"), stem))
        right = left[::-1].translate(str.maketrans("GC", "CG"))
        sequences.append("A" + left + "".join(rng.choice(list("AU"), loop)) + right)
        structures.append("." + "(" * stem + "." * loop + ")" * stem)
    return sequences, structures


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
    few, many = (Folder(gamma=gamma) for gamma in (0.01, 100.0))
    for model in (few, many):
        model.weights_, model.temperature_ = 0.2 * fitted.weights_, 1.0
    counts = [sum(text.count("(") for text in model.predict(sequences)) for model in (few, many)]
    assert counts[0] < sum(text.count("(") for text in structures) <= counts[1]
    hot = Folder()
    hot.weights_, hot.temperature_ = fitted.weights_, 1e6  # all structures are equally likely: no pair is
    assert not any("(" in text for text in hot.predict(sequences)) and fitted.predict(sequences) == structures


@pytest.mark.parametrize(
    ("loss", "solver"), [("hinge", "dca"), ("crf", "lbfgs"), ("hinge", "sdm"), ("ramp", "auto"), ("softmax_margin", "dca")]
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
    with pytest.raises(MemoryError, match=r"sequence 0 has 2000 bases; folding it takes up to 0\.6 GB"):
        fitted.predict(["A" * 2000])
    with pytest.raises(MemoryError, match=r"sequence 1 has 2000 bases; folding it takes up to 1\.2 GB with n_jobs=2"):
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


# ---------------------------------------------------------------------------------------------------------------------
# Readers, measures, pictures
# ---------------------------------------------------------------------------------------------------------------------

FASTA = b">one\nGGGAAAACCC\n(((....))) (-3.40)\n>two\nGGG\nAAACCC\n(((.\n..)))\n>three\nACGU\n"


def test_reading_fasta():
    data = read_rna(FASTA)
    assert data.names == ["one", "two", "three"] and data.sequences[1] == "GGGAAACCC" and data.lines == [2, 5, 10]
    assert data.partners[1].tolist() == [8, 7, 6, -1, -1, -1, 2, 1, 0] and data.partners[2] is None
    assert not data.has_structures and "3 sequences, 2 structures" in repr(data) and data.lengths.tolist() == [10, 9, 4]
    plain = read_rna(b"GGGAAACCC\n(((...)))\nGGGAAACC\n")
    assert plain.names == ["sequence-1", "sequence-2"] and plain.partners[0] is not None
    short = read_rna(b">none\n\n>one\nA\n.\n>two\nGC\n..\n")
    assert short.has_structures and short.lengths.tolist() == [0, 1, 2] and short.names == ["none", "one", "two"]
    wrapped = read_rna(b">a\nGGAACCAAA\n<<..>\n>...\n>b\nACGU\n")  # a structure goes on with a bracket that looks like a title
    assert wrapped.names == ["a", "b"] and wrapped.partners[0][:6].tolist() == [5, 4, -1, -1, 1, 0]
    again = read_rna(data.take([0, 1]).with_structures(["(((....)))", "(((...)))"]).encode())
    assert again.sequences == data.sequences[:2] and again.partners[1].tolist() == data.partners[1].tolist()


def test_reading_a_table():
    text = (
        b"id\tfamily\tfold\tsequence\tstructure\na\t5s\t2\tGGAAACC\t((...))\nb\t5s\t0\tGGAAACC\t(<...)>\nc\ttRNA\t1\tACGT\t....\n"
    )
    data = read_rna(text)
    assert data.families == ["5s", "5s", "tRNA"] and data.folds == ["2", "0", "1"] and data.pseudoknots.tolist() == [0, 1, 0]
    assert read_rna(b">a\nACGU\n>b\nacgt\n>c\nACG\n").distinct().names == ["a", "c"]
    assert data.take([1, 2]).pseudoknots.tolist() == [1, 0]
    assert data.distinct().names == ["a", "c"] and len(read_rna(text, first=1)) == 1
    with pytest.raises(ValueError, match="line 3: 1 pairs cross others"):
        read_rna(text, pseudoknots="refuse")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "there are no sequences"),
        (b">a\nACGU\n(..\n", "line 3: the structure has 3 characters, but its sequence has 4"),
        (b">a\nGGGAAAACCC\n(((....))\n>c\nACGU\n", "line 3: the structure has 9 characters, but its sequence has 10"),
        (b">a\nGGGAAACCC\n(((\n...)).\n", r"line 3: the bracket '\(' at 1 is never closed"),
        (b"sequence\tstructure\nACGUA\t.....\nACGUA\t(...(\n", r"line 3: the bracket '\(' at 5 is never closed"),
        (b">a\nACGU\n)...\n", r"line 3: the bracket '\)' at 1 closes none"),
        (b">a\nACGU\n(...\n", r"line 3: the bracket '\(' at 1 is never closed"),
        (b">a\nAC?U\n", "line 2, base 3: '\\?' is no base"),
        (b"sequence\tstructure\nACGU\n", "line 2: expected 2 cells"),
        (b"\xff\xff", "not valid utf-8"),
    ],
)
def test_files_with_errors(text, message):
    with pytest.raises(ValueError, match=message):
        read_rna(text)


def test_dot_brackets():
    partners, crossing = read_dot_bracket("((..[[))..]]{..}")
    assert crossing == 2 and partners[12] == 15 and write_dot_bracket(partners) == "((....))....(..)"
    for given, left in (([3, 4, None, 0, 1], 1), ([4, 3, -1, 1, 0], 0)):
        partners, crossing = read_structure(given, "it")
        assert crossing == left and partners.tolist() == ([-1, 4, -1, -1, 1] if left else given)
    assert read_dot_bracket("<<...>>")[0].tolist() == [6, 5, -1, -1, -1, 1, 0]  # other brackets that cross none are pairs too


def test_measures():
    truth = read_dot_bracket("(((...)))..")[0]
    found = read_dot_bracket(".((....))..")[0]
    scores = base_pair_scores([truth, truth], [truth, found])
    assert scores.sensitivity == pytest.approx((1 + 0) / 2) and scores.complete == 0.5 and scores.pairs == 6
    slips = base_pair_scores([truth], [found], slips=True)
    assert slips.selectivity == 1.0 and slips.sensitivity == pytest.approx(1.0)  # each end is one base off
    none = np.full(11, -1)
    assert base_pair_scores([none], [none]).f1 == 1.0 and base_pair_scores([none], [truth]).f1 == 0.0
    assert base_pair_scores([truth], [none]).selectivity == 0.0 and np.isnan(base_pair_scores([], []).f1)
    with pytest.raises(ValueError, match="sequence 0"):
        base_pair_scores([truth], [none[:3]])


def test_pictures():
    partners = read_dot_bracket("((...))")[0]
    picture = as_svg("GGAAACC", partners, truth=read_dot_bracket("(.....)")[0], probabilities=np.eye(7), title="<a>")
    assert picture.startswith("<svg") and picture.count("<path") == 3 and "&lt;a&gt;" in picture
    with pytest.raises(ValueError, match="for each of 3 bases"):
        as_svg("GGA", partners)
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.add_subplot()
    draw(axes, "GGAAACC", partners, title="one")
    assert len(axes.patches) == 2


@pytest.mark.data
def test_archive(corpora):
    data = read_rna(corpora / "rna_archiveii" / "archiveii.tsv.gz")
    assert len(data) == 3864 and len(data.distinct()) == 3353 and (data.pseudoknots > 0).sum() == 1007
    for cell in (("sequence", "0"), ("sequence", "1"), ("family", "tRNA")):
        train, test = split(corpora, Cell(*cell, "crf", 10**6, 10**6, 1, False))
        assert len(train) + len(test) == 3353 and not set(train.sequences) & set(test.sequences)
        assert cell[0] == "sequence" or not set(train.families) & set(test.families)
    given = read_sequences(data.take(range(50)))
    assert RnaFolder()._problem(given, labelled=True)[1] < 10
