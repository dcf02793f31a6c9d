"""What is learned from, and how answers are judged: column files, and one piece of code that scores everybody's predictions."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from partwise.datasets import data_folder
from partwise.metrics import span_f1, token_accuracy
from partwise.text.columns import read_columns

Labels = list[list[str]]


@dataclass(frozen=True)
class Files:
    """A training and a test file, one token a line, a blank line after each sentence, the label in the last column."""

    train: Path
    test: Path


@dataclass(frozen=True)
class Objective:
    """Measures of quality, in percent, computed from predictions that were written out; the first is the one that counts."""

    measures: tuple[tuple[str, Callable[[Labels, Labels], float]], ...]

    @property
    def name(self) -> str:
        """The measure that counts."""
        return self.measures[0][0]

    def score(self, truth: Path, predictions: Path) -> dict[str, float]:
        """Compare the last columns of two files.

        Raises
        ------
        ValueError
            If the files do not have the same sentences.
        """
        true, predicted = last_column(truth), last_column(predictions)
        return {name: 100 * measure(true, predicted) for name, measure in self.measures}


SPANS = Objective((("F1", span_f1), ("accuracy", token_accuracy)))
TOKENS = Objective((("accuracy", token_accuracy),))


@dataclass(frozen=True)
class Dataset:
    """A task: where its files are, which attributes are used, what counts.

    Attributes
    ----------
    load : callable
        From a folder for what has to be made on the way to `Files`. Raises FileNotFoundError where the corpus is missing.
    features : str
        A ready-made template set of ours; `benchmarks.peers.attributes` has the same attributes as strings.
    """

    name: str
    load: Callable[[Path], Files]
    features: str
    objective: Objective


def last_column(path: Path) -> Labels:
    """The labels of a column file."""
    return [[token[-1] for token in sentence] for sentence in read_columns(path).sentences()]


def _conll2000(folder: Path) -> Files:
    return Files(data_folder("conll2000/train.txt.gz"), data_folder("conll2000/test.txt.gz"))


def _brown(folder: Path) -> Files:
    """Brown as columns word, tag; every tenth sentence, from the first, is test data."""
    files = Files(folder / "brown.train.txt", folder / "brown.test.txt")
    if not files.test.exists():
        with gzip.open(data_folder("brown/brown.tsv.gz"), "rt", encoding="utf-8") as lines:
            sentences = [line.rstrip("\n").split("\t")[2].split(" ") for line in lines]
        for path, part in ((files.train, [s for i, s in enumerate(sentences) if i % 10]), (files.test, sentences[::10])):
            path.write_text("\n\n".join("\n".join(" ".join(t.rsplit("_", 1)) for t in s) for s in part) + "\n", encoding="utf-8")
    return files


def _toy(folder: Path) -> Files:
    """A hundred sentences with an easy rule, from a seed: for tests of the harness."""
    files = Files(folder / "toy.train.txt", folder / "toy.test.txt")
    rng = random.Random(0)
    for path, n in ((files.train, 80), (files.test, 20)):
        blocks = []
        for _ in range(n):
            tokens = [rng.choice(("the DT B-NP", "dog NN I-NP", "sees VB O")) for _ in range(rng.randint(1, 8))]
            blocks.append("\n".join(tokens) + "\n")
        path.write_text("\n".join(blocks))
    return files


CONLL2000 = Dataset("conll2000", _conll2000, "chunking", SPANS)
BROWN = Dataset("brown", _brown, "words", TOKENS)
TOY = Dataset("toy", _toy, "chunking", SPANS)
