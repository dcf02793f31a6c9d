"""``partwise verify``: whether a file of ours is whole, from the first byte to the last, and can be used."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

from partwise.cli.common import in_words, print_json, show
from partwise.cli.options import JSON, Parameter, Verb

HELP = """Check a model file or a packed corpus: every byte, and that it can be used.

    partwise verify model
    partwise verify corpus.packed

Every tensor has a checksum, and since format version 4 the header has a digest; sizes, templates and labels must fit together.
Ends with status 0 if all is well, 1 if the file is damaged, none of ours, or of a newer version. Checkpoints are checked too, but
for what only the data can tell. The digest that is printed is that of the whole file, as sha256sum has it.
Of a packed corpus every shard is read and compared with its checksum, and its model is checked.
"""


def verb() -> Verb:
    """The verb."""
    return Verb("verify", HELP, [Parameter("model", Path, "Model file, checkpoint, or packed corpus."), JSON], run)


@in_words
def run(model: Path, as_json: bool) -> None:
    """Read all of it, build the model, and say what it is."""
    from partwise.files.packed_arrays import is_packed

    corpus = is_packed(model)
    found = about_corpus(model) if corpus else about(model)
    if as_json:
        print_json(found)
        return
    if corpus:
        lines = [
            f"{model}: sound",
            f"packed corpus, {found['estimator']}, {found['examples']:,} examples in {found['shards']:,} "
            f"shard{'s' * (found['shards'] != 1)}, {found['bytes']:,} bytes",
            f"format version {found['format_version']}; checked: manifest, all shards and the model",
        ]
        show("\n".join(lines), sys.stdout)
        return
    sums = "header and tensors" if found["sealed"] else "tensors; the header has no digest, as in files before version 4"
    lines = [
        f"{model}: sound",
        f"{found['kind']}{'' if found['estimator'] is None else ', ' + found['estimator']}, {found['bytes']:,} bytes",
        f"format version {found['format_version']}, written by partwise {found['partwise_version']}; checked: {sums}",
        f"sha256 {found['sha256']}",
    ]
    show("\n".join(lines), sys.stdout)


def about_corpus(path: Path) -> dict[str, Any]:
    """What a sound packed corpus is; one that is not is a PackedError."""
    from partwise.tasks.common.packed_corpus import PackedCorpus

    corpus = PackedCorpus(path).verified()
    corpus.sound_model()
    return {
        "file": str(path),
        "kind": "packed corpus",
        "estimator": corpus.manifest["estimator"],
        "format_version": corpus.manifest["format_version"],
        "examples": len(corpus),
        "shards": corpus.n_shards,
        "bytes": corpus.nbytes,
    }


def about(path: Path) -> dict[str, Any]:
    """What a sound file is; one that is not is a ModelFileError."""
    from partwise.files.tensors import SEALED, ModelFileError, read_tensors
    from partwise.tasks.common import model_file

    if not path.exists():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    kind, newest = model_file.FORMAT, model_file.FORMAT_VERSION
    try:
        header, _ = read_tensors(str(path), kind, newest)
        model_file.load(path, plain=True)
    except ModelFileError as error:
        if "but not a" not in str(error):
            raise
        kind = "partwise-checkpoint"
        header, _ = read_tensors(str(path), kind, SEALED[kind])
    version = header.get("format_version", 1)
    with open(path, "rb") as file:
        digest = hashlib.sha256()
        while part := file.read(1 << 20):
            digest.update(part)
    return {
        "file": str(path),
        "kind": kind.replace("-", " "),
        "estimator": header.get("estimator"),
        "format_version": version,
        "partwise_version": header.get("partwise_version"),
        "sealed": version >= SEALED[kind],
        "bytes": path.stat().st_size,
        "sha256": digest.hexdigest(),
    }
