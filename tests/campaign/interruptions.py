"""Verbs that write, killed, interrupted, and left without disk or memory: nothing is lost, and nothing half there.

A training that is killed goes on with ``--resume``, a packing by being called again, and what they write is that of an
undisturbed run, byte for byte. Commands are run in forks of one process that has loaded everything, so that it is the work which
is disturbed, not the import of numpy; one in twenty in a process of its own, so that this is disturbed, too.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ENVIRONMENT = {"PARTWISE_INTERPRET": "1", "PARTWISE_QUIET": "1", "OPENBLAS_NUM_THREADS": "1"}
EPOCHS = {"parse": "2", "constituency": "3", "fold": "3"}  #: 20 of the others, which are quick in the interpreter
BESIDE, OF_ITS_OWN = 0.5, 20  #: GB of address space beside what is taken already; one command in so many is no fork
PATIENCE = 120.0  #: seconds that a command may take on the clock
PRECIOUS = b"precious"
HIDDEN = re.compile(
    r"\.out(\.checkpoint)?\.\d+\.[0-9a-f]+\.tmp"
)  #: of who was killed between the link and the rename of a whole file


class Ended(NamedTuple):
    """A command that has ended."""

    status: int
    said: str


class Running:
    """A command that runs: in a fork of this process, or in one of its own."""

    def __init__(self, folder: Path, words: list[str], disk: tuple[int, int] | None, limit: tuple[int, int] | None, own: bool):
        self.said, out = os.pipe()  # a file would count where the size of files is limited
        if own:
            code = f"import sys; from campaign.interruptions import command; sys.exit(command({words!r}, {disk!r}, {limit!r}))"
            self.pid = subprocess.Popen([sys.executable, "-c", code], cwd=folder, stdout=out, stderr=out).pid
            os.close(out)
            return
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                os.chdir(folder)
                os.dup2(out, 1)
                os.dup2(out, 2)
                sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False, buffering=1)
                status = command(words, disk, limit)
            finally:
                with contextlib.suppress(OSError, ValueError):
                    sys.stdout.flush()
                os._exit(status)
        os.close(out)

    def signal(self, number: int) -> None:
        """Send a signal; the process may have ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def end(self) -> Ended:
        """Wait for it; one that takes too long is killed, and its status says so."""
        impatient = threading.Timer(PATIENCE, self.signal, [signal.SIGKILL])
        impatient.start()
        with open(self.said, "rb") as stream:
            said = stream.read().decode("utf-8", "replace")
        _, status = os.waitpid(self.pid, 0)
        late = not impatient.is_alive()
        impatient.cancel()
        impatient.join()  # no thread is left when the next process is forked
        return Ended(os.waitstatus_to_exitcode(status), "it does not end" if late else said)


def command(words: list[str], disk: tuple[int, int] | None, limit: tuple[int, int] | None) -> int:
    """Run ``partwise WORDS`` here; `disk`: writes that go well, and what the next is; `limit`: a resource, how much there is."""
    from campaign import faulty
    from partwise.cli import main

    if disk is not None:
        faulty.after(*disk)
    if limit is not None:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        most = used + limit[1] if limit[0] == resource.RLIMIT_AS else limit[1]
        resource.setrlimit(limit[0], (most, most))
    sys.argv = ["partwise", *words]
    try:
        main()
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def load_all_of(words: list[str], folder: Path) -> None:
    """Run a command in this process, for what it imports."""
    before = os.getcwd(), sys.argv
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())), contextlib.redirect_stderr(io.StringIO()):
            command(words, None, None)
    finally:
        os.chdir(before[0])
        sys.argv = before[1]
        for number, handler in handlers.items():
            signal.signal(number, handler)


class Scene:
    """A command that writes one file or folder, `out`, and what it writes if nobody disturbs it."""

    def __init__(self, folder: Path, words: list[str]):
        self.folder, self.words, self.kills, self.own = folder, words, 0, False
        self.remove(folder / "out")
        load_all_of(words, folder)
        self.remove(folder / "out")
        begin = time.monotonic()
        done = self.start(words).end()
        self.seconds = time.monotonic() - begin
        assert done.status == 0 and (folder / "out").exists(), (words, done)
        self.expected = content(folder / "out")
        self.there = {path.name for path in folder.iterdir()} - {"out"}

    @property
    def packs(self) -> bool:
        """Whether it goes on by being called again, and writes nothing where something is."""
        return self.words[0] == "pack"

    @property
    def again(self) -> list[str]:
        """How to go on."""
        return [*self.words, "--resume"] if self.words[0] == "train" else self.words

    def start(self, words: list[str], disk: tuple[int, int] | None = None, limit: tuple[int, int] | None = None) -> Running:
        """Begin."""
        return Running(self.folder, words, disk, limit, self.own)

    @staticmethod
    def remove(path: Path) -> None:
        """A file or a folder."""
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def clear(self, old: bool) -> None:
        """As before; with an old file in the place of the new one, or without."""
        for path in self.folder.iterdir():
            if path.name not in self.there:
                self.remove(path)
        if old:
            (self.folder / "out").write_bytes(PRECIOUS)

    def damage(self, old: bool) -> str:
        """What is wrong with the folder; nothing, if the file is whole, as it was, or not there."""
        out = self.folder / "out"
        if not out.exists():
            return "the old file is lost" if old else ""
        found = content(out)
        if found not in ((PRECIOUS, self.expected) if old else (self.expected,)):
            return f"out is neither old nor new: {str(found)[:60]}"
        return ""

    def left_over(self) -> str:
        """Files that nobody asked for."""
        allowed = {"out", "out.checkpoint"} | ({"out.partial"} if self.packs else set())
        more = {path.name for path in self.folder.iterdir() if not HIDDEN.fullmatch(path.name)} - self.there - allowed
        return f"left behind: {sorted(more)}" if more else ""


def content(path: Path) -> Any:
    """Bytes of a file; those of all files of a folder, but for the lock of who packs."""
    if not path.is_dir():
        return path.read_bytes()
    return {one.name: one.read_bytes() for one in sorted(path.iterdir()) if one.name != "lock"}


def scenes(folder: Path) -> list[Scene]:
    """Every verb that writes; training and packing for every task."""
    from campaign import sound_files
    from partwise.tasks.common.registry import TASKS

    found = []
    for task in TASKS:
        place = folder / task.verb
        place.mkdir()
        data = task.command.workload(place).name
        words = ["train", task.verb, data, "-q", "--epochs", EPOCHS.get(task.verb, "20"), "--tol", "0"]
        found.append(Scene(place, [*words, "--checkpoint-every", "0.0001", "-o", "out"]))
        (place / "model").write_bytes(found[-1].expected)
        found[-1].there.add("model")
        found.append(Scene(place, ["predict", "model", data, "-o", "out", "-q"]))
        found.append(Scene(place, ["pack", task.verb, data, "-o", "out", "-q"]))
    place = folder / "tag"
    more = {"decided.txt": sound_files.DECIDED, "decisions.json": sound_files.decisions(), "spans.jsonl": sound_files.PRODIGY}
    for name, data in {**more, "graph.uai": sound_files.UAI}.items():
        (place / name).write_bytes(data)
    for words in (
        ["shrink", "model", "-o", "out", "--float16", "-q"],
        ["repair", "decided.txt", "decisions.json", "-o", "out"],
        ["convert", "spans.jsonl", "--from", "prodigy", "--to", "columns", "-o", "out", "-q"],
        ["solve", "graph.uai", "-o", "out", "-q"],
    ):
        found.append(Scene(place, words))
    names = {path.name for path in place.iterdir()} - {"out"}
    for scene in found:
        if scene.folder == place:
            scene.there = names
    return found


def trials(first: int, seconds: float) -> Iterator[tuple[str, str, int]]:
    """What was done, what was wrong about it, if anything, and how many processes were killed for it."""
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        every, seed = scenes(Path(folder)), first
        while time.monotonic() < end:
            rng, scene = random.Random(seed), every[seed % len(every)]
            scene.kills, scene.own = 0, rng.randrange(OF_ITS_OWN) == 0
            fault = rng.choice(("kill", "kill", "kill", "terminate", "disk", "size", "memory"))
            old = rng.random() < 0.5 and not scene.packs
            scene.clear(old)
            yield f"{fault}, {scene.words[0]}", FAULTS[fault](rng, scene, old), scene.kills
            seed += 1


def kill(rng: random.Random, scene: Scene, old: bool) -> str:
    """kill -9, up to five times, at any moment or at some write; then to the end."""
    words = scene.words
    for _ in range(rng.choice((1, 1, 2, 3, 5))):
        from campaign.faulty import DEATH

        at_write = rng.random() < 0.5
        process = scene.start(words, (rng.choice((0, 1, 2, 3, 5, 8, 20, 50)), DEATH) if at_write else None)
        if not at_write:
            time.sleep(rng.random() * 1.1 * scene.seconds)
            process.signal(signal.SIGKILL)
        done = process.end()
        if done.status not in (0, -signal.SIGKILL):
            return f"status {done.status}: {done.said[-300:]}"
        scene.kills += done.status != 0
        if wrong := scene.damage(old) or scene.left_over():
            return wrong
        if scene.packs and (scene.folder / "out").exists():
            return ""
        if done.status == 0:
            break
        words = scene.again
    done = scene.start(scene.again).end()
    if done.status or content(scene.folder / "out") != scene.expected:
        return f"gone on with, it is another one. {done.said[-300:]}"
    return scene.left_over()


def terminate(rng: random.Random, scene: Scene, old: bool) -> str:
    """SIGTERM or Ctrl-C: a model that can be used, or nothing; and no traceback."""
    process = scene.start(scene.words)
    time.sleep(rng.random() * 1.1 * scene.seconds)
    process.signal(rng.choice((signal.SIGTERM, signal.SIGINT)))
    status, said = process.end()
    early = status in (-signal.SIGTERM, -signal.SIGINT, 1) and "partwise/cli" not in said  # Python itself was not up yet
    if status not in (0, 130) and not early:
        return f"status {status}: {said[-300:]}"
    if "Traceback" in said and not early:
        return said[-300:]
    out = scene.folder / "out"
    if out.exists() and content(out) not in (PRECIOUS, scene.expected):
        verified = scene.start(["verify", "out"]).end()
        if scene.words[0] != "train" or "sound" not in verified.said:
            return f"out is damaged: {verified.said[-300:]}"
    return "the old file is lost" if old and not out.exists() else scene.left_over()


def disk(rng: random.Random, scene: Scene, old: bool) -> str:
    """Some write fails: the disk is full, or broken."""
    process = scene.start(scene.words, (rng.choice((0, 1, 2, 3, 5, 8, 20, 50)), rng.choice((errno.ENOSPC, errno.EIO))))
    return in_words(process.end()) or scene.damage(old) or scene.left_over()


def size(rng: random.Random, scene: Scene, old: bool) -> str:
    """Files may not be larger than some bytes."""
    process = scene.start(scene.words, limit=(resource.RLIMIT_FSIZE, rng.choice((0, 10, 100, 1000, 3000))))
    return in_words(process.end()) or scene.damage(old) or scene.left_over()


def memory(rng: random.Random, scene: Scene, old: bool) -> str:
    """Little memory."""
    process = scene.start(scene.words, limit=(resource.RLIMIT_AS, int(1e9 * rng.uniform(0.0, BESIDE))))
    return in_words(process.end()) or scene.damage(old) or scene.left_over()


def in_words(ended: Ended) -> str:
    """What is wrong with the end of a command, if anything."""
    status, said = ended
    if status not in (0, 1) or "Traceback" in said or (status == 1 and "partwise: error" not in said):
        return f"status {status}: {said[-300:]}"
    return ""


FAULTS = {"kill": kill, "terminate": terminate, "disk": disk, "size": size, "memory": memory}


def run(first: int, seconds: float, folder: Path) -> Iterator[tuple[str, str, int]]:
    """`trials` in a process of its own, which has loaded nothing else."""
    words = [sys.executable, "-m", "campaign.interruptions", str(first), str(seconds)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, **ENVIRONMENT}) as process:
        for line in process.stdout or ():
            yield tuple(json.loads(line))  # type: ignore[misc]
    if process.returncode:
        yield "itself", f"status {process.returncode}", 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("first", type=int)
    parser.add_argument("seconds", type=float)
    given = parser.parse_args()
    for trial in trials(given.first, given.seconds):
        print(json.dumps(trial), flush=True)
