"""Machines that libraries are made for.

What is made for another system than this one was never run: ``zig cc`` links it, and nobody here can call it. Native runners
(``.github/workflows/wheels.yml``) build and try each on its own system.
"""

from __future__ import annotations

import platform
import sys
from typing import NamedTuple


class Target(NamedTuple):
    """A system and the oldest processor that its libraries run on."""

    triple: str  #: LLVM's name of the system
    cpu: str  #: LLVM's name of the processor
    suffix: str  #: of libraries
    zig: str  #: zig's name of the system, with its oldest C library
    wheel: str  #: the platform of its wheels, where the linker does not decide it


TARGETS = {
    # AVX2 and FMA: processors since 2013 (Intel) and 2015 (AMD)
    "linux-x86_64": Target("x86_64-unknown-linux-gnu", "x86-64-v3", ".so", "x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64"),
    "linux-aarch64": Target("aarch64-unknown-linux-gnu", "generic", ".so", "aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64"),
    "macos-arm64": Target("arm64-apple-macosx11.0.0", "apple-m1", ".dylib", "aarch64-macos.11.0", "macosx_11_0_arm64"),
    "windows-x86_64": Target("x86_64-pc-windows-gnu", "x86-64-v3", ".dll", "x86_64-windows-gnu", "win_amd64"),
}
SYSTEMS = {"linux": "linux", "darwin": "macos", "win32": "windows"}
MACHINES = {"amd64": "x86_64", "x86_64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


def native() -> str:
    """The name of this machine."""
    system, machine = SYSTEMS.get(sys.platform, sys.platform), MACHINES.get(platform.machine().lower(), platform.machine())
    return f"{system}-{'arm64' if (system, machine) == ('macos', 'aarch64') else machine}"


def target(name: str) -> Target:
    """A machine, by its name."""
    if name not in TARGETS:
        raise ValueError(f"There is no target {name!r}: {', '.join(TARGETS)}.")
    return TARGETS[name]
