"""Cuts: the linear pieces a_j . w + b_j that bundle methods model a risk with, and the products they need of them.

The master problem (`qp`) wants the Gram matrix of the a_j. It is kept and grows by a row with each cut, so a new cut costs one
reading of the others. Cuts whose multiplier has been zero for long are dropped. When there are too many even so, the aggregate
sum_j alpha_j (a_j, b_j) takes the place of the lightest: the model keeps its minimum, and its minimiser.

**Slopes take the smallest form that loses nothing**, each by itself:

    entries other than zero  k of d     sparse, an int32 for its place and the value      4 k + 4 k or 8 k bytes
    most of them             k > d / 2  dense                                             4 d or 8 d bytes

A value takes 4 bytes where the slope is a whole multiple of `scale` in every entry, as subgradients of the hinge are on binary
features, with scale = C. There float32 holds the multiple without error (below 2^24) - even without the rounding errors of a sum
of many C, which leave 0.1 + 0.2 - 0.3 where there should be nothing. All other slopes keep their float64: rounded ones would make
cuts that are not below a convex risk, and a bound that is none.

They lie end to end in three arrays (places, small and large values), which grow in place; what dropped cuts leave behind is
reused when an eighth of an array is empty.

Cost of a new cut: one reading of all of them, block by block of w, so that w is read from the nearest cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from partwise.engine.compilation import compiled_loop
from partwise.engine.threads import in_threads
from partwise.objective import BLOCK, spans

FIRST_ROOM = 8  # cuts to have room for at first
ROUNDING = 1e-9  # how far from a whole multiple sums of many C may end up
LARGEST = 2.0**24  # whole numbers up to here are exact in float32
PLACE, VALUE, ENTRIES, SMALL = range(4)  # columns of Cuts.where


@compiled_loop
def survey(a, scale):
    """How many entries are not zero, how many are whole multiples of `scale` other than zero, and whether all are multiples."""
    entries, multiples, whole = 0, 0, scale > 0.0
    for j in range(len(a)):
        if a[j] != 0.0:
            entries += 1
            if whole:
                ratio = a[j] / scale
                k = np.floor(ratio + 0.5)
                multiples += k != 0.0
                whole = abs(ratio - k) <= ROUNDING * max(1.0, abs(k)) and abs(k) <= LARGEST
    return entries, multiples, whole


@compiled_loop
def write(a, scale, places, values):
    """a, or with a scale > 0 the nearest whole multiple in each entry, into `values`: all of it, or what is not zero.

    The latter, if `places` is not empty. `a` becomes what was written.
    """
    n, sparse = 0, len(places) > 0
    for j in range(len(a)):
        if scale > 0.0:
            k = np.floor(a[j] / scale + 0.5)
            a[j] = k * scale
        else:
            k = a[j]
        if sparse:
            if k != 0.0:
                places[n] = j
                values[n] = k
                n += 1
        else:
            values[j] = k


@compiled_loop
def multiply(places, small, large, where, scale, n, a, w, first, last):
    """(a_j . a, a_j . w) for j < n, over weights in [first, last)."""
    products, at = np.zeros((n, 2)), np.zeros(n, np.int64)
    for j in range(n):
        if where[j, PLACE] >= 0:
            begin = where[j, PLACE]
            at[j] = np.searchsorted(places[begin : begin + where[j, ENTRIES]], first)
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        a_block, w_block = a[start:stop], w[start:stop]
        for j in range(n):
            with_a, with_w = 0.0, 0.0
            value = where[j, VALUE]
            if where[j, PLACE] >= 0:
                place, k, entries = where[j, PLACE], at[j], where[j, ENTRIES]
                if where[j, SMALL]:
                    while k < entries and places[place + k] < stop:
                        c, i = float(small[value + k]), places[place + k] - start
                        with_a += c * a_block[i]
                        with_w += c * w_block[i]
                        k += 1
                else:
                    while k < entries and places[place + k] < stop:
                        c, i = large[value + k], places[place + k] - start
                        with_a += c * a_block[i]
                        with_w += c * w_block[i]
                        k += 1
                at[j] = k
            elif where[j, SMALL]:
                row = small[value + start : value + stop]
                for i in range(len(row)):
                    c = float(row[i])
                    with_a += c * a_block[i]
                    with_w += c * w_block[i]
            else:
                of_j = large[value + start : value + stop]
                for i in range(len(of_j)):
                    with_a += of_j[i] * a_block[i]
                    with_w += of_j[i] * w_block[i]
            products[j, 0] += with_a
            products[j, 1] += with_w
    for j in range(n):
        if where[j, SMALL]:
            products[j, 0] *= scale
            products[j, 1] *= scale
    return products


@compiled_loop
def combine(places, small, large, where, scale, rows, c, out, first, last):
    """out = sum_k c[k] a_rows[k], for weights in [first, last)."""
    at = np.zeros(len(rows), np.int64)
    for r in range(len(rows)):
        if where[rows[r], PLACE] >= 0:
            begin = where[rows[r], PLACE]
            at[r] = np.searchsorted(places[begin : begin + where[rows[r], ENTRIES]], first)
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        block = out[start:stop]
        block[:] = 0.0
        for r in range(len(rows)):
            j = rows[r]
            value, factor = where[j, VALUE], c[r] * scale if where[j, SMALL] else c[r]
            if where[j, PLACE] >= 0:
                place, k, entries = where[j, PLACE], at[r], where[j, ENTRIES]
                if where[j, SMALL]:
                    while k < entries and places[place + k] < stop:
                        block[places[place + k] - start] += factor * float(small[value + k])
                        k += 1
                else:
                    while k < entries and places[place + k] < stop:
                        block[places[place + k] - start] += factor * large[value + k]
                        k += 1
                at[r] = k
            elif where[j, SMALL]:
                row = small[value + start : value + stop]
                for i in range(len(block)):
                    block[i] += factor * float(row[i])
            else:
                of_j = large[value + start : value + stop]
                for i in range(len(block)):
                    block[i] += factor * of_j[i]


@dataclass
class Cuts:
    """The cuts of a bundle; the first `n` rows of `where`, `gram` and `numbers` are in use.

    `at_best` are the products a_j . w_b with the best weights so far and `distance` how far from there each cut was taken:
    what methods for non-convex risks need. `anchor` is the cut that was taken at w_b.
    """

    grows: ClassVar[tuple[str, ...]] = ("places", "small", "large", "where", "gram", "numbers")

    d: int  #: weights
    scale: float  #: small values are multiples of it; 0: there are none
    places: np.ndarray  #: int32 indices of sparse slopes
    small: np.ndarray  #: float32 values
    large: np.ndarray  #: float64 values
    where: np.ndarray  #: (room, 4) int64: begin in `places` (-1: dense), begin in the values, entries, whether they are small
    gram: np.ndarray  #: (room, room) a_j . a_k, or a_j . L^-1 a_k where L^-1 = diag(inverse) is given
    numbers: np.ndarray  #: (room, 5): offset b_j, multiplier, a_j . w_b, distance, iterations without a multiplier
    n: int = 0
    anchor: int = -1
    places_end: int = 0  #: where the free part of `places` begins
    small_end: int = 0
    large_end: int = 0
    inverse: np.ndarray | None = None  #: (d,) 1 / lambda_k, where each weight has a penalty of its own

    @classmethod
    def empty(cls, d: int, scale: float = 0.0, inverse: np.ndarray | None = None) -> Cuts:
        """No cuts, in d dimensions; slopes that are whole multiples of `scale` will take less memory."""
        none = (np.zeros(0, np.int32), np.zeros(0, np.float32), np.zeros(0), np.zeros((0, 4), np.int64))
        return cls(d, scale, *none, np.zeros((0, 0)), np.zeros((0, 5)), inverse=inverse)

    def check(self, like: Cuts, task: Any) -> None:
        """Raise a ValueError, unless cuts that were read from a file have the size of fresh ones, and point at what is there."""
        room, where = len(self.where), self.where[: max(self.n, 0)]
        ends = {name: (getattr(self, f"{name}_end"), len(getattr(self, name))) for name in ("places", "small", "large")}
        if self.d != like.d or not 0 <= self.n <= room or not -1 <= self.anchor < max(self.n, 1):
            raise ValueError(f"there are {self.n} cuts of {self.d} weights, with room for {room}")
        if self.where.shape != (room, 4) or self.gram.shape != (room, room) or self.numbers.shape != (room, 5):
            raise ValueError("the tables of the cuts are not of one size")
        if not all(0 <= end <= length for end, length in ends.values()):
            raise ValueError("the slopes of the cuts end behind their ends")
        place, value, entries, small = where.T
        end = np.where(small > 0, ends["small"][0], ends["large"][0])
        dense, most = place < 0, np.iinfo(np.int64).max // 4
        if (where > most).any() or (entries < 0).any() or (value < 0).any() or (place < -1).any():
            raise ValueError("the places of the slopes are none")
        if (
            (value + entries > end).any()
            or (place + entries > ends["places"][0])[~dense].any()
            or (entries[dense] != self.d).any()
        ):
            raise ValueError("the slopes of the cuts are not where they should be")
        for begin, k in zip(place[~dense].tolist(), entries[~dense].tolist(), strict=True):
            own = self.places[begin : begin + k]
            if k and (own[0] < 0 or own[-1] >= self.d or (own[1:] <= own[:-1]).any()):
                raise ValueError("a slope has places that are not among the weights, or not in order")

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

    @property
    def vectors(self) -> np.ndarray:
        """The slopes, written out: a new array of n d numbers."""
        out = np.zeros((self.n, self.d))
        for j in range(self.n):
            combine(*self.stored, np.array([j]), np.ones(1), out[j], 0, self.d)
        return out

    @property
    def stored(self) -> tuple:
        """The slopes as compiled loops take them."""
        return self.places, self.small, self.large, self.where, self.scale

    @property
    def sizes(self) -> np.ndarray:
        """Bytes that each slope takes."""
        where = self.where[: self.n]
        return where[:, ENTRIES] * (np.where(where[:, SMALL] > 0, 4, 8) + np.where(where[:, PLACE] >= 0, 4, 0))

    def add(self, a: np.ndarray, b: float, w: np.ndarray, distance: float, n_jobs: int | None = None) -> np.ndarray:
        """A new cut a . w + b; returns the products of all cuts, the new one last, with the point `w`.

        Where `a` is a whole multiple of the scale but for rounding errors, it is freed of them in place.
        """
        if self.n == len(self.where):
            self.make_room(max(FIRST_ROOM, 3 * self.n // 2))
        n = self.n
        self.store(n, a)
        conjugate = a if self.inverse is None else a * self.inverse  # after `store`, which may have changed a
        found = in_threads(lambda span: multiply(*self.stored, n + 1, conjugate, w, *span), spans(len(a)), n_jobs)
        products = np.sum(found, axis=0)
        self.gram[n, : n + 1] = self.gram[: n + 1, n] = products[:, 0]
        self.numbers[n] = (b, 0.0, 0.0, distance, 0.0)
        self.n += 1
        return products[:, 1]

    def store(self, row: int, a: np.ndarray) -> None:
        """Write a slope into the smallest form it fits in."""
        entries, multiples, whole = survey(a, self.scale)
        if whole:
            values, sparse, entries = "small", 2 * multiples <= self.d, multiples
        else:
            values, sparse = "large", 3 * entries <= 2 * self.d
        k = entries if sparse else self.d
        place = self.reserve("places", k) if sparse else -1
        begin = self.reserve(values, k)
        places = self.places[place : place + k] if sparse else self.places[:0]
        if not k:
            a[:] = 0.0
        else:
            write(a, self.scale if whole else 0.0, places, getattr(self, values)[begin : begin + k])
        self.where[row] = (place, begin, k, whole)

    def reserve(self, name: str, k: int) -> int:
        """The begin of k free entries of one of the arrays, which grows if it must."""
        end = f"{name}_end"
        heap = getattr(self, name)
        if getattr(self, end) + k > len(heap):
            rows, column = self.of_heap(name)
            live = int(self.where[rows, ENTRIES].sum())
            if 8 * live < 7 * getattr(self, end):
                self.compact(name, rows, column)
            if getattr(self, end) + k > len(heap):  # in place, where the system can: no second copy of a large array
                heap.resize(max(getattr(self, end) + k, 9 * len(heap) // 8), refcheck=False)
        begin = getattr(self, end)
        setattr(self, end, begin + k)
        return begin

    def of_heap(self, name: str) -> tuple[np.ndarray, int]:
        """Cuts that have a part in one of the arrays, and the column that tells where."""
        where = self.where[: self.n]
        if name == "places":
            return np.flatnonzero(where[:, PLACE] >= 0), PLACE
        return np.flatnonzero((where[:, SMALL] > 0) == (name == "small")), VALUE

    def compact(self, name: str, rows: np.ndarray, column: int) -> None:
        """Close the gaps that dropped cuts have left."""
        heap, to = getattr(self, name), 0
        for j in rows[np.argsort(self.where[rows, column], kind="stable")]:
            begin, k = self.where[j, column], self.where[j, ENTRIES]
            if begin != to:
                heap[to : to + k] = heap[begin : begin + k]  # numpy minds the overlap
                self.where[j, column] = to
            to += int(k)
        setattr(self, f"{name}_end", to)

    def make_room(self, room: int) -> None:
        """Space for the numbers of `room` cuts."""
        n = self.n
        where, gram, numbers = np.zeros((room, 4), np.int64), np.zeros((room, room)), np.zeros((room, 5))
        where[:n], gram[:n, :n], numbers[:n] = self.where[:n], self.products, self.numbers[:n]
        self.where, self.gram, self.numbers = where, gram, numbers

    def minimiser(self, out: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """-sum_j alpha_j a_j, into `out`; times `inverse`, if there is one."""
        self.mean(-self.alpha, out, n_jobs)
        if self.inverse is not None:
            out *= self.inverse
        return out

    def mean(self, alpha: np.ndarray, out: np.ndarray, n_jobs: int | None = None) -> np.ndarray:
        """sum_j alpha_j a_j, into `out`."""
        rows = np.flatnonzero(alpha)
        in_threads(lambda span: combine(*self.stored, rows, alpha[rows], out, *span), spans(len(out)), n_jobs)
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
        self.where[: len(rows)] = self.where[rows]
        self.gram[: len(rows), : len(rows)] = self.products[np.ix_(rows, rows)]
        self.numbers[: len(rows)] = self.numbers[rows]
        if self.anchor >= 0:
            self.anchor = int(np.searchsorted(rows, self.anchor))
        self.n = len(rows)

    @property
    def weight(self) -> np.ndarray:
        """How much each cut is needed: its multiplier; the anchor is needed most."""
        weight = self.alpha.copy()
        if self.anchor >= 0:
            weight[self.anchor] = np.inf
        return weight

    def fitting(self, memory: float) -> int:
        """How many cuts `aggregate` may leave so that they take no more than `memory` bytes; two at least."""
        sizes = self.sizes
        if sizes.sum() <= memory:
            return self.n
        order = np.lexsort((self.idle, -self.weight))
        return max(2, 1 + int(np.count_nonzero(np.cumsum(sizes[order]) <= memory - 8 * self.d)))

    def aggregate(self, most: int, n_jobs: int | None = None) -> None:
        """No more than `most` cuts: those without a multiplier go first, then the aggregate takes the place of the lightest."""
        if self.n <= most:
            return
        alpha, weight = self.alpha.copy(), self.weight
        needed = int(np.count_nonzero(weight))
        if needed <= most:
            order = np.lexsort((self.idle, weight == 0.0))  # those with a multiplier, then those that lost it last
            self.keep(np.sort(order[:most]))
            return
        offset, at_best = float(alpha @ self.offset), float(alpha @ self.at_best)
        distance = float(np.sqrt(alpha @ np.square(self.distance)))
        with_all = self.products @ alpha
        vector = self.mean(alpha, np.zeros(self.d), n_jobs)
        rows = np.sort(np.argsort(-weight, kind="stable")[: most - 1])
        self.keep(rows)
        n = self.n  # there is room: cuts have just gone
        self.store(n, vector)
        self.gram[n, :n] = self.gram[:n, n] = with_all[rows]
        self.gram[n, n] = alpha @ with_all
        self.numbers[n] = (offset, 1.0, at_best, distance, 0.0)
        self.numbers[:n, 1] = 0.0
        self.n += 1
