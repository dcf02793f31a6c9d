"""Corpora on disk, for benchmarks and for the tests marked ``data``.

None of them comes with partwise. The environment variable PARTWISE_DATA names a folder that holds them:

    conll2000/train.txt.gz, test.txt.gz        columns: word, part of speech, chunk label
    news20/train.svm.gz, test.svm.gz           svmlight: class, index:count pairs (20 Newsgroups, bag of words)
    multiclass/usps.train.csv.gz, .test.csv.gz  comma-separated: digit, 256 pixels in [-1, 1]
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from partwise.features.columns import read_columns

NEWS20_FEATURES = 44887


def data_folder(name: str = "") -> Path:
    """The folder of corpora named by the environment variable PARTWISE_DATA, or the part `name` of it.

    Raises
    ------
    FileNotFoundError
        If the variable is not set, or what it names does not exist.
    """
    named = os.environ.get("PARTWISE_DATA")
    if not named:
        raise FileNotFoundError(
            "The corpora are found through the environment variable PARTWISE_DATA, which is not set. "
            "Set it to the folder that holds conll2000/, news20/ and multiclass/."
        )
    folder = Path(named) / name
    if not folder.exists():
        raise FileNotFoundError(f"PARTWISE_DATA is {named!r}, but there is no {folder}.")
    return folder


def load_conll2000(part: str = "train") -> list[list[tuple[str, ...]]]:
    """Sentences of CoNLL-2000 chunking (`part` is ``train`` or ``test``): tuples of word, tag, chunk label."""
    return read_columns(data_folder(f"conll2000/{part}.txt.gz"), " ").sentences()


def load_news20(tfidf: bool = True) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """20 Newsgroups by date: (x_train, y_train, x_test, y_test), sparse rows, classes 0..19.

    With `tfidf` counts become tf-idf rows of unit length, the inverse document frequencies being those of the training part.
    """
    from sklearn.datasets import load_svmlight_file
    from sklearn.feature_extraction.text import TfidfTransformer

    parts: list[Any] = []
    for part in ("train", "test"):
        path = data_folder(f"news20/{part}.svm.gz")
        x, y = load_svmlight_file(str(path), n_features=NEWS20_FEATURES, zero_based=False)
        parts += [x, y.astype(np.int32) - 1]
    if tfidf:
        transformer = TfidfTransformer().fit(parts[0])
        parts[0], parts[2] = transformer.transform(parts[0]), transformer.transform(parts[2])
    return parts[0], parts[1], parts[2], parts[3]


def load_usps() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """USPS zip code digits: (x_train, y_train, x_test, y_test), 256 pixels in [-1, 1], digits 0..9."""
    parts: list[np.ndarray] = []
    for part in ("train", "test"):
        table = np.loadtxt(data_folder(f"multiclass/usps.{part}.csv.gz"), delimiter=",")
        parts += [np.ascontiguousarray(table[:, 1:]), table[:, 0].astype(np.int32)]
    return parts[0], parts[1], parts[2], parts[3]
