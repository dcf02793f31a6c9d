"""What ``partwise compare`` can be pointed at: files, recognised by their content, and data sets by name."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partwise.tasks.common.command_options import Refusal

SVMLIGHT = re.compile(r"^\S+(\s+\d+:\S+)+\s*(#.*)?$")
HELD_OUT = 0.2  # of the examples, where there is no test file


@dataclass(frozen=True)
class Contest:
    """A packed problem to train on, and how weights are judged on held-out data."""

    problem: Any
    score: Callable[[Any], dict[str, float]]
    about: str


def load(name: str, test: str | None, first: int | None, seed: int, templates: str, label_column: int | None) -> Contest:
    """The data set called `name`, or the file `name`."""
    if Path(name).is_file():
        return from_file(name, test, first, seed, templates, label_column)
    if name not in NAMED:
        raise Refusal(f"there is no file {name!r}, and no data set of that name. Data sets: {', '.join(NAMED)}.")
    if test is not None:
        raise Refusal(f"--test cannot go with {name!r}, which has a test part of its own.")
    try:
        return NAMED[name](first)
    except FileNotFoundError as error:
        raise Refusal(f"{name}: {error} Only 'digits' comes with partwise.") from None


def from_file(path: str, test: str | None, first: int | None, seed: int, templates: str, label_column: int | None) -> Contest:
    """A file of sequences in columns, or of classes: svmlight, or CSV with the class first."""
    kind = recognise(path)
    if kind != "columns":
        read = read_svmlight if kind == "svmlight" else read_csv
        x, y = read(path, None)
        if test is not None:
            held_x, held_y = read(test, x.shape[1])
            return classes(x[:first], y[:first], held_x, held_y, f"{path}, judged by {test}")
        train, held = divide(x.shape[0], first, seed)
        return classes(x[train], y[train], x[held], y[held], f"{path}, a fifth of it held out")
    from partwise.tasks.tagging.files import Source
    from partwise.tasks.tagging.model import default_templates

    source = Source(label_column=label_column)
    data = source.read(path)
    wanted = default_templates(data.columns.n_columns - 1, data.labels) if templates == "auto" else templates
    if test is not None:
        train, held_out = data.columns, source.read(test, like=data).columns
        about = f"{path}, judged by {test}"
    else:
        rows, held = divide(data.n_sentences, None, seed)
        train, held_out, about = data.columns.take(rows), data.columns.take(held), f"{path}, a fifth of it held out"
    return sequences(train if first is None else train.take(range(min(first, len(train)))), held_out, wanted, about)


def recognise(path: str) -> str:
    """``svmlight``, ``csv`` or ``columns``."""
    opener: Any = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8", errors="replace") as file:
        line = next((text.strip() for text in file if text.strip() and not text.startswith("#")), "")
    if not line:
        raise Refusal(f"{path} is empty.")
    if SVMLIGHT.match(line):
        return "svmlight"
    fields = line.split(",")
    return "csv" if len(fields) > 2 and all(is_number(f) for f in fields) else "columns"


def is_number(text: str) -> bool:
    """Whether it can be read as one."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def divide(n: int, first: int | None, seed: int) -> tuple[Any, Any]:
    """Numbers of the examples to train on, at most so many, and of a fifth to judge by."""
    import numpy as np

    if n < 2:
        raise Refusal(f"there is {n} example only: none can be held out. Give a --test file.")
    order = np.random.default_rng(seed).permutation(n)
    held = max(1, round(HELD_OUT * n))
    return np.sort(order[held:])[:first], np.sort(order[:held])


def read_svmlight(path: str, n_features: int | None) -> tuple[Any, Any]:
    """Sparse rows and their classes."""
    from sklearn.datasets import load_svmlight_file

    x, y = load_svmlight_file(path, n_features=n_features)
    return x, y


def read_csv(path: str, n_features: int | None) -> tuple[Any, Any]:
    """Dense rows and their classes, which stand first."""
    import numpy as np

    table = np.loadtxt(path, delimiter=",", ndmin=2)
    if n_features is not None and table.shape[1] != n_features + 1:
        raise Refusal(f"{path}: {table.shape[1] - 1} features, but the training file has {n_features}.")
    return np.ascontiguousarray(table[:, 1:]), table[:, 0]


def classes(x: Any, y: Any, held_x: Any, held_y: Any, about: str) -> Contest:
    """Multiclass; a constant feature is added. Classes that training has not seen are always wrong."""
    import numpy as np
    import scipy.sparse as sp

    from partwise.objective import best_outputs
    from partwise.structures import multiclass_problem

    if not sp.issparse(x):
        from partwise.experiments.multiclass import standardise

        x, held_x = standardise(x, held_x)
    else:
        x, held_x = (sp.hstack([some, np.ones((some.shape[0], 1))], format="csr") for some in (x, held_x))
    names, codes = np.unique(y, return_inverse=True)
    problem = multiclass_problem(x, codes.astype(np.int32), len(names))
    held_out = multiclass_problem(held_x, None, len(names))

    def score(w: Any) -> dict[str, float]:
        return {"accuracy": 100 * float((names[best_outputs(held_out, w)[0]] == held_y).mean())}

    shape = f"{x.shape[0]:,} examples, {x.shape[1]:,} features, {len(names)} classes; {held_x.shape[0]:,} held out"
    return Contest(problem, score, f"{about}: {shape}")


def sequences(train: Any, held_out: Any, templates: Any, about: str) -> Contest:
    """Tagging, from columns with the label last."""
    from partwise.experiments.tagging import make_split

    split = make_split(train, held_out, templates)
    shape = f"{len(train):,} sentences, {len(split.labels)} labels; {len(held_out):,} held out"
    return Contest(split.train, split.scores, f"{about}: {shape}")


def letters(x: Any, lengths: Any, y: Any, held: tuple[Any, Any, Any], n: int, about: str) -> Contest:
    """Sequences of images."""
    from partwise.objective import best_outputs
    from partwise.structures import chain_problem

    problem, held_out = chain_problem(x, lengths, y, n), chain_problem(held[0], held[1], held[2], n)

    def score(w: Any) -> dict[str, float]:
        return {"accuracy": 100 * float((best_outputs(held_out, w)[0] == held_out.gold).mean())}

    return Contest(problem, score, f"{about}: {len(lengths):,} words, {n} letters; {len(held[1]):,} words held out")


# ---------------------------------------------------------------------------------------------------------------------
# Data sets by name
# ---------------------------------------------------------------------------------------------------------------------


def digits(first: int | None) -> Contest:
    """Words of handwritten digits, made on the spot."""
    import numpy as np

    from partwise.datasets import make_digit_words

    parts = []
    for part, n in (("train", first or 300), ("test", 300)):
        X, y = make_digit_words(n, part=part)
        parts.append((np.concatenate(X), np.array([len(word) for word in y]), np.concatenate(y).astype(np.int32)))
    return letters(*parts[0], parts[1], 10, "words of scikit-learn's digits")


def ocr(first: int | None) -> Contest:
    """The OCR letters: one fold to train on, the other nine to judge by."""
    from scipy.sparse import csr_matrix

    from partwise.datasets import load_ocr

    (x, lengths, y), (held_x, *held) = load_ocr([0]), load_ocr(range(1, 10))
    lengths = lengths[:first]
    tokens = int(lengths.sum())
    pixels, held_pixels = csr_matrix(x[:tokens]), csr_matrix(held_x)  # a fifth of them is black: rows of indices are quicker
    return letters(pixels, lengths, y[:tokens], (held_pixels, *held), 26, "OCR letters, fold 0")


def conll2000(first: int | None) -> Contest:
    """CoNLL-2000 chunking, the official parts."""
    from partwise.datasets import data_folder
    from partwise.experiments.tagging import official_split

    split = official_split(data_folder(), first)
    return Contest(split.train, split.scores, f"CoNLL-2000 chunking: {len(split.train.starts) - 1:,} sentences")


def usps(first: int | None) -> Contest:
    """USPS digits."""
    from partwise.datasets import load_usps

    x, y, held_x, held_y = load_usps()
    return classes(x[:first], y[:first], held_x, held_y, "USPS digits")


def news20(first: int | None) -> Contest:
    """20 Newsgroups, tf-idf."""
    from partwise.datasets import load_news20

    x, y, held_x, held_y = load_news20()
    return classes(x[:first], y[:first], held_x, held_y, "20 Newsgroups")


NAMED: dict[str, Callable[[int | None], Contest]] = {
    "digits": digits,
    "ocr": ocr,
    "conll2000": conll2000,
    "usps": usps,
    "news20": news20,
}
