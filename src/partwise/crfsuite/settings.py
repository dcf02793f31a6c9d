r"""From the parameters of CRFsuite to those of `SequenceLabeler`.

=========  ==========================================================  =====================================================
algorithm  what CRFsuite does                                          what is done here
=========  ==========================================================  =====================================================
lbfgs      min c1 \|\|w\|\|_1 + c2 \|\|w\|\|^2 - log-likelihood            the same problem: loss "crf", C = 1 / (c1 + 2 c2),
                                                                       l1_ratio = c1 C; solver "lbfgs", or with c1 > 0 "owlqn",
                                                                       as there, with the same two rules to stop by (with
                                                                       c1 > 0: the second)
l2sgd      the same with c1 = 0, by stochastic gradient descent        the same problem by the solver "sgd", which averages
                                                                       its iterates and finds its learning rate by itself
ap         averaged perceptron                                         the same: loss and solver "perceptron"
pa         passive-aggressive: take the best labelling y; if it is     loss "hinge", solver "mira", C = c: the same step, but y
           wrong in d > 0 labels, move w by tau dF with                is the labelling that violates its margin most, and
           tau = min(c, (s(y) - s(t) + sqrt(d)) / \|\|dF\|\|^2)            margins are d, not sqrt(d)
arow       adaptive regularisation of weights                          the same: loss "hinge", solver "arow" with
                                                                       update="prediction", C = 1 / gamma
=========  ==========================================================  =====================================================

All have the model of CRFsuite, which has no weights of their own for the first and the last label. Here every attribute has a
weight for every label and every pair of labels has one, as with all_possible_states and all_possible_transitions there.

What cannot be had as asked for is refused where there is nothing near it, and warned of otherwise. Values are left out of the
warnings, so that Python can tell repeated ones.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

from partwise import SequenceLabeler
from partwise.crfsuite.training_log import Rule, TrainingLog
from partwise.solvers.arow import AROW
from partwise.solvers.lbfgs import LBFGS
from partwise.solvers.owlqn import OWLQN
from partwise.tasks.common.checks import is_count, is_real

UNLIMITED = 2**31 - 1
NO_SLACK = 1e10  # a C that no step of PA reaches


class Algorithm(NamedTuple):
    """What an algorithm of CRFsuite takes: the parameters of its own, with their defaults."""

    loss: str
    solver: str
    defaults: dict[str, Any]


CALIBRATION = ("calibration_eta", "calibration_rate", "calibration_samples", "calibration_candidates", "calibration_max_trials")
COMMON = {"min_freq": 0.0, "all_possible_states": None, "all_possible_transitions": None}
ALGORITHMS = {
    "lbfgs": Algorithm(
        "crf",
        "lbfgs",
        {
            "c1": 0.0,
            "c2": 1.0,
            "max_iterations": UNLIMITED,
            "num_memories": 6,
            "epsilon": 1e-5,
            "period": 10,
            "delta": 1e-5,
            "linesearch": "MoreThuente",
            "max_linesearch": 20,
        },
    ),
    "l2sgd": Algorithm(
        "crf", "sgd", {"c2": 1.0, "max_iterations": 1000, "period": 10, "delta": 1e-6, **dict.fromkeys(CALIBRATION)}
    ),
    "ap": Algorithm("perceptron", "perceptron", {"max_iterations": 100, "epsilon": 0.0}),
    "pa": Algorithm(
        "hinge",
        "mira",
        {"pa_type": 1, "c": 1.0, "error_sensitive": True, "averaging": True, "max_iterations": 100, "epsilon": 0.0},
    ),
    "arow": Algorithm("hinge", "arow", {"variance": 1.0, "gamma": 1.0, "max_iterations": 100, "epsilon": 0.0}),
}
ALIASES = {"averaged-perceptron": "ap", "passive-aggressive": "pa"}

#: what CRFsuite's parameters may be; bools may be written 0 and 1, as there
CHECKS: dict[str, Any] = {
    "min_freq": (is_real(0.0, closed=True), "a float in the range [0, inf)"),
    "c1": (is_real(0.0, closed=True), "a float in the range [0, inf)"),
    "c2": (is_real(0.0, closed=True), "a float in the range [0, inf)"),
    "max_iterations": (is_count(1), "an int in the range [1, inf)"),
    "num_memories": (is_count(1), "an int in the range [1, inf)"),
    "max_linesearch": (is_count(1), "an int in the range [1, inf)"),
    "epsilon": (is_real(0.0, closed=True), "a float in the range [0, inf)"),
    "period": (is_count(0), "an int in the range [0, inf)"),
    "delta": (is_real(0.0, closed=True), "a float in the range [0, inf)"),
    "linesearch": (("MoreThuente", "Backtracking", "StrongBacktracking").__contains__, "a line search of CRFsuite"),
    "pa_type": ((0, 1).__contains__, "0 (no slack) or 1 (PA-I); PA-II is not here, and 1 is nearest to it"),
    "c": (is_real(0.0), "a float in the range (0, inf)"),
    "variance": (is_real(0.0), "a float in the range (0, inf)"),
    "gamma": (is_real(0.0), "a float in the range (0, inf)"),
}

ALWAYS_DENSE = (
    "CRF: {}=False leaves out weights of combinations that the training data never show. Here they are always in the model."
)
NO_EPSILON = (
    "CRF: algorithms 'ap', 'pa' and 'arow' stop here after an epoch without mistakes, or after max_iterations; epsilon is not "
    "looked at."
)
NO_ZERO_ONE = "CRF: error_sensitive=False asks for margins of one, however many labels are wrong. Here a margin is their number."
NO_TRAINER = "CRF: trainer_cls is a class of python-crfsuite, which does not train here. Read training_log_, or set verbose=True."


def read_settings(crf: Any) -> tuple[Algorithm, dict[str, Any]]:
    """The algorithm, and what the parameters of it are, after checking them all; None is what CRFsuite would take."""
    name = "lbfgs" if crf.algorithm is None else crf.algorithm
    name = ALIASES.get(name, name)
    if name not in ALGORITHMS:
        choices = ", ".join(map(repr, ALGORITHMS))
        raise ValueError(f"The 'algorithm' parameter of CRF must be one of {choices}. Got {crf.algorithm!r} instead.")
    algorithm = ALGORITHMS[name]
    known = COMMON | algorithm.defaults
    everywhere = COMMON | {key: value for other in ALGORITHMS.values() for key, value in other.defaults.items()}
    settings = dict(known)
    for key in everywhere:
        value = getattr(crf, key)
        if value is None:
            continue
        if key not in known:
            raise ValueError(f"The {key!r} parameter of CRF is not one of algorithm {name!r}. Leave it out. Got {value!r}.")
        fine, words = CHECKS.get(key, (lambda _: True, ""))
        if not fine(value):
            raise ValueError(f"The {key!r} parameter of CRF must be {words}. Got {value!r} instead.")
        settings[key] = value
    if "c2" in settings and not settings["c2"] + settings.get("c1", 0.0) > 0.0:
        raise ValueError(
            "The 'c2' parameter of CRF must be a float in the range (0, inf), unless c1 > 0: without both the best weights may "
            f"be infinite, so take a small one, 1e-6. Got {settings['c2']!r} instead."
        )
    return algorithm, settings


def tell_differences(crf: Any, settings: dict[str, Any]) -> None:
    """Warn of what was asked for and will be done otherwise."""
    dense = [
        ALWAYS_DENSE.format(name)
        for name in ("all_possible_states", "all_possible_transitions")
        if settings[name] is not None and not settings[name]
    ]
    wanted = (
        (settings.get("epsilon", 0.0) > 0 and "delta" not in settings, NO_EPSILON),
        (not settings.get("error_sensitive", True), NO_ZERO_ONE),
        (crf.trainer_cls is not None, NO_TRAINER),
    )
    for words in [*dense, *(words for is_wanted, words in wanted if is_wanted)]:
        warnings.warn(words, UserWarning, stacklevel=5)


def make_labeler(crf: Any) -> tuple[SequenceLabeler, TrainingLog]:
    """A `SequenceLabeler` that learns what `crf` describes, and the log it writes."""
    algorithm, settings = read_settings(crf)
    tell_differences(crf, settings)
    c1 = settings.get("c1", 0.0)
    C = 1.0 / (c1 + 2.0 * settings["c2"]) if "c2" in settings else settings.get("c", 1.0)
    solver: Any = algorithm.solver
    rule = None
    if "delta" in settings:
        rule = Rule(settings.get("epsilon", 0.0), settings["delta"], settings["period"])
    if solver == "lbfgs":
        kind = OWLQN if c1 > 0.0 else LBFGS
        solver = kind(memory=int(settings["num_memories"]), max_evaluations=int(settings["max_linesearch"]))
    elif settings.get("pa_type") == 0:
        C = NO_SLACK
    elif solver == "arow":
        C, solver = 1.0 / settings["gamma"], AROW(variance=float(settings["variance"]), update="prediction")
    log = TrainingLog(float(C), rule, l1_ratio=c1 * C)
    labeler = SequenceLabeler(
        loss=algorithm.loss,
        C=float(C),
        solver=solver,
        l1_ratio=min(c1 * C, 1.0),
        min_count=max(1, math.ceil(settings["min_freq"])),
        use_start=False,
        use_stop=False,
        max_epochs=int(settings["max_iterations"]),
        tol=0.0,  # the log has the rules to stop by
        average=bool(settings["averaging"]) if "averaging" in settings else None,
        validation_metric="error",
        patience=UNLIMITED,
        n_jobs=crf.n_jobs,
        pair_attributes=crf.pair_attributes,
        label_pairs=crf.label_pairs,
        dtype="float64",
        callbacks=[log],
        verbose=crf.verbose,
    )
    return labeler, log
