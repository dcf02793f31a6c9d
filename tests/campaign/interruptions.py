"""Verbs that write, killed, interrupted, and left without disk or memory: nothing is lost, and nothing half there.

A training that is killed goes on with ``--resume``, and its model is that of an undisturbed one, byte for byte.
"""

from __future__ import annotations

import errno
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from partwise.tasks.common.registry import TASKS

EPOCHS = {"parse": "2", "constituency": "3", "fold": "4"}  #: 60 of the others, which are quick in the interpreter
ENVIRONMENT = {"PARTWISE_INTERPRET": "1", "PARTWISE_QUIET": "1", "OPENBLAS_NUM_THREADS": "1"}
LEAST, MOST = 0.5, 1.5  #: GB of address space of runs that have little
PRECIOUS = b"precious"


class Scene:
    """A command that writes one file, `out`, and what it writes if nobody disturbs it."""

    def __init__(self, folder: Path, words: list[str]):
        self.folder, self.words = folder, words
        begin = time.monotonic()
        done = self.start(words).communicate()
        self.seconds = time.monotonic() - begin
        assert (folder / "out").exists(), (words, done[1][-500:])
        self.expected = (folder / "out").read_bytes()
        self.there = {path.name for path in folder.iterdir()} - {"out"}

    @property
    def trains(self) -> bool:
        """Whether it can be resumed."""
        return self.words[0] == "train"

    def start(
        self, words: list[str], program: tuple[str, ...] = ("partwise",), limit: tuple[int, int] | None = None
    ) -> subprocess.Popen:
        """A process; `limit`: a resource and how much there is of it."""

        def prepare() -> None:
            if limit is not None:
                resource.setrlimit(limit[0], (limit[1], limit[1]))

        return subprocess.Popen(
            [sys.executable, "-m", *program, *words], cwd=self.folder, env={**os.environ, **ENVIRONMENT}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=prepare,
        )  # fmt: skip

    def clear(self, old: bool) -> None:
        """As before; with an old file in the place of the new one, or without."""
        for path in self.folder.iterdir():
            if path.name not in self.there:
                path.unlink()
        if old:
            (self.folder / "out").write_bytes(PRECIOUS)

    def damage(self, old: bool) -> str:
        """What is wrong with the folder; nothing, if the file is whole, as it was, or not there."""
        out = self.folder / "out"
        if not out.exists():
            return "the old file is lost" if old else ""
        found = out.read_bytes()
        if found not in ((PRECIOUS, self.expected) if old else (self.expected,)):
            return f"out is neither old nor new: {len(found)} bytes, not {len(self.expected)}"
        return ""

    def left_over(self) -> str:
        """Files that nobody asked for."""
        more = {path.name for path in self.folder.iterdir()} - self.there - {"out", "out.checkpoint"}
        return f"left behind: {sorted(more)}" if more else ""


def scenes(folder: Path) -> list[Scene]:
    """Every verb that writes, and every task for training."""
    found = []
    for task in TASKS:
        place = folder / task.verb
        place.mkdir()
        data = task.command.workload(place)
        words = [
            "train",
            task.verb,
            data.name,
            "-q",
            "--epochs",
            EPOCHS.get(task.verb, "60"),
            "--tol",
            "0",
            "--checkpoint-every",
            "0.0001",
        ]
        found.append(Scene(place, [*words, "-o", "out"]))
        (place / "model").write_bytes(found[-1].expected)
        found[-1].there.add("model")
    place, words = folder / "tag", found[1].words
    assert words[1] == "tag"
    for more in (["predict", "model", "chunks.txt", "-o", "out", "-q"], ["shrink", "model", "-o", "out", "--float16", "-q"]):
        (place / "out").unlink(missing_ok=True)
        found.append(Scene(place, more))
    return found


def run(first: int, seconds: float) -> Iterator[tuple[str, str]]:
    """What was done, and what was wrong about it, if anything."""
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        every, seed = scenes(Path(folder)), first
        while time.monotonic() < end:
            rng, scene = random.Random(seed), every[seed % len(every)]
            fault = rng.choice(("kill", "kill", "kill", "terminate", "disk", "size", "memory"))
            old = rng.random() < 0.5
            scene.clear(old)
            yield f"{fault}, {scene.words[0]}", FAULTS[fault](rng, scene, old)
            seed += 1


def kill(rng: random.Random, scene: Scene, old: bool) -> str:
    """kill -9, up to three times; then to the end."""
    words = scene.words
    for _ in range(rng.choice((1, 1, 2, 3))):
        process = scene.start(words)
        time.sleep(rng.random() * 1.1 * scene.seconds)
        process.kill()
        process.communicate()
        if wrong := scene.damage(old) or scene.left_over():
            return wrong
        words = [*scene.words, "--resume"] if scene.trains else scene.words
    out, said = scene.start(words).communicate(timeout=120)
    if (scene.folder / "out").read_bytes() != scene.expected:
        return f"resumed, it is another model. {said[-300:]}"
    return ""


def terminate(rng: random.Random, scene: Scene, old: bool) -> str:
    """SIGTERM or Ctrl-C: a model that can be used, or nothing; and no traceback."""
    process = scene.start(scene.words)
    time.sleep(rng.random() * 1.1 * scene.seconds)
    process.send_signal(rng.choice((signal.SIGTERM, signal.SIGINT)))
    _, said = process.communicate(timeout=60)
    early = (
        process.returncode in (-signal.SIGTERM, -signal.SIGINT, 1) and "partwise/cli" not in said
    )  # Python itself was not up yet
    if process.returncode not in (0, 130) and not early:
        return f"status {process.returncode}: {said[-300:]}"
    if "Traceback" in said and not early:
        return said[-300:]
    out = scene.folder / "out"
    if out.exists() and out.read_bytes() not in (PRECIOUS, scene.expected):
        verified = scene.start(["verify", "out"]).communicate(timeout=60)
        if not scene.trains or "sound" not in verified[0]:
            return f"out is damaged: {verified[1][-300:]}"
    return "the old file is lost" if old and not out.exists() else scene.left_over()


def disk(rng: random.Random, scene: Scene, old: bool) -> str:
    """Some write fails: the disk is full, or broken."""
    words = [str(rng.choice((0, 1, 2, 3, 5, 8, 20, 50))), str(rng.choice((errno.ENOSPC, errno.EIO))), *scene.words]
    process = scene.start(words, ("campaign.faulty",))
    _, said = process.communicate(timeout=120)
    return in_words(process.returncode, said) or scene.damage(old) or scene.left_over()


def size(rng: random.Random, scene: Scene, old: bool) -> str:
    """Files may not be larger than some bytes."""
    process = scene.start(scene.words, limit=(resource.RLIMIT_FSIZE, rng.choice((0, 10, 100, 1000, 3000))))
    _, said = process.communicate(timeout=120)
    return in_words(process.returncode, said) or scene.damage(old) or scene.left_over()


def memory(rng: random.Random, scene: Scene, old: bool) -> str:
    """Little memory."""
    process = scene.start(scene.words, limit=(resource.RLIMIT_AS, int(1e9 * rng.uniform(LEAST, MOST))))
    _, said = process.communicate(timeout=120)
    return in_words(process.returncode, said) or scene.damage(old) or scene.left_over()


def in_words(status: int, said: str) -> str:
    """What is wrong with the end of a command, if anything."""
    if status not in (0, 1) or "Traceback" in said or (status == 1 and "partwise: error" not in said):
        return f"status {status}: {said[-300:]}"
    return ""


FAULTS = {"kill": kill, "terminate": terminate, "disk": disk, "size": size, "memory": memory}
