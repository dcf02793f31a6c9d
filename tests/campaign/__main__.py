"""``python -m campaign``: runs fuzzers in turn, restarts those that die, and keeps count. What is done is not done again."""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from campaign.worker import NOT_HERE

HANG = 20.0  #: seconds of the processor after which an input counts as one that never ends
PREPARING = 600.0  #: and seconds after which nothing moves any more
SHARES = {  #: of the time
    "model-files": 5.0, "model-bits": 1.0, "checkpoints": 1.5, "packed": 2.5, "readers": 3.0, "code-files": 0.3,
    "options": 3.0, "api": 2.0, "frames": 2.0, "layers": 2.0, "interruptions": 3.0, "soak": 1.0, "guided": 3.0,
}  # fmt: skip
IN_HERE = ("interruptions", "soak", "guided")  #: that start processes of their own


def main() -> int:
    """Status 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="campaign", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="in all")
    parser.add_argument("--only", nargs="*", choices=list(SHARES), default=list(SHARES))
    parser.add_argument("--folder", type=Path, default=Path("build/campaign"))
    parser.add_argument("--again", action="store_true", help="from the first seed on; else from where the last campaign was")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    path = given.folder / "report.json"
    report = json.loads(path.read_text()) if path.exists() and not given.again else {}
    total = sum(SHARES[name] for name in given.only)
    rounds = max(1, round(given.minutes / 15)) if len(given.only) > 1 else 1  # so that each begins early
    for _ in range(rounds):
        for name in given.only:
            seconds = 60.0 * given.minutes * SHARES[name] / total / rounds
            about = report.setdefault(name, empty())
            begin = time.monotonic()
            try:
                (go_on_here if name in IN_HERE else go_on)(name, about, seconds, given.folder)
            finally:
                about["seconds"] += time.monotonic() - begin
                path.write_text(json.dumps(report, indent=1))
    print(table(report))
    return int(any(about["finds"] or about["crashes"] or about["hangs"] for about in report.values()))


def empty() -> dict[str, Any]:
    """Of a fuzzer that has not run."""
    return {"inputs": 0, "next": 0, "seconds": 0.0, "peak_gb": 0.0, "ways": {}, "finds": {}, "crashes": [], "hangs": []}


def go_on_here(name: str, about: dict[str, Any], seconds: float, folder: Path) -> None:
    """Those that start processes themselves."""
    from campaign import guided, interruptions, soak

    run = {"interruptions": interruptions.run, "soak": soak.run, "guided": guided.run}[name]
    for way, find, kills in run(about["next"], seconds, folder):
        about["next"] += 1
        about["inputs"] += 1
        about["kills"] = about.get("kills", 0) + kills
        about["ways"][way] = about["ways"].get(way, 0) + 1
        if find:
            note(about, {"seed": about["next"] - 1, "where": way, "error": find, "trace": ""})


def go_on(name: str, about: dict[str, Any], seconds: float, folder: Path) -> None:
    """Workers, one after the other, until the time is over."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        before = {"inputs": about["inputs"], "ways": Counter(about["ways"])}
        at = folder / f"{name}.at"
        at.write_text("")
        words = [
            sys.executable,
            "-m",
            "campaign.worker",
            name,
            "--first",
            str(about["next"]),
            "--seconds",
            str(left),
            "--at",
            str(at),
        ]
        environment = {**os.environ, "PARTWISE_QUIET": "1", "COLUMNS": "200"}
        worker = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        lines: queue.Queue[str] = queue.Queue()
        errors: queue.Queue[str] = queue.Queue()
        readers = [
            threading.Thread(target=pass_on, args=two, daemon=True) for two in ((worker.stdout, lines), (worker.stderr, errors))
        ]
        for reader in readers:
            reader.start()
        seen, since, spent, hung = "", time.monotonic(), 0.0, False
        while worker.poll() is None:
            time.sleep(0.2)
            take(lines, about, before)
            now = at.read_text()
            if now != seen:
                seen, since, spent = now, time.monotonic(), cpu_seconds(worker.pid)
            elif seen and cpu_seconds(worker.pid) - spent > HANG or time.monotonic() - since > PREPARING:
                hung = True
                worker.kill()
        for reader in readers:
            reader.join()
        take(lines, about, before)
        if worker.returncode == NOT_HERE:
            print("".join(errors.queue).strip(), file=sys.stderr)
            return
        if worker.returncode != 0:
            if not at.read_text():
                raise SystemExit(f"{name} does not even begin: {''.join(errors.queue)[-1500:]}")
            seed = int(at.read_text())
            (about["hangs"] if hung else about["crashes"]).append({"seed": seed, "said": "".join(errors.queue)[-1500:]})
            about["next"] = seed + 1


def cpu_seconds(pid: int) -> float:
    """That a process has used: a machine with other things to do is no hang."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # another system, or it has ended
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pass_on(stream: Any, lines: queue.Queue[str]) -> None:
    """What a process says, line by line."""
    for line in stream:
        lines.put(line)


def take(lines: queue.Queue[str], about: dict[str, Any], before: dict[str, Any]) -> None:
    """What a worker has said."""
    while not lines.empty():
        try:
            said = json.loads(lines.get())
        except ValueError:
            continue
        if "find" in said:
            note(about, said["find"])
        else:
            about["next"] = said["next"]
            about["inputs"] = before["inputs"] + said["inputs"]
            about["ways"] = dict(before["ways"] + Counter(said["ways"]))
            about["peak_gb"] = max(about["peak_gb"], said["peak_gb"])


def note(about: dict[str, Any], find: dict[str, Any]) -> None:
    """Finds of one place are one find."""
    known = about["finds"].setdefault(find["where"], {"count": 0, "seeds": [], "error": find["error"], "trace": find["trace"]})
    known["count"] += 1
    known["seeds"] = [*known["seeds"], find["seed"]][:5]


def table(report: dict[str, Any]) -> str:
    """For people."""
    rows = [f"{'fuzzer':15}{'inputs':>10}{'finds':>8}{'crashes':>9}{'hangs':>7}{'GB':>7}{'minutes':>9}"]
    for name, about in report.items():
        finds = sum(find["count"] for find in about["finds"].values())
        rows.append(
            f"{name:15}{about['inputs']:>10,}{finds:>8}{len(about['crashes']):>9}{len(about['hangs']):>7}{about['peak_gb']:>7.2f}"
            f"{about['seconds'] / 60:>9.1f}"
        )
        rows += [
            f"    {find['count']}x {where}: {find['error'][:90]} (seed {find['seeds'][0]})"
            for where, find in about["finds"].items()
        ]
    total, kills = (sum(about.get(what, 0) for about in report.values()) for what in ("inputs", "kills"))
    return "\n".join([*rows, f"{'all':15}{total:>10,}", f"{'killed':15}{kills:>10,}"])


if __name__ == "__main__":
    sys.exit(main())
