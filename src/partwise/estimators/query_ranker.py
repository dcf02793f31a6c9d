"""`QueryRanker`: learns to rank the documents of a query.

    minimise  Omega(w) + C sum_q weight_q L_q(w)        over rankings, s(y) = sum_p c_p w . x_{y_p}
                                                        or over pairs of documents, s = w . (x_a - x_b)

It is all of `Ranker` but the face that scikit-learn wants to see.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from partwise import passes
from partwise.estimators.base import Structured, _is_count, _one_of
from partwise.estimators.labels import check_k, example_weights
from partwise.estimators.ranking_data import Documents, read_documents
from partwise.losses import Loss
from partwise.metrics.retrieval import ndcg, ndcg_by_query
from partwise.structures.ranking import POSITIONS, position_weights, ranking_problem
from partwise.structures.ranking_pairs import pair_problem, pairs_of


def _are_weights(value: Any) -> bool:
    try:
        position_weights(value, 1)
    except (ValueError, TypeError):
        return False
    return True


class QueryRanker(Structured):
    """Ranks; see `Ranker` for the parameters."""

    weights_: np.ndarray
    n_features_in_: int
    several_queries_: bool = True  #: whether it was given several to learn from: then what it is judged by must say its queries
    training_: dict[str, Any] | None = None  #: notes about the training, for people

    _checks = {
        **Structured._checks,
        "objective": _one_of("ndcg", "pairwise"),
        "k": (_is_count(1), "an int in the range [1, inf)"),
        "positions": (_are_weights, f"one of {', '.join(map(repr, POSITIONS))}, or k positive numbers that do not rise"),
        "ties": _one_of("any", "first"),
        "pair_weight": _one_of("query", "equal"),
    }

    def __init__(
        self,
        loss="ramp_do",
        C=0.1,
        solver="auto",
        l1_ratio=0.0,
        objective="ndcg",
        k=10,
        positions="log",
        ties="any",
        pair_weight="query",
        max_epochs=200,
        tol=1e-2,
        average=None,
        early_stopping=False,
        validation_fraction=0.1,
        patience=3,
        warm_start=False,
        random_state=None,
        n_jobs=None,
        dtype="float64",
        callbacks=None,
        verbose=0,
    ):
        self.loss = loss
        self.C = C
        self.solver = solver
        self.l1_ratio = l1_ratio
        self.objective = objective
        self.k = k
        self.positions = positions
        self.ties = ties
        self.pair_weight = pair_weight
        self.max_epochs = max_epochs
        self.tol = tol
        self.average = average
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.dtype = dtype
        self.callbacks = callbacks
        self.verbose = verbose

    def _check_parameters(self) -> Loss:
        loss = super()._check_parameters()
        if self.objective == "ndcg" and loss.is_smooth:
            raise ValueError(
                f"The loss {loss.name!r} sums over all rankings of a query, and no algorithm does that in reasonable time. Take "
                "objective='pairwise' for it, or a loss that looks at the best ranking: 'hinge', 'ramp', 'ramp_do', 'perceptron'."
            )
        position_weights(self.positions, self.k)
        return loss

    # -- training -----------------------------------------------------------------------------------------------------

    def fit(self, X, y=None, groups=None, sample_weight=None, *, qid=None, validation=None, checkpoint=None):
        """Train from nothing, or with ``warm_start=True`` from the previous weights.

        Parameters
        ----------
        X : array, sparse matrix or data frame (documents, features), or RankingSet
            Features, best scaled within each query (`RankingSet.normalized`). A column ``qid`` of a data frame is no feature but
            says which query each document belongs to.
        y : array (documents,), optional
            Relevance: numbers >= 0, 0 for irrelevant; of a `RankingSet`, its own by default.
        groups, qid : array (documents,), optional
            The query of each document, two names for one thing; one query for all by default. Documents of a query need not be
            neighbours.
        sample_weight : array (documents,), optional
            A query weighs as much as its documents do in the mean.
        validation : RankingSet or (X, y, groups), optional
            Held-out queries for early stopping, instead of a part of X.
        checkpoint : path, optional
            As in `SequenceLabeler.fit`.
        """
        loss = self._check_parameters()
        given = read_documents(X, y, groups, qid, self._dtype)
        if given.relevance is None:
            raise ValueError("There is no relevance to learn from: give y, or a RankingSet.")
        if given.qid is None:
            warnings.warn(
                f"{self._who}: neither `groups` nor `qid` says which query each document belongs to: all {len(given)} are taken "
                "for one. scikit-learn passes `groups` on only if it is asked to (set_fit_request, set_score_request).",
                stacklevel=2,
            )
        relevance = given.relevance
        weight = example_weights(sample_weight, len(given), "document")
        queries = given.queries
        seed = self._seed()
        held = None
        if validation is not None:
            held = read_documents(*(validation if isinstance(validation, tuple) else (validation,)), dtype=self._dtype)
            if held.X.shape[1] != given.X.shape[1]:
                raise ValueError(f"X has {given.X.shape[1]} features, but the validation set {held.X.shape[1]}.")
            self._check_names(held, given.names)
            if held.qid is None and len(queries) > 1:
                raise ValueError(self._no_queries(len(held), "the validation set, (X, y, qid)"))
        elif self.early_stopping:
            kept, out = self._hold_out(len(queries), seed)
            held, queries = given.take([queries[i] for i in out]), [queries[i] for i in kept]
        queries = [own for own in queries if weight[own].any() and np.ptp(relevance[own]) > 0]
        if not queries:
            raise ValueError(
                f"{self._who} has nothing to learn from: in every query all documents are equally relevant. Got {len(given)} "
                f"documents of {len(given.queries)} queries; does `groups` (or `qid`) say which belong together?"
            )
        if not np.any(given.X != 0 if isinstance(given.X, np.ndarray) else given.X.data):
            warnings.warn(f"{self._who}: all features are zero; all documents will score alike.", stacklevel=2)
        some = given.take(queries)
        weights = np.array([weight[own].mean() for own in queries])
        problem, weights = self._problem(some, weights)
        start = self.weights_ if self.warm_start and hasattr(self, "weights_") else None
        self._solve(problem, loss, weights, self._judge(held), start, seed, checkpoint)
        self.n_features_in_ = given.X.shape[1]
        self._set_names(given.names)
        self.n_queries_, self.several_queries_ = len(queries), len(given.queries) > 1
        return self

    def _problem(self, some: Documents, weights: np.ndarray) -> tuple[Any, np.ndarray]:
        """Rankings or pairs, and the weight of each; documents come query after query."""
        lengths = [len(own) for own in some.queries]
        relevance = np.asarray(some.relevance)
        if self.objective == "ndcg":
            return ranking_problem(some.X, lengths, relevance, self.k, self.positions, self.ties, self._dtype), weights
        first, second, query = pairs_of(np.array(lengths), relevance)
        if self.pair_weight == "query":
            weights = weights / np.maximum(np.bincount(query, minlength=len(lengths)), 1)
        return pair_problem(some.X, first, second, self._dtype), weights[query]

    def _judge(self, held: Documents | None) -> Any:
        if held is None:
            return None
        if held.relevance is None or not held.relevance.any():
            raise ValueError(
                f"{self._who} cannot tell when to stop: nothing is relevant in the {len(held.queries)} held-out queries. Take "
                "others, or more of them."
            )

        def wrong(w: np.ndarray) -> float:
            return 1.0 - ndcg(held.relevance, held.X @ w, held.qid, self.k)

        return wrong

    # -- answers ------------------------------------------------------------------------------------------------------

    def _read(self, X: Any, y: Any = None, groups: Any = None, qid: Any = None) -> Documents:
        weights = self._require_fitted()
        given = read_documents(X, y, groups, qid, self._dtype)
        if given.X.shape[1] != weights.size:
            raise ValueError(f"X has {given.X.shape[1]} features, but {self._who} was trained with {weights.size}.")
        self._check_names(given, list(getattr(self, "feature_names_in_", [])))
        return given

    def _no_queries(self, n: int, where: str) -> str:
        """Documents of several queries, taken for one, get another NDCG, and nobody would notice."""
        return (
            f"{self._who} learns from several queries, but nothing says which of them each of the {n} documents in {where} "
            "belongs to. Give `qid` (or `groups`), one entry a document, a data frame with a column 'qid' or a RankingSet; "
            "if they are all of one query, qid=[0] * len(X). scikit-learn passes `groups` on only if it is asked to: "
            "sklearn.set_config(enable_metadata_routing=True) and set_fit_request(groups=True).set_score_request(groups=True)."
        )

    def _set_names(self, names: list[str] | None) -> None:
        """`feature_names_in_`, which is not there unless a data frame had names, as scikit-learn has it."""
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = np.array(names, object)

    def _check_names(self, given: Documents, names: list[str] | None) -> None:
        """Raise if a data frame has other columns than in training, or the same in another order."""
        if names and given.names and given.names != names:
            k = next((k for k, (new, old) in enumerate(zip(given.names, names, strict=False)) if new != old), 0)
            raise ValueError(
                "The feature names should match those that were passed during fit, and be in the same order. Got "
                f"{given.names[k]!r} where {names[k]!r} was expected."
            )

    def predict(self, X) -> np.ndarray:
        """The score w . x of each document: within a query, the higher, the earlier. Queries need not be known."""
        return self._read(X).X @ self.weights_

    decision_function = predict

    def rank(self, X, groups=None, *, qid=None) -> list[np.ndarray]:
        """For each query, in the order in which queries are first met, the numbers of its rows of X, best first.

        Without `groups` or `qid` all rows are one query's. The other answers about rankings have it so, too.
        """
        given = self._read(X, None, groups, qid)
        scores = given.X @ self.weights_
        return [own[np.argsort(-scores[own], kind="stable")] for own in given.queries]

    def score(self, X, y=None, groups=None, sample_weight=None, *, qid=None) -> float:
        """Mean NDCG@k over queries; those with nothing relevant in them are left out (see `partwise.metrics.ndcg`).

        The queries have to be given if the model was trained on several. `sample_weight` as in `fit`: of documents; a query
        weighs their mean.
        """
        given = self._read(X, y, groups, qid)
        if given.relevance is None:
            raise ValueError("There is no relevance to compare with: give y, or a RankingSet.")
        if given.qid is None and self.several_queries_:
            raise ValueError(self._no_queries(len(given), "X"))
        scores = given.X @ self.weights_
        if sample_weight is None:
            return ndcg(given.relevance, scores, given.qid, self.k)
        weight = example_weights(sample_weight, len(given), "document")
        found = ndcg_by_query(given.relevance, scores, given.qid, self.k)
        weights = np.where(np.isnan(found), 0.0, [weight[own].mean() for own in given.queries])
        return float(weights @ np.nan_to_num(found) / weights.sum()) if weights.any() else float("nan")

    def predict_kbest(self, X, groups=None, k: int = 5, *, qid=None) -> list[list[tuple[np.ndarray, float]]]:
        """For each query at most k pairs (rows of X at the first positions, score), best first. k * positions assignments."""
        check_k(k)
        given = self._read(X, None, groups, qid)
        queries = given.queries
        some = given.take(queries)
        problem = ranking_problem(some.X, [len(own) for own in queries], None, self.k, self.positions, "first", self._dtype)
        out, values, found = passes.kbest(problem, self.weights_, int(k), self.n_jobs)
        places = problem.places
        return [
            [(own[out[j, places[i] : places[i + 1]]], float(values[i, j])) for j in range(int(found[i]))]
            for i, own in enumerate(queries)
        ]

    def predict_marginals(self, X, groups=None, *, qid=None) -> list[np.ndarray]:
        """P(a comes before b) for the documents of each query, an array (n, n). Of models of pairs with probabilities only."""
        beta = self._beta()
        given = self._read(X, None, groups, qid)
        scores = given.X @ self.weights_
        return [0.5 * (1.0 + np.tanh(0.5 * beta * np.subtract.outer(scores[own], scores[own]))) for own in given.queries]

    def _no_probabilities(self) -> str:
        return f"{super()._no_probabilities().split('. ')[0]}. Train with objective='pairwise', loss='crf' for probabilities."

    # -- the model file -----------------------------------------------------------------------------------------------

    def _to_file(self):
        header = {"labels": np.array(["rank"], object), "n_features": self.n_features_in_, "training": self.training_}
        header["several_queries"] = self.several_queries_
        if hasattr(self, "feature_names_in_"):
            header["feature_names"] = list(self.feature_names_in_)
        return header, {"weights": self.weights_}

    def _from_file(self, header, tensors, need):
        self.weights_, self.training_ = tensors["weights"], header.get("training")
        self.n_features_in_ = int(header["n_features"])
        self.several_queries_ = bool(header.get("several_queries", True))  # older files do not say
        names = need(header, "feature_names", list) if "feature_names" in header else None
        if names is not None and len(names) != self.n_features_in_:
            raise ValueError(f"there are {len(names)} feature names for {self.n_features_in_} features")
        self._set_names(names)
        return self.n_features_in_
