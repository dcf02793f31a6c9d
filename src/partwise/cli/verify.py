"""``partwise verify``: whether a file of ours is whole, from the first byte to the last, and can be used."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

from partwise.cli.common import in_words, print_json, show
from partwise.cli.options import JSON, Parameter, Verb

HELP = """Check a model file: every byte, and that the model can be used.

    partwise verify model

Every tensor has a checksum, and since format version 4 the header has a digest; sizes, templates and labels must fit together.
Ends with status 0 if all is well, 1 if the file is damaged, none of ours, or of a newer version. Checkpoints are checked too, but
for what only the data can tell. The digest that is printed is that of the whole file, as sha256sum has it.
"""


def verb() -> Verb:
    """The verb."""
    return Verb("verify", HELP, [Parameter("model", Path, "Model file, or checkpoint."), JSON], run)


@in_words
def run(model: Path, as_json: bool) -> None:
    """Read all of it, build the model, and say what it is."""
    found = about(model)
    if as_json:
        print_json(found)
        return
    sums = "header and tensors" if found["sealed"] else "tensors; the header has no digest, as in files before version 4"
    lines = [
        f"{model}: sound",
        f"{found['kind']}{'' if found['estimator'] is None else ', ' + found['estimator']}, {found['bytes']:,} bytes",
        f"format version {found['format_version']}, written by partwise {found['partwise_version']}; checked: {sums}",
        f"sha256 {found['sha256']}",
    ]
    show("\n".join(lines), sys.stdout)


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
