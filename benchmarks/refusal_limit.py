"""How much can refusing win back? Judges who have learnt from true labels refuse wrong tokens; beside them the ramp as it comes.

A fifth of the tokens of Dutch entities (CoNLL-2002) get another label, and a tenth of those of 3,000 sentences of CoNLL-2000. The
labels of each fifth of the sentences are judged by a CRF that has learnt the *true* labels of the others, with the noise model of
`suspects`; what it takes for more probably wrong than right becomes unknown, and the hinge learns from the rest. Nobody can have
such judges: what they do not win back cannot be told from x and the noisy labels by models of this kind. *Recovered* is the share
of what the errors cost the hinge, between the hinge on all labels (0 %) and the hinge that knows which are wrong, and takes them
for unknown (100 %).

``python -m benchmarks refusal_limit``: three seeds; --repeat 2: two; --short: one; --only dutch: one of the sets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.race import Options
from benchmarks.report import Report, Row
from partwise.datasets import data_folder
from partwise.experiments.noisy_sets import NoisySet, noisy_set, sequences
from partwise.solvers.noise import dealt

FOLDS = 5
SETS = {"dutch": (4000, 0.2), "chunking": (3000, 0.1)}  # sentences, and the share of their tokens that is wrong


def refused_by_those_who_know(noisy: NoisySet, truth: list[list[Any]]) -> list[list[Any]]:
    """The labels with errors, unknown where judges of true labels do not believe them."""
    X, y = noisy.train
    part, found = dealt(noisy.n, FOLDS, 0), [list(labels) for labels in y]
    for fold in range(FOLDS):
        mine, others = np.flatnonzero(part == fold), np.flatnonzero(part != fold)
        judge = noisy.make(loss="crf").fit(X.take(others), [truth[i] for i in others.tolist()])
        known = set(judge.classes_.tolist())
        for i in mine.tolist():  # what none of the others has is refused
            found[i] = [label if label in known else None for label in found[i]]
        said = judge.judge(X.take(mine), [found[i] for i in mine.tolist()], folds=None).found
        refused = said.evidence.disputed & (said.parts > 0.0)
        for k, i in enumerate(mine.tolist()):
            for t in np.flatnonzero(refused[said.evidence.starts[k] : said.evidence.starts[k + 1]]).tolist():
                found[i][t] = None
    return found


def recovered(name: str, seed: int) -> tuple[float, float]:
    """By the ramp, and by judges who know."""
    data, (size, level) = data_folder(), SETS[name]
    noisy, truth = noisy_set(data, name, size, "token", level, seed), sequences(data, name, size)[1]
    hinge = noisy.score(noisy.make(loss="hinge").fit(*noisy.train))
    oracle = noisy.score(noisy.make(loss="hinge").fit(*noisy.without_errors))
    ramp = noisy.score(noisy.make(loss="ramp").fit(*noisy.train))
    known = noisy.score(noisy.make(loss="hinge").fit(noisy.train[0], refused_by_those_who_know(noisy, truth)))
    return tuple(100 * (score - hinge) / (oracle - hinge) for score in (ramp, known))  # type: ignore[return-value]


def row(name: str, seeds: range) -> Row:
    """Means over the seeds."""
    found = np.array([recovered(name, seed) for seed in seeds])
    ramp, known = found.mean(axis=0).tolist()
    note = "; ".join(f"seed {k}: {a:.0f}, {b:.0f}" for k, (a, b) in enumerate(found.tolist()))
    what = f"recovered of {100 * SETS[name][1]:g} % wrong tokens"
    return Row(name, what, "%", ramp, known, "judges of true labels", note, higher_is_better=True)


def run(options: Options) -> Report:
    """A row for each set."""
    seeds = range(options.repeat or (1 if options.short else 3))
    rows = [row(name, seeds) for name in SETS if not options.only or name in options.only]
    notes = [
        f"{one.dataset}, {one.what}: ramp {one.ours:.1f} %, judges of true labels {one.peer:.1f} %; {one.note}" for one in rows
    ]
    return Report("refusal_limit", rows, notes=notes)
