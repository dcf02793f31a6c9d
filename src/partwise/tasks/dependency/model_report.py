"""What ``partwise report`` tells of a parser: heads and relations, arcs by their length, trees with mistakes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from partwise.tasks.common.model_report import (
    Confusions,
    ModelReport,
    Reliability,
    ReportTable,
    ShownExample,
    WeightList,
    label_table,
    marked_words,
    note_unknown,
    numbered,
    reliability,
    require_truth,
    score_rows,
    share_of,
    side_by_side,
    worst_first,
)
from partwise.tasks.common.resampling import ratio
from partwise.tasks.dependency.drawing import as_svg
from partwise.tasks.dependency.inspection import strongest

LENGTHS = ((1, 1), (2, 2), (3, 6), (7, 14), (15, None))  #: of arcs, in words
STRONGEST = 12  # attachments for and against
ROOT = "(root)"


def report(parser: Any, data: Any, options: Any) -> ModelReport:
    """Compare a parser's trees with those of a treebank."""
    known = data.heads >= 0
    require_truth(int(known.sum()), data.name, "heads")
    trees = Trees(parser, data)
    notes = []
    if not known.all():
        notes.append(f"words whose head is not known, and that do not count: {int((~known).sum()):,}")
    if trees.relations is not None:
        used = [data.names[k] for k in np.unique(data.relations[data.relations >= 0]).tolist()]
        notes += note_unknown(used, parser.classes_.tolist(), data.name, "relations")
    names, (true, answered) = numbered(*trees.labels)
    confusions = Confusions(np.where(known, true, -1), answered, names)
    badness = trees.n_wrong[trees.owner].astype(float)
    mistakes, more = confusions.kinds(badness, trees.show_words, trees.owner)
    both = trees.right if trees.relations is None else trees.right & (true == answered)
    has, got = (np.bincount(codes[known], minlength=len(names)).tolist() for codes in (true, answered))
    hit = np.bincount(true[known & both], minlength=len(names)).tolist()
    counts = {name: (has[k], got[k], hit[k]) for k, name in enumerate(names)}
    with_relations = trees.relations is not None
    about = ("Relations", "relation", "An arc is right if its head and its relation are.")
    if not with_relations:
        about = ("Arcs by the tag of their head", "tag of the head", "An arc is right if its head is.")
    return ModelReport(
        scores=score_rows(measures(trees, both, with_relations), options),
        unit="sentences",
        tables=[label_table(counts, about[0], about[1], about[2]), by_length(trees)],
        confusion=confusions.table("words"),
        mistakes=mistakes,
        more_mistakes=more,
        mistaken=f"{'Relations of words' if with_relations else 'Tags of heads'}; first in sentences with the most wrong heads.",
        worst=[trees.show(i) for i in worst_first(trees.n_wrong, data.lengths, options.worst)],
        ordered="The most wrong heads for its length first. Wrong arcs are red.",
        reliability=calibration(parser, trees),
        weights=weights(parser),
        notes=notes,
    )


class Trees:
    """True and answered trees of a treebank, end to end."""

    def __init__(self, parser: Any, data: Any):
        found = parser.predict(data)
        self.data, self.starts = data, data.words.starts
        self.heads = np.array([head for tree in found for head in tree.heads], np.int64)
        self.relations = [name for tree in found for name in tree.relations] if len(parser.classes_) else None
        self.known = data.heads >= 0
        self.right = data.heads == self.heads
        self.owner = np.repeat(np.arange(len(data)), np.diff(self.starts))
        self.n_wrong = self.count(self.known & ~self.right)

    def count(self, some: np.ndarray) -> np.ndarray:
        """How many of these words each sentence has."""
        return np.bincount(self.owner[some], minlength=len(self.data))

    @functools.cached_property
    def true_relations(self) -> list[str]:
        """Of all words."""
        return [self.data.names[k] if k >= 0 else "_" for k in self.data.relations.tolist()]

    @functools.cached_property
    def labels(self) -> tuple[list[str], list[str]]:
        """What arcs are called: by their relation, or, if there is none, by the tag of their head."""
        if self.relations is not None:
            return self.true_relations, self.relations
        tags = [self.data.words.cells[2][k] for k in self.data.words.codes[2].tolist()]
        begin = self.starts[self.owner]
        return tuple(  # type: ignore[return-value]
            [tags[a + h - 1] if h > 0 else ROOT for a, h in zip(begin.tolist(), heads.tolist(), strict=True)]
            for heads in (self.data.heads, self.heads)
        )

    def title(self, word: int) -> str:
        """Where a word is."""
        return f"line {int(self.data.at[word]) + 1:,}"

    def note(self, i: int) -> str:
        """How wrong a sentence is."""
        return f"{int(self.n_wrong[i])} of {int(self.starts[i + 1] - self.starts[i])} heads wrong"

    def show_words(self, word: int) -> ShownExample:
        """What is around a word, each word with its relation and head."""
        i = int(self.owner[word])
        a, b = int(self.starts[i]), int(self.starts[i + 1])
        forms = self.data.forms(i)

        def told(heads: Any, names: list[str]) -> list[str]:
            pairs = zip(names[a:b], heads[a:b].tolist(), strict=True)
            return [f"{name} of {forms[h - 1]}" if h > 0 else name if h == 0 else "" for name, h in pairs]

        true, answered = self.labels
        expected, found = told(self.data.heads, true), told(self.heads, answered)
        said = [*expected[: word - a], found[word - a], *expected[word - a + 1 :]]  # of all mistakes in it, this one
        return ShownExample(self.title(word), self.note(i), [marked_words(forms, expected, said)])

    def show(self, i: int) -> ShownExample:
        """Both trees of a sentence, drawn."""
        a, b = int(self.starts[i]), int(self.starts[i + 1])
        forms, wrong = self.data.forms(i), [m for m in range(1, b - a + 1) if self.known[a + m - 1] and not self.right[a + m - 1]]
        drawn = []
        for heads, names in ((self.data.heads, self.true_relations), (self.heads, self.relations)):
            some = np.maximum(heads[a:b], 0).tolist()
            drawn.append(as_svg(forms, some, None if names is None else names[a:b], wrong))
        return ShownExample(self.title(a), self.note(i), side_by_side(*drawn))


def measures(trees: Trees, both: np.ndarray, with_relations: bool) -> list[Any]:
    """Attachment scores, with punctuation and without."""
    data, known = trees.data, trees.known
    bare = known & ~data.is_punctuation()
    words, n = trees.count(known), np.ones(len(data))
    found = [ratio("uas", "UAS: heads right", trees.count(known & trees.right), words)]
    if with_relations:
        found.append(ratio("las", "LAS: heads and relations right", trees.count(known & both), words))
    found.append(ratio("complete", "sentences with all heads right", trees.n_wrong == 0, n))
    found.append(ratio("uas_no_punct", "UAS without punctuation", trees.count(bare & trees.right), trees.count(bare)))
    if with_relations:
        found.append(ratio("las_no_punct", "LAS without punctuation", trees.count(bare & both), trees.count(bare)))
    return found


def by_length(trees: Trees) -> ReportTable:
    """Precision and recall of arcs by how far the head is."""
    place = np.concatenate([np.arange(1, n + 1) for n in np.diff(trees.starts).tolist()] or [np.zeros(0, int)])
    rows = []
    true, answered = (np.where(heads > 0, np.abs(heads - place), 0) for heads in (trees.data.heads, trees.heads))
    for low, high in ((0, 0), *LENGTHS):
        last = 10**9 if high is None else high
        has, got = (trees.known & (low <= length) & (length <= last) for length in (true, answered))
        name = ROOT if low == 0 else f"{low}" if low == high else f"{low} and more" if high is None else f"{low} to {high}"
        counts = [int(some.sum()) for some in (has, got, has & trees.right)]
        if counts[0] or counts[1]:
            rows.append([name, share_of(counts[2], counts[1]), share_of(counts[2], counts[0]), *counts])
    return ReportTable("lengths", "Arcs by length", ("words", "precision", "recall", "true", "answered", "right"), rows)


def calibration(parser: Any, trees: Trees) -> Reliability | None:
    """Whether arcs of probability p are right in p of the cases."""
    if parser.temperature_ is None:
        return None
    tables = parser.predict_marginals(trees.data)
    heads = np.split(trees.heads, trees.starts[1:-1])
    p = [table[np.arange(len(own)), own] for table, own in zip(tables, heads, strict=True)]
    return reliability(np.concatenate(p)[trees.known], trees.right[trees.known], "arcs")


def weights(parser: Any) -> list[WeightList]:
    """Attachments that the model likes, and those it does not; nothing where its templates do not tell."""
    try:
        found = strongest(parser, STRONGEST)
    except ValueError:
        return []
    both = [*found["for"], *found["against"][::-1]]
    return [WeightList("tags of word and head", [(str(one).rpartition(" ")[0], one.weight) for one in both])]
