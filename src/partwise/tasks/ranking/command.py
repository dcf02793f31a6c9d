"""``partwise train rank`` and what follows: from queries with judged documents to a model that ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from partwise.tasks.common import command_options as common
from partwise.tasks.common.command import Command, json_lines
from partwise.tasks.common.command_options import FILES, LABELS, Training, option, percent

DEPTHS = tuple(range(1, 11))  #: positions that NDCG is told for
TINY = """2 qid:1 1:3 2:1 # document 0
0 qid:1 1:1 2:2 # document 1
1 qid:1 1:2 # document 2
1 qid:2 1:5 2:1 # document 3
0 qid:2 1:4 2:3 # document 4
0 qid:2 1:1 2:1 # document 5
"""


@dataclass
class Options(common.Grouped, common.Options):
    """Of ``train rank``."""

    objective: str | None = option(LABELS, "ndcg: whole rankings, by ramp_do; pairwise: pairs of documents, the ranking SVM.")
    k: int | None = option(LABELS, "Positions that count.", "-k", min=1)
    positions: str | None = option(LABELS, "Weights of positions in a score: log, reciprocal or linear.")
    ties: str | None = option(LABELS, "Documents of one relevance: in any order, or first come, first.")
    pair_weight: str | None = option(LABELS, "Of pairs: every query weighs the same, or every pair equal.")
    raw: bool = option(FILES, "Take features as they are; else they are scaled within each query.", "--raw", default=False)


@dataclass
class Predict(common.Grouped, common.Predict):
    """Of ``predict``."""


@dataclass
class Evaluate(common.Grouped, common.Evaluate):
    """Of ``evaluate``."""


@dataclass
class ReportOptions(common.Grouped, common.ReportOptions):
    """Of ``report``."""


def is_raw(ranker: Any) -> bool:
    """Whether it was trained with features as they were, which is all that is known of a model trained in Python."""
    return (ranker.training_ or {}).get("raw", True)


def answers(ranker: Any, data: Any) -> Any:
    """The score of each document, with features scaled as they were in training."""
    data = data.widened(ranker.n_features_in_)
    return ranker.predict(data if is_raw(ranker) else data.normalized())


def as_table(ranker: Any, data: Any) -> str:
    """Query, rank, score and note of each document, best first, with tabs between them."""
    from partwise.tasks.ranking.files import write_letor

    return write_letor(data, answers(ranker, data))


def as_scores(ranker: Any, data: Any) -> str:
    """One score a line, in the order of the file: what LETOR's own scripts read."""
    return "".join(f"{value:.9g}\n" for value in answers(ranker, data))


def as_jsonl(ranker: Any, data: Any) -> str:
    """One JSON object a query."""
    import numpy as np

    scores, rows = answers(ranker, data), []
    for own in data.queries:
        order = own[np.argsort(-scores[own], kind="stable")].tolist()
        ranking = [{"line": int(data.lines[i]), "score": float(scores[i]), "note": data.notes[i]} for i in order]
        rows.append({"qid": str(data.qid[own[0]]), "ranking": ranking})
    return json_lines(rows)


class Rank(Command):
    """Documents of queries."""

    file = "svmlight with qid, as LETOR has it: 'relevance qid:Q 1:x 2:x ... # note'; gz."
    details = "By the features of documents, for NDCG or by pairs. Every line is a document with its relevance and its query."
    example = "partwise train rank train.txt --dev vali.txt -o ranker.model"
    options = Options
    predict_options = Predict
    evaluate_options = Evaluate
    report_options = ReportOptions
    forms = {"tsv": as_table, "scores": as_scores, "jsonl": as_jsonl}
    suspects_options = common.Suspects
    reading = ("encoding",)
    judged_file = "JudgedRelevance"
    tiny = "queries.txt", TINY
    usual = ("--objective", "pairwise"), ("--ties", "first")

    def start(self, file: str, dev: str | None, options: Options, make: Callable[..., Any]) -> Training:
        from partwise.tasks.ranking.files import read_letor

        ranker = make()
        known = getattr(ranker, "n_features_in_", None)  # of a model to go on from
        raw = options.raw or (known is not None and is_raw(ranker))
        data = read_letor(file, not raw, known, options.encoding)
        held_out = None if dev is None else read_letor(dev, not raw, data.X.shape[1], options.encoding)
        queries = len(data.queries)

        def about() -> dict[str, Any]:
            return {
                "examples": queries,
                "tokens": len(data),
                "labels": len(set(data.relevance.tolist())),
                "queries_learnt_from": ranker.n_queries_,
                "features": int(ranker.weights_.size),
                "raw": raw,
            }

        describe = f"{data.name}: {len(data):,} documents of {queries:,} queries, {data.X.shape[1]} features"

        def fit(checkpoint: Any, weight: Any = None) -> None:
            ranker.fit(data, sample_weight=data.weights_of(weight), validation=held_out, checkpoint=checkpoint)

        made = self.training(ranker, data, held_out, describe, about, metric=f"ndcg@{ranker.k}", refusals=False)
        made = made._replace(fit=fit, n_examples=queries)
        if held_out is None:
            return made
        return made._replace(score=lambda: scores_of(held_out, ranker.predict(held_out), ranker.k))  # they are scaled already

    def read(self, file: str, options: Any) -> Any:
        from partwise.tasks.ranking.files import read_letor

        return read_letor(file, normalize=False, encoding=options.encoding)  # whether to scale is the model's choice

    def scores_held_out(self, model: Any, held_out: Any) -> dict[str, Any]:
        return scores_of(held_out, model.predict(held_out), model.k)  # they are scaled already

    def read_to_judge(self, model: Any, file: str, options: Any) -> Any:
        data = self.read(file, options).widened(model.n_features_in_)
        return data if is_raw(model) else data.normalized()

    def read_labels(self, file: bytes, options: Any) -> tuple[Any, Any]:
        data = self.read(file, options)  # type: ignore[arg-type]
        features = (
            data.X.tolist()
            if hasattr(data.X, "tolist")
            else [part.tolist() for part in (data.X.indptr, data.X.indices, data.X.data)]
        )
        return (data.qid.tolist(), data.notes, features), data.relevance.tolist()

    def count(self, data: Any) -> dict[str, int]:
        return {"queries": len(data.queries), "documents": len(data)}

    def scores(self, model: Any, data: Any) -> dict[str, Any]:
        return scores_of(data, answers(model, data), model.k)

    def table(self, found: dict[str, Any]) -> str:
        lines = [f"{name.upper():12}{percent(value):>10}" for name, value in found.items() if name.startswith(("ndcg", "map"))]
        if found["queries_without_relevant"]:
            lines.append(f"{found['queries_without_relevant']:,} queries have nothing relevant in them and are not counted")
        return "\n".join(lines)

    def reading_like(self, model: Any) -> dict[str, Any]:
        return {"raw": is_raw(model)}


def scores_of(data: Any, scores: Any, k: int) -> dict[str, Any]:
    """NDCG at 1 to 10 and at the model's k, and MAP; queries without relevant documents are counted, not scored."""
    import numpy as np

    from partwise.tasks.ranking.scores import average_precisions, mean_over, ndcg_at

    depths = sorted({*DEPTHS, k})
    each = ndcg_at(data.relevance, scores, data.queries, depths)
    found = {f"ndcg@{depth}": mean_over(column) for depth, column in zip(depths, each.T, strict=True)}
    found["map"] = mean_over(average_precisions(data.relevance, scores, data.queries))
    return found | {"queries_without_relevant": int(np.isnan(each[:, 0]).sum())}


COMMAND = Rank()
