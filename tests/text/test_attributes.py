"""From attribute dicts and string lists to feature rows."""

import numpy as np
import pytest

from partwise.features.rows import Binary, Sparse, take_rows
from partwise.text.attributes import encode


def as_dicts(rows, vocabulary):
    names = list(vocabulary)
    values = rows.value if isinstance(rows, Sparse) else np.ones(len(rows.index))
    return [
        {names[f]: float(v) for f, v in zip(rows.index[a:b], values[a:b], strict=True)}
        for a, b in zip(rows.ptr[:-1], rows.ptr[1:], strict=True)
    ]


@pytest.mark.parametrize(
    ("token", "meant"),
    [
        ({"word": "the", "len": 3.0, "cap": True}, {"word:the": 1, "len": 3, "cap": 1}),
        ({"cap": False, "zero": 0, "n": 2}, {"n": 2}),
        ({"n": np.float32(0.5), "b": np.True_}, {"n": 0.5, "b": 1}),
        ({"shape": ["Xx", "x"], "emb": {"a": 0.5, "b": "c"}}, {"shape:Xx": 1, "shape:x": 1, "emb:a": 0.5, "emb:b:c": 1}),
        (["a", "b", "a"], {"a": 2, "b": 1}),
        (("a",), {"a": 1}),
        ([], {}),
        ({}, {}),
    ],
)
def test_meaning(token, meant):
    vocabulary = {}
    rows = encode([["first"], token, ["first"]], vocabulary, grow=True)
    assert as_dicts(rows, vocabulary) == [{"first": 1}, meant, {"first": 1}]
    # the same when all tokens are of one kind, which takes another path
    vocabulary = {}
    assert as_dicts(encode([token, token], vocabulary, grow=True), vocabulary) == [meant, meant]


def test_binary_where_all_values_are_one():
    assert isinstance(encode([{"a": "b", "c": 1.0}], {}, grow=True), Binary)
    assert isinstance(encode([["a", "a"]], {}, grow=True), Sparse)


@pytest.mark.parametrize("tokens", [[["a"], ["new", "b"]], [{"a": True}, {"new": 1.0, "b": 1}], [{"a": True}, ["new", "b"]]])
def test_unknown_attributes_are_ignored_at_prediction(tokens):
    vocabulary = {"a": 0, "b": 1}
    rows = encode(tokens, vocabulary, grow=False)
    assert as_dicts(rows, vocabulary) == [{"a": 1}, {"b": 1}] and vocabulary == {"a": 0, "b": 1}
    encode(tokens, vocabulary, grow=True)
    assert vocabulary == {"a": 0, "b": 1, "new": 2}


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("the", r"Got the bare string 'the' as token 1; write \['the'\]"),
        (3, "Got int as token 1"),
        ([1.5], r"must be strings. Got 1.5 \(float\) in token 1. For numbers use a dict"),
        ([["a"]], r"must be strings. Got \['a'\] \(list\) in token 1"),
        ({"a": None}, r"Got None \(NoneType\) for 'a' in token 1"),
        ({"a": [1, "b"]}, r"Got \[1, 'b'\] \(list\) for 'a' in token 1"),
        ({"a": np.zeros((1, 2))}, r"\(ndarray\) for 'a' in token 1"),
        ({3: "a"}, r"names of attributes must be strings. Got 3 \(int\) in token 1"),
    ],
)
@pytest.mark.parametrize("grow", [True, False])
def test_refused(token, message, grow):
    vocabulary = {}
    with pytest.raises(TypeError, match=message):
        encode([["fine"], token], vocabulary, grow=grow)
    assert vocabulary == {}  # a failed fit leaves nothing behind


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_not_finite(value):
    with pytest.raises(ValueError, match=f"NaN or infinity: attribute 'x' of token 2 is {value}"):
        encode([{"x": 1.0}, {}, {"y": 1.0, "x": value}], {}, grow=True)


def test_take_rows():
    vocabulary = {}
    tokens = [["a"], [], ["b", "c"], ["c"]]
    rows = take_rows(encode(tokens, vocabulary, grow=True), np.array([3, 1, 2]))
    assert as_dicts(rows, vocabulary) == [{"c": 1}, {}, {"b": 1, "c": 1}]
    rows = take_rows(encode([{"a": 2.0}, {"b": 3.0}], {}, grow=True), np.array([1, 0]))
    assert rows.value.tolist() == [3.0, 2.0]


def test_vectors_are_attributes_by_their_places():
    vocabulary = {}
    tokens = [{"emb": [0.5, 0.0, -2]}, {"emb": np.array([1.0, 2.0, 3.0], np.float32), "w": "x"}, {"emb": (True, False, True)}]
    rows = encode(tokens, vocabulary, grow=True)
    assert list(vocabulary) == ["emb:0", "emb:1", "emb:2", "w:x"]
    assert rows.ptr.tolist() == [0, 2, 6, 8] and rows.value.tolist() == [0.5, -2, 1, 2, 3, 1, 1, 1]
    with pytest.raises(ValueError, match="NaN or infinity: attribute 'emb:1' of token 0 is nan"):
        encode([{"emb": [0.0, float("nan")]}], {}, grow=True)


def test_bytes_are_read_as_utf8():
    for tokens in ([["é", "b"], ["b"]], [{"é": "b", "c": ["d"]}, {"c": "d"}]):
        as_bytes = [
            [name.encode() for name in token]
            if isinstance(token, list)
            else {
                k.encode(): [v.encode() for v in value] if isinstance(value, list) else value.encode()
                for k, value in token.items()
            }
            for token in tokens
        ]
        here, there = {}, {}
        for a, b in zip(encode(as_bytes, here, grow=True), encode(tokens, there, grow=True), strict=True):
            np.testing.assert_array_equal(a, b)
        assert here == there
        np.testing.assert_array_equal(encode(as_bytes, here, grow=False).index, encode(tokens, there, grow=False).index)
