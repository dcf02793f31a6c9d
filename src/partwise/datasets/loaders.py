"""Corpora on disk, for benchmarks and for the tests marked ``data``.

None of them comes with partwise. The environment variable PARTWISE_DATA names a folder that holds them:

    conll2000/train.txt.gz, test.txt.gz        columns: word, part of speech, chunk label
    news20/train.svm.gz, test.svm.gz           svmlight: class, index:count pairs (20 Newsgroups, bag of words)
    multiclass/usps.train.csv.gz, .test.csv.gz  comma-separated: digit, 256 pixels in [-1, 1]
    ocr_letters/letters.npz                    handwritten words: pixels, labels, word_id, fold of every letter
    covtype/covtype.csv.gz                     comma-separated: class, ten numbers, wilderness area 1-4, soil type 1-40
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from partwise.files.corpora import data_folder
from partwise.text.columns import read_columns

NEWS20_FEATURES = 44887


def load_conll2000(part: str = "train") -> list[list[tuple[str, ...]]]:
    """Sentences of CoNLL-2000 chunking (`part` is ``train`` or ``test``): tuples of word, tag, chunk label.

    Parameters
    ----------
    part : {"train", "test"}

    Examples
    --------
    >>> sentences = load_conll2000("test")  # doctest: +SKIP
    """
    return read_columns(data_folder(f"conll2000/{part}.txt.gz"), " ").sentences()


def load_news20(tfidf: bool = True, folder: Path | None = None) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """20 Newsgroups by date: (x_train, y_train, x_test, y_test), sparse rows, classes 0..19.

    With `tfidf` counts become tf-idf rows of unit length, the inverse document frequencies being those of the training part.
    `folder`: where the corpora are, if not in PARTWISE_DATA.

    Parameters
    ----------
    tfidf : bool
        Whether counts become tf-idf rows of unit length.
    folder : path, optional
        Where the corpora are, if not in PARTWISE_DATA.

    Examples
    --------
    >>> x_train, y_train, x_test, y_test = load_news20()  # doctest: +SKIP
    """
    from sklearn.datasets import load_svmlight_file
    from sklearn.feature_extraction.text import TfidfTransformer

    parts: list[Any] = []
    for part in ("train", "test"):
        path = data_folder(f"news20/{part}.svm.gz") if folder is None else Path(folder, f"news20/{part}.svm.gz")
        x, y = load_svmlight_file(str(path), n_features=NEWS20_FEATURES, zero_based=False)
        parts += [x, y.astype(np.int32) - 1]
    if tfidf:
        transformer = TfidfTransformer().fit(parts[0])
        parts[0], parts[2] = transformer.transform(parts[0]), transformer.transform(parts[2])
    return parts[0], parts[1], parts[2], parts[3]


def load_usps() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """USPS zip code digits: (x_train, y_train, x_test, y_test), 256 pixels in [-1, 1], digits 0..9.

    Examples
    --------
    >>> x_train, y_train, x_test, y_test = load_usps()  # doctest: +SKIP
    """
    parts: list[np.ndarray] = []
    for part in ("train", "test"):
        table = np.loadtxt(data_folder(f"multiclass/usps.{part}.csv.gz"), delimiter=",")
        parts += [np.ascontiguousarray(table[:, 1:]), table[:, 0].astype(np.int32)]
    return parts[0], parts[1], parts[2], parts[3]


def load_ocr(folds: Iterable[int] = range(10), folder: Path | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Handwritten words (Taskar et al. 2003): pixels (letters, 128) of 0 and 1, letters per word, and letters 0..25.

    Words come end to end, in the order of the file. `folder`: where the corpora are, if not in PARTWISE_DATA.

    Parameters
    ----------
    folds : iterable of int
        Of 0 to 9.
    folder : path, optional
        Where the corpora are, if not in PARTWISE_DATA.

    Examples
    --------
    >>> pixels, lengths, letters = load_ocr(folds=[0])  # doctest: +SKIP
    """
    path = data_folder("ocr_letters/letters.npz") if folder is None else Path(folder, "ocr_letters/letters.npz")
    with np.load(path, allow_pickle=False) as file:
        mine = np.isin(file["fold"], list(folds))
        pixels = np.unpackbits(file["pixels"][mine], axis=1).astype(np.float64)
        labels, words = file["labels"][mine].astype(np.int32), file["word_id"][mine]
    return pixels, np.unique(words, return_counts=True)[1], labels


def load_covtype(folder: Path | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Forest cover types: 54 features as given, area and soil type as indicators, and classes 0..6; rows as in the file.

    Parameters
    ----------
    folder : path, optional
        Where the corpora are, if not in PARTWISE_DATA.

    Examples
    --------
    >>> x, y = load_covtype()  # doctest: +SKIP
    """
    path = data_folder("covtype/covtype.csv.gz") if folder is None else Path(folder, "covtype/covtype.csv.gz")
    import gzip

    with gzip.open(path, "rb") as file:
        table = np.fromstring(file.read().replace(b"\n", b","), np.int32, sep=",").reshape(-1, 13)
    x = np.zeros((len(table), 54))
    x[:, :10] = table[:, 1:11]
    rows = np.arange(len(table))
    x[rows, 9 + table[:, 11]] = 1.0
    x[rows, 13 + table[:, 12]] = 1.0
    return x, table[:, 0] - 1
