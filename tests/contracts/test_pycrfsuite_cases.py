"""What the tests of python-crfsuite check, checked here: taggers, trainers, items."""

import pytest

from partwise.crfsuite.pycrfsuite import CRFSuiteError, ItemSequence, Tagger, Trainer

pytestmark = pytest.mark.interpreted

GLOOM = "солнце:не светит"
XSEQ = [
    {"walk": 1, "shop": 0.5}, {"walk": 1}, {"walk": 1, "clean": 0.5}, {"shop": 0.5, "clean": 0.5}, {"walk": 0.5, "clean": 1},
    {"clean": 1, "shop": 0.1}, {"walk": 1, "shop": 0.5}, {}, {"clean": 1}, {"солнце": "не светит", "clean": 1},
]  # fmt: skip
YSEQ = ["sunny"] * 3 + ["rainy"] * 3 + ["sunny"] * 2 + ["rainy"] * 2
NESTED = [
    {"foo": {"bar": "baz", "spam": 0.5, "egg": ["x", "y"], "ham": {"x": -0.5, "y": -0.1}}},
    {"foo": {"bar": "ham", "spam": -0.5, "ham": {"x", "y"}}},
]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("model") / "model.crfsuite")
    trainer = Trainer("lbfgs", verbose=False)
    trainer.append(XSEQ, YSEQ)
    trainer.train(path)
    return path


def info_of(sequences, path):
    trainer = Trainer(verbose=False)
    trainer.append(*sequences)
    trainer.train(path)
    with Tagger().open(path) as tagger:
        return tagger.info()


def test_a_closed_tagger_answers_nothing(model, tmp_path):
    tagger = Tagger()
    with pytest.raises(ValueError, match="closed"):
        tagger.labels()
    with tagger.open(model):
        assert set(tagger.labels()) == set(YSEQ)
    for ask in (tagger.labels, lambda: tagger.tag(XSEQ), lambda: tagger.probability(YSEQ)):
        with pytest.raises(ValueError, match="closed"):
            ask()
    for ask in (tagger.info, lambda: tagger.dump(tmp_path / "dump")):
        with pytest.raises(RuntimeError, match="closed"):
            ask()


@pytest.mark.parametrize("content", [b"", b"foo", b"lCRFfoo", b"lCRFfoo" * 100], ids=["empty", "text", "short", "signature"])
def test_what_is_no_model_is_refused(content, tmp_path):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(ValueError):
        Tagger().open(str(tmp_path / "model"))
    with pytest.raises(ValueError):
        Tagger().open_inmemory(content)
    with pytest.raises(OSError):
        Tagger().open(str(tmp_path / "none"))


def test_names_alone_have_the_value_one(model, tmp_path):
    as_bools = [{name: bool(value) if value in (0, 1) else value for name, value in x.items()} for x in XSEQ]
    with Tagger().open(model) as tagger:
        assert tagger.tag(XSEQ) == YSEQ == tagger.tag(as_bools) and tagger.tag([x.keys() for x in XSEQ]) != YSEQ
    trainer = Trainer(params={"c2": 1e-6}, verbose=False)
    trainer.append([dict.fromkeys(x, 1) for x in XSEQ], YSEQ)
    trainer.train(str(tmp_path / "m"))
    with Tagger().open(tmp_path / "m") as tagger:
        assert tagger.tag([x.keys() for x in XSEQ]) == tagger.tag([list(x) for x in XSEQ]) == YSEQ


@pytest.mark.parametrize("wrong", ["foo", ["foo"], [[{"foo": 1.0}]]])
def test_other_forms_are_refused(model, wrong):
    with Tagger().open(model) as tagger, pytest.raises((TypeError, ValueError)):
        tagger.tag(wrong)
    with pytest.raises((TypeError, ValueError)):
        ItemSequence(wrong).items()


def test_the_best_labels_are_the_most_probable(model):
    with Tagger().open(model) as tagger:
        best = tagger.probability(tagger.tag(XSEQ))
        assert 0 < tagger.probability([YSEQ[0]] * len(YSEQ)) < best < 1


def test_what_is_in_a_model(model, tmp_path):
    with Tagger().open(model) as tagger:
        tagger.dump(tmp_path / "dump")
        info = tagger.info()
    text = (tmp_path / "dump").read_text(encoding="utf-8")
    assert "LABELS = {" in text and f"{GLOOM} --> rainy:" in text and text.count("}") == 5
    assert info.transitions["sunny", "sunny"] > info.transitions["sunny", "rainy"]
    assert info.state_features["walk", "sunny"] > info.state_features["walk", "rainy"] and (GLOOM, "rainy") in info.state_features
    assert info.header["num_labels"] == "2" and set(info.labels) == {"sunny", "rainy"}
    assert set(info.attributes) == {"shop", "walk", "clean", GLOOM}


def test_the_dump_is_read_by_their_parser(model, tmp_path):
    theirs = pytest.importorskip("pycrfsuite._dumpparser", reason="python-crfsuite is not installed")
    with Tagger().open(model) as tagger:
        tagger.dump(tmp_path / "dump")
        info = tagger.info()
    parser = theirs.CRFsuiteDumpParser()
    for line in (tmp_path / "dump").read_text(encoding="utf-8").splitlines(keepends=True):
        parser.feed(line)
    assert parser.result.labels == info.labels and parser.result.attributes == info.attributes
    assert parser.result.state_features == {key: pytest.approx(w, abs=1e-6) for key, w in info.state_features.items()}


def test_strings_and_numbers_of_attributes(tmp_path):
    x = [{"foo": "bar"}, {"baz": False}, {"foo": "bar", "baz": True}, {"baz": 0.2}]
    info = info_of((x, ["spam", "egg", "spam", "spam"]), str(tmp_path / "m"))
    assert set(info.attributes) == {"foo:bar", "baz"} and info.state_features["foo:bar", "spam"] > 0


def test_nested_attributes(tmp_path):
    info = info_of((NESTED, ["first", "second"]), str(tmp_path / "m"))
    first, second = ("foo:bar:baz", "foo:spam", "foo:egg:x", "foo:egg:y"), ("foo:bar:ham", "foo:ham:x", "foo:ham:y")
    assert set(info.attributes) == {*first, *second}
    for names, label, other in ((first, "first", "second"), (second, "second", "first")):
        for name in names:
            assert info.state_features[name, label] > 0 >= info.state_features.get((name, other), 0)


def test_items_have_names_and_values():
    assert ItemSequence([]).items() == [] and len(ItemSequence([])) == 0
    assert ItemSequence([["foo", "bar"], ["baz"]]).items() == [{"foo": 1.0, "bar": 1.0}, {"baz": 1.0}]
    assert ItemSequence([{"foo": True, "bar": {"foo": -1, "baz": False}}]).items() == [
        {"foo": 1.0, "bar:foo": -1, "bar:baz": 0.0}
    ]
    assert ItemSequence([{"ключ": 1.0, "привет": "мир"}]).items() == [{"ключ": 1.0, "привет:мир": 1.0}]
    items = ItemSequence(NESTED).items()
    assert items[1] == {"foo:bar:ham": 1.0, "foo:spam": -0.5, "foo:ham:x": 1.0, "foo:ham:y": 1.0}
    assert len(items[0]) == 6 and items[0]["foo:ham:x"] == -0.5 and ItemSequence(items).items() == items


def test_a_trainer_derived_without_init_hears_every_line(tmp_path):
    class Capturing(Trainer):
        def __init__(self):
            self.messages = []

        def message(self, message):
            self.messages.append(message)

    trainer = Capturing()
    trainer.select("LBFGS")
    trainer.append(XSEQ, YSEQ)
    assert not trainer.messages
    trainer.train(str(tmp_path / "m"))
    assert "type: CRF1d\n" in trainer.messages and "feature.minfreq: 0.0\n" in trainer.messages
    assert all(message.endswith("\n") for message in trainer.messages)


def test_help_and_defaults_of_parameters():
    trainer = Trainer()
    assert {"c1", "c2", "num_memories"} <= set(trainer.params()) and "L1" in trainer.help("c1")
    trainer.select("l2sgd")
    assert "c1" not in trainer.params() and "L2" in trainer.help("c2") and trainer.get("c2") == 1.0
    for wrong in ("foo", "c1"):
        with pytest.raises(ValueError):
            trainer.help(wrong)
    for algorithm in ("lbfgs", "l2sgd", "ap", "pa", "arow"):
        trainer.select(algorithm)
        assert all(trainer.help(name) for name in trainer.params())
    assert Trainer(params={"c2": 100}).get("c2") == 100
    with pytest.raises(ValueError):
        trainer.select("foo")


def test_without_data_there_is_no_model_and_without_a_name_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CRFSuiteError, match="empty"):  # there, a model without labels
        Trainer().train(str(tmp_path / "m"))
    trainer = Trainer(verbose=False)
    trainer.append(XSEQ, YSEQ)
    trainer.train("")
    assert not list(tmp_path.iterdir()) and trainer.logparser.last_iteration["num"] > 1
