"""``python -m partwise.freezing.trial DIST``: a newcomer who installs the wheel, and has no compiler of any kind.

The wheel in DIST goes into an environment of its own, where importing numba fails. Then every usual command of every task is run,
on its tiny workload. One that would need something compiled is reported, and fails the trial.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
import warnings
from pathlib import Path

BLOCKED = 'raise ImportError("numba is blocked in this trial")\n'


def not_frozen(verb: str, thorough: bool) -> list[str]:
    """Commands of a task that need what is not there."""
    from partwise.freezing.recorder import EPOCHS, run, trainings, verbs
    from partwise.tasks.common.registry import BY_VERB

    task, found, n = BY_VERB[verb], [], 0
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        file, model, out = task.command.workload(folder), folder / "model", folder / "out"
        for options in trainings(task, thorough):
            commands = [("train", verb, file, "-o", model, *EPOCHS, *options)]
            if "--solver" not in options:
                commands += verbs(task, model, file, out)
            for words in commands:
                n += 1
                try:
                    done = run(*words)
                except ImportError as error:
                    found.append(f"{' '.join(Path(str(w)).name for w in words)}: {error}")
                    done = False
                if words[0] == "train" and not done:
                    break
    print(f"{verb}: {n} commands, {len(found)} not frozen", flush=True)
    return found


def block_numba(folder: Path) -> Path:
    """A folder to look for modules in first: importing numba fails there."""
    package = folder / "blocked" / "numba"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(BLOCKED)
    return package.parent


def installed(dist: Path, folder: Path) -> Path:
    """A Python that has the wheel."""
    wheels = sorted(dist.glob("partwise-*-py3-none-*.whl"), key=lambda file: file.stat().st_mtime)
    if not wheels:
        sys.exit(f"{dist} holds no wheel of partwise. Run: make wheel")
    venv.create(folder, with_pip=True, clear=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", str(wheels[-1])], check=True)
    return python


def main() -> None:
    """See the module."""
    from partwise.tasks.common.registry import BY_VERB

    parser = argparse.ArgumentParser(prog="python -m partwise.freezing.trial", description=__doc__)
    parser.add_argument("dist", type=Path, nargs="?", help="folder of the wheel (default: try what is installed)")
    parser.add_argument("--tasks", default=",".join(BY_VERB), help="which, by their verbs (default: all)")
    parser.add_argument("--defaults", action="store_true", help="only commands that set nothing")
    options = parser.parse_args()
    if options.dist is None:
        found = [line for verb in options.tasks.split(",") for line in not_frozen(verb, not options.defaults)]
        print("\n".join(found))
        sys.exit(bool(found))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        python = installed(options.dist, folder / "venv")
        more = ["--tasks", options.tasks, *(["--defaults"] if options.defaults else [])]
        environment = {**os.environ, "PYTHONPATH": str(block_numba(folder))}
        environment.pop("PARTWISE_FROZEN", None)
        done = subprocess.run([str(python), "-m", "partwise.freezing.trial", *more], env=environment, cwd=folder, check=False)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
