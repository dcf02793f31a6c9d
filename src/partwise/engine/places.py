"""Examples that are cut into parts which live in several places, and passes over all of them.

What counts is that the answer depends on the parts alone, and not on where they are or on how many there are to do the work:
parts are visited as they come, but what they find is put together in a fixed order. Sums are formed along a fixed binary tree:

    total(a, b) = the sum over parts a .. b - 1 = total(a, m) + total(m, b),    m = (a + b) / 2

so every addition is one of the same two vectors, wherever it is done. Passes of solvers take a `Places` where they take a number
of threads; here all parts are in this process, `partwise.engine.dask_places` has them elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partwise.engine.threads import Elsewhere, in_threads


class Places(Elsewhere):
    """Parts of one problem, and who works on them.

    Parameters
    ----------
    whole : problem
        All examples: what solvers hold.
    edges : integers (parts + 1,)
        First example of each part, and the end.
    load : function of (first, last)
        The examples in a range, as a problem; called where the part is to live.
    n_jobs : int, optional
        Threads for what is done in this process.
    digest : int, optional
        A checksum of the problem.
    """

    def __init__(self, whole: Any, edges: Sequence[int], load: Callable[[int, int], Any], n_jobs: int | None = None, digest=None):
        self.whole, self.edges, self.load, self.digest = whole, [int(edge) for edge in edges], load, digest
        self.n_jobs = n_jobs
        self.known: list[tuple[Any, Any]] = []  #: problems that differ from the whole in their targets, and their parts
        self.pieces: list[tuple[Any, list[tuple[Any]]]] = []  #: what was cut last, and its pieces
        self.by_targets: tuple[Any, Any] = (None, None)
        self.root = self.first_parts()

    def first_parts(self) -> Any:
        """The parts as they are loaded."""
        return PlacedParts(self, None, None, (), None)

    def __len__(self) -> int:
        return len(self.edges) - 1

    def remember(self, problem: Any, targets: np.ndarray, starts: np.ndarray, retarget: Callable[[Any, np.ndarray], Any]) -> None:
        """`problem` is the whole with these targets, example i having those from starts[i] on."""
        if self.by_targets[0] is not targets:
            pieces = [(targets[starts[a] : starts[b]],) for a, b in zip(self.edges[:-1], self.edges[1:], strict=True)]
            self.by_targets = (targets, self.root.then(retarget, pieces=pieces))
        self.known = [*self.known[-3:], (problem, self.by_targets[1])]

    def parts_of(self, problem: Any) -> Any:
        """The parts of a problem, or None if they are not here."""
        if problem is self.whole:
            return self.root
        return next((parts for known, parts in reversed(self.known) if known is problem), None)

    def cut(self, values: np.ndarray) -> list[tuple[np.ndarray]]:
        """A number, or row, for each example, as pieces for the parts; the same list for the same array, which may not change."""
        for known, pieces in self.pieces:
            if known is values:
                return pieces
        pieces = [(values[a:b],) for a, b in zip(self.edges[:-1], self.edges[1:], strict=True)]
        self.pieces = [*self.pieces[-3:], (values, pieces)]
        return pieces


class PlacedParts:
    """What is made of each part, and stays where it is."""

    def __init__(self, places: Any, before: Any, function: Any, shared: tuple[Any, ...], pieces: Any):
        self.places, self.before, self.function, self.shared, self.pieces = places, before, function, shared, pieces
        self.made: dict[int, Any] = {}

    def then(self, function: Callable[..., Any], *shared: Any, pieces: Sequence[tuple[Any, ...]] | None = None) -> Any:
        """``function(part, *piece, *shared)`` of each part, to stay in its place."""
        return type(self)(self.places, self, function, shared, pieces)

    def own(self, k: int) -> Any:
        """Part k itself."""
        if k not in self.made:
            if self.before is None:
                self.made[k] = self.places.load(self.places.edges[k], self.places.edges[k + 1])
            else:
                piece = () if self.pieces is None else self.pieces[k]
                self.made[k] = self.function(self.before.own(k), *piece, *self.shared)
        return self.made[k]

    def each(self, function: Callable[..., Any], *shared: Any, pieces: Sequence[tuple[Any, ...]] | None = None) -> list[Any]:
        """``function(part, *piece, *shared)`` of each part, in their order."""

        def run(k: int) -> Any:
            return function(self.own(k), *(() if pieces is None else pieces[k]), *shared)

        return in_threads(run, range(len(self.places)), self.places.n_jobs)

    def total(
        self,
        add: Callable[[Any, Any], Any],
        function: Callable[..., Any],
        *shared: Any,
        pieces: Sequence[tuple[Any, ...]] | None = None,
    ) -> Any:
        """The same added up along a fixed tree: add(left, right)."""
        found = self.each(function, *shared, pieces=pieces)
        return along_tree(0, len(found), lambda a, b: found[a], add)


def along_tree(first: int, last: int, leaf: Callable[[int, int], Any], add: Callable[[Any, Any], Any], few: int = 1) -> Any:
    """The sum over parts first .. last - 1, neighbours first; always in the same order.

    A range of at most `few` parts is asked for as a whole, leaf(a, b). It is this sum itself, so `few` changes nothing.
    """
    if last - first <= few:
        return leaf(first, last)
    middle = (first + last) // 2
    return add(along_tree(first, middle, leaf, add, few), along_tree(middle, last, leaf, add, few))
