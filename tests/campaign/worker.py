"""A process that tries one seed after the other; what it is at is written down before, so that its death is no mystery."""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

GB = 1 << 30
NOT_HERE = 77  #: status of a fuzzer that cannot run here


def fuzzers() -> dict[str, type]:
    """All of them, by name."""
    from campaign.api import Api
    from campaign.frames import Frames
    from campaign.layers import Layers, is_here
    from campaign.models import Bits, Checkpoints, Models
    from campaign.options import Options
    from campaign.packed import Packed
    from campaign.readers import CodeFiles, Readers

    every = (Models, Bits, Checkpoints, Packed, Readers, CodeFiles, Options, Api, Frames, *([Layers] if is_here() else []))
    return {kind.name: kind for kind in every}


def main() -> None:
    """Run seeds from --first on, until --seconds have passed; a line of JSON now and then: how far, and how they ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("fuzzer")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--at", type=Path, required=True)
    parser.add_argument("--gigabytes", type=float, default=6.0)
    given = parser.parse_args()
    at = given.at.resolve()  # some fuzzers go elsewhere
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (int(given.gigabytes * GB),) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ways: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        known = fuzzers()
        if given.fuzzer not in known:
            print(f"{given.fuzzer} is left out: what it needs is not installed", file=sys.stderr)
            sys.exit(NOT_HERE)
        fuzzer = known[given.fuzzer]()
        fuzzer.prepare(Path(folder))
        end, told, seed = time.monotonic() + given.seconds, time.monotonic(), given.first
        while time.monotonic() < end:
            at.write_text(str(seed))
            try:
                ways[fuzzer.one(seed)] += 1
            except Exception as error:
                ways["FIND"] += 1
                place = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
                said = {"seed": seed, "where": where, "error": str(error)[:300], "trace": traceback.format_exc()[-3000:]}
                print(json.dumps({"find": said}), flush=True)
            seed += 1
            if time.monotonic() - told > 1.0:
                told = time.monotonic()
                report(seed, ways, fuzzer)
        report(seed, ways, fuzzer)
        os.chdir("/")


def report(seed: int, ways: Counter[str], fuzzer: object) -> None:
    """How far it is."""
    inputs = sum(ways.values()) * getattr(fuzzer, "inputs", 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps({"next": seed, "inputs": inputs, "ways": dict(ways), "peak_gb": round(peak, 3)}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
