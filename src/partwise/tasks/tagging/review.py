"""Suspects of a column file as a page shows them: sentences, their labels in doubt, and where in the text each label stands."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.tasks.common.review import MOST_REASONS, DoubtedWord, Passage, Review, ReviewItem
from partwise.tasks.tagging.answers import Answers
from partwise.tasks.tagging.explanation import compare
from partwise.tasks.tagging.files import Source, line_numbers
from partwise.tasks.tagging.suspects import JudgedSequences
from partwise.text.columns import Columns

CELL = re.compile(rb"[^ \t]+")
REASONS = 6  # that are shown of a doubt
PART = 1 << 15  # tokens whose probabilities are computed at a time

HIDDEN = "The labels of this model have hidden states: there are no reasons to show."


@dataclass(frozen=True)
class JudgedColumns:
    """A column file and what a model makes of its labels."""

    model: Any
    columns: Columns
    judged: JudgedSequences
    column: int  #: of the labels
    source: Source
    judges: list[Any]  #: the model itself, or one for each part of the file that it was dealt out into

    def review(self, tokens: bool, ranked: Sequence[int]) -> Review:
        """The suspects numbered `ranked`, sentences or single tokens, for the page."""
        columns, judged = self.columns, self.judged
        starts = columns.starts
        sentences = [int(np.searchsorted(starts, t, side="right")) - 1 for t in ranked] if tokens else list(ranked)
        shown = list(dict.fromkeys(sentences))
        number = {sentence: k for k, sentence in enumerate(shown)}
        cells, believed = columns.cells[self.column], self.believed()
        given = columns.codes[self.column]
        lines = line_numbers(columns)
        doubts: list[list[int]] = []
        for suspect, sentence in zip(ranked, sentences, strict=True):
            first, last = int(starts[sentence]), int(starts[sentence + 1])
            inside = [suspect] if tokens else [t for t in range(first, last) if self.is_doubted(t, cells[given[t]], believed[t])]
            doubts.append(sorted(inside, key=lambda t: -judged.found.parts[t]))
        sure = LabelProbabilities(self, shown)
        reasons = Reasons(self, shown) if not self.why_no_reasons() else None
        items, left = [], MOST_REASONS
        for suspect, sentence, inside in zip(ranked, sentences, doubts, strict=True):
            wrong = judged.wrong_part(suspect) if tokens else judged.wrong(suspect)
            made = []
            for t in inside:
                label = believed[t]
                why = reasons.of(number[sentence], t) if reasons is not None and left > 0 else None
                p = sure.of(number[sentence], t, cells[given[t]], label)
                made.append(DoubtedWord(t - int(starts[sentence]), label, judged.wrong_part(t), p, why))
                left -= 1
            items.append(ReviewItem(number[sentence], wrong, made))
        return Review(
            passages=[self.passage(sentence, cells, lines) for sentence in shown],
            items=items,
            labels=self.menu(),
            whole=not tokens,
            pattern=r"[^\s]+" if self.source.separator is None else rf"(?:(?!{re.escape(self.source.separator)})[^\r\n])+",
            hint="A label is one word, without blanks." if self.source.separator is None else "A label must fit in its column.",
            reading={
                "separator": self.source.separator,
                "comment": self.source.comment,
                "encoding": self.source.encoding,
                "label_column": self.column,
                "unknown_label": self.source.unknown_label,
            },
            reasons=self.why_no_reasons() or (f"Reasons are given for the worst {MOST_REASONS:,} doubts." if left < 0 else ""),
        )

    def is_doubted(self, token: int, given: str, believed: str) -> bool:
        """Whether a label in a sentence is to be corrected: in another scheme than the model's, more may have to be."""
        if self.model_scheme() is None:
            return bool(self.judged.found.evidence.disputed[token])
        return given != believed

    def model_scheme(self) -> str | None:
        """That of the file, where the model labels in another."""
        return getattr(self.model, "given_scheme_", None)

    def believed(self) -> Sequence[str]:
        """What is believed of all tokens, as the file would have it."""
        if self.model_scheme() is None:
            return [str(label) for label in self.judged.believed]
        codes, names = Answers(self.model).written(self.judged.believed.codes, self.columns.starts)
        return [names[k] for k in codes.tolist()]

    def menu(self) -> list[str]:
        """Labels to choose from: those of the file."""
        return sorted(cell for cell in self.columns.cells[self.column] if cell and cell != self.source.unknown_label)

    def passage(self, sentence: int, cells: list[str], lines: np.ndarray) -> Passage:
        """A sentence, and where its labels stand."""
        columns = self.columns
        tokens = range(int(columns.starts[sentence]), int(columns.starts[sentence + 1]))
        form = int(self.column == 0 and columns.n_columns > 1)  # the first column that does not hold the labels
        words = [columns.cells[form][k] for k in columns.codes[form, tokens.start : tokens.stop].tolist()]
        given = [cells[k] for k in columns.codes[self.column, tokens.start : tokens.stop].tolist()]
        begins = [self.begin(t, label) for t, label in zip(tokens, given, strict=True)]
        return Passage(words, given, begins, [int(line) for line in lines[tokens.start : tokens.stop]])

    def begin(self, token: int, label: str) -> int:
        """Where in the text the label of a token begins."""
        columns, separator = self.columns, self.source.separator
        end = int(columns.ends[token])  # type: ignore[index]
        if self.column == columns.n_columns - 1:
            return end - len(label.encode())
        begin = columns.data.rfind(b"\n", 0, end) + 1
        line = columns.data[begin:end]
        if separator is None:
            return begin + [cell.start() for cell in CELL.finditer(line)][self.column]
        before = line.split(separator.encode())[: self.column]
        return begin + sum(map(len, before)) + len(before) * len(separator.encode())

    def why_no_reasons(self) -> str:
        """In words; nothing if there are some."""
        return HIDDEN if self.model.hidden > 1 else ""

    @functools.cached_property
    def parts(self) -> np.ndarray:
        """The number of the judge of each sentence."""
        n, k = self.columns.n_sentences, len(self.judges)
        from partwise.solvers.noise import dealt

        return dealt(n, k, self.model._seed()) if k > 1 else np.zeros(n, np.int64)


class LabelProbabilities:
    """P(y_t | x) of labels of some sentences."""

    def __init__(self, data: JudgedColumns, sentences: list[int]):
        self.data = data
        lengths = np.diff(data.columns.starts)[sentences]
        self.firsts = np.concatenate([[0], np.cumsum(lengths)])
        parts, self.p = data.parts[sentences], np.zeros((0, 0), np.float32)
        for k, judge in enumerate(data.judges):
            mine, answers = np.flatnonzero(parts == k), Answers(judge)
            edges = np.flatnonzero(np.diff(np.cumsum(lengths[mine]) // PART)) + 1  # not too many tokens at a time
            for some in np.split(mine, edges) if len(mine) else ():
                packed = judge.pack(data.columns.take([sentences[m] for m in some]))
                p, names = answers.probabilities(packed.marginals())
                if not self.p.size:
                    self.p = np.zeros((self.firsts[-1], len(names)), np.float32)
                self.p[np.concatenate([np.arange(self.firsts[m], self.firsts[m + 1]) for m in some])] = p
                self.number = {name: n for n, name in enumerate(names)}

    def of(self, passage: int, token: int, given: str, believed: str) -> tuple[float, float] | None:
        """Of the label that is given to a token of a passage, and of that which is believed."""
        sentence = int(np.searchsorted(self.data.columns.starts, token, side="right")) - 1
        row = self.p[self.firsts[passage] + token - self.data.columns.starts[sentence]]
        if believed not in self.number:
            return None
        return float(row[self.number[given]]) if given in self.number else 0.0, float(row[self.number[believed]])


class Reasons:
    """Which weights speak for what is believed of a token, and which for what is given."""

    def __init__(self, data: JudgedColumns, sentences: list[int]):
        self.data = data
        some = sentences[:MOST_REASONS]
        self.problem = data.judges[0].pack(data.columns.take(some)).problem if some else None  # they all have its features
        self.firsts = np.concatenate([[0], np.cumsum(np.diff(data.columns.starts)[some])]).astype(np.int64)
        classes = {label: k for k, label in enumerate(data.judges[0].classes_.tolist())}
        self.code_of_given = np.array([classes.get(name, -1) for name in data.judged.given.names], np.int64)

    def of(self, passage: int, token: int, most: int = REASONS) -> list[tuple[str, float]] | None:
        """The largest differences, of the token's features and of transitions into and out of it."""
        if passage >= len(self.firsts) - 1:
            return None
        judged = self.data.judged
        starts = self.data.columns.starts
        sentence = int(np.searchsorted(starts, token, side="right")) - 1
        first, last = int(starts[sentence]), int(starts[sentence + 1])
        believed = judged.believed.codes[first:last]
        given = self.code_of_given[judged.given.codes[first:last]]
        given = np.where(given < 0, believed, given)  # what is not known is not compared
        features, links, _ = compare(
            self.data.judges[self.data.parts[sentence]], self.problem, believed, given, token - first, int(self.firsts[passage])
        )
        found = [(one.name, one.difference) for one in (*features, *links) if np.isfinite(one.difference) and one.difference]
        return sorted(found, key=lambda one: -abs(one[1]))[:most]
