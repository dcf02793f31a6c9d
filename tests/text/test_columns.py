"""Column files coded to integers, against the string reader and on odd input."""

import gzip
import io
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partwise.engine.compilation import interpret
from partwise.text import column_scan
from partwise.text.columns import code_tokens, read_columns, stream_columns
from plain_columns import read_lines

TEXT = "He PRP B-NP\nruns VBZ B-VP\n\n\nYes UH O\n"
SENTENCES = [[("He", "PRP", "B-NP"), ("runs", "VBZ", "B-VP")], [("Yes", "UH", "O")]]


def test_the_example():
    columns = read_columns(b"the D\ndog N\n\nthe D\n")
    assert columns.codes.tolist() == [[0, 1, 0], [0, 1, 0]] and columns.codes.dtype == np.int32
    assert columns.cells == [["the", "dog"], ["D", "N"]]
    assert columns.starts.tolist() == [0, 2, 3]
    assert (columns.n_columns, columns.n_tokens, columns.n_sentences) == (2, 3, 2)


@st.composite
def texts(draw):
    """A column file with everything that is allowed in one, and how to read it."""
    separator = draw(st.sampled_from([None, " ", "\t", "::"]))
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    width = draw(st.integers(1, 3))
    cell = st.text("ab#é€", min_size=1 if separator is None else 0, max_size=3)
    between = st.just(separator) if separator else st.text(" \t", min_size=1, max_size=2)
    lines = []
    for kind in draw(st.lists(st.integers(0, 9), max_size=12)):
        if kind < 2:
            lines.append(draw(st.sampled_from(["", " ", "\t "])))
        elif kind == 2:
            lines.append("-DOCSTART-" + (draw(between) + "x") * (width - 1))
        else:
            cells = draw(st.lists(cell, min_size=width, max_size=width))
            line = cells[0] + "".join(draw(between) + c for c in cells[1:])
            if line.strip():
                blanks = st.text(" \t", max_size=2) if separator is None else st.just("")
                lines.append(draw(blanks) + line + draw(blanks))
    return ending.join(lines) + draw(st.sampled_from(["", ending, ending * 2])), separator


@given(texts(), st.integers(1, 40))
@settings(max_examples=150, deadline=None)
def test_the_same_as_the_reader_of_strings(case, chunk_bytes):
    text, separator = case
    expected = read_lines(io.StringIO(text, newline=None), separator)
    data = text.encode("utf-8-sig" if len(text) % 2 else "utf-8")
    if not expected:
        with pytest.raises(ValueError, match="there are no tokens"):
            read_columns(data, separator)
        return
    columns = read_columns(data, separator)
    assert columns.sentences() == expected
    for cells, codes in zip(columns.cells, columns.codes, strict=True):
        assert len(set(cells)) == len(cells)
        _, first = np.unique(codes, return_index=True)
        assert (np.diff(first) > 0).all() and codes.max() == len(cells) - 1  # in the order they are first met, all of them used
    parts = list(stream_columns(io.BytesIO(data), separator, chunk_bytes=chunk_bytes))
    assert [sentence for part in parts for sentence in part.sentences()] == expected
    places = [part.place(t) for part in parts for t in range(part.n_tokens)]
    assert places == [columns.place(t).replace("<bytes>", "<stream>") for t in range(columns.n_tokens)]
    tokens = code_tokens(expected)
    assert tokens.cells == columns.cells and (tokens.codes == columns.codes).all() and (tokens.starts == columns.starts).all()


def test_many_cells_make_the_table_grow_and_the_interpreter_agrees(monkeypatch):
    sentences = [[(f"w{k % 5000}", f"w{k % 7 + 3}")] for k in range(9000)]
    data = "\n\n".join(" ".join(token) for (token,) in sentences).encode()
    columns = read_columns(data)
    assert columns.sentences() == sentences
    assert len(columns.cells[0]) == 5000
    with interpret():
        once = read_columns(data[: data.index(b"\n\n", 20_000)])
        assert (once.codes == columns.codes[:, : once.n_tokens]).all()
        monkeypatch.setattr(column_scan, "spread", lambda h: np.uint64(7))  # cells with one hash are still told apart
        again = read_columns(data[: data.index(b"\n\n", 1000)])
    assert (again.codes == columns.codes[:, : again.n_tokens]).all()


@pytest.mark.parametrize("zipped", [False, True])
def test_paths_streams_and_standard_input(tmp_path, monkeypatch, zipped):
    content = gzip.compress(TEXT.encode()) if zipped else TEXT.encode()
    path = tmp_path / "corpus.txt"
    path.write_bytes(content)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    stream = io.BytesIO(content)
    for source in (path, str(path), content, bytearray(content), stream, open(path, "rb"), "-"):
        assert read_columns(source).sentences() == SENTENCES
    assert not stream.closed
    assert [part.n_tokens for part in stream_columns(path, chunk_bytes=1)] == [2, 1]
    with pytest.raises(TypeError, match="opened in binary mode. Got StringIO"):
        read_columns(io.StringIO(TEXT))


def test_columns_comments_and_marks():
    text = b"# id 1\nHe\tPRP\tB\n # x y\nruns\tVBZ\tO\n\n-DOCSTART-\tX\tO\n#\t#\tO\n"
    assert read_columns(text, "\t", comment="# ", usecols=[-1, 0]).sentences() == [
        [("B", "He"), ("O", "runs")],
        [("O", "#")],
    ]
    kept = read_columns(b"-DOCSTART- -X- O\n\nEU NNP B\n", skip=())
    assert kept.n_sentences == 2 and kept.cells[0] == ["-DOCSTART-", "EU"]
    with pytest.raises(ValueError, match="f.txt: there is no column 3: there are 3 columns, counted from 0"):
        read_columns(TEXT.encode(), usecols=[3], name="f.txt")
    with pytest.raises(ValueError, match="column -3 is asked for twice"):
        read_columns(TEXT.encode(), usecols=[0, -3])


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (b"a b c\n\nd e f\ng h\n", {}, r"f\.txt, line 4: expected 3 columns as in the lines before, got 2: 'g h'.*any blank"),
        (b"a\tb\r\nc\r\n", {"separator": "\t"}, r"f\.txt, line 2: expected 2 columns .* got 1: 'c'\. Columns are split at '\\t'"),
        (b"a\nb c", {}, "line 2: expected 1 columns .* got 2: 'b c'"),
        (b"a b\nma\xf1ana N\n", {}, r"f\.txt, line 2: not valid utf-8 text: b'ma\\xf1ana' .* Pass the file's `encoding`"),
        (b"a \xe2\x82\n\xac b\n", {}, "line 1: not valid utf-8 text"),  # valid only if the cells are glued together
        ("a b\n".encode("utf-16"), {}, r"f\.txt, line 1: not valid utf-8 text but, by its first bytes, utf-16"),
        (b"a\nb\xff\n", {"encoding": "ascii"}, r"f\.txt, line 2: not valid ascii text"),
        (b"a", {"encoding": "klingon"}, r"f\.txt: there is no encoding 'klingon'"),
        (b"", {}, r"f\.txt: there are no tokens in it; expected one token a line"),
        (b"\n \n\t\r\n", {}, "there are no tokens"),
        (b"-DOCSTART- -X- O\n\n", {}, "there are no tokens"),
        (gzip.compress(b"word TAG\n" * 2000, mtime=0)[:-20], {}, r"f\.txt: the compressed file ends too early"),
        (b"\x1f\x8bnonsense", {}, r"f\.txt: the compressed file is damaged"),
        (b"a", {"separator": ""}, "The 'separator' parameter must be"),
        (b"a", {"skip": "-DOCSTART-"}, "The 'skip' parameter must be a list"),
    ],
)
def test_bad_input_is_refused_with_its_place(data, options, message):
    with pytest.raises(ValueError, match=message):
        read_columns(data, name="f.txt", **options)
    if "encoding" not in options:
        for size in (1, 7, 1 << 20):
            with pytest.raises(ValueError, match=message):
                list(stream_columns(io.BytesIO(data), chunk_bytes=size, name="f.txt", **options))


def test_other_encodings():
    assert read_columns("mañana N\n".encode("latin-1"), encoding="latin-1").cells[0] == ["mañana"]
    assert read_columns("mañana N\n".encode("utf-16"), encoding="utf-16").cells[0] == ["mañana"]


@pytest.mark.compiled
def test_a_line_of_ten_megabytes():
    long = b"x" * 10_000_000
    columns = read_columns(b"a b\n" + long + b" c\n\n" + long + b" c")
    assert columns.codes.tolist() == [[0, 1, 1], [0, 1, 1]] and len(columns.cells[0][1]) == 10_000_000
    wide = b"x " * 5_000_000
    with pytest.raises(ValueError, match="line 2: expected 2 columns .* got 5000000: '(x ){40}'"):
        read_columns(b"a b\n" + wide)
    with pytest.raises(
        ValueError, match="line 2: expected 1000000 columns .* got 2: 'a b'"
    ):  # no room is made for what cannot be
        read_columns(b"x " * 1_000_000 + b"\n" + b"a b\n" * 1_000_000)


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_a_column_is_appended_and_all_else_stays(ending):
    text = b"# 1\nthe D \n\ndog N\n-DOCSTART- X\nso\tA".replace(b"\n", ending)
    columns = read_columns(text, comment="#")
    expected = b"# 1\nthe D B-NP \n\ndog N O\n-DOCSTART- X\nso\tA B-NP".replace(b"\n", ending)
    assert columns.append_column(np.array([1, 0, 1]), ["O", "B-NP"]) == expected
    assert read_columns(b"a\tb\n").append_column(np.array([0]), ["é"]) == "a\tb\té\n".encode()
    assert read_columns(b"a\tb\n").append_column(np.array([0]), ["c"], ",") == b"a\tb,c\n"
    with pytest.raises(ValueError, match="one code below 2 for each of the 3 tokens"):
        columns.append_column(np.array([0, 0, 2]), ["O", "B-NP"])
    with pytest.raises(ValueError, match="not to lists of tokens"):
        code_tokens(SENTENCES).append_column(np.zeros(3), ["O"])


def test_sentences_are_taken():
    columns = read_columns(TEXT.encode())
    taken = columns.take([1, 0])
    assert taken.sentences() == SENTENCES[::-1] and taken.place(0) == "<bytes>, line 5"
    assert columns.take([]).n_tokens == 0


@pytest.mark.parametrize(
    ("sentences", "error", "message"),
    [
        (["He runs"], TypeError, "A sentence must be a list of tokens. Got str as sequence 0"),
        ([[], [("a",), "b"]], TypeError, r"Got str as sequence 1, token 1; write \('b',\) if that is its only column"),
        ([[("a",), ("b", "c")]], ValueError, r"Expected 1 columns .* got 2 in sequence 0, token 1: \('b', 'c'\)"),
        ([[("a", 3)]], TypeError, "must be strings. Got 3 as column 1 of sequence 0, token 0"),
        ([[("a", ["x"])]], TypeError, r"must be strings. Got \['x'\] as column 1"),
    ],
)
def test_bad_tokens(sentences, error, message):
    with pytest.raises(error, match=message):
        code_tokens(sentences)


@pytest.mark.data
def test_conll2000(corpora):
    path = corpora / "conll2000" / "test.txt.gz"
    columns = read_columns(path)
    with gzip.open(path, "rt") as lines:
        assert columns.sentences() == read_lines(lines)
    assert (columns.n_sentences, columns.n_tokens) == (2012, 47377)
    ned = read_columns(corpora / "conll2002" / "ned.testa.txt.gz", " ")
    assert (ned.n_sentences, ned.n_tokens, len(ned.cells[2])) == (2895, 37687, 9)


@pytest.mark.data
@pytest.mark.slow
def test_brown(corpora):
    with gzip.open(corpora / "brown" / "brown.tsv.gz", "rb") as file:
        sentences = [line.rstrip(b"\n").split(b"\t")[2] for line in file]
    data = b"\n\n".join(b"\n".join(b"\t".join(token.rsplit(b"_", 1)) for token in line.split(b" ")) for line in sentences)
    columns = read_columns(data, "\t")
    assert (columns.n_sentences, columns.n_tokens, len(columns.cells[1])) == (57340, 1161192, 472)
    assert columns.cells[0] == list(dict.fromkeys(token.split("\t")[0] for token in data.decode().split("\n") if token))
