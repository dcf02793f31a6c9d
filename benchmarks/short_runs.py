"""Short runs: what a process costs when there is little to do, beside python-crfsuite; and which modules that goes to.

The models are those of `partwise train tag` with its defaults and of crfsuite's `pa`, of the first thousand sentences of
CoNLL-2000. One sentence and 4,000 tokens of the test text are labelled, each by a process of its own. Bytecode is on disk, as an
install leaves it, and so is compiled code.
"""

from __future__ import annotations

import gzip
import statistics
from pathlib import Path

from benchmarks.contenders import Contender, crfsuite, partwise
from benchmarks.datasets import CONLL2000
from benchmarks.processes import Cost, measure, python
from benchmarks.race import Options
from benchmarks.report import Report, Row, number

OURS, PEER = partwise("defaults"), crfsuite("pa", {"algorithm": "pa", "max_iterations": 15})
SENTENCES, TOKENS = 1000, 4000


def run(options: Options) -> Report:
    """CPU seconds and peak memory of whole processes."""
    if PEER.missing:
        raise ImportError(PEER.missing)
    train, texts = make_texts(options.folder)
    models = {one.name: options.folder / f"short.{one.name.replace(' ', '-')}.model" for one in (OURS, PEER)}
    trainings = {one.name: one.train(CONLL2000, train, models[one.name]) for one in (OURS, PEER)}
    commands = {("train tag, 1,000 sentences", name): command for name, command in trainings.items()}
    for what, text in texts.items():
        for one in (OURS, PEER):
            commands[what, one.name] = tagging(one, models[one.name], text, options.folder)
    for verb, words in (("--help", ["--help"]), ("predict --help", ["predict", "--help"])):
        commands[f"partwise {verb}", OURS.name] = python("partwise", *words)
    for command in commands.values():  # leaves bytecode and compiled code on disk, and the models
        checked(measure(command, options.environment, options.limit))
    found: dict[tuple[str, str], list[Cost]] = {}
    for _ in range(options.repeats):
        for key, command in commands.items():
            found.setdefault(key, []).append(checked(measure(command, options.environment, options.limit)))
    rows = []
    for what in dict.fromkeys(what for what, _ in commands):
        for unit, field in (("CPU s", "cpu"), ("peak MB", "peak_mb")):
            ours, peer = (
                statistics.median(getattr(cost, field) for cost in found[what, name]) if (what, name) in found else None
                for name in (OURS.name, PEER.name)
            )
            rows.append(Row("conll2000", what, unit, ours, peer, PEER.name if peer else "-"))
    rows += by_module(models[OURS.name], texts["predict, one sentence"], options)
    return Report("short_runs", rows)


def by_module(model: Path, text: Path, options: Options) -> list[Row]:
    """Where the CPU time of labelling one sentence goes."""
    command = python("benchmarks.module_times", "predict", model, text, "-o", options.folder / "out.txt", "--quiet")
    told = [checked(measure(command, options.environment, options.limit)).said for _ in range(options.repeats + 1)][1:]
    names = dict.fromkeys(name for one in told for name in one["milliseconds"])
    spent = {name: statistics.median(one["milliseconds"].get(name, 0.0) for one in told) for name in names}
    total = statistics.median(one["total"] for one in told)
    note = f"of {number(total)} ms, with a clock at every import"
    order = sorted(spent, key=lambda name: -spent[name])
    return [Row("one sentence", f"of which {name}", "CPU ms", spent[name], None, "-", note) for name in order if spent[name] >= 1]


def tagging(one: Contender, model: Path, text: Path, folder: Path) -> list[str]:
    """The command that labels a text."""
    return one.tag(CONLL2000, model, text, folder / "out.txt")


def checked(cost: Cost) -> Cost:
    """What a process cost, if it did what it should."""
    if cost.failure:
        raise RuntimeError(cost.failure)
    return cost


def make_texts(folder: Path) -> tuple[Path, dict[str, Path]]:
    """The beginning of the training text, and texts to label."""
    files = CONLL2000.load(folder)
    train = folder / "short.train.txt"
    train.write_text("\n\n".join(sentences_of(files.train)[:SENTENCES]) + "\n", encoding="utf-8")
    test, taken, tokens = sentences_of(files.test), 0, 0
    while tokens < TOKENS:
        tokens += test[taken].count("\n") + 1
        taken += 1
    texts = {"predict, one sentence": test[:1], f"predict, {TOKENS:,} tokens": test[:taken]}
    paths = {}
    for what, some in texts.items():
        paths[what] = folder / f"short.{len(some)}.txt"
        paths[what].write_text("\n\n".join(some) + "\n", encoding="utf-8")
    return train, paths


def sentences_of(path: Path) -> list[str]:
    """The sentences of a column file, each as its lines."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().strip("\n").split("\n\n")
