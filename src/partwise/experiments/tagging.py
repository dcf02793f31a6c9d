"""What experiments on sequences share: corpora read and encoded once per process, Mancev's methods, scores.

Mancev (2015) minimises ``1/2 ||w||^2 + C'/N sum_i L_i(w)`` and names ``C_d = C'/N`` for SDM and ``lambda = 1/C'`` for Pegasos.
So our C is his C_d, or 1 / (N lambda) with the N of his training parts: 0.07 and 0.14 for chunking. His ramp runs P rounds of
CCCP with T epochs each. All weights are averaged.
"""

from __future__ import annotations

import functools
import gzip
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

CONLL2000 = ("conll2000/train.txt.gz", "conll2000/test.txt.gz")
BROWN = "brown/brown.tsv.gz"
TEMPLATES = {"conll2000": "chunking", "conll2000-pos": "words", "brown": "words"}


@functools.lru_cache(maxsize=4)
def read_corpus(data: Path, name: str, part: str = "train", first: int | None = None) -> Any:
    """Sentences as `Columns`, the label in the last one; the first so many of them, or all."""
    import numpy as np

    from partwise.text.columns import code_tokens, read_columns

    if name in ("conll2000", "conll2000-pos"):  # chunks, or words and their parts of speech alone
        columns = read_columns(data / f"conll2000/{part}.txt.gz", " ", usecols=(0, 1) if name.endswith("pos") else None)
        return columns if first is None else columns.take(np.arange(min(first, len(columns))))
    with gzip.open(data / BROWN, "rt", encoding="utf-8") as lines:
        texts = [line.rstrip("\n").split("\t")[2].split(" ") for line in lines]
    if first is not None and first < len(texts):  # spread over all genres: they come one after the other
        texts = [texts[k] for k in np.linspace(0, len(texts) - 1, first).astype(int)]
    return code_tokens([[tuple(token.rsplit("_", 1)) for token in text] for text in texts])


class Split(NamedTuple):
    """A training and a test problem over the same features and labels."""

    train: Any  #: packed, with labels
    test: Any  #: packed, without
    columns: Any  #: the test sentences
    labels: list[str]

    def answers(self, w: Any) -> Any:
        """Codes of the best labels of all test tokens."""
        from partwise.objective import best_outputs

        return best_outputs(self.test, w)[0]

    def scores(self, w: Any) -> dict[str, float]:
        """Per cent: accuracy of tokens and, of chunk labels, F1 of spans."""
        import numpy as np

        from partwise.metrics import span_scores_coded

        answers, gold, names = self.answers(w), self.columns.codes[-1], self.columns.cells[-1]
        right = np.array(names)[gold] == np.array(self.labels)[answers]
        found = {"accuracy": 100 * float(right.mean())}
        if "O" in self.labels:
            found["f1"] = 100 * span_scores_coded(gold, answers, self.columns.starts, names, self.labels).f1
        return found


def make_split(train: Any, test: Any, templates: str) -> Split:
    """Encode both parts by templates whose vocabulary is learnt from the first."""
    return make_splits(train, [test], templates)[0]


def make_splits(train: Any, tests: Sequence[Any], templates: str) -> list[Split]:
    """The same for several test parts (a held-out one and that of the end, say) of one training part."""
    import numpy as np

    from partwise.structures import chain_problem
    from partwise.text.template_encoder import TemplateEncoder

    encoder = TemplateEncoder(templates)
    rows = encoder.fit_transform(train)
    used, gold = np.unique(train.codes[-1], return_inverse=True)
    labels = [train.cells[-1][k] for k in used]
    problem = chain_problem(rows, np.diff(train.starts), gold.astype(np.int32), len(labels))
    unlabelled = [chain_problem(encoder.transform(test), np.diff(test.starts), None, len(labels)) for test in tests]
    return [Split(problem, packed, test, labels) for packed, test in zip(unlabelled, tests, strict=True)]


@functools.lru_cache(maxsize=1)
def official_split(data: Path, sentences: int | None = None) -> Split:
    """CoNLL-2000: the training part, or its first so many sentences, and the test part."""
    train = read_corpus(data, "conll2000", "train", sentences)
    return make_split(train, read_corpus(data, "conll2000", "test"), TEMPLATES["conll2000"])


@functools.lru_cache(maxsize=1)
def fold_split(data: Path, name: str, fold: int, n_folds: int, sentences: int | None = None) -> Split:
    """Fold number `fold` of a cross-validation held out: a random part, the same for every method."""
    import numpy as np

    columns = read_corpus(data, name, "train", sentences)
    order = np.random.default_rng(2015).permutation(len(columns))
    held = np.zeros(len(columns), bool)
    held[order[fold::n_folds]] = True
    return make_split(columns.take(np.flatnonzero(~held)), columns.take(np.flatnonzero(held)), TEMPLATES[name])


def with_outliers(split: Split, fraction: float, seed: int) -> Split:
    """The same with random labels for all tokens of a fraction of the training sentences."""
    import numpy as np

    from partwise.datasets.planted import plant_errors

    if fraction == 0:
        return split
    problem = split.train
    noisy = plant_errors(problem.gold, fraction, seed, lengths=np.diff(problem.starts), labels=range(len(split.labels)))
    gold = noisy.y.astype(np.int32)
    return split._replace(train=problem._replace(gold=gold, targets=gold))


@dataclass(frozen=True)
class Method:
    """One of Mancev's methods with the parameters he selected for a corpus (Table 5.1)."""

    name: str  #: sdm, pegasos, pegasos-wp
    C: float
    hinge_epochs: int
    T: int  #: epochs of a round of CCCP
    P: int  #: rounds
    reported: tuple[float, float] = (float("nan"), float("nan"))  #: his figures for hinge and ramp


N_CHUNKING, N_TAGGING = 7149, 45872  #: sentences in four of five folds: what his lambda were selected for

CHUNKING = (
    Method("sdm", 0.1, 100, 10, 4, (96.084, 96.076)),
    Method("pegasos", 1 / (N_CHUNKING * 2e-3), 30, 5, 7, (96.041, 96.072)),
    Method("pegasos-wp", 1 / (N_CHUNKING * 1e-3), 100, 10, 10, (96.082, 96.086)),
)
TAGGING = (
    Method("sdm", 0.1, 200, 20, 4, (95.292, 95.216)),
    Method("pegasos", 1 / (N_TAGGING * 1e-4), 200, 20, 10, (95.065, 95.079)),
    Method("pegasos-wp", 1 / (N_TAGGING * 2e-3), 200, 20, 10, (95.320, 95.319)),
)
METHODS = {"conll2000": CHUNKING, "brown": TAGGING}


def method_of(corpus: str, name: str) -> Method:
    """The method of that name with its parameters for a corpus."""
    return next(m for m in METHODS[corpus] if m.name == name)


def make_solver(name: str, loss: str, T: Any, average: bool = True) -> Any:
    """A solver of ours that does what Mancev's method does: Algorithm 1 has no cached passes. `average`: also in SDM."""
    from partwise.solvers import CCCP
    from partwise.solvers.pegasos import Pegasos
    from partwise.solvers.sdm import SDM

    inside = SDM(average=average, cached_passes=0) if name == "sdm" else Pegasos(project=name == "pegasos")
    return inside if loss == "hinge" else CCCP(inside, epochs=T)


def train(problem: Any, loss: Any, solver: Any, C: float, epochs: int, seed: int = 0, tol: float = 0.0, callbacks=()) -> Any:
    """`solve` for experiments: so many epochs, or until the tolerance; a run that was interrupted is none."""
    from partwise.solvers import solve

    result = solve(problem, loss, solver, C, max_epochs=epochs, tol=tol, seed=seed, evaluate="never", callbacks=callbacks)
    if result.status == "interrupted":
        raise KeyboardInterrupt
    return result


def every(k: int, note: Callable[[Any], Any]) -> Callable[[Any], None]:
    """A callback that calls `note` in the first epoch and every k epochs."""

    def callback(record: Any) -> None:
        if record.epoch == 1 or record.epoch % k == 0:
            note(record)

    return callback
