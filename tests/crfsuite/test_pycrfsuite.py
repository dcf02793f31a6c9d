"""The interface of python-crfsuite."""

import subprocess
import sys

import numpy as np
import pytest

from partwise.crfsuite import CRF, pycrfsuite

pytestmark = pytest.mark.interpreted

X = [[{"word": "a", "cap": True}, {"word": "b", "len": 2.0}], [{"word": "b", "len": 2.0}, {"word": "a", "cap": True}]]
Y = [["A", "B"], ["B", "A"]]


def trained(path, algorithm="lbfgs", trainer=pycrfsuite.Trainer, **params):
    made = trainer(algorithm, {"max_iterations": 5, **params}, verbose=False)
    for xseq, yseq in zip(X, Y, strict=True):
        made.append(pycrfsuite.ItemSequence(xseq), yseq)
    made.train(path)
    return made


def test_train_and_tag_as_parserator_does(tmp_path):
    """usaddress and its like: strings and bools in dicts, a model beside the program, probabilities of what was found."""

    def tokens2features(tokens):
        found = [{"nopunc": t.strip(",").lower(), "digits": t.isdigit(), "length": f"w:{len(t)}"} for t in tokens]
        for here, after in zip(found, found[1:], strict=False):
            here["next"] = dict(after)
        found[0]["address.start"] = found[-1]["address.end"] = True
        return found

    streets = ["Oak St", "Elm Ave", "Main St", "High Rd"]
    addresses = [(f"{n} {street}, Salem", ["Number", "Name", "Type", "City"]) for n, street in enumerate(streets, 10)]
    trainer = pycrfsuite.Trainer(verbose=False, params={"feature.minfreq": 0.0, "c2": 0.1, "max_iterations": 20})
    for text, labels in addresses:
        trainer.append(tokens2features(text.split()), labels)
    path = str(tmp_path / "usaddr.crfsuite")
    trainer.train(path)
    tagger = pycrfsuite.Tagger()
    tagger.open(path)
    features = tokens2features("77 Oak Rd, Salem".split())
    assert tagger.tag(features) == ["Number", "Name", "Type", "City"]
    tagger.set(features)
    assert 0.5 < tagger.probability(["Number", "Name", "Type", "City"]) <= 1.0
    assert tagger.marginal("City", 3) > 0.5
    with pytest.raises(OSError, match="There is no file"):
        tagger.open(path + "x")


def test_what_happens_is_told(tmp_path):
    seen = []

    class Loud(pycrfsuite.Trainer):
        def on_start(self, log):
            seen.append("start")

        def on_iteration(self, log, info):
            seen.append(info["num"])
            assert {"loss", "feature_norm", "active_features", "time"} <= info.keys() and "Iteration" in log

        def on_end(self, log):
            seen.append("end")

    trainer = trained(str(tmp_path / "m"), trainer=Loud)
    n = len(trainer.logparser.iterations)
    assert seen == ["start", *range(1, n + 1), "end"] and trainer.logparser.last_iteration["num"] == n
    assert trainer.logparser.iterations[-1]["loss"] < trainer.logparser.iterations[0]["loss"]


def test_a_group_is_held_out(tmp_path):
    trainer = pycrfsuite.Trainer(params={"max_iterations": 3}, verbose=False)
    for group in (0, 1):
        for xseq, yseq in zip(X, Y, strict=True):
            trainer.append(xseq, yseq, group)
    trainer.train(str(tmp_path / "m"), holdout=1)
    assert trainer.logparser.last_iteration["item_accuracy_float"] == 1.0
    assert set(trainer.logparser.last_iteration["scores"]) == {"A", "B"}


def test_parameters_are_those_of_the_algorithm():
    theirs = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    for algorithm in ("lbfgs", "l2sgd", "ap", "pa", "arow"):
        here, there = (module.Trainer(algorithm, verbose=False) for module in (pycrfsuite, theirs))
        assert here.params() == there.params()
        assert {k: v for k, v in here.get_params().items() if v != there.get(k)} == {}, algorithm
    trainer = pycrfsuite.Trainer(params={"c1": "0.5", "feature.possible_transitions": 1})
    assert trainer.get("c1") == 0.5 and trainer.get_params()["feature.possible_transitions"] is True
    assert "c1" in trainer.help("c1")
    with pytest.raises(ValueError, match="Parameter 'gamma' is not one of algorithm 'lbfgs'"):
        trainer.set("gamma", 1)
    with pytest.raises(ValueError, match="Bad arguments: algorithm='x'"):
        trainer.select("x")


def test_items_and_taggers_answer_as_theirs(tmp_path):
    theirs = pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    rich = [{"s": "x", "n": 0.5, "l": ["a", "b"], "d": {"k": {"deep": "v"}}, b"bytes": b"\xc3\xa9", "no": False}, ["plain"]]
    for a, b in zip(pycrfsuite.ItemSequence(rich).items(), theirs.ItemSequence(rich).items(), strict=True):
        assert a == b
    path = str(tmp_path / "m")
    trained(path)
    with pycrfsuite.Tagger().open(path) as tagger:
        assert tagger.labels() == ["A", "B"] and tagger.tag(X[0]) == ["A", "B"]
        info = tagger.info()
        assert set(info.labels) == {"A", "B"} and ("word:a", "A") in info.state_features and ("A", "B") in info.transitions
        tagger.dump(tmp_path / "dump.txt")
        assert "(0) word:a --> A" in (tmp_path / "dump.txt").read_text()
    with pytest.raises(pycrfsuite.CRFSuiteError, match="closed"):
        tagger.tag(X[0])
    with open(path, "rb") as file:
        assert pycrfsuite.Tagger().open_inmemory(file.read()).tag(X[0]) == ["A", "B"]


def test_refusals(tmp_path):
    with pytest.raises(pycrfsuite.CRFSuiteError, match="empty"):
        pycrfsuite.Trainer(verbose=False).train(str(tmp_path / "m"))
    with pytest.raises(ValueError, match="numbers of items and labels differ: .x. = 2, .y. = 1"):
        pycrfsuite.Trainer().append(X[0], ["A"])
    with pytest.raises(pycrfsuite.CRFSuiteError, match="No sequence is set"):
        pycrfsuite.Tagger(CRF(max_iterations=2).fit(X, Y).labeler_).tag()


def test_generators_and_bytes():
    crf = CRF(max_iterations=5).fit(((token for token in sequence) for sequence in X), map(iter, Y))
    assert (crf.predict(iter(X)) == Y).all() and crf.score(iter(X), iter(Y)) == 1.0
    as_bytes = [[[b"w=a", b"cap"], [b"w=b"]], [[b"w=b"], [b"w=a", b"cap"]]]
    crf = CRF(max_iterations=5).fit(as_bytes, [[label.encode() for label in y] for y in Y])
    assert crf.classes_ == ["A", "B"] and "w=a" in crf.attributes_ and (crf.predict(as_bytes) == Y).all()


def test_answers_can_be_compared():
    crf = CRF(max_iterations=5).fit(X, Y)
    found = crf.predict([*X, X[0][:1]])
    assert (found == [*Y, ["A"]]).all() and not (found == [*Y, ["B"]]).all() and (found != [*Y, ["B"]]).tolist() == [0, 0, 1]
    assert (crf.predict([X[0]]) == Y[0]).all() and not (found == Y).all()
    assert found.shape == (3,) and isinstance(found[0], list) and np.array_equal(found, crf.predict([*X, X[0][:1]]))


@pytest.mark.parametrize("package", ["usaddress", "probablepeople"])
def test_programs_built_on_it_do_not_notice(package, tmp_path):
    """The packages as they are published, with the model files they bring, once on python-crfsuite and once on this module."""
    pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed")
    pytest.importorskip(package, reason=f"{package} is not installed")
    texts = {
        "usaddress": [
            "123 Main St. Suite 100 Chicago, IL",
            "Robie House, 5757 South Woodlawn Avenue, Chicago, IL 60637",
            "P.O. Box 42",
        ],
        "probablepeople": ["Mr George 'Gob' Bluth II", "Sitwell Housing Inc", "Smith, John & Jane"],
    }[package]
    ours = "import sys; from partwise.crfsuite import pycrfsuite; sys.modules['pycrfsuite'] = pycrfsuite; "
    train = (
        ""
        if package != "usaddress"
        else (
            "from parserator.training import trainModel; "
            "data = [(f'{n} {s}, Salem', [(str(n), 'AddressNumber'), (s.split()[0], 'StreetName'), (s.split()[1] + ',', "
            "'StreetNamePostType'), ('Salem', 'PlaceName')]) for n, s in enumerate(['Oak St', 'Elm Ave', 'High Rd'] * 3, 10)]; "
            "trainModel(data, usaddress, 'm.crfsuite'); tagger = sys.modules['pycrfsuite'].Tagger(); tagger.open('m.crfsuite'); "
            "print(tagger.tag(usaddress.tokens2features(usaddress.tokenize('77 Oak Rd, Salem'))))"
        )
    )
    if train:
        pytest.importorskip("parserator", reason="parserator is not installed")
    script = f"import sys, {package}; print([{package}.parse(text) for text in {texts!r}]); {train}"
    found = [
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", before + script], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        for before in ("", ours)
    ]
    assert found[0].stdout == found[1].stdout and len(found[0].stdout) > 100
