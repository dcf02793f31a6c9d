"""Readers of every format, on texts that are almost right; and files of compiled code, of which every bit counts.

A reader that comes later is one more line in `READERS`: its name, some sound inputs (`campaign.sound_files`), and the function
that reads bytes.
"""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from campaign import Find, mutations, sound_files
from partwise import datasets, interpret, read_columns
from partwise.bridges.annotation_files import FORMATS, read_annotations, write_annotations
from partwise.crfsuite.binary_model import read_crfsuite_model
from partwise.engine import code_cache
from partwise.files.mapped_tensors import mapped_tensors
from partwise.files.text_edits import EditableText
from partwise.losses.records import get_loss
from partwise.solvers import get_solver
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.decisions import Decisions
from partwise.tasks.common.registry import BY_VERB
from partwise.tasks.tagging.crfpp_model import read_crfpp_model
from partwise.tasks.tagging.wapiti_model import read_wapiti_model
from partwise.text.templates import read_templates

SHOWN = (ValueError, Refusal, FloatingPointError)


def from_file(read: Callable[[str], Any]) -> Callable[[bytes], Any]:
    """For what reads paths alone."""

    def reads(data: bytes) -> Any:
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            return read(file.name)

    return reads


def decisions(path: str) -> Any:
    """A file of decisions, as ``repair`` reads it; what fits is applied, and changes no byte but those it speaks of."""
    found = Decisions.read(path)
    source = EditableText.of(sound_files.DECIDED, "a.txt")
    corrected = found.apply(source)
    if (len(corrected) - len(source.original)) != sum(len(one.new.encode()) - len(one.old.encode()) for one in found.changes):
        raise Find("more was changed than was decided")
    return found


def spelled(read: Callable[[str], Any]) -> Callable[[bytes], Any]:
    """A loss or a solver, as typed on the command line."""
    return lambda data: read(data.decode("utf-8", "replace"))


def table(data: bytes) -> Any:
    """A table of examples, as ``train classify`` reads it."""
    return BY_VERB["classify"].module("files").read_examples(data)


def annotations(format: str) -> Callable[[bytes], Any]:
    """A file of an annotation tool, as ``convert`` reads it; what can be read is written as every other format."""

    def convert(path: str) -> Any:
        if format == "brat":  # two files: a line of hyphens between them here
            text, _, marks = Path(path).read_bytes().partition(b"\n---\n")
            Path(f"{path}.txt").write_bytes(text)
            Path(f"{path}.ann").write_bytes(marks)
        try:
            documents = read_annotations(f"{path}.ann" if format == "brat" else path, format)
            other = FORMATS[len(str(documents)) % len(FORMATS)]
            with contextlib.suppress(*SHOWN):
                write_annotations(documents, f"{path}.other", other, adjust=True)
        finally:
            folder, name = os.path.split(path)
            for left in os.listdir(folder):
                if left.startswith(f"{name}."):
                    os.unlink(os.path.join(folder, left))
        return len(documents)

    return from_file(convert)


def factor_graphs(data: bytes) -> Any:
    """Factor graphs; small ones are solved."""
    found = datasets.read_factor_graphs(data)
    for one in found:
        if sum(v.n_states for v in one.variables if v is not None) < 20:
            one.states(one.graph.best("ad3", iterations=5))
            one.marginals(one.graph.marginals(iterations=5))
    return len(found)


def other_model(read: Callable[[bytes], Any], words: list[Any]) -> Callable[[bytes], Any]:
    """A model of another program, which answers if it can be read."""

    def reads(data: bytes) -> Any:
        return read(data).predict([words])

    return reads


READERS: dict[str, tuple[list[bytes], Callable[[bytes], Any]]] = {
    "columns": ([sound_files.tiny("tag"), b"a,b,c\nd,e,f\n\n", "é\tñ\tX\n".encode() * 3], read_columns),
    "segments": ([sound_files.tiny("segment"), b"Ann B-PER\nLee I-PER\nleft O\n\nOslo B-LOC\n"], datasets.read_segments),
    "dictionary": ([b"Ann Lee\nOslo\n", "LOC\tNew York\nPER\tÁnn\n".encode()], from_file(datasets.read_dictionary)),
    "treebank": ([sound_files.tiny("parse"), sound_files.CONLLX], datasets.read_treebank),
    "brackets": ([sound_files.tiny("constituency"), b"(S (NP (D the) (N dog)) (VP (V barks)))\n"], datasets.read_brackets),
    "letor": ([sound_files.tiny("rank"), b"2 qid:1 1:3.0 2:2.07 #docid = 40626\n0 qid:1 1:1.0\n"], datasets.read_letor),
    "rna": ([sound_files.tiny("fold"), b"id\tsequence\tstructure\na\tGGAAACC\t((...))\n"], datasets.read_rna),
    "alignments": ([sound_files.tiny("align"), b">a\nGATTACA\n>b\nGA-TACA\n"], datasets.read_alignments),
    "tables": ([sound_files.tiny("classify"), sound_files.SVM, b"a\tb\tclass\n1\t2\tx\n3\t4\ty\n"], table),
    "parquet": (sound_files.parquet(), table),
    "graphs": ([sound_files.tiny("graph"), *sound_files.GRAPHS], datasets.read_graphs),
    "pictures": ([sound_files.pictures()], datasets.read_graphs),
    "factor-graphs": ([sound_files.UAI, sound_files.BAYES, sound_files.FG], factor_graphs),
    "decisions": ([sound_files.decisions()], from_file(decisions)),
    "templates": ([sound_files.TEMPLATES], from_file(lambda path: read_templates(path, ["w", "pos"]))),
    "losses": ([b"family(beta=1, gamma=3)", b"ramp(a=1, b=0)", b"soft_ramp(b=0.5)"], spelled(get_loss)),
    "solvers": ([b"nslack(variant='b')", b"cccp(sdm, epochs=10)", b"pegasos(ball='paper')"], spelled(get_solver)),
    "safetensors": ([sound_files.tensors()], from_file(mapped_tensors)),
    "crfpp-model": ([sound_files.CRFPP], other_model(read_crfpp_model, [("a", "N"), ("b", "V")])),
    "wapiti-model": ([sound_files.WAPITI], other_model(read_wapiti_model, [("a", "N"), ("b", "V"), ("É1", "N")])),
    "crfsuite-model": (sound_files.crfsuite_models(), other_model(read_crfsuite_model, [{"a": 1.0}, {"b": 0.5}])),
    "prodigy": ([sound_files.PRODIGY], annotations("prodigy")),
    "doccano": ([sound_files.DOCCANO], annotations("doccano")),
    "labelstudio": ([sound_files.LABELSTUDIO], annotations("labelstudio")),
    "brat": ([sound_files.BRAT], annotations("brat")),
    "offsets": ([sound_files.OFFSETS], annotations("columns")),
}  # fmt: skip


class Readers:
    """All formats in turn. What can be read is asked for its length, or shown."""

    name = "readers"

    def prepare(self, folder: Path) -> None:
        tempfile.tempdir = str(folder)
        self.names = [name for name, (sound, _) in READERS.items() if sound]  # all that can be made here
        with interpret():
            for name in self.names:
                for data in READERS[name][0]:
                    repr(READERS[name][1](data))  # what is sound is read

    def one(self, seed: int) -> str:
        rng = random.Random(seed)
        name = self.names[seed % len(self.names)]
        seeds, read = READERS[name]
        data = mutations.of_text(rng, rng.choice(seeds))
        with warnings.catch_warnings(), interpret(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                repr(read(data))
            except SHOWN:
                return f"{name}: refused"
            except MemoryError as error:
                if type(error) is not MemoryError or not error.args:
                    raise Find(f"{name}: memory without a message") from error
                return f"{name}: refused"
        return f"{name}: read"


class CodeFiles:
    """Files of compiled code: any change is noticed before anything is read."""

    name = "code-files"

    def prepare(self, folder: Path) -> None:
        self.sound = code_cache.sealed(bytes(range(256)) * 20)

    def one(self, seed: int) -> str:
        rng = random.Random(seed)
        data = mutations.of_bytes(rng, self.sound)
        if data == self.sound:
            return "same"
        if code_cache.opened(data) is not None:
            raise Find("damaged code was taken for sound")
        return "refused"
