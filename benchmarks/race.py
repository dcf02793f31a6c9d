"""Contenders on a data set, in turn: what each process cost, and how good its predictions are.

Round by round every contender trains and tags once (A B C A B C ...), so that a busy minute of the machine hits all of them;
medians are reported. Our compiled code is warmed up by one run before the first round, in a cache folder that belongs to this
run alone; that first run is reported as an outcome of its own.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.contenders import Contender
from benchmarks.datasets import Dataset
from benchmarks.processes import Cost, measure


@dataclass
class Options:
    """What the command line said, and where to work."""

    folder: Path  #: for models and predictions; lasts as long as the command
    short: bool = False
    repeat: int | None = None
    only: tuple[str, ...] = ()  #: contenders whose names contain one of these; all if empty
    limit: float = 3600.0  #: seconds of wall time a process may take

    @property
    def repeats(self) -> int:
        """How many rounds."""
        return self.repeat or (3 if self.short else 5)

    @property
    def environment(self) -> dict[str, str]:
        """For every process: compiled code is kept in this run's folder, so that the first run is a cold one.

        Bytecode is kept too, whatever the shell says, for everybody: what is installed has it on disk.
        """
        bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(self.folder / "bytecode")}
        return {"PARTWISE_CACHE_DIR": str(self.folder / "compiled"), **bytecode}

    def wants(self, contender: Contender) -> bool:
        """Whether `contender` takes part."""
        if self.only:
            return any(part in contender.name for part in self.only)
        return contender.quick or not self.short


@dataclass
class Outcome:
    """What a contender did with a data set."""

    contender: str
    settings: str
    dataset: str
    package: str = ""
    version: str = ""
    train: list[Cost] = field(default_factory=list)
    tag: list[Cost] = field(default_factory=list)
    quality: dict[str, float] = field(default_factory=dict)
    model_mb: float = 0.0
    note: str = ""

    def median(self, verb: str, what: str) -> float | None:
        """Median over rounds of ``cpu``, ``wall`` or ``peak_mb`` of ``train`` or ``tag``."""
        values = [getattr(cost, what) for cost in getattr(self, verb) if not cost.failure]
        return statistics.median(values) if values else None

    def stages(self, verb: str) -> dict[str, float]:
        """Medians over rounds of the stages that `verb` reported."""
        costs = [cost.stages for cost in getattr(self, verb) if not cost.failure]
        names = dict.fromkeys(name for stages in costs for name in stages)
        return {name: statistics.median(stages.get(name, 0.0) for stages in costs) for name in names}

    def summary(self) -> dict[str, Any]:
        """For the JSON file: medians, and every single run."""
        verbs = {}
        for verb in ("train", "tag"):
            medians = {what: self.median(verb, what) for what in ("cpu", "wall", "peak_mb")}
            runs = [vars(cost) for cost in getattr(self, verb)]
            verbs[verb] = {**medians, "stages": self.stages(verb), "runs": runs}
        plain = {name: value for name, value in vars(self).items() if name not in verbs}
        return {**plain, **verbs}


def race(dataset: Dataset, contenders: Sequence[Contender], options: Options) -> list[Outcome]:
    """Let contenders train on the training file and tag the test file, in turn; the order of the outcomes is theirs."""
    files = dataset.load(options.folder)
    outcomes: list[Outcome] = []
    racing: list[tuple[Contender, Outcome]] = []
    for contender in contenders:
        if not options.wants(contender):
            continue
        outcome = Outcome(contender.name, contender.settings, dataset.name, contender.package, contender.version)
        outcome.note = f"skipped: {contender.missing}" if contender.missing else ""
        if contender.flattered:
            outcome.note = outcome.note or "*"
        if contender.ours:
            cold = Outcome(f"{contender.name}, first run", contender.settings, dataset.name, contender.package, contender.version)
            cold.note = "compiles"
            run(contender, cold, dataset, files.train, files.test, options)
            outcomes.append(cold)
        outcomes.append(outcome)
        if not contender.missing:
            racing.append((contender, outcome))
    for number in range(options.repeats):
        for contender, outcome in racing:
            failed = any(cost.failure for cost in outcome.train + outcome.tag)
            if not failed and not (number and contender.slow):
                run(contender, outcome, dataset, files.train, files.test, options)
    return outcomes


def run(contender: Contender, outcome: Outcome, dataset: Dataset, train: Path, test: Path, options: Options) -> None:
    """Train and tag once, and judge the predictions."""
    model, out = model_path(contender, dataset, options), options.folder / "predictions.txt"
    cost = measure(contender.train(dataset, train, model), options.environment, options.limit)
    outcome.train.append(cost)
    if not cost.failure:
        outcome.model_mb = model.stat().st_size / 1e6
        out.unlink(missing_ok=True)
        cost = measure(contender.tag(dataset, model, test, out), options.environment, options.limit)
        outcome.tag.append(cost)
    if cost.failure:
        outcome.note = cost.failure
        return
    outcome.quality = dataset.objective.score(test, out)


def model_path(contender: Contender, dataset: Dataset, options: Options) -> Path:
    """Where a contender's model of a data set lies."""
    return options.folder / f"{dataset.name}.{contender.name.replace(' ', '-')}.model"


def trained(contender: Contender, dataset: Dataset, options: Options) -> Path:
    """The model of a contender, trained now unless an earlier benchmark of this run did it."""
    model = model_path(contender, dataset, options)
    if not model.exists():
        cost = measure(contender.train(dataset, dataset.load(options.folder).train, model), options.environment, options.limit)
        if cost.failure:
            raise RuntimeError(f"{contender.name}: {cost.failure}")
    return model
