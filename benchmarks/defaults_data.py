"""Training and held-out parts for the study of default settings, with right labels and with a fifth of them wrong.

All come from training files, or from training parts of corpora in one file, whose other parts are dropped. A data set is split
once for each seed; wrong labels are planted in the training part alone, and the held-out part is judged by its true labels.

What is wrong: a fifth of the *examples*, in all that they say. Sentences and pictures get random labels, classes are permuted
among the examples drawn, trees are random trees, structures of RNA are mirrored, alignments are shifted by `SHIFT` places, and
the relevance of a query's documents is permuted.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from benchmarks.choose_settings import brown
from benchmarks.constituency import trees_of
from partwise import (
    Aligner,
    ConstituencyParser,
    DependencyParser,
    GraphLabeler,
    Ranker,
    RnaFolder,
)
from partwise.datasets import data_folder, make_pictures, plant_errors, read_alignments, read_letor, read_rna, read_treebank
from partwise.features.rows import make_rows, spread_of
from partwise.losses import Loss
from partwise.metrics import span_f1
from partwise.objective import best_outputs
from partwise.solvers.dca import DCA
from partwise.structures import chain_problem, multiclass_problem
from partwise.tasks.constituency.files import Constituent, from_heads
from partwise.tasks.ranking.files import together
from partwise.text.columns import Columns, read_columns
from partwise.text.template_encoder import TemplateEncoder

SHIFT = 5  # places
SHORT = 25  # words: training sentences of parsers are no longer


@dataclass(frozen=True)
class Part:
    """What a candidate is trained on, and how it is judged."""

    problem: Any
    judge: Callable[[np.ndarray, Loss], float]  #: weights and the loss they minimise -> percent
    weight: np.ndarray | None = None  #: of the examples
    dtype: Any = np.float64
    spread: float | None = None  #: mean squared distance of the features from their mean, where they are numbers of any scale


@dataclass(frozen=True)
class Data:
    """A data set: `load` makes the training part with that share of wrong examples, and the judge, of a seed."""

    name: str
    task: str
    measure: str
    load: Callable[[float, int], Part]
    full: bool = False  #: whether dear candidates are tried, too


def halves(n: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers to train on and numbers to judge by, drawn at random."""
    order = np.random.default_rng((seed, n)).permutation(n)
    kept = round(share * n)
    return np.sort(order[:kept]), np.sort(order[kept:])


def drawn(n: int, share: float, seed: int) -> np.ndarray:
    """Which of n examples are to be wrong."""
    chosen = np.zeros(n, bool)
    chosen[np.random.default_rng((seed, 1)).choice(n, round(share * n), replace=False)] = True
    return chosen


# ---------------------------------------------------------------------------------------------------------------------
# Sequences and classes: packed here
# ---------------------------------------------------------------------------------------------------------------------


def tagging(read: Callable[[], Columns], templates: str, first: int, spans: bool) -> Callable[[float, int], Part]:
    """Sentences of a column file: the first so many, two thirds of them to train on."""

    def load(noise: float, seed: int) -> Part:
        columns = read()
        kept, held = halves(min(first, columns.n_sentences), 2 / 3, seed)
        train, rest = columns.take(kept), columns.take(held)
        encoder = TemplateEncoder(templates)
        names = columns.cells[-1]
        gold = train.codes[-1]
        if noise:
            gold = np.asarray(plant_errors(gold, noise, seed, lengths=np.diff(train.starts)).y, np.int32)
        problem = chain_problem(encoder.fit_transform(train), np.diff(train.starts), gold, len(names))
        other = chain_problem(encoder.transform(rest), np.diff(rest.starts), rest.codes[-1], len(names))
        labels = np.array(names, object)

        def judge(w: np.ndarray, loss: Loss) -> float:
            out, starts, _ = best_outputs(other, w, 1)
            if not spans:
                return 100.0 * float((out == rest.codes[-1]).mean())
            truth, answer = ([part.tolist() for part in np.split(labels[y], starts[1:-1])] for y in (rest.codes[-1], out))
            return 100.0 * span_f1(truth, answer)

        return Part(problem, judge)

    return load


def table(name: str, first: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Features as they are, and classes from 0, of a comma-separated file."""
    cells = np.loadtxt(data_folder(f"multiclass/{name}.csv.gz"), delimiter=",", max_rows=first)
    return np.ascontiguousarray(cells[:, 1:]), np.unique(cells[:, 0], return_inverse=True)[1]


def news20() -> tuple[Any, np.ndarray]:
    """The training part as tf-idf rows of unit length."""
    from sklearn.datasets import load_svmlight_file
    from sklearn.feature_extraction.text import TfidfTransformer

    x, y = load_svmlight_file(str(data_folder("news20/train.svm.gz")), zero_based=False)
    return TfidfTransformer().fit_transform(x), y.astype(np.int32) - 1


def classes(read: Callable[[], tuple[Any, np.ndarray]], most: int) -> Callable[[float, int], Part]:
    """Examples with one class each and a constant feature: at most so many, two thirds of them to train on."""

    def load(noise: float, seed: int) -> Part:
        from scipy.sparse import hstack, issparse

        x, y = read()
        one = np.ones((x.shape[0], 1))
        x = hstack([x, one], format="csr") if issparse(x) else np.hstack([x, one])
        some = np.sort(np.random.default_rng(0).permutation(len(y))[:most])
        x, y = x[some], y[some].astype(np.int32)
        kept, held = halves(len(y), 2 / 3, seed)
        gold = plant_errors(y[kept], noise, seed, how="shuffle").y if noise else y[kept]
        k = int(y.max()) + 1
        other = multiclass_problem(x[held], y[held], k)
        problem = multiclass_problem(x[kept], np.asarray(gold, np.int32), k)

        def judge(w: np.ndarray, loss: Loss) -> float:
            return 100.0 * float((best_outputs(other, w, 1)[0] == y[held]).mean())

        return Part(problem, judge, spread=spread_of(make_rows(x[kept])))

    return load


# ---------------------------------------------------------------------------------------------------------------------
# Other structures: packed by their estimators
# ---------------------------------------------------------------------------------------------------------------------


class Seen(DCA):
    """DCA that remembers what it was asked to solve: the problem as an estimator packs it."""

    tasks: ClassVar[list[Any]] = []

    def init(self, task, start=None):
        self.tasks.append(task)
        return super().init(task, start)


def by_estimator(estimator: Any, train: tuple, held: tuple) -> Part:
    """What the estimator solves in `fit`, and its own score on the held-out part."""
    estimator.set_params(solver=Seen(), loss="hinge", C=1.0, max_epochs=1, random_state=0)
    Seen.tasks.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(*train)
    task = Seen.tasks[-1]

    def judge(w: np.ndarray, loss: Loss) -> float:
        estimator.weights_ = w
        estimator.temperature_ = 1.0 / loss.beta if loss.is_smooth else None  # it decides how some of them answer
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return 100.0 * float(estimator.score(*held))

    return Part(task.problem, judge, task.C, task.dtype)


def random_heads(n: int, rng: np.random.Generator) -> list[int]:
    """A tree whose words join in random order, each below a random one of those before it."""
    order, heads = rng.permutation(n), [0] * n
    for k in range(1, n):
        heads[order[k]] = int(order[rng.integers(k)]) + 1
    return heads


def nested_heads(n: int, rng: np.random.Generator) -> list[int]:
    """A random tree whose arcs do not cross."""
    heads = [0] * n

    def fill(first: int, last: int, above: int) -> None:
        if first < last:
            root = int(rng.integers(first, last))
            heads[root] = above
            fill(first, root, root + 1)
            fill(root + 1, last, root + 1)

    fill(0, n, 0)
    return heads


def parsing(path: str, most: int, encoding: str = "utf-8") -> Callable[[float, int], Part]:
    """Sentences of a treebank that are short: the first so many of them. Heads alone are learnt."""

    def load(noise: float, seed: int) -> Part:
        bank = read_treebank(data_folder(path), encoding)
        starts, names = bank.words.starts, ("form", "lemma", "upos", "xpos", "feats")
        sentences, trees = [], []
        for i in np.flatnonzero(bank.lengths <= SHORT)[:most].tolist():
            words = range(starts[i], starts[i + 1])
            sentences.append([{n: bank.words.cells[c][bank.words.codes[c, t]] for c, n in enumerate(names)} for t in words])
            trees.append(bank.heads[starts[i] : starts[i + 1]].tolist())
        kept, held = halves(len(sentences), 2 / 3, seed)
        wrong, rng = drawn(len(kept), noise, seed), np.random.default_rng(seed)
        given = [random_heads(len(trees[i]), rng) if bad else trees[i] for i, bad in zip(kept, wrong, strict=True)]
        parser = DependencyParser(relations=False, hash_bits=18, n_jobs=1)
        return by_estimator(
            parser, ([sentences[i] for i in kept], given), ([sentences[i] for i in held], [trees[i] for i in held])
        )

    return load


def constituency(most: int, longest: int) -> Callable[[float, int], Part]:
    """Brackets implied by the heads of short English sentences, as in the benchmark of constituency trees."""

    def load(noise: float, seed: int) -> Part:
        trees = trees_of(data_folder("ud_english_ewt/en_ewt-ud-train.conllu.gz"), longest, most)
        kept, held = halves(len(trees), 2 / 3, seed)
        wrong, rng = drawn(len(kept), noise, seed), np.random.default_rng(seed)
        given = [mistaken(trees[i], rng) if bad else trees[i] for i, bad in zip(kept, wrong, strict=True)]
        return by_estimator(ConstituencyParser(n_jobs=1), (given,), ([trees[i] for i in held],))

    return load


def mistaken(tree: Constituent, rng: np.random.Generator) -> Constituent:
    """Another tree over the same words and tags."""
    words, tags = zip(*tree.leaves(), strict=True)
    return from_heads(words, tags, nested_heads(len(words), rng))


def folding(most: int, longest: int) -> Callable[[float, int], Part]:
    """Short RNA of all families, without that of fold 0."""

    def load(noise: float, seed: int) -> Part:
        data = read_rna(data_folder("rna_archiveii/archiveii.tsv.gz")).distinct()
        fine = [i for i in range(len(data)) if data.folds[i] != "0" and len(data.sequences[i]) <= longest]
        data = data.take(np.random.default_rng(0).permutation(fine)[:most])
        kept, held = halves(len(data), 2 / 3, seed)
        train, rest = data.take(kept), data.take(held)
        wrong: Any = zip(train.partners, drawn(len(kept), noise, seed), strict=True)
        partners = [mirrored(own) if bad else own for own, bad in wrong]
        return by_estimator(RnaFolder(n_jobs=1), (dataclasses.replace(train, partners=partners),), (rest,))

    return load


def mirrored(partners: np.ndarray) -> np.ndarray:
    """The structure of the sequence read backwards."""
    n = len(partners)
    back = partners[::-1]
    return np.where(back >= 0, n - 1 - back, -1)


def aligning(most: int, longest: int) -> Callable[[float, int], Part]:
    """Homologous regions of short proteins: at most so many pairs of a family, of every second family; families are split."""

    def load(noise: float, seed: int) -> Part:
        pairs = read_alignments(data_folder("protein_balibase3/pairs.tsv.gz"), aligned=True)
        family = np.array(pairs.fields["family"])
        fine = (np.array(pairs.fields["kind"]) == "BBS") & (pairs.lengths.max(axis=1) <= longest)
        names = sorted(set(family[fine].tolist()))[::2]
        order = np.random.default_rng(seed).permutation(len(names))
        parts: list[list[int]] = [[], []]
        for place, k in enumerate(order):
            parts[int(place >= 2 * len(names) / 3)] += np.flatnonzero(fine & (family == names[k]))[:most].tolist()
        train, rest = (pairs.take(part) for part in parts)
        wrong: Any = zip(train.partners or [], train.second, drawn(len(train), noise, seed), strict=True)
        partners = [shifted(own, len(other)) if bad else own for own, other, bad in wrong]
        aligner = Aligner(alphabet="ACDEFGHIKLMNPQRSTVWYX", wildcard="X", n_jobs=1)
        return by_estimator(aligner, (dataclasses.replace(train, partners=partners),), (rest,))

    return load


def shifted(partners: np.ndarray, other: int) -> np.ndarray:
    """Everything aligned with what stands `SHIFT` places later."""
    return np.where((partners >= 0) & (partners + SHIFT < other), partners + SHIFT, -1).astype(partners.dtype)


def ranking(noise: float, seed: int) -> Part:
    """OHSUMED: of the three subsets of the first fold's training part, one held out."""
    subsets = [read_letor(data_folder(f"ohsumed_letor/S{k}.txt.gz")) for k in (1, 2, 3)]
    rest = subsets.pop(seed % 3)
    train = together(subsets)
    relevance, queries = train.relevance.copy(), train.queries
    for own, bad in zip(queries, drawn(len(queries), noise, seed), strict=True):
        if bad:
            relevance[own] = np.random.default_rng(seed).permutation(relevance[own])
    return by_estimator(Ranker(n_jobs=1), (dataclasses.replace(train, relevance=relevance),), (rest,))


def pictures(noise: float, seed: int) -> Part:
    """Pictures of 14 x 14 pixels."""
    x, y = make_pictures(60, seed, size=(14, 14))
    given = y[:30].copy()
    for i in np.flatnonzero(drawn(30, noise, seed)).tolist():
        given[i] = np.random.default_rng((seed, i)).integers(0, 4, given[i].shape)
    return by_estimator(GraphLabeler(n_jobs=1), (x[:30], given), (x[30:], y[30:]))


def columns_of(path: str) -> Callable[[], Columns]:
    """A reader of that file."""
    return lambda: read_columns(data_folder(path))


def some_brown() -> Columns:
    """News of Brown, without every tenth sentence."""
    return brown("news")


DATA: dict[str, Data] = {
    d.name: d
    for d in (
        Data("conll2000", "tag", "F1", tagging(columns_of("conll2000/train.txt.gz"), "chunking", 3000, True), True),
        Data("conll2002-esp", "tag", "F1", tagging(columns_of("conll2002/esp.train.txt.gz"), "ner", 2250, True)),
        Data("conll2002-ned", "tag", "F1", tagging(columns_of("conll2002/ned.train.txt.gz"), "ner", 4500, True), True),
        Data("wnut17", "tag", "F1", tagging(columns_of("wnut17/train.txt.gz"), "ner", 3000, True)),
        Data("brown-news", "tag", "accuracy", tagging(some_brown, "words", 450, False)),
        Data("conll2000-all", "tag", "F1", tagging(columns_of("conll2000/train.txt.gz"), "chunking", 10**6, True)),
        Data("usps", "classify", "accuracy", classes(lambda: table("usps.train"), 3000), True),
        Data("letter", "classify", "accuracy", classes(lambda: table("letter", 15000), 4500)),
        Data("satimage", "classify", "accuracy", classes(lambda: table("satimage.train"), 4435)),
        Data("dna", "classify", "accuracy", classes(lambda: table("dna.train"), 2000), True),
        Data("news20", "classify", "accuracy", classes(news20, 4500)),
        Data("ewt", "parse", "UAS", parsing("ud_english_ewt/en_ewt-ud-train.conllu.gz", 750)),
        Data("basque", "parse", "UAS", parsing("conll2007/eus.train.conll.gz", 750, "latin-1")),
        Data("brackets", "constituency", "F1", constituency(300, 12)),
        Data("rna", "fold", "F1", folding(150, 130)),
        Data("balibase", "align", "recall", aligning(6, 130)),
        Data("ohsumed", "rank", "NDCG@10", ranking),
        Data("pictures", "graph", "accuracy", pictures),
    )
}
