"""chaine: crfsuite's algorithms behind another Python face, whose attributes are dicts (see `benchmarks.peers.program`)."""

from __future__ import annotations

from ast import literal_eval
from typing import Any

import chaine

from benchmarks.peers.attributes import EXTRACTORS, Items, read_sentences, write_sentence
from benchmarks.peers.program import Stages, program


def dicts(items: Items) -> list[dict[str, bool]]:
    """Attributes in the form chaine takes."""
    return [dict.fromkeys(item, True) for item in items]


def train(options: Any, stages: Stages) -> dict[str, Any]:
    """From column file to model; chaine writes it itself, so that saving is part of training."""
    extract = EXTRACTORS[options.features]
    sentences = list(read_sentences(options.file))
    stages.done("read")
    settings = {name: value if name == "algorithm" else literal_eval(value) for name, value in options.set.items()}
    items = [dicts(extract(columns)) for columns in sentences]
    stages.done("features")
    chaine.train(items, [columns[-1] for columns in sentences], model_filepath=options.model, verbose=0, **settings)
    stages.done("train")
    return {}


def tag(options: Any, stages: Stages) -> dict[str, Any]:
    """From column file to the same with one more column."""
    extract = EXTRACTORS[options.features]
    model = chaine.Model(options.model)
    stages.done("load")
    sentences = list(read_sentences(options.file))
    stages.done("read")
    with open(options.out, "w", encoding="utf-8") as out:
        for columns in sentences:
            out.write(write_sentence(columns, model.predict_single(dicts(extract(columns)))))
    stages.done("tag")
    return {}


if __name__ == "__main__":
    program(__doc__, train=train, tag=tag)
