"""`DependencyParser`: from sentences in Python and from treebanks; relations, files, errors, pictures."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import partwise
from partwise import DependencyParser
from partwise.datasets import read_treebank
from partwise.features.arc_rows import MOST, arc_features, arc_rows
from partwise.structures.dependency.kernels import cycle
from partwise.tasks.dependency.data import Tree, read_sentences
from partwise.tasks.dependency.drawing import as_svg, as_text
from partwise.tasks.dependency.inspection import attachments, pair_template, strongest

NOUNS, VERBS = ("dogs", "cats", "we", "birds", "men"), ("eat", "chase", "read", "see")


def sentences(n=25, seed=0):
    """Subject, verb, object, sometimes a full stop: the verb is the root."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        words = [(str(rng.choice(NOUNS)), "N"), (str(rng.choice(VERBS)), "V"), (str(rng.choice(NOUNS)), "N")]
        heads, relations = [2, 0, 2], ["nsubj", "root", "obj"]
        if rng.random() < 0.5:
            words, heads, relations = [*words, (".", ".")], [*heads, 2], [*relations, "punct"]
        X.append([{"form": form, "upos": tag} for form, tag in words])
        y.append((heads, relations))
    return X, y


def as_conllu(X, y):
    lines = []
    for words, (heads, relations) in zip(X, y, strict=True):
        for k, (word, head, relation) in enumerate(zip(words, heads, relations, strict=True), 1):
            lines.append(f"{k}\t{word['form']}\t_\t{word['upos']}\t_\t_\t{head}\t{relation}\t_\t_")
        lines.append("")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def parser():
    return DependencyParser(hash_bits=14, max_epochs=5, random_state=0).fit(*sentences())


def test_learns_and_answers(parser):
    X, y = sentences(10, seed=1)
    trees = parser.predict(X)
    assert [(t.heads, t.relations) for t in trees] == y
    assert parser.score(X, y) == 1.0
    assert parser.attachment(X, y).complete == 1.0
    assert parser.classes_.tolist() == ["nsubj", "obj", "punct", "root"] and parser.single_root_
    assert parser.predict([]) == [] and parser.predict([[]]) == [Tree([], [])]
    assert parser.predict([[{"form": "stop", "upos": "V"}]])[0].heads == [0]


def test_a_treebank_is_as_good(parser):
    X, y = sentences()
    treebank = read_treebank(as_conllu(X, y).encode())
    other = DependencyParser(hash_bits=14, max_epochs=5, random_state=0).fit(treebank)
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
    unlabelled = DependencyParser(hash_bits=10, relations=False, max_epochs=2).fit(*sentences())
    unlabelled.save(tmp_path / "bare")
    assert partwise.load(tmp_path / "bare").predict(X)[0].relations is None


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
    assert DependencyParser(hash_bits=10, max_epochs=1).fit(X, y).single_root_ is False
    with pytest.raises(ValueError, match="sentence 0: words 1, 2 hang from the root"):
        DependencyParser(hash_bits=10, single_root=True).fit(X, y)
    treebank = read_treebank(as_conllu(X, y).encode())
    with pytest.raises(ValueError, match="<bytes>, line 2, sentence 0: words 1, 2 hang from the root"):
        DependencyParser(hash_bits=10, single_root=True).fit(treebank)
    X, y = sentences()
    X.append([{"form": c, "upos": "X"} for c in "abcd"])
    y.append(([3, 4, 0, 3], ["x"] * 4))
    with pytest.warns(UserWarning, match="1 of 26 training trees have crossing arcs"):
        found = DependencyParser(hash_bits=10, projective=True, max_epochs=2, random_state=0).fit(X, y)
    assert "x" not in found.classes_.tolist()


@pytest.mark.filterwarnings("ignore:overflow encountered")  # hashes wrap around
def test_attachments_are_weights_of_arcs(parser, tmp_path):
    """What inspection looks up by tags is what an arc between such words has."""
    index, tags, found = np.zeros(MOST, np.int64), "NVNV.NV", attachments(parser)
    words = read_sentences([[("word", tag) for tag in tags]], None, parser.columns_).words
    rows = arc_rows(words, parser.columns_, [pair_template(parser)], bits=14)
    for r in range(len(rows.head)):
        m, h = divmod(r, len(tags) + 1)
        if h == m + 1:
            continue
        n = arc_features(rows, r, index)
        length = min(abs(h - m - 1), 5) - 1
        place = (int(h > m), length, found.heads.index(tags[h - 1] if h else "root"), found.words.index(tags[m]), 0)
        np.testing.assert_allclose(found.weights[place], parser.weights_[index[:n]].sum(), rtol=1e-6)
    top = strongest(parser, 2)
    assert ("V", "N", "right", "1") in [one[:4] for one in top["for"]] and top["relations"]["obj"][0][:3] == ("V", "N", "left")
    parser.save(tmp_path / "model")
    again = partwise.load(tmp_path / "model")
    assert again.tags_ == parser.tags_ == (".", "N", "V") and strongest(again, 2) == top
    bare = clone(parser).set_params(templates=["h.form|m.form"], max_epochs=1).fit(*sentences())
    with pytest.raises(ValueError, match="no template h.upos|m.upos"):
        attachments(bare)


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


def test_early_stopping_and_unknown_heads():
    X, y = sentences()
    held = DependencyParser(hash_bits=12, max_epochs=8, early_stopping=True, patience=2, random_state=0).fit(X, y)
    assert held.result_.history[0].validation == held.result_.history[0].validation
    some = [([None, *heads[1:]], [None, *relations[1:]]) for heads, relations in y]
    found = DependencyParser(hash_bits=12, max_epochs=5, random_state=0).fit(X, some)
    assert found.attachment(X, some).uas == 1.0 and "nsubj" not in found.classes_.tolist()


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
    with pytest.raises(ValueError, match="2 cells, but 1 columns are named"):
        read_sentences([[("a", "b")]], None, ["form"])


def test_pictures():
    words, heads, relations = ["They", "buy", "<books>"], [2, 0, 2], ["nsubj", "root", "obj"]
    text = as_text(words, heads, relations)
    assert text.splitlines() == ["┌─> They     nsubj", "├── buy      root", "└─> <books>  obj"]
    assert Tree(heads, relations).draw(words) == text
    picture = as_svg(words, heads, relations)
    assert picture.startswith("<svg") and "&lt;books&gt;" in picture and picture.count("<path") == 6
    assert as_text([], []) == "" and as_text(["Yes"], [0]).strip() == "Yes"
    with pytest.raises(ValueError, match="from 0 to 3"):
        as_text(words, [2, 0, 9])
    with pytest.raises(ValueError, match="for each of 3 words"):
        as_svg(words, [0])
