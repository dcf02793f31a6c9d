"""What ``partwise report`` tells of a labeller of graphs: labels of nodes, what they are taken for, pictures with mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.tasks.common.model_report import (
    Confusions,
    ModelReport,
    Panel,
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
)
from partwise.tasks.common.resampling import Measure, ratio
from partwise.tasks.graphs.command import answers as answers_of
from partwise.tasks.graphs.drawing import as_svg, legend
from partwise.tasks.graphs.inspection import strongest

STRONGEST = 8  # features of a label
MOST_COUNTS = 20_000_000  # numbers; scores of labels have no interval where it would take more


def report(labeler: Any, data: Any, options: Any) -> ModelReport:
    """Compare a model's labels with those of a file."""
    require_truth(len(data), data.name, "graphs")
    if not data.has_labels:
        missing = next(i for i, labels in enumerate(data.labels) if labels is None)
        raise ValueError(f"{data.place(missing)}: there are no labels to compare with.")
    nodes = Nodes(labeler, data)
    known = [name for name in nodes.used if name is not None]
    require_truth(len(known), data.name, "labels")
    notes = note_unknown(known, labeler.classes_.tolist(), data.name, "labels")
    confusions = Confusions(nodes.true, nodes.answered, nodes.names)
    mistakes, more = confusions.kinds(nodes.n_wrong[nodes.owner].astype(float), nodes.show_node, nodes.owner)
    share = nodes.n_wrong / np.maximum(nodes.n_known, 1)
    thing = "pictures" if data.is_pictures else "graphs"
    return ModelReport(
        scores=score_rows(measures(nodes), options),
        unit=thing,
        tables=[with_iou(label_table(confusions.by_label(), "Labels", "label"))],
        confusion=confusions.table("nodes"),
        mistakes=mistakes,
        more_mistakes=more,
        mistaken=f"Nodes; first those in {thing} with the most mistakes.",
        worst=[nodes.show(i) for i in np.argsort(-share, kind="stable")[: options.worst].tolist() if share[i]],
        ordered="The largest share of wrong nodes first.",
        reliability=calibration(labeler, nodes),
        weights=weights(labeler),
        notes=notes,
    )


class Nodes:
    """True and answered labels of the nodes of all graphs, end to end; -1: the truth is not known."""

    def __init__(self, labeler: Any, data: Any):
        self.labeler, self.data = labeler, data
        self.answers = [np.asarray(labels, object) for labels in answers_of(labeler, data)]
        truth = [np.asarray(labels, object) for labels in data.labels]
        unknown = getattr(labeler, "unknown", None)
        flat = [None if label is None or label == unknown else label for labels in truth for label in labels.ravel().tolist()]
        self.used = sorted({str(label) for label in flat if label is not None})
        answered = [label for labels in self.answers for label in labels.ravel().tolist()]
        self.names, (self.true, self.answered) = numbered(flat, answered)
        self.truth = truth
        sizes = [labels.size for labels in truth]
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.owner = np.repeat(np.arange(len(sizes)), sizes)
        self.known = self.true >= 0
        self.n_known = np.bincount(self.owner[self.known], minlength=len(sizes))
        self.n_wrong = np.bincount(self.owner[self.known & (self.true != self.answered)], minlength=len(sizes))

    def title(self, i: int) -> str:
        """Where a graph is."""
        return f"line {self.data.lines[i]:,}" if self.data.lines else f"picture {i}"

    def note(self, i: int) -> str:
        """How wrong it is."""
        return f"{int(self.n_wrong[i]):,} of {int(self.n_known[i]):,} nodes wrong"

    def show_node(self, t: int) -> ShownExample:
        """Where a node is; of a small graph, all its nodes."""
        i = int(self.owner[t])
        place = int(t - self.starts[i])
        if self.data.is_pictures:
            row, column = divmod(place, self.truth[i].shape[1])
            return ShownExample(self.title(i), f"row {row}, column {column}; {self.note(i)}", [])
        return ShownExample(self.title(i), f"node {place}; {self.note(i)}", [self.words(i)])

    def words(self, i: int) -> Panel:
        """The nodes of a graph by their numbers."""
        a, b = int(self.starts[i]), int(self.starts[i + 1])
        answered = [self.names[k] for k in self.answered[a:b].tolist()]
        true = [
            self.names[k] if k >= 0 else answer for k, answer in zip(self.true[a:b].tolist(), answered, strict=True)
        ]  # what is not known is not wrong
        return marked_words([f"node {k}" for k in range(b - a)], true, answered)

    def show(self, i: int) -> ShownExample:
        """A picture, the truth beside the answer; or the nodes of a graph."""
        if not self.data.is_pictures:
            return ShownExample(self.title(i), self.note(i), [self.words(i)])
        labels = self.labeler.classes_.tolist()
        drawn = [as_svg([some[i].tolist()], labels) for some in (self.truth, self.answers)]
        panels = [Panel("drawing", drawn[0], "true"), Panel("drawing", drawn[1], "answered"), Panel("drawing", legend(labels))]
        return ShownExample(self.title(i), self.note(i), panels)


def measures(nodes: Nodes) -> list[Measure]:
    """Right nodes, graphs without a wrong one, and means over labels."""
    told = nodes.n_known > 0
    found = [
        ratio("accuracy", "nodes right", nodes.n_known - nodes.n_wrong, nodes.n_known),
        ratio("complete", "graphs all right", told & (nodes.n_wrong == 0), told),
    ]
    n, k = len(nodes.n_known), len(nodes.names)
    if n * k * 3 > MOST_COUNTS:
        return found
    right = nodes.known & (nodes.true == nodes.answered)
    pairs = ((nodes.true, nodes.known), (nodes.answered, nodes.known), (nodes.true, right))  # has, got, both
    places = [(nodes.owner * 3 + column)[some] * k + codes[some] for column, (codes, some) in enumerate(pairs)]
    table = np.bincount(np.concatenate(places), minlength=n * 3 * k).reshape(n, 3 * k).astype(float)

    def mean_of(factor: float) -> Any:
        def mean(sums: np.ndarray) -> np.ndarray:
            has, got, both = np.moveaxis(sums.reshape(*sums.shape[:-1], 3, k), -2, 0)
            below = has + got - (2.0 - factor) * both
            share = np.divide(factor * both, below, out=np.zeros(below.shape), where=below > 0)
            occur = (below > 0).sum(axis=-1)
            return np.divide(share.sum(axis=-1), occur, out=np.full(occur.shape, np.nan), where=occur > 0)

        return mean

    # F1 = 2 both / (has + got), intersection over union = both / (has + got - both)
    return [
        *found,
        Measure("macro_f1", "F1, mean over labels", table, mean_of(2.0)),
        Measure("mean_iou", "intersection over union, mean", table, mean_of(1.0)),
    ]


def with_iou(table: ReportTable) -> ReportTable:
    """The same with intersection over union, the usual measure of segmentations."""
    rows = [[*row[:4], share_of(row[6], row[4] + row[5] - row[6]), *row[4:]] for row in table.rows]
    return ReportTable(table.name, table.title, (*table.columns[:4], "IoU", *table.columns[4:]), rows, table.note)


def calibration(labeler: Any, nodes: Nodes) -> Reliability | None:
    """Whether nodes answered with probability p are right in p of the cases."""
    if labeler.temperature_ is None:
        return None
    tables = [np.asarray(p).reshape(-1, len(labeler.classes_)) for p in labeler.predict_marginals(nodes.data)]
    place = {str(label): k for k, label in enumerate(labeler.classes_.tolist())}
    column = np.array([place.get(name, 0) for name in nodes.names])[nodes.answered]
    p = np.concatenate(tables)[np.arange(len(column)), column]
    return reliability(p[nodes.known], (nodes.true == nodes.answered)[nodes.known], "nodes")


def weights(labeler: Any) -> list[WeightList]:
    """Pairs of labels along edges, and features of nodes that speak for each label."""
    names = [str(state) for state in labeler.states_]
    found = []
    for title, table in zip(labeler.edge_names_, labeler.pairwise_, strict=True):
        pairs = [(f"{a} – {b}", float(table[i, j])) for i, a in enumerate(names) for j, b in enumerate(names)]
        pairs.sort(key=lambda pair: -pair[1])
        some = pairs if len(pairs) <= 4 * STRONGEST else [*pairs[: 2 * STRONGEST], *pairs[-2 * STRONGEST :]]
        found.append(WeightList(f"labels of two nodes: {title}", some))
    return found + [WeightList(name, list(some.items())) for name, some in strongest(labeler, names, STRONGEST).items()]
