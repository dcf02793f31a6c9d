"""``partwise solve``: the best output of a factor graph that is given as a file, a bound, and probabilities."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

from partwise.cli.common import in_words, print_json, show
from partwise.cli.options import JSON, QUIET, Parameter, Verb
from partwise.cli.paths import check_paths
from partwise.files.whole_file import whole_file
from partwise.tasks.common.command import Seconds
from partwise.tasks.common.command_options import OUTPUT, Refusal

HELP = """The best states of a factor graph, with a bound on what any states can score; or their probabilities.

    partwise solve grid.uai
    partwise solve parsing.fg --method exact --marginals --json

Files are in the UAI format (MARKOV or BAYES; scores are logarithms of its potentials) or in AD3's (.fg, one or more graphs).
With --method auto, graphs without cycles are solved exactly, others by AD3, which tells how far from the best it may be; exact
goes on by branch and bound, highs and lp are scipy's solvers. Probabilities are exact without cycles, else by belief propagation.
"""
METHODS = ("auto", "ad3", "exact", "highs", "lp")


def verb() -> Verb:
    """The verb."""
    return Verb(
        "solve",
        HELP,
        [
            Parameter("file", str, "Factor graph; '-': standard input."),
            Parameter("method", str, f"One of {', '.join(METHODS)}.", ("--method",), "auto"),
            Parameter("marginals", bool, "Probabilities of states, too.", ("--marginals",), False),
            Parameter(
                "output",
                Path | None,
                "Write states here, as 'MPE' of the UAI format; with --marginals as 'MAR'.",
                ("--output", "-o"),
                None,
                OUTPUT,
            ),
            JSON,
            QUIET,
        ],
        run,
    )


@in_words
def run(file: str, method: str, marginals: bool, output: Path | None, as_json: bool, quiet: bool) -> None:
    """Read, solve and tell."""
    from partwise.tasks.graphs.factor_files import read_factor_graphs

    if method not in METHODS:
        raise Refusal(f"--method must be one of {', '.join(METHODS)}. Got {method!r} instead.")
    check_paths({"the graph": file}, {} if output is None else {"--output": output})
    seconds = Seconds()
    stored = read_factor_graphs(file)
    seconds("read")
    found, lines, written = [], [], []
    for k, one in enumerate(stored):
        told = solved(one, method, marginals)
        found.append(told)
        written += as_uai(told, marginals)
        lines += in_lines(told, f"graph {k}: " if len(stored) > 1 else "")
    seconds("solve")
    if output is not None:
        with whole_file(output) as stream:
            stream.write(("\n".join(written) + "\n").encode())
    if not quiet and not (output is not None and not as_json):
        show("\n".join(lines), sys.stderr if as_json else sys.stdout)
    if as_json:
        print_json({"graphs": found, "seconds": seconds.total()})


def solved(one: Any, method: str, marginals: bool) -> dict[str, Any]:
    """What is known of a graph, for machines."""
    answer = one.graph.best(method)
    told = {
        "variables": len(one.variables),
        "value": answer.value + one.constant,
        "bound": answer.bound + one.constant,
        "proven": bool(answer.proven),
        "iterations": int(answer.n_iterations),
        "states": one.states(answer),
    }
    if marginals:
        beliefs = one.graph.marginals()
        told |= {"log_partition": beliefs.log_partition + one.constant, "exact": bool(beliefs.exact)}
        told |= {"converged": bool(beliefs.converged), "marginals": one.marginals(beliefs)}
    return told


def in_lines(told: dict[str, Any], prefix: str) -> list[str]:
    """For people."""
    how = "proven to be the best" if told["proven"] else f"at most {told['bound']:.6g} is possible"
    per_ten = f" (log10 {told['value'] / math.log(10.0):.6g})" if math.isfinite(told["value"]) else ""
    lines = [f"{prefix}score {told['value']:.6g}{per_ten}, {how}", " ".join(map(str, told["states"]))]
    if "marginals" in told:
        kind = "" if told["exact"] else ", by belief propagation" + ("" if told["converged"] else ", which did not converge")
        lines.append(f"{prefix}log partition {told['log_partition']:.6g}{kind}")
        lines += [f"{v}: " + " ".join(f"{p:.4f}" for p in row) for v, row in enumerate(told["marginals"])]
    return lines


def as_uai(told: dict[str, Any], marginals: bool) -> list[str]:
    """As the inference competitions want it."""
    if not marginals:
        return ["MPE", " ".join(map(str, [len(told["states"]), *told["states"]]))]
    rows = [" ".join([str(len(row)), *(f"{p:.9g}" for p in row)]) for row in told["marginals"]]
    return ["MAR", " ".join([str(len(rows)), *rows])]
