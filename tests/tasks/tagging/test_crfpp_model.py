"""Text models of CRF++."""

import itertools

import numpy as np
import pytest

from crfpp_binary import write_binary_model
from partwise import ModelFileError
from partwise.tasks.tagging.crfpp_model import read_crfpp_model

pytestmark = pytest.mark.interpreted

MODEL = """version: 100
cost-factor: 2
maxid: 16
xsize: 2

Y
X

U00:%x[0,0]
U01:%x[-1,0]/%x[1,1]
B

0 U00:a
2 U00:b
4 B
8 U01:_B-1/V
10 U01:a/_B+1
12 U01:b/N
14 U01:_B-1/_B+1

"""
WEIGHTS = [0.5, -1.0, -0.25, 1.0, 0.3, -0.7, 0.9, 0.1, 0.4, 0.2, -0.6, 0.8, 1.5, -1.5, 0.05, 0.6]
TEXT = (MODEL + "\n".join(map(str, WEIGHTS)) + "\n\n").encode()
SENTENCE = [("a", "N"), ("b", "V"), ("c", "N")]


def score(sentence, labels):
    """As CRF++ would, by hand."""
    names = {"U00:a": 0, "U00:b": 2, "U01:_B-1/V": 8, "U01:a/_B+1": 10, "U01:b/N": 12, "U01:_B-1/_B+1": 14}
    total = 0.0
    for t, label in enumerate(labels):
        before = sentence[t - 1][0] if t else "_B-1"
        after = sentence[t + 1][1] if t + 1 < len(sentence) else "_B+1"
        for name in (f"U00:{sentence[t][0]}", f"U01:{before}/{after}"):
            if name in names:
                total += WEIGHTS[names[name] + "YX".index(label)]
        if t:
            total += WEIGHTS[4 + 2 * "YX".index(labels[t - 1]) + "YX".index(label)]
    return total  # the cost factor of the header is not used


@pytest.mark.parametrize("sentence", [SENTENCE, SENTENCE[:2], SENTENCE[:1], [("b", "N"), ("b", "N"), ("a", "V"), ("z", "?")]])
def test_labels_and_probabilities_by_hand(sentence):
    tagger = read_crfpp_model(TEXT)
    every = list(itertools.product("XY", repeat=len(sentence)))
    scores = np.array([score(sentence, y) for y in every])
    assert tuple(tagger.tag(sentence)) == every[int(np.argmax(scores))]
    p = np.exp(scores) / np.exp(scores).sum()
    expected = [[sum(q for y, q in zip(every, p, strict=True) if y[t] == k) for k in "XY"] for t in range(len(sentence))]
    np.testing.assert_allclose(tagger.predict_marginals([sentence])[0], expected, atol=1e-12)
    assert tagger.predict([sentence, sentence]) == [tagger.tag(sentence)] * 2


def test_features_of_pairs_and_text():
    """``B01:%x[0,0]``, by hand: the pairs of labels of the feature b count at the second token of SENTENCE alone."""
    text = TEXT.decode().replace("\nB\n", "\nB01:%x[0,0]\n").replace("4 B\n", "4 B01:b\n")
    tagger = read_crfpp_model(text.encode())
    plain = read_crfpp_model(TEXT.decode().replace("0.3\n-0.7\n0.9\n0.1\n", "0\n0\n0\n0\n").encode())
    every = list(itertools.product("XY", repeat=3))
    moves = {y: WEIGHTS[4 + 2 * "YX".index(y[0]) + "YX".index(y[1])] for y in every}
    found, base = (
        {tuple(y): score for y, score in one.labeler.predict_kbest([one.attributes(SENTENCE)], 8)[0]} for one in (tagger, plain)
    )
    assert found == pytest.approx({y: base[y] + moves[y] for y in every})


@pytest.mark.parametrize("factor", ["1", "2"])
def test_crfpp_itself_says_the_same(tmp_path, factor):
    """Its own tagger, over the binary file of the same model."""
    pycrfpp = pytest.importorskip("pycrfpp")
    text = TEXT.decode().replace("cost-factor: 2", f"cost-factor: {factor}")
    write_binary_model(text, tmp_path / "model")
    theirs, ours = pycrfpp.Tagger(f"-m {tmp_path / 'model'} -v 2"), read_crfpp_model(text.encode())
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 7):
        sentence = [
            (str(word), str(tag)) for word, tag in zip(rng.choice(list("abc"), n), rng.choice(list("NV"), n), strict=True)
        ]
        theirs.clear()
        for token in sentence:
            theirs.add(" ".join(token))
        assert theirs.parse()
        assert ours.tag(sentence) == [theirs.y2(t) for t in range(n)]
        marginals = [[theirs.prob(t, "YX".index(label)) for label in "XY"] for t in range(n)]
        np.testing.assert_allclose(ours.predict_marginals([sentence])[0], marginals, atol=1e-6)


def test_templates_are_written_out():
    assert read_crfpp_model(TEXT).attributes(SENTENCE)[0] == ["U00:a", "U01:_B-1/V"]
    with pytest.raises(ValueError, match="Token 1: the model looks at 2 columns. Got 1"):
        read_crfpp_model(TEXT).tag([("a", "N"), ("b",)])


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("maxid: 16", "maxid: 17", "expected 17 finite weights, got 16"),
        ("cost-factor: 2\n", "", "its header lacks one of"),
        ("4 B\n", "4 C01:a\n", "'C01:a' is of no template of CRF"),
        ("14 U01", "15 U01", "has no weights of its own"),
        ("14 U01", "13 U01", "has no weights of its own"),  # a small file of pairs that share weights would grow
        ("U00:%x[0,0]", "U00:%y[0,0]", "'U00:%y.0,0.' is not one of CRF"),
        ("xsize: 2", "xsize: 1", "look at 2 columns"),
        ("0.5\n", "", "expected 16 finite weights, got 15"),
        ("\n0 U00:a", "", "not 5"),
    ],
)
def test_damaged_files_are_refused(before, after, message):
    broken = TEXT.decode().replace(before, after, 1) if "not 5" != message else "version: 100\n"
    with pytest.raises(ModelFileError, match=message):
        read_crfpp_model(broken.encode())
