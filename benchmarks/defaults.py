"""Which loss, C, solver and number of epochs make good defaults: a study on held-out parts of training data.

    python -m benchmarks.defaults run                  # all data sets; what is in the file already is not run again
    python -m benchmarks.defaults run conll2000 usps --seeds 0 1
    python -m benchmarks.defaults table                # the tables of docs/defaults.md, from the file

Every candidate is trained on part of the training data of a data set, once with right labels and once with a fifth of the
examples wrong, and judged on the rest by its true labels (`benchmarks.defaults_data`). A candidate is a loss, a solver and C on a
lattice of half powers of ten; one run gives its scores after several numbers of epochs. What counts is *regret*: the points that
a candidate loses against the best of all candidates on the same data. Seconds are CPU seconds of training, without scoring.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.choose_settings import make_solver
from benchmarks.defaults_data import DATA, Data, Part
from partwise import kernels
from partwise.engine.accumulator import clear, squared_norm
from partwise.engine.compilation import MissingKernel, compiled_loop
from partwise.losses import get_loss
from partwise.losses.in_loops import add_gradient, evaluate, workspace
from partwise.solvers import solve
from partwise.solvers.defaults import choose
from partwise.tasks.common.registry import BY_VERB

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "defaults.json"
RUN = ("loss", "solver", "C", "at")  # what the file says of a run
NOISE = (0.0, 0.2)  # share of wrong examples
LATTICE = tuple(float(f"{m}e{e}") for e in range(-8, 3) for m in (1, 3))  # values of C
LIMIT = 8.0  # CPU seconds of a run: then what there is counts for all later epochs

Settings = tuple[str, str, float, int]  # loss, solver, C, epochs
Few = tuple[float, float]  # lowest and highest C of a grid
#: loss, solver, epochs at which it is judged, C from .. to; for classes, divided by the spread of the features
GRID: dict[str, list[tuple[str, str, tuple[int, ...], Few]]] = {
    "tag": [
        ("hinge", "dca", (5, 10, 20), (0.001, 0.3)),
        ("hinge", "pegasos", (5, 10, 20), (0.01, 1)),
        ("hinge", "sdm", (10, 20), (0.03, 1)),
        ("crf", "dca", (5, 10, 20), (0.01, 1)),
        ("crf", "pegasos", (5, 10, 20), (0.1, 3)),
        ("ramp", "pegasos", (10, 20), (0.03, 1)),
        ("ramp", "sdm", (50,), (0.1, 1)),
        ("ramp", "dca", (10,), (0.01, 0.1)),
        ("softmax_margin", "dca", (5, 10, 20), (0.03, 0.1)),
        ("crf", "lbfgs", (100,), (0.3, 1)),
    ],
    "classify": [
        ("hinge", "dca", (5, 10, 20), (0.01, 10)),
        ("hinge", "pegasos", (5, 10, 20), (0.1, 10)),
        ("hinge", "sdm", (10, 20), (0.1, 10)),
        ("crf", "dca", (5, 10, 20), (0.03, 10)),
        ("crf", "pegasos", (5, 10, 20), (0.3, 30)),
        ("crf", "lbfgs", (100,), (0.3, 30)),
        ("ramp", "pegasos", (10, 20), (0.1, 10)),
        ("ramp", "sdm", (50,), (0.1, 10)),
    ],
    "parse": [
        ("hinge", "dca", (5, 10, 20), (0.001, 0.1)),
        ("hinge", "pegasos", (5, 10, 20), (0.01, 0.3)),
        ("hinge", "sdm", (10, 20), (0.03, 0.3)),
        ("crf", "dca", (5, 10), (0.01, 0.3)),
        ("crf", "pegasos", (5, 10), (0.1, 1)),
        ("ramp", "pegasos", (10, 20), (0.03, 0.1)),
    ],
    "constituency": [
        ("hinge", "dca", (5, 10), (0.003, 0.1)),
        ("hinge", "pegasos", (5, 10), (0.03, 0.3)),
        ("hinge", "sdm", (10,), (0.03, 0.3)),
        ("crf", "dca", (5,), (0.1, 0.1)),
    ],
    "fold": [
        ("crf", "dca", (3, 5, 10), (0.003, 0.3)),
        ("crf", "pegasos", (3, 5, 10), (0.03, 1)),
        ("hinge", "dca", (5, 10), (0.001, 0.1)),
        ("hinge", "pegasos", (5, 10), (0.01, 0.3)),
    ],
    "align": [
        ("crf", "dca", (5, 10, 20), (0.0001, 0.1)),
        ("crf", "pegasos", (5, 10, 20), (0.001, 1)),
        ("hinge", "dca", (5, 10, 20), (0.0001, 0.1)),
        ("hinge", "pegasos", (5, 10, 20), (0.001, 0.3)),
        ("hinge", "sdm", (10, 20), (0.003, 0.3)),
    ],
    "rank": [
        ("hinge", "sdm", (20, 50), (0.01, 10)),
        ("ramp_do", "sdm", (50, 200), (0.01, 10)),
        ("hinge", "dca", (5, 10, 20), (0.001, 1)),
        ("hinge", "pegasos", (5, 10, 20, 50), (0.01, 10)),
        ("ramp_do", "pegasos", (10, 20, 50), (0.01, 10)),
    ],
    "graph": [
        ("hinge", "dca", (5, 10, 20), (0.001, 0.3)),
        ("hinge", "pegasos", (5, 10, 20), (0.01, 1)),
        ("hinge", "sdm", (10, 20), (0.03, 1)),
        ("crf", "dca", (5, 10), (0.01, 0.1)),
        ("crf", "pegasos", (5, 10), (0.03, 1)),
    ],
}


#: what the command and the class took before there was one rule
BEFORE: dict[str, list[Settings]] = {
    "tag": [("hinge", "dca", 0.05, 10), ("hinge", "sdm", 1.0, 20)],
    "classify": [("hinge", "sdm", 1.0, 20)],
    "parse": [("hinge", "dca", 0.05, 10)],
    "constituency": [("hinge", "dca", 0.1, 10)],
    "fold": [("crf", "dca", 0.1, 5)],
    "align": [("crf", "dca", 0.01, 10)],
    "rank": [("ramp_do", "sdm", 0.1, 200)],
    "graph": [("hinge", "dca", 0.1, 20)],
}
#: too dear, or too bad, to be tried everywhere
SOMEWHERE = {("crf", "lbfgs"), ("ramp", "sdm"), ("ramp", "dca"), ("softmax_margin", "dca")}
ALWAYS = (0.03, 0.1, 1.0)  # values of C that the hinge is tried with everywhere: what one would take without a look at the data


def lattice(loss: str, low: float, high: float, scale: float = 1.0) -> list[float]:
    """The values of C from low to high, divided by `scale`, give and take rounding to the lattice."""
    return [C for C in LATTICE if low / 1.5 < C * scale < high * 1.5 or (loss == "hinge" and scale != 1.0 and C in ALWAYS)]


# ---------------------------------------------------------------------------------------------------------------------
# Running
# ---------------------------------------------------------------------------------------------------------------------


@compiled_loop
def norms(problem, loss, n, w, work):
    """The sum over examples of ||F(x, y) - F(x, y~)||^2, y~ being the costliest output."""
    total = 0.0
    for i in range(n):
        evaluate(loss, problem, i, w, 1.0, work)
        add_gradient(loss, problem, i, work, 1.0, work.gradient)
        total += squared_norm(work.gradient)
        clear(work.gradient)
    return total


def facts(part: Part) -> dict[str, Any]:
    """Numbers that a rule may look at: how many examples, and the mean squared norm of what sets outputs apart."""
    n, work = int(kernels.n_examples(part.problem)), workspace(part.problem, part.dtype)
    w = np.zeros(kernels.n_weights(part.problem), part.dtype)
    norm = norms(part.problem, get_loss("hinge").kernel, n, w, work) / n
    return {"examples": n, "norm": float(f"{norm:.4g}"), "spread": part.spread and float(f"{part.spread:.4g}")}


def judged(part: Part, loss: str, solver: str, C: float, epochs: tuple[int, ...]) -> dict[str, list[float]]:
    """Score in percent and CPU seconds of training after each of `epochs`."""
    points: dict[int, list[float]] = {}
    spent, clock = 0.0, time.process_time()

    def look(record) -> bool:
        nonlocal spent, clock
        spent += time.process_time() - clock
        if record.epoch in epochs:
            points[record.epoch] = [round(part.judge(record.weights(), get_loss(loss)), 2), round(spent, 2)]
        clock = time.process_time()
        return spent > LIMIT

    result = solve(
        part.problem, loss, make_solver(solver, True), C, sample_weight=part.weight, max_epochs=max(epochs), seed=0,
        dtype=part.dtype, n_jobs=1, callbacks=[look], evaluate="never",
    )  # fmt: skip
    missing = [epoch for epoch in epochs if epoch not in points]
    if missing:  # it converged, or ran into the limit
        last = [round(part.judge(result.w, get_loss(loss)), 2), round(spent, 2)]
        points |= {epoch: last for epoch in missing}
    return {str(epoch): points[epoch] for epoch in epochs}


def rehearse(part: Part, loss: str, solver: str) -> None:
    """Compile what is timed afterwards, on a few examples where they can be taken out."""
    try:
        few = kernels.take(part.problem, np.arange(min(6, kernels.n_examples(part.problem))))
    except MissingKernel:
        few = part.problem
    solve(few, loss, make_solver(solver, True), 0.01, max_epochs=3, dtype=part.dtype, n_jobs=1, evaluate="never", tol=0.0)


def study(data: Data, noise: float, seed: int, done: set[tuple], only: Container[str]) -> Iterator[dict[str, Any]]:
    """A line for each candidate that is not done."""
    part: Part | None = None
    known: dict[str, Any] = {}
    for loss, solver, epochs, (low, high) in GRID[data.task]:
        fresh = True
        if ((loss, solver) in SOMEWHERE and not data.full) or (only and f"{loss}-{solver}" not in only):
            continue
        if part is None:
            part = data.load(noise, seed)
            known = facts(part)
        for C in lattice(loss, low, high, known["spread"] or 1.0):
            key = (data.name, noise, seed, loss, solver, C)
            if key in done:
                continue
            if fresh:
                rehearse(part, loss, solver)
                fresh = False
            points = judged(part, loss, solver, C, epochs)
            yield {"data": data.name, "noise": noise, "seed": seed, **known, "loss": loss, "solver": solver, "C": C, "at": points}


def read(path: Path) -> list[dict[str, Any]]:
    """All runs of the file, a flat list."""
    groups = json.loads(path.read_text()) if path.exists() else []
    return [{**known, **dict(zip(RUN, run, strict=True))} for known, runs in groups for run in runs]


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    """Runs on the same data together: what is known of the data, then loss, solver, C and points of every run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    groups: dict[str, list[str]] = {}
    for line in lines:
        known = json.dumps({key: value for key, value in line.items() if key not in RUN})
        groups.setdefault(known, []).append(json.dumps([line[key] for key in RUN], separators=(",", ":")))
    path.write_text("[\n" + ",\n".join(f"[{known}, [\n" + ",\n".join(runs) + "\n]]" for known, runs in groups.items()) + "\n]\n")


def run(names: Iterable[str], seeds: Iterable[int], path: Path, only: Container[str] = ()) -> None:
    """Every candidate on every data set; the file is written after each."""
    lines = read(path)
    done = {(r["data"], r["noise"], r["seed"], r["loss"], r["solver"], r["C"]) for r in lines}
    for seed in seeds:
        for name in names:
            for noise in NOISE:
                clock = time.process_time()
                for line in study(DATA[name], noise, seed, done, only):
                    lines.append(line)
                    write(path, lines)
                    shown = "  ".join(f"{e}: {q:.2f} ({s:.1f} s)" for e, (q, s) in line["at"].items())
                    print(f"{name} {noise} {seed} {line['loss']} {line['solver']} C={line['C']:g}  {shown}", flush=True)
                print(f"# {name} {noise} took {time.process_time() - clock:.0f} s", flush=True)


# ---------------------------------------------------------------------------------------------------------------------
# Tables
# ---------------------------------------------------------------------------------------------------------------------

Case = tuple[str, float]  # data set, share of wrong examples


def by_case(lines: list[dict[str, Any]], names: Iterable[str]) -> dict[Case, dict[Settings, tuple[float, float]]]:
    """Mean score and CPU seconds over seeds of every candidate, data set by data set."""
    found: dict[Case, dict[Settings, list[tuple[float, float]]]] = {}
    for name in names:
        for line in lines:
            if line["data"] == name:
                case = found.setdefault((name, line["noise"]), {})
                for epochs, point in line["at"].items():
                    case.setdefault((line["loss"], line["solver"], line["C"], int(epochs)), []).append(tuple(point))
    seeds = {case: max(map(len, own.values())) for case, own in found.items()}  # means over fewer are not comparable
    return {
        case: {s: tuple(np.mean(p, axis=0).tolist()) for s, p in own.items() if len(p) == seeds[case]}
        for case, own in found.items()
    }


def nearest(own: dict[Settings, tuple[float, float]], wanted: Settings) -> Settings | None:
    """The candidate of that loss and solver whose C, then whose epochs, are nearest; None if C is more than a factor 2 away."""
    near = [s for s in own if s[:2] == wanted[:2] and abs(math.log(s[2] / wanted[2])) < math.log(2.0)]
    return min(near, key=lambda s: (abs(math.log(s[2] / wanted[2])), abs(s[3] - wanted[3])), default=None)


def proposed(data: Data, known: dict[str, Any], loss: str | None = None) -> Settings:
    """What the rule takes for a data set."""
    core = BY_VERB[data.task].core
    name = loss or {"rank": "ramp_do"}.get(data.task, core.loss)
    choice = choose(name, task=core.defaults(), spread=known["spread"], examples=known["examples"])
    return name, choice.solver, choice.C, choice.epochs or 100


def told(settings: Settings) -> str:
    """In a few words."""
    loss, solver, C, epochs = settings
    return f"{loss}, {solver}, C={C:.1g}, {epochs}"


def tables(lines: list[dict[str, Any]], names: Iterable[str]) -> str:
    """What the rule loses, data set by data set; and how candidates do in the mean."""
    cases = by_case(lines, names)
    known = {(r["data"], r["noise"]): r for r in lines}
    return "\n\n".join((rule_table(cases, known), *(candidate_table(cases, known, task) for task in GRID)))


def rule_table(cases: dict[Case, dict[Settings, tuple[float, float]]], known: dict[Case, Any]) -> str:
    """A line for each data set: the best candidate, the rule, and what the command and the class used to take."""
    rows = ["| data | wrong | best candidate | | rule | | regret | s | before |", "|---|---|---|---|---|---|---|---|---|"]
    regrets: dict[float, list[float]] = {noise: [] for noise in NOISE}
    for (name, noise), own in cases.items():
        best = max(own, key=lambda s: own[s][0])
        rule = nearest(own, proposed(DATA[name], known[name, noise]))
        old = [nearest(own, s) for s in BEFORE[DATA[name].task]]
        before = " / ".join("-" if s is None else f"{own[s][0]:.1f}" for s in old)
        cells = [name, f"{100 * noise:.0f} %", told(best), f"{own[best][0]:.1f}"]
        if rule is None:
            cells += [told(proposed(DATA[name], known[name, noise])), "-", "-", "-"]
        else:
            regret = own[best][0] - own[rule][0]
            regrets[noise].append(regret)
            cells += [told(rule), f"{own[rule][0]:.1f}", f"{regret:.1f}", f"{own[rule][1]:.1f}"]
        rows.append("| " + " | ".join([*cells, before]) + " |")
    for noise, some in regrets.items():
        if some:
            rows.append(f"| all | {100 * noise:.0f} % | | | | | {np.mean(some):.2f} (worst {max(some):.1f}) | | |")
    return "\n".join(rows)


def candidate_table(
    cases: dict[Case, dict[Settings, tuple[float, float]]], known: dict[Case, Any], task: str, top: int = 10
) -> str:
    """Candidates of a task by mean regret over its data sets; for classes, C times the spread of the features."""
    losses: dict[Settings, dict[Case, tuple[float, float]]] = {}
    own_cases = [case for case in cases if DATA[case[0]].task == task]
    for case in own_cases:
        best = max(score for score, _ in cases[case].values())
        scale = known[case]["spread"] or 1.0
        for (loss, solver, C, epochs), (score, seconds) in cases[case].items():
            level = LATTICE[int(np.argmin([abs(math.log(C * scale / v)) for v in LATTICE]))]
            losses.setdefault((loss, solver, level, epochs), {})[case] = (best - score, seconds)
    rows = [f"**{task}** ({', '.join(dict.fromkeys(name for name, _ in own_cases))})", ""]
    rows += ["| loss, solver, C, epochs | clean: mean | worst | wrong: mean | worst | s |", "|---|---|---|---|---|---|"]
    full = {s: r for s, r in losses.items() if len(r) == len(own_cases)}

    def mean(s: Settings) -> float:
        return float(np.mean([regret for regret, _ in full[s].values()]))

    for s in sorted(full, key=mean)[:top]:
        parts = [[r for (_, noise), (r, _) in full[s].items() if noise == share] for share in NOISE]
        cells = " | ".join(f"{np.mean(p):.2f} | {max(p):.1f}" if p else "- | -" for p in parts)
        rows.append(f"| {told(s)} | {cells} | {np.mean([t for _, t in full[s].values()]):.1f} |")
    return "\n".join(rows)


def main() -> None:
    """Run, or print tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defaults", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("what", choices=("run", "table"))
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(DATA)}; all by default")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="one split for each")
    parser.add_argument("--only", nargs="+", default=(), metavar="LOSS-SOLVER", help="candidates, say hinge-dca; all by default")
    parser.add_argument("--file", type=Path, default=RESULTS, help="where results are")
    arguments = parser.parse_args()
    names = arguments.names or list(DATA)
    unknown = sorted(set(names) - set(DATA))
    if unknown:
        parser.error(f"there is no data set {unknown[0]!r}; there are {', '.join(DATA)}")
    if arguments.what == "run":
        run(names, arguments.seeds, arguments.file, arguments.only)
    else:
        print(tables(read(arguments.file), names))


if __name__ == "__main__":
    main()
