"""sklearn-crfsuite: the scikit-learn face of python-crfsuite (see `benchmarks.peers.program`).

A fitted model is pickled, as its users do; attributes are lists of strings, which it takes as well as dicts and faster.
"""

from __future__ import annotations

import pickle
from ast import literal_eval
from typing import Any

import sklearn_crfsuite

from benchmarks.peers.attributes import EXTRACTORS, read_sentences, write_sentence
from benchmarks.peers.program import Stages, program


def train(options: Any, stages: Stages) -> dict[str, Any]:
    """From column file to pickled model."""
    sentences = list(read_sentences(options.file))
    stages.done("read")
    items = [EXTRACTORS[options.features](columns) for columns in sentences]
    stages.done("features")
    model = sklearn_crfsuite.CRF(
        **{name: value if name == "algorithm" else literal_eval(value) for name, value in options.set.items()}
    )
    model.fit(items, [columns[-1] for columns in sentences])
    stages.done("train")
    with open(options.model, "wb") as out:
        pickle.dump(model, out)
    stages.done("save")
    return {"epochs": len(model.training_log_.iterations)}


def tag(options: Any, stages: Stages) -> dict[str, Any]:
    """From column file to the same with one more column."""
    with open(options.model, "rb") as stored:
        model = pickle.load(stored)
    stages.done("load")
    sentences = list(read_sentences(options.file))
    stages.done("read")
    items = [EXTRACTORS[options.features](columns) for columns in sentences]
    stages.done("features")
    with open(options.out, "w", encoding="utf-8") as out:
        out.writelines(map(write_sentence, sentences, map(list, model.predict(items))))
    stages.done("tag")
    return {}


if __name__ == "__main__":
    program(__doc__, train=train, tag=tag)
