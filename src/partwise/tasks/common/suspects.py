"""Labels that are probably wrong: who judges them, how they are ranked, and what is said of them.

A model has learnt its training labels, the wrong ones too. So the examples are dealt out into parts at random (*folds*), and each
part is judged by a model of all others, which has not seen it. These models are trained twice: the second time, an example weighs
as much as it is probably right, so that errors in the others hardly disturb. What they say becomes probabilities by a model of
the noise that explains all that is given best (`partwise.solvers.noise`): of every example, that there is a mistake in it, and
of every position of its output (a token, a head, a class), that it is wrong. Everything is ranked by the log-odds of that, which
do not tie where probabilities round to 1.

A robust model, one trained with a ramp loss, has given up what it cannot make sense of, and may judge by itself.

Everything works on packed problems of any structure that has the kernels `expected` and `agreement`.

Cost: two trainings for each fold, and twice what `noise` says.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from partwise import kernels
from partwise.engine.cluster_map import mapped
from partwise.passes import Evidence, evidence, gather, no_evidence

if TYPE_CHECKING:  # imported by those who judge: a model that only answers needs none of it
    from partwise.solvers.noise import Judge, Judgement

FOLDS = 5
ROUNDS = 2  # of training in folds: in the second, what is probably wrong weighs little
LEAST_WEIGHT = 1e-6
WATCHER: ContextVar[Callable[[str], Any] | None] = ContextVar("watcher", default=None)


@dataclass(frozen=True)
class SuspectPart:
    """A part of an output that is in doubt: a token, a word, a base."""

    part: int  #: its place in the output
    given: Any
    believed: Any
    probability: float  #: of being wrong


@dataclass(frozen=True)
class Suspect:
    """An example that is probably wrong."""

    example: int  #: its number in X
    given: Any  #: a label, or the labels of a sequence, or a tree
    believed: Any
    probability: float  #: that there is a mistake in it
    parts: tuple[SuspectPart, ...] | None = None  #: where the two differ, most probably wrong first; None for classes

    def as_dict(self) -> dict[str, Any]:
        """For JSON and data frames; `parts` only where there are any."""
        fields = asdict(self)
        if self.parts is None:
            del fields["parts"]
        else:
            fields["parts"] = [asdict(part) for part in self.parts]
        return fields


# ---------------------------------------------------------------------------------------------------------------------
# Judges
# ---------------------------------------------------------------------------------------------------------------------


def folds_of(model: Any, folds: Any, n: int) -> int | None:
    """How many parts n examples are judged in; None: by the model itself."""
    if isinstance(folds, str) and folds == "auto":
        fitted, robust = hasattr(model, "weights_"), model.judged_by_sums and not model._loss().is_convex
        return None if fitted and (n < 2 or robust) else min(FOLDS, max(n, 2))
    if folds is not None and (not isinstance(folds, Integral) or isinstance(folds, bool) or folds < 2):
        raise ValueError(f"The 'folds' parameter must be an int in the range [2, inf), 'auto' or None. Got {folds!r} instead.")
    return None if folds is None else int(folds)


Conclude = Callable[[Any, "list[Judge]", int, "int | None"], "Judgement"]  #: (problem, who judges, seed, n_jobs)


def by_noise(problem: Any, found: list[Judge], seed: int, n_jobs: int | None) -> Judgement:
    """What follows from what judges say, by the noise of highest likelihood (`partwise.solvers.noise`)."""
    from partwise.solvers.noise import fit_noise, judged

    return judged(problem, found, fit_noise(found, seed, n_jobs), n_jobs)


def by_joint_noise(problem: Any, found: list[Judge], seed: int, n_jobs: int | None) -> Judgement:
    """The same by the joint opinion alone: where features say little of a position by itself, what is given around it much."""
    from partwise.solvers.noise import fit_noise, judged

    return judged(problem, found, fit_noise(found, seed, n_jobs), n_jobs, second_opinion=False)


def by_rates(chance: np.ndarray, known: np.ndarray) -> Conclude:
    """The same for outputs whose mistakes come in long runs (see `partwise.solvers.error_rates`).

    `chance`: of every position, that a mistake is what is given; `known`: whether anything is given there.
    """

    def conclude(problem: Any, found: list[Judge], seed: int, n_jobs: int | None) -> Judgement:
        def look(sharpness: float) -> Evidence:
            whole = no_evidence(problem)
            for one in found:
                gather(whole, one.which, evidence(one.problem, one.w, sharpness * one.beta, n_jobs))
            whole.disputed[~known] = False
            return whole

        from partwise.solvers.error_rates import fit_rates
        from partwise.solvers.noise import Judgement

        best = fit_rates(look, chance, known)
        return Judgement(best.evidence, best.examples, best.parts, best.rates)

    return conclude


def judge(
    model: Any,
    problem: Any,
    folds: Any = "auto",
    weight: np.ndarray | None = None,
    judges: list[Any] | None = None,
    conclude: Conclude = by_noise,
) -> Judgement:
    """What a model makes of a labelled problem; or, in `folds`, what others with its parameters make of it.

    Those who judge are put into the list `judges`, if there is one: the first is the one that has judged part 0 (`dealt`).
    """
    n, seed = kernels.n_examples(problem), model._seed()
    folds = folds_of(model, folds, n)
    if folds is None:
        found, one = judgement_of(problem, [(copy.copy(model), np.arange(n))], seed, model.n_jobs, conclude)
        if judges is not None:
            judges += one
        return found
    if n < folds:
        raise ValueError(f"The 'folds' parameter is {folds}, but there are {n} examples only.")
    from partwise.solvers.noise import dealt

    part, learner = dealt(n, folds, seed), judge_like(model)
    trust = np.ones(n) if weight is None else weight
    rounds = ROUNDS if learner._loss().is_convex else 1
    for turn in range(rounds):
        pieces = ((part != fold, trust, (turn * folds + fold, rounds * folds)) for fold in range(folds))
        those_trained = mapped(trained_judge, pieces, learner, problem, seed)
        learnt = [(one, np.flatnonzero(part == fold)) for fold, one in enumerate(those_trained)]
        tell("weighing what the judges say")
        found, those = judgement_of(problem, learnt, seed, model.n_jobs, conclude)
        right = np.maximum(1.0 - probability(found.examples), LEAST_WEIGHT)
        trust = right if weight is None else weight * right
    if judges is not None:
        judges += those
    return found


def trained_judge(piece: tuple[np.ndarray, np.ndarray, tuple[int, int]], like: Any, problem: Any, seed: int) -> Any:
    """One who judges, who has learnt from the examples that are marked, here or on a cluster."""
    marked, trust, place = piece
    learner, others = unfitted(like), np.flatnonzero(marked)
    train_judge(learner, kernels.take(problem, others), trust[others], seed, place)
    return learner


def train_judge(learner: Any, problem: Any, weight: np.ndarray, seed: int, place: tuple[int, int]) -> None:
    """Train one of those who judge; `place`: how many were trained before it, and how many there are to be.

    An interruption is for the whole judgement: half a judge is none. And nobody asks for the certificate of one.
    """
    learner.evaluate = "never"
    tell(f"training judge {place[0] + 1} of {place[1]}")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*fit was interrupted")
        learner._solve(problem, learner._loss(), weight, None, None, seed)
    if learner.result_.status == "interrupted":
        raise KeyboardInterrupt


@contextlib.contextmanager
def watched(watcher: Callable[[str], Any]) -> Iterator[None]:
    """Tell `watcher` in words how far judging is, as long as this lasts: it may take ten trainings."""
    token = WATCHER.set(watcher)
    try:
        yield
    finally:
        WATCHER.reset(token)


def tell(words: str) -> None:
    """To whoever is watching."""
    if (watcher := WATCHER.get()) is not None:
        watcher(words)


def judge_like(model: Any) -> Any:
    """Who judges in folds: one with the model's parameters, but the loss of a CRF where its own gives no probabilities.

    A margin loss stops pushing a label down once its margin is kept: the unlikely and the impossible look alike.
    """
    learner = unfitted(model)
    if model._loss().is_smooth or not model.judged_by_sums:
        return learner
    fresh = type(model)()
    learner.loss = "crf"
    for name in ("C", "solver", "max_epochs", "average"):  # were chosen for another loss
        setattr(learner, name, getattr(fresh, name))
    return learner


def judgement_of(
    problem: Any, learnt: list[tuple[Any, np.ndarray]], seed: int, n_jobs: int | None, conclude: Conclude
) -> tuple[Judgement, list[Any]]:
    """What fitted models make of the examples numbered beside each, and these models, their temperature being that of the fit."""
    from partwise.solvers.noise import Judge

    n, found = kernels.n_examples(problem), []
    for learner, which in learnt:
        mine = problem if len(learnt) == 1 else kernels.take(problem, which)
        if learner.temperature_ is None and n:
            learner._calibrate(mine)
        found.append(Judge(mine, which, learner.weights_, 1.0 / (learner.temperature_ or 1.0)))
    made = conclude(problem, found, seed, n_jobs)
    for learner, _ in learnt:
        learner.temperature_ = (learner.temperature_ or 1.0) / made.noise.sharpness
    return made, [learner for learner, _ in learnt]


def fitted_like(model: Any, learner: Any, **learnt: Any) -> Any:
    """A model that knows what `model` knows and what else was learnt, with the weights of `learner`."""
    made = copy.copy(model)
    vars(made).update(learnt, weights_=learner.weights_, temperature_=learner.temperature_)
    return made


def unfitted(model: Any) -> Any:
    """Another one with the same parameters, that says nothing."""
    other = type(model)(**model.parameters())
    other.verbose, other.callbacks = 0, None
    return other


# ---------------------------------------------------------------------------------------------------------------------
# Rankings and records
# ---------------------------------------------------------------------------------------------------------------------


def probability(log_odds: Any) -> Any:
    """p of log p / (1 - p)."""
    return 0.5 * (1.0 + np.tanh(0.5 * np.asarray(log_odds)))


def head(log_odds: np.ndarray, precision: float | None, top: int | None) -> np.ndarray:
    """Numbers of the suspects among those with these log-odds, worst first.

    Those that are more probably wrong than not; or, with `precision`, as many as can be taken for the mean of their probabilities
    to be at least that: so many of them are wrong, as far as the model knows.
    """
    if precision is not None and not (isinstance(precision, Real) and not isinstance(precision, bool) and 0 < precision <= 1):
        raise ValueError(f"The 'precision' parameter must be a float in the range (0, 1] or None. Got {precision!r} instead.")
    if top is not None and not (isinstance(top, Integral) and not isinstance(top, bool) and top >= 0):
        raise ValueError(f"The 'top' parameter must be an int in the range [0, inf) or None. Got {top!r} instead.")
    order = np.argsort(-log_odds, kind="stable")
    order = order[log_odds[order] > -np.inf]
    if precision is None:
        n = int(np.count_nonzero(log_odds > 0.0))
    else:
        means = np.cumsum(probability(log_odds[order])) / np.arange(1, len(order) + 1)
        n = int(np.count_nonzero(means >= precision))  # they fall
    return order[:n][:top]


@dataclass(frozen=True)
class Judged:
    """A judgement, and how to say what is given and what is believed."""

    found: Judgement
    example: Callable[[int], tuple[Any, Any]]  #: what is given and what is believed of example i
    part: Callable[[int], tuple[Any, Any]] | None = None  #: of position t of all outputs, end to end; None: of classes

    def ranked(self, precision: float | None = None, top: int | None = None) -> list[int]:
        """Numbers of the suspects, worst first (see `head`)."""
        return head(self.found.examples, precision, top).tolist()

    def ranked_parts(self, precision: float | None = None, top: int | None = None) -> list[int]:
        """Likewise of positions, those where something else is believed."""
        log_odds = np.where(self.found.evidence.disputed, self.found.parts, -np.inf)
        return head(log_odds, precision, top).tolist()

    def doubted(self, i: int) -> list[int]:
        """The positions of example i where something else is believed, counted over all outputs, most probably wrong first."""
        first, last = self.found.evidence.starts[i : i + 2].tolist()
        where = first + np.flatnonzero(self.found.evidence.disputed[first:last])
        return where[np.argsort(-self.found.parts[where], kind="stable")].tolist()

    def wrong(self, i: int) -> float:
        """The probability that there is a mistake in example i."""
        return float(probability(self.found.examples[i]))

    def wrong_part(self, t: int) -> float:
        """The probability that position t is wrong."""
        return float(probability(self.found.parts[t]))

    def suspect(self, i: int) -> Suspect:
        """The record of example i."""
        parts = None
        if self.part is not None:
            first = int(self.found.evidence.starts[i])
            parts = tuple(SuspectPart(t - first, *self.part(t), self.wrong_part(t)) for t in self.doubted(i))
        return Suspect(i, *self.example(i), self.wrong(i), parts)


class FindsSuspects:
    """`suspects` and `suspicion` of estimators that have a method ``judge(X, y, *, folds, judges=None)``: `Judged`."""

    judged_by_sums: ClassVar[bool] = True  #: whether `judge` is asked, which needs sums over outputs

    def suspects(self, X, y=None, *, folds="auto", precision=None, top=None, **form) -> list[Suspect]:
        """Examples that are probably wrong, worst first (see `partwise.tasks.common.suspects`).

        Parameters
        ----------
        X, y
            As in `fit`; y is what is to be judged. What is unknown, None, is never in doubt, and of a set all are right.
        folds : int, "auto" or None
            Judge every example by a model that has not seen it: train on all but one of so many parts, with the parameters (and
            the features, if fitted) of this estimator, which then need not be fitted; where its loss gives no probabilities, with
            that of a CRF. None: judge by this model. "auto": 5, but None for a fitted model whose loss is a ramp; not of rankers.
        precision : float, optional
            List as many as can be listed so that this share of them is wrong, as far as the model can know. By default those are
            listed that are more probably wrong than not.
        top : int, optional
            At most so many.
        **form
            What else `fit` takes to say what X is: ``lengths``, say.

        Returns
        -------
        list of Suspect
            Each with the fields ``example`` (its number in X), ``given``, ``believed``, ``probability`` (that it has a mistake),
            and ``parts``, where the two differ: ``part``, ``given``, ``believed``, ``probability``; None for classes.
        """
        found = self.judge(X, y, folds=folds, **form)  # type: ignore[attr-defined]
        return [found.suspect(i) for i in found.ranked(precision, top)]

    def suspicion(self, X, y=None, *, folds="auto", parts=False, **form) -> np.ndarray:
        """The probability that there is a mistake in an example, of all examples, (examples,); 0 where nothing is given.

        With ``parts=True`` that of being wrong of the single positions of their outputs instead, end to end: tokens, heads.
        """
        found = self.judge(X, y, folds=folds, **form).found  # type: ignore[attr-defined]
        return probability(found.parts if parts else found.examples)
