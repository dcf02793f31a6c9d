"""Readers and generators."""

import numpy as np
import pytest

from partwise.datasets import (
    chunking_attributes,
    data_folder,
    digit_grammar,
    load_conll2000,
    load_news20,
    load_usps,
    make_digit_words,
    make_sentences,
    make_tagged_sequences,
    write_sentences,
)
from partwise.datasets.synthetic import _digit_images
from partwise.text.chunk_schemes import count_repairs
from partwise.text.columns import read_columns


def test_made_up_sentences(tmp_path):
    sentences = make_sentences(50, seed=1)
    assert sentences == make_sentences(50, seed=1) != make_sentences(50, seed=2)
    assert count_repairs([[token[2] for token in sentence] for sentence in sentences], "iob2") == 0
    assert all(len(token) == 3 and all(token) for sentence in sentences for token in sentence)
    paths = write_sentences(tmp_path / "new", (("train", 5), ("test", 3)))
    assert [path.name for path in paths] == ["train.txt", "test.txt"]
    assert read_columns(paths[0]).sentences() == make_sentences(5, seed=0)


def test_chunking_attributes_of_a_short_sentence():
    first, middle, last = chunking_attributes([("He", "PRP", "B-NP"), ("runs", "VBZ", "B-VP"), ("off", "RP", "O")])
    assert first == [
        "w[0]=He", "w[1]=runs", "w[2]=off", "w[0]|w[1]=He|runs",
        "pos[0]=PRP", "pos[1]=VBZ", "pos[2]=RP", "pos[0]|pos[1]=PRP|VBZ", "pos[1]|pos[2]=VBZ|RP",
        "pos[0]|pos[1]|pos[2]=PRP|VBZ|RP", "__BOS__",
    ]  # fmt: skip
    assert "pos[-1]|pos[0]|pos[1]=PRP|VBZ|RP" in middle
    assert "__BOS__" not in middle and "__EOS__" not in middle
    assert last[-1] == "__EOS__" and "w[-2]=He" in last
    assert chunking_attributes([("Yes", "UH")]) == [["w[0]=Yes", "pos[0]=UH", "__BOS__", "__EOS__"]]
    assert len(chunking_attributes([("x", "X")] * 5)[2]) == 19
    assert chunking_attributes([]) == []


def test_digit_words_obey_the_grammar():
    start, transitions = digit_grammar()
    np.testing.assert_allclose(transitions.sum(1), 1)
    assert ((transitions > 0).sum(1) == 3).all()
    X, y = make_digit_words(200, seed=3)
    assert len(X) == len(y) == 200
    for x, word in zip(X, y, strict=True):
        assert x.shape == (len(word), 64) and 4 <= len(word) <= 9
        assert x.min() >= 0 and x.max() <= 1
        assert start[word[0]] > 0
        assert all(transitions[a, b] > 0 for a, b in zip(word[:-1], word[1:], strict=True))
    assert {d for word in y for d in word} == set(range(10))


def test_digit_words_depend_on_the_seed_alone_and_parts_share_no_image():
    a, b, c = (make_digit_words(20, seed=s) for s in (1, 1, 2))
    assert a[1] == b[1] and a[1] != c[1]
    np.testing.assert_array_equal(np.vstack(a[0]), np.vstack(b[0]))
    train, test = (make_digit_words(400, noise=0, part=part) for part in ("train", "test"))
    seen = {x.tobytes() for x in np.vstack(train[0])}
    assert not seen & {x.tobytes() for x in np.vstack(test[0])}
    images, digits = _digit_images()
    label = {x.tobytes(): int(d) for x, d in zip(images, digits, strict=True)}
    assert [label[x.tobytes()] for x in np.vstack(test[0])] == [d for word in test[1] for d in word]
    with pytest.raises(ValueError, match="'part' parameter of make_digit_words must be 'train' or 'test'. Got 'dev' instead"):
        make_digit_words(1, part="dev")


def test_tagged_sequences():
    X, y = make_tagged_sequences(50, seed=1)
    assert [len(x) for x in X] == [len(labels) for labels in y]
    assert {label for labels in y for label in labels} == {"O", "B-PER", "I-PER", "B-LOC", "I-LOC"}
    assert all(isinstance(a, str) for x in X for token in x for a in token)
    for labels in y:
        for before, label in zip(["O", *labels], labels, strict=False):
            assert label[0] != "I" or before[2:] == label[2:]
    assert make_tagged_sequences(50, seed=1) == (X, y)
    dicts, same = make_tagged_sequences(50, seed=1, as_dicts=True)
    assert same == y and isinstance(dicts[0][0]["word"], str) and isinstance(dicts[0][0]["length"], float)


def test_the_data_folder_is_asked_for_clearly(monkeypatch, tmp_path):
    monkeypatch.delenv("PARTWISE_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match="PARTWISE_DATA, which is not set"):
        data_folder()
    monkeypatch.setenv("PARTWISE_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    with pytest.raises(FileNotFoundError, match="there is no .*conll2000"):
        load_conll2000()


@pytest.mark.data
def test_conll2000_has_the_published_attribute_count():
    train = load_conll2000("train")
    assert (len(train), sum(map(len, train)), len(load_conll2000("test"))) == (8936, 211727, 2012)
    assert len({a for sentence in train for token in chunking_attributes(sentence) for a in token}) == 335674


@pytest.mark.data
def test_multiclass_corpora():
    x, y, x_test, y_test = load_news20()
    assert x.shape == (11314, 44887) and x_test.shape == (7532, 44887) and set(y) == set(y_test) == set(range(20))
    np.testing.assert_allclose(np.sqrt(x.multiply(x).sum(1)).max(), 1)
    x, y, x_test, y_test = load_usps()
    assert x.shape == (7291, 256) and x_test.shape == (2007, 256) and set(y) == set(y_test) == set(range(10))
    assert x.min() == -1 and x.max() == 1
