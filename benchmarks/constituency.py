"""Constituency trees: how quick the oracles are, and how well trees are learnt that a treebank of heads implies.

There is no free treebank of brackets, so the trees are those of an English treebank of dependencies (UD EWT; its data folder is
``$PARTWISE_DATA``): each head with all words below it is a bracket, labelled by the head's tag (`from_heads`).
Tags are given. Training sentences of up to 25 words whose arcs do not cross, all test sentences whose arcs do not. There is no
peer here: figures are ours alone, and not comparable with those of other treebanks. For a baseline, every sentence flat below
one bracket, with the right label.

Whether there should be a grammar is asked of a held-out third of 3,400 training trees: 12 to 45 words, with finer
tags than labels, and every parameter but `grammar` as it is by default (not with ``--short``).

Times are CPU milliseconds a sentence, the least of several calls, of random scores over 20 symbols, with 200 rules and without a
grammar.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.race import Options
from benchmarks.report import Report, Row
from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.structures.constituency.grammar import make_grammar, make_labels
from partwise.structures.constituency.problem import grammar_problem
from partwise.structures.dependency.problem import is_projective
from partwise.tasks.constituency.estimator import ConstituencyParser
from partwise.tasks.constituency.files import Constituent, from_heads
from partwise.tasks.constituency.scores import PUNCTUATION, bracket_scores
from partwise.tasks.dependency.files import read_treebank

SIZES = (10, 20, 40)
SYMBOLS, RULES = 20, 200
CHOICE, CHOICE_WORDS = 3400, (12, 45)  # trees with which kinds of parsers are compared, and their words
CALLS = 5  # the least of which counts
LONGEST = 25  # words of a training sentence
TRAINING = {True: 2000, False: 10000}  # sentences, with --short and without
FOLDER, PREFIX = "ud_english_ewt", "en_ewt-ud-"


@compiled_loop
def parse(problem, theta, y):
    """The best tree."""
    kernels.best(problem, 0, theta, y)


@compiled_loop
def sums(problem, theta, parts):
    """The probabilities of all parts."""
    kernels.expected(problem, 0, theta, parts)


def oracles(n: int, free: bool) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Both, for a sentence of n words with random scores: under a random grammar, or without one."""
    rng = np.random.default_rng(n)
    triples = [divmod(int(code), SYMBOLS) for code in rng.permutation(SYMBOLS**3)[:RULES]]
    rules, every = [(*divmod(a, SYMBOLS), b) for a, b in triples], range(SYMBOLS)
    tags = [0] * SYMBOLS
    grammar = make_labels(tags, every, every) if free else make_grammar(SYMBOLS, rules, tags, every)
    problem = grammar_problem(np.zeros((n * (n + 1) // 2, 1)), [n], grammar)
    theta, parts = np.zeros(kernels.n_parts(problem, 0)), np.zeros(kernels.n_parts(problem, 0))
    score(problem, rng.normal(size=kernels.n_weights(problem)), theta)
    theta[np.isfinite(theta)] += rng.normal(size=int(np.isfinite(theta).sum()))
    return lambda: parse(problem, theta, np.zeros(2 * n - 1, np.int32)), lambda: sums(problem, theta, parts)


@compiled_loop
def score(problem, w, theta):
    """Scores of parts."""
    kernels.score(problem, 0, w, theta)


def least(function: Callable[[], Any]) -> float:
    """CPU milliseconds of the quickest of several calls."""
    times = []
    for _ in range(CALLS):
        clock = time.process_time()
        function()
        times.append(time.process_time() - clock)
    return 1e3 * min(times)


def trees_of(path: Path, longest: int | None, first: int | None = None) -> list[Constituent]:
    """The trees of a treebank whose arcs do not cross."""
    treebank, found = read_treebank(path), []
    starts, tags = treebank.words.starts, treebank.words.cells[2]
    for i in range(len(treebank)):
        a, b = int(starts[i]), int(starts[i + 1])
        heads = treebank.heads[a:b]
        if (longest is None or b - a <= longest) and is_projective(heads):
            found.append(from_heads(treebank.forms(i), [tags[k] for k in treebank.words.codes[2, a:b]], heads.tolist()))
    return found[:first]


def fine_trees(path: Path, first: int) -> list[Constituent]:
    """Trees of middle length whose labels are coarse tags, and whose words have fine ones."""
    treebank, found = read_treebank(path), []
    starts, (coarse, fine) = treebank.words.starts, treebank.words.cells[2:4]

    def with_tags(tree: Constituent, tags: Iterator[str]) -> Constituent:
        return (
            Constituent(next(tags), tree.children)
            if tree.is_word
            else Constituent(tree.label, tuple(with_tags(child, tags) for child in tree.children))
        )

    for i in range(len(treebank)):
        a, b = int(starts[i]), int(starts[i + 1])
        heads, (labels, tags) = treebank.heads[a:b], treebank.words.codes[2:4, a:b]
        if CHOICE_WORDS[0] <= b - a <= CHOICE_WORDS[1] and is_projective(heads):
            tree = from_heads(treebank.forms(i), [coarse[k] for k in labels], heads.tolist())
            found.append(with_tags(tree, iter([fine[k] for k in tags])))
    return found[:first]


def choose(path: Path) -> list[Row]:
    """F1 and times of both kinds of parsers on a held-out third of training trees."""
    trees, rows = fine_trees(path, CHOICE), []
    held, train = trees[::3], [tree for i, tree in enumerate(trees) if i % 3]
    for grammar in ("trees", None):
        parser = ConstituencyParser(grammar=grammar, random_state=0)
        parser.fit(train[:20])  # compiled
        name, clock = f"held-out third, {'grammar' if grammar else 'no grammar'}", time.process_time()
        parser.fit(train)
        trained = time.process_time() - clock
        found = bracket_scores(held, parser.predict(held))
        clock = time.process_time()
        parser.fit(trees)
        everything = time.process_time() - clock
        rows += [
            Row(name, f"training on {len(train):,} trees", "s", trained, None, ""),
            Row(name, "F1 of brackets", "%", 100 * found.f1, None, ""),
            Row(name, "F1 without labels", "%", 100 * found.unlabelled_f1, None, ""),
            Row(name, f"training on all {len(trees):,} trees, {len(parser.grammar_.rules):,} rules", "s", everything, None, ""),
        ]
    return rows


def flat(tree: Constituent) -> Constituent:
    """The same words below one bracket."""
    if tree.is_word:
        return tree
    return Constituent(tree.label, tuple(Constituent(tag, (word,)) for word, tag in tree.leaves()))


def learn(train: list[Constituent], test: list[Constituent], grammar: str | None, base: Any) -> tuple[list[Row], str]:
    """A parser trained and tested: rows, and what is to be said of it; `base` are the scores of flat trees."""
    parser = ConstituencyParser(grammar=grammar, solver="dca", C=0.1, max_epochs=5)
    parser.fit(train[:50])  # compiled
    clock = time.process_time()
    parser.fit(train)
    trained = time.process_time() - clock
    clock = time.process_time()
    predicted = parser.predict(test)
    parsed = time.process_time() - clock
    words = sum(len(tree.leaves()) for tree in test)
    how = "grammar" if grammar else "no grammar"
    name = f"EWT, {len(train):,} trees, {how}"
    ours, without = bracket_scores(test, predicted), bracket_scores(test, predicted, ignore=PUNCTUATION)
    rows = [
        Row(name, "training", "s", trained, None, ""),
        Row(name, "parsing the test set", "ms a word", 1e3 * parsed / words, None, ""),
        Row(name, "F1 of brackets", "%", 100 * ours.f1, 100 * base.f1, "flat", higher_is_better=True),
        Row(name, "F1, no punctuation", "%", 100 * without.f1, None, ""),
        Row(name, "trees all right", "%", 100 * ours.exact, 100 * base.exact, "flat", higher_is_better=True),
    ]
    said = f"{how}: {len(parser.grammar_.symbols)} symbols, {len(parser.grammar_.rules)} rules"
    return rows, f"{said}; of {len(test):,} test trees {len(parser.unparsed_)} had none"


def run(options: Options) -> Report:
    """Times of the oracles; parsers with a grammar and without; ``--only`` knows oracles, test and held-out."""

    def wanted(part: str) -> bool:
        return not options.only or any(text in part for text in options.only)

    rows: list[Row] = []
    for n in SIZES if wanted("oracles") else ():
        for free in (False, True):
            best, total = oracles(n, free)
            best(), total()  # compiled
            for what, function in (("best tree", best), ("sums, probabilities", total)):
                name = f"{n} words, {'no grammar' if free else 'grammar'}"
                rows.append(Row(name, what, "ms", least(function), None, ""))
    folder = Path(os.environ.get("PARTWISE_DATA", "")) / FOLDER
    if not folder.is_dir():
        return Report("constituency", rows, notes=[f"no trees were learnt: there is no folder {FOLDER} in $PARTWISE_DATA"])
    notes: list[str] = []
    if wanted("test"):
        train = trees_of(folder / f"{PREFIX}train.conllu.gz", LONGEST, TRAINING[options.short])
        test = trees_of(folder / f"{PREFIX}test.conllu.gz", None)
        base = bracket_scores(test, [flat(tree) for tree in test])
        for grammar in ("trees", None):
            learnt, said = learn(train, test, grammar, base)
            rows += learnt
            notes.append(said)
    if not options.short and wanted("held-out"):
        rows += choose(folder / f"{PREFIX}train.conllu.gz")
    return Report("constituency", rows, notes=notes)
