"""Vowpal Wabbit's learning to search, task ``sequence`` (see `benchmarks.peers.program`).

Labels are numbers from 1 on and a sentence is a block of lines ``label | attribute attribute ...``, written to a file beside the
model. ``--set passes=3`` goes over it three times.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import vowpalwabbit

from benchmarks.peers.attributes import EXTRACTORS, Sentence, read_sentences, write_sentence
from benchmarks.peers.program import Stages, program


def write_examples(path: Path, sentences: Iterable[Sentence], features: str, numbers: dict[str, int]) -> None:
    """Sentences in its input format; labels without a number are given none."""
    extract = EXTRACTORS[features]
    with open(path, "w", encoding="utf-8") as out:
        for columns in sentences:
            for label, item in zip(columns[-1], extract(columns), strict=True):
                text = " ".join(item).replace("|", "\u2016").replace(":", "\u2236")  # these two mean something to it
                out.write(f"{numbers.get(label, '')} | {text}\n")
            out.write("\n")


def train(options: Any, stages: Stages) -> dict[str, Any]:
    """From column file to model and, beside it, the names of the labels."""
    sentences = list(read_sentences(options.file))
    stages.done("read")
    labels = sorted({label for columns in sentences for label in columns[-1]})
    data = Path(f"{options.model}.data")
    write_examples(data, sentences, options.features, {label: k for k, label in enumerate(labels, 1)})
    stages.done("features")
    arguments = ["--search", str(len(labels)), "--search_task", "sequence", "-b", "24", "--quiet", "-d", str(data)]
    arguments += ["-f", options.model, *(word for name, value in options.set.items() for word in (f"--{name}", value))]
    if int(options.set.get("passes", 1)) > 1:
        arguments += ["--cache_file", f"{data}.cache", "-k", "--holdout_off"]
    vowpalwabbit.Workspace(arg_list=arguments).finish()
    Path(f"{options.model}.labels").write_text(json.dumps(labels))
    stages.done("train")
    for left in (data, Path(f"{data}.cache")):
        left.unlink(missing_ok=True)
    return {}


def tag(options: Any, stages: Stages) -> dict[str, Any]:
    """From column file to the same with one more column."""
    labels = json.loads(Path(f"{options.model}.labels").read_text())
    sentences = list(read_sentences(options.file))
    stages.done("read")
    data, predictions = Path(f"{options.out}.data"), Path(f"{options.out}.predictions")
    write_examples(data, sentences, options.features, {})
    stages.done("features")
    arguments = ["-i", options.model, "-t", "--quiet", "-d", str(data), "-p", str(predictions)]
    vowpalwabbit.Workspace(arg_list=arguments).finish()
    found = iter(predictions.read_text().split())
    with open(options.out, "w", encoding="utf-8") as out:
        for columns in sentences:
            out.write(write_sentence(columns, [labels[int(next(found)) - 1] for _ in columns[0]]))
    stages.done("tag")
    for left in (data, predictions):
        left.unlink(missing_ok=True)
    return {}


if __name__ == "__main__":
    program(__doc__, train=train, tag=tag)
