"""What ``partwise report`` tells of a model of segments: scores, labels, mistakes, weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.tasks.common.model_report import (
    Confusions,
    ModelReport,
    ShownExample,
    WeightList,
    label_table,
    marked_words,
    note_unknown,
    numbered,
    reliability,
    require_truth,
    score_rows,
    worst_first,
)
from partwise.tasks.common.resampling import ratio
from partwise.tasks.segments.data import OUTSIDE, SegmentedText
from partwise.tasks.segments.inspection import following, strongest
from partwise.tasks.segments.scores import segment_counts

STRONGEST = 15  # features of each label


def report(model: Any, data: SegmentedText, options: Any) -> ModelReport:
    """Compare a model's segments with those of a file."""
    require_truth(data.n_tokens, data.name, "tokens")
    truth, answer, starts = data.truth(), model.predict_labels(data), data.columns.starts
    counts = segment_counts(truth, answer, starts)
    true, found, right = (table.sum(1) for table in (counts.true, counts.found, counts.right))
    measures = [
        ratio("f1", "F1 of segments", 2 * right, true + found),
        ratio("precision", "precision: found segments true", right, found),
        ratio("recall", "recall: true segments found", right, true),
        ratio("accuracy", "tokens right", counts.tokens_right, counts.tokens),
        ratio("sequence_accuracy", "sentences all right", counts.tokens == counts.tokens_right, np.ones(len(data))),
    ]
    labels = [[str(one.distinct[k]) for k in one.codes.tolist()] for one in (truth, answer)]
    names, (true_codes, found_codes) = numbered(*labels)
    confusions = Confusions(true_codes, found_codes, names)
    owner = np.repeat(np.arange(len(data)), np.diff(starts))
    n_wrong = counts.tokens - counts.tokens_right

    def show(t: int) -> ShownExample:
        i = int(owner[t])
        a, b = starts[i : i + 2].tolist()
        note = f"{int(true[i] - right[i])} of {int(true[i])} segments missed, {int(found[i] - right[i])} found that are not there"
        return ShownExample(data.columns.place(a), note, [marked_words(data.words(i), labels[0][a:b], labels[1][a:b])])

    mistakes, more = confusions.kinds(n_wrong[owner].astype(float), show, owner)
    kinds = sorted({label for label in labels[0]})
    return ModelReport(
        scores=score_rows(measures, options),
        unit="sentences",
        tables=[label_table(counts.by_kind(), "Segments", "label", "A segment is right if its label and both its ends are.")],
        confusion=confusions.table("tokens"),
        mistakes=mistakes,
        more_mistakes=more,
        mistaken="Tokens; first those in sentences with the most mistakes.",
        worst=[show(int(starts[i])) for i in worst_first(n_wrong, counts.tokens, options.worst)],
        ordered="The most wrong tokens for its length first.",
        reliability=None if model.temperature_ is None else calibration(model, data, true_codes == found_codes),
        weights=weights(model),
        notes=note_unknown(kinds, answer.distinct, data.name, "labels"),
    )


def calibration(model: Any, data: SegmentedText, right: np.ndarray) -> Any:
    """Whether tokens answered with probability p are right in p of the cases."""
    p = model.code_marginals(data)
    return reliability(p[np.arange(len(p)), model._best(data)], right, "tokens")


def weights(model: Any) -> list[WeightList]:
    """The strongest features of labels, and how segments follow each other."""
    pairs = following(model)
    found = [WeightList("one segment after another", pairs[: 2 * STRONGEST] + pairs[2 * STRONGEST :][-2 * STRONGEST :])]
    for k, label in enumerate(model.states_):
        if model.classes_[k // model.hidden] != OUTSIDE:
            found.append(WeightList(str(label) or "-", strongest(model, k, 2 * STRONGEST)))
    return [one for one in found if one.rows]
