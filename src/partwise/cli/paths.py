"""Where results go, checked before any work is done, for all verbs: never onto what is to be read, nor onto each other."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from partwise.tasks.common.command_options import Refusal

Named = Mapping[str, "str | Path | None"]  #: paths by what the user calls them; '-' and None are no files


def check_paths(inputs: Named, outputs: Named) -> None:
    """Refuse an output that cannot be written to, that is an input, or that is another output.

    Two names are one file if device and inode say so: links are seen through.
    """
    read = {name: Path(path) for name, path in inputs.items() if path is not None and is_file(path)}
    written: dict[str, Path] = {}
    for name, given in outputs.items():
        if given is None or not is_file(given):
            continue
        path = Path(given)
        check_writable(path)
        for other, source in read.items():
            if is_same(path, source):
                raise Refusal(f"{name} {path} is {other}, which would be lost; choose another name.")
        for other, target in written.items():
            if is_same(path, target):
                raise Refusal(f"{name} and {other} are the same file, {path}; choose two names.")
        written[name] = path


def is_file(path: str | Path | None) -> bool:
    """Whether it names a file, and not standard input or output."""
    return path is not None and str(path) != "-"


def is_same(a: Path, b: Path) -> bool:
    """Whether two names are those of one file; of files that are not there yet, whether the names come to the same."""
    if a.exists() and b.exists():
        return os.path.samefile(a, b)
    return a.resolve() == b.resolve()


def check_writable(path: Path) -> None:
    """Refuse a place that cannot be written to before hours of work, not after."""
    folder = path.resolve().parent
    if path.is_dir():
        raise Refusal(f"{path} is a folder; give the name of a file.")
    if not folder.is_dir():
        raise Refusal(f"{path}: there is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise Refusal(f"{path}: the folder {folder} cannot be written to.")
