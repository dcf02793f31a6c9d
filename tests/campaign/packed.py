"""Packed corpora: damage of any kind is noticed before anything is learnt; manifests that lie, with all sums right, end in words.

What arrays say is not looked at (SECURITY.md: a packed corpus is yours, like a checkpoint), and so what was altered with sums
computed anew is opened and compared, and not trained on.
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
from partwise.files.packed_arrays import HEADER, MANIFEST, checksum
from partwise.tasks.common.packed_corpus import PackedCorpus
from partwise.tasks.common.registry import TASKS

SHOWN = (ValueError, MemoryError)


class Packed:
    """The example files of all tasks, packed into as many shards as there are examples."""

    name = "packed"

    def prepare(self, folder: Path) -> None:
        self.places: list[Path] = []
        with partwise.interpret(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for task in TASKS:
                file = task.command.workload(folder)
                corpus = partwise.pack(task.verb, file, folder / f"{task.verb}.packed", shard_megabytes=1e-5)
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
        place, kind = self.places[which], rng.choice(("damage", "damage", "gone", "manifest", "manifest", "array"))
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

    @staticmethod
    def means_the_same(file: Path, sound: bytes) -> bool:
        """Whether what a manifest says is as it was: blanks in it are nothing."""
        return file.name == MANIFEST and json.loads(file.read_bytes()) == json.loads(sound)
