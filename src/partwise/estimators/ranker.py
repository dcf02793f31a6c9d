"""`Ranker`: the scikit-learn face of `QueryRanker`."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from partwise.estimators.query_ranker import QueryRanker


class Ranker(QueryRanker, BaseEstimator):
    """Learns to rank the documents of a query by a linear score, for NDCG or by pairs.

    Parameters
    ----------
    loss : str or Loss, default="ramp_do"
        With ``objective="ndcg"``, losses that look at the best ranking: ``"ramp_do"`` and ``"ramp"`` are bounded, ``"hinge"`` is
        not, and often too loose to be of use. With ``objective="pairwise"``, any: ``"hinge"`` makes the ranking SVM, ``"crf"``
        pairwise logistic regression, which has probabilities.
    C : float, default=0.1
        Weight of the losses against the regulariser.
    solver : str or Solver, default="auto"
        "auto" is SDM, inside CCCP where the loss is not convex.
    l1_ratio : float in [0, 1], default=0.0
        Share of the L1 norm in the penalty.
    objective : {"ndcg", "pairwise"}, default="ndcg"
        Whole rankings with the cost 1 - NDCG@k, or all pairs of documents that differ in relevance.
    k : int, default=10
        Positions that count, for the cost and for `score`.
    positions : {"log", "reciprocal", "linear"} or array, default="log"
        How much a position weighs in the score of a ranking; "log" is 1 / log2(1 + position), as in NDCG.
    ties : {"any", "first"}, default="any"
        What margins of whole rankings are measured against, since documents of one relevance may come in any order: the ideal
        ranking that the model likes best (not convex), or the one that keeps the order of X. Ramp losses only begin with it.
    pair_weight : {"query", "equal"}, default="query"
        Of pairs: whether every query weighs the same, or every pair.
    max_epochs : int, default=200
    tol : float, default=0.01
    average, early_stopping, validation_fraction, patience, warm_start, random_state, n_jobs, callbacks, verbose
        As in `Classifier`. Early stopping holds out whole queries and judges by NDCG@k.
    dtype : {"float64", "float32"}, default="float64"
        Of features and weights.

    Attributes
    ----------
    weights_ : array (features,)
    n_features_in_, n_queries_ : int
        Queries: those that were learnt from. In others all documents are equally relevant.
    several_queries_ : bool
        Whether more than one query was given to `fit`: then `score` has to be told the queries, too.
    result_, solver_, temperature_
        As in `Classifier`.

    Examples
    --------
    >>> X, y, groups = [[0.9], [0.1], [0.4], [0.6]], [1, 0, 0, 2], [1, 1, 2, 2]
    >>> ranker = Ranker().fit(X, y, groups=groups)
    >>> [rows.tolist() for rows in ranker.rank(X, groups=groups)]
    [[0, 1], [3, 2]]
    >>> ranker.score(X, y, groups=groups)
    1.0
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False  # a RankingSet has its own
        tags.input_tags.sparse = True
        return tags
