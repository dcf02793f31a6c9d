"""python-crfsuite from column file to model, and from column file to labelled file (see `benchmarks.peers.program`).

Most programs keep the attributes of all sentences in a list and then append them; with ``--stream`` each sentence is appended as
soon as its attributes are made, which needs less memory. ``--set algorithm=pa`` chooses the algorithm, other names are
crfsuite's own parameters.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pycrfsuite

from benchmarks.peers.attributes import EXTRACTORS, read_sentences, write_sentence
from benchmarks.peers.program import Stages, program


def filled_trainer(options: Any, stages: Stages) -> Any:
    """A trainer with the column file in it."""
    parameters = dict(options.set)
    trainer = pycrfsuite.Trainer(algorithm=parameters.pop("algorithm", "lbfgs"), params=parameters, verbose=False)
    extract = EXTRACTORS[options.features]
    if options.stream:
        for columns in read_sentences(options.file):
            trainer.append(extract(columns), columns[-1])
        stages.done("features")  # reading, attributes and append in one
        return trainer
    sentences = list(read_sentences(options.file))
    stages.done("read")
    items = [extract(columns) for columns in sentences]
    stages.done("features")
    for item, columns in zip(items, sentences, strict=True):
        trainer.append(item, columns[-1])
    stages.done("append")
    return trainer


def train(options: Any, stages: Stages) -> dict[str, Any]:
    """From column file to model file; crfsuite writes the model itself, so that saving is part of training."""
    trainer = filled_trainer(options, stages)
    trainer.train(options.model)
    stages.done("train")
    return {"epochs": len(trainer.logparser.iterations), "features": trainer.logparser.featgen_num_features}


def tagged(tagger: Any, features: str, sentences: Iterable[Any]) -> Iterator[str]:
    """Sentences with the predicted labels as their last column."""
    extract = EXTRACTORS[features]
    for columns in sentences:
        yield write_sentence(columns, tagger.tag(extract(columns)))


def tag(options: Any, stages: Stages) -> dict[str, Any]:
    """From column file to the same with one more column."""
    tagger = pycrfsuite.Tagger()
    tagger.open(options.model)
    stages.done("load")
    sentences = list(read_sentences(options.file))
    stages.done("read")
    with open(options.out, "w", encoding="utf-8") as out:
        out.writelines(tagged(tagger, options.features, sentences))
    stages.done("tag")  # attributes included: keeping those of all sentences would only cost memory
    return {}


def curve(options: Any, stages: Stages) -> dict[str, Any]:
    """Predictions after 1, 2, 4, ... iterations: crfsuite cannot show a model on its way, so each point is trained anew.

    Every point is trained in a forked copy of this process. Its random numbers begin where those of a fresh process begin, so
    that a short run is the beginning of a longer one; a second training in one process would visit sentences in another order.
    The seconds of a point are those of reading, attributes, appending (once for all points) and training to that point.
    """
    trainer = filled_trainer(options, stages)
    test = list(read_sentences(options.test))
    points = []
    for iterations in map(int, options.points.split(",")):
        said = Path(options.folder, f"{iterations}.json")
        if os.fork() == 0:
            status = 1
            try:
                said.write_text(json.dumps(one_point(options, trainer, test, iterations)))
                status = 0
            finally:
                os._exit(status)
        if os.wait()[1]:
            raise RuntimeError(f"training with {iterations} iterations failed")
        point = json.loads(said.read_text())
        points.append({**point, "cpu": stages.total + point["cpu"]})
        if point["epoch"] < iterations:
            break  # converged
    return {"points": points}


def one_point(options: Any, trainer: Any, test: list[Any], iterations: int) -> dict[str, Any]:
    """Train from nothing and label the test sentences; the CPU seconds are those of training."""
    model, out = str(Path(options.folder, "model.crfsuite")), Path(options.folder, f"{iterations}.txt")
    trainer.set("max_iterations", iterations)
    clock = time.process_time()
    trainer.train(model)
    spent = time.process_time() - clock
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    out.write_text("".join(tagged(tagger, options.features, test)), encoding="utf-8")
    log = [step.get("loss") for step in trainer.logparser.iterations]
    return {"epoch": len(log), "cpu": spent, "predictions": str(out), "losses": log}


if __name__ == "__main__":
    program(__doc__, train=train, tag=tag, curve=curve)
