"""Trees that are probably wrong: heads, and the relations to them. See `partwise.tasks.common.suspects`.

Heads are judged as trees, relations as classes of the arcs that are given, since they are learnt so. A word is wrong if either
is; taking the two for independent, with log-odds h and r,

    1 - P(word is wrong) = (1 - P_h) (1 - P_r),        likewise for sentences, over the relations of all their words.

A head that is wrong makes its relation look wrong too: that is no harm, for it is the word that is listed. Of a sentence, what
is said to be in doubt are the heads that another tree has, if there is one that is believed rather than the given one, and the
words that are more probably wrong than not; all else that a parser would answer otherwise is not worth a look.

Where what is given is no tree of the kind that the model knows (several roots, arcs that cross), trees of all kinds are compared.
With ``order=2``, the arcs that are looked at are those that the estimator's own first-order model has chosen.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from partwise.engine.ragged import totals
from partwise.features.rows import take_rows
from partwise.losses.records import get_loss
from partwise.objective import best_outputs
from partwise.structures.dependency.problem import is_projective
from partwise.structures.multiclass import multiclass_problem
from partwise.tasks.common.suspects import FindsSuspects, Judged, fitted_like, folds_of, judge, unfitted
from partwise.tasks.dependency.data import Sentences, Tree, one_root, read_sentences
from partwise.tasks.dependency.relations import learns_relations_by, relation_rows

if TYPE_CHECKING:
    from partwise.solvers.noise import Judgement


@dataclass(frozen=True)
class JudgedTrees(Judged):
    """What is given and believed of all words, end to end."""

    given: Sentences = None  # type: ignore[assignment]
    heads: np.ndarray = None  # type: ignore[assignment]  #: those believed
    relations: list[str | None] | None = None  #: likewise

    def doubted(self, i: int) -> list[int]:
        """The words of sentence i in doubt (see the module), counted over all sentences, most probably wrong first."""
        found = super().doubted(i)
        assert self.given.heads is not None
        return [t for t in found if self.heads[t] != self.given.heads[t] or self.found.parts[t] > 0.0] or found


class TreeSuspects(FindsSuspects):
    """`suspects` and `suspicion` of dependency parsers. Parts are words, given and believed are heads, with their relations."""

    def judge(self, X, y=None, *, folds="auto", judges: list[Any] | None = None) -> JudgedTrees:
        """What is to be thought of all trees; the parameters are those of `suspects`.

        Those who judge heads are put into the list `judges`, if there is one: this model or, in folds, one for each part.
        """
        me: Any = self
        fitted = hasattr(me, "weights_")
        if folds is None:
            me._require_fitted()
        me = copy.copy(me) if fitted else unfitted(me)
        loss = me._check_parameters()
        given = read_sentences(X, y, me.columns, me.columns_ if fitted else None)
        if given.heads is None or not (given.heads >= 0).any():
            raise ValueError("There are no trees to judge: give y, or a treebank with heads.")
        folds = folds_of(me, folds, len(given.lengths))
        allow_what_is_given(me, given, fitted)
        if me.order == 2 and not fitted:
            me._solve(me._first_order(given), loss, None, None, None, me._seed())
            me.pruner_weights_ = me.weights_
        learners: list[Any] = []
        found = judge(me, me._problem(given), folds, judges=learners)
        if judges is not None:
            judges += [fitted_like(me, one) for one in learners]
        heads = found.evidence.believed.astype(np.int64)
        relations = given.relations
        if relations is not None and (about := judge_relations(me, given, folds)) is not None:
            found = with_relations(keep_heads(found, about, given.heads, heads), about)
            relations = about.believed(given, heads)
        return judged_trees(found, given, heads, relations)


def allow_what_is_given(me: Any, given: Sentences, fitted: bool) -> None:
    """Let a parser compare trees of all kinds that are given."""
    assert given.heads is not None
    wanted = me.single_root_ if fitted else me.single_root is not False
    me.single_root_ = bool(wanted and one_root(given).all())
    if not fitted:
        me.columns_ = given.names
    starts = given.words.starts
    trees = [given.heads[a:b] for a, b in zip(starts[:-1], starts[1:], strict=True)] if me.projective else []
    if not all(bool((heads < 0).any()) or is_projective(heads) for heads in trees):
        me.projective = False


def judged_trees(found: Judgement, given: Sentences, heads: np.ndarray, relations: list[str | None] | None) -> JudgedTrees:
    """The same for people: trees, and heads with their relations."""
    starts, before, names = found.evidence.starts, np.asarray(given.heads), given.relations

    def example(i: int) -> tuple[Tree, Tree]:
        a, b = int(starts[i]), int(starts[i + 1])
        old: list[Any] = [None if head < 0 else head for head in before[a:b].tolist()]
        new = [int(heads[t]) if head is None else head for t, head in enumerate(old, a)]
        own: Any = None if names is None else names[a:b]
        others = None if own is None or relations is None else list(own)
        for t in judged.doubted(i):
            new[t - a] = int(heads[t])
            if others is not None and relations is not None:
                others[t - a] = relations[t]
        return Tree(old, own), Tree(new, others)

    def word(heads: np.ndarray, relations: Any, t: int) -> Any:
        head = None if heads[t] < 0 else int(heads[t])
        return head if relations is None else (head, relations[t])

    def part(t: int) -> tuple[Any, Any]:
        return word(before, names, t), word(heads, relations, t)

    judged = JudgedTrees(found, example, part, given, heads, relations)
    return judged


# ---------------------------------------------------------------------------------------------------------------------
# Relations
# ---------------------------------------------------------------------------------------------------------------------


class JudgedRelations(NamedTuple):
    """What is to be thought of the relations that are known, each given its arc."""

    found: Judgement
    words: np.ndarray  #: whose relations those are
    judges: list[Any]
    part: np.ndarray  #: which judge each has
    names: list[str]
    parser: Any

    def believed(self, given: Sentences, heads: np.ndarray) -> list[str | None]:
        """The relations of trees with these heads: where an arc is not the one that is given, what its judge would call it."""
        assert given.heads is not None and given.relations is not None
        relations = list(given.relations)
        for word, code, disputed in zip(self.words, self.found.evidence.believed, self.found.evidence.disputed, strict=True):
            if disputed:
                relations[word] = self.names[code]
        moved = np.flatnonzero(heads[self.words] != given.heads[self.words])
        if len(moved):
            rows = relation_rows(self.parser, given, heads)
            for k, one in enumerate(self.judges):
                mine = self.words[moved[self.part[moved] == k]]
                problem = multiclass_problem(take_rows(rows, mine), None, len(self.names))
                for word, code in zip(mine, best_outputs(problem, one.weights_, self.parser.n_jobs)[0], strict=True):
                    relations[word] = self.names[code]
        return relations


def judge_relations(me: Any, given: Sentences, folds: int | None) -> JudgedRelations | None:
    """What models that have not seen an arc, or this one, make of its relation; None where there is nothing to compare."""
    if not me.relations or given.relations is None or given.heads is None:
        return None
    names = sorted({name for name in given.relations if name}) if folds else me.classes_.tolist()
    index = {name: k for k, name in enumerate(names)}
    words = np.flatnonzero(np.array([name in index for name in given.relations], bool) & (given.heads >= 0))
    if len(names) < 2 or len(words) < (folds or 1):
        return None
    gold = np.array([index[given.relations[k] or ""] for k in words.tolist()], np.int32)
    problem = multiclass_problem(take_rows(relation_rows(me, given, given.heads), words), gold, len(names))
    clerk, loss = unfitted(me), learns_relations_by(get_loss(me.loss))
    clerk.loss, clerk.solver, clerk.tol = loss, "dca", 0.0  # as `fit` does it
    if not folds:
        clerk.weights_, clerk.temperature_ = me.relation_weights_, 1.0 / loss.beta if loss.is_smooth else None
    judges: list[Any] = []
    found = judge(clerk, problem, folds, judges=judges)
    from partwise.solvers.noise import dealt

    part = dealt(len(words), folds, clerk._seed()) if folds else np.zeros(len(words), np.int64)
    return JudgedRelations(found, words, judges, part, names, me)


def keep_heads(found: Judgement, about: JudgedRelations, given: np.ndarray, heads: np.ndarray) -> Judgement:
    """Where a relation is probably wrong, and the heads of its sentence are not, these are believed: `heads` are changed."""
    evidence, doubted = found.evidence, np.zeros(len(heads), np.bool_)
    doubted[about.words] = about.found.parts > 0.0
    calm = (found.examples <= 0.0) & (totals(doubted, evidence.starts) > 0)
    kept = np.repeat(calm, np.diff(evidence.starts)) & (given >= 0)
    heads[kept] = given[kept]
    return found._replace(evidence=evidence._replace(disputed=evidence.disputed & ~kept))


def with_relations(found: Judgement, about: JudgedRelations) -> Judgement:
    """Heads and relations together: see the module."""
    evidence, doubts = found.evidence, np.zeros(len(found.parts))
    doubts[about.words] = minus_log_right(about.found.parts)
    given, disputed = evidence.given.copy(), evidence.disputed.copy()
    given[about.words] *= about.found.evidence.given
    disputed[about.words] |= about.found.evidence.disputed
    in_examples = np.diff(np.concatenate([[0.0], np.cumsum(doubts)])[evidence.starts])
    return found._replace(
        evidence=evidence._replace(given=given, disputed=disputed),
        parts=as_log_odds(minus_log_right(found.parts) + doubts),
        examples=as_log_odds(minus_log_right(found.examples) + in_examples),
    )


def minus_log_right(log_odds: np.ndarray) -> np.ndarray:
    """-log(1 - p) of log p / (1 - p)."""
    return np.logaddexp(0.0, log_odds)


def as_log_odds(q: np.ndarray) -> np.ndarray:
    """log p / (1 - p) of -log(1 - p): log(e^q - 1)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(q > 0.0, np.where(np.isinf(q), np.inf, q + np.log(-np.expm1(-q))), -np.inf)
