"""Readers and headers of model files, tried by a fuzzer that follows what code inputs reach (atheris; ``pip install atheris``).

Without it, the campaign leaves this out. An input is a byte that chooses a reader, or a model, and what that is to read. New
inputs are made by libFuzzer, and half of the time by `campaign.mutations`, those of headers nine times of ten, for most of what
libFuzzer makes of JSON is none: that is not given to anybody, and does not count. Inputs that reach new code are kept in
``build/campaign/guided``, and the next run begins with them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

from campaign import Find

ENVIRONMENT = {"PARTWISE_INTERPRET": "1", "PARTWISE_QUIET": "1", "OPENBLAS_NUM_THREADS": "1"}
LONGEST = 20_000  #: bytes of an input
TOGETHER = 100  #: inputs that are counted at once
SLOWEST = 20.0  #: seconds of the processor after which one counts as a hang
NEVER = 300  #: seconds of the clock after which it is ended: the machine may have other things to do


def run(first: int, seconds: float, folder: Path) -> Iterator[tuple[str, str, int]]:
    """Both, half of the time each; what was found, if anything, and how many inputs there were."""
    if importlib.util.find_spec("atheris") is None:
        return
    for kind in ("readers", "headers"):
        kept = folder / "guided" / kind
        kept.mkdir(parents=True, exist_ok=True)
        words = [sys.executable, "-m", "campaign.guided", kind, str(kept), f"-max_total_time={max(1, int(seconds / 2))}"]
        words += [
            f"-max_len={LONGEST}",
            f"-timeout={NEVER}",
            f"-seed={first + 1}",
            "-rss_limit_mb=6000",
        ]
        words += [f"-artifact_prefix={kept.parent.resolve()}{os.sep}"]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", env={**os.environ, **ENVIRONMENT})
        for line in done.stdout.splitlines():
            said = json.loads(line)
            if "find" in said:
                yield kind, said["find"], 0
            for _ in range(said.get("tried", 0)):
                yield kind, "", 0
        if done.returncode:
            yield kind, f"status {done.returncode}: {done.stderr[-1500:]}", 0


def trial_of_readers(folder: Path) -> tuple[Callable[[bytes], bool], list[bytes]]:
    """What to do with an input, and inputs to begin with."""
    from campaign.readers import READERS, SHOWN

    tempfile.tempdir = str(folder)
    names = [name for name, (sound, _) in READERS.items() if sound and name != "parquet"]  # whose reader is not ours

    def trial(data: bytes) -> bool:
        try:
            READERS[names[data[0] % len(names)]][1](data[1:])
        except SHOWN:
            pass
        except MemoryError as error:
            if not error.args:
                raise
        return True

    return trial, [bytes([k]) + sound for k, name in enumerate(names) for sound in READERS[name][0]]


def trial_of_headers(folder: Path) -> tuple[Callable[[bytes], bool], list[bytes]]:
    """The same for headers of model files: JSON, with the right sums around it and the tensors of the model."""
    from campaign.models import Models
    from partwise.files.tensors import ModelFileError, write_tensors
    from partwise.tasks.common import model_file

    models = Models()
    models.prepare(folder)

    def trial(data: bytes) -> bool:
        tensors = models.seeds[data[0] % len(models.seeds)][2]
        try:
            header = json.loads(data[1:])
            assert isinstance(header, dict)
            write_tensors(models.path, header, tensors)
        except (ValueError, AssertionError, RecursionError):
            return False
        try:
            model_file.load(models.path, plain=True)
        except ModelFileError:
            pass
        return True

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
    tried = 0
    for k, data in enumerate(sound):
        Path(kept, f"sound-{k}").write_bytes(data)

    def one(data: bytes) -> None:
        nonlocal tried
        if len(data) < 2:
            return
        begin = time.process_time()
        try:
            tried += trial(data)
            if (spent := time.process_time() - begin) > SLOWEST:
                raise Find(f"it took {spent:.0f} seconds")
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}"
            if where not in seen:
                seen.add(where)
                print(json.dumps({"find": f"{where}: {error}"[:300] + f" for {data[:300]!r}"}), flush=True)
        if tried == TOGETHER:  # libFuzzer ends without a word
            print(json.dumps({"tried": tried}), flush=True)
            tried = 0

    def another(data: bytes, most: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if len(data) < 2 or rng.random() < (0.5 if kind == "readers" else 0.1):
            return atheris.Mutate(data, most)
        return (data[:1] + mutations.of_text(rng, data[1:]))[:most]

    warnings.simplefilter("ignore")
    atheris.Setup([sys.argv[0], kept, *options], one, custom_mutator=another)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
