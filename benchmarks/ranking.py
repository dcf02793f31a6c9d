"""Rankings of OHSUMED: NDCG@10 of `Ranker` beside the boosted trees of LightGBM and XGBoost, over five folds.

All get the same features, scaled within queries. `Ranker` is taken as it comes; the trees (LambdaMART: objective
``lambdarank``, learning rate 0.05, 15 leaves or depth 4) stop early by NDCG@10 on the validation part, of at most 500 trees.
Nothing is chosen on the test parts. OHSUMED has 25 features that are all good ones, and 106 queries: few for trees, whose
strength is large data with features of any scale. Seconds are of CPU, for all five folds.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.race import Options
from benchmarks.report import Report, Row
from partwise import Ranker
from partwise.datasets import load_ohsumed
from partwise.metrics import ndcg

TREES, RATE, PATIENCE = 500, 0.05, 50


def sizes(qid: np.ndarray) -> np.ndarray:
    """Documents of each query, in their order."""
    edges = np.flatnonzero(np.concatenate([[True], qid[1:] != qid[:-1], [True]]))
    return np.diff(edges)


def ours(**parameters: Any) -> Callable[[Any, Any], Callable[[np.ndarray], np.ndarray]]:
    """A ranker of ours; the validation part is not looked at."""
    return lambda train, valid: Ranker(**parameters).fit(train).predict


def lightgbm(train: Any, valid: Any) -> Callable[[np.ndarray], np.ndarray]:
    """LambdaMART by LightGBM."""
    import lightgbm as peer

    model = peer.LGBMRanker(n_estimators=TREES, learning_rate=RATE, num_leaves=15, n_jobs=1, random_state=0, verbose=-1)
    model.fit(
        train.X,
        train.relevance.astype(int),
        group=sizes(train.qid),
        eval_set=[(valid.X, valid.relevance.astype(int))],
        eval_group=[sizes(valid.qid)],
        eval_at=[10],
        callbacks=[peer.early_stopping(PATIENCE, verbose=False)],
    )
    return model.predict


def xgboost(train: Any, valid: Any) -> Callable[[np.ndarray], np.ndarray]:
    """LambdaMART by XGBoost."""
    import xgboost as peer

    model = peer.XGBRanker(
        objective="rank:ndcg",
        n_estimators=TREES,
        learning_rate=RATE,
        max_depth=4,
        n_jobs=1,
        random_state=0,
        eval_metric="ndcg@10",
        early_stopping_rounds=PATIENCE,
    )
    numbers, held_numbers = (np.unique(part.qid, return_inverse=True)[1] for part in (train, valid))
    order, held = np.argsort(numbers, kind="stable"), np.argsort(held_numbers, kind="stable")
    model.fit(
        train.X[order],
        train.relevance[order].astype(int),
        qid=numbers[order],
        eval_set=[(valid.X[held], valid.relevance[held].astype(int))],
        eval_qid=[held_numbers[held]],
        verbose=False,
    )
    return model.predict


CONTENDERS = {
    "Ranker()": ours(),
    "Ranker(objective='pairwise')": ours(objective="pairwise"),
    "LightGBM LGBMRanker": lightgbm,
    "XGBoost XGBRanker": xgboost,
}


def run(options: Options) -> Report:
    """NDCG@10 on the test parts, and CPU seconds."""
    folds = range(1, 3 if options.short else 6)
    data = [load_ohsumed(fold) for fold in folds]
    notes, found = [], {}
    for name, fit in CONTENDERS.items():
        if options.only and not any(text in name for text in options.only):
            continue
        try:
            fit(*data[0][:2])  # compiled
            clock, scores = time.process_time(), []
            for train, valid, test in data:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    scores.append(100.0 * ndcg(test.relevance, fit(train, valid)(test.X), test.qid, 10))
            found[name] = (scores, time.process_time() - clock)
        except ImportError as error:
            notes.append(f"{name}: skipped: {error}")
    rows = []
    for name, (scores, seconds) in found.items():
        by_fold = ", ".join(f"{score:.1f}" for score in scores)
        note = f"{seconds:.1f} s; folds {by_fold}"
        mean = float(np.mean(scores))
        own = name.startswith("Ranker")
        rows.append(Row("OHSUMED", f"NDCG@10, {name}", "%", mean if own else None, None if own else mean, name, note, True))
        notes.append(f"{name}: NDCG@10 {mean:.2f} ({note})")
    return Report("ranking", rows, notes=notes)
