"""The kernels of `partwise.torch` on a CUDA device: checks against float64 and figures beside pytorch-crf and torch-struct.

``python -m benchmarks.torch_gpu`` does everything in one go and needs nothing but PyTorch, Triton and this repository: every
kernel is first compared with the plain-torch twin in float64 (`checks`), then timed (`figures`), by CUDA events, medians, eager
and as a CUDA graph. Peers are found on the path or in ``build/peers``. What fails is reported and does not stop the rest. The
table, JSON and tracebacks go to the folder $OUT.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path

from benchmarks.torch_gpu import chain_checks, figures, structure_checks
from benchmarks.torch_gpu.run import Run

ROOT = Path(__file__).resolve().parents[2]


def in_processes(run: Run, parts: int = 10) -> None:
    """All checks, dealt out to processes: most of their time goes into compiling, on one core each."""
    started = []
    for k in range(parts):
        folder = run.folder.resolve() / f"checks_{k}"
        command = [sys.executable, "-m", "benchmarks.torch_gpu", "--only", "checks", "--part", f"{k}/{parts}"]
        started.append(
            (folder, subprocess.Popen(command, env={**os.environ, "OUT": str(folder)}, stdout=subprocess.DEVNULL, cwd=ROOT))
        )
    for folder, process in started:
        try:
            process.wait(max(10.0, 270 - (time.time() - run.began)))
        except subprocess.TimeoutExpired:
            process.kill()
            run.say(f"FAIL {folder.name} took too long")
        log = folder / "torch_gpu.log"
        text = log.read_text() if log.exists() else "no log"
        run.log.write(text)
        found = folder / "torch_gpu.json"
        done = json.loads(found.read_text())["checks"] if found.exists() else []
        run.checks += done
        for check in done:
            run.say(f"{'ok  ' if check['fine'] else 'FAIL'} {check['name']}: {check['text']}")


def main() -> None:
    """Checks, then figures, then the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torch_gpu", description=__doc__)
    parser.add_argument("--only", choices=("checks", "figures"), help="one half")
    parser.add_argument(
        "--part", default="", metavar="K/N", help="only every N-th check: what the processes do that this one starts"
    )
    parser.add_argument("--match", default="", metavar="TEXT", help="only checks whose name has this")
    arguments = parser.parse_args()
    for folder in (ROOT / "src", ROOT / "build" / "peers"):
        sys.path.insert(0, str(folder))
    import torch

    if not torch.cuda.is_available():
        sys.exit("there is no CUDA device")
    import triton

    run = Run(Path(os.environ.get("OUT") or "benchmarks/results"))
    device = torch.cuda.get_device_name(0)
    run.say(f"torch {torch.__version__}, triton {triton.__version__}, {device}, Python {sys.version.split()[0]}")
    torch.cuda.set_device(0)
    if arguments.part:
        run.part, run.parts = map(int, arguments.part.split("/"))
    elif arguments.only != "figures" and not arguments.match:
        in_processes(run)
    if arguments.only != "figures" and (arguments.match or arguments.part):
        if arguments.match:
            every, run.check = run.check, lambda name, work: every(name, work) if arguments.match in name else None
        chain_checks.checks(run)
        structure_checks.checks(run)
        run.say(f"checks took {time.time() - run.began:.0f} s")
    if arguments.only != "checks":
        for part in (figures.chain_figures, figures.tree_figures, figures.other_figures):
            try:
                part(run)
            except Exception as error:
                run.log.write(traceback.format_exc() + "\n")
                run.say(f"FAIL {part.__name__}: {type(error).__name__}: {str(error)[:200]}")
            run.say(f"{part.__name__} done after {time.time() - run.began:.0f} s")
    run.save()
    passed = sum(check["fine"] for check in run.checks)
    run.say(f"\n{passed} of {len(run.checks)} checks passed, {time.time() - run.began:.0f} s")
    for check in run.checks:
        if not check["fine"]:
            run.say(f"  FAIL {check['name']}: {check['text']}")
    for row in run.rows:
        if row["value"] is not None:
            run.say(f"{row['shape']:20}{row['what']:28}{row['who']:22}{row['value']:14.1f} {row['unit']}")


if __name__ == "__main__":
    main()
