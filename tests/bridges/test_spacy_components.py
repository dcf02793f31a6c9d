"""Components in real pipelines: trained, asked, saved, loaded, and trained by ``spacy train``."""

import importlib

import numpy as np
import pytest

spacy = pytest.importorskip("spacy")
from spacy.tokens import Doc, DocBin  # noqa: E402
from spacy.training import Example  # noqa: E402

import partwise  # noqa: E402
import partwise.bridges.spacy_components  # noqa: E402, F401 - makes the factories known

pytestmark = pytest.mark.interpreted
NAMES = {"PER": ["Ada", "Grace Hopper", "Alan"], "LOC": ["Paris", "New York", "Ulm"]}


def entities(nlp, n=24):
    rng, examples = np.random.default_rng(0), []
    for _ in range(n):
        who, where = str(rng.choice(NAMES["PER"])), str(rng.choice(NAMES["LOC"]))
        text = f"{who} lives in {where} ."
        spans = [(0, len(who), "PER"), (text.index(where), text.index(where) + len(where), "LOC")]
        examples.append(Example.from_dict(nlp.make_doc(text), {"entities": spans}))
    return examples


def test_entities(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("partwise_ner", config={"loss": "crf", "max_epochs": 4, "marginals": True})
    examples = entities(nlp)
    nlp.initialize(lambda: examples)
    assert nlp.evaluate(entities(nlp, 10))["ents_f"] > 0.9
    doc = nlp("Grace Hopper lives in Ulm .")
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("Grace Hopper", "PER"), ("Ulm", "LOC")]
    marginals = doc._.partwise_marginals["partwise_ner"]
    assert marginals.shape == (len(doc), len(nlp.get_pipe("partwise_ner").model_.classes_))
    assert np.allclose(marginals.sum(axis=1), 1) and nlp.pipe_labels == {"partwise_ner": ["LOC", "PER"]}
    nlp.to_disk(tmp_path / "pipeline")
    for again in (spacy.load(tmp_path / "pipeline"), spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes())):
        assert [ent.text for ent in again("Alan lives in Paris .").ents] == ["Alan", "Paris"]
    assert nlp("").ents == ()


def test_unknown_entities_are_not_absent():
    nlp = spacy.blank("en")
    doc = Doc(nlp.vocab, ["Ada", "sleeps"])
    reference = Doc(nlp.vocab, ["Ada", "sleeps"])
    reference.set_ents([], missing=[reference[0:1]], outside=[reference[1:2]])
    X, y = nlp.create_pipe("partwise_ner").training_data([Example(doc, reference)])
    assert y == [[None, "O"]] and X == [[("Ada",), ("sleeps",)]]


def test_tags_and_trees():
    nlp = spacy.blank("en")
    nlp.add_pipe("partwise_tagger", config={"max_epochs": 3})
    nlp.add_pipe("partwise_parser", config={"max_epochs": 3, "hash_bits": 12})
    words = [["the", "dog", "barks"], ["a", "cat", "sleeps"], ["the", "cat", "barks"]]
    given = {
        "tags": ["D", "N", "V"],
        "heads": [1, 2, 2],
        "deps": ["det", "nmod:poss", "ROOT"],
    }  # spaCy has no number for the second
    examples = [Example.from_dict(Doc(nlp.vocab, one), {"words": one, **given}) for one in words]
    nlp.initialize(lambda: examples)
    doc = nlp("a dog sleeps")
    assert [token.tag_ for token in doc] == ["D", "N", "V"]
    assert [token.head.i for token in doc] == [1, 2, 2] and [token.dep_ for token in doc] == ["det", "nmod:poss", "ROOT"]
    assert nlp.pipe_labels["partwise_tagger"] == ["D", "N", "V"] and set(nlp.pipe_labels["partwise_parser"]) == set(given["deps"])
    scores = nlp.evaluate(examples)
    assert scores["dep_uas"] == 1.0 and scores["tag_acc"] == 1.0
    assert set(scores["dep_las_per_type"]) == {"det", "nmod:poss", "ROOT"}
    assert len(nlp("")) == 0


def test_not_trained_and_nothing_to_learn_from():
    nlp = spacy.blank("en")
    nlp.add_pipe("partwise_ner")
    with pytest.raises(ValueError, match="partwise_ner is not trained"):
        nlp.get_pipe("partwise_ner")(nlp.make_doc("a"))
    with pytest.raises(ValueError, match="no example with the annotation"):
        nlp.get_pipe("partwise_ner").initialize(lambda: [])


def test_marginals_of_a_loss_without_them_are_refused_before_training():
    nlp = spacy.blank("en")
    nlp.add_pipe("partwise_ner", config={"marginals": True})
    with pytest.raises(ValueError, match="partwise_ner: marginals need a loss with probabilities.*'hinge'"):
        nlp.initialize(lambda: entities(nlp, 2))


def test_a_damaged_pipeline_is_named(tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("partwise_ner")
    nlp.to_disk(tmp_path)
    assert spacy.load(tmp_path).get_pipe("partwise_ner").model_ is None
    (tmp_path / "partwise_ner" / "partwise.model").write_bytes(b"anything")
    with pytest.raises(partwise.ModelFileError, match="partwise_ner/partwise.model"):
        spacy.load(tmp_path)


def test_a_version_that_was_not_tested_is_warned_of(monkeypatch):
    monkeypatch.setattr(spacy, "__version__", "3.80.1")
    with pytest.warns(UserWarning, match="tested with spaCy 3.7 and 3.8; this is 3.80.1"):
        importlib.reload(partwise.bridges.spacy_components)


def test_entities_that_cut_tokens_are_named_and_unknown():
    nlp = spacy.blank("en")
    with pytest.warns(UserWarning, match=r"could not be aligned in the text \"Ada lives\" with entities \"\[\(1, 3"):
        example = Example.from_dict(nlp.make_doc("Ada lives"), {"entities": [(1, 3, "PER")]})
    assert nlp.create_pipe("partwise_ner").training_data([example])[1] == [[None, "O"]]


@pytest.mark.slow
def test_spacy_train(tmp_path):
    from spacy.cli.train import train

    nlp = spacy.blank("en")
    DocBin(docs=[example.reference for example in entities(nlp)]).to_disk(tmp_path / "train.spacy")
    nlp.add_pipe("partwise_ner", config={"max_epochs": 4})
    config = nlp.config.copy()
    config["paths"] = {
        "train": str(tmp_path / "train.spacy"),
        "dev": str(tmp_path / "train.spacy"),
        "vectors": None,
        "init_tok2vec": None,
    }
    config["training"]["max_steps"] = 1
    config["training"]["eval_frequency"] = 1
    (tmp_path / "config.cfg").write_text(config.to_str())
    train(tmp_path / "config.cfg", tmp_path / "out")
    found = spacy.load(tmp_path / "out" / "model-last")
    assert [ent.text for ent in found("Ada lives in New York .").ents] == ["Ada", "New York"]
