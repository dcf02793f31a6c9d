"""Who takes part: ourselves through the command line, and other tools through the programs in `benchmarks.peers`.

A contender turns a column file into a model file, and a model and a column file into a labelled file; each is a process of its
own.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.datasets import Dataset
from benchmarks.processes import python

# Our settings, by what they are for: chosen on held-out tenths of the training data, never by what does well on test data.
SETTINGS_CHOSEN_BY = "python -m benchmarks.choose_settings conll2000"
MORE_TEMPLATES = ("w[0]|pos[0]", "w[-1]|pos[0]", "pos[0]|w[1]", "w[-1]|w[0]|w[1]")
SETTINGS: dict[str, tuple[str, ...]] = {
    "fast": ("--templates", "phrases", "--min-count", "2", "--solver", "dca", "-C", "0.05", "--epochs", "6"),
    "accurate": (
        *("--templates", "phrases", "--solver", "dca", "-C", "0.01", "--epochs", "12"),
        *(word for template in MORE_TEMPLATES for word in ("--add-template", template)),
    ),
}


@dataclass(frozen=True)
class Contender:
    """A tool with its settings.

    Attributes
    ----------
    name : str
    package : str
        What must be installed (the distribution's name), and `module`, what it is imported as.
    settings : str
        In words, for the tables.
    train : callable
        (data set, training file, model) to the command that makes the model.
    tag : callable
        (data set, model, file, out) to the command that labels the file.
    ours : bool
        Whether it is us: compiled code is then warmed up by one run first, which is reported on its own.
    quick : bool
        Whether it takes part in the short version.
    slow : bool
        One round only: it takes minutes, or its memory alone is asked for.
    flattered : bool
        Whether its settings are those that did best on the test data.
    """

    name: str
    package: str
    module: str
    settings: str
    train: Callable[[Dataset, Path, Path], list[str]]
    tag: Callable[[Dataset, Path, Path, Path], list[str]]
    ours: bool = False
    quick: bool = False
    slow: bool = False
    flattered: bool = False

    @property
    def missing(self) -> str:
        """Why it cannot take part here; empty if it can."""
        return "" if importlib.util.find_spec(self.module) else f"{self.package} is not installed (pip install {self.package})"

    @property
    def version(self) -> str:
        """Of the package."""
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return "checkout"


def partwise(name: str, *settings: str) -> Contender:
    """Ourselves, through the command line."""
    options = ("--seed", "0", "--json", *settings)
    return Contender(
        f"partwise {name}",
        "partwise",
        "partwise",
        " ".join(settings),
        lambda data, file, model: python("partwise", "train", "tag", file, "-o", model, "--templates", data.features, *options),
        lambda data, model, file, out: python("partwise", "predict", model, file, "-o", out),
        ours=True,
        quick=True,
    )


def peer(name: str, package: str, module: str, program: str, settings: Mapping[str, object], stream=False, **more) -> Contender:
    """Another tool, through its program in `benchmarks.peers`; `settings` are the tool's own parameters."""
    given = [f"{key}={value}" for key, value in settings.items()]
    options = [word for pair in given for word in ("--set", pair)] + ["--stream"] * stream
    program = f"benchmarks.peers.{program}"
    return Contender(
        name,
        package,
        module,
        " ".join(given + ["streamed"] * stream),
        lambda data, file, model: python(program, "train", file, model, "--features", data.features, *options),
        lambda data, model, file, out: python(program, "tag", model, file, out, "--features", data.features),
        **more,
    )


def crfsuite(name: str, settings: Mapping[str, object], **more) -> Contender:
    """python-crfsuite."""
    return peer(f"crfsuite {name}", "python-crfsuite", "pycrfsuite", "crfsuite", settings, **more)


def sklearn_crfsuite(name: str, settings: Mapping[str, object], **more) -> Contender:
    """sklearn-crfsuite."""
    return peer(f"sklearn-crfsuite {name}", "sklearn-crfsuite", "sklearn_crfsuite", "sklearn_crfsuite_", settings, **more)


def vowpal_wabbit(passes: int, **more) -> Contender:
    """Vowpal Wabbit, so many passes over the data."""
    return peer(f"vowpal wabbit, {passes}", "vowpalwabbit", "vowpalwabbit", "vowpal_wabbit", {"passes": passes}, **more)


LBFGS = {"algorithm": "lbfgs"}
PA_15 = {"algorithm": "pa", "max_iterations": 15}
AP_10 = {"algorithm": "ap", "max_iterations": 10}
L2SGD_20 = {"algorithm": "l2sgd", "max_iterations": 20}
DENSE = {"feature.possible_states": 1, "feature.possible_transitions": 1}  # the model we have: a weight for every pair

FAST, ACCURATE = (partwise(name, *settings) for name, settings in SETTINGS.items())
DEFAULTS = Contender(
    "partwise defaults",
    "partwise",
    "partwise",
    "none",
    lambda data, file, model: python("partwise", "train", "tag", file, "-o", model, "--json"),
    FAST.tag,
    ours=True,
    quick=True,
)
PA = crfsuite("pa", PA_15, quick=True, flattered=True)
PA_STREAMED = crfsuite("pa streamed", PA_15, stream=True, quick=True, slow=True, flattered=True)
L2SGD = crfsuite("l2sgd", L2SGD_20, quick=True, flattered=True)
LBFGS_DENSE = crfsuite("lbfgs dense", {**LBFGS, "c2": 0.5, **DENSE}, slow=True, flattered=True)
CHUNKERS = (
    DEFAULTS,
    FAST,
    ACCURATE,
    PA,
    PA_STREAMED,
    crfsuite("ap", AP_10, flattered=True),
    L2SGD,
    crfsuite("pa defaults", {"algorithm": "pa"}, slow=True),
    crfsuite("l2sgd defaults", {"algorithm": "l2sgd"}, slow=True),
    crfsuite("lbfgs defaults", LBFGS, slow=True),
    crfsuite("lbfgs c2=0.5", {**LBFGS, "c2": 0.5}, slow=True, flattered=True),
    LBFGS_DENSE,
    sklearn_crfsuite("pa", PA_15, flattered=True),
    peer("chaine pa", "chaine", "chaine", "chaine_", PA_15, flattered=True),
    vowpal_wabbit(1),
    vowpal_wabbit(3, slow=True),
)
BROWN_TAGGERS = (
    partwise("words", "--min-count", "3", "--solver", "dca", "-C", "0.02", "--epochs", "8"),
    # three minutes an iteration: more of them would take the better part of an hour
    crfsuite("pa streamed", {"algorithm": "pa", "max_iterations": 2}, stream=True, slow=True),
    peer("nltk perceptron", "nltk", "nltk", "nltk_perceptron", {"iterations": 5}, slow=True),
)
