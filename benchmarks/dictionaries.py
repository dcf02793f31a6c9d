"""What a dictionary from outside is worth: names of the entities in texts that a model was not trained on, CoNLL-2002.

Models learn from the first half of a training file. The entities of the second half make a dictionary, four lists of names
without their sentences: what somebody might have written down about the same world. Tagger and segments have the same
templates, and all parameters are the defaults.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.race import Options
from benchmarks.report import Report, Row
from partwise import SegmentLabeler, SequenceLabeler
from partwise.datasets import read_segments
from partwise.features.given_labels import GivenLabels
from partwise.tasks.segments.data import SegmentedText, spans_of
from partwise.tasks.segments.scores import segment_counts

LANGUAGES = {"esp": "Spanish", "ned": "Dutch"}
MODELS = ("segments", "with their own phrases", "with the dictionary", "with both")


def run(options: Options) -> Report:
    """F1 of segments, single runs; with ``--short`` an eighth of each training file."""
    rows = []
    for code, language in LANGUAGES.items():
        train = read(f"{code}.train")
        n = len(train) // (8 if options.short else 1)
        half, rest = train.take(range(n // 2)), train.take(range(n // 2, n))
        names = names_of(rest)
        tests = {part: read(f"{code}.{part}") for part in ("testa", "testb")}
        tagger = SequenceLabeler(templates="phrases", random_state=0).fit(half.columns)
        peer = {part: f1(tagger, test) for part, test in tests.items()}
        for what in MODELS:
            clock = time.process_time()
            model = learner(what, names).fit(half)
            note = f"{len(half):,} sentences, {sum(map(len, names.values())):,} names, {time.process_time() - clock:.0f} CPU s"
            for part, test in tests.items():
                rows.append(Row(f"{language}, {part}", what, "F1", f1(model, test), peer[part], "tagger", note, True))
    return Report("dictionaries", rows)


def read(name: str) -> SegmentedText:
    """A file of CoNLL-2002, without the lines that begin a document."""
    return read_segments(Path(os.environ["PARTWISE_DATA"]) / "conll2002" / f"{name}.txt.gz", comment="-DOCSTART-")


def names_of(text: SegmentedText) -> dict[str, list[str]]:
    """The distinct entities of a text, by their label."""
    truth, columns, found = text.truth(), text.columns, {}
    words = [columns.cells[0][k] for k in columns.codes[0].tolist()]
    for label, a, b in spans_of(truth.codes, columns.starts, truth.distinct):
        found.setdefault(label, {})[" ".join(words[a:b])] = None
    return {label: list(own) for label, own in sorted(found.items())}


def learner(what: str, names: dict[str, list[str]]) -> SegmentLabeler:
    """One of `MODELS`."""
    own, given = what in ("with their own phrases", "with both"), what in ("with the dictionary", "with both")
    return SegmentLabeler(templates="phrases", learn_phrases=own, dictionary=names if given else None, random_state=0)


def f1(model: Any, test: SegmentedText) -> float:
    """Of the segments of a text."""
    if isinstance(model, SequenceLabeler):
        found = GivenLabels(np.asarray(model.predict_codes(test.columns), np.int32), model.classes_.tolist())
    else:
        found = model.predict_labels(test)
    return 100.0 * segment_counts(test.truth(), found, test.columns.starts).scores()["f1"]
