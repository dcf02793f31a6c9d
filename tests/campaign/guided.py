"""Readers and headers of model files, tried by a fuzzer that follows what code inputs reach (atheris; ``pip install atheris``).

Without it, the campaign leaves this out. An input is a byte that chooses a reader, or a model, and what that is to read. New
inputs are made by libFuzzer, and half of the time by `campaign.mutations`; those that reach new code are kept in
``build/campaign/guided``, and the next run begins with them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
ENVIRONMENT = {"PARTWISE_INTERPRET": "1", "PARTWISE_QUIET": "1", "OPENBLAS_NUM_THREADS": "1"}
LONGEST = 20_000  #: bytes of an input
SLOWEST = 20  #: seconds after which one counts as one that never ends


def run(first: int, seconds: float, folder: Path) -> Iterator[tuple[str, str, int]]:
    """Both, half of the time each; what was found, if anything, and how many inputs there were."""
    if importlib.util.find_spec("atheris") is None:
        return
    for kind in ("readers", "headers"):
        kept = folder / "guided" / kind
        kept.mkdir(parents=True, exist_ok=True)
        words = [sys.executable, "-m", "campaign.guided", kind, str(kept), f"-max_total_time={max(1, int(seconds / 2))}"]
        words += [
            "-print_final_stats=1",
            f"-max_len={LONGEST}",
            f"-timeout={SLOWEST}",
            f"-seed={first + 1}",
            "-rss_limit_mb=6000",
        ]
        words += [f"-artifact_prefix={kept.parent.resolve()}{os.sep}"]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", env={**os.environ, **ENVIRONMENT})
        for line in done.stdout.splitlines():
            yield kind, json.loads(line)["find"], 0
        executed = EXECUTED.search(done.stderr)
        for _ in range(int(executed[1]) if executed else 0):
            yield kind, "", 0
        if done.returncode:
            yield kind, f"status {done.returncode}: {done.stderr[-1500:]}", 0


def trial_of_readers(folder: Path) -> tuple[Callable[[bytes], Any], list[bytes]]:
    """What to do with an input, and inputs to begin with."""
    from campaign.readers import READERS, SHOWN

    tempfile.tempdir = str(folder)
    names = [name for name, (sound, _) in READERS.items() if sound and name != "parquet"]  # whose reader is not ours

    def trial(data: bytes) -> None:
        try:
            READERS[names[data[0] % len(names)]][1](data[1:])
        except SHOWN:
            pass
        except MemoryError as error:
            if not error.args:
                raise

    return trial, [bytes([k]) + sound for k, name in enumerate(names) for sound in READERS[name][0]]


def trial_of_headers(folder: Path) -> tuple[Callable[[bytes], Any], list[bytes]]:
    """The same for headers of model files: JSON, with the right sums around it and the tensors of the model."""
    from campaign.models import Models
    from partwise.files.tensors import ModelFileError, write_tensors
    from partwise.tasks.common import model_file

    models = Models()
    models.prepare(folder)

    def trial(data: bytes) -> None:
        tensors = models.seeds[data[0] % len(models.seeds)][2]
        try:
            header = json.loads(data[1:])
            assert isinstance(header, dict)
            write_tensors(models.path, header, tensors)
        except (ValueError, AssertionError, RecursionError):
            return
        try:
            model_file.load(models.path, plain=True)
        except ModelFileError:
            pass

    return trial, [bytes([k]) + json.dumps(header).encode() for k, (_, header, *_) in enumerate(models.seeds)]


def main() -> None:
    """``python -m campaign.guided readers|headers FOLDER [options of libFuzzer]``."""
    import atheris

    kind, kept, options = sys.argv[1], sys.argv[2], sys.argv[3:]
    with atheris.instrument_imports(include=["partwise"], enable_loader_override=False):
        from campaign import mutations

        folder = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
        trial, sound = {"readers": trial_of_readers, "headers": trial_of_headers}[kind](folder)
    seen: set[str] = set()
    for k, data in enumerate(sound):
        Path(kept, f"sound-{k}").write_bytes(data)

    def one(data: bytes) -> None:
        if len(data) < 2:
            return
        try:
            trial(data)
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
            if where not in seen:
                seen.add(where)
                print(json.dumps({"find": f"{where}: {error}"[:300] + f" for {data[:300]!r}"}), flush=True)

    def another(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if len(data) < 2 or rng.random() < 0.5:
            return atheris.Mutate(data, most)
        return (data[:1] + mutations.of_text(rng, data[1:]))[:most]

    warnings.simplefilter("ignore")
    atheris.Setup([sys.argv[0], kept, *options], one, custom_mutator=another)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
