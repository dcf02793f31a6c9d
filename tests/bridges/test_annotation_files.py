"""Files of annotation tools: read, written, and read again they say the same; what does not fit is named."""

import json
import time

import pytest
from typer.testing import CliRunner

from partwise.bridges import AnnotatedText, TextSpan, read_annotations, write_annotations
from partwise.bridges.annotated_text import labels_of
from partwise.cli.app import app

TEXTS = [
    AnnotatedText("Ada met Grace Hopper\nin New York.", [TextSpan(0, 3, "PER"), TextSpan(8, 20, "PER"), TextSpan(24, 32, "LOC")]),
    AnnotatedText("Nobody came.", []),
    AnnotatedText("Zürich, ja: Zürich", [TextSpan(0, 6, "LOC"), TextSpan(12, 18, "LOC")]),
]


def said(documents):
    return [(one.text, list(map(tuple, one.spans))) for one in documents]


@pytest.mark.parametrize("name", ["prodigy", "doccano", "labelstudio"])
def test_round_trip_over_columns(name, tmp_path):
    write_annotations(TEXTS, tmp_path / "a", name)
    there = read_annotations(tmp_path / "a", name)
    assert said(there) == said(TEXTS)
    write_annotations(there, tmp_path / "b.txt", "columns")
    back = read_annotations(tmp_path / "b.txt", "columns")
    assert said(back) == said(TEXTS)
    write_annotations(back, tmp_path / "c", name)
    assert said(read_annotations(tmp_path / "c", name)) == said(TEXTS)


def test_columns_keep_offsets_and_break_at_lines(tmp_path):
    (file,) = write_annotations(TEXTS, tmp_path / "t.txt", "columns")
    lines = file.read_text().splitlines()
    assert lines[:5] == ["Ada\t0\t3\tB-PER", "met\t4\t7\tO", "Grace\t8\t13\tB-PER", "Hopper\t14\t20\tI-PER", ""]
    assert lines[5] == "in\t21\t23\tO"


def test_brat(tmp_path):
    files = write_annotations(TEXTS, tmp_path / "text", "brat")
    assert [file.name for file in files[:2]] == ["text-1.txt", "text-1.ann"]
    assert said(read_annotations(tmp_path, "brat")) == said(TEXTS)
    (tmp_path / "text-1.ann").write_text("T1\tPER 0 3\tEva\n")
    with pytest.raises(ValueError, match=r"text-1.ann, line 1: the text says 'Ada', the annotation 'Eva'"):
        read_annotations(tmp_path, "brat")
    (tmp_path / "text-1.ann").write_text("T1\tPER 0 3;8 13\tAda Grace\n")
    with pytest.raises(ValueError, match="line 1: a span in several pieces, 'PER 0 3;8 13'"):
        read_annotations(tmp_path, "brat")
    (tmp_path / "text-1.ann").write_text("T1 PER 0 3 Ada\n")
    with pytest.raises(ValueError, match="line 1: expected T1, LABEL START END"):
        read_annotations(tmp_path, "brat")


def test_spans_that_cut_tokens(tmp_path):
    cut = [AnnotatedText("in Yorkshire", [TextSpan(3, 7, "LOC")])]
    with pytest.raises(
        ValueError, match=r"text 1: span 3-7 'York' \(LOC\) does not begin and end with tokens; .* 3-12 'Yorkshire'"
    ):
        write_annotations(cut, tmp_path / "x", "columns")
    write_annotations(cut, tmp_path / "x", "columns", adjust=True)
    assert read_annotations(tmp_path / "x", "columns")[0].spans == [(3, 12, "LOC")]
    over = [AnnotatedText("a b c", [TextSpan(0, 3, "X"), TextSpan(2, 5, "Y")])]
    with pytest.raises(ValueError, match=r"span 2-5 'b c' \(Y\) overlaps 0-3 \(X\)"):
        write_annotations(over, tmp_path / "x", "columns")


def test_labels_with_blanks_in_them_stay_one_word(tmp_path):
    """A label is what somebody's file says it is, and must not become lines of another."""
    text = [AnnotatedText("Ada sleeps", [TextSpan(0, 3, "BIG\tCITY\nT2 0 9\n\nx 0 1 O")])]
    for name in ("columns", "brat"):
        write_annotations(text, tmp_path / "file", name)
        assert said(read_annotations(tmp_path / "file", name)) == [("Ada sleeps"[:10], [(0, 3, "BIG_CITY_T2_0_9__x_0_1_O")])]


def test_brat_counts_carriage_returns(tmp_path):
    text = [AnnotatedText("Ada\r\nmet Bob", [TextSpan(9, 12, "PER")])]
    write_annotations(text, tmp_path / "file", "brat")
    assert said(read_annotations(tmp_path / "file", "brat")) == said(text)


def test_many_spans_of_many_tokens(tmp_path):
    """Each span looks at the tokens near it; those that a tool gives may overlap."""
    n = 20_000
    text = AnnotatedText("ab " * n, [TextSpan(3 * k, 3 * k + 2, "X") for k in range(n)])
    begin = time.process_time()
    assert len(labels_of(text, "text")[1]) == n and time.process_time() - begin < 5.0  # half a minute before
    over = AnnotatedText("abcdef", [TextSpan(3, 4, "X")], [(0, 6), (1, 2), (3, 4)])
    assert labels_of(over, "text", adjust=True)[1] == ["B-X", "O", "I-X"]


@pytest.mark.parametrize(
    "name, content, why",
    [
        ("prodigy", '{"text": "ab", "spans": [{"start": 0, "end": 5, "label": "X"}]}', "line 1: span 0-5 X is not within the 2"),
        ("prodigy", '\n{"spans": []}', "line 2: there is no 'text'"),
        ("doccano", '{"text": "ab", "label": [[0, 1]]}', r"expected \[start, end, label\]"),
        ("doccano", '{"text": "ab", "label": [["0", 1, "X"]]}', "must be integers"),
        ("doccano", "[1]", "expected an object"),
        ("prodigy", '{"text": "ab", "tokens": [{"start": 0}]}', "line 1: the offsets of a span must be integers. Got 0 and None"),
        ("prodigy", '{"text": "ab", "spans": [3]}', "line 1: expected a list of objects as 'spans'"),
        ("doccano", '{"text": "ab", "label": 3}', "line 1: expected a list of spans"),
        ("labelstudio", "{", "not JSON"),
        ("labelstudio", "[" * 5000, "not JSON"),
        ("labelstudio", '[{"data": {"text": "a"}, "annotations": ["x"]}]', "task 1: expected a list of objects as 'annotations'"),
        (
            "prodigy",
            '{"text": "ab", "label": [[0, 1, "X"]]}',
            "line 1: there is no 'spans' in it, but 'label', as doccano writes it",
        ),
        (
            "doccano",
            '{"text": "a", "spans": [{"start": 0, "end": 1, "label": "X"}]}',
            "no 'label' in it, but 'spans', as prodigy",
        ),
        ("columns", "a 0 1 O\nb 50000000000 50000000001 O", "line 2: offset 50000000001 is too far away"),
        ("columns", "b 900000 900001 O\n\n" * 3, "line 3: offset 900001 is too far away"),  # of all texts together
        ("labelstudio", "[3]", "task 1: expected an object with 'data'"),
        ("columns", "a 0 1 O\nbb 2 3 O", "line 2: 'bb' has 2 characters, its offsets say 1"),
        ("columns", "a b O", "line 1: expected a word, its two offsets and a label"),
        ("columns", "a 5 6 O\nb 0 1 O", "line 2: offset 0 lies before"),
    ],
)
def test_what_is_wrong_is_named(name, content, why, tmp_path):
    (tmp_path / "file").write_text(content)
    with pytest.raises(ValueError, match=why):
        read_annotations(tmp_path / "file", name)


def test_rejected_answers_are_left_out(tmp_path):
    rows = [{"text": "a", "answer": "reject"}, {"text": "b", "answer": "accept"}, {"text": "c"}]
    (tmp_path / "p").write_text("\n".join(map(json.dumps, rows)))
    assert [one.text for one in read_annotations(tmp_path / "p", "prodigy")] == ["b", "c"]


def test_line_ends_of_windows_keep_offsets(tmp_path):
    (tmp_path / "t.txt").write_bytes(b"Ada left.\r\nGrace came.\r\n")
    (tmp_path / "t.ann").write_bytes(b"T1\tPER 0 3\tAda\r\nT2\tPER 11 16\tGrace\r\n")
    (found,) = read_annotations(tmp_path / "t.ann", "brat")
    (file,) = write_annotations([found], tmp_path / "c.txt", "columns")
    assert [line.split() for line in file.read_text().splitlines()][4] == ["Grace", "11", "16", "B-PER"]


def test_what_cannot_be_written_is_named_by_where_it_was_read(tmp_path):
    rows = [
        {"text": "no"},
        {"text": "rejected", "answer": "reject"},
        {"text": "Adas", "spans": [dict(start=0, end=3, label="A B\tC")]},
    ]
    (tmp_path / "p").write_text("\n".join(map(json.dumps, rows)))
    found = read_annotations(tmp_path / "p", "prodigy")
    with pytest.raises(ValueError, match="p, line 3: span 0-3 'Ada'"):
        write_annotations(found, tmp_path / "x", "columns")
    write_annotations(found, tmp_path / "x", "columns", adjust=True)
    assert read_annotations(tmp_path / "x", "columns")[1].spans == [(0, 4, "A_B_C")]


def test_the_command(tmp_path):
    write_annotations(TEXTS, tmp_path / "a.jsonl", "doccano")
    words = ["convert", str(tmp_path / "a.jsonl"), "--from", "doccano", "--to", "columns", "-o", str(tmp_path / "b.txt")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0 and "3 texts with 5 spans" in done.stdout
    wrong = CliRunner().invoke(app, [*words[:3], "word", *words[4:]])
    assert wrong.exit_code == 1 and "--from must be one of prodigy, doccano" in wrong.stderr


@pytest.mark.parametrize(
    ("file", "source", "target", "output"),
    [
        ("marked.txt", "columns", "brat", "marked"),
        ("marked.txt", "columns", "brat", "marked.ann"),
        ("folder", "brat", "columns", "folder/a.txt"),
        ("folder", "brat", "brat", "folder/a"),
        ("folder/a.ann", "brat", "prodigy", "folder/a.txt"),
    ],
)
def test_no_file_that_is_read_is_written_over(file, source, target, output, tmp_path):
    """Formats of several files: none of those that are read may be one of those that are written."""
    (tmp_path / "folder").mkdir()
    files = {"marked.txt": "Ann 0 3 B-PER\n", "folder/a.txt": "Ann left.", "folder/a.ann": "T1\tPER 0 3\tAnn\n"}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    words = ["convert", str(tmp_path / file), "--from", source, "--to", target, "-o", str(tmp_path / output)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1 and "would be lost" in done.stderr
    assert {name: (tmp_path / name).read_text() for name in files} == files
