"""What ``partwise report`` tells of a folder: base pairs by their letters and families, structures with mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.tasks.common.model_report import (
    ModelReport,
    Panel,
    Reliability,
    ReportTable,
    ShownExample,
    WeightList,
    label_table,
    reliability,
    require_truth,
    score_rows,
)
from partwise.tasks.common.resampling import ratio
from partwise.tasks.folding.command import require_structures
from partwise.tasks.folding.drawing import as_svg, pairs_of
from partwise.tasks.folding.scores import base_pair_counts, sequence_scores

STRONGEST = 15  # weights, highest and lowest


def report(folder: Any, data: Any, options: Any) -> ModelReport:
    """Compare a folder's structures with those of a file."""
    require_truth(len(data), data.name, "sequences")
    require_structures(data, "to compare with")
    answers = folder.predict_partners(data)
    counts = base_pair_counts(data.partners, answers)
    each, slips = sequence_scores(counts), sequence_scores(base_pair_counts(data.partners, answers, slips=True))
    true, _, found, right = counts.T
    n = np.ones(len(data))
    measures = [
        ratio("f1", "F1 of base pairs, mean over sequences", each[:, 2], n),
        ratio("sensitivity", "sensitivity: true pairs found", each[:, 0], n),
        ratio("selectivity", "selectivity: found pairs true", each[:, 1], n),
        ratio("f1_slips", "F1, one base off counts too", slips[:, 2], n),
        ratio("pooled_f1", "F1 of all pairs together", 2 * right, true + found),
        ratio("complete", "structures all right", each.min(axis=1) == 1.0, n),
    ]
    crossing = int(data.pseudoknots.sum())
    n_wrong = true + found - 2 * right
    worst = np.argsort(each[:, 2], kind="stable")[: options.worst].tolist()

    def show(i: int) -> ShownExample:
        drawing = as_svg(data.sequences[i], answers[i], data.partners[i])
        more = f"{int(right[i])} of {int(true[i])} true pairs found, {int(found[i] - right[i])} others too"
        note = f"F1 {100 * each[i, 2]:.1f} %: {more}"
        return ShownExample(f"{data.names[i]}, line {data.lines[i]:,}", note, [Panel("drawing", drawing)])

    return ModelReport(
        scores=score_rows(measures, options),
        unit="sequences",
        tables=[by_letters(data, answers), *by_family(data, each)],
        worst=[show(i) for i in worst if n_wrong[i]],
        ordered="Lowest F1 first. The answer is drawn above the bases, the truth below; pairs that only one of them has are red.",
        reliability=calibration(folder, data, answers),
        weights=weights(folder),
        notes=[f"pairs of pseudoknots, which nested structures cannot have and which do not count: {crossing:,}"]
        if crossing
        else [],
    )


def by_letters(data: Any, answers: list[np.ndarray]) -> ReportTable:
    """Precision and recall of pairs of each kind, AU say."""
    counts: dict[str, list[int]] = {}
    for sequence, true, found in zip(data.sequences, data.partners, answers, strict=True):
        letters = sequence.upper().replace("T", "U")
        both = [set(pairs_of(true)), set(pairs_of(found))]
        for k, some in enumerate((*both, both[0] & both[1])):
            for i, j in some:
                counts.setdefault("".join(sorted((letters[i], letters[j]))), [0, 0, 0])[k] += 1
    return label_table({kind: (a, b, c) for kind, (a, b, c) in counts.items()}, "Base pairs", "letters")


def by_family(data: Any, each: np.ndarray) -> list[ReportTable]:
    """Mean scores of families, where the file names them."""
    families = sorted(set(data.families) - {""})
    if not families:
        return []
    rows: list[list[Any]] = []
    for family in families:
        own = np.array([name == family for name in data.families])
        rows.append([family, *each[own].mean(axis=0).tolist(), int(own.sum())])
    return [ReportTable("families", "Families", ("family", "sensitivity", "selectivity", "F1", "sequences"), rows)]


def calibration(folder: Any, data: Any, answers: list[np.ndarray]) -> Reliability | None:
    """Whether bases whose partner, or having none, has probability p are right in p of the cases."""
    if folder.temperature_ is None:
        return None
    p, right = [], []
    for table, true, found in zip(folder.predict_marginals(data), data.partners, answers, strict=True):
        here = np.arange(len(found))
        p.append(np.where(found >= 0, table[here, np.maximum(found, 0)], 1.0 - table.sum(axis=1)))
        right.append(found == true)
    return reliability(np.concatenate(p), np.concatenate(right), "bases")


def weights(folder: Any) -> list[WeightList]:
    """Those of highest and lowest value."""
    ordered = sorted(folder.weights_by_name().items(), key=lambda item: -item[1])
    return [WeightList("parts of structures", [*ordered[:STRONGEST], *ordered[-STRONGEST:]])]
