"""A few queries with documents that a linear score can rank."""

from __future__ import annotations

import numpy as np

from partwise import Ranker


def documents(queries=6, n=5, seed=0):
    """Two features of three decide which is the best of a query and which are the next two; queries are not neighbours."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * n, 3))
    place = np.argsort(np.argsort(-(X @ [1.0, -1.0, 0.0]).reshape(n, queries), axis=0), axis=0).reshape(-1)
    return X, np.where(place == 0, 2, np.where(place < 3, 1, 0)), np.tile(np.arange(queries), n)


def fitted(**parameters):
    """A ranker of them."""
    X, y, groups = documents()
    return Ranker(max_epochs=20, random_state=0, **({"C": 3.0} | parameters)).fit(X, y, groups=groups)


def as_letor(X, y, groups, last=3):
    """As lines of a file."""
    lines = zip(X.tolist(), y, groups, strict=True)
    return "".join(
        f"{label} qid:{q} {' '.join(f'{f}:{v}' for f, v in enumerate(x[:last], 1))} #doc {i}\n"
        for i, (x, label, q) in enumerate(lines)
    )
