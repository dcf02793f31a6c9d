"""What hidden states and partial labels are worth on real data.

    python -m benchmarks.latent multiclass        satimage, segment, usps: 1, 2 and 3 components per class
    python -m benchmarks.latent letters           handwritten words: 1, 2 and 3 states per letter
    python -m benchmarks.latent partial           CoNLL-2000 chunking with labels hidden from half of the tokens

C is chosen on a held-out part of the training data, for every loss and number of hidden states on its own; the test set is looked
at once for each seed, with that C. For `partial` nothing is chosen: C is 0.05, for the crf 1. One line per result.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from typing import Any

import numpy as np

from partwise import Classifier, SequenceLabeler
from partwise.datasets.loaders import load_ocr
from partwise.features.rows import take_rows
from partwise.files.corpora import data_folder
from partwise.metrics import span_scores_coded
from partwise.objective import best_outputs
from partwise.solvers import solve
from partwise.structures import chain_problem
from partwise.text.columns import read_columns
from partwise.text.template_encoder import TemplateEncoder

SOLVERS = {"hinge": ("sdm", "dca"), "crf": ("lbfgs",)}


def multiclass_data(name: str) -> tuple[np.ndarray, ...]:
    """x and y of training, held-out and test part; standardised on the first."""
    rng = np.random.default_rng(0)
    if name == "segment":
        table = np.loadtxt(data_folder("multiclass/segment.csv.gz"), delimiter=",")
        order = rng.permutation(len(table))
        train, test = table[order[: 2 * len(table) // 3]], table[order[2 * len(table) // 3 :]]
    else:
        train, test = (np.loadtxt(data_folder(f"multiclass/{name}.{part}.csv.gz"), delimiter=",") for part in ("train", "test"))
    order = rng.permutation(len(train))
    held, train = train[order[: len(train) // 5]], train[order[len(train) // 5 :]]
    mean, scale = train[:, 1:].mean(0), train[:, 1:].std(0)
    scale[scale == 0] = 1.0
    scale *= np.sqrt(train.shape[1] - 1)  # rows of about unit length
    return tuple(part for table in (train, held, test) for part in ((table[:, 1:] - mean) / scale, table[:, 0].astype(int)))


def letters() -> list[tuple[list[np.ndarray], list[np.ndarray]]]:
    """Words, as matrices of pixels and labels: folds 0-3 to train on, 4 held out, 5-9 to test."""
    parts = []
    for folds in (range(4), (4,), range(5, 10)):
        pixels, lengths, y = load_ocr(folds)
        ends = np.cumsum(lengths)[:-1]
        parts.append((np.split(pixels, ends), np.split(y, ends)))
    return parts


def compare(name: str, make: Any, train: Any, held: Any, test: Any, Cs: list[float], arguments: Any) -> None:
    """Accuracy of 1 and more hidden states for every loss, C by the held-out part."""
    seeds = arguments.seeds
    for loss, hidden in itertools.product(SOLVERS, range(1, arguments.most + 1)):
        for solver in [one for one in SOLVERS[loss] if one in arguments.solvers]:
            begun = time.perf_counter()
            models = {
                (C, seed): make(loss=loss, solver=solver, hidden=hidden, C=C, random_state=seed).fit(*train)
                for C in Cs
                for seed in range(seeds if hidden > 1 else 1)
            }
            seconds = (time.perf_counter() - begun) / len(models)
            on_held = {key: model.score(*held) for key, model in models.items()}
            means = {C: np.mean([value for (c, _), value in on_held.items() if c == C]) for C in Cs}
            C = max(means, key=lambda C: means[C])
            on_test = [100 * models[c, seed].score(*test) for c, seed in models if c == C]
            best = models[max((key for key in models if key[0] == C), key=lambda key: on_held[key])]
            chosen = 100 * best.score(*test)
            print(
                f"{name:9} {loss:6} {solver:6} hidden {hidden}  C {C:<5g} held out {100 * means[C]:.2f}  "
                f"test {np.mean(on_test):.2f} ({min(on_test):.2f} to {max(on_test):.2f}; best seed by held-out {chosen:.2f})  "
                f"objective {best.result_.primal:.5g}  {seconds:.1f} s a model",
                flush=True,
            )


def partial(seeds: int, share: float = 0.5) -> None:
    """Chunk F1 on the test set after training with labels hidden at random."""
    train, test = (read_columns(data_folder(f"conll2000/{part}.txt.gz"), " ") for part in ("train", "test"))
    given, truth = train.labels(), test.labels()
    names, n_labels = given.distinct, len(given.distinct)
    encoder = TemplateEncoder("chunking")
    rows, test_rows = encoder.fit_transform(train), encoder.transform(test)
    lengths, gold = np.diff(train.starts), given.codes
    everything = {"known": np.ones((1, n_labels), bool)}
    test_problem = chain_problem(test_rows, np.diff(test.starts), n_labels=n_labels)

    def report(what: str, problem: Any, loss: str, solver: str, seed: int) -> None:
        settings: dict[str, Any] = {"C": 1.0 if loss == "crf" else 0.05, "dtype": np.float32, "evaluate": "primal"}
        result = solve(problem, loss, solver, seed=seed, max_epochs=10 if solver == "dca" else None, **settings)
        answers = best_outputs(test_problem, result.w)[0]
        scores = span_scores_coded(truth.codes, answers, test.starts, truth.distinct, names)
        print(
            f"{what:34} {loss:6} {solver:6} seed {seed}  F1 {100 * scores.f1:.2f}  objective {result.primal:.5g}  "
            f"{result.n_epochs} epochs  {result.seconds:.1f} s",
            flush=True,
        )

    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        hide = rng.random(len(gold)) < share
        some = np.where(hide, n_labels, gold)
        half = rng.permutation(len(lengths))[: len(lengths) // 2]
        tokens = np.concatenate([np.arange(train.starts[i], train.starts[i + 1]) for i in half])
        seen = np.flatnonzero(~hide)
        runs = np.flatnonzero(np.diff(seen, prepend=-2) > 1)
        sentence = np.repeat(np.arange(len(lengths)), lengths)[seen]
        cuts = np.union1d(runs, np.flatnonzero(np.diff(sentence, prepend=-1)))
        whole = [i for i in range(len(lengths)) if not hide[train.starts[i] : train.starts[i + 1]].any()]
        of_whole = np.concatenate([np.arange(train.starts[i], train.starts[i + 1]) for i in whole])
        problems = {
            "all labels": chain_problem(rows, lengths, gold, n_labels),
            "half of the labels hidden": chain_problem(rows, lengths, some, n_labels, **everything),
            "half of the sentences left out": chain_problem(take_rows(rows, tokens), lengths[half], gold[tokens], n_labels),
            "runs of labelled tokens": chain_problem(take_rows(rows, seen), np.diff([*cuts, len(seen)]), gold[seen], n_labels),
            "O for hidden labels": chain_problem(rows, lengths, np.where(hide, names.index("O"), gold), n_labels),
            f"the {len(whole)} sentences without holes": chain_problem(
                take_rows(rows, of_whole), lengths[whole], gold[of_whole], n_labels
            ),
        }
        for what, problem in problems.items():
            for loss, solver in (("hinge", "dca"), ("hinge", "sdm")):
                report(what, problem, loss, solver, seed)
        if seed == 0:
            for what in ("all labels", "half of the labels hidden"):
                report(what, problems[what], "crf", "lbfgs", seed)


def main() -> None:
    """Run one of the comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["multiclass", "letters", "partial"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--most", type=int, default=3, help="hidden states at most")
    parser.add_argument("--solvers", nargs="+", default=["sdm", "dca", "lbfgs"])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.what == "partial":
        partial(arguments.seeds)
    elif arguments.what == "letters":
        train, held, test = letters()
        compare("letters", SequenceLabeler, train, held, test, [0.03, 0.3], arguments)
    else:
        for name in ("satimage", "segment", "usps"):
            x, y, *rest = multiclass_data(name)
            compare(name, Classifier, (x, y), rest[:2], rest[2:], [0.1, 1.0, 10.0, 100.0], arguments)


if __name__ == "__main__":
    main()
