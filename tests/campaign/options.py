"""Command lines, drawn from what the verbs declare: every one ends with a status and, if it fails, in words."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import random
import shutil
import sys
import warnings
from pathlib import Path
from unittest import mock

import numpy as np

from campaign import Find, sound_files
from partwise import interpret
from partwise.bridges.annotation_files import FORMATS
from partwise.cli import app, main
from partwise.cli.options import REQUIRED, Parameter, Verb
from partwise.cli.quick import is_switch, plain_kind
from partwise.tasks.common.registry import BY_VERB, TASKS

VERBS = ("train", "train", "train", "predict", "evaluate", "inspect", "suspects", "shrink", "verify", "repair", "report")
VERBS += ("pack", "convert", "solve", "export")
OF_TASKS = ("train", "pack")
NOT = ("jobs", "html", "learning_curve", "picture", "curve", "resamples")  #: options that take long, or draw
WIDE = ("parse", "constituency")  #: with millions of weights, which some solvers visit one by one, in the interpreter here
TEXTS = (
    "",
    "x",
    "-",
    "hinge",
    "crf",
    "ramp",
    "auto",
    "sdm",
    "dca",
    "mira",
    "0",
    "1",
    "w",
    "é",
    "a b",
    "json",
    "tsv",
    "words",
    "--",
)
OUTPUTS = ("-o", "--output", "--history", "--curve", "--html", "--picture")


def verb_of(name: str, task: str) -> Verb:
    """What a verb declares."""
    import importlib

    module = importlib.import_module(f"partwise.cli.{name}")
    return module.verb(BY_VERB[task]) if name in OF_TASKS else module.verb()


class Options:
    """Each runs in the process of the worker, in a folder of its own, on the tiny files and models of all tasks."""

    name = "options"

    def prepare(self, folder: Path) -> None:
        self.sound = folder / "sound"
        self.sound.mkdir()
        self.files = {}
        for task in TASKS:
            path = task.command.workload(self.sound)
            self.files[task.verb] = path.name
            assert (
                self.call(["train", task.verb, str(path), "-o", str(self.sound / f"{task.verb}.model"), "-q", "--epochs", "2"])[0]
                == 0
            )
        (self.sound / "grid.uai").write_bytes(sound_files.UAI)
        (self.sound / "marked.jsonl").write_bytes(sound_files.PRODIGY)
        (self.sound / "nonsense").write_bytes(b"\x00\x01 nonsense \xff\n" * 3)
        self.folder = folder / "trial"

    def call(self, words: list[str]) -> tuple[int, str]:
        """Status and what was said."""
        out, said = io.TextIOWrapper(io.BytesIO(), "utf-8", newline=""), io.StringIO()
        handlers = [__import__("signal").getsignal(s) for s in (2, 15)]
        try:
            with (
                mock.patch.object(sys, "argv", ["partwise", *words]),
                mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(b""))),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(said),
                warnings.catch_warnings(),
                np.errstate(all="ignore"),
                interpret(),
            ):
                warnings.simplefilter("ignore")
                main()
                return 0, said.getvalue()
        except SystemExit as end:
            return (end.code if isinstance(end.code, int) else 1 if end.code else 0), said.getvalue()
        finally:
            for number, handler in zip((2, 15), handlers, strict=True):
                __import__("signal").signal(number, handler)

    def value(self, rng: random.Random, one: Parameter, task: str) -> str:
        """Something that could stand after an option; sensible half of the time."""
        kind = plain_kind(one)
        files = [
            self.files[task],
            f"{task}.model",
            "nonsense",
            "missing",
            ".",
            "/dev/null",
            rng.choice(list(self.files.values())),
        ]
        if kind is int:
            return rng.choice(("0", "1", "2", "3", "-1", "x", "1.5", "5"))
        if kind is float:
            return rng.choice(("0", "0.1", "1", "2.5", "-1", "nan", "inf", "1e300", "x"))
        return rng.choice((*files, *TEXTS)) if kind is not Path else rng.choice((*files, "new"))

    def words(self, rng: random.Random) -> list[str]:
        """A command line."""
        name, task = rng.choice(VERBS), rng.choice(list(BY_VERB))
        declared = verb_of(name, task)
        words = [name, task] if name in OF_TASKS else [name]
        for one in declared.parameters:
            if not one.names and one.default is REQUIRED:
                read = {"solve": "grid.uai", "convert": "marked.jsonl"}.get(name, self.files[task])
                sound = f"{task}.model" if one.name == "model" else read
                words.append(sound if rng.random() < 0.8 else self.value(rng, one, task))
            elif one.default is REQUIRED and one.name != "output" and rng.random() < 0.95:
                formats = ("prodigy", "prodigy", *FORMATS) if one.name == "source" else FORMATS
                words += [rng.choice(one.spellings()), rng.choice(formats)]
        if any(one.name == "output" for one in declared.parameters) and rng.random() < 0.9:
            words += ["-o", rng.choice(("new", "new", "new", "old", self.files[task], "no/where", "."))]
        if any(one.name == "max_epochs" for one in declared.parameters):
            words += ["--epochs", "2"]
        if any(one.name == "hash_bits" for one in declared.parameters) and task in WIDE:
            words += ["--hash-bits", "8"]
        more = [one for one in declared.parameters if one.names and one.name not in (*NOT, "output", "max_epochs")]
        for one in rng.sample(more, min(len(more), rng.choice((0, 1, 1, 2, 3)))):
            words.append(rng.choice(one.spellings()))
            if not is_switch(one):
                words.append(self.value(rng, one, task))
        if rng.random() < 0.05:
            words.insert(rng.randrange(len(words) + 1), rng.choice(("--help", "--nonsense", "--json", "-q", "", "--")))
        return words

    def one(self, seed: int) -> str:
        rng = random.Random(seed)
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.sound, self.folder)
        os.chdir(self.folder)
        (self.folder / "old").write_bytes(b"precious")
        before = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        words = self.words(rng)
        status, said = self.call(words)
        if status not in (0, 1, 2) or "Traceback" in said or (status == 1 and "partwise: " not in said):
            raise Find(f"{words}: status {status}: {said[-300:]}")
        asked = {"old"}  # to write over what is not read is what was asked for
        asked |= {word for option, word in itertools.pairwise(words) if option in OUTPUTS and words.count(word) == 1}
        lost = [name for name, data in before.items() if name not in asked and (self.folder / name).read_bytes() != data]
        if lost or (status and (self.folder / "old").read_bytes() != b"precious"):
            raise Find(f"{words}: {lost or 'old'} was lost")
        return f"{words[0]}: status {status}"


assert set(VERBS) <= set(app.VERBS)
