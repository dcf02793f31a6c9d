"""What "auto" and None mean: the one rule by which solver, C, epochs and averaging are chosen.

The rule looks at the *kind* of the loss, at the penalty, and at what a task declares (`Defaults`); it knows no structure. What
users say is never changed: the rule fills in what they leave open. The figures come from a study on held-out parts of training
data, with right labels and with a fifth of the examples wrong: docs/defaults.md has it, and how to repeat it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from partwise.losses.records import Loss, Rescaled, SquaredHinge, Summed, get_loss

MARGIN, SQUARED, LOG, RAMP, SOFT_RAMP, RESCALED, RESCALED_RAMP, SUMMED, NO_MARGIN = (
    "margin",  # hinge: L(inf, gamma)
    "squared",  # squared_hinge
    "log",  # crf, softmax_margin: L(beta, gamma) with finite beta
    "ramp",  # ramp, ramp_do
    "soft ramp",
    "rescaled",  # slack
    "rescaled ramp",
    "summed",  # summed, squared_summed
    "no margin",  # perceptron, ramp_2: w = 0 is their minimum, and only what stops early makes sense
)
KINDS = (MARGIN, SQUARED, LOG, RAMP, SOFT_RAMP, RESCALED, RESCALED_RAMP, SUMMED, NO_MARGIN)

#: Pegasos follows the objective itself and averages its iterates: as quick as DCA, as good where labels are right, and it keeps
#: its head where they are wrong, which DCA and exact solvers at C = 1 learn by heart. Targets of the ramp are chosen by judges
#: that have not seen the example: the rounds of CCCP stay where the hinge, misled, has begun. With losses that sum over outputs
#: DCA is better for structures, labels right or wrong, and an optimum by L-BFGS takes five to ten times as long and is no better.
SOLVERS: Mapping[str, str] = MappingProxyType(
    {
        MARGIN: "pegasos",
        SQUARED: "pegasos",
        LOG: "dca",
        RAMP: "out_of_fold",
        SOFT_RAMP: "pegasos",
        RESCALED: "pegasos",
        RESCALED_RAMP: "pegasos",
        SUMMED: "sdcd",  # one of two that can search the outputs of structures
        NO_MARGIN: "perceptron",
    }
)

#: C where features are present or not, some tens of them at a place (templates): for the hinge 0.03 loses two points with right
#: labels, in the mean, and 0.3 two points with wrong ones. What sums over outputs wants more, squares of costs want less.
WEIGHTS: Mapping[str, float] = MappingProxyType({kind: {LOG: 1.0, SQUARED: 0.03}.get(kind, 0.1) for kind in KINDS})

#: C times the spread of the features, where they are numbers of any scale: their best C differs by a factor of 10,000 from data
#: set to data set, and that is nearly all due to their spread
UNSCALED: Mapping[str, float] = MappingProxyType({kind: {LOG: 3.0, RAMP: 0.3, SQUARED: 0.3}.get(kind, 1.0) for kind in KINDS})

SPARSE_C = 1.0  # with an L1 penalty: where C is small, all weights are zero

#: of solvers that are good long before the optimum; others go on until they are near enough to it
EPOCHS: Mapping[str, int] = MappingProxyType(
    {"dca": 10, "mira": 10, "kbest_mira": 10, "perceptron": 10, "pegasos": 10, "sgd": 10, "out_of_fold": 10}
)

#: an average of steps needs some: where examples are few, these solvers get more epochs, though not more than so many
STEPS, MOST_EPOCHS = 1000, 40

#: times as many where targets are chosen anew, round by round, and each round begins a new average
ROUNDS: Mapping[str, int] = MappingProxyType({RAMP: 2, RESCALED_RAMP: 2})

JUDGED = 3  # times as many where judges choose targets: two rounds of these, and the last problem

#: solvers whose C bounds a *step*, not what an example adds in all: that may be C in each of E epochs, so a step gets C / E
BY_STEP = ("dca", "mira", "kbest_mira")


class Choice(NamedTuple):
    """What to solve with."""

    solver: str
    C: float
    epochs: int | None  #: None: as many as are the solver's habit
    average: bool | None  #: None: as is the solver's habit


@dataclass(frozen=True)
class Defaults:
    """What a task declares where it differs from the rule; keys are kinds of losses (`KINDS`), for `epochs` names of solvers."""

    C: Mapping[str, float] = field(default_factory=dict)
    solver: Mapping[str, str] = field(default_factory=dict)
    epochs: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("C", "solver"):
            for kind in getattr(self, name):
                if kind not in KINDS:
                    raise ValueError(f"The {name!r} of Defaults is for kinds of losses, {', '.join(KINDS)}. Got {kind!r}.")


def kind_of(loss: str | Loss) -> str:
    """The kind of a loss, one of `KINDS`."""
    loss = get_loss(loss)
    if isinstance(loss, Summed):
        return SUMMED
    if isinstance(loss, SquaredHinge):
        return SQUARED
    if isinstance(loss, Rescaled):
        return RESCALED if loss.is_convex else RESCALED_RAMP
    if not loss.is_smooth and loss.gamma == 0:
        return NO_MARGIN
    if loss.is_convex:
        return LOG if loss.is_smooth else MARGIN
    return RAMP if loss.uses_target else SOFT_RAMP


def choose(
    loss: str | Loss,
    l1_ratio: float = 0.0,
    *,
    task: Defaults | None = None,
    solver: Any = "auto",
    C: float | None = None,
    epochs: int | None = None,
    average: bool | None = None,
    spread: float | None = None,
    examples: int | None = None,
    streamed: bool = False,
    can_judge: bool = True,
) -> Choice:
    """Fill in what the user left open.

    Parameters
    ----------
    loss : str or Loss
    l1_ratio : float in [0, 1]
        Share of the L1 norm in the penalty.
    task : Defaults, optional
        What the task declares.
    solver : str or Solver
        "auto", or the user's: a name, or an object with a name.
    C, epochs, average : optional
        The user's, if they are not None.
    spread : float, optional
        The mean squared distance of the features from their mean, for tasks whose features are the user's own numbers, of any
        scale; None for those whose features are present or not.
    examples : int, optional
        How many there are to learn from, if that is known.
    streamed : bool
        Whether examples come from a stream, which solvers that count them cannot follow.
    can_judge : bool
        Whether the structure has what judges of what is given need (`OutOfFold`).

    Examples
    --------
    >>> choose("hinge")
    Choice(solver='pegasos', C=0.1, epochs=10, average=None)
    >>> choose("hinge", solver="dca")  # whose C is that of a step
    Choice(solver='dca', C=0.01, epochs=10, average=None)
    >>> choose("crf", l1_ratio=1.0).solver, choose("hinge", l1_ratio=0.5).solver
    ('owlqn', 'admm')
    """
    kind, task = kind_of(loss), task or Defaults()
    name = str(getattr(solver, "name", solver))
    if name == "auto":
        name = _solver(kind, get_loss(loss), l1_ratio, task, streamed)
        name = "pegasos" if name == "out_of_fold" and not can_judge else name
    if epochs is None:
        epochs = task.epochs.get(name, EPOCHS.get(name))
        if epochs is not None and name in EPOCHS and examples:
            epochs = max(epochs, min(math.ceil(STEPS / examples), MOST_EPOCHS))
        epochs = None if epochs is None else epochs * (JUDGED if name == "out_of_fold" else ROUNDS.get(kind, 1))
    if C is None:
        kind = MARGIN if name == "out_of_fold" else kind  # what is left when wrong labels are refused is a hinge
        C = SPARSE_C if l1_ratio > 0.0 else task.C.get(kind, WEIGHTS[kind])
        if spread is not None and 0.0 < spread < math.inf and l1_ratio == 0.0:
            C = UNSCALED[kind] / spread
        if name in BY_STEP and epochs is not None:
            C /= epochs
    return Choice(name, C, epochs, average)


def _solver(kind: str, loss: Loss, l1_ratio: float, task: Defaults, streamed: bool) -> str:
    """What "auto" stands for."""
    if l1_ratio > 0.0:
        return "owlqn" if loss.has_gradient else "admm"
    chosen = task.solver.get(kind, SOLVERS[kind])
    if chosen == "out_of_fold" and not getattr(loss, "b", 0.0) > 0.0:  # targets of Do's ramp do not know what labels cost
        chosen = "pegasos"
    if streamed and chosen in ("pegasos", "out_of_fold") and kind != SOFT_RAMP:  # soft ramps have no solver for streams
        return "dca"
    return chosen
