"""What an L1 penalty is worth: how many weights are left, how large the file is, what that costs in accuracy and time.

    python -m benchmarks.sparse chunking      CoNLL-2000: crf, L2 and L1; C by F1 on a fifth of the training part
    python -m benchmarks.sparse letters       OCR words, fold 0: the L1-regularised structural SVM along C, beside L2
    python -m benchmarks.sparse crfsuite      500 sentences of CoNLL-2000: c1 of python-crfsuite and of partwise.crfsuite

The test part is looked at with the C that was chosen. Seconds are of CPU, compilation left out. One line per result.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from typing import Any

import numpy as np

from partwise.datasets.loaders import load_conll2000, load_ocr
from partwise.files.corpora import data_folder
from partwise.metrics import report_coded
from partwise.objective import best_outputs
from partwise.solvers import solve
from partwise.structures import chain_problem
from partwise.tasks.tagging.estimator import SequenceLabeler
from partwise.text.columns import Columns, read_columns

PENALTIES = {"L2": (0.0, (0.5, 1.0, 2.0)), "L1": (1.0, (1.0, 2.0, 5.0))}  # l1_ratio, and C to choose from
SENTENCES = 500  # for python-crfsuite with all possible states


def train(columns: Columns, C: float, l1_ratio: float, **more: Any) -> SequenceLabeler:
    """A chunker with the settings of ``partwise train tag``."""
    solver = "owlqn" if l1_ratio else "lbfgs"  # to the optimum, however large
    settings = {"templates": "chunking", "dtype": "float32", "random_state": 0, **more}
    return SequenceLabeler("crf", C=C, solver=solver, l1_ratio=l1_ratio, **settings).fit(columns)


def f1(model: SequenceLabeler, columns: Columns) -> float:
    """F1 of the chunks, in percent."""
    truth, codes = columns.labels(-1), model.predict_codes(columns)
    return 100.0 * report_coded(truth.codes, codes, columns.starts, truth.distinct, model.classes_.tolist()).to_dict()["f1"]


def chunking() -> None:
    """Choose C on a part of the training data; train on all of it; test."""
    data, test = (read_columns(data_folder(f"conll2000/{part}.txt.gz"), " ") for part in ("train", "test"))
    order = np.random.default_rng(0).permutation(data.n_sentences)
    held, kept = (data.take(np.sort(part)) for part in np.split(order, [data.n_sentences // 5]))
    train(kept.take(np.arange(50)), 1.0, 0.0, max_epochs=2), train(kept.take(np.arange(50)), 1.0, 1.0, max_epochs=2)
    for name, (l1_ratio, choices) in PENALTIES.items():
        scores = {C: f1(train(kept, C, l1_ratio), held) for C in choices}
        chosen = max(scores, key=lambda C: scores[C])
        model = train(data, chosen, l1_ratio)
        result = model.result_
        with tempfile.TemporaryDirectory() as folder:
            model.save(os.path.join(folder, "model"))
            size = os.path.getsize(os.path.join(folder, "model"))
        print(
            f"{name}: held-out F1 {', '.join(f'{value:.2f} (C={C:g})' for C, value in scores.items())}; C={chosen:g}: test F1 "
            f"{f1(model, test):.2f}, {result.n_nonzero:,} of {result.w.size:,} weights not zero, file {size / 1e6:.1f} MB, "
            f"{result.n_epochs} epochs, relative gap {result.gap / result.primal:.1e}, {result.cpu_seconds:.1f} s",
            flush=True,
        )


def letters() -> None:
    """Accuracy on nine folds of OCR after training on one."""
    (x, lengths, gold), (x_test, lengths_test, gold_test) = load_ocr([0]), load_ocr(range(1, 10))
    problem, test = chain_problem(x, lengths, gold, 26), chain_problem(x_test, lengths_test, None, 26)
    solve(problem, "hinge", C=0.01, max_epochs=1), solve(problem, "hinge", C=0.01, l1_ratio=1.0, max_epochs=1)
    cases = [(0.0, C) for C in (0.01, 0.1, 1.0)] + [(1.0, C) for C in (0.05, 0.1, 0.2, 0.5, 1.0)]
    for l1_ratio, C in cases:
        result = solve(problem, "hinge", C=C, l1_ratio=l1_ratio, tol=1e-2)
        right = np.mean(best_outputs(test, result.w)[0] == gold_test)
        print(
            f"{'L1' if l1_ratio else 'L2'} C={C:g}: accuracy {100 * right:.2f}, {result.n_nonzero:,} of {result.w.size:,} "
            f"weights not zero, relative gap {result.gap / result.primal:.1e}, {result.n_epochs} epochs, "
            f"{result.cpu_seconds:.1f} s",
            flush=True,
        )


def crfsuite() -> None:
    """The same c1 there and here, each stopping by its own rule."""
    import sklearn_crfsuite

    from partwise.crfsuite import CRF

    sentences = load_conll2000("train")[:SENTENCES]

    def attributes(sentence: list[tuple[str, ...]]) -> list[list[str]]:
        words, tags = ([""] + [row[k] for row in sentence] + [""] for k in (0, 1))
        places = range(1, len(words) - 1)
        return [
            [f"w{k}={words[t + k]}" for k in (-1, 0, 1)]
            + [f"p{k}={tags[t + k]}" for k in (-1, 0, 1)]
            + [f"pp={tags[t - 1]}|{tags[t]}"]
            for t in places
        ]

    X, y = [attributes(s) for s in sentences], [[row[2] for row in s] for s in sentences]
    dense = {"all_possible_states": True, "all_possible_transitions": True}
    CRF(c1=1.0, c2=0.0, max_iterations=2).fit(X[:20], y[:20])
    for c1 in (0.2, 1.0):
        for name, kind in (("python-crfsuite", sklearn_crfsuite.CRF), ("partwise", CRF)):
            clock = time.process_time()
            model = kind(c1=c1, c2=0.0, **dense).fit(X, y)
            seconds = time.process_time() - clock
            last = model.training_log_.last_iteration
            print(
                f"{name} c1={c1:g}: objective {last['loss']:.2f}, {last['active_features']:,} weights, "
                f"{last['num']} iterations, {seconds:.1f} s",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sparse", description=__doc__.splitlines()[0])
    parts = {"chunking": chunking, "letters": letters, "crfsuite": crfsuite}
    parser.add_argument("names", nargs="*", choices=[*parts, []], default=[], help="all by default")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in parser.parse_args().names or parts:
            parts[part]()
