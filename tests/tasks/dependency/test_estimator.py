"""`DependencyParser`: from sentences in Python and from treebanks; relations, files, errors; trees of second order."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import partwise
from partwise import DependencyParser
from partwise.datasets import read_treebank
from partwise.files.tensors import ModelFileError, read_tensors, write_tensors
from partwise.structures.dependency.problem import cycle
from partwise.tasks.common.model_file import FORMAT, FORMAT_VERSION, to_json
from partwise.tasks.dependency.data import Tree
from small_treebanks import NOUNS, as_conllu, sentences

FAST = {"C": 0.05, "solver": "dca"}
SMALL = {**FAST, "hash_bits": 14, "max_epochs": 5}


@pytest.fixture(scope="module")
def parser():
    return DependencyParser(**SMALL).fit(*sentences())


def test_learns_and_answers(parser):
    X, y = sentences(10, seed=1)
    trees = parser.predict(X)
    assert [(t.heads, t.relations) for t in trees] == y
    assert parser.score(X, y) == 1.0
    assert parser.attachment(X, y).complete == 1.0
    assert parser.classes_.tolist() == ["nsubj", "obj", "punct", "root"] and parser.single_root_
    assert parser.predict([]) == [] and parser.predict([[]]) == [Tree([], [])]
    assert parser.predict([[{"form": "stop", "upos": "V"}]])[0].heads == [0]


@pytest.mark.interpreted
def test_relations_are_learnt_by_the_same_rule_as_heads(parser):
    """What is not said of C and epochs is decided where it is for heads."""
    X, y = sentences()
    asked = []

    class Asking(DependencyParser):
        def _choose(self, loss, problem, *more, **further):
            asked.append(type(problem))
            return super()._choose(loss, problem, *more, **further)

    Asking(hash_bits=10, max_epochs=1).fit(X, y)
    assert [kind.__name__ for kind in asked] == ["TreeProblem", "MulticlassProblem"]
    little, more = (DependencyParser(C=C, hash_bits=10, max_epochs=1).fit(X, y).relation_weights_ for C in (1e-4, 1.0))
    assert 0 < np.abs(little).max() < np.abs(more).max()  # what is said of C counts for relations, too


def test_a_treebank_is_as_good(parser):
    X, y = sentences()
    treebank = read_treebank(as_conllu(X, y).encode())
    other = DependencyParser(**SMALL).fit(treebank)
    test = read_treebank(as_conllu(*sentences(10, seed=1)).encode())
    assert other.score(test) == 1.0
    assert other.parse(test) == as_conllu(*sentences(10, seed=1))
    blank = read_treebank(as_conllu(*sentences(10, seed=1)).replace("nsubj", "_").encode())
    assert other.parse(blank).count("nsubj") == 10


def test_files(parser, tmp_path):
    X, _ = sentences(10, seed=1)
    parser.save(tmp_path / "model")
    again = partwise.load(tmp_path / "model")
    assert isinstance(again, DependencyParser) and again.predict(X) == parser.predict(X)
    assert again.columns_ == parser.columns_ and again.single_root_ is True
    unlabelled = DependencyParser(**FAST, hash_bits=10, relations=False, max_epochs=2).fit(*sentences())
    unlabelled.save(tmp_path / "bare")
    assert partwise.load(tmp_path / "bare").predict(X)[0].relations is None
    header, tensors = read_tensors(str(tmp_path / "bare"), FORMAT, FORMAT_VERSION)
    assert "labels" not in header["model"]
    header["model"] |= {"labels": to_json(np.array(["dep"], object), ""), "labelled": False, "n_features": 1024}
    write_tensors(tmp_path / "old", header, tensors)  # there had to be a label once
    old = partwise.load(tmp_path / "old")
    assert old.predict(X) == unlabelled.predict(X) and not len(old.classes_)


@pytest.mark.parametrize(
    ("templates", "order", "message"),
    [
        (["h.form|m.upos"] * 1200, 1, "At most 256 templates of arcs or spans can be used. Got 1200 instead"),
        (["h.form", *["s.form|m.upos"] * 99], 2, "At most 64 templates of siblings .* Got 99 of one kind instead"),
        (["h.form", "evil"], 1, "arc template 'evil': cannot read"),
        ([["h.form"]], 1, "TypeError"),
    ],
)
def test_templates_that_cannot_be_used(parser, tmp_path, templates, order, message):
    """They are refused by training, and in a file before anything is done with them."""
    path = tmp_path / "model"
    parser.save(path)
    header, tensors = read_tensors(str(path), FORMAT, FORMAT_VERSION)
    header["parameters"] |= {"templates": templates, "order": order}
    write_tensors(path, header, tensors)
    with pytest.raises(ModelFileError, match=message):
        partwise.load(path)
    if "Error" not in message:
        with pytest.raises(ValueError, match=message):
            clone(parser).set_params(templates=templates, order=order, max_epochs=1).fit(*sentences(3))


@pytest.mark.interpreted
def test_probabilities_and_kbest(parser):
    X, y = sentences()
    crf = clone(parser).set_params(loss="crf", C=1.0).fit(X, y)
    marginals = crf.predict_marginals(X[:3])
    for p, words in zip(marginals, X[:3], strict=True):
        assert p.shape == (len(words), len(words) + 1)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-6)
        assert p[0, 2] > 0.5
    with pytest.raises(ValueError, match="fits scores, not probabilities"):
        parser.predict_marginals(X[:1])
    best = parser.predict_kbest(X[:1], k=3)[0]
    assert best[0][0] == y[0][0] and best[0][1] > best[1][1] >= best[2][1]
    assert all(not cycle(np.array(heads)) for heads, _ in best)


def test_several_roots_and_projective_trees():
    X, y = sentences()
    y[0] = ([0, 0, 2], ["root", "root", "obj"]) if len(X[0]) == 3 else ([0, 0, 2, 2], ["root", "root", "obj", "punct"])
    assert DependencyParser(**FAST, hash_bits=10, max_epochs=1).fit(X, y).single_root_ is False
    with pytest.raises(ValueError, match="sentence 0: words 1, 2 hang from the root"):
        DependencyParser(hash_bits=10, single_root=True).fit(X, y)
    treebank = read_treebank(as_conllu(X, y).encode())
    with pytest.raises(ValueError, match="<bytes>, line 2, sentence 0: words 1, 2 hang from the root"):
        DependencyParser(hash_bits=10, single_root=True).fit(treebank)
    X, y = sentences()
    X.append([{"form": c, "upos": "X"} for c in "abcd"])
    y.append(([3, 4, 0, 3], ["x"] * 4))
    with pytest.warns(UserWarning, match="1 of 26 training trees have crossing arcs"):
        found = DependencyParser(**FAST, hash_bits=10, projective=True, max_epochs=2).fit(X, y)
    assert "x" not in found.classes_.tolist()


def test_sentences_of_any_length(parser):
    """None, one and 500 words, in training and after."""
    X, y = sentences(5)
    rng = np.random.default_rng(0)
    X += [[], [{"form": "stop", "upos": "V"}], [{"form": str(word), "upos": "X"} for word in rng.choice(NOUNS, 500)]]
    y += [
        ([], []),
        ([0], ["root"]),
        ([0, *rng.integers(1, 3, 1), *(int(rng.integers(1, k)) for k in range(3, 501))], ["x"] * 500),
    ]
    y[-1][0][1] = 1
    found = clone(parser).set_params(max_epochs=2).fit(X, y)
    trees = found.predict(X)
    assert [len(tree.heads) for tree in trees] == [len(words) for words in X] and trees[-2].heads == [0]
    assert all(tree.heads.count(0) == 1 and not cycle(np.array(tree.heads)) for tree in trees if tree.heads)


@pytest.mark.interpreted
def test_early_stopping_and_unknown_heads():
    X, y = sentences()
    held = DependencyParser(**FAST, hash_bits=12, max_epochs=8, early_stopping=True, patience=2).fit(X, y)
    assert held.result_.history[0].validation == held.result_.history[0].validation
    some = [([None, *heads[1:]], [None, *relations[1:]]) for heads, relations in y]
    found = DependencyParser(**FAST, hash_bits=12, max_epochs=5).fit(X, some)
    assert found.attachment(X, some).uas == 1.0 and "nsubj" not in found.classes_.tolist()
    for unknown in (None, [[None] * len(words) for words in X]):
        with pytest.raises(ValueError, match="cannot tell when to stop: no head of the held-out sentences is known"):
            DependencyParser(**FAST).fit(X, y, validation=(X, unknown))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hash_bits": 40}, r"'hash_bits' parameter of DependencyParser must be an int in the range \[1, 30\]"),
        ({"projective": 3}, "'projective' parameter"),
        ({"single_root": "yes"}, "'single_root' parameter"),
        ({"templates": ["h.colour"]}, "No arc template can be used"),
        ({"loss": "none"}, "'loss' parameter"),
    ],
)
def test_bad_parameters(change, message):
    with pytest.raises(ValueError, match=message):
        DependencyParser(**change).fit(*sentences(3))


def test_bad_data(parser):
    X, y = sentences(3)
    with pytest.raises(ValueError, match="no trees to learn from"):
        DependencyParser().fit(X)
    with pytest.raises(ValueError, match="3 sentences, but 2 trees"):
        DependencyParser().fit(X, y[:2])
    with pytest.raises(ValueError, match="sentence 1 has"):
        DependencyParser().fit(X, [y[0], ([0], ["root"]), y[2]])
    with pytest.raises(TypeError, match="list of lists of words"):
        parser.predict("text")
    with pytest.raises(ValueError, match="looks at the column 'upos'"):
        parser.predict([["dogs"]])


# ---------------------------------------------------------------------------------------------------------------------
# Second order
# ---------------------------------------------------------------------------------------------------------------------


def corpus(n, seed):
    """Words hang from the one before, but one after a B hangs from that B's head; all words look alike from outside."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        size = int(rng.integers(3, 6))
        tags = rng.choice(list("AB"), size)
        heads = [0]
        for m in range(1, size):
            heads.append(heads[m - 1] if tags[m - 1] == "B" and heads[m - 1] else m)
        X.append([{"form": str(tag), "upos": str(tag)} for tag in tags])
        y.append(heads)
    return X, y


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_the_parser(tmp_path):
    X, y = corpus(8, 0)
    with partwise.interpret():
        model = DependencyParser(**FAST, hash_bits=12, order=2, max_epochs=2).fit(X, y)
        assert model.attachment(X, y).uas > 0.8
        assert 0.0 < model.proven_ <= 1.0
        model.save(tmp_path / "model")
        again = partwise.load(tmp_path / "model")
        assert [t.heads for t in again.predict(X)] == [t.heads for t in model.predict(X)]
        (best, value), (_, second) = model.predict_kbest(X[:1], k=2)[0]
        assert best == list(model.predict(X[:1])[0].heads) and value >= second
    with pytest.raises(ValueError, match="must be 1 or 2"):
        DependencyParser(order=3).fit(X, y)
    with pytest.raises(ValueError, match="a sibling .* or a grandparent"), partwise.interpret():
        DependencyParser(order=2, templates=["h.upos|m.upos", "s.upos|g.upos"]).fit(X, y)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_arc_probabilities_of_second_order():
    X, y = corpus(6, 2)
    with partwise.interpret():
        model = DependencyParser("crf", **FAST, hash_bits=12, order=2, max_epochs=1).fit(X, y)
        for p in model.predict_marginals(X[:3]):
            np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-9)  # a word's head is one variable
        for sums in ("bethe", "trw"):
            model = DependencyParser("crf", C=0.1, solver="lbfgs", hash_bits=12, order=2, sums=sums, max_epochs=2).fit(
                X[:3], y[:3]
            )
            assert model.result_.n_skipped == 0 and 0.0 < model.result_.primal < model.result_.history[0].primal + 1e-9
        with pytest.raises(ValueError, match="'sums' parameter .* must be 'bethe' or 'trw'. Got 'all'"):
            DependencyParser(order=2, sums="all").fit(X, y)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize(("loss", "solver"), [("hinge", "auto"), ("crf", "lbfgs")])
def test_second_order_completes_unknown_heads(loss, solver):
    X, y = corpus(6, 2)
    some = [[None, *heads[1:]] for heads in y]
    with partwise.interpret():
        model = DependencyParser(loss, C=1.0, solver=solver, hash_bits=12, order=2, max_epochs=2).fit(X, some)
        assert model.score(X, y) > 0.5 and model.result_.primal >= 0.0
        scores = [score for _, score in model.predict_kbest(X[:1], 3)[0]]
        assert scores == sorted(scores, reverse=True)


@pytest.mark.slow
@pytest.mark.data
def test_second_order_is_better_on_english(corpora):
    """A tenth of English-EWT, compiled: some minutes."""
    train, dev = (
        read_treebank(corpora / "ud_english_ewt" / f"en_ewt-ud-{part}.conllu.gz", first=1000) for part in ("train", "dev")
    )
    shared = {**FAST, "relations": False, "max_epochs": 5}
    uas = [DependencyParser(order=order, **shared).fit(train).attachment(dev).uas for order in (1, 2)]
    assert uas[1] > uas[0] + 0.01
