"""What a campaign found and must not come back: hostile files, nonsense that was taken for data, formats that run code."""

import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from partwise import (
    Aligner,
    Classifier,
    GraphLabeler,
    ModelFileError,
    Ranker,
    SequenceLabeler,
    datasets,
    interpret,
    load,
    read_columns,
)
from partwise.engine import memory
from partwise.features.arc_rows import arc_rows
from partwise.features.rows import make_rows
from partwise.files.named_arrays import dtype_called
from partwise.files.tensors import read_tensors, write_tensors
from partwise.tasks.common import model_file
from partwise.tasks.common.checks import is_dtype
from partwise.tasks.common.registry import TASKS

pytestmark = pytest.mark.interpreted

ROOT = Path(__file__).parent.parent.parent
X, Y, QUERIES = np.array([[1.0, 2], [3, 4], [5, 6], [0, 1]]), [1, 0, 2, 0], [1, 1, 2, 2]


def command(*words, **more):
    """``partwise WORDS`` in a process of its own, interpreted."""
    return subprocess.run(
        [sys.executable, "-m", "partwise", *map(str, words)], capture_output=True, text=True, timeout=120, **more
    )


# -- memory that tiny inputs ask for ----------------------------------------------------------------------------------


def test_positions_that_no_query_has_take_no_memory():
    few, many = Ranker(k=2).fit(X, Y, groups=QUERIES), Ranker(k=400_000_000).fit(X, Y, groups=QUERIES)
    np.testing.assert_array_equal(few.weights_, many.weights_)


def test_features_with_enormous_numbers(monkeypatch):
    found = datasets.read_letor(b"1 qid:1 1000000000:1.0\n0 qid:1 1:1\n")
    assert found.X.shape == (2, 10**9) and found.X.nnz == 2
    monkeypatch.setattr(memory, "available_memory", lambda: 4e9)
    with pytest.raises(MemoryError, match=r"Learning 1,000,000,000 weights takes up to 24.0 GB .* and 4.0 GB are free"):
        Ranker().fit(found)


@pytest.mark.parametrize("k", [10**9, 10**15])
def test_more_outputs_than_memory_has_room_for(k, monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 4e9)
    tagger = SequenceLabeler(max_epochs=1).fit([[["a"], ["b"]], [["c"]]], [["A", "B"], ["A"]])
    with pytest.raises(MemoryError, match="best outputs of 1 examples takes up to .* Ask for fewer"):
        tagger.predict_kbest([[["a"], ["b"]]], k)


def test_more_features_than_32_bits_can_number():
    wide = scipy.sparse.csr_matrix(([1.0], ([0], [2**31])), (1, 2**31 + 1))
    with pytest.raises(ValueError, match="2,147,483,647 is the most"):
        make_rows(wide)


def test_more_words_than_32_bits_can_number():
    class Fake:
        starts, n_tokens, cells = np.array([0, 2**31]), 2**31, [["a"]]

    with pytest.raises(ValueError, match="There are 2,147,483,648 words; they are numbered by 32 bits"):
        arc_rows(Fake(), ["form"])


def test_features_of_32_bits_times_labels_are_64_bits():
    """More than 2^31 weights: the number of a feature is an int32, its place in the weights must not be."""
    import numba

    place = numba.njit(lambda index, width: index[0] * width)
    assert place(np.array([2**30], np.int32), 23) == 23 * 2**30
    assert isinstance(Classifier(max_epochs=1).fit(X, Y).n_features_in_, int)  # what widths and numbers of features are


# -- nonsense that was taken for data ---------------------------------------------------------------------------------


def broken(part, place, value, kind="csr"):
    matrix = scipy.sparse.csr_matrix(X).asformat(kind)
    getattr(matrix, part)[place] = value
    return matrix


@pytest.mark.parametrize("matrix", [
    broken("indices", 0, 10**6), broken("indices", 0, -1), broken("indptr", 1, 10**6), broken("indptr", 1, -3),
    broken("indices", 0, 10**6, "csc"), broken("row", 0, 10**6, "coo"), broken("col", 0, -1, "coo"),
])  # fmt: skip
def test_sparse_matrices_that_contradict_themselves(matrix):
    for fit in (
        lambda: Classifier(max_epochs=1).fit(matrix, Y),
        lambda: Classifier(max_epochs=1).fit(X, Y).predict(matrix),
        lambda: SequenceLabeler(max_epochs=1).fit([matrix], [["A", "B", "A", "A"]]),
        lambda: Ranker(max_epochs=1).fit(matrix, Y, groups=QUERIES),
    ):
        with pytest.raises(ValueError, match="contradicts itself|index|indices"):
            fit()


def test_labels_that_are_equal_but_not_the_same():
    with pytest.raises(ValueError, match=r"1 \(int\) and True \(bool; token 1 of sequence 0\) are equal in Python"):
        SequenceLabeler().fit([[["a"], ["b"]]], [[1, True]])
    with pytest.raises(ValueError, match="are equal in Python"):
        SequenceLabeler().fit([[["a"], ["b"]]], [[1.0, 1]])
    SequenceLabeler(max_epochs=1).fit([[["a"], ["b"], ["c"]]], [[np.int64(1), 1, 0]])  # one kind, two types


def test_classes_that_numpy_would_make_one():
    X = np.eye(4)
    with pytest.raises(ValueError, match=r"1 \(int\) and True \(bool; example 1\) are equal in Python"):
        Classifier().fit(X, [1, True, 1.0, 2])
    with pytest.raises(ValueError, match=r"Some classes are strings, and example 1 has 1 \(int\)"):
        Classifier().fit(X, ["1", 1, "1", "2"])
    assert Classifier(max_epochs=1).fit(X, [np.int64(1), 1, 0, 2.0]).classes_.tolist() == [0, 1, 2]


def test_one_label_is_said():
    with pytest.warns(UserWarning, match="there is one label only, 'A': nothing can be learnt"):
        SequenceLabeler(max_epochs=1).fit([[["a"]]], [["A"]])


@pytest.mark.parametrize("solver", ["pegasos", "sdm"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_nothing_converges_at_infinity(solver):
    with pytest.raises(FloatingPointError, match="diverged: .* Try a smaller C"):
        Classifier(C=1e300, solver=solver).fit(X, Y)


def test_lines_that_end_with_carriage_returns():
    with pytest.raises(ValueError, match="its lines end with CR alone"):
        read_columns(b"the D B-NP\rdog N I-NP\r\rbarks V B-VP\r")
    assert read_columns(b"the D B-NP\r\ndog N I-NP\r\n").n_tokens == 2


def test_names_are_no_rows_of_an_alignment():
    with pytest.raises(ValueError, match="line 1: expected two rows with a tab between. Got 3 cells: .* say which is which"):
        datasets.read_alignments(b"id1\tGATTACA\tGATACA\nid2\tAC\tACG\n")


def test_two_columns_of_names_are_doubted(tmp_path):
    align = next(task for task in TASKS if task.verb == "align").command
    (tmp_path / "names.tsv").write_text("1aab\t1j46\n1hma\t1k99\n")
    with pytest.warns(UserWarning, match="line 1: '1aab' and '1j46' were taken for aligned rows, .* If they are names"):
        align.start(str(tmp_path / "names.tsv"), None, align.options(), Aligner)
    align.start(str(align.workload(tmp_path)), None, align.options(), Aligner)  # with gaps: no doubt


def test_titles_without_bases():
    with pytest.raises(ValueError, match="line 1: there are 2 titles, but not one base below them"):
        datasets.read_rna(b">a\n>b\n")


# -- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("trust")
    for task in TASKS:
        task.command.workload(place)
    X, Y = [[["a"], ["b"]]], [["A", "B"]]
    with interpret():
        SequenceLabeler(max_epochs=1).fit(X, Y).save(place / "m")
    return place


@pytest.mark.parametrize(
    ("words", "streams"),
    [
        (["train", "tag", "-", "-o", "n"], "<&-"),
        (["inspect", "m"], ">&-"),
        (["inspect", "m"], "> /dev/full"),
        (["--help"], "> /dev/full"),
    ],
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_streams_that_are_closed_or_full(folder, words, streams):
    line = f"exec {sys.executable} -m partwise {' '.join(words)} {streams}"
    done = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "partwise: error: " in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_json_that_is_nested_for_ever(folder):
    (folder / "deep.jsonl").write_text("[" * 200_000)
    done = command("train", "graph", folder / "deep.jsonl", "-o", folder / "g")
    assert done.returncode == 1 and "partwise: error: " in done.stderr and "Traceback" not in done.stderr, done.stderr[-500:]


# -- formats ----------------------------------------------------------------------------------------------------------


def test_nothing_of_ours_is_pickled():
    """Estimators can be pickled, as scikit-learn wants it; no file that we write or read is. Code on disk is the exception."""
    allowed = {
        "engine/numba_internals.py",  # compiled code, from a folder of the user's own, behind a digest
        "freezing/recorder.py",  # what a build of a wheel keeps for itself, in its folder, so that it can go on
        "engine/frozen.py",  # exceptions of machine code in a wheel, and only those that Python itself has
    }
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        names = {t.string for t in tokenize.generate_tokens(io.StringIO(path.read_text()).readline) if t.type == tokenize.NAME}
        if names & {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "eval", "exec"}:
            found.add(path.relative_to(ROOT / "src" / "partwise").as_posix())
        if re.search(r"allow_pickle\s*=\s*True|yaml\.load\(|np\.load\((?!.*allow_pickle=False)", path.read_text()):
            found.add(path.relative_to(ROOT / "src" / "partwise").as_posix())
    assert found <= allowed, found - allowed


def test_what_is_handed_out_comes_with_digests():
    text = (ROOT / "Makefile").read_text()
    recipe = text[text.index("\ndist: ") :].partition("\n\n")[0]
    assert "$(DIGESTS)" in recipe and "> SHA256SUMS" in text
    locked = [line for line in (ROOT / ".ci" / "requirements.lock").read_text().splitlines() if "==" in line]
    assert locked and all(line.endswith("\\") for line in locked)  # a digest follows each


@pytest.mark.parametrize("name", ["(2,<i4", "2 3i4", "i4,i4", "", "f8, (x", None, 3, "é8"])
def test_types_of_arrays_are_no_language(name):
    """numpy gives parts of such names to Python's parser, and says SyntaxError."""
    with pytest.raises(ValueError, match="is no type of an array"):
        dtype_called(name)
    assert not is_dtype(name) or name is None  # numpy's default


def test_models_with_such_types_are_refused(folder, tmp_path):
    header, tensors = read_tensors(str(folder / "m"), model_file.FORMAT, model_file.FORMAT_VERSION)
    tensors = {key: np.array(array) for key, array in tensors.items()}
    for altered in (
        {**header, "parameters": {**header["parameters"], "dtype": "(2,<i4"}},
        {**header, "model": {**header["model"], "labels": {"array": ["(2,<i4", [1, 2]]}}},
    ):
        write_tensors(tmp_path / "m", altered, tensors)
        with pytest.raises(ModelFileError):
            load(tmp_path / "m")


@pytest.mark.parametrize("change", [{"model": {"n_edge_features": 10**18}}, {"parameters": {"hidden": 10**9}}])
def test_headers_of_graphs_do_not_make_the_reader_allocate(change, tmp_path):
    """Names of features of edges, and tables of states, are made while a model is read: found by the campaign."""
    graphs, labels = [(np.eye(3), [[0, 1], [1, 2]])], [["u", "v", "u"]]
    GraphLabeler(pairwise="symmetric", max_epochs=1).fit(graphs, labels).save(tmp_path / "m")
    header, tensors = read_tensors(str(tmp_path / "m"), model_file.FORMAT, model_file.FORMAT_VERSION)
    tensors = {key: np.array(array) for key, array in tensors.items()}
    for part, entries in change.items():
        header[part].update(entries)
    write_tensors(tmp_path / "m", header, tensors)
    with pytest.raises(ModelFileError, match="features of edges, or states"):
        load(tmp_path / "m")
