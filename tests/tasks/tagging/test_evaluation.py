"""``partwise evaluate``: the figures are those of `partwise.metrics`, for people and for machines."""

import json

import pytest
from typer.testing import CliRunner

from partwise.cli.app import app
from partwise.metrics import classification_report, compare, entity_confusion, entity_matches, report, sequence_counts
from partwise.tasks.tagging.estimator import SequenceLabeler
from partwise.text.chunk_schemes import convert
from partwise.text.columns import read_columns
from small_taggers import TEST, tagger

pytestmark = pytest.mark.interpreted


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluate")
    tagger().save(folder / "hinge.model")
    tagger("crf", "iobes").save(folder / "iobes.model")
    (folder / "test.txt").write_bytes(TEST)
    return folder


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)], input=stdin)


def machine(*arguments, stdin=None):
    result = run(*arguments, "--json", stdin=stdin)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*arguments, stdin=None):
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 1 and result.stdout == ""
    assert result.stderr.startswith("partwise: error: ") and result.stderr.count("\n") == 1
    return result.stderr


def truth(text=TEST, column=2):
    return [[token[column] for token in sentence] for sentence in read_columns(text).sentences()]


def predicted(text=TEST):
    return tagger().predict(read_columns(text))


def test_the_figures_are_those_of_the_metrics(folder):
    found = machine(folder / "hinge.model", folder / "test.txt", "--resamples", 50, "--seed", 3)
    expected = report(truth(), predicted(), n_resamples=50, random_state=3).to_dict()
    assert {key: found[key] for key in expected} == json.loads(json.dumps(expected))
    assert 0.2 < found["f1"] < 1 and found["intervals"]["f1"][0] < found["f1"]
    assert found["seconds"].keys() >= {"load", "read", "label", "score", "total"} and found["tokens_per_second"] > 0
    assert "intervals" not in machine(folder / "hinge.model", folder / "test.txt", "--no-intervals")


def test_for_people(folder):
    result = run(folder / "hinge.model", folder / "test.txt", "--confusion")
    scores = report(truth(), predicted())
    assert f"{100 * scores.spans.f1:.2f}" in result.stdout and "interval" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80 and "…" not in result.stdout
    assert "most frequent" in result.stdout
    result = run(folder / "hinge.model", folder / "test.txt", "--conlleval")
    assert result.stdout == scores.conlleval()
    result = run(folder / "hinge.model", folder / "test.txt", "--conlleval", "--json")
    assert scores.conlleval() in result.stderr and json.loads(result.stdout)


def test_entities_found_in_part_and_taken_for_others(folder):
    found = machine(folder / "hinge.model", folder / "test.txt", "--picture", folder / "entities.svg")
    matches, confusion = entity_matches(truth(), predicted()), entity_confusion(truth(), predicted())
    assert found["matches"] == {kind: one.to_dict() for kind, one in matches.items()}
    assert found["entity_confusion"] == confusion.to_dict() and (folder / "entities.svg").stat().st_size > 1000
    rows = classification_report(truth(), predicted(), output_dict=True, zero_division=0)
    for average, scores in found["averages"].items():
        assert list(scores.values()) == pytest.approx(list(rows[f"{average} avg"].values())[:3])
    shown = run(folder / "hinge.model", folder / "test.txt", "--confusion", "--partial").stdout
    assert str(confusion).splitlines()[-1] in shown and f"{100 * matches['partial'].f1:.2f}" in shown
    assert "not chunk tags" in refused(folder / "hinge.model", "-", "--picture", folder / "x.svg", stdin=b"w1 D DET\nw2 N O\n")


def test_labels_never_seen_count_as_wrong(folder):
    text = TEST.replace(b"B-NP", b"B-XP").replace(b"I-NP", b"I-XP")
    found = machine(folder / "hinge.model", "-", "--confusion", stdin=text)
    expected = report(truth(text), predicted())
    assert found["accuracy"] == expected.accuracy < report(truth(), predicted()).accuracy
    assert found["types"]["XP"]["recall"] == 0 and found["f1"] == expected.spans.f1
    pairs = [(a, b) for x, y in zip(truth(text), predicted(), strict=True) for a, b in zip(x, y, strict=True) if a != b]
    confusion = {(one["true"], one["predicted"]): one["tokens"] for one in found["confusion"]}
    assert confusion == {pair: pairs.count(pair) for pair in pairs}
    assert [one["tokens"] for one in found["confusion"]] == sorted(confusion.values(), reverse=True)


def test_labels_that_are_no_chunks_have_an_accuracy_only(folder):
    text = b"w1 D DET\nw2 N O\n"
    found = machine(folder / "hinge.model", "-", stdin=text)
    assert found["f1"] is found["precision"] is found["recall"] is None
    assert found["accuracy"] == report(truth(text), predicted(text)).accuracy
    assert "tokens right" in run(folder / "hinge.model", "-", stdin=text).stdout
    assert "not chunk tags" in refused(folder / "hinge.model", "-", "--conlleval", stdin=text)


def test_a_model_of_another_scheme_is_scored_in_that_of_the_file(folder):
    found = machine(folder / "iobes.model", folder / "test.txt")
    own = convert(tagger("crf", "iobes").predict(read_columns(TEST)), "iob2")
    assert found["accuracy"] == report(truth(), own).accuracy > 0.5
    assert not any(kind.startswith(("S", "E")) for kind in found["types"])
    as_iobes = machine(folder / "iobes.model", folder / "test.txt", "--scheme", "iobes")
    assert as_iobes["accuracy"] < found["accuracy"] and as_iobes["f1"] == found["f1"]  # spans are the same, tokens are not


def test_against_another_model_and_another_column(folder):
    a, b = sequence_counts(truth(), predicted()), sequence_counts(truth(), [["O"] * len(y) for y in truth()])
    text = b"".join(line + b" O\n" if line else b"\n" for line in TEST.splitlines())
    found = machine(folder / "hinge.model", "-", "--baseline-column", 3, "--resamples", 200, stdin=text)["baseline"]
    expected = compare(a, b, "f1", n_resamples=200)
    assert found["name"] == "column 3" and found["measures"].keys() == set(a.measures)
    one = found["measures"]["f1"]
    assert one["p_value"] == expected.p_value < 0.05 and one["interval"] == [expected.low, expected.high]
    assert one["difference"] == expected.difference > 0 and one["test"] == "randomisation"
    same = machine(folder / "hinge.model", folder / "test.txt", "--baseline", folder / "hinge.model", "--test", "bootstrap")
    assert same["baseline"]["measures"]["f1"]["p_value"] == 1 and same["baseline"]["name"].endswith("hinge.model")
    shown = run(folder / "hinge.model", folder / "test.txt", "--baseline", folder / "iobes.model").stdout
    assert "f1: " in shown and "approximate randomisation" in shown
    both = ("--baseline", folder / "hinge.model", "--baseline-column", 1)
    assert "give one of them" in refused(folder / "hinge.model", folder / "test.txt", *both)
    assert "'test' parameter" in refused(folder / "hinge.model", folder / "test.txt", *both[:2], "--test", "t")


def test_two_columns_without_a_model(folder):
    text = b"B-X B-X\nI-X O\n\nO O\n"
    (folder / "two.txt").write_bytes(text)
    found = machine(folder / "two.txt", "--label-column", 0, "--predicted-column", 1)
    assert (found["f1"], found["accuracy"], found["model"], found["tokens_per_second"]) == (0.0, 2 / 3, None, None)
    assert "Give a model and a file" in refused(folder / "two.txt")
    assert "Give a model and a file" in refused(folder / "hinge.model", folder / "two.txt", "--predicted-column", 1)
    assert "--predicted-column 2: there are 2 columns" in refused(folder / "two.txt", "--predicted-column", 2)


def test_the_column_of_labels_is_that_of_training_unless_said(folder, tmp_path):
    columns = read_columns(b"B-X a\nI-X b\n\nO c\n")
    path = tmp_path / "first.model"
    model = SequenceLabeler(templates=["b[0]"], columns=["a", "b"], solver="dca", max_epochs=20)
    model.fit(columns, 0).save(path)
    text = b"B-X a wrong\nO c wrong\n"
    assert machine(path, "-", stdin=text)["accuracy"] == 1
    assert machine(path, "-", "--label-column", -1, stdin=text)["accuracy"] == 0
    assert "--label-column 5: there are 3 columns" in refused(path, "-", "--label-column", 5, stdin=text)
    narrow = b"w1 D\n"
    assert "<stdin>: --label-column 2: there are 2 columns" in refused(folder / "hinge.model", "-", stdin=narrow)


@pytest.mark.parametrize(
    "text, message",
    [
        (b"w1 D O\nw2 D\n", "<stdin>, line 2: expected 3 columns"),
        (b"", "there are no tokens in it"),
        (b"w1 D \xff\n", "<stdin>, line 1: not valid utf-8"),
    ],
)
def test_bad_text(folder, text, message):
    assert message in refused(folder / "hinge.model", "-", stdin=text)


def test_bad_files(folder, tmp_path):
    assert "No such file" in refused(folder / "hinge.model", tmp_path / "no.txt")
    assert "There is no model file" in refused(tmp_path / "no.model", folder / "test.txt")
    assert "is not a partwise model" in refused(folder / "test.txt", folder / "test.txt")
    assert "There is no model file" in refused(folder / "hinge.model", folder / "test.txt", "--baseline", tmp_path / "no.model")
