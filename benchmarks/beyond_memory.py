"""A made-up corpus larger than memory: an epoch in a process that may take a tenth of it, beside one that may take all.

Sentences of 25 tokens with 20 features each, packed (`make_corpus`); the label of a token depends on one of its features, with
noise. A process that is limited by a control group (memory of its own and what the system keeps of files for it, together) trains
on it, and one that is not. By default 4 GB, with --short 0.2 GB.

    python -m benchmarks.beyond_memory make corpus.packed 20      # GB, as large as the disk allows
    python -m benchmarks.beyond_memory train corpus.packed dca 2000     # MB; 0: no limit; one more number: epochs

What a process keeps when it has compiled a loop, some 85 MB, is memory of its own, too: run without a limit first, which leaves
the code on disk.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import partwise
from benchmarks.race import Options
from benchmarks.report import Report, Row
from partwise.features.rows import Binary
from partwise.files.packed_arrays import PackedWriter
from partwise.tasks.common.packed_corpus import MODEL
from partwise.tasks.common.packing import finish, write_parts
from partwise.tasks.common.registry import BY_VERB

LENGTH, FEATURES, LABELS, BITS = 25, 20, 10, 16
PART = 20_000  # sentences
GROUPS = Path("/sys/fs/cgroup")


def make_corpus(path: Any, gigabytes: float, seed: int = 0) -> partwise.PackedCorpus:
    """A packed corpus of about that size, never in memory as a whole."""
    path = os.fspath(path)
    with tempfile.TemporaryDirectory() as folder:
        text = "\n\n".join(f"word{k} label{k}" for k in range(LABELS))
        (Path(folder) / "labels.txt").write_text(text)
        small = partwise.pack("tag", Path(folder) / "labels.txt", Path(folder) / "small", hash_bits=BITS, templates="words")
        model, like = small.model(), small.problem
        writer = PackedWriter(path, {"estimator": "SequenceLabeler", "made_up": [gigabytes, seed]})
        model.save(os.path.join(writer.folder, MODEL))
        bytes_each = LENGTH * (4 * FEATURES + 8 + 8) + 8
        n_parts = max(1, round(gigabytes * 1e9 / bytes_each / PART))
        problem = write_parts(writer, parts(like, n_parts, len(writer.notes), seed), lambda text: None)
        n = len(problem.starts) - 1
        about = {"examples": n, "tokens": n * LENGTH, "labels": LABELS, "features": 1 << BITS, "describe": "made up"}
        return finish(BY_VERB["tag"], writer, {"": problem}, about, 64.0)


def parts(like: Any, n_parts: int, done: int, seed: int) -> Iterator[Any]:
    """Packed sentences."""
    tokens = PART * LENGTH
    ptr, starts = np.arange(0, tokens * FEATURES + 1, FEATURES), np.arange(0, tokens + 1, LENGTH)
    for k in range(done, n_parts):
        rng = np.random.default_rng((seed, k))
        index = rng.integers(0, 1 << BITS, tokens * FEATURES, np.int32)
        index[::FEATURES] %= 1000  # words that are seen again and again
        gold = (index[::FEATURES] % LABELS).astype(np.int32)
        noise = rng.random(tokens) < 0.1
        gold[noise] = rng.integers(0, LABELS, int(noise.sum()), np.int32)
        yield like._replace(rows=Binary(ptr, index, 1 << BITS), starts=starts, gold=gold, targets=gold)


def limit_memory(megabytes: int) -> str:
    """Put this process into a control group of its own; says how, or why not."""
    name = f"partwise-{os.getpid()}"
    for folder, file in ((GROUPS / "memory" / name, "memory.limit_in_bytes"), (GROUPS / name, "memory.max")):
        try:
            folder.mkdir()
            (folder / file).write_text(str(megabytes * 1_000_000))
            (folder / "cgroup.procs").write_text(str(os.getpid()))
            return f"by {file} of a control group"
        except OSError:
            continue
    return ""


def forget_pages(path: str) -> None:
    """Let the system forget what it keeps of the files: a group is not charged for what others have read."""
    for file in Path(path).glob("*.npy"):
        with open(file, "rb") as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def train(path: str, solver: str, megabytes: int, epochs: int = 0) -> dict[str, Any]:
    """Train in this process, and tell what it took; 0 epochs: one of dca, three of lbfgs."""
    how = limit_memory(megabytes) if megabytes else "not"
    if not how:
        raise RuntimeError("no control group can be made here: memory cannot be limited")
    if megabytes:
        forget_pages(path)
    system = resource.getrusage(resource.RUSAGE_SELF).ru_stime
    corpus = partwise.PackedCorpus(path, verify=False)
    loss, usual = ("crf", 3) if solver == "lbfgs" else ("hinge", 1)
    labeler = partwise.SequenceLabeler(loss=loss, solver=solver, max_epochs=epochs or usual, tol=0.0)
    labeler.evaluate = "never"
    labeler.fit(corpus)
    result = labeler.result_
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "limited": how,
        "megabytes": megabytes,
        "corpus_gigabytes": corpus.nbytes / 1e9,
        "examples": len(corpus),
        "seconds": result.seconds / result.n_epochs,
        "cpu_seconds": result.cpu_seconds / result.n_epochs,
        "own_megabytes": int(status["RssAnon"].split()[0]) / 1e3,
        "system_seconds": (used.ru_stime - system) / result.n_epochs,
        "read_gigabytes": 512 * used.ru_inblock / 1e9,
        "major_faults": used.ru_majflt,
        "loss": result.history[-1].loss,
    }


def in_process(path: Path, solver: str, megabytes: int) -> dict[str, Any]:
    """`train`, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.beyond_memory", "train", str(path), solver, str(megabytes)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PARTWISE_DEBUG": "1"})
    for folder in (*GROUPS.glob("memory/partwise-*"), *GROUPS.glob("partwise-*")):
        try:
            folder.rmdir()
        except OSError:
            pass
    if done.returncode:
        raise RuntimeError(f"{solver} with {megabytes} MB: {done.stderr.strip().splitlines()[-1:]} (status {done.returncode})")
    return json.loads(done.stdout.splitlines()[-1])


def run(options: Options) -> Report:
    """The epochs, limited and not."""
    gigabytes, megabytes = (0.2, 400) if options.short else (4.0, 400)
    report, path = Report("beyond_memory"), options.folder / "made-up.packed"
    clock = time.perf_counter()
    make_corpus(path, gigabytes)
    report.notes.append(f"{gigabytes:g} GB were made up and packed in {time.perf_counter() - clock:.0f} s")
    for solver in ("dca", "lbfgs"):
        free, limited = in_process(path, solver, 0), in_process(path, solver, megabytes)
        for unit in ("cpu_seconds", "seconds"):
            note = f"{limited['read_gigabytes']:.1f} GB read, {limited['own_megabytes']:.0f} MB of its own, {limited['limited']}"
            what = f"{solver}, an epoch with {megabytes} MB"
            report.rows.append(Row(f"{gigabytes:g} GB", what, unit, limited[unit], free[unit], "all memory", note))
    return report


if __name__ == "__main__":
    verb, place, *more = sys.argv[1:]
    if verb == "make":
        print(make_corpus(place, float(more[0])))
    else:
        print(json.dumps(train(place, more[0], *map(int, more[1:]))))
