"""Hours of learning, answering, saving and loading in threads: memory and open files must stay as they are."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

THREADS = 4
WARM = 20  #: cycles of each thread after which memory is measured first
GROWTH = 30e6  #: bytes that memory may have grown by, beside a tenth of it
LABELS = np.array(["A", "B", "C"])


def run(first: int, seconds: float, folder: Path) -> Iterator[tuple[str, str, int]]:
    """One line: how many cycles, and what has grown."""
    done = subprocess.run(
        [sys.executable, "-m", "campaign.soak", str(seconds)],
        capture_output=True,
        text=True,
        env={**os.environ, "PARTWISE_QUIET": "1"},
    )
    if done.returncode:
        yield "died", done.stderr[-500:], 0
        return
    told = json.loads(done.stdout)
    for _ in range(told["cycles"] - 1):
        yield "cycle", "", 0
    grown = told["warm"] and told["memory"][1] - told["memory"][0] > GROWTH + 0.1 * told["memory"][0]
    grown = grown or told["files"][1] > told["files"][0] + 5
    yield "cycle", f"grown: {told}" if grown or told["wrong"] else "", 0


def main() -> None:
    """Threads that share a folder of models; each has estimators of its own, and reads those of others."""
    from partwise import Classifier, SequenceLabeler, load

    seconds = float(sys.argv[1])
    end, cycles, wrong = time.monotonic() + seconds, [0] * THREADS, []
    folder = Path(tempfile.mkdtemp())

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        while time.monotonic() < end:
            try:
                X, y = rng.normal(size=(20, 4)), LABELS[np.arange(20) % 3]
                one = Classifier(solver="dca", max_epochs=1).partial_fit(X, y, classes=LABELS)
                words = [[[f"w{rng.integers(9)}"] for _ in range(4)] for _ in range(5)]
                two = SequenceLabeler(solver="dca", max_epochs=1).partial_fit(
                    words, [list(LABELS[rng.integers(0, 3, 4)]) for _ in words]
                )
                for name, model, data in (("one", one, X), ("two", two, words)):
                    path = folder / f"{name}-{cycles[number] % 5}"  # that all threads write to
                    own = folder / f"{name}-{number}-own"
                    model.save(own)
                    model.save(path)
                    if str(load(own).predict(data)) != str(model.predict(data)):
                        wrong.append("a model that was loaded answers otherwise")
                    load(path).predict(data)  # of whatever thread
                cycles[number] += 1
            except Exception as error:
                wrong.append(f"{type(error).__name__}: {error}")
                return

    def now() -> tuple[int, int]:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize(), len(os.listdir("/proc/self/fd"))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    while min(cycles) < WARM and any(thread.is_alive() for thread in threads):
        time.sleep(0.1)
    before = now()
    for thread in threads:
        thread.join()
    after = now()
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    found = {
        "cycles": max(sum(cycles), 1),
        "memory": [before[0], after[0]],
        "files": [before[1], after[1]],
        "wrong": wrong[:3],
        "warm": min(cycles) > 2 * WARM,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
