"""What ``partwise predict`` writes: the text as it was with more columns, or a JSON object a sentence.

- `Labels`: the label of each token.
- `Probabilities`: its label, and ``label/probability`` of that label, or of every label.
- `Candidates`: the k best labellings. The sentence is repeated for each, after a line ``# rank number`` and with a blank line
  between them, as ``crf_test -n`` prints them. The number is the labelling's probability, or its score where there are none.

Each takes a part of the text at a time, so that memory does not grow with the file. No Python object is made for a
token of a column file, only for each distinct cell (and, of `Candidates`, for each sentence).
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from partwise.features.given_labels import GivenLabels
from partwise.tasks.common.command import Seconds
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.tagging.answers import Answers
from partwise.tasks.tagging.files import Source
from partwise.text.columns import Columns, stream_columns

PART = 1 << 22  # bytes of text labelled at a time
SMALLEST, MOST = 1 << 16, 1 << 26  # bytes of a part at least; of what is computed for a part at most
DIGITS = 4  # of a probability in a cell
NEWLINE = b"\n"

Known = GivenLabels | None


class Labels:
    """The best labels."""

    part_bytes = PART

    def __init__(self, answers: Answers):
        self.answers = answers

    def text(self, part: Columns, known: Known, separator: str) -> bytes:
        """The text of a part with its labels."""
        return part.append_column(*self._answer(part, known), separator)

    def objects(self, part: Columns, known: Known) -> list[dict[str, Any]]:
        """What is said of each sentence."""
        return [{"labels": labels} for labels in by_sentence(part, *self._answer(part, known))]

    def _answer(self, part: Columns, known: Known) -> tuple[np.ndarray, list[str]]:
        return self.answers.written(self.answers.model.predict_codes(part, known=known), part.starts)


class Probabilities:
    """The best labels, and their probabilities; `of_all`: those of all labels."""

    def __init__(self, answers: Answers, of_all: bool):
        self.answers, self.of_all = answers, of_all
        # 8 bytes for each label of a token, and a token is about 8 bytes of text
        self.part_bytes = min(PART, max(SMALLEST, MOST // len(answers.labels)))

    def _answer(self, part: Columns, known: Known) -> tuple[np.ndarray, list[str], np.ndarray, np.ndarray, list[str]]:
        """Labels and their names; the labels that probabilities are of, the probabilities, and their names."""
        packed = self.answers.model.pack(part, known=known)
        best = packed.best()
        codes, names = self.answers.written(best, part.starts)
        p, p_names = self.answers.probabilities(packed.marginals())
        if self.of_all:
            return codes, names, np.broadcast_to(np.arange(len(p_names)), p.shape), p, p_names
        number = {name: k for k, name in enumerate(p_names)}
        if all(name in number for name in names):
            best = np.array([number[name] for name in names], np.int64)[codes]
        return codes, names, best[:, None], np.take_along_axis(p, best[:, None].astype(np.int64), 1), p_names

    def text(self, part: Columns, known: Known, separator: str) -> bytes:
        """The text of a part with labels and label/probability."""
        codes, names, which, p, p_names = self._answer(part, known)
        scale = 10**DIGITS
        key, place = np.unique(which * (scale + 1) + np.rint(p * scale).astype(np.int64), return_inverse=True)
        pairs = zip(*(half.tolist() for half in np.divmod(key, scale + 1)), strict=True)
        cells = [f"{p_names[k]}/{q / scale:.{DIGITS}f}" for k, q in pairs]
        table = np.concatenate([codes[:, None], len(names) + place.reshape(p.shape)], axis=1)
        return append_columns(part, table, [*names, *cells], separator)

    def objects(self, part: Columns, known: Known) -> list[dict[str, Any]]:
        """What is said of each sentence."""
        codes, names, _, p, p_names = self._answer(part, known)
        p, edges = p.round(6), part.starts.tolist()
        said = []
        for labels, a, b in zip(by_sentence(part, codes, names), edges[:-1], edges[1:], strict=True):
            if self.of_all:
                rows = [dict(zip(p_names, row, strict=True)) for row in p[a:b].tolist()]
                said.append({"labels": labels, "marginals": rows})
            else:
                said.append({"labels": labels, "probabilities": p[a:b, 0].tolist()})
        return said


class Candidates:
    """The k best labellings."""

    def __init__(self, answers: Answers, k: int):
        self.answers, self.k = answers, k
        self.part_bytes = min(PART, max(SMALLEST, MOST // (8 * k)))

    def _answer(
        self, part: Columns, known: Known
    ) -> tuple[list[tuple[np.ndarray, list[str]]], np.ndarray, np.ndarray | None, list[int]]:
        """Labels of the first, second, ... labelling; scores and probabilities, (sentences, k); how many each sentence has."""
        packed = self.answers.model.pack(part, known=known)
        found = packed.kbest(self.k)
        packed.refuse_impossible(found.scores[:, 0])
        p = None if self.answers.model.temperature_ is None else np.exp(packed.log_probabilities(found))
        return [self.answers.written(codes, part.starts) for codes in found.codes], found.scores, p, found.n.tolist()

    def text(self, part: Columns, known: Known, separator: str) -> bytes:
        """The text of a part, sentences repeated; what stands between sentences stays as it was."""
        labellings, scores, p, n_found = self._answer(part, known)
        numbers = (scores if p is None else p).tolist()
        data, edges = part.data, sentence_edges(part)
        line_end = b"\r\n" if data[: edges[0][1]].endswith(b"\r\n") else NEWLINE
        versions = [
            (part.append_column(codes, names, separator), shifts(part, codes, names, separator)) for codes, names in labellings
        ]
        pieces, after = [], 0
        for i, (begin, end) in enumerate(edges):
            pieces.append(data[after:begin])
            for k in range(n_found[i]):
                text, shift = versions[k]
                sentence = text[begin + shift[i] : end + shift[i + 1]]
                pieces.append(b"# %d %.6f%s%s" % (k, numbers[i][k], line_end, sentence))
                if k + 1 < n_found[i]:  # what follows the last one is there already
                    pieces.append(line_end if sentence.endswith(NEWLINE) else line_end + line_end)
            after = end
        return b"".join([*pieces, data[after:]])

    def objects(self, part: Columns, known: Known) -> list[dict[str, Any]]:
        """What is said of each sentence."""
        labellings, scores, p, n_found = self._answer(part, known)
        shown = [by_sentence(part, codes, names) for codes, names in labellings]
        said = []
        for i, n in enumerate(n_found):
            candidates: list[dict[str, Any]] = [{"labels": shown[k][i], "score": float(scores[i, k])} for k in range(n)]
            for k, candidate in enumerate(candidates if p is not None else ()):
                candidate["probability"] = float(p[i, k])  # type: ignore[index]
            said.append({"candidates": candidates})
        return said


Kind = Labels | Probabilities | Candidates


def usual_separator(part: Columns) -> str:
    """What to put before a new cell: a tab if the first token's line has one, else a blank."""
    return "\t" if b"\t" in part.data[: int(part.ends[0])].rpartition(NEWLINE)[2] else " "  # type: ignore[index]


def append_columns(part: Columns, table: np.ndarray, cells: Sequence[str], separator: str) -> bytes:
    """The text with several more columns: token t gets ``cells[table[t, 0]]``, ``cells[table[t, 1]]``, ..."""
    n, m = table.shape
    several = dataclasses.replace(part, codes=np.empty((0, n * m), np.int32), ends=np.repeat(part.ends, m))  # type: ignore[arg-type]
    return several.append_column(table.reshape(-1), cells, separator)


def by_sentence(part: Columns, codes: np.ndarray, names: Sequence[str]) -> list[list[str]]:
    """Labels as lists, a list a sentence."""
    flat, edges = list(map(names.__getitem__, codes.tolist())), part.starts.tolist()
    return [flat[a:b] for a, b in zip(edges[:-1], edges[1:], strict=True)]


def sentence_edges(part: Columns) -> list[tuple[int, int]]:
    """Where in the text the lines of each sentence begin and end."""
    edges = []
    for first, last in zip(part.starts[:-1].tolist(), (part.starts[1:] - 1).tolist(), strict=True):
        begin = part.data.rfind(NEWLINE, 0, int(part.ends[first])) + 1  # type: ignore[index]
        end = part.data.find(NEWLINE, int(part.ends[last])) + 1  # type: ignore[index]
        edges.append((begin, end or len(part.data)))
    return edges


def shifts(part: Columns, codes: np.ndarray, names: Sequence[str], separator: str) -> list[int]:
    """How many bytes `Columns.append_column` puts in before each sentence, and in all."""
    added = np.array([len((separator + name).encode("utf-8", "surrogatepass")) for name in names], np.int64)
    return np.concatenate([[0], np.cumsum(added[codes])])[part.starts].tolist()


def as_lines(objects: list[dict[str, Any]]) -> bytes:
    """JSON, a line each."""
    return b"".join(json.dumps(one, ensure_ascii=False).encode("utf-8", "surrogatepass") + NEWLINE for one in objects)


# ---------------------------------------------------------------------------------------------------------------------
# Whole files
# ---------------------------------------------------------------------------------------------------------------------


def kind_of_answer(model: Any, options: Any) -> Kind:
    """What is to be written."""
    answers, source = Answers(model, options.scheme), Source.of(options)
    with_probabilities = options.marginals or options.all_marginals
    if options.kbest is not None and with_probabilities:
        raise Refusal("--kbest cannot go with --marginals: probabilities of labels are not those of labellings.")
    if options.calibrate is not None:
        held_out = source.columns(options.calibrate)
        model.calibrate(held_out, answers.truth(held_out, -1 if model.label_column_ is None else model.label_column_))
    elif with_probabilities and model.temperature_ is None:
        raise Refusal(
            f"The model was trained with the loss {model.loss!r}, which fits scores, not probabilities. Train with --loss crf "
            "or softmax_margin, or give --calibrate a file with labels that was not used for training."
        )
    if options.kbest is not None:
        return Candidates(answers, options.kbest)
    return Probabilities(answers, options.all_marginals) if with_probabilities else Labels(answers)


def label_file(model: Any, file: str, options: Any, write: Callable[[bytes], Any], seconds: Seconds) -> dict[str, int]:
    """Read, label and write a file, part by part; returns how much it was."""
    kind, as_json = kind_of_answer(model, options), options.form == "jsonl"
    seconds("load")
    sentences = tokens = 0
    separator, column, utf8 = options.separator, options.known_column, is_utf8(options.encoding)
    whole = as_json or column is not None
    wanted = None if whole else slice(max(model.encoder_.n_columns, 1))  # cells that nobody looks at are not read
    for part in parts_of(file, options, kind.part_bytes, wanted):
        seconds("read")
        text = b"" if as_json else part.data
        if part.n_tokens:
            known = None if column is None else kind.answers.known(part, column, options.known_unknown)
            separator = separator or usual_separator(part)
            text = as_lines(kind.objects(part, known)) if as_json else kind.text(part, known, separator)
        seconds("label")
        write(text if utf8 else encoded(text, options.encoding, file))
        sentences, tokens = sentences + part.n_sentences, tokens + part.n_tokens
        seconds("write")
    return {"sequences": sentences, "tokens": tokens}


def parts_of(file: str, options: Any, size: int, usecols: slice | None) -> Iterator[Columns]:
    """The text in parts of whole sentences; as a whole if it has to be translated to UTF-8 first."""
    if not is_utf8(options.encoding):
        yield Source.of(options).columns(file)
        return
    more: dict[str, Any] = {"chunk_bytes": size, "comment": options.comment, "usecols": usecols, "all_text": True}
    yield from stream_columns(file, options.separator, **more)


def is_utf8(encoding: str) -> bool:
    """Whether text has to be translated."""
    return encoding.lower().replace("_", "-") in ("utf-8", "utf8", "utf-8-sig")


def encoded(text: bytes, encoding: str, file: str) -> bytes:
    """The text as the file had it."""
    try:
        return text.decode().encode(encoding)
    except UnicodeEncodeError as error:
        raise Refusal(f"{file}: a label cannot be written in {encoding}: {error.object[error.start : error.end]!r}.") from None
