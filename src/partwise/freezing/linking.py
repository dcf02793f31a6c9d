"""Libraries of machine code and an index of them, by any C compiler: ``$CC``, ``cc``, or ``zig cc`` of the package ziglang."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from partwise.engine.frozen import FORMAT, PACKAGE
from partwise.files.version import __version__
from partwise.freezing.objects import CPU, CompiledCall

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


def c_compiler() -> list[str]:
    """The command of a C compiler that is there."""
    if os.environ.get("CC"):
        return os.environ["CC"].split()
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return [name]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise NoCompiler("No C compiler was found. Install one (Debian: gcc), or: pip install ziglang.")


def platform_of(libraries: Iterable[Path]) -> str:
    """The platform that wheels with these libraries are for; on Linux by the newest symbols they take from the C library."""
    if not sys.platform.startswith("linux"):
        return sysconfig.get_platform().replace("-", "_").replace(".", "_")
    needed = {int(m) for file in libraries for m in re.findall(rb"GLIBC_2\.(\d+)", file.read_bytes())}
    return f"manylinux_2_{max({OLDEST_GLIBC, *needed})}_{platform.machine()}"


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


def linked(group: str, calls: list[CompiledCall], objects: Path, out: Path) -> dict[str, Any]:
    """Write a library; returns what the index says of it."""
    text, labels, classes = table_of(calls)
    table, exports, file = objects / f"{group}.c", objects / "exports.map", out / f"{group}.so"
    table.write_text(text)
    exports.write_text(f"{{ global: {'; '.join(EXPORTED)}; local: *; }};\n")
    flags = ["-O2", "-fPIC", "-shared", f"-Wl,--version-script={exports}", "-Wl,-z,defs", "-Wl,--gc-sections", "-s"]
    sources = [HERE / "runtime.c", HERE / "calls.c", table]
    subprocess.run(
        [*c_compiler(), *flags, "-o", str(file), *map(str, sources), *(str(c.object_file(objects)) for c in calls), "-lm"],
        check=True,
    )
    return {
        "file": file.name,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "cpu": CPU,
        "loops": labels,
        "classes": classes,
        "pairs": sorted({f"{c.label} {c.first}" for c in calls}),
        "specialisations": len(calls),
    }


def link_all(calls: Iterable[CompiledCall], objects: Path, out: Path) -> dict[str, Any]:
    """Write all libraries and the index."""
    import numba

    from partwise.engine.compilation import sources, stamp
    from partwise.freezing.objects import loop_named

    usable = [c for c in calls if not c.refused]
    groups: dict[str, list[CompiledCall]] = defaultdict(list)
    for call in usable:
        groups[group_of(call.first)].append(call)
    out.mkdir(parents=True, exist_ok=True)
    files: dict[str, int] = {}
    needs: dict[str, list[int]] = {}
    for call in usable:
        pair = f"{call.label} {call.first}"
        if pair not in needs:
            function, first = loop_named(call)
            if stamp(function, first) != call.stamp:
                raise RuntimeError(f"Sources of {call.label} were edited while it was compiled. Run this again.")
            own = sorted(os.path.relpath(f, PACKAGE).replace(os.sep, "/") for f in sources(function, first))
            needs[pair] = [files.setdefault(f, len(files)) for f in own]
    libraries = {group: linked(group, those, objects, out) for group, those in sorted(groups.items())}
    index = {
        "format": FORMAT,
        "platform": platform_of(out / about["file"] for about in libraries.values()),
        "version": __version__,
        "numba": numba.__version__,
        "libraries": libraries,
        "sources": [[f, hashlib.sha256((PACKAGE / f).read_bytes()).hexdigest()[:16]] for f in files],
        "needs": needs,
    }
    (out / "index.json").write_text(json.dumps(index, separators=(",", ":")))
    return index
