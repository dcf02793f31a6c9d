"""Parts of a problem on the workers of a dask cluster.

Workers load their parts themselves, from files that all of them see. A part is a future of ``load(path, range)``: if its worker
dies, another one loads it again. What a pass needs from here (weights, mostly) goes to each worker once. What they find is added
up among themselves along the tree of `partwise.engine.places`, and one sum comes back.

If a worker is lost in the middle of a pass, what it had found is found again; if that fails, because the weights were lost with
it, the pass is begun anew. So the answer is that of the parts, whatever happens to workers on the way, or an error.

Cost of a pass: d weights to each worker, about one vector of d between two workers for each worker but one, one vector back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partwise.engine.places import PlacedParts, Places, along_tree

LARGE = 10_000  # bytes: what is larger is sent to each worker once rather than with each task
ATTEMPTS = 20  # how often a pass is begun anew before it is given up


class ClusterLost(RuntimeError):
    """There is nobody left to work."""


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
        self.client, self.wait, self.generation = client, wait, 0
        self.rounds = self.bytes_sent = 0
        super().__init__(*given, **more)
        if versions is not None:
            self.check_versions(versions)

    patience = 2.0  #: seconds after which it is asked whether there are workers at all

    def first_parts(self) -> Any:
        return DaskParts(self, None, None, (), None)

    def workers(self) -> list[str]:
        """Addresses of the workers, in order; an error if there are none for too long."""
        until = time.monotonic() + self.wait
        while True:
            try:
                found = sorted(self.client.scheduler_info(n_workers=-1)["workers"])
                if self.client.status not in ("running", "connecting"):
                    raise OSError(f"the client is {self.client.status}")
            except OSError as error:
                raise ClusterLost(f"The scheduler of the cluster is gone ({error}).") from None
            if found:
                return found
            if time.monotonic() > until:
                raise ClusterLost(f"All workers of the cluster are gone, and none came back in {self.wait:g} seconds.")
            time.sleep(0.1)

    def check_versions(self, versions: Callable[[], Any]) -> None:
        """Refuse workers whose software is another one: sums would differ, or worse."""
        self.workers()
        mine = versions()
        for worker, theirs in self.client.run(versions).items():
            if theirs != mine:
                differ = [
                    f"{key} {theirs.get(key)} instead of {value}" for key, value in mine.items() if theirs.get(key) != value
                ]
                raise RuntimeError(
                    f"The worker {worker} has {', '.join(differ)}. All must have the same versions as this process."
                )

    def ship(self, value: Any) -> Any:
        """A large array as a future that every worker has; others as they are."""
        if not (isinstance(value, np.ndarray) and value.nbytes > LARGE):
            return value
        self.bytes_sent += value.nbytes
        return self.client.scatter(value, broadcast=True, hash=False)

    def gather(self, futures: list[Any]) -> list[Any]:
        """What the futures stand for; where nobody works on them any more, an error instead of waiting for ever."""
        from distributed import TimeoutError, wait

        while True:
            try:
                wait(futures, timeout=self.patience)
                return self.client.gather(futures)
            except TimeoutError:
                self.workers()

    def attempt(self, work: Callable[[], Any]) -> Any:
        """What `work` makes of futures, begun anew where workers are lost."""
        from distributed import CancelledError, KilledWorker
        from distributed.client import FutureCancelledError
        from distributed.comm import CommClosedError

        lost = (CancelledError, KilledWorker, CommClosedError, FutureCancelledError, OSError, TimeoutError)
        self.rounds += 1
        for k in range(ATTEMPTS):
            try:
                self.workers()
                return work()
            except lost as error:
                if isinstance(error, ClusterLost):
                    raise
                if k == ATTEMPTS - 1:
                    raise ClusterLost(f"Workers were lost {ATTEMPTS} times in one pass; the last time: {error}") from error
                self.generation += 1  # futures of before are not to be trusted
        raise AssertionError


class DaskParts(PlacedParts):
    """Futures of the parts."""

    generation = -1

    def futures(self) -> list[Any]:
        """One for each part."""
        places = self.places
        if self.generation != places.generation:
            n = len(places)
            if self.before is None:
                workers = places.workers()
                self.made = {
                    k: places.client.submit(
                        places.load,
                        places.edges[k],
                        places.edges[k + 1],
                        pure=False,
                        workers=[workers[k * len(workers) // n]],  # neighbours together: most sums are formed where they are
                        allow_other_workers=True,
                    )
                    for k in range(n)
                }
            else:
                before, shared = self.before.futures(), [places.ship(value) for value in self.shared]
                pieces = [()] * n if self.pieces is None else self.pieces
                self.made = {k: places.client.submit(self.function, before[k], *pieces[k], *shared, pure=False) for k in range(n)}
            self.generation = places.generation
        return [self.made[k] for k in range(len(places))]

    def each(self, function: Callable[..., Any], *shared: Any, pieces: Sequence[tuple[Any, ...]] | None = None) -> list[Any]:
        def work() -> list[Any]:
            more = [self.places.ship(value) for value in shared]
            return self.places.gather([self.task(k, function, more, pieces) for k in range(len(self.places))])

        return self.places.attempt(work)

    def task(self, k: int, function: Callable[..., Any], more: Sequence[Any], pieces: Any) -> Any:
        """A future of function(part k, ...)."""
        piece = () if pieces is None else pieces[k]
        return self.places.client.submit(function, self.futures()[k], *piece, *more, pure=False)

    def total(
        self,
        add: Callable[[Any, Any], Any],
        function: Callable[..., Any],
        *shared: Any,
        pieces: Sequence[tuple[Any, ...]] | None = None,
    ) -> Any:
        def work() -> Any:
            more = [self.places.ship(value) for value in shared]

            def leaf(k: int) -> Any:
                return self.task(k, function, more, pieces)

            def added(a: Any, b: Any) -> Any:  # submitted as soon as its leaves are: memory is freed on the way
                return self.places.client.submit(add, a, b, pure=False)

            return self.places.gather([along_tree(len(self.places), leaf, added)])[0]

        return self.places.attempt(work)
