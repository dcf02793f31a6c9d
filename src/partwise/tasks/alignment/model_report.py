"""What ``partwise report`` tells of an aligner: pairs of places by how alike the sequences are, alignments with mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.tasks.alignment.drawing import as_text
from partwise.tasks.alignment.inspection import ordered, substitutions
from partwise.tasks.alignment.scores import pair_counts, recall_by_identity, recalls_of
from partwise.tasks.common.model_report import (
    ModelReport,
    Reliability,
    ReportTable,
    ShownExample,
    WeightList,
    reliability,
    require_truth,
    score_rows,
    side_by_side,
)
from partwise.tasks.common.resampling import Measure, ratio

WIDTH = 50  # columns of an alignment in a line: two stand beside each other
STRONGEST = 15  # substitutions, highest and lowest


def report(aligner: Any, data: Any, options: Any) -> ModelReport:
    """Compare an aligner's answers with the alignments of a file."""
    require_truth(len(data), data.name, "pairs")
    if data.partners is None:
        raise ValueError(f"{data.name}: the rows of some pairs differ in length, so there is no alignment to compare with.")
    answers = [found.partners for found in aligner.predict(data)]
    core = data.core if aligner.core != "ignore" else None
    counts = pair_counts(data.partners, answers, core)
    recalls = recalls_of(counts)
    order = np.argsort(np.where(np.isnan(recalls), np.inf, recalls), kind="stable")[: options.worst].tolist()

    def show(i: int) -> ShownExample:
        names = data.names(i)
        drawn = [as_text(data.first[i], data.second[i], list(some), names, WIDTH) for some in (data.partners[i], answers[i])]
        true, found, both = counts[i].tolist()
        note = f"{both} of {true} true pairs found, {found - both} others too"
        return ShownExample(f"{' and '.join(names)}, line {data.lines[i]:,}", note, side_by_side(drawn[0], drawn[1], "text"))

    return ModelReport(
        scores=score_rows(measures(counts), options),
        unit="alignments",
        tables=[identities(recalls, data)],
        worst=[show(i) for i in order if recalls[i] < 1.0],
        ordered="Lowest recall first.",
        reliability=calibration(aligner, data, answers, core),
        weights=weights(aligner),
        notes=["pairs in core columns alone count"] if core is not None else [],
    )


def measures(counts: np.ndarray) -> list[Measure]:
    """Means over alignments, and shares of all pairs together."""
    true, found, both = counts.T
    recall, precision = both / np.maximum(true, 1), both / np.maximum(found, 1)
    means = np.stack([recall, true > 0, precision, found > 0], axis=1).astype(float)

    def harmonic(sums: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore", divide="ignore"):
            r, p = sums[..., 0] / sums[..., 1], sums[..., 2] / sums[..., 3]
            return np.where(r + p > 0, 2 * r * p / (r + p), r + p)

    return [
        ratio("recall", "recall: true pairs found, mean", recall, true > 0),
        ratio("precision", "precision: found pairs true, mean", precision, found > 0),
        Measure("f1", "F1 of these two", means, harmonic),
        ratio("pooled_recall", "recall of all pairs together", both, true),
        ratio("pooled_precision", "precision of all pairs together", both, found),
        ratio("complete", "alignments with all true pairs", (both == true) & (true > 0), true > 0),
    ]


def identities(recalls: np.ndarray, data: Any) -> ReportTable:
    """Recall by how many true pairs have the same letter."""
    rows = [
        [f"{row['above'] + (row['above'] > 0)} to {row['to']} %", row["recall"], row["alignments"]]
        for row in recall_by_identity(recalls, data.identity())
        if row["alignments"]
    ]
    return ReportTable("identity", "By identity", ("identity", "recall", "alignments"), rows)


def calibration(aligner: Any, data: Any, answers: list[Any], core: Any) -> Reliability | None:
    """Whether pairs of probability p are true in p of the cases."""
    if aligner.temperature_ is None:
        return None
    p, right = [], []
    for k, table in enumerate(aligner.predict_marginals(data)):
        found, true = np.asarray(answers[k]), np.asarray(data.partners[k])
        own = np.flatnonzero((found >= 0) & (true > -2) & (True if core is None else np.asarray(core[k], bool)))
        p.append(table[own, found[own]])
        right.append(true[own] == found[own])
    return reliability(np.concatenate(p), np.concatenate(right), "pairs of places")


def weights(aligner: Any) -> list[WeightList]:
    """What gaps cost, and the highest and lowest scores of letters opposite each other."""
    found = [WeightList("places opposite gaps, mean scores", list(aligner.gap_scores().items()))]
    matrix = substitutions(aligner)
    if matrix is not None:
        pairs = [(f"{a} : {b}", value) for value, a, b in ordered(matrix, aligner.classes_.tolist(), aligner.symmetric)]
        some = pairs if len(pairs) <= 2 * STRONGEST else [*pairs[:STRONGEST], *pairs[-STRONGEST:]]
        found.append(WeightList("letters opposite each other", some))
    return found
