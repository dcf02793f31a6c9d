"""What ``partwise report`` tells of a classifier: classes and what they are taken for, rows with mistakes, strongest weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.tasks.classification.files import SvmlightTable
from partwise.tasks.classification.inspection import feature_names, strongest
from partwise.tasks.classification.scores import class_scores
from partwise.tasks.common.model_report import (
    Confusions,
    ModelReport,
    Panel,
    ScoreRow,
    ShownExample,
    WeightList,
    label_table,
    note_unknown,
    numbered,
    reliability,
    require_truth,
)

MOST_FIELDS = 30  # of a row that are shown
STRONGEST = 12  # features of a class
MOST_WEIGHTS = 40  # classes whose weights are shown
TITLES = {"accuracy": "rows right", "f1": "F1, mean over classes", "precision": "precision, mean", "recall": "recall, mean"}


def report(model: Any, data: Any, options: Any) -> ModelReport:
    """Compare a model's classes with those of a table."""
    classes = model.classes_.tolist()
    require_truth(len(data), data.table.name, "rows")
    truth, answers = data.truth(classes), model.predict(data.X).tolist()
    notes = note_unknown(sorted(set(map(str, truth))), classes, data.table.name, "classes")
    if len(set(truth)) == 1:
        notes.append(f"all rows of this file are of the class {truth[0]}: there is not much to compare")
    scores = class_scores(truth, answers)
    limits = scores.intervals(options.resamples, options.level, options.seed) if options.resamples else {}
    names, (true, answered) = numbered(truth, answers)
    confusions = Confusions(true, answered, names)
    p = None if model.temperature_ is None else model.predict_marginals(data.X)
    badness = np.zeros(len(true)) if p is None else p.max(axis=1)
    rows = ShownRows(data, feature_names(model))

    def show(i: int) -> ShownExample:
        note = f"{truth[i]} was taken for {answers[i]}" + ("" if p is None else f", with the probability {p[i].max():.2f}")
        return rows.show(i, note)

    mistakes, more = confusions.kinds(badness, show)
    return ModelReport(
        scores=[ScoreRow(name, title, getattr(scores, name), *limits.get(name, ())) for name, title in TITLES.items()],
        unit="rows",
        tables=[label_table(confusions.by_label(), "Classes", "class")],
        confusion=confusions.table("rows"),
        mistakes=mistakes,
        more_mistakes=more,
        mistaken="Rows; first those of which the model is most sure." if p is not None else "Rows, in the order of the file.",
        reliability=None if p is None else reliability(p.max(axis=1), true == answered, "rows"),
        weights=weights(model),
        notes=notes,
    )


class ShownRows:
    """The rows of a table, as they are in the file."""

    def __init__(self, data: Any, names: list[str]):
        self.data, self.table, self.names = data, data.table, names
        self.cells: list[list[str]] | None = None

    def show(self, i: int, note: str) -> ShownExample:
        """One of them."""
        found = self.features(i) if isinstance(self.table, SvmlightTable) else self.columns(i)
        more = len(found) - MOST_FIELDS
        panel = Panel("fields", found if more <= 0 else [*found[:MOST_FIELDS], ("…", f"and {more:,} more")])
        return ShownExample(f"line {int(self.table.lines[i]):,}", note, [panel])

    def columns(self, i: int) -> list[tuple[str, str]]:
        """Titles and cells."""
        if self.cells is None:
            self.cells = [self.table.cells(k) for k in range(len(self.table.columns))]
        return [(str(self.table.title(k)), str(cells[i])) for k, cells in enumerate(self.cells)]

    def features(self, i: int) -> list[tuple[str, str]]:
        """Those that are not zero."""
        row = self.data.X[i : i + 1]
        values = np.asarray(row.toarray() if hasattr(row, "toarray") else row)[0]
        return [(self.names[j], f"{values[j]:g}") for j in np.flatnonzero(values).tolist()]


def weights(model: Any) -> list[WeightList]:
    """The strongest weights of each class, less their mean over classes."""
    found = strongest(model, STRONGEST, None) if len(model.states_) <= MOST_WEIGHTS else {}
    return [WeightList(name, list(some.items())) for name, some in found.items()]
