"""Libraries of machine code and an index of them, by any C compiler: ``$CC``, ``cc``, or ``zig cc`` of the package ziglang."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from partwise.engine.frozen import FORMAT, PACKAGE, digest
from partwise.files.version import __version__
from partwise.freezing.objects import CompiledCall
from partwise.freezing.targets import native, target

HERE = Path(__file__).parent
OLDEST_GLIBC = 17  # 2.17, of 2012: wheels name nothing older
EXPORTED = ("pw_call", "pw_init", "pw_class", "pw_release", "pw_supported")
#: LLVM's type of an argument: C's, and the field of a slot it is read from
C_TYPES = {
    "ptr": ("void *", "p"),
    "i8*": ("void *", "p"),
    "i64": ("int64_t", "i"),
    "i32": ("int32_t", "i"),
    "i16": ("int16_t", "i"),
    "i8": ("int8_t", "i"),
    "i1": ("_Bool", "i"),
    "double": ("double", "d"),
    "float": ("float", "d"),
}
HEAD = """#include <stdint.h>
typedef union { void *p; int64_t i; double d; } slot;
typedef int32_t (*code)(void *, void *, const slot *);
typedef struct { const char *types; code call; int slots; const char *result; } Compiled;
typedef struct { const Compiled *compiled; int n; } Loop;
"""


class NoCompiler(RuntimeError):
    """There is nothing to link with."""


def zig_cc() -> list[str] | None:
    """The command of zig, if the package ziglang is installed."""
    return [sys.executable, "-m", "ziglang", "cc"] if importlib.util.find_spec("ziglang") is not None else None


def c_compiler(machine: str) -> list[str]:
    """The command of a C compiler for a machine: for this one any that is there, else zig."""
    zig = zig_cc()
    if machine == native():
        if os.environ.get("CC"):
            return os.environ["CC"].split()
        for name in ("cc", "gcc", "clang"):
            if shutil.which(name):
                return [name]
    if zig is None:
        raise NoCompiler(f"No C compiler for {machine} was found. Install one (Debian: gcc), or: pip install ziglang.")
    return [*zig, "-target", target(machine).zig]


def platform_of(machine: str, libraries: Iterable[Path]) -> str:
    """The platform that wheels with these libraries are for; on Linux by the newest symbols they take from the C library."""
    if not machine.startswith("linux"):
        return target(machine).wheel
    needed = {int(m) for file in libraries for m in re.findall(rb"GLIBC_2\.(\d+)", file.read_bytes())}
    return f"manylinux_2_{max({OLDEST_GLIBC, *needed})}_{machine.partition('-')[2]}"


def group_of(first: str) -> str:
    """The library that loops over a type are in: one for each structure, and one for the rest."""
    parts = first.partition(":")[0].split(".")
    return parts[2] if parts[:2] == ["partwise", "structures"] and len(parts) > 2 else "common"


def quoted(text: str) -> str:
    """A string of C."""
    return '"' + "".join(f"\\{ord(c):03o}" for c in text) + '"'


def renumbered(call: CompiledCall, classes: list[str]) -> str:
    """The types of a call, its classes by their numbers in the list of the library."""
    from partwise.freezing.types import BASE, digit

    own = []
    for name in call.classes:
        if name not in classes:
            classes.append(name)
        own.append(classes.index(name))
    text, at, out = call.types, 0, []
    while at < len(text):
        if text[at] == "A":
            out.append(text[at : at + 6])
            at += 6
        elif text[at] == "T":
            number = own[(ord(text[at + 1]) - 33) * BASE + ord(text[at + 2]) - 33]
            out.append(f"T{digit(number // BASE)}{digit(number % BASE)}{text[at + 3]}")
            at += 4
        else:
            out.append(text[at])
            at += 1
    return "".join(out)


def table_of(calls: list[CompiledCall]) -> tuple[str, list[str], list[str]]:
    """C that lists the loops of a library and calls them; their labels; the classes of their arguments."""
    by_label: dict[str, list[CompiledCall]] = defaultdict(list)
    for call in calls:
        by_label[call.label].append(call)
    classes: list[str] = []
    text = [HEAD]
    for call in calls:
        kinds = [C_TYPES[a] for a in call.arguments]
        text.append(f"int32_t {call.symbol}(void *, void *{''.join(f', {c}' for c, _ in kinds)});\n")
        given = "".join(f", ({c})a[{k}].{field}" for k, (c, field) in enumerate(kinds))
        text.append(f"static int32_t {call.symbol}_c(void *r, void *e, const slot *a) {{ return {call.symbol}(r, e{given}); }}\n")
    for n, those in enumerate(by_label.values()):
        rows = (f"{{{quoted(renumbered(c, classes))}, {c.symbol}_c, {len(c.arguments)}, {quoted(c.result)}}}" for c in those)
        text.append(f"static const Compiled loop_{n}[] = {{{', '.join(rows)}}};\n")
    text.append(f"const Loop pw_loops[] = {{{', '.join(f'{{loop_{n}, {len(c)}}}' for n, c in enumerate(by_label.values()))}}};\n")
    text.append(f"const int pw_n_loops = {len(by_label)};\n")
    return "".join(text), list(by_label), classes


def linked(group: str, calls: list[CompiledCall], machine: str, objects: Path, out: Path) -> dict[str, Any]:
    """Write a library; returns what the index says of it."""
    text, labels, classes = table_of(calls)
    table, exports, file = objects / f"{group}.c", objects / "exports.map", out / f"{group}{target(machine).suffix}"
    table.write_text(text)
    exports.write_text(f"{{ global: {'; '.join(EXPORTED)}; local: *; }};\n")
    flags = ["-O2", "-shared", "-fvisibility=hidden", "-s"]
    if machine.startswith("linux"):
        flags += ["-fPIC", f"-Wl,--version-script={exports}", "-Wl,-z,defs", "-Wl,--gc-sections"]
    sources = [HERE / "runtime.c", HERE / "calls.c", table]
    subprocess.run(
        [*c_compiler(machine), *flags, "-o", str(file), *map(str, sources), *(str(c.object_file(objects)) for c in calls), "-lm"],
        check=True,
    )
    return {
        "file": file.name,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "cpu": target(machine).cpu,
        "loops": labels,
        "classes": classes,
        "pairs": sorted({f"{c.label} {c.first}" for c in calls}),
        "specialisations": len(calls),
    }


def link_all(calls: Iterable[CompiledCall], machine: str, objects: Path, out: Path) -> dict[str, Any]:
    """Write all libraries and the index."""
    import numba

    usable = [c for c in calls if not c.refused]
    groups: dict[str, list[CompiledCall]] = defaultdict(list)
    for call in usable:
        groups[group_of(call.first)].append(call)
    out.mkdir(parents=True, exist_ok=True)
    files: dict[str, str] = {}
    for call in usable:
        for file, made_from in call.sources.items():
            if files.setdefault(file, made_from) != digest(PACKAGE / file):
                raise RuntimeError(f"{file} was edited while loops were compiled. Run this again.")
    numbers = {file: n for n, file in enumerate(files)}
    needs: dict[str, list[int]] = defaultdict(list)
    for call in usable:
        pair = needs[f"{call.label} {call.first}"]
        pair += [numbers[file] for file in call.sources if numbers[file] not in pair]
    libraries = {group: linked(group, those, machine, objects, out) for group, those in sorted(groups.items())}
    index = {
        "format": FORMAT,
        "platform": platform_of(machine, (out / about["file"] for about in libraries.values())),
        "version": __version__,
        "numba": numba.__version__,
        "libraries": libraries,
        "sources": list(files.items()),
        "needs": needs,
    }
    for path in out.iterdir():  # of earlier runs, and what linkers leave behind
        if path.name not in {about["file"] for about in libraries.values()}:
            path.unlink()
    (out / "index.json").write_text(json.dumps(index, separators=(",", ":")))
    return index
