"""Parts of a problem on the workers of a dask cluster.

Workers load their parts themselves, from files that all of them see. Neighbours are a *group*, which a worker does in one task:
a few for each thread, each a range of the tree of `partwise.engine.places`. What a pass needs from here (weights, mostly) is
handed to the cluster once, and goes from worker to worker. What they find is added up along the tree where it is, and one sum
comes back.

**When workers are lost.** Everything is a future that the scheduler can have made again: a group is ``load(ranges)``, weights are
``same(weights)``, so whatever a lost worker had is made by another one, and a pass ends with the same sum. Nothing is scattered:
that cannot be made again. If that fails all the same (a task gives out as one that kills workers, nobody works although there is
something to do), the pass is begun anew with new futures. A part that is sent to another worker is sent as the instruction to
load it.

Cost of a pass: d weights to each worker, a vector of d between two workers for each group but one at most, one vector back.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partwise.engine.cluster_map import same, submitted
from partwise.engine.places import PlacedParts, Places, along_tree

LARGE = 10_000  # bytes: what is larger is handed over once rather than with each task
GROUPS = 4  # tasks for each thread: so uneven are shards, and so fast are workers, that less would make some wait
ATTEMPTS = 20  # how often a pass is begun anew before it is given up
DEADLY = 2  # how often one pass may kill one worker after the other: four of them each time
THIN = 0.5  # weights are sent as places and values where these take no more than that share


class ClusterLost(RuntimeError):
    """There is nobody left to work."""


class Stalled(RuntimeError):
    """There is something to do, and nobody does it."""


# ---------------------------------------------------------------------------------------------------------------------
# On the workers
# ---------------------------------------------------------------------------------------------------------------------


class Held:
    """Parts, in the process that made them; sent to another one, they are made anew there."""

    def __init__(self, make: Callable[..., list[Any]], *given: Any):
        self.make, self.given = make, given
        self.parts = make(*given)

    def __reduce__(self) -> Any:
        return Held, (self.make, *self.given)

    def __len__(self) -> int:
        return len(self.parts)


class Pieces:
    """What belongs to each part of a group; one thing to dask, which would look into a list."""

    def __init__(self, given: Sequence[tuple[Any, ...]]):
        self.given = given


class ThinVector:
    """A vector most of which is zero."""

    def __init__(self, vector: np.ndarray, where: np.ndarray):
        self.size, self.dtype, self.where, self.values = vector.size, vector.dtype, where.astype(np.int32), vector[where]

    @property
    def nbytes(self) -> int:
        """Of what is sent."""
        return self.where.nbytes + self.values.nbytes

    def dense(self) -> np.ndarray:
        """The vector."""
        vector = np.zeros(self.size, self.dtype)
        vector[self.where] = self.values
        return vector


def thin(value: np.ndarray) -> Any:
    """The value as it is sent: as a `ThinVector` one, where that is much less."""
    if value.ndim != 1 or value.size >= 2**31:
        return value
    where = np.flatnonzero(value.view(f"u{value.itemsize}") if value.dtype.kind == "f" else value)  # -0.0 is not zero
    return ThinVector(value, where) if len(where) * (4 + value.itemsize) <= THIN * value.nbytes else value


def load_group(load: Callable[[int, int], Any], edges: Sequence[int]) -> list[Any]:
    """Neighbouring parts."""
    return [load(first, last) for first, last in zip(edges[:-1], edges[1:], strict=True)]


def each_of(function: Callable[..., Any], held: Held, pieces: Pieces, *shared: Any) -> list[Any]:
    """function(part, *piece, *shared) of each part of a group."""
    return [function(part, *piece, *shared) for part, piece in zip(held.parts, pieces.given, strict=True)]


def total_of(function: Callable[..., Any], add: Callable[[Any, Any], Any], held: Held, pieces: Pieces, *shared: Any) -> Any:
    """The same added up along the tree, each as soon as it can be: memory is the depth of the tree."""

    def leaf(a: int, b: int) -> Any:
        return function(held.parts[a], *pieces.given[a], *shared)

    return along_tree(0, len(held), leaf, add)


# ---------------------------------------------------------------------------------------------------------------------
# Here
# ---------------------------------------------------------------------------------------------------------------------


class DaskPlaces(Places):
    """Parts on the workers of a cluster.

    Parameters
    ----------
    client : dask.distributed.Client
    versions : function
        What must be the same here and on every worker; called there, too.
    wait : float
        Seconds to wait for a worker where there is none.
    whole, edges, load, n_jobs, digest
        As in `Places`; `load` is sent to the workers.
    """

    def __init__(self, client: Any, *given: Any, versions: Callable[[], Any] | None = None, wait: float = 30.0, **more: Any):
        self.client, self.wait, self.generation, self.grouped, self.few = client, wait, 0, -1, 1
        self.rounds = self.bytes_sent = self.begun_anew = 0
        self.staying: dict[int, tuple[int, Any, list[Any]]] = {}  #: futures of pieces that are sent once
        super().__init__(*given, **more)
        if versions is not None:
            self.check_versions(versions)

    patience = 2.0  #: seconds after which it is asked whether anybody works
    stalled = 10.0  #: seconds of nobody working, although there is something to do, after which a pass is begun anew

    fetching = 600.0  #: seconds after which a sum that was found should be here

    def first_parts(self) -> Any:
        return DaskParts(self, None, None, (), None)

    def workers(self) -> dict[str, Any]:
        """What the scheduler knows of the workers, in order of addresses; an error if there are none for too long."""
        until = time.monotonic() + self.wait
        while True:
            try:
                if self.client.status not in ("running", "connecting"):
                    raise OSError(f"the client is {self.client.status}")
                found = self.client.scheduler_info(n_workers=-1)["workers"]
            except Exception as error:  # whatever a broken connection leads to; dask does not say
                if time.monotonic() > until or self.client.status not in ("running", "connecting"):
                    raise ClusterLost(f"The scheduler of the cluster is gone ({error}).") from None
                found = {}
            if found:
                return dict(sorted(found.items()))
            if time.monotonic() > until:
                raise ClusterLost(
                    f"All workers of the cluster are gone, and none came back in {self.wait:g} seconds. Their own logs say why; "
                    "who ran out of memory was killed without a word."
                )
            time.sleep(0.1)

    def check_versions(self, versions: Callable[[], Any]) -> None:
        """Refuse workers whose software is another one: sums would differ, or worse."""
        self.workers()
        mine = versions()
        found = self.attempt(lambda: self.client.run(versions, on_error="ignore"))  # who dies now is not asked; `load` asks again
        for worker, theirs in found.items():
            if theirs != mine:
                differ = [
                    f"{key} {theirs.get(key)} instead of {value}" for key, value in mine.items() if theirs.get(key) != value
                ]
                raise RuntimeError(
                    f"The worker {worker} has {', '.join(differ)}. All must have the same versions as this process."
                )

    def submit(self, function: Callable[..., Any], *given: Any) -> Any:
        """A future of function(*given), which is made again if it is lost."""
        return submitted(self.client, function, *given)

    def hand_over(self, value: Any) -> Any:
        """A large array as a future; others as they are."""
        if not (isinstance(value, np.ndarray) and value.nbytes > LARGE):
            return value
        sent = thin(value)
        self.bytes_sent += sent.nbytes
        return self.submit(sent.dense if isinstance(sent, ThinVector) else functools.partial(same, value))

    def groups(self) -> list[tuple[int, int]]:
        """Ranges of parts that are one task."""
        found: list[tuple[int, int]] = []
        along_tree(0, len(self), lambda a, b: found.append((a, b)), lambda a, b: None, self.few)
        return found

    def pieces_of_groups(self, pieces: Any) -> list[Any]:
        """Pieces for each group; those of `cut` stay where they are from one pass to the next."""
        if pieces is None:
            return [Pieces([()] * (b - a)) for a, b in self.groups()]
        if not any(pieces is known for _, known in self.pieces):
            return [Pieces(pieces[a:b]) for a, b in self.groups()]
        generation, known, futures = self.staying.get(id(pieces), (-1, None, []))
        if generation != self.generation or known is not pieces:
            futures = [self.submit(functools.partial(same, Pieces(pieces[a:b]))) for a, b in self.groups()]
            kept = {id(known) for _, known in self.pieces}
            self.staying = {key: value for key, value in self.staying.items() if key in kept}
            self.staying[id(pieces)] = (self.generation, pieces, futures)
        return futures

    def results(self, futures: list[Any]) -> list[Any]:
        """What the futures stand for; where nobody works on them any more, an error instead of waiting for ever."""
        from distributed import TimeoutError as Late
        from distributed import wait

        idle = time.monotonic()
        while True:
            try:
                wait(futures, timeout=self.patience)
                break
            except Late:
                self.workers()
                idle = time.monotonic() if any(self.client.processing().values()) else idle
                if time.monotonic() - idle > self.stalled:
                    raise Stalled("nobody works on what is left to do") from None
        try:
            return [future.result(timeout=self.fetching) for future in futures]
        except Late:
            raise Stalled("what was found cannot be fetched") from None

    def attempt(self, work: Callable[[], Any]) -> Any:
        """What `work` makes of futures, begun anew where workers are lost."""
        from distributed import CancelledError, KilledWorker
        from distributed.client import FutureCancelledError
        from distributed.comm import CommClosedError

        lost = (CancelledError, KilledWorker, CommClosedError, FutureCancelledError, OSError, Stalled)
        self.rounds += 1
        deadly = 0
        for k in range(ATTEMPTS):
            try:
                workers = self.workers().values()
                if self.grouped != self.generation:  # groups are others only where there are no futures of them yet
                    self.few = max(1, len(self) // (GROUPS * sum(about.get("nthreads", 1) for about in workers)))
                    self.grouped = self.generation
                return work()
            except MemoryError as error:
                raise ClusterLost(f"A worker ran out of memory ({error}). Pack smaller shards, or give workers more.") from error
            except lost as error:
                deadly += isinstance(error, KilledWorker)
                if deadly == DEADLY:
                    raise ClusterLost(
                        "Workers die of the same work again and again, as those do that run out of memory. Give each more of it, "
                        f"or pack smaller shards (--shard-megabytes). The last time: {error}"
                    ) from error
                if k == ATTEMPTS - 1:
                    raise ClusterLost(f"Workers were lost {ATTEMPTS} times in one pass; the last time: {error}") from error
                self.generation += 1  # futures of before are not to be trusted
                self.begun_anew += 1
        raise AssertionError


class DaskParts(PlacedParts):
    """Futures of groups of parts."""

    generation = -1

    def futures(self) -> list[Any]:
        """One for each group."""
        places = self.places
        if self.generation != places.generation:
            groups = places.groups()
            if self.before is None:
                # anywhere: what dask is told to do on a certain worker, "or another one", it does nowhere once all workers were
                # gone for a moment
                load, edges = places.load, places.edges
                self.made = {k: places.submit(Held, load_group, load, edges[a : b + 1]) for k, (a, b) in enumerate(groups)}
            else:
                before, pieces = self.before.futures(), places.pieces_of_groups(self.pieces)
                shared = [places.hand_over(value) for value in self.shared]
                make = functools.partial(each_of, self.function)
                self.made = {k: places.submit(Held, make, before[k], pieces[k], *shared) for k in range(len(groups))}
            self.generation = places.generation
        return [self.made[k] for k in range(len(self.made))]

    def tasks(self, work: Callable[..., Any], shared: Sequence[Any], pieces: Any) -> list[Any]:
        """A future of work(group, pieces, ...) for each group."""
        places = self.places
        more, own = [places.hand_over(value) for value in shared], places.pieces_of_groups(pieces)
        return [places.submit(work, future, own[k], *more) for k, future in enumerate(self.futures())]

    def each(self, function: Callable[..., Any], *shared: Any, pieces: Sequence[tuple[Any, ...]] | None = None) -> list[Any]:
        def work() -> list[Any]:
            found = self.places.results(self.tasks(functools.partial(each_of, function), shared, pieces))
            return [one for group in found for one in group]

        return self.places.attempt(work)

    def total(
        self,
        add: Callable[[Any, Any], Any],
        function: Callable[..., Any],
        *shared: Any,
        pieces: Sequence[tuple[Any, ...]] | None = None,
    ) -> Any:
        def work() -> Any:
            tasks = dict(
                zip(self.places.groups(), self.tasks(functools.partial(total_of, function, add), shared, pieces), strict=True)
            )

            def leaf(a: int, b: int) -> Any:
                return tasks[a, b]

            def added(a: Any, b: Any) -> Any:
                return self.places.submit(add, a, b)

            total = along_tree(0, len(self.places), leaf, added, self.places.few)
            tasks.clear()  # what has been added is freed on the way
            return self.places.results([total])[0]

        return self.places.attempt(work)
