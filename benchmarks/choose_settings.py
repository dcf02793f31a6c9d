"""How the settings in this repository were chosen: on held-out parts of the training data, never on a test set.

    python -m benchmarks.choose_settings conll2000 --losses hinge crf --solvers dca sgd -C 0.1 1 --epochs 5 10 15

Every combination is trained on most of the training part and judged on the rest: for CoNLL-2000 and Brown on several folds, each
a tenth of the sentences *in one piece* (neighbouring sentences share their names and phrases: held out one by one they flatter
models that learn by heart), for WNUT-17 and CoNLL-2002 on the development set that comes with them. Of Brown, every tenth
sentence is put away as test set first. One line per combination and number of epochs: F1 of spans (accuracy of tokens for
Brown) in percent, its standard deviation over folds, and the CPU seconds of training.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import statistics
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from partwise.files.corpora import data_folder
from partwise.metrics import span_f1
from partwise.objective import best_outputs
from partwise.solvers import SOLVERS, solve
from partwise.solvers.base import Solver
from partwise.structures import chain_problem
from partwise.text.columns import Columns, code_tokens, read_columns
from partwise.text.template_encoder import TemplateEncoder

TEMPLATES = {"conll2000": "chunking", "wnut17": "ner", "conll2002": "ner", "brown": "words", "brown-news": "words"}


def brown(category: str | None = None) -> Columns:
    """The training part of Brown, of one category or all: every tenth sentence, from the first, is left out as test set."""
    sentences = []
    with gzip.open(data_folder("brown/brown.tsv.gz"), "rt", encoding="utf-8") as lines:
        for i, line in enumerate(lines):
            kind, _, text = line.rstrip("\n").split("\t")
            if i % 10 and category in (None, kind):
                sentences.append([token.rsplit("_", 1) for token in text.split(" ")])
    return code_tokens(sentences)


def splits(dataset: str, n_folds: int) -> Iterator[tuple[Columns, Columns]]:
    """Training and held-out parts."""
    if dataset in ("wnut17", "conll2002"):
        names = ("train", "dev") if dataset == "wnut17" else ("esp.train", "esp.testa")
        train, held = (read_columns(data_folder(f"{dataset}/{name}.txt.gz")) for name in names)
        yield train, held
        return
    if dataset == "conll2000":
        columns = read_columns(data_folder("conll2000/train.txt.gz"))
    else:
        columns = brown("news" if dataset == "brown-news" else None)
    numbers = np.arange(columns.n_sentences)
    part = numbers * 10 // len(numbers)
    for fold in range(0, 10, 10 // n_folds):
        yield columns.take(numbers[part != fold]), columns.take(numbers[part == fold])


def pack(train: Columns, held: Columns, templates: str | list[str], min_count: int, order: int) -> tuple[Any, Any, list[str]]:
    """Both parts as packed problems, and the labels; a label that training never saw is one more."""
    encoder = TemplateEncoder(templates, min_count=min_count)
    labels = {label: k for k, label in enumerate(dict.fromkeys([*train.cells[-1], *held.cells[-1]]))}
    problems = []
    for columns, rows in ((train, encoder.fit_transform(train)), (held, encoder.transform(held))):
        gold = np.array([labels[cell] for cell in columns.cells[-1]], np.int32)[columns.codes[-1]]
        problems.append(chain_problem(rows, np.diff(columns.starts), gold, len(labels), order=order))
    return *problems, list(labels)


def quality(problem: Any, w: np.ndarray, labels: list[str], spans: bool) -> float:
    """F1 of spans or accuracy of tokens, in percent."""
    out, starts, _ = best_outputs(problem, w)
    if not spans:
        return 100.0 * float((out == problem.gold).mean())
    names = np.array(labels, object)
    truth, answer = (np.split(names[y], starts[1:-1]) for y in (problem.gold, out))
    return 100.0 * span_f1(truth, answer)


def learning_curve(train, held, labels, spans, options: dict[str, Any], epochs: list[int]) -> list[tuple[float, float, float]]:
    """Quality, CPU seconds of training and mean cost per token after each of `epochs`."""
    points: list[tuple[float, float, float]] = []
    spent, clock = 0.0, time.process_time()

    def look(record) -> None:
        nonlocal spent, clock
        spent += time.process_time() - clock
        if record.epoch in epochs:
            w = record.weights()
            out = best_outputs(held, w)[0]
            points.append((quality(held, w, labels, spans), spent, 100.0 * float((out != held.gold).mean())))
        clock = time.process_time()

    solve(train, max_epochs=max(epochs), tol=0.0, evaluate="never", callbacks=[look], **options)
    return points


def make_solver(text: str, average: bool) -> Solver:
    """``sgd``, or with parameters as in ``sgd:eta=0.1``."""
    name, _, rest = text.partition(":")
    parameters = {k: float(v) for k, v in (pair.split("=") for pair in rest.split(",") if pair)}
    solver = SOLVERS[name](**parameters)
    return solver if average or not hasattr(solver, "average") else type(solver)(**parameters, average=False)


def main() -> None:
    """Try everything that was asked for and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", choices=TEMPLATES)
    parser.add_argument("--folds", type=int, default=5, help="how many of the ten folds, where there is no development set")
    parser.add_argument("--losses", nargs="+", default=["hinge"])
    parser.add_argument("--solvers", nargs="+", default=["dca"])
    parser.add_argument("-C", nargs="+", type=float, default=[1.0])
    parser.add_argument("--epochs", nargs="+", type=int, default=[5, 10, 15, 20])
    parser.add_argument("--orders", nargs="+", type=int, default=[1])
    parser.add_argument("--min-count", nargs="+", type=int, default=[1])
    parser.add_argument("--templates", help="a ready-made set or a file; the corpus has its own")
    parser.add_argument("--add", nargs="+", default=[], help="templates besides those of the set")
    parser.add_argument("--last", action="store_true", help="the last weights instead of the average")
    parser.add_argument("--no-shuffle", action="store_true")
    parser.add_argument("--double", action="store_true", help="float64 weights")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", help="append one object per line to this file")
    arguments = parser.parse_args()

    templates: Any = arguments.templates or TEMPLATES[arguments.dataset]
    if arguments.add:
        templates = [template.text for template in TemplateEncoder(templates).templates] + arguments.add
    spans = not arguments.dataset.startswith("brown")
    for order, min_count in itertools.product(arguments.orders, arguments.min_count):
        folds = [pack(*parts, templates, min_count, order) for parts in splits(arguments.dataset, arguments.folds)]
        for loss, solver, C in itertools.product(arguments.losses, arguments.solvers, arguments.C):
            options = {
                "loss": loss,
                "solver": make_solver(solver, not arguments.last),
                "C": C,
                "shuffle": not arguments.no_shuffle,
                "seed": arguments.seed,
                "dtype": np.float64 if arguments.double else np.float32,
            }
            curves = [learning_curve(*fold, spans, options, arguments.epochs) for fold in folds]
            for epoch, points in zip(sorted(arguments.epochs), zip(*curves, strict=False), strict=False):
                figures = [point[0] for point in points]
                seconds = statistics.mean(point[1] for point in points)
                line = {
                    "dataset": arguments.dataset,
                    "loss": loss,
                    "solver": solver,
                    "C": C,
                    "order": order,
                    "min_count": min_count,
                    "epochs": epoch,
                    "quality": round(statistics.mean(figures), 3),
                    "deviation": round(statistics.stdev(figures), 3) if len(figures) > 1 else None,
                    "errors": round(statistics.mean(point[2] for point in points), 3),
                    "seconds": round(seconds, 2),
                    "folds": len(figures),
                    "average": not arguments.last,
                    "shuffle": not arguments.no_shuffle,
                    "seed": arguments.seed,
                    "templates": arguments.templates or "",
                    "add": arguments.add,
                }
                print(
                    f"{loss:15s} {solver:15s} C={C:<7g} order={order} min_count={min_count} epochs={epoch:<3d} "
                    f"{line['quality']:.2f} (+-{line['deviation'] or 0:.2f})  errors {line['errors']:.3f} %  {seconds:.2f} s",
                    flush=True,
                )
                if arguments.json:
                    with open(arguments.json, "a") as f:
                        f.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
