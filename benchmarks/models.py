"""How large models are: Brown with its full set of tags, the file, the memory to train and to tag, and what rounding costs.

    python -m benchmarks.models FOLDER      models that FOLDER has already are not trained again

Ours and crfsuite's are those of ``python -m benchmarks brown`` (crfsuite: one iteration; that hardly changes its size). All are
whole processes, one at a time; seconds are of CPU. ``dense`` is our model as format version 1 keeps it, every weight in the file
and in memory. The test part is only scored, nothing is chosen by it.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from benchmarks.contenders import BROWN_TAGGERS, crfsuite
from benchmarks.datasets import BROWN, Files
from benchmarks.processes import Cost, measure, python

REPEAT = 3
PEER = crfsuite("pa streamed", {"algorithm": "pa", "max_iterations": 1}, stream=True)
SHRUNK = {"lists": [], "float16": ["--float16"], "int8": ["--int8"], "cut": ["--cut", "0.001"]}


def tell(**found: Any) -> None:
    """One line for each result."""
    print(json.dumps(found), flush=True)


def train(folder: Path, files: Files) -> dict[str, Path]:
    """The models, trained where they are not there yet."""
    found = {}
    for name, contender in (("ours", BROWN_TAGGERS[0]), ("crfsuite", PEER)):
        found[name] = folder / f"{name}.model"
        if not found[name].exists() and not contender.missing:
            cost = measure(contender.train(BROWN, files.train, found[name]), limit=7200.0)
            tell(train=name, cpu=round(cost.cpu, 1), peak_mb=round(cost.peak_mb), failure=cost.failure)
    return found


def make_dense(model: Path, out: Path) -> None:
    """The same model with all its zeros."""
    from partwise.files.tensors import read_tensors, write_tensors
    from partwise.tasks.common.model_file import FORMAT, FORMAT_VERSION
    from partwise.tasks.common.weight_tensors import DENSE, from_tensors

    header, tensors = read_tensors(str(model), FORMAT, FORMAT_VERSION)
    weights, others = from_tensors(header, tensors)
    header = {key: value for key, value in header.items() if key != "weights"} | {"format_version": DENSE}
    write_tensors(out, header, {**others, "weights": weights if not hasattr(weights, "dense") else weights.dense()})


def tag(name: str, command: list[str], model: Path, files: Files, out: Path) -> Cost:
    """Label the test part several times; what it took, and how right it was."""
    measure(command)  # compiles, where that was not done yet
    costs = [measure(command) for _ in range(REPEAT)]
    accuracy = BROWN.objective.score(files.test, out)["accuracy"] if not costs[0].failure else None
    middle = {what: round(statistics.median(getattr(cost, what) for cost in costs), 2) for what in ("cpu", "peak_mb")}
    tell(tag=name, file_mb=round(model.stat().st_size / 1e6, 2), **middle, accuracy=accuracy, failure=costs[0].failure)
    return costs[0]


def main() -> None:
    """Train, write in every form, tag."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    files = BROWN.load(folder)
    models = train(folder, files)
    make_dense(models["ours"], folder / "dense.model")
    forms = {"dense": folder / "dense.model"}
    for name, options in SHRUNK.items():
        forms[name] = folder / f"{name}.model"
        told = measure(python("partwise", "shrink", models["ours"], "-o", forms[name], *options, "--json", "-q"))
        tell(shrink=name, cpu=round(told.cpu, 2), peak_mb=round(told.peak_mb), cut=told.said.get("cut"), failure=told.failure)
    if models["crfsuite"].exists():
        out = folder / "peer.txt"
        tag("crfsuite", PEER.tag(BROWN, models["crfsuite"], files.test, out), models["crfsuite"], files, out)
    else:
        tell(tag="crfsuite", failure=PEER.missing or "was not trained")
    answers = {}
    for name, model in forms.items():
        out = folder / f"{name}.txt"
        tag(name, python("partwise", "predict", model, files.test, "-o", out), model, files, out)
        answers[name] = out.read_bytes()
        tell(same_answers_as_dense=answers[name] == answers["dense"], form=name)


if __name__ == "__main__":
    main()
