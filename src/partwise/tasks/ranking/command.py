"""Models that rank, on the command line: see `partwise.cli.tasks`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from partwise.cli.tasks import percent

DEPTHS = tuple(range(1, 11))  #: positions that NDCG is told for


def read(file: str, encoding: str) -> Any:
    """Documents as the file has them; whether they are scaled is the model's choice."""
    from partwise.tasks.ranking.files import read_letor

    return read_letor(file, normalize=False, encoding=encoding)


def count(data: Any) -> dict[str, int]:
    """How much it is."""
    return {"queries": len(data.queries), "documents": len(data)}


def prepared(ranker: Any, data: Any) -> Any:
    """The documents with the features that the model knows, scaled as they were in training."""
    import numpy as np

    from partwise.features.rows import is_sparse

    have, want = data.X.shape[1], ranker.n_features_in_
    if have > want:
        raise ValueError(f"{data.name}: there are {have} features, but the model was trained with {want}.")
    if have < want and not is_sparse(data.X):  # the last features may be zero in all of a file
        data = replace(data, X=np.hstack([data.X, np.zeros((len(data), want - have))]))
    elif have < want:
        data.X.resize(len(data), want)
    raw = (ranker.training_ or {}).get("raw", True)
    return data if raw else data.normalized()


def answers(ranker: Any, data: Any) -> Any:
    """The score of each document."""
    return ranker.predict(prepared(ranker, data))


def as_table_of_ranks(ranker: Any, data: Any) -> str:
    """Query, rank, score and note of each document, best first, with tabs between them."""
    from partwise.tasks.ranking.files import write_letor

    return write_letor(data, answers(ranker, data))


def as_scores(ranker: Any, data: Any) -> str:
    """One score a line, in the order of the file: what LETOR's own scripts read."""
    return "".join(f"{value:.9g}\n" for value in answers(ranker, data))


def as_jsonl(ranker: Any, data: Any) -> str:
    """One JSON object a query."""
    import numpy as np

    scores, lines = answers(ranker, data), []
    for own in data.queries:
        order = own[np.argsort(-scores[own], kind="stable")].tolist()
        ranking = [{"line": int(data.lines[i]), "score": float(scores[i]), "note": data.notes[i]} for i in order]
        lines.append(json.dumps({"qid": str(data.qid[own[0]]), "ranking": ranking}, ensure_ascii=False) + "\n")
    return "".join(lines)


FORMS: dict[str, Callable[[Any, Any], str]] = {"tsv": as_table_of_ranks, "scores": as_scores, "jsonl": as_jsonl}


def scores(ranker: Any, data: Any) -> dict[str, Any]:
    """NDCG at 1 to 10 and at the model's k, and MAP; queries without relevant documents are counted, not scored."""
    import numpy as np

    from partwise.tasks.ranking.scores import mean_average_precision, ndcg

    given = answers(ranker, data)
    found: dict[str, Any] = {f"ndcg@{k}": ndcg(data.relevance, given, data.qid, k) for k in sorted({*DEPTHS, ranker.k})}
    found["map"] = mean_average_precision(data.relevance, given, data.qid)
    return found | {"queries_without_relevant": sum(not np.any(data.relevance[own] > 0) for own in data.queries)}


def as_table(found: dict[str, Any]) -> str:
    """For people."""
    lines = [f"{name.upper():12}{percent(value):>10}" for name, value in found.items() if name.startswith(("ndcg", "map"))]
    if found["queries_without_relevant"]:
        lines.append(f"{found['queries_without_relevant']:,} queries have nothing relevant in them and are not counted")
    return "\n".join(lines)


def look(ranker: Any, top: int | None, picture: Path | None) -> tuple[dict[str, Any], str]:
    """What it is, and its weights: all of them, or the `top` largest either way."""
    from partwise.losses.records import get_loss

    weights = ranker.weights_
    about: dict[str, Any] = {
        "features": int(weights.size),
        "weights_not_zero": int((weights != 0.0).sum()),
        "objective": ranker.objective,
        "k": ranker.k,
        "loss": get_loss(ranker.loss).name,
        "C": ranker.C,
        "solver": ranker.solver_,
        "training": ranker.training_,
    }
    lines = [f"{name:18}{value}" for name, value in about.items() if name != "training"]
    order = sorted(range(weights.size), key=lambda f: -abs(weights[f]))[: 20 if top is None else top]
    about["largest"] = {str(f + 1): float(weights[f]) for f in order}
    lines += ["", "features with the largest weights", *(f"{weights[f]:10.4f}  {f + 1}" for f in order)]
    if picture is not None:
        draw_weights(weights, picture)
        lines.append(f"wrote {picture}")
    return about, "\n".join(lines)


def draw_weights(weights: Any, path: Path) -> None:
    """A bar for each feature."""
    from partwise.tasks.common.plots import new_figure, save

    figure = new_figure(9.0, 3.6)
    axes = figure.subplots()
    axes.bar(range(1, len(weights) + 1), weights, color=["tab:red" if w > 0 else "tab:blue" for w in weights])
    axes.axhline(0.0, color="black", lw=0.5)
    axes.set(title="What puts a document first", xlabel="feature", ylabel="weight")
    save(figure, path)
