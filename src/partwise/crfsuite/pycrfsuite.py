"""The interface of python-crfsuite: `Trainer`, `Tagger`, `ItemSequence`, for programs that were written for it.

    from partwise.crfsuite import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm="lbfgs", params={"c1": 0.1, "c2": 0.01}, verbose=False)
    trainer.append(xseq, yseq)
    trainer.train("model.crfsuite")
    tagger = pycrfsuite.Tagger()
    tagger.open("model.crfsuite")
    tagger.tag(xseq)

`partwise.crfsuite.CRF` does the work; what differs from CRFsuite is said there and in docs/coming-from.md. Model files are ours,
whatever they are called; `Tagger.open` reads those of CRFsuite, too. A `Tagger` of several threads is one per thread, as there.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from partwise import SequenceLabeler
from partwise.crfsuite.binary_model import is_crfsuite_model, read_crfsuite_model
from partwise.crfsuite.estimator import CRF
from partwise.crfsuite.given import as_labels, as_sequence
from partwise.crfsuite.settings import ALGORITHMS, ALIASES, COMMON

CALIBRATED = ("eta", "rate", "samples", "candidates", "max_trials")
#: what python-crfsuite calls parameters of `CRF`, where the names differ
NAMES = {
    "feature.minfreq": "min_freq",
    "feature.possible_states": "all_possible_states",
    "feature.possible_transitions": "all_possible_transitions",
    "type": "pa_type",
    **{f"calibration.{name}": f"calibration_{name}" for name in CALIBRATED},
}
CRFSUITE_NAMES = {ours: theirs for theirs, ours in NAMES.items()}
GIVEN = {"all_possible_states": False, "all_possible_transitions": False, "calibration_eta": 0.1, "calibration_rate": 2.0}
GIVEN |= {"calibration_samples": 1000, "calibration_candidates": 10, "calibration_max_trials": 20}  # defaults there
CRFSUITE_VERSION = "0.12"


#: what parameters are about, under python-crfsuite's names
HELP = {
    "feature.minfreq": "Attributes that occur less often are left out.",
    "feature.possible_states": "Whether pairs of attribute and label that the data never show have weights; here they always do.",
    "feature.possible_transitions": "Whether pairs of labels that the data never show have weights; here they always do.",
    "c1": "Weight of the L1 penalty, c1 ||w||_1.",
    "c2": "Weight of the L2 penalty, c2 ||w||^2.",
    "c": "The longest step (PA-I).",
    "type": "0: steps of any length; 1: steps of at most c.",
    "error_sensitive": "Whether margins grow with the number of wrong labels; here they always do.",
    "averaging": "Whether the weights are the average over all steps.",
    "variance": "Of every weight, before training.",
    "gamma": "How little a step of AROW trusts the example: larger is smaller steps.",
    "max_iterations": "At most so many iterations, or epochs.",
    "num_memories": "Pairs of steps and differences of gradients that L-BFGS remembers.",
    "epsilon": "Stop when the gradient (online: the share of mistakes) is at most this, relative to the weights.",
    "period": "Over how many iterations the objective must have fallen by delta.",
    "delta": "Stop when the objective has fallen by less than this, relative to it, over `period` iterations.",
    "linesearch": "MoreThuente, Backtracking or StrongBacktracking; here it is always the one of the solver.",
    "max_linesearch": "Points that a line search tries at most.",
    **{f"calibration.{name}": "Of the learning rate; here the solver finds it by itself." for name in CALIBRATED},
}


class CRFSuiteError(Exception):
    """Raised for what python-crfsuite raises it for: a trainer without data, a model that cannot be opened."""


class ClosedError(CRFSuiteError, ValueError, RuntimeError):
    """A tagger without a model or a sequence: a ValueError or a RuntimeError there."""


class ItemSequence(list):
    """A sequence of tokens: dicts of attributes or lists of strings, as `partwise.text.attributes` says."""

    def __init__(self, pyseq: Iterable[Any]):
        super().__init__(pyseq)

    def items(self) -> list[dict[str, float]]:
        """For each token the names of its attributes and their values."""
        from partwise.text.attributes import items

        return items(self)

    def __repr__(self) -> str:
        return f"<ItemSequence ({len(self)})>"


class BaseTrainer:
    """Collects sequences, then trains; silent.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "averaged-perceptron", "pa", "passive-aggressive", "arow"}, optional
    params : dict, optional
        Parameters of the algorithm (`params`, `help`).
    verbose : bool
        Whether `message` is called while training.
    """

    verbose = True
    _data: list[tuple[Any, Any, int]]
    _params: dict[str, Any]

    def __new__(cls, *_: Any, **__: Any) -> BaseTrainer:
        """As there, classes derived from it need not call its ``__init__``."""
        made = super().__new__(cls)
        made._data = []
        made.select("lbfgs")
        return made

    def __init__(self, algorithm: str | None = None, params: Mapping[str, Any] | None = None, verbose: bool = True):
        self.verbose = verbose
        if algorithm is not None:
            self.select(algorithm)
        if params:
            self.set_params(params)

    # -- parameters ---------------------------------------------------------------------------------------------------

    def select(self, algorithm: str, type: str = "crf1d") -> None:
        """Choose the algorithm; its parameters are back at their defaults."""
        name = ALIASES.get(algorithm.lower(), algorithm.lower())
        if name not in ALGORITHMS or type != "crf1d":
            raise ValueError(f"Bad arguments: algorithm={algorithm!r}, type={type!r}. There are {', '.join(ALGORITHMS)}; crf1d.")
        self.algorithm, self._params = name, {}

    def params(self) -> list[str]:
        """Names of the parameters that the algorithm has."""
        return [CRFSUITE_NAMES.get(name, name) for name in (*COMMON, *ALGORITHMS[self.algorithm].defaults)]

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Set several parameters."""
        for name, value in params.items():
            self.set(name, value)

    def get_params(self) -> dict[str, Any]:
        """All parameters and their values."""
        return {name: self.get(name) for name in self.params()}

    def set(self, name: str, value: Any) -> None:
        """Set a parameter; numbers may be given as text."""
        name = CRFSUITE_NAMES.get(name, name)
        if name not in self.params():
            raise ValueError(f"Parameter {name!r} is not one of algorithm {self.algorithm!r}: {', '.join(self.params())}.")
        default = self._default(name)
        if isinstance(value, str) and not isinstance(default, str):
            value = float(value) if isinstance(default, float) else int(value)
        self._params[NAMES.get(name, name)] = bool(value) if isinstance(default, bool) else value

    def get(self, name: str) -> Any:
        """The value of a parameter."""
        name = CRFSUITE_NAMES.get(name, name)
        if name not in self.params():
            raise ValueError(f"Parameter {name!r} is not one of algorithm {self.algorithm!r}: {', '.join(self.params())}.")
        return self._params.get(NAMES.get(name, name), self._default(name))

    def help(self, name: str) -> str:
        """What a parameter is about."""
        self.get(name)
        name = CRFSUITE_NAMES.get(name, name)
        own = f"The parameter {NAMES.get(name, name)!r} of partwise.crfsuite.CRF; {self._default(name)!r} by default."
        return f"{HELP[name]} {own}"

    def _default(self, name: str) -> Any:
        ours = NAMES.get(name, name)
        value = (COMMON | ALGORITHMS[self.algorithm].defaults)[ours]
        return GIVEN.get(ours) if value is None else value

    # -- data ---------------------------------------------------------------------------------------------------------

    def append(self, xseq: Any, yseq: Any, group: int = 0) -> None:
        """Add a sequence and its labels; sequences of the group `holdout` of `train` are only watched."""
        xseq, yseq = as_sequence(xseq), as_labels([yseq])[0]
        if len(xseq) != len(yseq):
            raise ValueError(f"The numbers of items and labels differ: |x| = {len(xseq)}, |y| = {len(yseq)}")
        self._data.append((list(xseq), list(yseq), int(group)))

    def clear(self) -> None:
        """Forget the sequences."""
        self._data = []

    # -- training -----------------------------------------------------------------------------------------------------

    def train(self, model: Any, holdout: int = -1) -> None:
        """Train on the sequences and save the model as a file; with an empty name, train only."""
        if not self._data:
            raise CRFSuiteError("The data set is empty: call append first.")
        held = [one for one in self._data if one[2] == holdout]
        used = [one for one in self._data if one[2] != holdout] if held else self._data
        params = {name: value for name, value in self._params.items() if name not in GIVEN or value != GIVEN[name]}
        crf = CRF(algorithm=self.algorithm, **params)
        X_dev, y_dev = ([x for x, _, _ in held], [y for _, y, _ in held]) if held else (None, None)
        self.on_start_(used)
        with warnings.catch_warnings():
            if not self.verbose:
                warnings.simplefilter("ignore", UserWarning)
            crf.fit_watched([x for x, _, _ in used], [y for _, y, _ in used], X_dev, y_dev, self._watch)
        self.on_end_(crf)
        if model:
            crf.labeler_.save(os.fspath(model))

    def _watch(self, info: dict[str, Any]) -> None:
        """Called after every iteration."""

    def on_start_(self, used: list[Any]) -> None:
        """Called before training."""

    def on_end_(self, crf: CRF) -> None:
        """Called when training has ended."""

    def message(self, message: str) -> None:
        """Called with what there is to say; overwrite it to say it elsewhere."""
        if self.verbose:
            sys.stdout.write(message)
            sys.stdout.flush()


class Iterations:
    """What a `Trainer` remembers of its training: python-crfsuite's ``logparser``, as far as it is about iterations."""

    def __init__(self) -> None:
        self.iterations: list[dict[str, Any]] = []
        self.featgen_num_features: int | None = None
        self.log: list[str] = []

    @property
    def last_iteration(self) -> dict[str, Any] | None:
        """The last one, None before the first."""
        return self.iterations[-1] if self.iterations else None


class Trainer(BaseTrainer):
    """A `BaseTrainer` that tells what happens: overwrite the methods that begin with ``on_`` to hear of it.

    Each gets the log, a text; `on_iteration` also a dict with ``num``, ``loss``, ``feature_norm``, ``active_features``, ``time``,
    and with held-out data the scores on them. ``logparser.iterations`` keeps those dicts.
    """

    logparser: Iterations | None = None

    def on_start_(self, used: list[Any]) -> None:
        self.logparser = Iterations()
        tokens = sum(len(y) for _, y, _ in used)
        features = [f"{name}: {self.get(name)}\n" for name in self.params() if name.startswith("feature.")]
        how = f"Training {self.algorithm}: {len(used)} sequences, {tokens} items\n"
        self._tell(self.on_start, "".join(["Feature generation\n", "type: CRF1d\n", *features, how]))
        self._tell(self.on_prepared, "")

    def _watch(self, info: dict[str, Any]) -> None:
        assert self.logparser is not None
        self.logparser.iterations.append(info)
        shown = "".join(f"{name}: {info[name]}\n" for name in ("loss", "feature_norm", "active_features") if name in info)
        log = f"***** Iteration #{info['num']} *****\n{shown}\n"
        self.logparser.log.append(log)
        self.on_iteration(log, info)

    def on_end_(self, crf: CRF) -> None:
        assert self.logparser is not None and crf.training_log_ is not None
        self.logparser.featgen_num_features = int(crf.labeler_.weights_.size)
        if self.logparser.last_iteration is not None:
            self.logparser.last_iteration.update(crf.training_log_.iterations[-1])  # scores of labels come at the end
        self._tell(self.on_featgen_end, f"Number of features: {self.logparser.featgen_num_features}\n")
        self._tell(self.on_optimization_end, "Training is over.\n")
        self._tell(self.on_end, "")

    def _tell(self, method: Any, log: str) -> None:
        assert self.logparser is not None
        self.logparser.log.append(log)
        method(log)

    def _say(self, log: str) -> None:
        """Line by line, as CRFsuite does."""
        for line in log.splitlines(keepends=True):
            self.message(line)

    def on_start(self, log: str) -> None:
        """Before anything is done."""
        self._say(log)

    def on_featgen_progress(self, log: str, percent: int) -> None:
        """Never called: features are numbered in no time. Here for programs that overwrite it."""

    def on_featgen_end(self, log: str) -> None:
        """When the number of features is known."""
        self._say(log)

    def on_prepared(self, log: str) -> None:
        """When training begins."""

    def on_prepare_error(self, log: str) -> None:
        """Never called: what is wrong with data or parameters is an exception here."""

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """After every iteration."""
        self._say(log)

    def on_optimization_end(self, log: str) -> None:
        """After the last iteration."""
        self._say(log)

    def on_end(self, log: str) -> None:
        """When all is done."""


class TaggerInfo(NamedTuple):
    """What is in a model."""

    header: dict[str, str]
    labels: dict[str, str]
    attributes: dict[str, str]
    transitions: dict[tuple[str, str], float]
    state_features: dict[tuple[str, str], float]


class Tagger:
    """Labels sequences with a model that was trained before, by partwise or by CRFsuite."""

    def __init__(self, labeler: SequenceLabeler | None = None):
        self._labeler, self._sequence = labeler, None

    def open(self, name: Any) -> Any:
        """Read a model file; the tagger is also a context that closes it."""
        if not os.path.exists(name):
            raise OSError(f"There is no file {os.fspath(name)!r}.")
        self._labeler = read_crfsuite_model(name) if is_crfsuite_model(name) else SequenceLabeler.load(name)
        return self

    def open_inmemory(self, value: bytes) -> Any:
        """Read a model of CRFsuite, or one of ours, from bytes."""
        import tempfile

        if bytes(value[:4]) == b"lCRF":
            self._labeler = read_crfsuite_model(value)
            return self
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            with open(path, "wb") as file:
                file.write(value)
            self._labeler = SequenceLabeler.load(path)
            _ = self._labeler.weights_  # the file goes away
        return self

    def close(self) -> None:
        """Forget the model."""
        self._labeler = self._sequence = None

    def __enter__(self) -> Tagger:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _model(self) -> SequenceLabeler:
        if self._labeler is None:
            raise ClosedError("The tagger is closed: call open first.")
        return self._labeler

    def labels(self) -> list[str]:
        """All labels."""
        return self._model().classes_.tolist()

    def set(self, xseq: Any) -> None:
        """The sequence that `tag`, `probability` and `marginal` are about."""
        self._model()
        self._sequence = list(as_sequence(xseq))  # type: ignore[assignment]

    def tag(self, xseq: Any = None) -> list[str]:
        """The best labels of a sequence, or of the one that was set."""
        return self._model().predict([self._now(xseq)])[0]

    def probability(self, yseq: Any) -> float:
        """Of these labels, for the sequence that was set."""
        return float(np.exp(self._model().log_probability([self._now()], [list(yseq)])[0]))

    def marginal(self, y: str, pos: int) -> float:
        """Probability of the label `y` of token `pos` of the sequence that was set."""
        names = self.labels()
        if y not in names or not 0 <= pos < len(self._now()):
            raise ValueError(f"There is no label {y!r}, or no token {pos}.")
        return float(self._model().predict_marginals([self._now()])[0][pos, names.index(y)])

    def _now(self, xseq: Any = None) -> list[Any]:
        if xseq is not None:
            self.set(xseq)
        if self._sequence is None:
            raise ClosedError("No sequence is set: give one to tag, or call set.")
        return self._sequence

    def info(self) -> TaggerInfo:
        """Labels, attributes and the weights that are not zero."""
        model = CRF()
        model._labeler = self._model()
        number = {name: str(k) for k, name in enumerate(self.labels())}
        attributes = {name: str(k) for k, name in enumerate(model.attributes_ or [])}
        header = {"num_labels": str(len(number)), "num_attrs": str(len(attributes))}
        return TaggerInfo(header, number, attributes, model.transition_features_ or {}, model.state_features_ or {})

    def dump(self, filename: Any = None) -> None:
        """Write the weights as text, on the screen or into a file."""
        info = self.info()
        parts = {
            "FILEHEADER": [f"{name}: {value}" for name, value in info.header.items()],
            "LABELS": [f"{number:>5}: {name}" for name, number in info.labels.items()],
            "ATTRIBUTES": [f"{number:>5}: {name}" for name, number in info.attributes.items()],
            "TRANSITIONS": [f"(1) {a} --> {b}: {w:f}" for (a, b), w in info.transitions.items()],
            "STATE_FEATURES": [f"(0) {a} --> {b}: {w:f}" for (a, b), w in info.state_features.items()],
        }
        text = "\n".join(f"{name} = {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n" for name, lines in parts.items())
        if filename is None:
            sys.stdout.write(text)
        else:
            with open(filename, "w", encoding="utf-8") as file:
                file.write(text)
