"""Tiny problems of every structure, and the brute-force twin that all oracles are compared with."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from hypothesis import strategies as st

from partwise import kernels
from partwise.structures import chain_problem, multiclass_problem, tree_problem

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
