"""NLTK's averaged perceptron tagger, greedy and with features of its own, in plain Python (see `benchmarks.peers.program`).

It knows words and their tags only, so it takes part where these are the two columns.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nltk.tag.perceptron import PerceptronTagger

from benchmarks.peers.attributes import read_sentences, write_sentence
from benchmarks.peers.program import Stages, program


def train(options: Any, stages: Stages) -> dict[str, Any]:
    """From column file to weights as JSON."""
    sentences = [list(zip(columns[0], columns[-1], strict=True)) for columns in read_sentences(options.file)]
    stages.done("read")
    tagger = PerceptronTagger(load=False)
    tagger.train(sentences, nr_iter=int(options.set.get("iterations", 5)))
    stages.done("train")
    Path(options.model).write_text(json.dumps([tagger.model.weights, tagger.tagdict, sorted(tagger.classes)]))
    stages.done("save")
    return {}


def tag(options: Any, stages: Stages) -> dict[str, Any]:
    """From column file to the same with one more column."""
    tagger = PerceptronTagger(load=False)
    tagger.model.weights, tagger.tagdict, classes = json.loads(Path(options.model).read_text())
    tagger.classes = tagger.model.classes = set(classes)
    stages.done("load")
    sentences = list(read_sentences(options.file))
    stages.done("read")
    with open(options.out, "w", encoding="utf-8") as out:
        for columns in sentences:
            out.write(write_sentence(columns, [label for _, label in tagger.tag(columns[0])]))
    stages.done("tag")
    return {}


if __name__ == "__main__":
    program(__doc__, train=train, tag=tag)
