"""Planted errors found again in foldings, alignments, rankings and pictures.

- ArchiveII: short tRNA, 5S and SRP RNA, a tenth of which get the structure of another one (`plant_structures`);
- BAliBASE 3, RV12: homologous regions, a tenth of which get a stretch of places shifted (`plant_shifts`);
- OHSUMED, all 106 queries: a tenth of the documents get another relevance, or a tenth of the queries a shuffled one;
- pictures that are drawn here (`make_pictures`): 5 % of the pixels get another label.

All are judged in five folds with default losses, but for rankings by pairs with ``crf``; average precision says how well the
ranking by the probability of being wrong puts the planted ones first. Beside it that of the same models' probability of what is
given, by the features alone; of examples, the mean of its logarithm over their parts. Corpora have mistakes of their own, which
count as wrong here.

``python -m benchmarks part_suspects``; --short: RNA and alignments only.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.race import Options
from benchmarks.report import Report, Row
from partwise.datasets import (
    data_folder,
    load_ohsumed,
    make_pictures,
    plant_errors,
    plant_shifts,
    plant_shuffles,
    plant_structures,
    read_alignments,
    read_rna,
    write_dot_bracket,
)
from partwise.metrics import average_precision
from partwise.tasks.alignment.estimator import Aligner
from partwise.tasks.common.suspects import Judged
from partwise.tasks.folding.estimator import RnaFolder
from partwise.tasks.graphs.estimator import GraphLabeler
from partwise.tasks.ranking.estimator import Ranker
from partwise.tasks.ranking.files import together

FAMILIES, LONGEST = {"tRNA": 60, "5s": 60, "srp": 30}, 130
PAIRS, LONGEST_PAIR = 120, 160
PICTURES, SIZE = 12, (12, 12)
SEED = 0


def rna() -> list[Row]:
    """Structures of others."""
    data, rng = read_rna(data_folder("rna_archiveii/archiveii.tsv.gz")).distinct(), np.random.default_rng(SEED)
    short = [(i, family) for i, family in enumerate(data.families) if data.lengths[i] <= LONGEST]
    chosen = [rng.permutation([i for i, family in short if family == name])[:n] for name, n in FAMILIES.items()]
    some = data.take(np.concatenate(chosen).tolist())
    planted = plant_structures([write_dot_bracket(p) for p in some.partners if p is not None], 0.1, SEED)
    name = f"ArchiveII, {len(some)} sequences"
    return rows(name, "structures", "bases", planted, lambda: RnaFolder(random_state=SEED).judge(some.sequences, planted.y))


def alignments() -> list[Row]:
    """Shifted stretches."""
    data = read_alignments(data_folder("protein_balibase3/pairs.tsv.gz"))
    kinds = zip(data.fields["set"], data.fields["kind"], data.lengths.max(axis=1).tolist(), strict=True)
    fine = [i for i, (group, kind, n) in enumerate(kinds) if (group, kind) == ("RV12", "BBS") and n <= LONGEST_PAIR]
    some = data.take(np.random.default_rng(SEED).permutation(fine)[:PAIRS])
    planted = plant_shifts(some.partners or [], some.lengths[:, 1], 0.1, SEED)
    pairs = list(zip(some.first, some.second, strict=True))
    name = f"BAliBASE, {len(some)} pairs"
    return rows(name, "alignments", "places", planted, lambda: Aligner(random_state=SEED).judge(pairs, planted.y))


def rankings() -> list[Row]:
    """Relevance of documents, and of queries."""
    data = together(list(load_ohsumed(1)))
    name, order = f"OHSUMED, {len(data.queries)} queries", np.concatenate(data.queries)

    def judge(y: Any) -> Judged:
        return Ranker(objective="pairwise", loss="crf", random_state=SEED).judge(data.X, y, qid=data.qid, folds=5)

    documents, queries = plant_errors(data.relevance, 0.1, SEED, "token"), plant_shuffles(data.relevance, data.qid, 0.1, SEED)
    documents = documents._replace(tokens=documents.tokens[order])
    found = rows(name, "", "documents", documents, lambda: judge(documents.y))
    return [*found, *rows(name, "shuffled queries", "", queries, lambda: judge(queries.y))]


def pictures() -> list[Row]:
    """Pixels."""
    X, y = make_pictures(PICTURES, SEED, size=SIZE)
    planted = plant_errors([list(one.ravel()) for one in y], 0.05, SEED, "token")
    labels = [np.array(one).reshape(SIZE) for one in planted.y]
    name = f"{PICTURES} pictures of {SIZE[0]} x {SIZE[1]}"
    return rows(name, "", "pixels", planted, lambda: GraphLabeler(random_state=SEED).judge(X, labels))


def rows(name: str, examples: str, parts: str, planted: Any, judge: Any) -> list[Row]:
    """Average precision of examples and of parts, of those that have a name."""
    started = time.perf_counter()
    judged: Judged = judge()
    told = f"{time.perf_counter() - started:.0f} s"
    evidence = judged.found.evidence
    logs = np.log(np.maximum(evidence.given, 1e-30))
    means = np.add.reduceat(logs, evidence.starts[:-1]) / np.diff(evidence.starts)
    made = []
    if examples:
        made.append(row(name, examples, planted.changed, judged.found.examples, -means, judged.ranked(), told))
    if parts:
        made.append(row(name, parts, planted.tokens, judged.found.parts, -evidence.given, judged.ranked_parts(), told))
    return made


def row(name: str, what: str, wrong: np.ndarray, ours: np.ndarray, plain: np.ndarray, listed: list[int], told: str) -> Row:
    """Average precision, and what is listed."""
    hits = int(wrong[listed].sum())
    note = f"{told}; {int(wrong.sum()):,} of {len(wrong):,} wrong; {len(listed):,} listed, {hits:,} of them rightly"
    value, peer = (100 * average_precision(wrong, ranking) for ranking in (ours, plain))
    return Row(name, f"AP of {what}", "%", value, peer, "probability of what is given", note, higher_is_better=True)


def run(options: Options) -> Report:
    """All comparisons."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [
            one for make in ((rna, alignments) if options.short else (rna, alignments, rankings, pictures)) for one in make()
        ]
    notes = [f"{one.dataset}, {one.what}: {one.ours:.2f}; {one.note}" for one in found]
    return Report("part_suspects", found, notes=notes)
