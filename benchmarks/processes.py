"""Commands measured as whole processes: CPU seconds, wall seconds, peak memory, and the stages they report themselves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent


@dataclass
class Cost:
    """What one process took.

    Attributes
    ----------
    cpu, wall : float
        Seconds of the whole process, its start and its children included.
    peak_mb : float
        Most memory it held (10^6 bytes), as VmHWM.
    said : dict
        The JSON object on the last line of its standard output, if there was one: ``cpu`` and ``seconds`` by stage, and more.
    failure : str
        Why it did not finish; empty if it did.
    """

    cpu: float
    wall: float
    peak_mb: float
    said: dict[str, Any] = field(default_factory=dict)
    failure: str = ""

    @property
    def stages(self) -> dict[str, float]:
        """CPU seconds by stage; wall seconds, longer on a busy machine, where a program reports only those."""
        return self.said.get("cpu") or {k: v for k, v in self.said.get("seconds", {}).items() if k != "total"}


def measure(command: Sequence[str], environment: Mapping[str, str] | None = None, limit: float = 3600.0) -> Cost:
    """Run `command` from the root of the checkout and say what it cost. A failure is told, not raised."""
    with tempfile.TemporaryDirectory() as folder:
        result, out, err = (os.path.join(folder, name) for name in ("result", "out", "err"))
        launcher = [sys.executable, "-I", "-S", str(Path(__file__).with_name("launch.py")), result, str(limit), out, err]
        subprocess.run([*launcher, *command], check=True, cwd=ROOT, env={**os.environ, **search_path(), **(environment or {})})
        found = json.loads(Path(result).read_text())
        lines = Path(out).read_text(errors="replace").strip().splitlines()
        errors = Path(err).read_text(errors="replace").strip().splitlines()
    cost = Cost(found["cpu"], found["wall"], found["peak_mb"])
    if found["late"]:
        cost.failure = f"not finished after {limit:g} s"
    elif found["status"]:
        cost.failure = f"exit status {found['status']}: {' '.join(errors[-1:])[:200]}"
    elif lines:
        try:
            said = json.loads(lines[-1] if lines[-1].startswith("{") and lines[-1].endswith("}") else "\n".join(lines))
            cost.said = said if isinstance(said, dict) else {}
        except ValueError:
            pass  # nothing for machines
    return cost


def search_path() -> dict[str, str]:
    """So that `benchmarks`, and the partwise of this checkout, are found by the programs whether installed or not."""
    places = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, places))}


def python(module: str, *arguments: str | os.PathLike[str]) -> list[str]:
    """The command ``python -m module arguments ...`` with this very Python."""
    return [sys.executable, "-m", module, *map(str, arguments)]
