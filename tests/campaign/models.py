"""Model files and checkpoints: damaged, and altered by somebody who knows the format and computes all sums anew."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import golden_files
from campaign import Find, mutations
from partwise import interpret
from partwise.files.tensors import ModelFileError, read_tensors
from partwise.losses.records import LOSSES
from partwise.solvers import CCCP, SOLVERS, make_task
from partwise.solvers.checkpoint import FORMAT as CHECKPOINT
from partwise.solvers.checkpoint import VERSION as CHECKPOINT_VERSION
from partwise.solvers.checkpoint import Checkpoint
from partwise.solvers.loop import run
from partwise.solvers.out_of_fold import OutOfFold
from partwise.structures import chain_problem, multiclass_problem
from partwise.tasks.common import model_file

SHOWN = (ValueError, TypeError, MemoryError, FloatingPointError)  #: what a model that loads may say of data; users see a message


class Models:
    """Every golden model, of every task and estimator; those that still load answer what they were asked when they were made."""

    name = "model-files"

    def prepare(self, folder: Path) -> None:
        self.path = folder / "altered.model"
        self.seeds: list[tuple[str, bytes, dict, dict, Any]] = []
        for name in golden_files.models():
            about = golden_files.read(name)
            old = golden_files.unpack(name, folder / "golden.model")
            model_file.save(model_file.load(old, plain=True), folder / "new.model")  # in the version of today
            raw = (folder / "new.model").read_bytes()
            header, tensors = read_tensors(str(folder / "new.model"), model_file.FORMAT, model_file.FORMAT_VERSION)
            tensors = {key: np.array(array) for key, array in tensors.items()}
            self.seeds.append((name, raw, header, tensors, about))

    def one(self, seed: int) -> str:
        rng = random.Random(seed)
        _, raw, header, tensors, about = self.seeds[seed % len(self.seeds)]
        mutations.of_file(rng, raw, header, tensors, self.path)
        with warnings.catch_warnings(), interpret(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                model = model_file.load(self.path, plain=True)
            except ModelFileError:
                return "refused"
            inputs = {name: golden_files.from_json(value) for name, value in about["inputs"].items()}
            calls = [call for call in about["calls"] if call["call"].startswith("predict")]
            try:
                golden_files.ask(model, rng.choice(calls), inputs)
            except SHOWN:
                return "loaded, data refused"
        return "loaded, answered"


class Bits:
    """Single flipped bits of whole files: none may load, for every byte counts."""

    name = "model-bits"

    def prepare(self, folder: Path) -> None:
        self.path = folder / "flipped.model"
        self.files = []
        for name in golden_files.models():
            model_file.save(model_file.load(golden_files.unpack(name, folder / "golden.model"), plain=True), folder / "new.model")
            raw = (folder / "new.model").read_bytes()
            self.files.append((raw, 8 + int.from_bytes(raw[:8], "little")))

    def one(self, seed: int) -> str:
        rng = random.Random(seed)
        raw, head = self.files[seed % len(self.files)]
        flipped = bytearray(raw)
        flipped[rng.randrange(head if rng.random() < 0.8 else len(raw))] ^= 1 << rng.randrange(8)
        self.path.write_bytes(flipped)
        try:
            model_file.load(self.path, plain=True)
        except ModelFileError:
            return "refused"
        raise Find("a flipped bit was not noticed")


class Checkpoints:
    """Checkpoints of many solvers; those that still load go on for two epochs, but for those with other outputs (SECURITY.md)."""

    name = "checkpoints"
    solvers = ("dca", "pegasos", "sdm", "bcfw", "lbfgs", "bmrm", "oneslack", "nslack", "mira", "kelley", "sdcd")

    def prepare(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        problems = [multiclass_problem(rng.normal(size=(8, 3)), rng.integers(0, 3, 8))]
        problems.append(chain_problem(rng.normal(size=(7, 2)), [3, 0, 4], rng.integers(0, 3, 7), n_labels=3))
        self.path, self.seeds = folder / "altered.checkpoint", []
        every = {name: SOLVERS[name]() for name in self.solvers} | {"cccp": CCCP(SOLVERS["sdm"]()), "out_of_fold": OutOfFold()}
        for name, solver in every.items():
            loss = {"lbfgs": "crf", "cccp": "ramp", "out_of_fold": "ramp", "sdcd": "summed"}.get(name, "hinge")
            for problem in problems:
                if name == "sdcd" and problem is not problems[0]:
                    continue
                task = make_task(problem, LOSSES[loss], 0.3)
                with interpret():
                    kept = Checkpoint(folder / "kept", 0.0)
                    kept.load(solver, task)
                    run(solver, task, max_epochs=3, tol=0.0, callbacks=[kept.save])
                header, tensors = read_tensors(str(folder / "kept"), CHECKPOINT, CHECKPOINT_VERSION)
                tensors = {key: np.array(array) for key, array in tensors.items()}
                self.seeds.append((solver, task, (folder / "kept").read_bytes(), header, tensors))
                (folder / "kept").unlink()

    def one(self, seed: int) -> str:
        rng = random.Random(seed)
        solver, task, raw, header, tensors = self.seeds[seed % len(self.seeds)]
        mutations.of_file(rng, raw, {**header}, tensors, self.path)
        with warnings.catch_warnings(), interpret(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                found = Checkpoint(self.path, 0.0).load(solver, task)
            except ValueError:  # ModelFileError, or of another run
                return "refused"
            kept = {key: array for key, array in read_tensors(str(self.path), CHECKPOINT, CHECKPOINT_VERSION)[1].items()}
            if any(
                key.endswith(("outputs", "targets")) and not np.array_equal(array, tensors.get(key))
                for key, array in kept.items()
            ):
                return "loaded, outputs altered"
            try:
                run(solver, task, max_epochs=min(found.n_epochs + 2, 2**40), tol=0.0, resume=found, evaluate="never")
            except SHOWN:
                return "loaded, refused later"
        return "loaded, went on"
