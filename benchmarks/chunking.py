"""CoNLL-2000 chunking end to end: from the raw, gzipped column file to a saved model, CPU time and memory of the whole process.

We go through the command line, ``partwise train tag``; peers through the programs in `benchmarks.peers`, which read the same
file, make the same attributes (the 19 templates of CRFsuite's tutorial), train and save. Every model then tags the test file
in another process, and one piece of code scores what was written.
"""

from __future__ import annotations

from benchmarks.contenders import (
    ACCURATE,
    CHUNKERS,
    DEFAULTS,
    FAST,
    L2SGD,
    LBFGS_DENSE,
    PA,
    PA_STREAMED,
    SETTINGS_CHOSEN_BY,
    Contender,
)
from benchmarks.datasets import CONLL2000
from benchmarks.race import Options, Outcome, race
from benchmarks.report import Report, Row

# What we want to be, by how much, and from which F1 on it counts.
GOALS = (
    (DEFAULTS, PA, "cpu", 10, 93.6),
    (FAST, PA, "cpu", 5, 93.6),
    (FAST, L2SGD, "cpu", 10, 93.6),
    (ACCURATE, LBFGS_DENSE, "cpu", 20, 93.8),
    (FAST, PA, "peak_mb", 2, 93.6),
    (FAST, PA_STREAMED, "peak_mb", 2, 93.6),  # the frugal way to use it
    (ACCURATE, PA, "peak_mb", 2, 93.8),
    (ACCURATE, LBFGS_DENSE, "peak_mb", 2, 93.8),
)
UNITS = {"cpu": ("raw file to model", "CPU s"), "peak_mb": ("peak memory of training", "MB")}


def run(options: Options) -> Report:
    """All contenders, in turn."""
    outcomes = race(CONLL2000, CHUNKERS, options)
    chosen = f"our settings were chosen by: {SETTINGS_CHOSEN_BY}" if SETTINGS_CHOSEN_BY else "our settings are not chosen yet"
    notes = ["* settings that did best on this very test set, which flatters them", chosen]
    return Report("chunking", comparisons(outcomes), outcomes, notes=notes)


def comparisons(outcomes: list[Outcome]) -> list[Row]:
    """Our goals against what was measured."""
    rows = []
    for us, them, what, times, least in GOALS:
        ours, peer = (find(outcomes, contender) for contender in (us, them))
        if ours is None or peer is None or not (ours.quality and peer.quality):
            continue
        note = f"{us.name}: F1 {ours.quality['F1']:.2f} (goal {least}), {peer.quality['F1']:.2f} there; goal: {times} times"
        title, unit = UNITS[what]
        rows.append(Row("conll2000", title, unit, ours.median("train", what), peer.median("train", what), them.name, note))
    return rows


def find(outcomes: list[Outcome], contender: Contender) -> Outcome | None:
    """The outcome of a contender, if it took part."""
    return next((outcome for outcome in outcomes if outcome.contender == contender.name), None)
