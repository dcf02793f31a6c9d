"""How much can refusing win back? Judges who have learnt from true labels refuse wrong tokens; beside them the ramp as it comes.

A fifth of the tokens of Dutch entities (CoNLL-2002) get another label. The labels of each fifth of the sentences are judged by a
CRF that has learnt the *true* labels of the others, with the noise model of `suspects`; what it takes for more probably wrong
than right becomes unknown, and the hinge learns from the rest. Nobody can have such judges: what they do not win back cannot be
told from x and the noisy labels by models of this kind. *Recovered* is the share of what the errors cost the hinge, between the
hinge on all labels (0 %) and the hinge that knows which are wrong, and takes them for unknown (100 %).

``python -m benchmarks refusal_limit``: three seeds; --short: one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.race import Options
from benchmarks.report import Report, Row
from partwise.datasets import data_folder
from partwise.experiments.noisy_sets import NoisySet, noisy_set, sequences
from partwise.solvers.noise import dealt

FOLDS, SIZE, LEVEL = 5, 4000, 0.2


def refused_by_those_who_know(noisy: NoisySet, truth: list[list[Any]]) -> list[list[Any]]:
    """The labels with errors, unknown where judges of true labels do not believe them."""
    X, y = noisy.train
    part, found = dealt(noisy.n, FOLDS, 0), [list(labels) for labels in y]
    for fold in range(FOLDS):
        mine, others = np.flatnonzero(part == fold), np.flatnonzero(part != fold)
        judge = noisy.make(loss="crf").fit(X.take(others), [truth[i] for i in others.tolist()])
        said = judge.judge(X.take(mine), [y[i] for i in mine.tolist()], folds=None).found
        refused = said.evidence.disputed & (said.parts > 0.0)
        for k, i in enumerate(mine.tolist()):
            for t in np.flatnonzero(refused[said.evidence.starts[k] : said.evidence.starts[k + 1]]).tolist():
                found[i][t] = None
    return found


def recovered(name: str, seed: int) -> tuple[float, float]:
    """By the ramp, and by judges who know."""
    data = data_folder()
    noisy, truth = noisy_set(data, name, SIZE, "token", LEVEL, seed), sequences(data, name, SIZE)[1]
    hinge = noisy.score(noisy.make(loss="hinge").fit(*noisy.train))
    oracle = noisy.score(noisy.make(loss="hinge").fit(*noisy.without_errors))
    ramp = noisy.score(noisy.make(loss="ramp").fit(*noisy.train))
    known = noisy.score(noisy.make(loss="hinge").fit(noisy.train[0], refused_by_those_who_know(noisy, truth)))
    return tuple(100 * (score - hinge) / (oracle - hinge) for score in (ramp, known))  # type: ignore[return-value]


def run(options: Options) -> Report:
    """One row."""
    found = np.array([recovered("dutch", seed) for seed in ((0,) if options.short else (0, 1, 2))])
    ramp, known = found.mean(axis=0).tolist()
    note = "; ".join(f"seed {k}: {a:.0f}, {b:.0f}" for k, (a, b) in enumerate(found.tolist()))
    row = Row("dutch", "recovered of 20 % wrong tokens", "%", ramp, known, "judges of true labels", note, higher_is_better=True)
    return Report("refusal_limit", [row], notes=[f"recovered: ramp {ramp:.1f} %, judges of true labels {known:.1f} %; {note}"])
