"""Cuts: the linear pieces a_j . w + b_j that bundle methods model a risk with, and the products they need of them.

The master problem (`qp`) wants the Gram matrix of the a_j. It is kept and grows by a row with each cut, so a new cut costs one
reading of the others. Cuts whose multiplier has been zero for long are dropped. When there are too many even so, the aggregate
sum_j alpha_j (a_j, b_j) takes the place of the lightest: the model keeps its minimum, and its minimiser.

Cost of a new cut: n d operations, n cuts of d weights. Memory: 8 n d bytes (cuts are kept in float64: rounded slopes would make
cuts that are not below a convex risk, and a bound that is none).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partwise.compilation import entry
from partwise.objective import BLOCK, in_threads, spans

FIRST_ROOM = 8  # cuts to have room for at first


@entry
def multiply(vectors, n, a, w, first, last):
    """(vectors[j] . a, vectors[j] . w) for j < n, over weights in [first, last)."""
    products = np.zeros((n, 2))
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        a_block, w_block = a[start:stop], w[start:stop]
        for j in range(n):
            row = vectors[j, start:stop]
            with_a, with_w = 0.0, 0.0
            for k in range(len(row)):
                with_a += row[k] * a_block[k]
                with_w += row[k] * w_block[k]
            products[j, 0] += with_a
            products[j, 1] += with_w
    return products


@entry
def combine(vectors, rows, c, out, first, last):
    """out = sum_k c[k] vectors[rows[k]], for weights in [first, last)."""
    for start in range(first, last, BLOCK):
        block = out[start : min(start + BLOCK, last)]
        block[:] = 0.0
        for k in range(len(rows)):
            row, factor = vectors[rows[k], start : start + len(block)], c[k]
            for i in range(len(block)):
                block[i] += factor * row[i]


@dataclass
class Cuts:
    """The cuts of a bundle; the first `n` rows of every array are in use.

    `at_best` are the products a_j . w_b with the best weights so far and `distance` how far from there each cut was taken:
    what methods for non-convex risks need. `anchor` is the cut that was taken at w_b.
    """

    vectors: np.ndarray  #: (room, d) slopes a_j
    gram: np.ndarray  #: (room, room) a_j . a_k
    numbers: np.ndarray  #: (room, 5): offset b_j, multiplier, a_j . w_b, distance, iterations without a multiplier
    n: int = 0
    anchor: int = -1

    @classmethod
    def empty(cls, d: int) -> Cuts:
        """No cuts, in d dimensions."""
        return cls(np.zeros((0, d)), np.zeros((0, 0)), np.zeros((0, 5)))

    @property
    def offset(self) -> np.ndarray:
        """b_j."""
        return self.numbers[: self.n, 0]

    @property
    def alpha(self) -> np.ndarray:
        """The multipliers of the last master problem; zero for cuts that came later."""
        return self.numbers[: self.n, 1]

    @property
    def at_best(self) -> np.ndarray:
        """a_j . w_b."""
        return self.numbers[: self.n, 2]

    @property
    def distance(self) -> np.ndarray:
        """How far w_b is from where the cut was taken: an upper bound, the length of the way that w_b has gone."""
        return self.numbers[: self.n, 3]

    @property
    def idle(self) -> np.ndarray:
        """Master problems in a row that gave the cut no multiplier."""
        return self.numbers[: self.n, 4]

    @property
    def products(self) -> np.ndarray:
        """The Gram matrix of the cuts in use."""
        return self.gram[: self.n, : self.n]

    def add(self, a: np.ndarray, b: float, w: np.ndarray, distance: float, n_jobs: int | None = None) -> np.ndarray:
        """A new cut a . w + b; returns the products of all cuts, the new one last, with the point `w`."""
        if self.n == len(self.vectors):
            self.make_room(max(FIRST_ROOM, 3 * self.n // 2))
        n = self.n
        self.vectors[n] = a
        found = in_threads(lambda span: multiply(self.vectors, n + 1, a, w, *span), spans(len(a)), n_jobs)
        products = np.sum(found, axis=0)
        self.gram[n, : n + 1] = self.gram[: n + 1, n] = products[:, 0]
        self.numbers[n] = (b, 0.0, 0.0, distance, 0.0)
        self.n += 1
        return products[:, 1]

    def make_room(self, room: int) -> None:
        """Space for `room` cuts."""
        n = self.n
        vectors, gram, numbers = np.zeros((room, self.vectors.shape[1])), np.zeros((room, room)), np.zeros((room, 5))
        vectors[:n], gram[:n, :n], numbers[:n] = self.vectors[:n], self.products, self.numbers[:n]
        self.vectors, self.gram, self.numbers = vectors, gram, numbers

    def minimiser(self, out: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """-sum_j alpha_j a_j, into `out`."""
        rows = np.flatnonzero(self.alpha)
        in_threads(lambda span: combine(self.vectors, rows, -self.alpha[rows], out, *span), spans(len(out)), n_jobs)
        return out

    def set_multipliers(self, alpha: np.ndarray) -> None:
        """The solution of a master problem."""
        self.alpha[:] = alpha
        self.idle[:] = np.where(alpha > 0.0, 0.0, self.idle + 1.0)

    def drop_idle(self, longest: int) -> None:
        """Forget cuts that had no multiplier for `longest` master problems, but not the anchor."""
        keep = self.idle < longest
        if self.anchor >= 0:
            keep[self.anchor] = True
        self.keep(np.flatnonzero(keep))

    def keep(self, rows: np.ndarray) -> None:
        """Only these cuts, in this order, which must be that of their numbers."""
        if len(rows) == self.n:
            return
        for to, row in enumerate(rows):  # no copy of the whole: to <= row
            if to != row:
                self.vectors[to] = self.vectors[row]
        self.gram[: len(rows), : len(rows)] = self.products[np.ix_(rows, rows)]
        self.numbers[: len(rows)] = self.numbers[rows]
        if self.anchor >= 0:
            self.anchor = int(np.searchsorted(rows, self.anchor))
        self.n = len(rows)

    def aggregate(self, most: int, n_jobs: int | None = None) -> None:
        """No more than `most` cuts: those without a multiplier go first, then the aggregate takes the place of the lightest."""
        if self.n <= most:
            return
        alpha = self.alpha.copy()
        weight = alpha.copy()
        if self.anchor >= 0:
            weight[self.anchor] = np.inf
        needed = int(np.count_nonzero(weight))
        if needed <= most:
            order = np.lexsort((self.idle, weight == 0.0))  # those with a multiplier, then those that lost it last
            self.keep(np.sort(order[:most]))
            return
        offset, at_best = float(alpha @ self.offset), float(alpha @ self.at_best)
        distance = float(np.sqrt(alpha @ np.square(self.distance)))
        with_all = self.products @ alpha
        vector = self.minimiser(np.zeros(self.vectors.shape[1]), n_jobs)
        rows = np.sort(np.argsort(-weight, kind="stable")[: most - 1])
        self.keep(rows)
        n = self.n  # there is room: cuts have just gone
        self.vectors[n] = -vector
        self.gram[n, :n] = self.gram[:n, n] = with_all[rows]
        self.gram[n, n] = alpha @ with_all
        self.numbers[n] = (offset, 1.0, at_best, distance, 0.0)
        self.numbers[:n, 1] = 0.0
        self.n += 1
