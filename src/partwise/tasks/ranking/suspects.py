"""Relevance that is probably wrong: of single documents, and of queries whose relevance has nothing to do with their documents.

Scores of a ranker mean something within a query only, and say which document comes before which, not how relevant it is. So a
*grade* g, one of the different values of relevance, is judged by a small model of the score s of a document d of query q,

    p(g | d)  ~  exp(a_g (s_d - mean_q s) + sum_h b_gh log pi_qh + c_g),

where pi_qh is the share of grade h among the other documents of the query: some have much to offer, some nothing. It has a few
weights only, which are those of highest likelihood on the documents that a ranker judges. With probability e, of highest
likelihood too, a document is given any other grade than its own.

A whole query may be wrong, too: judged for another question, or out of step by a line. Its grades are then as good as *shuffled*,
drawn by the shares pi alone. With r the share of such queries, of highest likelihood,

    P(q shuffled) = r prod_d p(g_d | pi) / ( r prod_d p(g_d | pi) + (1 - r) prod_d p(g_d | d) ).

That is the probability that a query is listed with: in any long list of documents, one will be wrong. Documents are judged by
themselves: a ranker that knows little of a query would drag all of its documents to the top.

Cost: a training for each fold, then O(documents grades^2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from partwise.losses.records import Family
from partwise.objective import losses_at
from partwise.passes import Evidence
from partwise.structures.multiclass.problem import multiclass_problem
from partwise.tasks.common.suspects import (
    FindsSuspects,
    Judged,
    Suspect,
    SuspectPart,
    fitted_like,
    folds_of,
    train_judge,
    unfitted,
)
from partwise.tasks.ranking.data import Documents, read_documents

if TYPE_CHECKING:
    from partwise.solvers.noise import Judgement

MOST_GRADES = 32
CRF = Family(1.0, 0.0)
C = 100.0  # of the model of grades: few weights, many documents
STEPS = 200  # of the share of shuffled queries, at most


@dataclass(frozen=True)
class JudgedQueries(Judged):
    """The same with the rows of X that the documents of queries are, query after query."""

    rows: np.ndarray = None  # type: ignore[assignment]

    def suspect(self, i: int) -> Suspect:
        """The record of query i; parts are numbered as rows of X."""
        made = super().suspect(i)
        first = int(self.found.evidence.starts[i])
        parts = tuple(
            SuspectPart(int(self.rows[first + one.part]), one.given, one.believed, one.probability) for one in made.parts or ()
        )
        return Suspect(i, made.given, made.believed, made.probability, parts)


class RankingSuspects(FindsSuspects):
    """`suspects` and `suspicion` of rankers: examples are queries, in the order in which they are met; parts are documents."""

    judged_by_sums = False

    def judge(self, X, y=None, *, groups=None, qid=None, folds="auto", judges: list[Any] | None = None) -> JudgedQueries:
        """What is to be thought of all relevance; the parameters are those of `suspects`."""
        me: Any = self
        if folds is None:
            me._require_fitted()
        fitted = hasattr(me, "weights_")
        if not fitted:
            me = unfitted(me)
            me._check_parameters()
        given = me._read(X, y, groups, qid) if fitted else read_documents(X, y, groups, qid, me._dtype)
        if given.relevance is None:
            raise ValueError("There is no relevance to judge: give y, or a RankingSet.")
        queries = given.queries
        rows, docs = np.concatenate([np.zeros(0, np.int64), *queries]), given.take(queries)
        learners, part = rankers(me, docs, folds)
        if judges is not None:
            judges += [fitted_like(me, one, n_features_in_=docs.X.shape[1]) for one in learners]
        found, grades = judge_grades(docs, learners, part, me.n_jobs)
        assert docs.relevance is not None
        starts, relevance, believed = found.evidence.starts, docs.relevance.tolist(), grades[found.evidence.believed].tolist()

        def example(i: int) -> tuple[list[float], list[float]]:
            here = slice(int(starts[i]), int(starts[i + 1]))
            return relevance[here], believed[here]

        return JudgedQueries(found, example, lambda t: (relevance[t], believed[t]), rows)

    def suspicion(self, X, y=None, *, folds="auto", parts=False, **form) -> np.ndarray:
        """The probability that the relevance of a query has nothing to do with its documents, of all queries, (queries,).

        With ``parts=True`` that of being wrong of the single documents instead, in the order of X, (documents,).
        """
        found = super().suspicion(X, y, folds=folds, parts=parts, **form)
        if not parts:
            return found
        queries = read_documents(X, y, form.get("groups"), form.get("qid")).queries
        out = np.zeros(len(found))
        out[np.concatenate([np.zeros(0, np.int64), *queries])] = found
        return out


def rankers(model: Any, docs: Documents, folds: Any) -> tuple[list[Any], np.ndarray]:
    """Those who judge, and which of them judges each query."""
    queries, relevance = docs.queries, np.asarray(docs.relevance)
    n, seed = len(queries), model._seed()
    folds = folds_of(model, folds, n)
    if folds is None:
        return [model], np.zeros(n, np.int64)
    if n < folds:
        raise ValueError(f"The 'folds' parameter is {folds}, but there are {n} queries only.")
    from partwise.solvers.noise import dealt

    part, learners = dealt(n, folds, seed), []
    for fold in range(folds):
        others = [own for i, own in enumerate(queries) if part[i] != fold and np.ptp(relevance[own]) > 0]
        if not others:
            raise ValueError("There is nothing to judge by: in all other queries all documents are equally relevant.")
        learner = unfitted(model)
        problem, weights = learner._problem(docs.take(others), np.ones(len(others)))
        train_judge(learner, problem, weights, seed, (fold, folds))
        learners.append(learner)
    return learners, part


def judge_grades(docs: Documents, learners: list[Any], part: np.ndarray, n_jobs: int | None) -> tuple[Judgement, np.ndarray]:
    """What the scores of rankers say of all grades; and what the grades are. Documents come query after query."""
    lengths = np.array([len(own) for own in docs.queries], np.int64)
    query, starts = np.repeat(np.arange(len(lengths)), lengths), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    grades, codes = np.unique(np.asarray(docs.relevance), return_inverse=True)
    if len(grades) > MOST_GRADES:
        raise ValueError(
            f"There are {len(grades)} different values of relevance: they are judged as grades, {MOST_GRADES} at most."
        )
    shares = log_shares(codes, query, len(grades))
    features = np.column_stack([np.zeros(len(codes)), shares, np.ones(len(codes))])
    shuffled, of_grades = np.zeros(len(codes)), np.zeros((len(codes), len(grades)))
    for k, learner in enumerate(learners):
        mine = np.flatnonzero(part[query] == k)
        if not len(mine):
            continue
        scores = np.asarray(docs.X[mine] @ learner.weights_).reshape(-1)
        means = np.bincount(query[mine], scores, len(lengths)) / np.maximum(lengths, 1)
        features[mine, 0] = scores - means[query[mine]]
        plain, full = (multiclass_problem(features[mine, first:], codes[mine], len(grades)) for first in (1, 0))
        shuffled[mine] = -losses_at(plain, CRF, fitted_weights(plain, n_jobs), n_jobs)
        of_grades[mine] = features[mine] @ fitted_weights(full, n_jobs).reshape(-1, len(grades))
    e, free, kept, sound = fit_channel(of_grades, codes)
    # log-likelihood of shuffled grades over that of sound ones
    ratio = np.bincount(query, shuffled - np.log(sound), len(lengths))
    r = share_of(ratio)
    odds = np.where(lengths > 0, np.log(r) - np.log1p(-r) + ratio, -np.inf)
    with np.errstate(divide="ignore"):
        parts = np.log1p(-np.minimum(kept, 1.0)) - np.log(kept)
    believed = of_grades.argmax(axis=1).astype(np.int32)
    evidence = Evidence(starts, free, believed, believed != codes)
    from partwise.solvers.noise import Judgement

    return Judgement(evidence, odds, parts, GradeNoise(e, float(r))), grades


class GradeNoise(NamedTuple):
    """How relevance goes wrong."""

    wrong: float  #: e: share of the documents that have another grade than their own
    shuffled: float  #: r: share of the queries


def fit_channel(scores: np.ndarray, codes: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """e, and of each document the probability of what is given: by x alone, of being right, and through the noise.

    A model fitted to noisy grades is less sure than it should be: its scores are multiplied by the number from 1 on that makes
    what is given most likely, together with e.
    """
    import scipy.optimize

    from partwise.solvers.error_rates import SHARPEST

    def at(log_sharpness: float) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        sharper = np.exp(log_sharpness) * scores
        odds = np.exp(sharper - sharper.max(axis=1, keepdims=True))
        free = odds[np.arange(len(codes)), codes] / odds.sum(axis=1)
        e, kept, sound = share_wrong(free, scores.shape[1])
        return e, free, kept, sound

    found = scipy.optimize.minimize_scalar(
        lambda x: -float(np.log(at(x)[3]).sum()), bounds=(0.0, SHARPEST), method="bounded", options={"xatol": 0.02}
    )
    return at(float(found.x))


def share_wrong(free: np.ndarray, k: int) -> tuple[float, np.ndarray, np.ndarray]:
    """e, and of each document that it is right, by x and by what is given, and the probability of what is given."""
    from partwise.solvers.error_rates import LEAST, NEVER

    e = 0.05
    for _ in range(STEPS):
        sound = np.maximum((1.0 - e) * free + e * (1.0 - free) / max(k - 1, 1), NEVER)
        kept = (1.0 - e) * free / sound
        before, e = e, float(np.clip(1.0 - kept.mean() if len(kept) else 0.0, LEAST, 0.5))
        if abs(e - before) < 1e-7:
            break
    return e, kept, sound


def log_shares(codes: np.ndarray, query: np.ndarray, k: int) -> np.ndarray:
    """(documents, k) log shares of the grades among the other documents of a query, with k more of the usual shares."""
    usual = np.bincount(codes, minlength=k) / max(len(codes), 1)
    counts = np.zeros((int(query.max(initial=-1)) + 1, k))
    np.add.at(counts, (query, codes), 1.0)
    others = counts[query] - np.eye(k)[codes]
    return np.log((others + k * usual) / (others.sum(axis=1, keepdims=True) + k))


def fitted_weights(problem: Any, n_jobs: int | None) -> np.ndarray:
    """The model of grades of highest likelihood."""
    from partwise.solvers import solve

    return solve(problem, "crf", "lbfgs", C, n_jobs=n_jobs).w


def share_of(ratio: np.ndarray) -> float:
    """The r of highest likelihood, prod_q (r exp(ratio_q) + 1 - r), by expectation and maximisation."""
    r = 0.1
    for _ in range(STEPS):
        before, r = r, float(np.mean(0.5 * (1.0 + np.tanh(0.5 * (np.log(r) - np.log1p(-r) + ratio)))))
        r = min(max(r, 1e-6), 0.5)  # more than half of all labels cannot be told from none
        if abs(r - before) < 1e-6:
            break
    return r
