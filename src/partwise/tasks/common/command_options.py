"""Options of the command line, said once: as fields of dataclasses, without the library that parses them.

What every ``train`` has is `Learning` and `Run`; a task adds a dataclass of its own. A field that is called like a parameter of
the estimator is that parameter, and has its default where it is not given; others say how to read files. Of the verbs that work
with a model, ``predict``, ``evaluate``, ``inspect``, ``suspects`` and ``report`` have the options of all tasks together, and
refuse those that the task of the model does not have.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

FILES, FEATURES, LABELS, LEARNING, OUTPUT, WEIGHTS = "Files", "Features", "Labels", "Learning", "Output", "Weights"


class Refusal(Exception):
    """Something the user can put right; its text is the whole message."""


def option(
    panel: str | None, text: str, *names: str, default: Any = None, read: Callable[[Any], Any] | None = None, **limits: Any
) -> Any:
    """A field of a dataclass of options: its panel in ``--help``, what it means, its names if not its own, its limits.

    `read` makes a value of what was typed; it is not called for what was not given.
    """
    made = {"panel": panel, "help": text, "names": names, "read": read, "limits": limits}
    if isinstance(default, list):
        return field(default_factory=list, metadata=made)
    return field(default=default, metadata=made)


class Training(NamedTuple):
    """What a task has made of the files it was given: all that is left is to fit."""

    estimator: Any
    fit: Callable[..., Any]  #: (checkpoint=path or None, weight=None): weights of examples, 0 leaves one out
    describe: str  #: a line for people: how much there is to learn from
    about: Callable[[], dict[str, Any]]  #: after fitting: examples, labels, features, ... for machines
    score: Callable[[], dict[str, Any]] | None = None  #: of the finished model on held-out data
    metric: str = "accuracy"  #: what early stopping judges by
    refusals: bool = True  #: whether an output that a ramp loss gives up on may be a wrong label
    n_examples: int = 0


@dataclass
class Learning:
    """How to learn: the options that every ``train`` has. None: as the estimator would by itself."""

    loss: str | None = option(
        LEARNING,
        "hinge, crf, softmax_margin, perceptron, squared_hinge, slack, summed, squared_summed; ramp, ramp_do, ramp_2, soft_ramp "
        "where labels may be wrong; with parameters: 'family(beta=1, gamma=3)'. crf and softmax_margin give probabilities.",
    )
    C: float | None = option(LEARNING, "Weight of the losses against the regulariser. (default: by the loss)", "-C")
    solver: str | None = option(
        LEARNING,
        "dca, sdm, lbfgs, eg, sgd, pegasos, bcfw, mira, kbest_mira, perceptron, nslack, oneslack, kelley, bmrm, bmrm_ls, ocas, "
        "proximal, nrbm, polyak, sdcd, lse_cutting_plane, owlqn, admm; with parameters: \"nslack(variant='b')\". "
        "(default: by the loss)",
    )
    l1_ratio: float | None = option(
        LEARNING, "Share of the L1 norm in the regulariser: above 0 most weights become zero, the file smaller.", min=0.0, max=1.0
    )
    max_epochs: int | None = option(LEARNING, "At most so many. (default: by the solver)", "--epochs", min=1)
    tol: float | None = option(LEARNING, "Stop at this relative duality gap, where the solver has a certificate.", min=0.0)
    patience: int | None = option(LEARNING, "Stop after so many epochs without improvement on --dev.", min=1)
    average: bool | None = option(LEARNING, "Return the average of the weights on the way, or the last.")
    random_state: int | None = option(LEARNING, "Of the order of the examples.", "--seed", min=0)
    dtype: str | None = option(LEARNING, "Of the weights: float64 or float32.")
    n_jobs: int | None = option(
        None, "Threads for passes over all data; -1: all cores. Never changes the result.", "--jobs", "-j"
    )

    def parameters(self) -> dict[str, Any]:
        """Those that were given, for the estimator."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass
class Run:
    """Where a training comes from and what it leaves behind: options of every ``train`` too."""

    start_from: Path | None = option(LEARNING, "A model of the same kind to go on from, with new data.")
    resume: bool = option(OUTPUT, "Go on with a run that was interrupted, from MODEL.checkpoint.", "--resume", default=False)
    checkpoint_every: float = option(OUTPUT, "Seconds between checkpoints; 0: none.", min=0.0, default=10.0)
    cluster: str | None = option(
        LEARNING, "Train a packed corpus on a dask cluster: tcp://scheduler:8786, or local[4]: four processes on this machine."
    )
    mixing_epochs: int | None = option(
        LEARNING, "With --cluster, for solvers that visit one example at a time: epochs between two mixings.", min=1
    )
    mixing_parts: int | None = option(
        LEARNING,
        "With --cluster, for these: parts that are mixed. The model depends on it. (default: one a worker)",
        min=1,
    )
    history: Path | None = option(OUTPUT, "Write the numbers of every epoch, as JSON.")
    curve: Path | None = option(OUTPUT, "Draw the learning curve, as PNG (or PDF, SVG).")
    certify: bool = option(
        OUTPUT, "Compute the duality gap of the model also where that takes a pass of its own.", "--certify", default=False
    )
    as_json: bool = option(None, "Print one JSON object on stdout, and what is for people on stderr.", "--json", default=False)
    quiet: bool = option(None, "Print nothing but errors and what was asked for.", "--quiet", "-q", default=False)


@dataclass
class Grouped:
    """How rows of a parquet file belong together, of tasks whose rows do: of all verbs that read one."""

    group_column: str | None = option(
        FILES, "Of a parquet file: the column that says which rows are one sentence, or query. (default: by its title)"
    )


@dataclass
class Options:
    """Of ``train``, that only one task has; by default none but how to read its files."""

    encoding: str = option(FILES, "Of the text.", default="utf-8")


@dataclass
class Predict:
    """Of ``predict``."""

    form: str | None = option(OUTPUT, "How to write answers: see the page of the task. (default: the text and more)", "--format")
    encoding: str = option(FILES, "Of the text.", default="utf-8")


@dataclass
class Evaluate:
    """Of ``evaluate``."""

    encoding: str = option(FILES, "Of the text.", default="utf-8")


@dataclass
class Inspect:
    """Of ``inspect``."""

    top: int | None = option(WEIGHTS, "The n strongest features, of each label where there are labels.", min=1)
    picture: Path | None = option(WEIGHTS, "Draw what the model has learnt, as PNG (or PDF, SVG).")


@dataclass
class Suspects:
    """Of ``suspects``."""

    folds: int | None = option(
        LEARNING,
        "Judge each of so many parts of the file by a model trained anew on the others, which has not learnt its mistakes; "
        "0: by the model itself. (default: 5, but 0 for a model that was trained with a ramp loss, which refuses wrong labels)",
        min=0,
    )
    precision: float | None = option(
        OUTPUT,
        "List as many as can be so that this share of them is wrong, as far as the probabilities tell. (default: those that are "
        "more probably wrong than right)",
    )
    parts: bool = option(
        OUTPUT,
        "Rank single parts instead of whole examples: tokens, words, brackets, pixels, bases, documents; not of tables.",
        "--parts",
        default=False,
    )
    random_state: int = option(LEARNING, "Of the parts and of the order of the examples.", "--seed", min=0, default=0)
    top: int | None = option(OUTPUT, "At most so many. (default: all; 20 in the table)", min=1)
    html: Path | None = option(
        OUTPUT, "Write a page to look at them in a browser and decide (see repair); needs partwise[html].", "--html"
    )
    truth: str | None = option(FILES, "The same file with correct labels: how many of the wrong ones are found?")
    encoding: str = option(FILES, "Of the text.", default="utf-8")
    n_jobs: int | None = option(
        None, "Threads for passes over all data; -1: all cores. Never changes the result.", "--jobs", "-j"
    )

    def folds_to_judge(self) -> int | str | None:
        """As estimators want it."""
        return "auto" if self.folds is None else self.folds or None


@dataclass
class ReportOptions:
    """Of ``report``."""

    resamples: int = option(None, "Draws for intervals; 0: none.", min=0, default=1000)
    level: float = option(None, "Of the intervals.", min=0.01, max=0.9999, default=0.95)
    seed: int = option(None, "Of the draws.", min=0, default=0)
    worst: int = option(OUTPUT, "Wrong answers that are shown, or drawn, at most.", min=0, default=12)
    encoding: str = option(FILES, "Of the text.", default="utf-8")


def parameters_of(options: Any, estimator: Any) -> dict[str, Any]:
    """Those fields of `options` that are parameters of the estimator, and were given."""
    names = set(estimator.parameter_names())
    return {
        field.name: value
        for field in dataclasses.fields(options)
        if field.name in names and ((value := getattr(options, field.name)) is not None)
    }


def percent(value: float) -> str:
    """For tables."""
    return f"{100 * value:.2f} %" if value == value else "-"
