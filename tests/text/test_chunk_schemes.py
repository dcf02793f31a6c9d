"""Chunking schemes: reading, recognising, converting, repairing, against plain writers of our own."""

import gzip
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partwise.metrics import spans
from partwise.text import chunk_schemes as schemes
from partwise.text.chunk_schemes import SCHEMES, convert, convert_coded, count_repairs, may_follow, recognise, recognise_coded

NAMES = list(SCHEMES)
TYPES = ["X", "Y-Z", ""]


def write(length, found, scheme):
    """Spans (type, first, last + 1) as labels, one scheme at a time: what `convert` has to give."""
    labels = ["O"] * length
    for kind, a, b in found:
        follows = any(other == kind and end == a for other, _, end in found)
        precedes = any(other == kind and start == b for other, start, _ in found)
        prefix = ["I"] * (b - a)
        if scheme == "iob2" or (scheme == "iob1" and follows):
            prefix[0] = "B"
        elif scheme == "ioe2" or (scheme == "ioe1" and precedes):
            prefix[-1] = "E"
        elif scheme in ("iobes", "bilou"):
            first, last, single = {"iobes": "BES", "bilou": "BLU"}[scheme]
            prefix[0], prefix[-1] = first, last
            if b - a == 1:
                prefix[0] = single
        labels[a:b] = [f"{p}-{kind}" if kind else p for p in prefix]
    return labels


@st.composite
def chunked(draw):
    """A length and spans of it, neighbours included."""
    found, t = [], 0
    for length, kind in draw(st.lists(st.tuples(st.integers(1, 3), st.sampled_from([None, *TYPES])), max_size=6)):
        if kind is not None:
            found.append((kind, t, t + length))
        t += length
    return t, found


def any_labels(prefixes):
    """Label sequences over these prefixes, well formed or not."""
    labels = ["O", *(f"{p}-{kind}" if kind else p for p in prefixes for kind in TYPES)]
    return st.lists(st.lists(st.sampled_from(labels), max_size=7), max_size=5)


@given(st.lists(chunked(), max_size=4), st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_conversion_keeps_spans_and_writes_the_scheme(sentences, source, target):
    written = {name: [write(n, found, name) for n, found in sentences] for name in (source, target)}
    assert convert(written[source], target) == written[target]
    assert convert(written[source], target, source) == written[target]
    assert convert(convert(written[source], target), source, target) == written[source]
    assert [spans(labels) for labels in written[target]] == [found for _, found in sentences]
    assert count_repairs(written[source], source) == 0


@given(st.sampled_from(NAMES).flatmap(lambda name: st.tuples(st.just(name), any_labels(set(SCHEMES[name].letters)))))
def test_repairs_of_ill_formed_labels(case):
    scheme, sentences = case
    repaired = convert(sentences, scheme, scheme)
    assert [spans(labels) for labels in repaired] == [spans(labels) for labels in sentences]
    changed = sum(a != b for old, new in zip(sentences, repaired, strict=True) for a, b in zip(old, new, strict=True))
    assert count_repairs(sentences, scheme) == changed
    assert convert(repaired, scheme, scheme) == repaired and count_repairs(repaired, scheme) == 0
    for target in NAMES:
        assert [spans(labels) for labels in convert(sentences, target, scheme)] == [spans(labels) for labels in sentences]


@pytest.mark.parametrize("scheme", NAMES)
def test_what_may_follow_what_against_enumeration(scheme):
    labels = ["O", *(f"{p}-{kind}" for p in sorted(set(SCHEMES[scheme].letters)) for kind in "XY")]

    def segmentations(n):
        if n == 0:
            yield []
        for length in range(1, n + 1):
            for rest in segmentations(n - length):
                for kind in ("X", "Y", *([None] if length == 1 else [])):
                    yield [(kind, n - length, n), *rest]

    for n in range(1, 5):
        well_formed = {tuple(write(n, [span for span in found if span[0] is not None], scheme)) for found in segmentations(n)}
        for sentence in itertools.product(labels, repeat=n):
            parsed = [("O", ""), *map(schemes.split_label, sentence), ("O", "")]
            pairs = zip(parsed[:-1], parsed[1:], strict=True)
            assert all(may_follow(scheme, a[0], b[0], a[1] == b[1]) for a, b in pairs) == (sentence in well_formed), sentence


@pytest.mark.parametrize(
    "labels, expected",
    [
        ([["B-X", "I-X", "O"], ["B-Y"]], "iob2"),
        ([["I-X", "I-X", "B-X", "O"], ["I-Y"]], "iob1"),
        ([["I-X", "B-X"]], "iob1"),
        ([["B-X", "B-X"]], "iob2"),
        ([["O", "B-X", "I-X"], ["B-X"], ["O", "I-X"]], "iob2"),  # with one error
        ([["B", "E", "S", "O"]], "iobes"),
        ([["S-X"]], "iobes"),
        ([["B-X", "L-X", "O"]], "bilou"),
        ([["U-X", "O"]], "bilou"),
        ([["I-X", "E-X", "E-X"]], "ioe2"),
        ([["I-X", "E-X", "I-X", "O"]], "ioe1"),
        ([["O"], []], "iob2"),
        ([["E-X", "L-X"]], None),
        ([["DET", "NOUN"]], None),
        ([["B-X", "O-X"]], None),
        ([[1, 2]], None),
        ([[]], None),
        ([], None),
        ({"B-X", "I-X", "O"}, "iob2"),
        (["O", "I-X"], "iob1"),
        (["O", "B-X", "I-X", "I-Y"], "iob1"),  # in IOB2 there would be a B-Y
        (np.array(["O", "B-X", "I-X", "E-X", "S-X"]), "iobes"),
        (["O", "E-X", "I-X"], "ioe2"),
        (["U", "O"], "bilou"),
        (["O", "VB", "NN"], None),
        (["O", None], None),
        (np.array([1, 2]), None),
    ],
)
def test_recognise(labels, expected):
    assert recognise(labels) == expected


def test_recognise_what_was_written():
    sentences = [(5, [("X", 0, 2), ("X", 2, 3), ("Y", 4, 5)]), (3, [("X", 0, 3)]), (0, [])]
    for name in NAMES:
        written = [write(n, found, name) for n, found in sentences]
        assert recognise(written) == name
        number = {}
        codes, starts = schemes.code_sequences(written, number)
        assert recognise_coded(codes, starts, list(number)) == name
        assert recognise_coded(codes, starts, [*number, "NOUN"]) == name  # what does not occur does not count
    assert recognise_coded(codes[:0], [0], ["O", "S-X"]) == "iobes"  # no tokens: by the labels


def test_conversion_of_numbered_labels():
    labels = ["never", "I-X", "B-X", "O"]
    codes, starts = np.array([2, 1, 3, 1, 1], np.int32), np.array([0, 0, 3, 5])
    found = convert_coded(codes, starts, labels, "iobes", "iob2")
    assert found.labels == ["B-X", "E-X", "O"] and found.codes.tolist() == [0, 1, 2, 0, 1] and found.n_repaired == 1
    nothing = convert_coded(np.zeros(0, int), np.array([0]), labels, "iob1")
    assert nothing.labels == [] and len(nothing.codes) == 0 and nothing.n_repaired == 0
    assert convert([], "iob2") == [] and convert([[], []], "iob2", "iob1") == [[], []] and count_repairs([]) == 0


def test_messages_say_where():
    with pytest.raises(ValueError, match="The 'to' parameter must be one of 'iob2', 'iob1', 'iobes'.* Got 'bio' instead"):
        convert([["O"]], "bio")
    with pytest.raises(ValueError, match="The 'from_' parameter must be one of"):
        convert([], "iob2", "bio")
    with pytest.raises(ValueError, match="The 'scheme' parameter must be one of"):
        count_repairs([], "bio")
    with pytest.raises(ValueError, match="Sequence 1, token 0 of labels: the label 'NOUN' is not of the form B-type"):
        convert([["O"], ["NOUN"]], "iob2")
    with pytest.raises(
        ValueError, match="Sequence 2, token 1: the scheme 'iob2' has the prefixes B, I and 'O'. Got the label 'E-X'"
    ):
        convert([["O"], [], ["B-X", "E-X"]], "iob1", "iob2")
    with pytest.raises(ValueError, match="The prefixes E, L are not those of one scheme"):
        convert([["E-X", "L-X"]], "iob2")
    with pytest.raises(TypeError, match="Sequence 1 is 'O'"):
        convert([["O"], "O"], "iob2")
    with pytest.raises(TypeError, match="must be a list of label sequences. Got a str"):
        convert("O", "iob2")
    with pytest.raises(TypeError, match="Labels must be hashable. Sequence 0, token 1 of sequences is {'O'}"):
        convert([["O", {"O"}]], "iob2")
    with pytest.raises(TypeError, match="Got a str"):
        recognise("B-X")
    with pytest.raises(ValueError, match="starts must begin with 0, never fall, and end with the number of tokens, 2"):
        recognise_coded(np.array([0, 0]), np.array([0, 1]), ["O"])
    with pytest.raises(ValueError, match="Sequence 1, token 0: the code 3 of codes is not one of the 1 labels"):
        recognise_coded(np.array([0, 3]), np.array([0, 1, 2]), ["O"])
    with pytest.raises(ValueError, match="codes must be a 1-D array of integers"):
        recognise_coded(np.array([0.5]), np.array([0, 1]), ["O"])


@pytest.mark.data
def test_corpora_are_recognised(corpora):
    def column(path, k, separator):
        with gzip.open(corpora / path, "rt", encoding="utf-8") as file:
            return [[line.split(separator)[k] for line in block.split("\n")] for block in file.read().strip().split("\n\n")]

    chunks = column("conll2000/test.txt.gz", 2, " ")
    assert recognise(chunks) == "iob2" and count_repairs(chunks) == 0
    assert sum(len(spans(labels)) for labels in chunks) == 23852  # as published
    assert recognise(column("conll2000/test.txt.gz", 1, " ")) is None
    for target in NAMES:
        written = convert(chunks, target)
        assert recognise(written) == target and convert(written, "iob2", target) == chunks
