"""``predict``, ``evaluate`` and ``inspect`` for models of anything but sequences: one flow, a module for each kind.

Such a module has

    read(file, encoding)           the data in a file
    count(data)                    {"sequences": ..., "tokens": ...}, or what they are called there
    FORMS                          {name of a format: (model, data) -> text}; the first unless one is asked for
    scores(model, data)            the task's metrics under their usual names
    as_table(scores)               the same for people
    look(model, top, picture)      what the model has learnt: a dict for machines, a text for people; and a picture
"""

from __future__ import annotations

import gzip
import importlib
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.cli.common import Refusal, kind_of, print_json, write


@dataclass(frozen=True)
class Kind:
    """Of a model, by the name of its estimator."""

    does: str  #: the verb that belongs to it, for messages
    home: str

    @property
    def module(self) -> Any:
        """Where its functions are."""
        return importlib.import_module(self.home)


KINDS = {
    "Aligner": Kind("aligns", "partwise.tasks.alignment.command"),
    "ConstituencyParser": Kind("parses into constituents", "partwise.tasks.constituency.command"),
    "DependencyParser": Kind("parses", "partwise.tasks.dependency.command"),
    "GraphLabeler": Kind("labels graphs", "partwise.tasks.graphs.command"),
    "Ranker": Kind("ranks", "partwise.tasks.ranking.command"),
    "RnaFolder": Kind("folds RNA", "partwise.tasks.folding.command"),
}


def kind_for(model: Path | str) -> Kind | None:
    """None for models of sequences, and for what is no model."""
    return KINDS.get(kind_of(model))


def load(path: Path, jobs: int = 1) -> Any:
    """The model, without importing scikit-learn where that can be."""
    from partwise.tasks.common import model_file

    model = model_file.load(path, plain=True)
    model.n_jobs = jobs
    return model


def refuse(kind: Kind, model: Path, **given: Any) -> None:
    """Say so if an option was given that is for models of sequences only."""
    for name, value in given.items():
        if value:
            raise Refusal(f"--{name.replace('_', '-')} is for models of sequences, and {model} {kind.does}.")


def predict_file(
    kind: Kind, path: Path, file: str, output: Path | None, form: str | None, encoding: str, jobs: int, as_json: bool, quiet: bool
) -> None:
    """Write the model's answers, in one of the formats that they have."""
    home, begun = kind.module, time.perf_counter()
    form = form or next(iter(home.FORMS))
    if form not in home.FORMS:
        raise Refusal(f"--format {form}: {path} {kind.does}, and its answers are written as {', '.join(home.FORMS)}.")
    model = load(path, jobs)
    seconds = {"load": time.perf_counter() - begun}
    data = home.read(file, encoding)
    seconds["read"] = time.perf_counter() - begun - sum(seconds.values())
    made = home.FORMS[form](model, data)
    content = made if isinstance(made, bytes) else made.encode(encoding)
    seconds["label"] = time.perf_counter() - begun - sum(seconds.values())
    write(output, gzip.compress(content, mtime=0) if output is not None and output.suffix == ".gz" else content)
    seconds["total"] = time.perf_counter() - begun
    counts = home.count(data)
    if as_json:
        print_json({"file": file, "output": str(output), **counts, "seconds": seconds, **speed(counts, seconds["label"])})
    elif output is not None and not quiet:
        said = ", ".join(f"{number:,} {name}" for name, number in counts.items())
        print(f"wrote {output}: {said}, {seconds['total']:.2f} s", file=sys.stderr)


def evaluate_file(kind: Kind, path: Path, file: str, encoding: str, jobs: int, as_json: bool, quiet: bool) -> None:
    """Score a model by a file that has the truth."""
    home, begun = kind.module, time.perf_counter()
    model = load(path, jobs)
    seconds = {"load": time.perf_counter() - begun}
    data = home.read(file, encoding)
    seconds["read"] = time.perf_counter() - begun - sum(seconds.values())
    found = home.scores(model, data)
    seconds["label"] = time.perf_counter() - begun - sum(seconds.values())
    seconds["total"] = time.perf_counter() - begun
    if not (quiet and as_json):
        print(home.as_table(found), file=sys.stderr if as_json else sys.stdout)
    if as_json:
        print_json({"model": str(path), "file": file, **home.count(data), **found, "seconds": seconds})


def inspect_model(kind: Kind, path: Path, top: int | None, picture: Path | None, as_json: bool) -> None:
    """What the model is and what it has learnt."""
    about, text = kind.module.look(load(path), top, picture)
    about = {"model": str(path), "bytes": path.stat().st_size, **about}
    if picture is not None:
        about["picture"] = str(picture)
    if as_json:
        print_json(about)
    else:
        print(text)


def speed(counts: dict[str, int], seconds: float) -> dict[str, float]:
    """How many of the smallest things that are counted, tokens say, a second."""
    name, number = list(counts.items())[-1]
    return {f"{name}_per_second": number / max(seconds, 1e-9)}


def percent(value: float) -> str:
    """Two digits, or a dash."""
    return "-" if value != value else f"{100 * value:.2f} %"
