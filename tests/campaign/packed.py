"""Packed corpora: damage is noticed before anything is learnt; manifests that lie, with all sums right, end in words.

Arrays that lie, with all sums right, are refused, or trained on: loops run in the interpreter, where an index beyond the end of
an array is an error and not an accident.
"""

from __future__ import annotations

import json
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import partwise
from campaign import Find, mutations
from partwise import kernels
from partwise.files.named_arrays import together
from partwise.files.packed_arrays import HEADER, MANIFEST, checksum, npy_header
from partwise.tasks.common.packed_corpus import PackedCorpus, below, checksum_of, prefix, shared_checksum
from partwise.tasks.common.registry import BY_VERB, TASKS

SHOWN = (ValueError, MemoryError)
SOLVERS = ("dca", "bmrm", "pegasos", "lbfgs")
TIED = {"pairwise": "antisymmetric", "hidden": 2}  #: another corpus of graphs
SMALL = {"parse": {"hash_bits": 6}, "constituency": {"hash_bits": 6}}  #: what keeps an input short


class Packed:
    """The example files of all tasks, packed into as many shards as there are examples."""

    name = "packed"

    def prepare(self, folder: Path) -> None:
        self.places: list[Path] = []
        with partwise.interpret(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            every = [(task.verb, task.verb, SMALL.get(task.verb, {})) for task in TASKS]
            for verb, name, how in [*every, ("graph", "tied", TIED)]:
                file = BY_VERB[verb].command.workload(folder)
                corpus = partwise.pack(verb, file, folder / f"{name}.packed", shard_megabytes=1e-5, **how)
                self.places.append(Path(corpus.path))
                self.read(self.places[-1])
        self.files = [sorted(place.iterdir()) for place in self.places]

    def read(self, place: Path) -> Any:
        """All that is done before training."""
        corpus = PackedCorpus(place).verified()
        return corpus.model(), repr(corpus), list(corpus.beside()), corpus.nbytes

    def one(self, seed: int) -> str:
        rng = random.Random(seed)
        which = seed % len(self.places)
        place = self.places[which]
        kind = rng.choice(("damage", "gone", "manifest", "manifest", "array", *["content"] * 5))
        if kind == "content":
            return self.trained_on(rng, which)
        file = place / MANIFEST if kind == "manifest" else rng.choice(self.files[which])
        sound = file.read_bytes()
        try:
            if kind == "gone":
                file.unlink()
            else:
                changed = self.changed(rng, kind, sound, file)
                if changed == sound:
                    return "same"
                file.write_bytes(changed)
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    self.read(place)
                except SHOWN:
                    return f"{kind}: refused"
            if kind == "gone" or (kind == "damage" and not self.means_the_same(file, sound)):
                raise Find(f"{place.name}/{file.name} was damaged, and nobody noticed")
            return f"{kind}: read"
        finally:
            file.write_bytes(sound)

    @staticmethod
    def changed(rng: random.Random, kind: str, sound: bytes, file: Path) -> bytes:
        """Another content of a file."""
        if kind == "manifest":
            manifest = json.loads(sound)
            for _ in range(rng.choice((1, 1, 2))):
                manifest = mutations.of_json(rng, manifest)
            if isinstance(manifest, dict):
                manifest.pop("crc32", None)
                try:
                    manifest["crc32"] = checksum(manifest)
                except ValueError:
                    return sound
            return json.dumps(manifest).encode()
        if kind == "array" and file.suffix == ".npy" and len(sound) > HEADER:  # with the head that it should have
            return sound[:HEADER] + mutations.of_bytes(rng, sound[HEADER:])
        return mutations.of_bytes(rng, sound)

    def trained_on(self, rng: random.Random, which: int) -> str:
        """Arrays that say something else, with all sums computed anew: refused before anything is learnt, or learnt from."""
        place = self.places[which]
        names = [file for file in self.files[which] if file.suffix == ".npy"]
        sound = {
            file: file.read_bytes() for file in (place / MANIFEST, *rng.sample(names, min(len(names), rng.choice((1, 1, 2)))))
        }
        manifest = json.loads(sound[place / MANIFEST])
        try:
            for file in sound:
                if file.name != MANIFEST:
                    array = altered(rng, np.load(file))
                    file.write_bytes(npy_header(array.dtype, array.shape) + array.tobytes())
                    manifest["arrays"][file.stem] = {"dtype": array.dtype.str, "shape": list(array.shape)}
            try:
                place.joinpath(MANIFEST).write_text(json.dumps(resealed(place, manifest)))
            except (*SHOWN, LookupError, TypeError, OverflowError):
                return "content: not even a corpus"
            with warnings.catch_warnings(), np.errstate(all="ignore"), partwise.interpret():
                warnings.simplefilter("ignore")
                try:
                    corpus = PackedCorpus(place).verified()
                except SHOWN:
                    return "content: refused"
                loss = "crf" if (solver := rng.choice(SOLVERS)) == "lbfgs" else "hinge"
                try:
                    corpus.task.core(loss=loss, solver=solver, max_epochs=1).fit(corpus)
                except (*SHOWN, FloatingPointError):
                    return "content: refused later"
            return "content: learnt"
        finally:
            for file, data in sound.items():
                file.write_bytes(data)

    @staticmethod
    def means_the_same(file: Path, sound: bytes) -> bool:
        """Whether what a manifest says is as it was: blanks in it are nothing."""
        return file.name == MANIFEST and json.loads(file.read_bytes()) == json.loads(sound)


def altered(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """A few other values: neighbours of what was there, what stands elsewhere, ends of the range; or another shape or type."""
    array = array.copy()
    kind, flat = rng.randrange(12), array.reshape(-1)
    if kind == 0:
        return array[: rng.choice((0, 1, max(len(array) - 1, 0)))] if array.ndim else array
    if kind == 1:
        return np.concatenate([array, array[: rng.choice((1, 7))]])
    if kind == 2:
        with np.errstate(all="ignore"):
            return array.astype(rng.choice(("f4", "f8", "i4", "i8", "u1", "i1", "u8", "u2", "b1")))
    for _ in range(rng.choice((1, 1, 2, 5)) if flat.size else 0):
        k = rng.randrange(flat.size)
        if array.dtype.kind == "b":
            flat[k] ^= True
        elif array.dtype.kind == "f":
            flat[k] = rng.choice((0.0, -1.0, 1e308, np.nan, np.inf, -np.inf, flat[rng.randrange(flat.size)]))
        else:
            near = (
                int(flat[k]) + rng.choice((1, -1, 1, -1, 2, 7)),
                int(flat[rng.randrange(flat.size)]),
                flat.size,
                int(flat.max()) + 1,
            )
            far = (0, -1, -2, -3, 2**31 - 1, -(2**31), 2**62, -(2**63), 2**63 - 1)
            limits = np.iinfo(array.dtype)
            flat[k] = max(min(rng.choice((*near, *near, *far)), int(limits.max)), int(limits.min))
    return array


def resealed(place: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """A manifest with the sums of what is there now."""
    arrays = {name: np.load(place / f"{name}.npy") for name in manifest["arrays"]}
    whole = {name: together(about, below(arrays, prefix(name))) for name, about in manifest["problems"].items()}
    edges = manifest["shards"]
    parts = [kernels.take(whole[""], slice(a, b)) for a, b in zip(edges[:-1], edges[1:], strict=True)]
    manifest["shard_crc32"] = [checksum_of(part, whole[""]) for part in parts]
    manifest["shared_crc32"] = shared_checksum(whole[""])
    manifest["beside_crc32"] = {name: checksum_of(problem, None) for name, problem in whole.items() if name}
    manifest.pop("crc32", None)
    return {**manifest, "crc32": checksum(manifest)}
