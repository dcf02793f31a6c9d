"""``partwise doctor``: what this installation is made of, and whether anything will have to be compiled."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import warnings
from pathlib import Path
from typing import Any

from partwise.cli.common import in_words, print_json
from partwise.cli.options import JSON, Verb
from partwise.engine import code_cache, frozen
from partwise.files.version import __version__

HELP = """What this installation is made of: versions, machine code that came with it, code that was compiled and kept.

    partwise doctor

Loops that came as machine code start at once. All others are compiled by numba when they are first needed, some seconds each, and
kept on disk.
"""
REQUIRED = ("numpy", "scipy", "numba", "scikit-learn", "typer", "rich")
#: extra: what it brings
EXTRAS = {
    "plot": ("matplotlib",),
    "html": ("jinja2", "matplotlib"),
    "frames": ("pandas", "polars", "pyarrow"),
    "spacy": ("spacy",),
    "docs": ("sphinx",),
    "others": ("torch", "dask"),
}


def verb() -> Verb:
    """The verb."""
    return Verb("doctor", HELP, [JSON], run)


def version_of(name: str) -> str | None:
    """Of a package, if it is installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def about_frozen() -> dict[str, Any]:
    """What came as machine code, and whether it will be run."""
    path = frozen.folder()
    found: dict[str, Any] = {"folder": None if path is None else str(path), "why_not": None, "libraries": {}}
    if path is None:
        found["why_not"] = "PARTWISE_FROZEN=0"
    elif not path.is_dir():
        found["why_not"] = "there is none: a pure Python wheel, or an editable install"
    else:
        try:
            shelf = frozen.Shelf(path)
        except frozen.Unusable as error:
            found["why_not"] = str(error)
            return found
        for group, about in shelf.index["libraries"].items():
            library = shelf.library(group)
            edited = {pair: shelf.edited(*pair.split(" ")) for pair in about["pairs"]}
            found["libraries"][group] = {
                "specialisations": about["specialisations"],
                "loops": len(about["pairs"]),
                "bytes": os.path.getsize(path / about["file"]) if (path / about["file"]).exists() else None,
                "processor": about["cpu"],
                "usable": library is not None,
                "why_not": shelf.reasons.get(group),
                "edited": sorted({file for files in edited.values() for file in files}),
                "loops_edited": sum(map(bool, edited.values())),
            }
    return found


def about_cache() -> dict[str, Any]:
    """What was compiled here, and kept."""
    path = code_cache.cache_directory()
    found: dict[str, Any] = {"folder": str(path), "files": 0, "bytes": 0, "is_safe": True, "can_write": False}
    there = next((p for p in (path, *path.parents) if p.exists()), Path("/"))
    found["can_write"] = os.access(there, os.W_OK)
    if path.is_dir():
        sizes = [file.stat().st_size for file in path.glob("*.bin")]
        found.update(files=len(sizes), bytes=sum(sizes), is_safe=code_cache.is_ours_alone(path.stat()))
    return found


def about_data() -> dict[str, Any]:
    """Where corpora are looked for, and which are there."""
    from partwise.files.corpora import data_folder

    try:
        path = Path(data_folder())
    except (OSError, ValueError, LookupError, RuntimeError) as error:
        return {"folder": None, "corpora": [], "why_not": str(error)}
    return {"folder": str(path), "corpora": sorted(one.name for one in path.iterdir() if one.is_dir()), "why_not": None}


def about_cores() -> dict[str, Any]:
    """How many this process may use, and who says otherwise."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    limits = {name: os.environ[name] for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS") if name in os.environ}
    return {"machine": os.cpu_count(), "usable": usable, "limits": limits}


def megabytes(n: int | None) -> str:
    """For people."""
    return "missing" if n is None else f"{n / 1e6:.1f} MB"


def told(found: dict[str, Any]) -> str:
    """All of it, for people."""
    lines = [f"partwise {found['partwise']}, Python {found['python']}, {found['platform']}"]
    lines.append("with      " + ", ".join(f"{name} {v or 'MISSING'}" for name, v in found["packages"].items()))
    lines.append("extras    " + (", ".join(f"{name} {v}" for name, v in found["extras"].items() if v) or "none installed"))
    cores = found["cores"]
    limits = "".join(f", {name}={value}" for name, value in cores["limits"].items())
    lines.append(f"cores     {cores['usable']} of {cores['machine']}{limits}")
    data = found["data"]
    corpora = f"{len(data['corpora'])} corpora in {data['folder']}: {', '.join(data['corpora'])}"
    lines.append("data      " + (corpora if data["folder"] else f"none: {data['why_not']}"))
    came = found["machine_code"]
    if came["why_not"]:
        lines.append(f"machine code that came with it: not used ({came['why_not']}): numba compiles what is needed")
    for group, one in came["libraries"].items():
        line = (
            f"machine code, {group}: {one['specialisations']} specialisations of {one['loops']} loops, {megabytes(one['bytes'])}"
        )
        if not one["usable"]:
            line += f"; not used: {one['why_not']}"
        elif one["edited"]:
            line += f"; {one['loops_edited']} loops are compiled instead, for {', '.join(one['edited'][:3])} changed"
        lines.append(line)
    kept = found["compiled"]
    line = f"compiled and kept: {kept['files']} files, {megabytes(kept['bytes'])}, in {kept['folder']}"
    if not kept["can_write"]:
        line += "; CANNOT BE WRITTEN: each process compiles for itself (set PARTWISE_CACHE_DIR)"
    elif not kept["is_safe"]:
        line += "; NOT USED: others may write to it"
    return "\n".join([*lines, line])


@in_words
def run(as_json: bool) -> None:
    """Look around, and tell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they say is told below
        came = about_frozen()
    found = {
        "partwise": __version__,
        "python": platform.python_version(),
        "platform": f"{sys.platform} {platform.machine()}",
        "packages": {name: version_of(name) for name in REQUIRED},
        "extras": {name: version_of(name) for name in sorted({name for some in EXTRAS.values() for name in some})},
        "cores": about_cores(),
        "data": about_data(),
        "machine_code": came,
        "compiled": about_cache(),
    }
    if as_json:
        print_json(found)
    else:
        print(told(found))
