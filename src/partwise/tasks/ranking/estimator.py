"""`Ranker`: learns to rank the documents of a query.

minimise  Omega(w) + C sum_q weight_q L_q(w)        over rankings, s(y) = sum_p c_p w . x_{y_p}
                                                    or over pairs of documents, s = w . (x_a - x_b)
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from partwise.losses.records import Loss, get_loss
from partwise.structures.ranking.problem import POSITIONS, pair_problem, pairs_of, position_weights, ranking_problem
from partwise.tasks.common.base import Structured, is_corpus
from partwise.tasks.common.checks import is_count, one_of
from partwise.tasks.common.label_arrays import check_k, example_weights
from partwise.tasks.common.model_file import count_in
from partwise.tasks.ranking.data import Documents, read_documents
from partwise.tasks.ranking.scores import mean_over, ndcg, ndcg_at, ndcg_by_query
from partwise.tasks.ranking.suspects import RankingSuspects

LOSSES = {"ndcg": "ramp_do", "pairwise": "hinge"}  #: by the objective, unless another is asked for


def _are_weights(value: Any) -> bool:
    try:
        position_weights(value, 1)
    except (ValueError, TypeError):
        return False
    return True


@dataclass(eq=False, repr=False)
class Ranker(RankingSuspects, Structured):
    """Learns to rank the documents of a query by a linear score, for NDCG or by pairs.

    Parameters
    ----------
    %(loss)s
    objective : {"ndcg", "pairwise"}, default="ndcg"
        Whole rankings with the cost 1 - NDCG@k, or all pairs of documents that differ in relevance. Rankings are for losses that
        look at the best one: ``"ramp_do"``, the default, and ``"ramp"`` are bounded, ``"hinge"`` is not, and often too loose to
        be of use. Pairs are for any: ``"hinge"``, the default, makes the ranking SVM, ``"crf"`` pairwise logistic regression,
        which has probabilities.
    k : int, default=10
        Positions that count, for the cost and for `score`.
    positions : {"log", "reciprocal", "linear"} or array, default="log"
        How much a position weighs in the score of a ranking; "log" is 1 / log2(1 + position), as in NDCG.
    ties : {"any", "first"}, default="any"
        What margins of whole rankings are measured against, since documents of one relevance may come in any order: the ideal
        ranking that the model likes best (not convex), or the one that keeps the order of X. Ramp losses only begin with it.
    pair_weight : {"query", "equal"}, default="query"
        Of pairs: whether every query weighs the same, or every pair.
    %(learning)s

    Attributes
    ----------
    weights_ : array (features,)
    n_features_in_, n_queries_ : int
        Queries: those that were learnt from. In others all documents are equally relevant.
    several_queries_ : bool
        Whether more than one query was given to `fit`: then `score` has to be told the queries, too.
    result_, solver_, temperature_
        As in `Classifier`.

    Notes
    -----
    Pairs make one convex problem of few weights: by default it is solved to a gap of ``tol=0.01``. Early stopping holds out whole
    queries and judges by NDCG@k. `dtype` is that of features and weights.

    Examples
    --------
    >>> X, y, groups = [[0.9], [0.1], [0.4], [0.6]], [1, 0, 0, 2], [1, 1, 2, 2]
    >>> ranker = Ranker().fit(X, y, groups=groups)
    >>> [rows.tolist() for rows in ranker.rank(X, groups=groups)]
    [[0, 1], [3, 2]]
    >>> ranker.score(X, y, groups=groups)
    1.0
    """

    loss: Any = "auto"
    _: KW_ONLY
    objective: str = "ndcg"
    k: int = 10
    positions: Any = "log"
    ties: str = "any"
    pair_weight: str = "query"
    tol: float = 1e-2
    patience: int | None = 3

    weights_: np.ndarray = field(init=False)
    n_features_in_: int = field(init=False)
    n_queries_: int = field(init=False)
    several_queries_: bool = field(init=False)

    @classmethod
    def defaults(cls) -> Any:
        from partwise.solvers.defaults import LOG, MARGIN, Defaults

        # pairs make one convex problem of few weights, and its optimum is soon found
        return Defaults(solver={MARGIN: "sdm", LOG: "lbfgs"}, epochs={"sdm": 200})

    _checks = {
        **Structured._checks,
        "objective": one_of("ndcg", "pairwise"),
        "k": (is_count(1), "an int in the range [1, inf)"),
        "positions": (_are_weights, f"one of {', '.join(map(repr, POSITIONS))}, or k positive numbers that do not rise"),
        "ties": one_of("any", "first"),
        "pair_weight": one_of("query", "equal"),
    }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = tags.input_tags.sparse = True
        return tags

    def _loss(self) -> Loss:
        return get_loss(LOSSES[self.objective] if isinstance(self.loss, str) and self.loss == "auto" else self.loss)

    def _check_parameters(self) -> Loss:
        loss = super()._check_parameters()
        if self.objective == "ndcg" and loss.is_smooth:
            raise ValueError(
                f"The loss {loss.name!r} sums over all rankings of a query, and no algorithm does that in reasonable time. Take "
                "objective='pairwise' for it, or a loss that looks at the best ranking: 'hinge', 'ramp', 'ramp_do', 'perceptron'."
            )
        position_weights(self.positions, self.k, 1)
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
        if is_corpus(X):
            return self._fit_packed(X, (y, groups, sample_weight, qid), validation, checkpoint)
        loss = self._check_parameters()
        given = read_documents(X, y, groups, qid, self._dtype)
        if given.relevance is None:
            raise ValueError("There is no relevance to learn from: give y, or a RankingSet.")
        if len(given) < 2:
            words = "One document, 1 sample, has no rank" if len(given) else "X has no rows"
            shape = f"{len(given)} sample(s) (shape={given.X.shape})"
            raise ValueError(f"{words}: {self._who} got {shape} while a minimum of 2 is required.")
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
            X_held, y_held, of_query = (*(validation if isinstance(validation, tuple) else (validation,)), None, None)[:3]
            held = read_documents(X_held, y_held, of_query, dtype=self._dtype)
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
        self._solve(problem, loss, weights, self._judge(held), self._previous_weights, seed, checkpoint)
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

    def _judge_by(self, validation: Any, problem: Any) -> Any:
        X, y, of_query = (*(validation if isinstance(validation, tuple) else (validation,)), None, None)[:3]
        return self._judge(read_documents(X, y, of_query, dtype=self._dtype))

    def _judge(self, held: Documents | None) -> Any:
        if held is None:
            return None
        relevance = held.relevance
        if relevance is None or not relevance.any():
            raise ValueError(
                f"{self._who} cannot tell when to stop: nothing is relevant in the {len(held.queries)} held-out queries. Take "
                "others, or more of them."
            )

        def wrong(w: np.ndarray) -> float:
            return 1.0 - mean_over(ndcg_at(relevance, held.X @ w, held.queries, [self.k])[:, 0])

        return wrong

    # -- answers ------------------------------------------------------------------------------------------------------

    def _read(self, X: Any, y: Any = None, groups: Any = None, qid: Any = None) -> Documents:
        weights = self._require_fitted()
        given = read_documents(X, y, groups, qid, self._dtype)
        if given.X.shape[1] != weights.size:
            raise ValueError(f"X has {given.X.shape[1]} features, but {self._who} is expecting {weights.size} features as input.")
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
        return self._kbest(problem, k, problem.places, lambda i, ranking: queries[i][ranking])

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
        header: dict[str, Any] = {"n_features": self.n_features_in_, "several_queries": self.several_queries_}
        if hasattr(self, "feature_names_in_"):
            header["feature_names"] = list(self.feature_names_in_)
        return header, {}

    def _from_file(self, header, tensors, need):
        self.n_features_in_ = count_in(header)
        self.several_queries_ = bool(header.get("several_queries", True))  # older files do not say
        names = need(header, "feature_names", list) if "feature_names" in header else None
        if names is not None and len(names) != self.n_features_in_:
            raise ValueError(f"there are {len(names)} feature names for {self.n_features_in_} features")
        self._set_names(names)
        return self.n_features_in_
