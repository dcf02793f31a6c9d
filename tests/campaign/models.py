"""Model files and checkpoints: damaged, and altered by somebody who knows the format and computes all sums anew."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import golden_files
import partwise
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
from partwise.structures import chain_problem, folding_problem, multiclass_problem, tree_problem
from partwise.tasks.common import model_file

SHOWN = (ValueError, TypeError, MemoryError, FloatingPointError)  #: what a model that loads may say of data; users see a message


def more_models() -> list[tuple[Any, dict[str, Any], list[dict[str, Any]]]]:
    """What is younger than the golden models: segments, features of pairs of labels. Models, inputs and what to ask."""
    X = [["He", "met", "Ann", "Lee"], ["Ann", "Lee", "left", "Oslo"], [], ["Oslo"]]
    segments = [[("PER", 2, 4)], [("PER", 0, 2), ("LOC", 3, 4)], [], [("LOC", 0, 1)]]
    words = [[(w, w[0]) for w in sentence] for sentence in X]
    labels = [["O", "O", "B", "I"], ["B", "I", "O", "B"], [], ["B"]]
    how = {"templates": ["w[0]", "short_shape(w[0])"], "max_epochs": 3}
    pairs = {"templates": ["U00:%x[0,0]", "B01:%x[0,1]", "B"], "columns": ["w", "pos"], "max_epochs": 3}
    cut = [
        partwise.SegmentLabeler("crf", solver="lbfgs", **how),
        partwise.SegmentLabeler("hinge", dictionary={"towns": ["Oslo", "New York"]}, use_ends=False, max_length=3, **how),
        partwise.SegmentLabeler("softmax_margin", learn_phrases=False, dtype="float64", cost="labels", **how),
    ]
    tagged = [partwise.SequenceLabeler("crf", solver="lbfgs", **pairs), partwise.SequenceLabeler(solver="arow", **pairs)]

    def calls(*names: str) -> list[dict[str, Any]]:
        return [{"call": name, "with": {"X": "X"}} for name in names]

    asked = calls("predict", "predict_segments", "predict_kbest", "predict_marginals")
    nodes, edges = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([[0, 1], [1, 2]])
    with_types = [(nodes, edges, None, ["a", "b", "a"]), (nodes[:2], edges[:1], None, ["b", "b"])]
    graphs, of_nodes = [(nodes, edges), (nodes[:2], edges[:1])], [["u", "v", "u"], ["v", "w"]]
    of_graphs = [
        (partwise.GraphLabeler("crf", pairwise="symmetric", max_epochs=2), with_types),
        (partwise.GraphLabeler(hidden=2, max_epochs=2), graphs),
        (partwise.GraphLabeler(submodular=True, inference="exact", max_epochs=2), graphs),
        (partwise.GraphLabeler(pairwise="antisymmetric", max_epochs=2), graphs),
    ]
    tagged_words = [[("the", "D"), ("dog", "N")], [("a", "D"), ("cat", "N"), ("sees", "V")]]
    trees = ["(S (D the) (N dog))", "(S (NP (D a) (N cat)) (V sees))"]
    bare = partwise.ConstituencyParser(grammar=None, hash_bits=6, max_epochs=2)
    found: list[Any] = [(model.fit(X, segments), {"X": X}, asked) for model in cut]
    found += [(model.fit(some, of_nodes), {"X": some}, calls("predict", "predict_kbest")) for model, some in of_graphs]
    found.append((bare.fit(tagged_words, trees), {"X": tagged_words}, calls("predict", "predict_kbest")))
    return found + [(model.fit(words, labels), {"X": words}, calls("predict", "predict_kbest")) for model in tagged]


class Models:
    """Every golden model, and `more_models`; those that still load answer what they were asked when they were made."""

    name = "model-files"

    def prepare(self, folder: Path) -> None:
        self.path = folder / "altered.model"
        self.seeds: list[tuple[bytes, dict, dict, dict, list]] = []  #: bytes, header, tensors, inputs, calls
        for name in golden_files.models():
            about = golden_files.read(name)
            inputs = {key: golden_files.from_json(value) for key, value in about["inputs"].items()}
            calls = [call for call in about["calls"] if call["call"].startswith("predict")]
            self.add(model_file.load(golden_files.unpack(name, folder / "golden.model"), plain=True), inputs, calls)
        with interpret(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for model, inputs, calls in more_models():
                self.add(model, inputs, calls)

    def add(self, model: Any, inputs: dict[str, Any], calls: list[dict[str, Any]]) -> None:
        """One more, in the version of today."""
        model_file.save(model, self.path)
        header, tensors = read_tensors(str(self.path), model_file.FORMAT, model_file.FORMAT_VERSION)
        tensors = {key: np.array(array) for key, array in tensors.items()}
        self.seeds.append((self.path.read_bytes(), header, tensors, inputs, calls))

    def one(self, seed: int) -> str:
        rng = random.Random(seed)
        raw, header, tensors, inputs, calls = self.seeds[seed % len(self.seeds)]
        mutations.of_file(rng, raw, header, tensors, self.path)
        with warnings.catch_warnings(), interpret(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                model = model_file.load(self.path, plain=True)
            except ModelFileError:
                return "refused"
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
        models = Models()
        models.prepare(folder)
        self.files = [(raw, 8 + int.from_bytes(raw[:8], "little")) for raw, *_ in models.seeds]

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
    """Checkpoints of many solvers; those that still load go on for two epochs."""

    name = "checkpoints"
    solvers = ("dca", "pegasos", "sdm", "bcfw", "lbfgs", "bmrm", "oneslack", "nslack", "mira", "kelley", "sdcd")

    def prepare(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        problems = [multiclass_problem(rng.normal(size=(8, 3)), rng.integers(0, 3, 8))]
        problems.append(chain_problem(rng.normal(size=(7, 2)), [3, 0, 4], rng.integers(0, 3, 7), n_labels=3))
        problems.append(tree_problem(rng.normal(size=(26, 2)), [2, 0, 4], [2, 0, 2, 0, 2, 3]))
        problems.append(folding_problem(["GGAAACC", "GAAAC", ""], [[6, 5, -1, -1, -1, 1, 0], [4, -1, -1, -1, 0], []]))
        self.path, self.seeds = folder / "altered.checkpoint", []
        every = {name: SOLVERS[name]() for name in self.solvers} | {"cccp": CCCP(SOLVERS["sdm"]()), "out_of_fold": OutOfFold()}
        for name, solver in every.items():
            loss = {"lbfgs": "crf", "cccp": "ramp", "out_of_fold": "ramp", "sdcd": "summed"}.get(name, "hinge")
            for problem in problems:
                if (name == "sdcd" and problem is not problems[0]) or (name == "kelley" and problem is problems[-1]):
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
            try:
                run(solver, task, max_epochs=min(found.n_epochs + 2, 2**40), tol=0.0, resume=found, evaluate="never")
            except SHOWN:
                return "loaded, refused later"
        return "loaded, went on"
