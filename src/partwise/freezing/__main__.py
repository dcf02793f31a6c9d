"""``python -m partwise.freezing OUT``: machine code of the usual commands, for the wheel."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path


def main() -> None:
    """See the module."""
    from partwise.freezing.linking import link_all
    from partwise.freezing.objects import compile_all, processes
    from partwise.freezing.recorder import record_all
    from partwise.freezing.targets import TARGETS, native
    from partwise.tasks.common.registry import BY_VERB

    parser = argparse.ArgumentParser(prog="python -m partwise.freezing", description=__doc__)
    parser.add_argument("out", type=Path, help="folder of the libraries and their index")
    parser.add_argument("--objects", type=Path, default=Path("build/frozen"), help="folder to keep machine code in between runs")
    parser.add_argument("--tasks", default=",".join(BY_VERB), help="which, by their verbs (default: all)")
    parser.add_argument("--defaults", action="store_true", help="only what commands run that set nothing: quick, for trying out")
    parser.add_argument("--target", default=native(), choices=list(TARGETS), help="machine to make it for (default: this one)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    options = parser.parse_args()
    clock = time.perf_counter()

    def tell(line: str) -> None:
        print(f"{time.perf_counter() - clock:7.1f} s  {line}", file=sys.stderr, flush=True)

    verbs = options.tasks.split(",")
    os.environ["PARTWISE_FROZEN"] = "0"
    with processes(options.jobs) as pool:
        calls = record_all(verbs, not options.defaults, pool, options.objects, tell)
    tell(f"{len(calls)} specialisations of {len({(c.module, c.name) for c in calls})} loops to compile")
    made = compile_all(calls, options.target, options.objects, options.jobs, tell)
    index = link_all(made, options.target, options.objects, options.out)
    size = sum(file.stat().st_size for file in options.out.iterdir())
    tell(
        f"{sum(g['specialisations'] for g in index['libraries'].values())} specialisations in {options.out}, {size / 1e6:.1f} MB"
    )


if __name__ == "__main__":
    main()
