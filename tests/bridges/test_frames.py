"""Frames of pandas, polars and Arrow: the same answers as from lists, whatever order rows are in."""

import warnings

import numpy as np
import pytest

from partwise import Classifier, Ranker, SequenceLabeler
from partwise.bridges import fit_frame, predict_frame, sequences_of
from partwise.datasets import make_sentences

pytestmark = pytest.mark.interpreted
ROWS = [
    {"sentence": i, "word": word, "pos": pos, "long": float(len(word)), "chunk": chunk}
    for i, one in enumerate(make_sentences(6, seed=0))
    for word, pos, chunk in one
]


def frame_of(kind, rows):
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    if kind == "pyarrow":
        return pytest.importorskip("pyarrow").table(columns)
    return pytest.importorskip(kind).DataFrame(columns)


def listed(frame, name):
    return frame[name].to_pylist() if hasattr(frame, "column_names") else list(frame[name])


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_tokens(kind):
    frame = frame_of(kind, ROWS)
    labeler = fit_frame(SequenceLabeler("crf", max_epochs=2), frame, group="sentence", label="chunk")
    X, y = sequences_of(frame, "sentence", ["word", "pos", "long"], "chunk")
    assert X[0][0] == {"word": ROWS[0]["word"], "pos": ROWS[0]["pos"], "long": ROWS[0]["long"]}
    plain = SequenceLabeler("crf", max_epochs=2).fit(X, y)
    answers = [label for labels in plain.predict(X) for label in labels]
    assert listed(predict_frame(labeler, frame, group="sentence"), "predicted") == answers
    mixed = sorted(range(len(ROWS)), key=lambda r: (r - ROWS[r]["sentence"]) % 7)  # sentences interleaved, words in order
    mixed.sort(key=lambda r: sum(ROWS[s]["sentence"] == ROWS[r]["sentence"] for s in range(r)))
    shuffled = predict_frame(labeler, frame_of(kind, [ROWS[r] for r in mixed]), group="sentence")
    assert listed(shuffled, "predicted") == [answers[r] for r in mixed]


def test_documents_and_rows():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(24, 2))
    frame = pandas.DataFrame({"a": x[:, 0], "b": x[:, 1], "query": np.tile([3, 1, 2], 8), "grade": (x[:, 0] > 0).astype(int)})
    ranker = fit_frame(Ranker(max_epochs=3), frame, group="query", label="grade", features=["a", "b"])
    scores = predict_frame(ranker, frame, group="query", name="score")["score"]
    assert scores.corr(frame["a"]) > 0.8
    classifier = fit_frame(Classifier(max_epochs=3), frame.drop(columns="query"), label="grade")
    assert (predict_frame(classifier, frame)["predicted"] == frame["grade"]).mean() > 0.8


def test_vectors_gaps_and_mistakes():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"s": [0, 0], "w": ["a", None], "v": [[0.5, 1.0], [0.0, 2.0]], "y": ["A", float("nan")]})
    X, y = sequences_of(frame, "s", None, "y")
    assert X == [[{"w": "a", "v": {"0": 0.5, "1": 1.0}}, {"v": {"0": 0.0, "1": 2.0}}]] and y == [["A", None]]
    with pytest.raises(ValueError, match="there is no column 'z'. The columns are: s, w, v, y"):
        fit_frame(SequenceLabeler(), frame, group="z", label="y")
    with pytest.raises(ValueError, match="which rows are a sentence. Name the column"):
        fit_frame(SequenceLabeler(), frame, label="y")
    with pytest.raises(ValueError, match="the column 'w' holds something that is no number"):
        fit_frame(Classifier(), frame, label="y", features=["w"])
    with pytest.raises(ValueError, match="row 1, has no value in the column 's'"):
        sequences_of(pandas.DataFrame({"s": [0, float("nan")], "w": ["a", "b"]}), "s")
    with pytest.raises(TypeError, match="Expected a frame"):
        sequences_of([1], "s")


GROUP = {"SegmentLabeler": "sentence", "DependencyParser": "sentence"}
FRAMES = {
    "SegmentLabeler": (
        {"sentence": [1, 1, 1, 2, 2], "w": ["a", "b", "c", "a", "b"], "y": ["B-X", "I-X", "O", "B-X", "I-X"]},
        {"label": "y"},
        {"predicted": ["B-X", "I-X", "O", "B-X", "I-X"]},
    ),
    "DependencyParser": (
        {
            "sentence": [1, 1, 2, 2],
            "form": ["dogs", "bark", "cats", "run"],
            "head": [2.0, 0.0, 2.0, 0.0],
            "deprel": ["s", "r"] * 2,
        },
        {},
        {"predicted_head": [2, 0, 2, 0], "predicted_deprel": ["s", "r", "s", "r"]},
    ),
    "ConstituencyParser": (
        {"tree": ["(S (A a) (B b))", "(S (A a) (B c))"]},
        {},
        {"predicted": ["(S (A a) (B b))", "(S (A a) (B c))"]},
    ),
    "RnaFolder": ({"sequence": ["GAAAC", "AA"], "structure": ["(...)", ".."]}, {}, {"predicted": ["(...)", ".."]}),
    "Aligner": ({"row1": ["AC-T"], "row2": ["ACGT"]}, {}, {"predicted_row1": ["AC-T"], "predicted_row2": ["ACGT"]}),
}


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("name", FRAMES)
def test_every_task_that_has_tables(name, kind):
    import partwise

    columns, given, expected = FRAMES[name]
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    frame = frame_of(kind, rows)
    estimator = fit_frame(getattr(partwise, name)(max_epochs=20), frame, group=GROUP.get(name), **given)
    found = predict_frame(estimator, frame)
    assert {column: listed(found, column) for column in expected} == expected
    again = predict_frame(estimator, found)  # it has the columns already: they are replaced
    assert {column: listed(again, column) for column in expected} == expected


def test_who_has_no_tables_and_who_finds_columns_alone():
    pandas = pytest.importorskip("pandas")
    import partwise

    frame = pandas.DataFrame({"form": ["a"]})
    with pytest.raises(TypeError, match="natural for Classifier, .*Got GraphLabeler"):
        fit_frame(partwise.GraphLabeler(), frame)
    with pytest.raises(ValueError, match="DependencyParser finds columns by their titles"):
        fit_frame(partwise.DependencyParser(), frame, label="head")
    with pytest.raises(ValueError, match="needs 'label'"):
        fit_frame(Ranker(), frame, group="form")


def test_what_is_no_frame_and_titles_that_two_columns_have():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame([[1, "a", "b", "A"]], columns=["sentence", "w", "w", "y"])
    with pytest.raises(ValueError, match="the frame: 2 columns are called 'w'"):
        fit_frame(SequenceLabeler(), frame, label="y")
    with pytest.raises(TypeError, match="Got LazyFrame. Collect it first"):
        fit_frame(SequenceLabeler(), polars.DataFrame({"w": ["a"]}).lazy(), label="w")
    with pytest.raises(TypeError, match="Got Series"):
        fit_frame(SequenceLabeler(), frame["y"], label="y")


@pytest.mark.parametrize(
    ("name", "columns", "told"),
    [
        (
            "DependencyParser",
            {"sentence": [1, 2, 1], "form": ["a", "b", "c"], "head": [0, 7, 1]},
            "row 1, sentence 1: the head",
        ),
        ("DependencyParser", {"sentence": [1, 1], "form": ["a", "b"]}, "no head of any word is known"),
        ("ConstituencyParser", {"tree": ["(S (A a))", "(S (A a)"]}, "the frame, row 1: this bracket is never closed"),
        ("RnaFolder", {"sequence": ["GAAAC", "AA"], "structure": ["(...)", "(."]}, "the frame, row 1: "),
        ("Aligner", {"row1": ["AC", "AC"], "row2": ["AC", "A"]}, "the frame, row 1: aligned rows must be as long"),
    ],
)
def test_mistakes_are_told_by_rows_of_the_frame(name, columns, told):
    pandas = pytest.importorskip("pandas")
    import partwise

    with pytest.raises(ValueError, match=told):
        fit_frame(getattr(partwise, name)(), pandas.DataFrame(columns))


def test_a_version_that_was_not_tested_is_warned_of_once(monkeypatch):
    pandas = pytest.importorskip("pandas")
    from partwise.bridges import frames

    monkeypatch.setattr(frames, "_warned", set())
    monkeypatch.setattr(pandas, "__version__", "99.1")
    with pytest.warns(UserWarning, match="tested with pandas 2 to 3; this is 99.1"):
        frames.kind_of(pandas.DataFrame({"a": [1]}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frames.kind_of(pandas.DataFrame({"a": [1]}))
