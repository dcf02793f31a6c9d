"""Memory: what is free, and saying so before a large example takes all of it."""

from __future__ import annotations

import contextlib
import math
import os


def available_memory() -> float:
    """Bytes of memory that this process may still take, as far as the system tells; inf if it does not."""
    found = math.inf
    with contextlib.suppress(AttributeError, ValueError, OSError):
        found = float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError), open("/proc/meminfo") as lines:
        found = min(found, *(1024.0 * float(line.split()[1]) for line in lines if line.startswith("MemAvailable")))
    with contextlib.suppress(OSError, ValueError):
        limit, used = (open(f"/sys/fs/cgroup/memory.{name}").read() for name in ("max", "current"))
        found = min(found, float(limit) - float(used))
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        addresses = resource.getrlimit(resource.RLIMIT_AS)[0]
        if addresses != resource.RLIM_INFINITY:  # ulimit -v
            found = min(found, addresses - int(open("/proc/self/statm").read().split()[0]) * float(os.sysconf("SC_PAGE_SIZE")))
    return found


def require_memory(needed: float, n_jobs: int | None, what: str, advice: str, allowed: float | None = None) -> None:
    """Raise a MemoryError, before anything is allocated, unless there is enough memory.

    Parameters
    ----------
    needed : float
        Bytes for all threads together.
    n_jobs : int or None
        For the message.
    what : str
        What takes so much, and where it comes from.
    advice : str
        What can be done, besides fewer threads.
    allowed : float, optional
        GB that it may take; what is free by default.
    """
    limit = available_memory() if allowed is None else 1e9 * allowed
    if needed > limit:
        there = f"{limit / 1e9:.1f} GB are free" if allowed is None else f"only {allowed:g} GB are allowed"
        advice += ", or take fewer threads." if allowed is None else ", take fewer threads, or raise 'memory'."
        raise MemoryError(f"{what} takes up to {needed / 1e9:.1f} GB with n_jobs={n_jobs}, and {there}. {advice}")
