"""Where the CPU time of a command of partwise goes before it works: ``python -m benchmarks.module_times predict model file``.

Runs the command in this process and writes, after its own output, one JSON object: CPU milliseconds of the modules it imported,
each without those that it imported itself, added up by package; of Python's start; and of all else, the work, which loading
compiled code is part of. Clocks at every import make the whole about a tenth slower than it is.
"""

from __future__ import annotations

import importlib._bootstrap as machinery  # type: ignore[import-not-found]
import json
import sys
import time
from collections import Counter

STARTED = time.process_time()


def main() -> None:
    """Count while the command runs."""
    own: Counter[str] = Counter()
    inner: list[float] = []
    find_and_load = machinery._find_and_load_unlocked

    def timed(name: str, import_: object) -> object:
        begun = time.process_time()
        inner.append(0.0)
        try:
            return find_and_load(name, import_)
        finally:
            spent = time.process_time() - begun
            own[group(name)] += spent - inner.pop()
            if inner:
                inner[-1] += spent

    machinery._find_and_load_unlocked = timed
    from partwise.cli import main as run

    sys.argv[0] = "partwise"
    try:
        run()
    except SystemExit as ended:
        if ended.code:
            raise
    finally:
        machinery._find_and_load_unlocked = find_and_load
    total = time.process_time()
    spent = {"start of Python": STARTED, **own, "the work": total - STARTED - sum(own.values())}
    print(json.dumps({"milliseconds": {name: 1000 * seconds for name, seconds in spent.items()}, "total": 1000 * total}))


def group(name: str) -> str:
    """Whose a module is; those that few have are counted together."""
    package = name.partition(".")[0]
    if package in sys.stdlib_module_names:
        return "Python's own modules"
    return {"llvmlite": "numba", "pydantic_core": "pydantic"}.get(package, package)


if __name__ == "__main__":
    main()
