"""All scores of a labelling at once: as text for people, as a dict for machines, and in the very words of conlleval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from partwise.tasks.common.resampling import Interval
from partwise.tasks.tagging.counts import Labels, SequenceCounts, sequence_counts, sequence_counts_coded
from partwise.tasks.tagging.resampling import bootstrap_intervals
from partwise.tasks.tagging.scores import SpanScores


@dataclass(frozen=True)
class Report:
    """Scores of predictions; made by `report`.

    Attributes
    ----------
    n_sequences, n_tokens, n_right : int
        Sequences, tokens, and tokens with the right label.
    accuracy : float
        Share of tokens with the right label; nan without tokens.
    inside_accuracy : float
        The same among tokens whose true label is not ``O``; nan without such tokens.
    sequence_accuracy : float
        Share of sequences with every label right; nan without sequences.
    spans : SpanScores or None
        Precision, recall and F1, and by type; None if labels are not chunk tags.
    intervals : dict
        ``{None: {measure: Interval}, type: {measure: Interval}}``; empty unless asked for.
    level : float
        Of the intervals.

    Examples
    --------
    >>> found = report([["B-A", "O"]], [["B-A", "O"]])
    >>> found.accuracy, found.spans.f1, found.n_tokens
    (1.0, 1.0, 2)
    """

    n_sequences: int
    n_tokens: int
    n_right: int
    accuracy: float
    inside_accuracy: float
    sequence_accuracy: float
    spans: SpanScores | None = None
    intervals: dict[str | None, dict[str, Interval]] = field(default_factory=dict, repr=False)
    level: float = 0.95

    def to_dict(self) -> dict[str, Any]:
        """For JSON: fractions (not per cent), None for nan, intervals as [low, high]."""
        found: dict[str, Any] = {
            "sequences": self.n_sequences,
            "tokens": self.n_tokens,
            "accuracy": _number(self.accuracy),
            "sequence_accuracy": _number(self.sequence_accuracy),
        }
        if self.spans is not None:
            found["inside_accuracy"] = _number(self.inside_accuracy)
            found |= _span_dict(self.spans)
            found["types"] = {kind: _span_dict(scores) for kind, scores in self.spans.by_type.items()}
        if self.intervals:
            found["level"] = self.level
            found["intervals"] = _limits_dict(self.intervals[None])
            for kind, scores in found.get("types", {}).items():
                scores["intervals"] = _limits_dict(self.intervals[kind])
        return found

    def conlleval(self) -> str:
        """What conlleval prints, to the letter (except that it prints the line of the empty type twice); chunk tags only."""
        if self.spans is None:
            raise ValueError("conlleval is about spans, and these labels are not chunk tags; str(report) has the accuracies.")
        all_types = self.spans
        lines = [
            f"processed {self.n_tokens} tokens with {all_types.n_true} phrases; found: {all_types.n_predicted} phrases; "
            f"correct: {all_types.n_correct}."
        ]
        if self.n_tokens:
            lines.append(f"accuracy: {100 * self.n_right / self.n_tokens:6.2f}%; {_conlleval(all_types)}")
        lines += [f"{kind:>17}: {_conlleval(scores)}  {scores.n_predicted}" for kind, scores in all_types.by_type.items()]
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        """A table: one line per type, per cent, with the interval of F1 where there are intervals."""
        whole = self.intervals.get(None, {})
        lines = [f"{self.n_tokens} tokens in {self.n_sequences} sequences"]
        lines.append(f"token accuracy     {_percent(self.accuracy, whole.get('accuracy'))}")
        if self.spans is not None:
            lines.append(f"  where not O      {_percent(self.inside_accuracy)}")
        lines.append(f"sequence accuracy  {_percent(self.sequence_accuracy, whole.get('sequence_accuracy'))}")
        if self.spans is not None:
            rows = [("all", self.spans, whole)]
            rows += [(kind, scores, self.intervals.get(kind, {})) for kind, scores in self.spans.by_type.items()]
            width = max(len(name) for name, _, _ in rows)
            lines += ["", f"{'':{width}}  precision  recall      F1    true   found  correct"]
            for name, scores, limits in rows:
                numbers = f"{100 * scores.precision:9.2f}  {100 * scores.recall:6.2f}  {100 * scores.f1:6.2f}"
                counts = f"{scores.n_true:6}  {scores.n_predicted:6}  {scores.n_correct:7}"
                lines.append(f"{name:{width}}  {numbers}  {counts}{_bounds(limits.get('f1'))}")
        if self.intervals:
            about = ", of F1 in the table" if self.spans is not None else ""
            lines += ["", f"[low, high]: {100 * self.level:g} % bootstrap intervals over sequences{about}"]
        return "\n".join(lines)


def report(y_true: Labels, y_pred: Labels, *, n_resamples: int = 0, level: float = 0.95, random_state: Any = 0) -> Report:
    """All scores of predictions.

    Parameters
    ----------
    y_true, y_pred : lists of label sequences
        Chunk tags in any scheme, or any other labels: then there are accuracies only.
    n_resamples : int
        Draws for bootstrap intervals; 0: no intervals.
    level, random_state
        Of the intervals, as in `bootstrap_intervals`.

    Examples
    --------
    >>> print(report([["B-NP", "I-NP", "B-VP"]], [["B-NP", "O", "B-VP"]]).conlleval(), end="")
    processed 3 tokens with 2 phrases; found: 2 phrases; correct: 1.
    accuracy:  66.67%; precision:  50.00%; recall:  50.00%; FB1:  50.00
                   NP: precision:   0.00%; recall:   0.00%; FB1:   0.00  1
                   VP: precision: 100.00%; recall: 100.00%; FB1: 100.00  1
    """
    return _report(sequence_counts(y_true, y_pred), n_resamples, level, random_state)


def report_coded(
    true_codes: Any,
    pred_codes: Any,
    starts: Any,
    labels: Sequence[Any],
    pred_labels: Sequence[Any] | None = None,
    *,
    n_resamples: int = 0,
    level: float = 0.95,
    random_state: Any = 0,
) -> Report:
    """`report` for numbered labels; the first parameters are those of `span_scores_coded`.

    Parameters
    ----------
    true_codes, pred_codes, starts, labels, pred_labels
        As in `span_scores_coded`.
    n_resamples, level, random_state
        As in `report`.

    Examples
    --------
    >>> report_coded([0, 1], [0, 0], [0, 2], ["A", "B"]).accuracy
    0.5
    """
    counts = sequence_counts_coded(true_codes, pred_codes, starts, labels, pred_labels)
    return _report(counts, n_resamples, level, random_state)


def _report(counts: SequenceCounts, n_resamples: int, level: float, random_state: Any) -> Report:
    spans = None
    if counts.n_true is not None and counts.n_predicted is not None and counts.n_correct is not None:
        spans = SpanScores.of_types(counts.types, counts.n_true.sum(0), counts.n_predicted.sum(0), counts.n_correct.sum(0))
    types = [None, *(spans.by_type if spans else ())]
    intervals = {}
    if n_resamples:
        intervals = bootstrap_intervals(counts, types=types, n_resamples=n_resamples, level=level, random_state=random_state)
    n_inside = int(counts.n_inside.sum())
    return Report(
        len(counts),
        int(counts.n_tokens.sum()),
        int(counts.n_right.sum()),
        counts.measure("accuracy"),
        int(counts.n_inside_right.sum()) / n_inside if n_inside else float("nan"),
        counts.measure("sequence_accuracy"),
        spans,
        intervals,
        level,
    )


def _number(value: float) -> float | None:
    return value if value == value else None


def _span_dict(scores: SpanScores) -> dict[str, Any]:
    return {
        "precision": scores.precision,
        "recall": scores.recall,
        "f1": scores.f1,
        "true": scores.n_true,
        "predicted": scores.n_predicted,
        "correct": scores.n_correct,
    }


def _limits_dict(intervals: dict[str, Interval]) -> dict[str, list[float | None]]:
    return {name: [_number(interval.low), _number(interval.high)] for name, interval in intervals.items()}


def _conlleval(scores: SpanScores) -> str:
    # per cent in the order of conlleval's operations, so that the last digit is rounded alike
    precision = 100 * scores.n_correct / scores.n_predicted if scores.n_predicted else 0.0
    recall = 100 * scores.n_correct / scores.n_true if scores.n_true else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"


def _bounds(interval: Interval | None) -> str:
    return f"  [{100 * interval.low:.2f}, {100 * interval.high:.2f}]" if interval is not None else ""


def _percent(value: float, interval: Interval | None = None) -> str:
    return f"{100 * value:6.2f}{_bounds(interval)}"
