"""``partwise train rank``: from queries with judged documents to a model that ranks."""

from __future__ import annotations

from typing import Annotated

import typer

from partwise.cli import options
from partwise.cli.common import in_words
from partwise.cli.options import FILES, LABELS, LEARNING, option
from partwise.cli.train import Run, Settings, train
from partwise.tasks.ranking.command import scores


@train.command()
@in_words
def rank(
    file: Annotated[str, typer.Argument(help="svmlight with qid, as LETOR has it: 'relevance qid:Q 1:x 2:x ... # note'; gz.")],
    output: options.Output,
    dev: Annotated[
        str | None, option(LEARNING, "Held-out file of the same kind: stop when it gets no better, and keep the best model.")
    ] = None,
    objective: Annotated[str, option(LABELS, "ndcg: whole rankings; pairwise: pairs of documents, the ranking SVM.")] = "ndcg",
    k: Annotated[int, option(LABELS, "Positions that count.", "-k", min=1)] = 10,
    positions: Annotated[str, option(LABELS, "Weights of positions in a score: log, reciprocal or linear.")] = "log",
    ties: Annotated[str, option(LABELS, "Documents of one relevance: in any order, or first come, first.")] = "any",
    pair_weight: Annotated[str, option(LABELS, "Of pairs: every query weighs the same, or every pair equal.")] = "query",
    raw: Annotated[bool, option(FILES, "Take features as they are; else they are scaled within each query.", "--raw")] = False,
    encoding: options.Encoding = "utf-8",
    loss: Annotated[str | None, option(LEARNING, "As everywhere; ramp_do for ndcg and hinge for pairwise unless given.")] = None,
    c: options.C = None,
    solver: options.SolverName = "auto",
    epochs: options.Epochs = None,
    tol: options.Tol = 1e-2,
    patience: options.Patience = None,
    average: options.Average = None,
    seed: options.Seed = 0,
    dtype: options.Dtype = options.Number.float64,
    resume: options.Resume = False,
    checkpoint_every: options.CheckpointEvery = 10.0,
    history: options.History = None,
    curve: options.Curve = None,
    certify: options.Certify = False,
    jobs: options.Jobs = 1,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn to rank documents by their features, for NDCG or by pairs.

    Every line is a document with its relevance and its query:

        partwise train rank train.txt --dev vali.txt -o ranker.model
    """
    from partwise.losses.records import get_loss
    from partwise.tasks.ranking.estimator import QueryRanker
    from partwise.tasks.ranking.files import read_letor

    loss = loss or ("hinge" if objective == "pairwise" else "ramp_do")
    if solver == "auto":  # queries are few: the optimum takes seconds
        solver = "lbfgs" if get_loss(loss).is_smooth else "sdm"
    settings = Settings(loss, 0.1 if c is None else c, solver, epochs or 200, tol, patience, average, seed, dtype.value, jobs)
    run = Run("rank", output, settings, resume, checkpoint_every, history, curve, as_json, quiet)
    run.metric, run.refusals = f"ndcg@{k}", False
    ranker = QueryRanker(
        **settings.parameters(), objective=objective, k=k, positions=positions, ties=ties, pair_weight=pair_weight
    )
    ranker._check_parameters()
    data = read_letor(file, not raw, encoding=encoding)
    held_out = None if dev is None else read_letor(dev, not raw, data.X.shape[1], encoding)
    queries = len(data.queries)
    run.say(f"{data.name}: {len(data):,} documents of {queries:,} queries, {data.X.shape[1]} features")
    with run.fitting(ranker, certify):
        ranker.fit(data, validation=held_out, checkpoint=run.checkpoint)
    about = {
        "examples": queries,
        "tokens": len(data),
        "labels": len(set(data.relevance.tolist())),
        "queries_learnt_from": ranker.n_queries_,
        "features": int(ranker.weights_.size),
        "raw": raw,
    }
    run.finish(ranker, about, None if held_out is None else lambda: scores(ranker, held_out))
