"""Run benchmarks: tables on the screen, JSON and pictures in ``benchmarks/results``."""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.contenders import BROWN_TAGGERS, CHUNKERS
from benchmarks.race import Options
from benchmarks.report import RESULTS, Report

NAMES = (
    "startup",
    "short_runs",
    "encoding",
    "chunking",
    "tagging",
    "curves",
    "conll2000",
    "multiclass",
    "nonconvex",
    "qp",
    "trees",
    "potts",
    "alignment",
    "folding",
    "constituency",
    "ranking",
    "brown",
    "suspects",
    "tree_suspects",
    "part_suspects",
    "torch",
    "beyond_memory",
    "cluster",
    "mixing",
    "block_averaging",
    "threads",
    "refusal_limit",
    "gaps",
    "dictionaries",
)
QUICK = ("startup", "short_runs", "encoding", "chunking", "tagging")  # what --short runs unless told otherwise


def main() -> None:
    """Read the command line and go through the benchmarks; what cannot run here says why."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(NAMES)}; all by default, the first five with --short")
    parser.add_argument("--short", action="store_true", help="fewer rounds, no contender that takes minutes")
    parser.add_argument("--list", action="store_true", help="say what there is and stop")
    parser.add_argument("--repeat", type=int, metavar="N", help="rounds, instead of 5 (3 with --short)")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="contenders whose name contains this")
    parser.add_argument("--limit", type=float, default=3600.0, metavar="S", help="wall seconds a process may take")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FOLDER", help="where JSON and pictures go")
    arguments = parser.parse_args()
    arguments.names = arguments.names or (QUICK if arguments.short else NAMES)
    unknown = sorted(set(arguments.names) - set(NAMES))
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    if arguments.repeat is not None and arguments.repeat < 1:
        parser.error(f"--repeat must be at least 1. Got {arguments.repeat} instead.")
    if arguments.list:
        show_list()
        return
    failed = False
    with tempfile.TemporaryDirectory(prefix="partwise-bench-") as folder:
        options = Options(Path(folder), arguments.short, arguments.repeat, tuple(arguments.only), arguments.limit)
        for name in arguments.names:
            clock = time.perf_counter()
            report = run_one(name, options)
            report.notes.append(f"took {time.perf_counter() - clock:.0f} s")
            report.publish(arguments.results)
            failed |= report.failed
    sys.exit(int(failed))


def run_one(name: str, options: Options) -> Report:
    """One benchmark; a missing corpus or tool becomes a note, and so does a program that failed: the others still run."""
    try:
        return importlib.import_module(f"benchmarks.{name}").run(options)
    except (FileNotFoundError, ImportError) as error:
        return Report(name, notes=[f"{name}: skipped: {error}"])
    except RuntimeError as error:
        return Report(name, notes=[f"{name}: failed: {error}"], failed=True)


def show_list() -> None:
    """Benchmarks with the first line of what they say of themselves, and contenders."""
    for name in NAMES:
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"{name:12} {(module.__doc__ or '').splitlines()[0]}")
    for title, contenders in (("chunking", CHUNKERS), ("brown", BROWN_TAGGERS)):
        print(f"\ncontenders of {title}:")
        for contender in contenders:
            version = "" if contender.quick else " (long version only)"
            print(f"  {contender.name:26} {contender.settings}{version}{contender.missing and ' - ' + contender.missing}")


if __name__ == "__main__":
    main()
