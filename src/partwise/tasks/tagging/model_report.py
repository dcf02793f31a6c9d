"""What ``partwise report`` tells of a labeller of sequences: tokens and chunks, sentences with mistakes, strongest features."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.model_report import (
    Confusions,
    ModelReport,
    Reliability,
    ReportTable,
    ScoreRow,
    ShownExample,
    WeightList,
    label_table,
    marked_words,
    note_unknown,
    reliability,
    require_truth,
    worst_first,
)
from partwise.tasks.tagging.answers import Answers
from partwise.tasks.tagging.counts import number_pair_coded
from partwise.tasks.tagging.entity_matches import Entities
from partwise.tasks.tagging.evaluation import by_model, in_column
from partwise.tasks.tagging.files import Source, line_numbers
from partwise.tasks.tagging.report import Report, report_coded
from partwise.tasks.tagging.weights import top_features, transitions
from partwise.text.columns import Columns

PART = 1 << 15  # tokens whose probabilities are computed at a time
STRONGEST = 6  # features for a label, and as many against it
MOST_WEIGHTS = 40  # labels whose weights are shown
TITLES = {
    "f1": "F1 of chunks",
    "precision": "precision of chunks",
    "recall": "recall of chunks",
    "accuracy": "tokens right",
    "sequence_accuracy": "sentences all right",
}


def report(model: Any, file: str, options: Any) -> ModelReport:
    """Compare a model's labels with those of a column file."""
    columns = Source.of(options).columns(file)
    require_truth(columns.n_tokens, columns.name, "tokens")
    trained_on = -1 if model.label_column_ is None else model.label_column_
    if columns.n_columns < 2:
        raise Refusal(f"{columns.name}: there is one column only, and no labels to compare with.")
    truth = in_column(columns, "--label-column", trained_on if options.label_column is None else options.label_column)
    predicted = by_model(columns, model, None)
    used = [truth.names[k] for k in np.unique(truth.codes).tolist()]
    notes = note_unknown(used, predicted.names, columns.name, "labels")
    if len(used) == 1:
        notes.append(f"all tokens of this file have the label {used[0]}: there is not much to compare")
    draws: dict[str, Any] = {"n_resamples": options.resamples, "level": options.level, "random_state": options.seed}
    found = report_coded(truth.codes, predicted.codes, columns.starts, truth.names, predicted.names, **draws)
    pair = number_pair_coded(truth.codes, predicted.codes, columns.starts, truth.names, predicted.names)
    sentences = LabelledSentences(columns, pair.true.codes, pair.predicted.codes, pair.labels)
    sure = probabilities(model, columns, sentences)
    confusions = Confusions(sentences.true, sentences.answered, sentences.names)
    badness = sentences.n_wrong[sentences.owner].astype(float) if sure is None else 1.0 - sure[0]
    mistakes, more = confusions.kinds(badness, lambda t: sentences.show(t, sure), sentences.owner)
    worst = worst_first(sentences.n_wrong, np.diff(columns.starts), options.worst)
    return ModelReport(
        scores=score_rows(found),
        unit="sentences",
        tables=[
            *types_of(found),
            *([] if found.spans is None else entity_tables(Entities(pair))),
            label_table(confusions.by_label(), "Labels of tokens", "label"),
        ],
        confusion=confusions.table("tokens"),
        mistakes=mistakes,
        more_mistakes=more,
        mistaken="Tokens; first those "
        + ("whose true label the model believes least." if sure is not None else "in sentences with the most mistakes."),
        worst=[sentences.show(int(columns.starts[i]), None) for i in worst],
        ordered="The most wrong tokens for its length first.",
        reliability=None if sure is None else calibration(sentences, sure),
        weights=weights(model),
        notes=notes,
    )


class LabelledSentences:
    """True and answered labels of the sentences of a file, as places in `names`."""

    def __init__(self, columns: Columns, true: np.ndarray, answered: np.ndarray, names: list[str]):
        self.columns, self.true, self.answered, self.names = columns, true.astype(np.int64), answered.astype(np.int64), names
        self.owner = np.repeat(np.arange(columns.n_sentences), np.diff(columns.starts))
        self.n_wrong = np.bincount(self.owner[true != answered], minlength=columns.n_sentences)
        self.lines = line_numbers(columns)

    def show(self, t: int, sure: tuple[np.ndarray, np.ndarray] | None) -> ShownExample:
        """The sentence of a token."""
        columns, i = self.columns, int(self.owner[t])
        a, b = int(columns.starts[i]), int(columns.starts[i + 1])
        words = [columns.cells[0][k] for k in columns.codes[0, a:b].tolist()]
        true, answered = ([self.names[k] for k in codes[a:b].tolist()] for codes in (self.true, self.answered))
        note = f"{int(self.n_wrong[i])} of {b - a} tokens wrong"
        if sure is not None:
            note += f"; the true label has the probability {sure[0][t]:.2f}, the answer {sure[1][t]:.2f}"
        return ShownExample(f"line {int(self.lines[t]):,}", note, [marked_words(words, true, answered)])


def score_rows(found: Report) -> list[ScoreRow]:
    """Chunks first, where there are any."""
    whole = found.intervals.get(None, {})
    values: dict[str, float] = {"accuracy": found.accuracy, "sequence_accuracy": found.sequence_accuracy}
    if found.spans is not None:
        values = {name: getattr(found.spans, name) for name in ("f1", "precision", "recall")} | values
    nan = float("nan")
    limits = {name: (whole[name].low, whole[name].high) if name in whole else (nan, nan) for name in values}
    return [ScoreRow(name, TITLES[name], value, *limits[name]) for name, value in values.items()]


def types_of(found: Report) -> list[ReportTable]:
    """Precision, recall and F1 of each type of chunk."""
    if found.spans is None:
        return []
    counts = {kind or "-": (one.n_true, one.n_predicted, one.n_correct) for kind, one in found.spans.by_type.items()}
    made = label_table(counts, "Chunks", "type", "A chunk is right if its type, its beginning and its end are.")
    columns, rows = made.columns, made.rows
    if found.intervals:
        nothing = [float("nan")] * 2
        limits = {kind or "-": [ends["f1"].low, ends["f1"].high] for kind, ends in found.intervals.items() if kind is not None}
        columns = (*columns[:4], "F1 from", "F1 to", *columns[4:])
        rows = [[*row[:4], *limits.get(row[0], nothing), *row[4:]] for row in rows]
    return [ReportTable("types", made.title, columns, rows, made.note)]


def entity_tables(entities: Entities) -> list[ReportTable]:
    """Chunks found in part, and which types are taken for which."""
    rows = [
        [kind, one.precision, one.recall, one.f1, one.correct, one.incorrect, one.partial, one.missed, one.spurious]
        for kind, one in entities.matches().items()
    ]
    columns = ("counted", "precision", "recall", "F1", "correct", "incorrect", "partial", "missed", "spurious")
    note = "Strict: type and both ends; exact: both ends; partial: half a point for a shared token; type: that and the type."
    confusion = entities.confusion()
    counts = [[name, *row] for name, row in zip(confusion.rows, confusion.counts.tolist(), strict=True)]
    return [
        ReportTable("matches", "Chunks found in part", columns, rows, note),
        ReportTable(
            "entities", "Chunks taken for others", ("true", *confusion.columns), counts, "What is true (rows), what was answered."
        ),
    ]


def probabilities(model: Any, columns: Columns, sentences: LabelledSentences) -> tuple[np.ndarray, np.ndarray] | None:
    """Of the true and of the answered label of each token; None: the model has none, or not of labels as the file has them."""
    if model.temperature_ is None:
        return None
    answers, place = Answers(model), {name: k for k, name in enumerate(sentences.names)}
    found = np.zeros((2, columns.n_tokens))
    part = np.asarray(columns.starts[:-1]) // PART
    for k in np.unique(part):
        own = np.flatnonzero(part == k)
        p, names = answers.probabilities(model.pack(columns.take(own)).marginals())
        if any(name not in place for name in names):
            return None
        a, b = int(columns.starts[own[0]]), int(columns.starts[own[-1] + 1])
        whole = np.zeros((b - a, len(sentences.names)))
        whole[:, [place[name] for name in names]] = p
        for row, codes in zip(found, (sentences.true, sentences.answered), strict=True):
            row[a:b] = whole[np.arange(b - a), codes[a:b]]
    return found[0], found[1]


def calibration(sentences: LabelledSentences, sure: tuple[np.ndarray, np.ndarray]) -> Reliability | None:
    """Whether tokens answered with probability p are right in p of the cases."""
    return reliability(sure[1], sentences.true == sentences.answered, "tokens")


def weights(model: Any) -> list[WeightList]:
    """The strongest features of labels, and how labels follow each other."""
    found = []
    for label, top in list(top_features(model, STRONGEST).items())[:MOST_WEIGHTS]:
        found.append(WeightList(str(label), [(one.name, one.weight) for one in (*top.positive, *top.negative[::-1])]))
    moves = transitions(model)
    pairs = [
        (f"{a} → {b}", float(moves.weights[i, j]))
        for i, a in enumerate(moves.rows)
        for j, b in enumerate(moves.columns)
        if np.isfinite(moves.weights[i, j]) and moves.weights[i, j]
    ]
    pairs.sort(key=lambda pair: -pair[1])
    strongest = pairs if len(pairs) <= 4 * STRONGEST else [*pairs[: 2 * STRONGEST], *pairs[-2 * STRONGEST :]]
    return [WeightList("one label after another", strongest), *found] if strongest else found
