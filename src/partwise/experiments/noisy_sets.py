"""Data of several tasks with errors planted in their training part: what `robust_training` learns from.

A `NoisySet` holds a training part with and without errors, and scores models by the true labels of a test part. Models are made
by ``make(loss=...)`` with all defaults, as a newcomer would. `without_errors` is the training part of an oracle that knows
which labels are wrong: examples that are wrong as a whole are left out, single wrong labels are unknown.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ENTITIES = {"spanish": "esp", "dutch": "ned"}
TEMPLATES = {"chunking": "chunking", "spanish": "ner", "dutch": "ner", "wnut": "ner"}
CLASSES = ("usps", "letter", "news20", "satimage", "segment", "dna")
FILES = {
    "chunking": ("conll2000/train.txt.gz", "conll2000/test.txt.gz"),
    "spanish": ("conll2002/esp.train.txt.gz", "conll2002/esp.testa.txt.gz"),
    "usps": ("multiclass/usps.train.csv.gz", "multiclass/usps.test.csv.gz"),
    "letter": ("multiclass/letter.csv.gz",),
    "news20": ("news20/train.svm.gz", "news20/test.svm.gz"),
    "trees": ("ud_english_ewt/en_ewt-ud-train.conllu.gz", "ud_english_ewt/en_ewt-ud-dev.conllu.gz"),
    "rna": ("rna_archiveii/archiveii.tsv.gz",),
    "ohsumed": tuple(f"ohsumed_letor/S{k}.txt.gz" for k in range(1, 6)),
}
CHOSEN_ON = {
    "dutch": ("conll2002/ned.train.txt.gz", "conll2002/ned.testa.txt.gz"),
    "wnut": ("wnut17/train.txt.gz", "wnut17/dev.txt.gz"),
    "satimage": ("multiclass/satimage.train.csv.gz", "multiclass/satimage.test.csv.gz"),
    "segment": ("multiclass/segment.csv.gz",),
    "dna": ("multiclass/dna.train.csv.gz", "multiclass/dna.test.csv.gz"),
}


LONGEST = 130  # bases: folding takes their cube


class NoisySet(NamedTuple):
    """A task with wrong labels."""

    make: Callable[..., Any]  #: an estimator
    train: tuple[Any, Any]  #: X and y with errors
    without_errors: tuple[Any, Any]
    n: int  #: examples of the training part
    wrong: Any  #: (n,) bool: examples with an error
    score: Callable[[Any], float]  #: of a model, by the test part, per cent


def noisy_set(data: Path, name: str, size: int, how: str, level: float, seed: int) -> NoisySet:
    """Plant errors of a kind, in a share `level` of the training part."""
    if name in TEMPLATES:
        return noisy_sequences(data, name, size, how, level, seed)
    if name in CLASSES:
        return noisy_classes(data, name, size, level, seed)
    return {"trees": noisy_trees, "rna": noisy_foldings, "ohsumed": noisy_rankings}[name](data, size, how, level, seed)


@functools.lru_cache(maxsize=1)
def sequences(data: Path, name: str, size: int) -> tuple[Any, Any, Any, Any]:
    """Columns without labels and labels, of training and of test part."""
    import numpy as np

    from partwise.text.columns import read_columns

    files, separator = {**FILES, **CHOSEN_ON}[name], "\t" if name == "wnut" else " "
    parts: list[Any] = []
    for file in files:
        columns = read_columns(data / file, separator)
        columns = columns.take(np.arange(min(size, len(columns)))) if file == files[0] else columns
        labels = [[cells[-1] for cells in columns[i]] for i in range(len(columns))]
        words = read_columns(data / file, separator, usecols=tuple(range(columns.n_columns - 1)))
        parts += [words.take(np.arange(len(columns))), labels]
    return parts[0], parts[1], parts[2], parts[3]


def noisy_sequences(data: Path, name: str, size: int, how: str, level: float, seed: int) -> NoisySet:
    """Chunks, entities."""
    import numpy as np

    from partwise.datasets.planted import plant_errors
    from partwise.metrics import span_f1
    from partwise.tasks.tagging.estimator import SequenceLabeler

    X, y, test, truth = sequences(data, name, size)
    noisy = plant_errors(y, level, seed, how)
    if how == "sentence":
        right = np.flatnonzero(~noisy.changed)
        without = (X.take(right), [y[i] for i in right.tolist()])
    else:
        wrong = iter(noisy.tokens.tolist())
        without = (X, [[None if next(wrong) else label for label in labels] for labels in y])
    make = functools.partial(SequenceLabeler, templates=TEMPLATES[name], random_state=seed)
    return NoisySet(make, (X, noisy.y), without, len(y), noisy.changed, lambda model: 100 * span_f1(truth, model.predict(test)))


@functools.lru_cache(maxsize=1)
def classes(data: Path, name: str, size: int) -> tuple[Any, Any, Any, Any]:
    """Rows and classes of training and test part; numbers are standardised, two thirds of a set without parts are to train on."""
    import numpy as np

    from partwise.experiments.multiclass import read_set, standardise

    if name == "news20":
        from sklearn.datasets import load_svmlight_files

        x, y, test, truth = load_svmlight_files([str(data / file) for file in FILES[name]])
        return x[:size], y[:size].astype(int), test, truth.astype(int)
    x, y = read_set(data, name, size)
    order = np.random.default_rng(0).permutation(len(y))
    train, held = order[: 2 * len(y) // 3], order[2 * len(y) // 3 :]
    rows, test = standardise(x[train], x[held])
    return rows, y[train], test, y[held]


def noisy_classes(data: Path, name: str, size: int, level: float, seed: int) -> NoisySet:
    """Shuffled classes."""
    import numpy as np

    from partwise.datasets.planted import plant_errors
    from partwise.tasks.classification.estimator import Classifier

    X, y, test, truth = classes(data, name, size)
    noisy = plant_errors(y, level, seed, how="shuffle")
    right = np.flatnonzero(~noisy.changed)
    make = functools.partial(Classifier, random_state=seed)
    return NoisySet(
        make,
        (X, np.asarray(noisy.y)),
        (X[right], y[right]),
        len(y),
        noisy.changed,
        lambda model: 100 * model.score(test, truth),
    )


def noisy_trees(data: Path, size: int, how: str, level: float, seed: int) -> NoisySet:
    """Wrong heads; relations are not learnt."""
    from partwise.datasets.planted_trees import plant_head_errors
    from partwise.tasks.dependency.estimator import DependencyParser
    from partwise.tasks.dependency.files import read_treebank

    train, test = (read_treebank(data / file, first=size) for file in FILES["trees"])
    ends = train.words.starts
    y = [train.heads[a:b].tolist() for a, b in zip(ends[:-1], ends[1:], strict=True)]
    noisy = plant_head_errors(y, level, seed, how)
    wrong = iter(noisy.tokens.tolist())
    without = [[None if next(wrong) else head for head in heads] for heads in y]
    make = functools.partial(DependencyParser, relations=False, random_state=seed)
    return NoisySet(make, (train, noisy.y), (train, without), len(y), noisy.changed, lambda model: 100 * model.score(test))


def noisy_foldings(data: Path, size: int, how: str, level: float, seed: int) -> NoisySet:
    """Structures that belong to another sequence of about that length."""
    import numpy as np

    from partwise.datasets.planted_parts import plant_structures
    from partwise.experiments.do_table_3 import everything
    from partwise.tasks.folding.estimator import RnaFolder

    rna = everything(data)
    short = np.flatnonzero([len(sequence) <= LONGEST for sequence in rna.sequences])
    train, test = rna.take(short[:size]), rna.take(short[size : 2 * size])
    noisy = plant_structures(train.structures, level, seed)
    right = np.flatnonzero(~noisy.changed)
    make = functools.partial(RnaFolder, random_state=seed)
    return NoisySet(
        make,
        (train.sequences, noisy.y),
        (train.take(right), None),
        len(train),
        noisy.changed,
        lambda model: 100 * model.score(test),
    )


def noisy_rankings(data: Path, size: int, how: str, level: float, seed: int) -> NoisySet:
    """Grades of some queries shuffled among their documents; the last fifth of the queries is to test on."""
    import numpy as np

    from partwise.datasets.planted_parts import plant_shuffles
    from partwise.tasks.ranking.estimator import Ranker
    from partwise.tasks.ranking.files import RankingSet, read_letor

    *parts, test = (read_letor(data / file) for file in FILES["ohsumed"])
    X, grades, qid, lines = (np.concatenate([getattr(p, name) for p in parts]) for name in ("X", "relevance", "qid", "lines"))
    noisy = plant_shuffles(grades, qid, level, seed)
    queries = list(dict.fromkeys(qid.tolist()))
    wrong = np.isin(qid, [query for query, changed in zip(queries, noisy.changed, strict=True) if changed])

    def documents(which: Any) -> Any:
        return RankingSet(X[which], grades[which], qid[which], [""] * len(which), lines[which], "ohsumed")

    right = np.flatnonzero(~wrong)
    return NoisySet(
        functools.partial(Ranker, random_state=seed),
        (documents(np.arange(len(qid))), np.asarray(noisy.y)),
        (documents(right), grades[right]),
        len(queries),
        noisy.changed,
        lambda model: 100 * model.score(test),
    )
