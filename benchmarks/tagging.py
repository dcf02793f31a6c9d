"""Labelling text: from a raw column file to the same with one more column, ``partwise predict`` beside python-crfsuite.

Both read, extract, tag and write. *Whole process* is all CPU time from its start; *without start-up* is that less the CPU time of
the same process on a file of one sentence, which imports the same libraries and loads the same model: nobody's own stopwatch is
asked. The text is the training and test text of CoNLL-2000 together, uncompressed; speed alone is measured on it.
"""

from __future__ import annotations

import gzip
import statistics
from pathlib import Path

from benchmarks.contenders import FAST, PA, Contender
from benchmarks.datasets import CONLL2000, Files
from benchmarks.processes import measure
from benchmarks.race import Options, trained
from benchmarks.report import Report, Row

TAGGERS = (FAST, PA)
SHORTEST = "one sentence"


def run(options: Options) -> Report:
    """Tokens per second of both."""
    files = CONLL2000.load(options.folder)
    texts = make_texts(files, options.folder)
    models = {contender.name: trained(contender, CONLL2000, options) for contender in TAGGERS}
    for contender in TAGGERS:  # compiled code of prediction
        tag(contender, models[contender.name], texts[SHORTEST], options)
    seconds: dict[tuple[str, str], list[float]] = {}
    for _ in range(options.repeats):
        for text, path in texts.items():
            for contender in TAGGERS:
                spent = tag(contender, models[contender.name], path, options)
                seconds.setdefault((text, contender.name), []).append(spent)
    rows = []
    for text, path in texts.items():
        tokens = count_tokens(path)
        whole = [seconds[text, contender.name] for contender in TAGGERS]
        if text == SHORTEST:
            rows.append(Row("conll2000", "start-up: one sentence", "CPU s", *map(statistics.median, whole), PA.name))
            continue
        start = [seconds[SHORTEST, contender.name] for contender in TAGGERS]
        for what, times in (
            ("whole process", list(map(statistics.median, whole))),
            ("without start-up", [above_start(a, b) for a, b in zip(whole, start, strict=True)]),
        ):
            speeds = [tokens / t if t else None for t in times]
            title = f"{text} ({tokens:,} tokens), {what}"
            note = " against ".join(f"{t:.3f}" if t else "not known: start-up varies too much" for t in times) + " CPU s"
            rows.append(Row("conll2000", title, "tokens/s", *speeds, PA.name, note, higher_is_better=True))
    return Report("tagging", rows)


def above_start(whole: list[float], start: list[float]) -> float | None:
    """Median seconds less those of start-up; None if the difference is not well above what start-up alone varies by.

    One round says nothing about how much that is.
    """
    difference = statistics.median(whole) - statistics.median(start)
    return difference if len(start) > 1 and difference > 2 * (max(start) - min(start)) else None


def tag(contender: Contender, model: Path, text: Path, options: Options) -> float:
    """CPU seconds of labelling `text` in a process of its own."""
    command = contender.tag(CONLL2000, model, text, options.folder / "tagged.txt")
    cost = measure(command, options.environment, options.limit)
    if cost.failure:
        raise RuntimeError(f"{contender.name}: {cost.failure}")
    return cost.cpu


def make_texts(files: Files, folder: Path) -> dict[str, Path]:
    """The texts to label, by what they are."""
    parts = []
    for path in (files.test, files.train):
        with gzip.open(path, "rt", encoding="utf-8") as f:
            parts.append(f.read().rstrip("\n") + "\n")
    contents = {
        SHORTEST: parts[0].partition("\n\n")[0] + "\n",
        "test text": parts[0],
        "test and training text": "\n".join(parts),
        "the same five times over": "\n".join(5 * parts),
    }
    texts = {}
    for name, content in contents.items():
        texts[name] = folder / f"{name.replace(' ', '-')}.txt"
        texts[name].write_text(content, encoding="utf-8")
    return texts


def count_tokens(path: Path) -> int:
    """Lines that are not blank."""
    with open(path, "rb") as f:
        return sum(1 for line in f if line.strip())
