"""Readers of every format, on texts that are almost right; and files of compiled code, of which every bit counts.

A reader that comes later is one more line in `READERS`: its name, some sound inputs, and the function that reads bytes.
"""

from __future__ import annotations

import io
import random
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from campaign import Find, mutations
from partwise import datasets, interpret, read_columns
from partwise.engine import code_cache
from partwise.files.mapped_tensors import mapped_tensors
from partwise.losses.records import get_loss
from partwise.solvers import get_solver
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.registry import BY_VERB
from partwise.text.templates import read_templates

SHOWN = (ValueError, Refusal, FloatingPointError)
SVM = b"a 1:0.5 3:2\nb 2:1 # note\na 7:1e-3\n"
CONLLX = b"1\tA\ta\tD\tD\t_\t2\tdet\t_\t_\n2\tdog\tdog\tN\tN\t_\t0\troot\t_\t_\n\n"
DECISIONS = (
    b'{"format": "partwise-decisions", "version": 1, "file": {"name": "a.txt", "sha256": "00", "bytes": 10}, '
    b'"decisions": [{"from": 3, "to": 5, "was": "NN", "now": "VB", "line": 1}]}'
)
TEMPLATES = b"w[0]\nw[-1]|w[0]\nsuffix3(lower(w[0]))\nmatch('[A-Z]+', w[0])\n__BOS__\nU05:%x[-1,0]/%x[0,0]\nB\n# note\n"


def tiny(verb: str) -> bytes:
    """The example file of a task."""
    return BY_VERB[verb].command.tiny[1].encode()


def pictures() -> bytes:
    """Pictures as numpy keeps them."""
    out = io.BytesIO()
    rng = np.random.default_rng(0)
    np.savez(out, images=rng.normal(size=(2, 3, 4, 2)), labels=rng.integers(0, 2, (2, 3, 4)))
    return out.getvalue()


def from_file(read: Callable[[str], Any]) -> Callable[[bytes], Any]:
    """For what reads paths alone."""

    def reads(data: bytes) -> Any:
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            return read(file.name)

    return reads


def decisions(path: str) -> Any:
    """A file of decisions, as ``repair`` reads it."""
    from partwise.tasks.common.decisions import Decisions

    return Decisions.read(path)


def spelled(data: bytes) -> Any:
    """A loss or a solver, as typed on the command line."""
    text = data.decode("utf-8", "replace")
    return get_loss(text) if len(data) % 2 else get_solver(text)


def table(data: bytes) -> Any:
    """A table of examples, as ``train classify`` reads it."""
    return BY_VERB["classify"].module("files").read_examples(data)


READERS: dict[str, tuple[list[bytes], Callable[[bytes], Any]]] = {
    "columns": ([tiny("tag"), b"a,b,c\nd,e,f\n\n", "é\tñ\tX\n".encode() * 3], read_columns),
    "treebank": ([tiny("parse"), CONLLX], datasets.read_treebank),
    "brackets": ([tiny("constituency"), b"(S (NP (D the) (N dog)) (VP (V barks)))\n"], datasets.read_brackets),
    "letor": ([tiny("rank"), b"2 qid:1 1:3.0 2:2.07 #docid = 40626\n0 qid:1 1:1.0\n"], datasets.read_letor),
    "rna": ([tiny("fold"), b"id\tsequence\tstructure\na\tGGAAACC\t((...))\n"], datasets.read_rna),
    "alignments": ([tiny("align"), b">a\nGATTACA\n>b\nGA-TACA\n"], datasets.read_alignments),
    "tables": ([tiny("classify"), SVM, b"a\tb\tclass\n1\t2\tx\n3\t4\ty\n"], table),
    "graphs": ([tiny("graph")], datasets.read_graphs),
    "pictures": ([pictures()], datasets.read_graphs),
    "decisions": ([DECISIONS], from_file(decisions)),
    "templates": ([TEMPLATES], from_file(lambda path: read_templates(path, ["w", "pos"]))),
    "spelling": ([b"family(beta=1, gamma=3)", b"nslack(variant='b')", b"cccp(sdm, epochs=10)", b"ramp(a=1, b=0)"], spelled),
    "safetensors": ([code for code in ()], from_file(mapped_tensors)),
}  # fmt: skip


def safetensors() -> bytes:
    """Some tensors."""
    from partwise.files.tensors import write_tensors

    with tempfile.TemporaryDirectory() as folder:
        write_tensors(Path(folder, "t"), {"format": "x"}, {"a": np.arange(6.0).reshape(2, 3), "b": np.zeros(0, np.int32)})
        return Path(folder, "t").read_bytes()


class Readers:
    """All formats in turn. What can be read is asked for its length, or shown."""

    name = "readers"

    def prepare(self, folder: Path) -> None:
        tempfile.tempdir = str(folder)
        READERS["safetensors"] = ([safetensors()], READERS["safetensors"][1])
        self.names = list(READERS)

    def one(self, seed: int) -> str:
        rng = random.Random(seed)
        name = self.names[seed % len(self.names)]
        seeds, read = READERS[name]
        data = mutations.of_bytes(rng, rng.choice(seeds))
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
