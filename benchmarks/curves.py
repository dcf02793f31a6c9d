"""Learning curves: F1 on the test file against CPU seconds, epoch by epoch, from the raw file on.

Ours come from one run: a callback labels the test file after every epoch, with the stopwatch stopped. crfsuite cannot show a
model on its way; it is trained anew for 1, 2, 4, ... iterations, each time from the same random state, and a point's seconds
are those of reading, attributes, appending and that training. Nothing is chosen on these curves. Our program is this file::

    python -m benchmarks.curves curve FILE TEST FOLDER --set loss=hinge --set solver=dca --set epochs=20
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.datasets import CONLL2000, Dataset
from benchmarks.peers.program import Stages, program
from benchmarks.processes import measure, python
from benchmarks.race import Options
from benchmarks.report import Curve, Report

OURS = (
    ("hinge dca", "hinge", "dca", 20),
    ("crf dca", "crf", "dca", 20),
    ("crf sgd", "crf", "sgd", 20),
    ("crf lbfgs", "crf", "lbfgs", 60),
)
PEERS = (  # algorithm, parameters, points of the short and of the long version
    ("pa", {}, "1,2,4,8,15", "1,2,3,4,6,8,11,15,20,30"),
    ("ap", {}, "", "1,2,3,4,6,8,11,15,20,30"),
    ("l2sgd", {}, "1,2,5,10,20", "1,2,3,5,7,10,14,20,30,50"),
    ("lbfgs", {"c2": 0.5}, "", "10,20,30,40,50,60,80,100"),
)


def run(options: Options) -> Report:
    """Curves of ours and of crfsuite."""
    points = 2 if options.short else 3
    curves, notes = [], []
    for name, loss, solver, epochs in OURS:
        if options.short and solver in ("sgd", "lbfgs"):
            continue
        settings = {"loss": loss, "solver": solver, "epochs": epochs}
        trace(CONLL2000, f"partwise {name}", "benchmarks.curves", {**settings, "epochs": 1}, "", options)  # compiles
        curves.append(trace(CONLL2000, f"partwise {name}", "benchmarks.curves", settings, "", options))
    for name, settings, *versions in PEERS:
        if versions[points - 2]:
            given = {"algorithm": name, **settings}
            curves.append(trace(CONLL2000, f"crfsuite {name}", "benchmarks.peers.crfsuite", given, versions[points - 2], options))
    notes.append("crfsuite: each point a training of its own; partwise: one run, evaluation not counted.")
    return Report("curves", curves=curves, notes=notes)


def trace(dataset: Dataset, name: str, module: str, settings: dict[str, Any], points: str, options: Options) -> Curve:
    """Run a program that leaves predictions behind, point by point, and score them."""
    files = dataset.load(options.folder)
    folder = options.folder / "curve"
    folder.mkdir(exist_ok=True)
    chosen = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    more = ["--points", points] if points else []
    command = python(module, "curve", files.train, files.test, folder, "--features", dataset.features, *chosen, *more)
    cost = measure(command, options.environment, options.limit)
    if cost.failure:
        raise RuntimeError(f"{name}: {cost.failure}")
    found = cost.said["points"]
    measure_name = dataset.objective.name
    quality = [dataset.objective.score(files.test, Path(point["predictions"]))[measure_name] for point in found]
    return Curve(name, measure_name, [point["epoch"] for point in found], [point["cpu"] for point in found], quality)


def our_curve(options: Any, stages: Stages) -> dict[str, Any]:
    """Train once and label the test file after every epoch."""
    import numpy as np

    from partwise.objective import best_outputs
    from partwise.solvers import solve
    from partwise.structures import chain_problem
    from partwise.text.columns import read_columns
    from partwise.text.template_encoder import TemplateEncoder

    stages.done("import")
    train = read_columns(options.file)
    stages.done("read")
    encoder = TemplateEncoder(options.features)
    labels = train.cells[-1]
    problem = chain_problem(encoder.fit_transform(train), np.diff(train.starts), train.codes[-1], len(labels))
    stages.done("features")
    test = read_columns(options.test)
    unknown = np.zeros(test.n_tokens, np.int32)
    held_out = chain_problem(encoder.transform(test), np.diff(test.starts), unknown, len(labels))
    points = []

    def look(record: Any) -> None:
        stages.done("train")
        out, _, _ = best_outputs(held_out, record.weights())
        path = Path(options.folder, f"{record.epoch}.txt")
        path.write_bytes(test.append_column(out, labels))
        points.append({"epoch": record.epoch, "cpu": stages.total, "predictions": str(path)})
        stages.pause()

    given = options.set
    stages.pause()
    run_options = {"C": float(given.get("C", 1.0)), "tol": 0.0, "evaluate": "never", "n_jobs": 1, "callbacks": [look]}
    solve(problem, given["loss"], given["solver"], max_epochs=int(given["epochs"]), dtype=np.float32, **run_options)
    return {"points": points}


if __name__ == "__main__":
    program(__doc__, curve=our_curve)
