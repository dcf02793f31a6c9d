"""Do et al. (2008), Figure 1: ranking OHSUMED's documents, NDCG@1 to 10 over its five folds.

    hinge           the convex bound of 1 - NDCG@10, margins against one ideal ranking: the paper found w = 0
    hinge, ties     the same against the ideal ranking that the model likes best, since documents of one relevance tie: not convex
    ramp_do         the paper's bound
    ramp            Ramp(1, 1)
    ranking svm     all pairs of documents that differ in relevance, each of the same weight
    svm, ramp_do    ramp_do that goes on from the weights of the ranking SVM: CCCP finds a local optimum near where it begins
    starts, ramp_do ramp_do from several points, w = 0 (where the convex bound is lowest), the ranking SVM and random directions;
                    of these the one with the lowest training objective, which is what the paper's algorithm is after
    chance          any order

C is the one of the grid with the highest NDCG@10 on the fold's validation part; the test part is looked at once, with that C. The
data are LETOR's edition with 25 features, scaled to [0, 1] within each query. RankBoost, which the paper also has, is absent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.experiments.experiment import Experiment, Result, Table, groups, mean_interval

FILES = tuple(f"ohsumed_letor/S{k}.txt.gz" for k in range(1, 6))
METHODS: dict[str, dict[str, Any]] = {
    "hinge": {"loss": "hinge", "solver": "sdm", "ties": "first"},
    "hinge, ties": {"loss": "hinge", "solver": "dca"},
    "ramp_do": {"loss": "ramp_do", "solver": "sdm"},
    "ramp": {"loss": "ramp", "solver": "sdm"},
    "ranking svm": {"loss": "hinge", "solver": "sdm", "objective": "pairwise", "pair_weight": "equal"},
    "svm, ramp_do": {"loss": "ramp_do", "solver": "sdm", "warm_start": True},
    "starts, ramp_do": {"loss": "ramp_do", "solver": "sdm", "warm_start": True},
    "chance": {},
}
DEPTHS = tuple(range(1, 11))
GRID = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 10.0)
DIRECTIONS = 8  #: random ones to start from
PAIRS = 5000.0  #: about as many has a query: a pair gets C / PAIRS, so that one grid does for all


@dataclass(frozen=True)
class Cell:
    """One method on one fold."""

    fold: int
    method: str
    grid: tuple[float, ...]


class Figure1(Experiment):
    """See the module."""

    name = "do-figure-1"
    about = "ranking on OHSUMED: NDCG@1..10 of hinge, ramp and ranking SVM"
    source = "Do et al. 2008, Figure 1"
    minutes = {"quick": 2, "full": 6}
    files = FILES
    together = ("method",)
    notes = {"quick": "quick: three values of C."}

    def cells(self, setting: str) -> list[Cell]:
        grid = (0.01, 0.1, 1.0) if setting == "quick" else GRID
        return [Cell(fold, method, () if method == "chance" else grid) for fold in range(1, 6) for method in METHODS]

    def run(self, data: Path, cell: Cell) -> dict[str, Any]:
        import numpy as np

        from partwise.tasks.ranking.files import load_ohsumed
        from partwise.tasks.ranking.scores import mean_average_precision, ndcg_by_query

        train, valid, test = load_ohsumed(cell.fold, folder=data)
        starts: list[Any] = [None]
        if cell.method in ("svm, ramp_do", "starts, ramp_do"):
            starts = [choose({C: fit(train, "ranking svm", C) for C in cell.grid}, valid)[1].weights_]
        if cell.method == "starts, ramp_do":
            drawn = np.random.default_rng(cell.fold).normal(size=(DIRECTIONS, train.X.shape[1]))
            starts = [None, *starts, *(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))]
        tried = {C: lowest([fit(train, cell.method, C, start) for start in starts]) for C in cell.grid}
        best, ranker = choose(tried, valid) if tried else (None, None)
        w = np.zeros(train.X.shape[1]) if ranker is None else ranker.weights_
        scores = test.X @ w
        each = [ndcg_by_query(test.relevance, scores, test.qid, k) for k in DEPTHS]
        return {
            "ndcg": [100.0 * float(np.nanmean(values)) for values in each],
            "queries": [[100.0 * v for v in values[~np.isnan(values)].tolist()] for values in each],
            "map": 100.0 * mean_average_precision(test.relevance, scores, test.qid),
            "C": best,
            "norm": float(np.linalg.norm(w)),
            "bound": 1.0 if ranker is None else bound(ranker),
        }

    def summarise(self, results: Sequence[Result]) -> list[Table]:
        table = Table("NDCG@k on the test parts, %: means over folds", ("method", *(f"@{k}" for k in DEPTHS), "MAP", "C"))
        found = groups(results, "method")
        for (method,), some in found.items():
            means = [sum(r.numbers["ndcg"][d] for r in some) / len(some) for d in range(len(DEPTHS))]
            chosen = ", ".join(f"{r.numbers['C']:g}" for r in some) if method != "chance" else "-"
            table.rows.append((method, *means, sum(r.numbers["map"] for r in some) / len(some), chosen))
        gaps = Table("NDCG@10 against the ranking SVM, points [95 %], over queries", ("method", "difference"))
        gaps.differences = ("difference",)
        svm = {r.cell.fold: r for r in found.get(("ranking svm",), [])}
        for (method,), some in found.items():
            pairs = [
                (a, b)
                for r in some
                if r.cell.fold in svm and method != "ranking svm"
                for a, b in zip(r.numbers["queries"][-1], svm[r.cell.fold].numbers["queries"][-1], strict=True)
            ]
            if pairs:
                gaps.rows.append((method, mean_interval(a - b for a, b in pairs)))
        zero = Table(
            "the weights, means over folds: ||w||, and the mean loss of training queries, which is 1 at w = 0",
            ("method", "norm", "loss"),
        )
        for (method,), some in found.items():
            if method not in ("ranking svm", "chance"):
                means = [sum(r.numbers[name] for r in some) / len(some) for name in ("norm", "bound")]
                zero.rows.append((method, *(f"{value:.3f}" for value in means)))
        return [table, gaps, zero]

    def draw(self, figure: Any, results: Sequence[Result]) -> None:
        figure.set_size_inches(6.4, 4.2)
        axes = figure.subplots()
        for (method,), some in groups(results, "method").items():
            means = [sum(r.numbers["ndcg"][d] for r in some) / len(some) for d in range(len(DEPTHS))]
            axes.plot(DEPTHS, means, marker="o", label=method)
        axes.set(title="OHSUMED, five folds", xlabel="k", ylabel="NDCG@k, %")
        axes.legend()


def choose(tried: dict[float, Any], valid: Any) -> tuple[float, Any]:
    """The C whose model does best on the validation part, the smallest of those, and that model."""
    judged = {C: ranker.score(valid) for C, ranker in tried.items()}
    best = max(sorted(judged), key=judged.__getitem__)
    return best, tried[best]


def lowest(rankers: list[Any]) -> Any:
    """The one with the lowest training objective; the first of those that tie."""
    return min(rankers, key=lambda ranker: ranker.result_.primal)


def fit(train: Any, method: str, C: float, start: Any = None) -> Any:
    """A trained model, from weights to begin at if there are any."""
    import warnings

    from partwise.tasks.ranking.estimator import Ranker

    ranker = Ranker(**METHODS[method], C=C / PAIRS if method == "ranking svm" else C, max_epochs=200, tol=1e-3)
    if start is not None:
        ranker.weights_ = start
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the gap of the largest C is not always closed
        return ranker.fit(train)


def bound(ranker: Any) -> float:
    """The mean loss of a training query, an upper bound of the mean of 1 - NDCG@10."""
    norm = 0.5 * float(ranker.weights_ @ ranker.weights_)
    return (ranker.result_.primal - norm) / (ranker.C * ranker.n_queries_)
