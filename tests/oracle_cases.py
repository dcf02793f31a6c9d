"""Tiny problems of every structure, and the brute-force twin that all oracles are compared with."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from hypothesis import strategies as st

from partwise import kernels
from partwise.features.rows import Binary, make_rows
from partwise.structures import (
    alignment_problem,
    chain_problem,
    folding_problem,
    multiclass_problem,
    pair_problem,
    ranking_problem,
    segment_problem,
    tree_problem,
)
from partwise.structures.alignment.pair_tables import pair_tables
from partwise.structures.chain.pairs import observed_pairs, with_pairs
from partwise.structures.constituency.grammar import make_grammar, make_labels
from partwise.structures.constituency.problem import grammar_problem

SCALES = [0.0, 1.0, 30.0, 300.0, 1e4, 1e6]


def random_rows(rng, n, d, kind):
    """n feature rows: dense, sparse real or sparse binary."""
    if kind == "dense":
        return rng.normal(size=(n, d))
    present = scipy.sparse.csr_matrix((rng.random((n, d)) < 0.6).astype(float))
    if kind == "sparse":
        present.data = rng.normal(size=present.nnz)
    return present


@st.composite
def multiclass_cases(draw):
    """A multiclass problem with random weights (problem, w)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k, n = draw(st.integers(1, 5)), 3
    kind = draw(st.sampled_from(["dense", "sparse", "binary"]))
    costs = rng.random((k, k)) * (1 - np.eye(k)) if draw(st.booleans()) else None
    allowed = rng.random((n, k)) < 0.7 if draw(st.booleans()) else None
    problem = multiclass_problem(random_rows(rng, n, 4, kind), rng.integers(0, k, n), k, costs, allowed)
    return problem, rng.normal(size=kernels.n_weights(problem)) * draw(st.sampled_from(SCALES))


@st.composite
def chain_cases(draw):
    """A chain problem of order 1 to 3 with random weights (problem, w); empty and one-token sequences included."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k, order = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(0, 4), min_size=2, max_size=2))
    n = sum(lengths)
    kind = draw(st.sampled_from(["dense", "sparse", "binary"]))
    costs = rng.random((k, k)) * (1 - np.eye(k)) if draw(st.booleans()) else None
    allowed = rng.random((n, k)) < 0.8 if draw(st.booleans()) else None
    symbols = [*range(k), None]
    forbidden = [(a, b) for a in symbols for b in symbols if rng.random() < 0.15] if draw(st.booleans()) else []
    problem = chain_problem(
        random_rows(rng, n, 4, kind),
        lengths,
        rng.integers(0, k, n),
        k,
        order=order,
        costs=costs,
        allowed=allowed,
        forbidden=forbidden,
        use_start=draw(st.booleans()),
        use_stop=draw(st.booleans()),
    )
    return problem, rng.normal(size=kernels.n_weights(problem)) * draw(st.sampled_from(SCALES))


@st.composite
def pair_chain_cases(draw):
    """A chain of order 1 whose label pairs have features, observed pairs or all of them."""
    problem, _ = draw(chain_cases().filter(lambda case: case[0].order == 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = make_rows(random_rows(rng, int(problem.starts[-1]), 3, "binary"))
    rows = rows if isinstance(rows, Binary) else Binary(rows.ptr, rows.index, rows.n_features)
    L = problem.n_labels
    every = np.arange(4) * L * L, np.tile(np.arange(L * L, dtype=np.int32), 3)
    table = observed_pairs(problem, rows) if draw(st.booleans()) else every
    problem = with_pairs(problem, rows, *table)
    return problem, rng.normal(size=kernels.n_weights(problem)) * draw(st.sampled_from(SCALES))


def random_codes(rng, lengths, K, limits):
    """Random segmentations of sequences of these lengths, end to end."""
    codes = []
    for T in lengths:
        own = []
        while len(own) < T:
            k = int(rng.integers(K))
            d = int(rng.integers(1, min(limits[k], T - len(own)) + 1))
            own += [K + k, *[k] * (d - 1)]
        codes += own
    return np.array(codes, np.int32)


@st.composite
def segment_cases(draw, partial=False):
    """Sequences to be segmented with random weights (problem, w): limits, spans with features, constraints; partial labels."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    K, lengths = draw(st.integers(1, 2)), draw(st.lists(st.integers(0, 4), min_size=2, max_size=2))
    n, limits = sum(lengths), rng.integers(1, 5, K)
    known = rng.random((3, 2 * K)) < 0.6
    gold = random_codes(rng, lengths, K, limits)
    if partial:
        known[0] = True  # nothing is known
        which = rng.integers(3, size=n)
        gold = np.where((rng.random(n) < 0.6) & known[which, gold], 2 * K + which, gold)
    ends = np.repeat(np.cumsum(lengths), lengths)
    spans = np.array([(a, d) for a in range(n) for d in range(1, ends[a] - a + 1) if rng.random() < 0.4]).reshape(-1, 2)
    rows = random_rows(rng, len(spans), 3, draw(st.sampled_from(["sparse", "binary"])))
    symbols = [*range(K), None]
    problem = segment_problem(
        random_rows(rng, n, 3, draw(st.sampled_from(["dense", "sparse", "binary"]))),
        lengths,
        gold,
        K,
        limits=limits,
        costs=draw(st.sampled_from(["tokens", "labels", "boundaries"])),
        allowed=rng.random((n, 2 * K)) < 0.8 if draw(st.booleans()) and not partial else None,
        forbidden=[(a, b) for a in symbols for b in symbols if rng.random() < 0.15] if draw(st.booleans()) else [],
        known=known if partial else None,
        spans=(spans[:, 0], spans[:, 1], rows) if draw(st.booleans()) else None,
        use_ends=draw(st.booleans()),
    )
    return problem, rng.normal(size=kernels.n_weights(problem)) * draw(st.sampled_from(SCALES))


@st.composite
def tree_cases(draw):
    """Sentences with random arc weights (problem, w): projective or not, one root or several, labels, forbidden arcs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_labels, lengths = draw(st.integers(1, 2)), draw(st.lists(st.integers(0, 3), min_size=2, max_size=2))
    arcs = sum(n * (n + 1) for n in lengths)
    kind = draw(st.sampled_from(["dense", "sparse", "binary"]))
    heads = np.concatenate([np.arange(n) for n in lengths])  # every word hangs from the one before: a tree of every kind
    problem = tree_problem(
        random_rows(rng, arcs, 4, kind),
        lengths,
        heads,
        rng.integers(0, n_labels, sum(lengths)),
        n_labels,
        allowed=rng.random(arcs) < 0.8 if draw(st.booleans()) else None,
        label_cost=draw(st.sampled_from([1.0, 0.25])),
        projective=draw(st.booleans()),
        single_root=draw(st.booleans()),
    )
    return problem, rng.normal(size=kernels.n_weights(problem)) * draw(st.sampled_from(SCALES))


def random_tree(rng, grammar, n, tags):
    """One of the trees that a sentence may have, or None."""
    problem = grammar_problem(np.zeros((n * (n + 1) // 2, 1)), [n], grammar, None, tags)
    everything = list(kernels.outputs(problem, 0))
    return everything[rng.integers(len(everything))] if everything else None


@st.composite
def grammar_cases(draw):
    """Sentences of up to four words under a random grammar, with random weights (problem, w): known tags, or none."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    S, lengths = draw(st.integers(1, 3)), draw(st.lists(st.integers(0, 4), min_size=2, max_size=2))
    triples = np.array([(a, b, c) for a in range(S) for b in range(S) for c in range(S)])
    rules = triples[rng.permutation(len(triples))[: rng.integers(1, min(7, len(triples)) + 1)]]
    grammar = make_grammar(S, rules, rng.integers(-1, 2, S), np.flatnonzero(rng.random(S) < 0.7))
    tags = np.where(rng.random(4) < 0.3, rng.integers(0, 2, 4), -1)
    trees = [random_tree(rng, grammar, n, tags[:n]) for n in lengths]
    lengths = [0 if tree is None else n for n, tree in zip(lengths, trees, strict=True)]
    trees = [np.zeros(0, np.int32) if tree is None else tree for tree in trees]
    x = random_rows(rng, sum(n * (n + 1) // 2 for n in lengths), 4, draw(st.sampled_from(["dense", "sparse", "binary"])))
    problem = grammar_problem(x, lengths, grammar, trees, np.concatenate([tags[:n] for n in lengths]))
    return problem, rng.normal(size=kernels.n_weights(problem)) * draw(st.sampled_from(SCALES))


@st.composite
def label_cases(draw):
    """Sentences of up to four words without a grammar, with random weights (problem, w): known tags, or none."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    S, lengths = draw(st.integers(1, 3)), draw(st.lists(st.integers(0, 4), min_size=2, max_size=2))
    labels = make_labels(rng.integers(-1, 2, S), np.flatnonzero(rng.random(S) < 0.7), np.flatnonzero(rng.random(S) < 0.7))
    tags = np.where(rng.random(4) < 0.3, rng.integers(0, 2, 4), -1)
    trees = [random_tree(rng, labels, n, tags[:n]) for n in lengths]
    lengths = [0 if tree is None else n for n, tree in zip(lengths, trees, strict=True)]
    trees = [np.zeros(0, np.int32) if tree is None else tree for tree in trees]
    x = random_rows(rng, sum(n * (n + 1) // 2 for n in lengths), 4, draw(st.sampled_from(["dense", "sparse", "binary"])))
    problem = grammar_problem(x, lengths, labels, trees, np.concatenate([tags[:n] for n in lengths]))
    return problem, rng.normal(size=kernels.n_weights(problem)) * draw(st.sampled_from(SCALES))


@st.composite
def alignment_cases(draw):
    """Pairs with random weights (problem, w): global or local, rows of features or tables, forbidden parts."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lengths = np.array(draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=2)))
    partners = [-np.ones(n, int) for n, _ in lengths]
    for own, (n, m) in zip(partners, lengths, strict=True):
        size = rng.integers(min(n, m) + 1)
        own[np.sort(rng.permutation(n)[:size])] = np.sort(rng.permutation(m)[:size])
    parts = int((lengths[:, 0] * lengths[:, 1] + 4 * lengths.sum(1)).sum())
    if draw(st.booleans()):
        first, second = (
            (rng.integers(0, 3, k.sum()), np.concatenate([[0], np.cumsum(k)])) for k in (lengths[:, 0], lengths[:, 1])
        )
        x = pair_tables(first, second, "abc", ("a.letter|b.letter", "a.p[1]|b.p[1]", "g.letter[-1]", "g"),
                        {"p": {"a": "1", "b": 2}}, draw(st.booleans()))  # fmt: skip
    else:
        x = random_rows(rng, parts, 4, "dense")
    problem = alignment_problem(
        x,
        lengths,
        np.concatenate(partners),
        counts=rng.random(int(lengths[:, 0].sum())) < 0.7 if draw(st.booleans()) else None,
        precision_weight=draw(st.sampled_from([0.0, 0.3, 1.0])),
        cost_scale=draw(st.sampled_from(["pairs", 10.0])),
        allowed=rng.random(parts) < 0.85 if draw(st.booleans()) else None,
        local=draw(st.booleans()),
    )
    return problem, rng.normal(size=kernels.n_weights(problem)) * draw(st.sampled_from(SCALES))


def random_structure(rng, sequence, pairs=("AU", "CG", "GU"), max_loop=30):
    """One of the structures that a sequence may have."""
    problem = folding_problem([sequence], pairs=pairs, max_loop=max_loop)
    everything = list(kernels.outputs(problem, 0))
    return everything[rng.integers(len(everything))]


@st.composite
def folding_cases(draw):
    """RNA sequences with random weights (problem, w): any pairs or canonical ones, unknown bases, loops of few bases."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pairs = draw(st.sampled_from([None, ("AU", "CG", "GU")]))
    lengths = (draw(st.integers(0, 11 if pairs is None else 14)), draw(st.integers(0, 7)))
    sequences = ["".join(rng.choice(list("ACGUN"), n, p=[0.24] * 4 + [0.04])) for n in lengths]
    max_loop = draw(st.sampled_from([30, 4, 2, 1, 0]))
    structures = [random_structure(rng, sequence, pairs, max_loop) for sequence in sequences]
    problem = folding_problem(sequences, structures, missed=0.7, wrong=rng.random(2), pairs=pairs, max_loop=max_loop)
    return problem, rng.normal(size=kernels.n_weights(problem)) * draw(st.sampled_from(SCALES))


@st.composite
def ranking_cases(draw):
    """Queries with random weights (problem, w): no, one, several documents, nothing relevant, ties in any order or as given."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    lengths, k = draw(st.lists(st.integers(0, 5), min_size=2, max_size=2)), draw(st.integers(1, 4))
    problem = ranking_problem(
        random_rows(rng, sum(lengths), 4, draw(st.sampled_from(["dense", "sparse", "binary"]))),
        lengths,
        rng.integers(0, draw(st.integers(1, 4)), sum(lengths)),
        k,
        draw(st.sampled_from(["log", "reciprocal", "linear", (2.0, 2.0, 1.0, 0.5)])),
        draw(st.sampled_from(["any", "first"])),
    )
    return problem, rng.normal(size=kernels.n_weights(problem)) * draw(st.sampled_from(SCALES))


@st.composite
def pair_cases(draw):
    """Pairs of documents with random weights (problem, w)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = random_rows(rng, 6, 4, draw(st.sampled_from(["dense", "sparse", "binary"])))
    problem = pair_problem(rows, rng.integers(0, 6, 3), rng.integers(0, 6, 3))
    return problem, rng.normal(size=kernels.n_weights(problem)) * draw(st.sampled_from(SCALES))


class Enumeration:
    """Every output of one example with its score, features and cost."""

    def __init__(self, problem, i, theta):
        self.outputs = list(kernels.outputs(problem, i))
        self.values = np.array([kernels.value_of(problem, i, theta, y) for y in self.outputs])
        self.features = np.zeros((len(self.outputs), kernels.n_weights(problem)))
        for y, f in zip(self.outputs, self.features, strict=True):
            kernels.add_features(problem, i, y, 1.0, f)
        self.costs = np.array([kernels.cost(problem, i, y) for y in self.outputs])
        self.best = self.values.max()

    @property
    def probabilities(self):
        """p(y) ~ exp(value)."""
        p = np.exp(self.values - self.best)
        return p / p.sum()

    @property
    def log_partition(self):
        """log sum_y exp(value)."""
        return self.best + np.log(np.exp(self.values - self.best).sum())
