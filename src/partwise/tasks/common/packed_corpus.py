"""`PackedCorpus`: training data packed on disk by ``partwise pack``, mapped into memory, for every estimator and solver.

A packed problem is a NamedTuple of flat arrays; here the arrays are files (`partwise.files.packed_arrays`). Mapped, they are the
same arrays to every loop, and the system keeps in memory what it has room for. A shard is a range of examples that lie together:
solvers that visit one example after the other go through a shard before they turn to the next, and a cluster gives each worker
some of them. How shards were cut changes nothing for solvers that look at all examples at once.
"""

from __future__ import annotations

import contextlib
import functools
import os
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from partwise import kernels
from partwise.engine.places import Places
from partwise.engine.threads import n_threads
from partwise.features.stored import MOST_WEIGHTS, check_int, check_reals, check_stored, expect
from partwise.files.named_arrays import apart, together
from partwise.files.packed_arrays import PackedError, map_arrays, read_manifest
from partwise.files.version import __version__
from partwise.tasks.common.registry import BY_ESTIMATOR, RegisteredTask

MODEL = "model"


class PackedCorpus:
    """Training data on disk, to be given to ``fit`` instead of `X`.

    Parameters
    ----------
    path : path
        A folder that ``partwise pack`` or `partwise.pack` wrote.
    verify : bool, default=True
        Compare all checksums before the data are used, and look whether all that points somewhere points into the data, which
        reads them once. Compiled loops trust what they read: leave it out only for data that were verified on this disk before.

    Examples
    --------
    >>> corpus = PackedCorpus("corpus.packed")                                # doctest: +SKIP
    >>> SequenceLabeler(loss="crf", solver="lbfgs").fit(corpus)               # doctest: +SKIP
    """

    def __init__(self, path: Any, verify: bool = True):
        self.path, self.verify = os.path.abspath(os.fspath(path)), verify
        self.manifest = read_manifest(self.path)
        if str(self.manifest.get("estimator")) not in BY_ESTIMATOR:
            raise PackedError(f"{self.path!r} was packed for a {self.manifest.get('estimator')!r}, which is not known here.")
        with self._in_words():
            self.shards = np.array(self.manifest["shards"], np.int64)
            self._sums = [int(number) for number in self.manifest["shard_crc32"]]
            described = dict(self.manifest["problems"])
            arrays = map_arrays(self.path, self.manifest)
            self._problems = {name: together(about, below(arrays, prefix(name))) for name, about in described.items()}
            self.problem = self._problems[""]
            self._check()
            self._shared = int(self.manifest["shared_crc32"])
            self._beside = {str(name): int(number) for name, number in self.manifest["beside_crc32"].items()}
            self._digest = int(self.manifest["crc32"])
            kernels.take(self.problem, slice(0, 0))  # which shows whether its parts are what they should be
        self._weights = {name: arrays.get(f"{prefix(name)}sample_weight") for name in self._problems}
        self._sound: set[int] = set()  #: shards whose checksum was right

    @contextlib.contextmanager
    def _in_words(self) -> Iterator[None]:
        """Whatever goes wrong with a manifest that lies is a PackedError."""
        try:
            yield
        except PackedError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise PackedError(f"{self.path!r} is damaged or was altered: {type(error).__name__}: {error}") from None

    def _check(self) -> None:
        edges, n = self.shards, int(kernels.n_examples(self.problem))
        if edges.ndim != 1 or len(edges) < 2 or edges[0] or edges[-1] != n or (np.diff(edges) < 0).any():
            raise ValueError(f"its shards are not those of {n} examples")
        if len(self._sums) != len(edges) - 1:
            raise ValueError("its shards and their checksums do not match")
        if int(self.manifest["examples"]) != n:
            raise ValueError(f"it speaks of {self.manifest['examples']} examples, and there are {n}")

    def __repr__(self) -> str:
        return f"<PackedCorpus {self.path!r}: {len(self):,} examples in {self.in_shards}, for {self.task.verb!r}>"

    def __len__(self) -> int:
        return int(self.shards[-1])

    @property
    def n_shards(self) -> int:
        """Number of shards."""
        return len(self._sums)

    @property
    def in_shards(self) -> str:
        """Their number in words."""
        return f"{self.n_shards:,} shard{'s' * (self.n_shards != 1)}"

    @property
    def task(self) -> RegisteredTask:
        """The task it was packed for."""
        return BY_ESTIMATOR[self.manifest["estimator"]]

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for one in self._problems.values() for array in apart(one)[1].values())

    @property
    def digest(self) -> int:
        """A checksum of everything in it."""
        return self._digest

    @property
    def weight(self) -> np.ndarray | None:
        """Weights of the examples; None: all are one."""
        return self._weights[""]

    def beside(self) -> Iterator[tuple[str, Any, np.ndarray | None]]:
        """Names of further problems of the task, the problems, and weights of their examples."""
        for name, problem in self._problems.items():
            if name:
                yield name, problem, self._weights[name]

    def model(self) -> Any:
        """The estimator that packed it: it has learnt everything but weights."""
        from partwise.tasks.common import model_file

        try:
            return model_file.load(os.path.join(self.path, MODEL), plain=True)
        except FileNotFoundError:
            raise PackedError(f"{self.path!r} is not whole: the file {MODEL!r} is missing.") from None

    def sound_model(self) -> Any:
        """`model`, if it is of the size of the problem: features, labels or an order that are not its own are a PackedError.

        Compiled loops do not check indices: what the manifest says of sizes must not be all they rely on.
        """
        model, needed = self.model(), int(kernels.n_weights(self.problem))
        if model._kept_weights.size != needed:
            raise PackedError(
                f"{self.path!r} is damaged or was altered: its model has {model._kept_weights.size:,} weights, and what its "
                f"manifest says of the problem asks for {needed:,}."
            )
        return model

    def shard(self, k: int) -> Any:
        """The examples of shard k, as a problem; a shard that is damaged is a PackedError that names it."""
        first, last = (int(edge) for edge in self.shards[k : k + 2])
        with self._in_words():
            part = kernels.take(self.problem, slice(first, last))
        if self.verify and k not in self._sound:
            if checksum_of(part, self.problem) != self._sums[k]:
                raise PackedError(
                    f"{self.path!r}: shard {k} (examples {first} to {last - 1}) is damaged: its checksum does not match."
                )
            with self._in_words():
                sound(part)
            self._sound.add(k)
        return part

    def verified(self) -> PackedCorpus:
        """Itself, all checksums compared, if that is wanted."""
        if self.verify and len(self._sound) < self.n_shards:
            with self._in_words():
                shared = shared_checksum(self.problem)
            if shared != self._shared:
                raise PackedError(f"{self.path!r}: what all its shards share is damaged: its checksum does not match.")
            for name, problem, _ in self.beside():
                if checksum_of(problem, None) != self._beside.get(name):
                    raise PackedError(f"{self.path!r}: the problem {name!r} is damaged: its checksum does not match.")
                with self._in_words():
                    sound(problem)
            with self._in_words():
                self._check_whole()
        return self

    def _check_whole(self) -> None:
        """All shards are looked at, and there is nothing before, between or behind them that the whole would read."""
        whole, total = apart(self.problem)[1], dict.fromkeys(apart(self.problem)[1], 0)
        none = apart(kernels.take(self.problem, slice(0, 0)))[1]
        offsets = [name for name, array in none.items() if len(array) == 1 and array is not whole[name]]
        for k in range(self.n_shards):
            own = apart(self.shard(k))[1]
            for name, array in own.items():  # what was looked at must be what is there, not something worked out of it
                expect(array.dtype == whole[name].dtype, f"{name} has the type {whole[name].dtype}")
            for name in offsets:
                there = whole[name][total[name] - k :][: len(own[name])]
                expect(np.array_equal(own[name], there - there[:1]), f"{name} does not rise by what the examples have")
            total = {name: n + (0 if own[name] is whole[name] else len(own[name])) for name, n in total.items()}
        for name in offsets:
            expect(whole[name][0] == 0, f"{name} begins with {whole[name][0]}")
        more = self.n_shards - 1  # offsets have an end in each of them
        for name, n in total.items():
            expect(
                n in (0, len(whole[name]), len(whole[name]) + more), f"{name} has {len(whole[name])} entries, and its shards {n}"
            )
        for name, problem in self._problems.items():
            if (weight := self._weights[name]) is not None:
                check_reals("sample_weight", weight, int(kernels.n_examples(problem)))
                expect((weight >= 0).all() and np.isfinite(weight).all(), "there are weights of examples that cannot be")

    def places(self, engine: Any, n_jobs: int | None = None, leaves: int | None = None) -> Places:
        """Its examples in several places: "parts" of this process, or the workers of a dask cluster ("dask", or its client).

        There are as many parts as `leaves` says, whole shards each; 0: one for each who works, and two at least.
        """
        here = isinstance(engine, str) and engine == "parts"
        client = None if here else client_of(engine)
        if leaves == 0:
            leaves = max(2, n_threads(n_jobs) if client is None else len(client.scheduler_info(n_workers=-1)["workers"]))
        wanted = min(self.n_shards, leaves or LEAVES)
        threads = n_threads(n_jobs) if client is None else sum(client.nthreads().values())
        if wanted == self.n_shards < min(threads, leaves or LEAVES):
            smaller = max(self.nbytes / 4e6 / threads, 0.01)
            warnings.warn(
                f"{self.path!r} has {self.in_shards}, and shards are not divided: {threads - wanted} of {threads} threads have "
                f"nothing to do. Pack smaller ones (--shard-megabytes {smaller:.2g}).",
                UserWarning,
                stacklevel=2,
            )
        few = np.unique(np.round(np.linspace(0, self.n_shards, wanted + 1)).astype(int))
        load = functools.partial(load_part, self.path, self.verify, versions())
        given = (self.problem, self.shards[few], load, n_jobs)
        if client is None:
            return Places(*given, digest=self.digest)
        from partwise.engine.dask_places import DaskPlaces

        return DaskPlaces(client, *given, digest=self.digest, versions=versions)


LEAVES = 128  # parts that a cluster works on, at most: so many threads have something to do, and each part costs an addition


def client_of(engine: Any) -> Any:
    """The client of a cluster: `engine` itself, or that in use."""
    try:
        import distributed
    except ImportError:
        raise ImportError("engine='dask' needs dask.distributed: pip install 'partwise[cluster]'.") from None
    if isinstance(engine, distributed.Client):
        return engine
    try:
        return distributed.get_client()
    except ValueError:
        raise ValueError(
            "engine='dask' needs a cluster: with dask.distributed.Client(...): around this call, or engine=client."
        ) from None


def versions() -> dict[str, str]:
    """What must be the same on all machines that work together."""
    import platform

    return {"python": platform.python_version(), "numpy": np.__version__, "partwise": __version__}


@functools.lru_cache(maxsize=4)
def opened(path: str, verify: bool, digest: float) -> PackedCorpus:
    """A corpus, once for each process."""
    return PackedCorpus(path, verify)


def load_part(path: str, verify: bool, expected: dict[str, str], first: int, last: int) -> Any:
    """Examples of a corpus, which are whole shards, in the process where this is called; checksums are compared."""
    if (found := versions()) != expected:
        raise RuntimeError(f"A worker has other versions: {found}, instead of {expected}.")
    try:
        corpus = opened(path, verify, os.stat(os.path.join(path, "manifest.json")).st_mtime)
    except OSError as error:
        raise PackedError(f"A worker cannot read {path!r}, which all must see under that name: {error}") from None
    for k in range(int(np.searchsorted(corpus.shards, first)), int(np.searchsorted(corpus.shards, last))):
        corpus.shard(k)
    return kernels.take(corpus.problem, slice(first, last))


def sound(problem: Any) -> None:
    """Raise a ValueError unless all that points somewhere in a problem points at what is there."""
    check_stored(problem)
    check_int("the number of weights", kernels.n_weights(problem), 0, MOST_WEIGHTS)


def prefix(name: str) -> str:
    """What the names of the arrays of a problem begin with; the main one has no name."""
    return f"{name or 'main'}."


def below(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """Those whose names begin so, without that."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def checksum_of(part: Any, whole: Any) -> int:
    """Of the arrays of a problem, but for those that it shares with `whole`."""
    shared = set() if whole is None else {id(array) for array in apart(whole)[1].values()}
    found = 0
    for array in apart(part)[1].values():
        if id(array) not in shared and array.size:
            found = zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, found)
    return found


def shared_checksum(problem: Any) -> int:
    """Of the arrays that all shards share."""
    few = apart(kernels.take(problem, slice(0, 0)))[1]
    found = 0
    for name, array in apart(problem)[1].items():
        if few[name] is array and array.size:
            found = zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data, found)
    return found
