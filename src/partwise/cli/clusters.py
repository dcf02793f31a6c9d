"""``--cluster``: workers on this machine or on others, by dask."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from partwise.engine.cluster_map import on_cluster
from partwise.tasks.common.command_options import Refusal

MOST_WORKERS = 1000  #: on one machine: each is a process that loads everything


@contextlib.contextmanager
def working_on(where: str | None) -> Iterator[Any]:
    """Pieces of work (`partwise.engine.cluster_map`) are done on the cluster that is meant, if one is, as long as this lasts."""
    with cluster_client(where) as client, on_cluster(client):
        yield client


@contextlib.contextmanager
def cluster_client(where: str | None) -> Iterator[Any]:
    """A client of the cluster that is meant, None if none is; a local one ends with the block.

    Parameters
    ----------
    where : str, optional
        "local[4]": four processes on this machine, "local": as many as it has cores; or the address of a scheduler.
    """
    if where is None:
        yield None
        return
    try:
        import distributed
    except ImportError:
        raise Refusal("--cluster needs dask.distributed: pip install 'partwise[cluster]'.") from None
    local = re.fullmatch(r"local(?:\[(\d+)\])?", where)
    if local is not None:
        n = None if local[1] is None else int(local[1][:9])
        if n is not None and not 1 <= n <= MOST_WORKERS:
            raise Refusal(f"--cluster local[{local[1][:9]}]: give a number of workers in the range [1, {MOST_WORKERS}].")
        how = {"n_workers": n, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
        with distributed.LocalCluster(**how) as cluster, distributed.Client(cluster) as client:
            yield client
        return
    try:
        client = distributed.Client(where, timeout=20)
    except (OSError, ValueError, TypeError) as error:
        raise Refusal(f"--cluster {where}: there is no scheduler to be reached ({error}).") from None
    with client:
        yield client
