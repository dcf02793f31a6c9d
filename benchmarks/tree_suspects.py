"""Planted errors in trees found again: heads of an English treebank, and brackets that its heads imply.

Heads: of the first sentences of UD EWT (``$PARTWISE_DATA``) 5 % of the words get a wrong head, near (grandparent or sibling) or
any other (`plant_head_errors`). Brackets: each head with all words below it is a bracket (see `constituency`); of 5 % of the
brackets the last child is raised: it becomes their sibling, which is a wrong attachment, and two or more wrong brackets at times.

All are judged in five folds with the default loss, and ranked by the probability of being wrong; average precision says how well
the ranking puts the planted ones first. Beside it the same models' probability of what is given, by the words alone, which is
what confident learning calls self-confidence. Treebanks have mistakes of their own: what is found of these counts as wrong here.

``python -m benchmarks tree_suspects``; --short: a fifth of the sentences, near heads only.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from benchmarks.constituency import trees_of
from benchmarks.race import Options
from benchmarks.report import Report, Row
from partwise.datasets import data_folder, plant_head_errors, read_treebank
from partwise.metrics import average_precision
from partwise.tasks.common.suspects import Judged
from partwise.tasks.constituency.estimator import ConstituencyParser
from partwise.tasks.constituency.files import Constituent
from partwise.tasks.constituency.suspects import chains
from partwise.tasks.dependency.estimator import DependencyParser

FILE = "ud_english_ewt/en_ewt-ud-train.conllu.gz"
SENTENCES, TREES, LONGEST = 1500, 600, 20
FRACTION, SEED = 0.05, 0


def heads(n: int, how: str, relations: bool) -> list[Row]:
    """Planted heads."""
    treebank = read_treebank(data_folder(FILE), first=n)
    starts, names = treebank.words.starts.tolist(), [treebank.names[k] for k in treebank.relations.tolist()]
    trees = [(treebank.heads[a:b].tolist(), names[a:b]) for a, b in zip(starts[:-1], starts[1:], strict=True)]
    planted = plant_head_errors(trees, FRACTION, SEED, how)
    started = time.perf_counter()
    judged = DependencyParser(relations=relations, random_state=SEED).judge(treebank, planted.y)
    told = f"{time.perf_counter() - started:.0f} s"
    name = f"EWT, {n:,} sentences"
    what = f"words, {how} heads{', relations judged too' if relations else ''}"
    return [
        row(name, what, planted.tokens, judged.found.parts, -judged.found.evidence.given, judged, judged.ranked_parts(), told),
        row(name, f"sentences, {how} heads", planted.changed, judged.found.examples, None, judged, judged.ranked(), told),
    ]


def brackets(n: int) -> list[Row]:
    """Planted brackets."""
    good = trees_of(data_folder(FILE), LONGEST, n)
    rng = np.random.default_rng(SEED)
    bad = [raised(tree, rng) for tree in good]
    started = time.perf_counter()
    judged = ConstituencyParser(random_state=SEED).judge(bad)
    told = f"{time.perf_counter() - started:.0f} s"
    there = [set(chains(tree)) for tree in good]
    tree = np.repeat(np.arange(len(good)), np.diff(judged.found.evidence.starts))
    wrong = np.array([bracket not in there[i] for i, bracket in zip(tree.tolist(), judged.brackets, strict=True)], bool)
    in_trees = np.array([set(chains(a)) != set(chains(b)) for a, b in zip(good, bad, strict=True)], bool)
    name = f"EWT, {n:,} trees"
    return [
        row(name, "brackets", wrong, judged.found.parts, -judged.found.evidence.given, judged, judged.ranked_parts(), told),
        row(name, "trees", in_trees, judged.found.examples, None, judged, judged.ranked(), told),
    ]


def raised(tree: Constituent, rng: Any) -> Constituent:
    """A tree in which the last child of some brackets is a sibling of theirs."""
    if tree.is_word:
        return tree
    children: list[Constituent] = []
    for child in tree.children:
        below = raised(child, rng)
        if not below.is_word and len(below.children) > 1 and rng.random() < FRACTION:
            children += [Constituent(below.label, below.children[:-1]), below.children[-1]]
        else:
            children.append(below)
    return Constituent(tree.label, tuple(children))


def row(name: str, what: str, wrong: np.ndarray, ours: Any, theirs: Any, judged: Judged, listed: list[int], told: str) -> Row:
    """Average precision, and what is listed."""
    base = None if theirs is None else 100 * average_precision(wrong, theirs)
    hits, n = int(wrong[listed].sum()), len(listed)
    noise = judged.found.noise
    note = (
        f"{told}; {int(wrong.sum()):,} of {len(wrong):,} wrong; {n:,} listed, {hits:,} of them rightly; trust {noise.trust:.1f}"
    )
    value = 100 * average_precision(wrong, ours)
    return Row(name, f"AP of {what}", "%", value, base, "self-confidence", note, higher_is_better=True)


def run(options: Options) -> Report:
    """All comparisons."""
    found, part = [], 5 if options.short else 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found += heads(SENTENCES // part, "near", False)
        if not options.short:
            found += heads(SENTENCES, "near", True)
            found += heads(SENTENCES, "uniform", False)
        found += brackets(TREES // part)
    notes = [f"{one.dataset}, {one.what}: {one.ours:.2f}; {one.note}" for one in found]
    return Report("tree_suspects", found, notes=notes)
