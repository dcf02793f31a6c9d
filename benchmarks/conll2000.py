"""CoNLL-2000 chunking beside python-crfsuite: training iterations, tagging, and memory.

Attributes are those of CRFsuite's chunking tutorial, encoded beforehand on both sides: for crfsuite they have been appended to a
trainer or built into ItemSequences, for us they are integers. Iteration times of crfsuite are those it logs itself (CPU seconds).
Memory is that of a process of its own, which this file is too: ``python -m benchmarks.conll2000 --child WHAT``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile

import numpy as np

from benchmarks.race import Options
from benchmarks.report import RESULTS, Report, Row
from benchmarks.timing import Stopwatch, child, peak_megabytes, side_by_side
from partwise.datasets import chunking_attributes, load_conll2000
from partwise.metrics import span_f1, token_accuracy

ENCODED = RESULTS / "conll2000.npz"
DENSE = {"feature.possible_states": 1, "feature.possible_transitions": 1}  # the model we have: a weight for every pair


def encode() -> None:
    """Number attributes and labels, once, and keep the integers."""
    vocabulary: dict[str, int] = {}
    labels: dict[str, int] = {}
    arrays = {}
    for part in ("train", "test"):
        ptr, index, lengths, gold = [0], [], [], []
        for sentence in load_conll2000(part):
            lengths.append(len(sentence))
            for token, attributes in zip(sentence, chunking_attributes(sentence), strict=True):
                for a in attributes:
                    j = vocabulary.setdefault(a, len(vocabulary)) if part == "train" else vocabulary.get(a)
                    if j is not None:
                        index.append(j)
                ptr.append(len(index))
                gold.append(labels.setdefault(token[2], len(labels)))
        arrays |= {
            f"{part}_ptr": np.array(ptr, np.int64),
            f"{part}_index": np.array(index, np.int32),
            f"{part}_lengths": np.array(lengths),
            f"{part}_gold": np.array(gold, np.int32),
        }
    RESULTS.mkdir(exist_ok=True)
    np.savez(ENCODED, n_features=len(vocabulary), labels=np.array(list(labels)), **arrays)


def our_problem(part: str):
    """The packed problem of one part, and the names of the labels."""
    from partwise.features.rows import Binary
    from partwise.structures import chain_problem

    data = np.load(ENCODED)
    rows = Binary(data[f"{part}_ptr"], data[f"{part}_index"], int(data["n_features"]))
    return chain_problem(rows, data[f"{part}_lengths"], data[f"{part}_gold"], len(data["labels"])), data["labels"]


def our_run(problem, loss: str, solver: str, epochs: int, dtype=np.float64):
    """Train without certificates; returns the result and the CPU seconds of every epoch but the first."""
    from partwise.solvers import solve

    watch = Stopwatch()
    options = {"C": 1.0, "tol": 0.0, "evaluate": "never", "n_jobs": 1}
    result = solve(problem, loss, solver, max_epochs=epochs, dtype=dtype, callbacks=[watch], **options)
    return result, watch.epochs


def crfsuite_trainer(algorithm: str, parameters: dict, keep: bool = False):
    """A trainer with the training part appended, sentence by sentence; `keep` holds on to the lists, as most programs do."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm=algorithm, params=parameters, verbose=False)
    kept = []
    for sentence in load_conll2000("train"):
        attributes = chunking_attributes(sentence)
        trainer.append(attributes, [token[2] for token in sentence])
        if keep:
            kept.append(attributes)
    return trainer, kept


def crfsuite_train(trainer, iterations: int) -> tuple[list[float], str]:
    """Seconds of every iteration as crfsuite logs them, and the model file."""
    trainer.set("max_iterations", iterations)
    model = tempfile.NamedTemporaryFile(suffix=".crfsuite", delete=False).name
    trainer.train(model)
    return [it["time"] for it in trainer.logparser.iterations], model


def crfsuite_tagger(model: str):
    """A tagger and the test part as prebuilt ItemSequences, with its labels."""
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    test = load_conll2000("test")
    return tagger, [pycrfsuite.ItemSequence(chunking_attributes(s)) for s in test], [[token[2] for token in s] for s in test]


def run(options: Options) -> Report:
    """All comparisons on this corpus."""
    from partwise.objective import best_outputs

    repeats = options.repeats
    if not ENCODED.exists():
        encode()
    train, labels = our_problem("train")
    test, _ = our_problem("test")
    found = []

    # one epoch of online training
    epochs = 15
    peer_times, model = crfsuite_train(crfsuite_trainer("pa", {})[0], epochs)
    peer = statistics.median(peer_times[1:])
    for dtype in (np.float64, np.float32):
        our_run(train, "hinge", "dca", 1, dtype)
        result, our_times = our_run(train, "hinge", "dca", epochs, dtype)
        ours = statistics.median(our_times)
        found.append(Row("conll2000", f"hinge, one DCA epoch ({np.dtype(dtype)})", "s", ours, peer, "crfsuite pa, an iteration"))
        if dtype == np.float64:
            w = result.w

    # tagging
    tagger, sequences, truth = crfsuite_tagger(model)
    tokens = sum(map(len, truth))
    best_outputs(test, w)
    single = w.astype(np.float32)
    best_outputs(test, single)
    double_time, single_time, peer = side_by_side(
        2 * repeats + 1,
        lambda: best_outputs(test, w),
        lambda: best_outputs(test, single),
        lambda: [tagger.tag(s) for s in sequences],
    )
    for dtype, ours in (("float64", double_time), ("float32", single_time)):
        speeds = tokens / ours, tokens / peer
        note = "encoded input on both sides"
        found.append(Row("conll2000", f"tagging ({dtype})", "tokens/s", *speeds, "crfsuite tagger", note, higher_is_better=True))
    out, starts, _ = best_outputs(test, w)
    predicted = [[str(labels[k]) for k in y] for y in np.split(out, starts[1:-1])]
    peer_predicted = [tagger.tag(s) for s in sequences]
    for what, metric in (("span F1", span_f1), ("token accuracy", token_accuracy)):
        note = f"{epochs} epochs each, the number at which pa did best on this test set: not a held-out choice"
        figures = 100 * metric(truth, predicted), 100 * metric(truth, peer_predicted)
        found.append(Row("conll2000", what, "%", *figures, "crfsuite pa", note, higher_is_better=True))

    # one iteration of L-BFGS on the same dense model
    iterations = 1 + repeats
    peer_times, _ = crfsuite_train(crfsuite_trainer("lbfgs", {"c2": 0.5, **DENSE})[0], iterations)
    peer = statistics.median(peer_times[1:])
    our_run(train, "crf", "lbfgs", 1)
    ours = statistics.median(our_run(train, "crf", "lbfgs", iterations)[1])
    found.append(Row("conll2000", "crf, one L-BFGS iteration", "s", ours, peer, "crfsuite lbfgs, all states + transitions"))

    # memory, each in a process of its own; ours runs twice because compiling would count the first time
    for what, mine, theirs in (
        ("peak memory, hinge epochs (float64)", "ours-dca", "pa"),
        ("peak memory, hinge epochs (float32)", "ours-dca32", "pa"),
        ("peak memory, crf L-BFGS", "ours-lbfgs", "lbfgs"),
        ("peak memory, tagging", "ours-tag", "tag"),
    ):
        ours = [child("-m", "benchmarks.conll2000", "--child", mine, "--model", model) for _ in range(2)][-1]
        streamed = child("-m", "benchmarks.conll2000", "--child", theirs, "--model", model)
        note = "ItemSequences kept, attributes not"
        if theirs != "tag":
            note = "attributes streamed into the peer, never kept"
            kept = child("-m", "benchmarks.conll2000", "--child", f"{theirs}-kept", "--model", model)
            note += f"; kept as Python lists: {kept:.0f} MB"
        found.append(Row("conll2000", what, "MB", ours, streamed, f"crfsuite {theirs}", note))
    os.unlink(model)
    return Report("conll2000", found)


def run_child(what: str, model: str) -> None:
    """Do one thing in this process and print its peak memory."""
    if what in ("ours-dca", "ours-dca32", "ours-lbfgs"):
        loss, solver = ("crf", "lbfgs") if what == "ours-lbfgs" else ("hinge", "dca")
        our_run(our_problem("train")[0], loss, solver, 3, np.float32 if what == "ours-dca32" else np.float64)
    elif what == "ours-tag":
        from partwise import kernels
        from partwise.objective import best_outputs

        problem, _ = our_problem("test")
        best_outputs(problem, np.full(kernels.n_weights(problem), 1e-3))  # zeros would not be resident
    elif what == "tag":
        tagger, sequences, _ = crfsuite_tagger(model)
        for s in sequences:
            tagger.tag(s)
    else:
        algorithm, _, kept = what.partition("-")
        parameters = {"c2": 0.5, **DENSE} if algorithm == "lbfgs" else {}
        trainer, lists = crfsuite_trainer(algorithm, parameters, keep=bool(kept))
        crfsuite_train(trainer, 3)
        del lists
    print(json.dumps(peak_megabytes()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", required=True)
    parser.add_argument("--model", default="")
    arguments = parser.parse_args()
    run_child(arguments.child, arguments.model)
