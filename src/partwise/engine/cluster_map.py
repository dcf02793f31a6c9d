"""Pieces of work that do not depend on each other: one after the other here, or all over a dask cluster.

Whoever has such pieces (files to label, folds to judge, cells of a table) asks `mapped` for what comes of them, in their order;
so the answer does not depend on where they were done. `on_cluster` says where, for a block.

A worker that dies is replaced by another one, which does its pieces again: they must be functions of what they are given.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Any

CLIENT: ContextVar[Any] = ContextVar("client", default=None)  #: of the cluster in use


@contextlib.contextmanager
def on_cluster(client: Any) -> Iterator[None]:
    """`mapped` works on this cluster (None: here), as long as this lasts."""
    token = CLIENT.set(client)
    try:
        yield
    finally:
        CLIENT.reset(token)


def mapped(function: Callable[..., Any], items: Iterable[Any], *shared: Any, ahead: int | None = None) -> Iterator[Any]:
    """``function(item, *shared)`` of each item, in their order.

    Parameters
    ----------
    function : function
        It can be imported wherever it is called.
    items : iterable
        Sent with the pieces: let them be small.
    *shared
        Sent to each worker once.
    ahead : int, optional
        Pieces for each thread of the cluster that may be on their way, where there is no room for all; None: all.
    """
    client = CLIENT.get()
    if client is None:
        yield from (function(item, *shared) for item in items)
        return
    waiting: deque[Any] = deque()
    sent = [submitted(client, functools.partial(same, value)) for value in shared]  # opaque: dask would look into lists
    try:
        for item in items:
            waiting.append(submitted(client, functools.partial(function, item), *sent))
            if ahead is not None and len(waiting) > ahead * max(1, sum(client.nthreads().values())):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        client.cancel(list(waiting))


def same(value: Any) -> Any:
    """What was handed over."""
    return value


def submitted(client: Any, function: Callable[..., Any], *given: Any) -> Any:
    """A future of function(*given), which is made again if it is lost."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")  # it has to get there
        return client.submit(function, *given, pure=False)
