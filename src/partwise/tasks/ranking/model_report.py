"""What ``partwise report`` tells of a ranker: NDCG of queries, grades in the wrong order, the worst queries."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.tasks.common.model_report import (
    ModelReport,
    Reliability,
    ReportTable,
    ShownExample,
    WeightList,
    reliability,
    require_truth,
    score_rows,
    share_of,
    side_by_side,
)
from partwise.tasks.common.resampling import Measure, ratio
from partwise.tasks.ranking.command import answers, is_raw
from partwise.tasks.ranking.scores import average_precisions, ndcg_at

DEPTHS = (1, 3, 5, 10)
STRONGEST = 20  # features
SHOWN = 10  # documents of a query
LISTED = 50  # queries


def report(ranker: Any, data: Any, options: Any) -> ModelReport:
    """Compare a ranker's order with the relevance of documents in a file."""
    require_truth(len(data), data.name, "documents")
    require_truth(int((data.relevance > 0).sum()), data.name, "relevant documents")
    scores = answers(ranker, data)
    depths = list(dict.fromkeys([ranker.k, *DEPTHS]))
    each = ndcg_at(data.relevance, scores, data.queries, depths)
    known = ~np.isnan(each[:, 0])
    order = [i for i in np.argsort(np.where(known, each[:, 0], np.inf), kind="stable").tolist() if known[i]]
    missing = int((~known).sum())
    return ModelReport(
        scores=score_rows(measures(each, depths, average_precisions(data.relevance, scores, data.queries)), options),
        unit="queries",
        tables=[by_grades(data, scores), queries(data, each, ranker.k, order)],
        worst=[show(data, scores, i, float(each[i, 0]), ranker.k) for i in order[: options.worst] if each[i, 0] < 1.0],
        ordered=f"Lowest NDCG@{ranker.k} first.",
        reliability=calibration(ranker, data),
        weights=weights(ranker),
        notes=[f"queries with nothing relevant in them, which do not count: {missing:,}"] if missing else [],
    )


def measures(each: np.ndarray, depths: list[int], precisions: np.ndarray) -> list[Measure]:
    """Means over the queries that have something relevant."""
    columns = zip(depths, each.T, strict=True)
    found = [ratio(f"ndcg@{k}", f"NDCG@{k}", np.nan_to_num(column), ~np.isnan(column)) for k, column in columns]
    return [*found, ratio("map", "mean average precision", np.nan_to_num(precisions), ~np.isnan(precisions))]


def by_grades(data: Any, scores: np.ndarray) -> ReportTable:
    """Of documents of two grades, how many pairs are in the right order."""
    counts: dict[tuple[float, float], list[float]] = {}
    for own in data.queries:
        relevance, score = data.relevance[own], scores[own]
        grades = np.unique(relevance)
        for k, low in enumerate(grades):
            for high in grades[k + 1 :]:
                above = np.subtract.outer(score[relevance == high], score[relevance == low])
                one = counts.setdefault((float(high), float(low)), [0.0, 0.0])
                one[0] += above.size
                one[1] += float((above > 0).sum() + 0.5 * (above == 0).sum())
    rows = [[f"{a:g} before {b:g}", share_of(right, n), int(n)] for (a, b), (n, right) in sorted(counts.items(), reverse=True)]
    note = "Documents of one query; those with the same score count half."
    return ReportTable("grades", "Order of two grades of relevance", ("grades", "right order", "pairs"), rows, note)


def queries(data: Any, each: np.ndarray, k: int, order: list[int]) -> ReportTable:
    """NDCG of each query, the worst first."""
    rows = []
    for i in order[:LISTED]:
        own = data.queries[i]
        rows.append([str(data.qid[own[0]]), float(each[i, 0]), len(own), int((data.relevance[own] > 0).sum())])
    note = f"The worst {LISTED} of {len(order):,}." if len(order) > LISTED else ""
    return ReportTable("queries", "Queries", ("query", f"NDCG@{k}", "documents", "relevant"), rows, note)


def show(data: Any, scores: np.ndarray, i: int, ndcg: float, k: int) -> ShownExample:
    """The first documents of a query, as they should come and as they do."""
    own = data.queries[i]
    note = f"NDCG@{k} {100 * ndcg:.1f} %"
    panels = [
        listed(data, scores, own[np.argsort(-values[own], kind="stable")]) for values in (data.relevance, np.asarray(scores))
    ]
    return ShownExample(f"query {data.qid[own[0]]}", note, side_by_side(panels[0], panels[1], "text"))


def listed(data: Any, scores: np.ndarray, documents: np.ndarray) -> str:
    """A line for each of the first documents."""
    lines = ["relevance     score  line"]
    for d in documents[:SHOWN].tolist():
        lines.append(f"{data.relevance[d]:9g}{scores[d]:10.3f}  {int(data.lines[d])}  {data.notes[d][:60]}".rstrip())
    more = len(documents) - SHOWN
    return "\n".join([*lines, f"… {more:,} more"] if more > 0 else lines)


def calibration(ranker: Any, data: Any) -> Reliability | None:
    """Whether a document that comes first with probability p is the more relevant one in p of the cases."""
    if ranker.temperature_ is None or ranker.objective != "pairwise":
        return None
    data = data.widened(ranker.n_features_in_)
    p, right = [], []
    for own, table in zip(data.queries, ranker.predict_marginals(data if is_raw(ranker) else data.normalized()), strict=True):
        differ = np.subtract.outer(data.relevance[own], data.relevance[own])
        first, second = np.nonzero(np.triu(differ != 0))
        before = table[first, second]
        p.append(np.maximum(before, 1.0 - before))
        right.append((before > 0.5) == (differ[first, second] > 0))
    return reliability(np.concatenate(p), np.concatenate(right), "pairs of documents")


def weights(ranker: Any) -> list[WeightList]:
    """The largest weights either way."""
    largest = np.argsort(-np.abs(ranker.weights_), kind="stable")[:STRONGEST]
    some = largest[np.argsort(-ranker.weights_[largest], kind="stable")].tolist()
    return [WeightList("features", [(f"feature {f + 1}", float(ranker.weights_[f])) for f in some])]
