"""Files of annotation tools: Prodigy, doccano, Label Studio, brat; and column files with character offsets.

=============  =======================================================================================================
prodigy        JSON lines: ``{"text", "tokens": [{"start", "end"}], "spans": [{"start", "end", "label"}]}``
doccano        JSON lines: ``{"text", "label": [[start, end, label]]}``; ``labels`` and ``entities`` are read, too
labelstudio    a JSON list of tasks: ``{"data": {"text"}, "annotations": [{"result": [{"value": ...}]}]}``
brat           ``NAME.txt`` beside ``NAME.ann`` with lines ``T1<tab>LABEL START END<tab>TEXT``; or a folder of them
columns        word, start, end, ..., label (see `annotated_text`)
=============  =======================================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from partwise.bridges.annotated_text import AnnotatedText, TextSpan, from_columns, in_one_word, to_columns

ENDINGS = {"prodigy": ".jsonl", "doccano": ".jsonl", "labelstudio": ".json", "brat": ".ann", "columns": ".txt"}

OF_DOCCANO = ("label", "labels", "entities")  #: where its exports have spans


def json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The place and the object of each line."""
    with path.open(encoding="utf-8-sig") as lines:
        for n, line in enumerate(lines, 1):
            if line.strip():
                yield f"{path}, line {n}", as_object(line, f"{path}, line {n}")


def as_object(text: str, place: str) -> dict[str, Any]:
    """A JSON object with a text in it."""
    found = from_json(text, place)
    if not isinstance(found, dict):
        raise ValueError(f"{place}: expected an object {{...}}. Got {type(found).__name__}.")
    return found


def from_json(text: str, place: str) -> Any:
    """What a text says in JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place}: this is not JSON ({error}).") from None


def objects(found: dict[str, Any], key: str, place: str) -> list[dict[str, Any]]:
    """The list of objects under a key; nothing, if there is nothing."""
    rows = found.get(key) or []
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(f"{place}: expected a list of objects as {key!r}. Got {str(rows)[:60]!r}.")
    return rows


def check_kind(found: dict[str, Any], own: tuple[str, ...], others: dict[str, str], place: str) -> None:
    """Refuse an object of another tool, whose spans would be passed over."""
    if not any(key in found for key in own):
        for key, tool in others.items():
            if found.get(key):
                raise ValueError(
                    f"{place}: there is no {own[0]!r} in it, but {key!r}, as {tool} writes it. Is it of that format?"
                )


def text_in(found: dict[str, Any], place: str) -> str:
    """The text of an object."""
    text = found.get("text", found.get("data"))
    if not isinstance(text, str):
        raise ValueError(f"{place}: there is no 'text' in it, or it is not a string.")
    return text


def span_from(start: Any, end: Any, label: Any, place: str) -> TextSpan:
    """A span, if these are two offsets and a name."""
    if isinstance(start, bool) or isinstance(end, bool) or not (isinstance(start, int) and isinstance(end, int)):
        raise ValueError(f"{place}: the offsets of a span must be integers. Got {start!r} and {end!r}.")
    if not isinstance(label, str) or not label:
        raise ValueError(f"{place}: span {start}-{end} has no label.")
    return TextSpan(start, end, label)


def read_prodigy(path: Path) -> Iterator[AnnotatedText]:
    """Answers that were rejected or ignored are left out."""
    for place, found in json_lines(path):
        if found.get("answer", "accept") != "accept":
            continue
        check_kind(found, ("spans",), dict.fromkeys(OF_DOCCANO, "doccano"), place)
        spans = [span_from(s.get("start"), s.get("end"), s.get("label"), place) for s in objects(found, "spans", place)]
        tokens = [span_from(t.get("start"), t.get("end"), "token", place)[:2] for t in objects(found, "tokens", place)]
        yield AnnotatedText(text_in(found, place), spans, tokens or None).checked(place)


def read_doccano(path: Path) -> Iterator[AnnotatedText]:
    """All three forms in which doccano has exported spans."""
    for place, found in json_lines(path):
        check_kind(found, OF_DOCCANO, {"spans": "prodigy"}, place)
        rows = next((found[key] for key in OF_DOCCANO if found.get(key)), [])
        if not isinstance(rows, list):
            raise ValueError(f"{place}: expected a list of spans. Got {str(rows)[:60]!r}.")
        spans = []
        for row in rows:
            if isinstance(row, dict):
                spans.append(span_from(row.get("start_offset"), row.get("end_offset"), row.get("label"), place))
            elif isinstance(row, list) and len(row) == 3:
                spans.append(span_from(row[0], row[1], row[2], place))
            else:
                raise ValueError(f"{place}: expected [start, end, label]. Got {row!r}.")
        yield AnnotatedText(text_in(found, place), spans).checked(place)


def read_labelstudio(path: Path) -> Iterator[AnnotatedText]:
    """The first annotation of each task that was not cancelled."""
    tasks = from_json(path.read_text(encoding="utf-8-sig"), str(path))
    for n, task in enumerate(tasks if isinstance(tasks, list) else [tasks], 1):
        place = f"{path}, task {n}"
        if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
            raise ValueError(f"{place}: expected an object with 'data'.")
        text = text_in(task["data"], place)
        given = [one for one in objects(task, "annotations", place) if not one.get("was_cancelled")]
        spans = []
        for region in objects(given[0], "result", place) if given else ():
            value = region.get("value", {})
            if region.get("type", "labels") == "labels" and isinstance(value, dict) and "start" in value:
                labels = value.get("labels")
                label = labels[0] if isinstance(labels, list) and labels else None
                spans.append(span_from(value["start"], value.get("end"), label, place))
        yield AnnotatedText(text, spans).checked(place)


def read_brat(path: Path) -> Iterator[AnnotatedText]:
    """One pair of files, or all of a folder. Spans in several pieces are refused; relations and events are passed over."""
    files = sorted(path.glob("*.ann")) if path.is_dir() else [path.with_suffix(".ann")]
    if not files:
        raise FileNotFoundError(f"{path} holds no .ann files.")
    for file in files:
        text, spans = file.with_suffix(".txt").read_bytes().decode("utf-8"), []  # as it is: offsets count line ends, too
        for n, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            place = f"{file}, line {n}"
            if not line.startswith("T"):
                continue
            cells = line.split("\t")
            words = cells[1].split() if len(cells) > 1 else []
            if ";" in "".join(words[1:]):
                raise ValueError(
                    f"{place}: a span in several pieces, {' '.join(words)!r}. A token belongs to one span without gaps."
                )
            if len(words) != 3 or not (words[1].isdecimal() and words[2].isdecimal()):
                raise ValueError(f"{place}: expected T1, LABEL START END and the text, with tabs between. Got {line!r}.")
            span = TextSpan(int(words[1]), int(words[2]), words[0])
            if len(cells) > 2 and text[span.start : span.end].split() != cells[2].split():
                raise ValueError(f"{place}: the text says {text[span.start : span.end]!r}, the annotation {cells[2]!r}.")
            spans.append(span)
        yield AnnotatedText(text, spans).checked(str(file))


def write_prodigy(documents: Sequence[AnnotatedText]) -> str:
    """With tokens where they are known."""
    lines = []
    for one in documents:
        record: dict[str, Any] = {"text": one.text}
        first = {start: k for k, (start, _) in enumerate(one.tokens or ())}
        last = {end: k for k, (_, end) in enumerate(one.tokens or ())}
        if one.tokens is not None:
            record["tokens"] = [{"text": one.text[a:b], "start": a, "end": b, "id": k} for k, (a, b) in enumerate(one.tokens)]
        record["spans"] = [
            {"start": span.start, "end": span.end, "label": span.label}
            | (
                {"token_start": first[span.start], "token_end": last[span.end]}
                if span.start in first and span.end in last
                else {}
            )
            for span in one.spans
        ]
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    return "".join(lines)


def write_doccano(documents: Sequence[AnnotatedText]) -> str:
    """As doccano imports it."""
    return "".join(
        json.dumps({"text": one.text, "label": [list(s) for s in one.spans]}, ensure_ascii=False) + "\n" for one in documents
    )


def write_labelstudio(documents: Sequence[AnnotatedText]) -> str:
    """As Label Studio imports it, for a labelling configuration with `label` and `text`."""

    def region(k: int, span: TextSpan, text: str) -> dict[str, Any]:
        value = {"start": span.start, "end": span.end, "text": text[span.start : span.end], "labels": [span.label]}
        return {"id": f"r{k}", "from_name": "label", "to_name": "text", "type": "labels", "value": value}

    tasks = [
        {"data": {"text": one.text}, "annotations": [{"result": [region(k, span, one.text) for k, span in enumerate(one.spans)]}]}
        for one in documents
    ]
    return json.dumps(tasks, ensure_ascii=False, indent=1) + "\n"


def write_brat(document: AnnotatedText) -> str:
    """The .ann of one text."""
    rows = enumerate(document.spans, 1)
    return "".join(
        f"T{k}\t{in_one_word(s.label)} {s.start} {s.end}\t{' '.join(document.text[s.start : s.end].split())}\n" for k, s in rows
    )


READERS: dict[str, Callable[[Path], Iterable[AnnotatedText]]] = {
    "prodigy": read_prodigy,
    "doccano": read_doccano,
    "labelstudio": read_labelstudio,
    "brat": read_brat,
    "columns": lambda path: from_columns(path.read_text(encoding="utf-8-sig"), str(path)),
}
WRITERS: dict[str, Callable[[Sequence[AnnotatedText]], str]] = {
    "prodigy": write_prodigy,
    "doccano": write_doccano,
    "labelstudio": write_labelstudio,
}
FORMATS = tuple(READERS)


def check_format(name: str, parameter: str) -> None:
    """Refuse what is not known."""
    if name not in FORMATS:
        raise ValueError(f"{parameter} must be one of {', '.join(FORMATS)}. Got {name!r} instead.")


def read_annotations(path: str | Path, format: str) -> list[AnnotatedText]:
    """Texts with their spans from a file (or a folder, for brat) in one of the `FORMATS`.

    Parameters
    ----------
    path : path
        A file; for brat a .ann file, or a folder of them.
    format : str
        One of the `FORMATS`.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("one.jsonl").write_text('{"text": "Ada sleeps", "label": [[0, 3, "PER"]]}')
    >>> read_annotations("one.jsonl", "doccano")[0].spans
    [TextSpan(start=0, end=3, label='PER')]
    """
    check_format(format, "format")
    return list(READERS[format](Path(path)))


def write_annotations(documents: Sequence[AnnotatedText], path: str | Path, format: str, adjust: bool = False) -> list[Path]:
    """Write them; returns the files. With brat there are two for each text: ``NAME-1.txt``, ``NAME-1.ann``, and so on.

    adjust : whether spans that do not begin and end with tokens are widened to whole tokens; otherwise column files refuse them.

    Parameters
    ----------
    documents : list of AnnotatedText
    path : path
    format : str
        One of the `FORMATS`.
    adjust : bool
        Whether spans that do not begin and end with tokens are widened to whole tokens; otherwise column files refuse them.

    Examples
    --------
    >>> text = AnnotatedText("Ada sleeps", [TextSpan(0, 3, "PER")])
    >>> write_annotations([text], "one.txt", "columns")[0].read_text().split()
    ['Ada', '0', '3', 'B-PER', 'sleeps', '4', '10', 'O']
    """
    from partwise.files.whole_file import whole_file

    files = contents_of(documents, path, format, adjust)
    for file, content in files.items():
        with whole_file(file) as stream:
            stream.write(content.encode())
    return list(files)


def contents_of(documents: Sequence[AnnotatedText], path: str | Path, format: str, adjust: bool = False) -> dict[Path, str]:
    """What `write_annotations` writes, by the names of the files."""
    check_format(format, "format")
    path, files = Path(path), {}
    if format == "brat":
        for n, one in enumerate(documents, 1):
            stem = path.with_suffix("") if len(documents) == 1 else path.with_name(f"{path.with_suffix('').name}-{n}")
            files[stem.with_suffix(".txt")], files[stem.with_suffix(".ann")] = one.text, write_brat(one)
    else:
        files[path] = to_columns(documents, adjust) if format == "columns" else WRITERS[format](documents)
    return files


def files_of(path: str | Path, format: str) -> list[Path]:
    """The files that `read_annotations` looks at."""
    path = Path(path)
    if format != "brat":
        return [path]
    marks = sorted(path.glob("*.ann")) if path.is_dir() else [path.with_suffix(".ann")]
    return [*marks, *(mark.with_suffix(".txt") for mark in marks)]
