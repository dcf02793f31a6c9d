"""First-order trees: the best one beside ufal.chu_liu_edmonds, marginals beside torch-struct and a batched inverse in numpy.

Batches of 32 sentences of 10, 20, 40, 80 words with normal scores. Ours is measured as solvers and predictions meet it: the
kernels `best` and `expected` in one compiled loop over a packed problem. Everybody has one thread; times are CPU microseconds a
sentence, the least of several calls, and of these the median over rounds in which all take turns.

ufal.chu_liu_edmonds (TurboParser's C++) takes a matrix a call and knows trees with several words below the root only.
torch-struct runs in an interpreter of its own, by default this one: ``PARTWISE_BENCH_TORCH=/path/to/python`` names one that has
torch and torch_struct. Its time is that of 32 or of 64 bits, whichever is less. The inverse in numpy does the same with the arcs
into each word scaled by the best.

Marginals of a word's heads sum to one. At standard deviations of scores of 1, 10, 40, 100 the notes tell how far from one the
sums are, at worst, and whether all numbers are finite. They also tell whether we find the trees that ufal finds.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.processes import measure
from benchmarks.race import Options
from benchmarks.report import Report, Row
from partwise import kernels
from partwise.engine.compilation import compiled_loop
from partwise.structures.dependency.problem import tree_problem

SIZES = (10, 20, 40, 80)
DEVIATIONS = (1, 10, 40, 100)
BATCH = 32
CALLS = 20  # the least of which counts
AT = 40  # words, where deviations vary


@compiled_loop
def best_trees(problem, scores, heads):
    """The best tree of every sentence."""
    for i in range(len(scores)):
        kernels.best(problem, i, scores[i], heads[i])


@compiled_loop
def probabilities(problem, scores, parts):
    """Those of all arcs of every sentence."""
    for i in range(len(scores)):
        kernels.expected(problem, i, scores[i], parts[i])


def sentences(n: int, deviation: float) -> np.ndarray:
    """A batch of scores [sentence, word, head]."""
    scores = np.random.default_rng(n).normal(0, deviation, (BATCH, n, n + 1))
    scores[:, np.arange(n), np.arange(1, n + 1)] = -np.inf
    return scores


def packed(n: int, single_root: bool) -> Any:
    """A problem of sentences of n words; scores are given, so there is one feature and it is never looked at."""
    return tree_problem(np.zeros((BATCH * n * (n + 1), 1)), [n] * BATCH, single_root=single_root)


def by_inverse(scores: np.ndarray) -> np.ndarray:
    """Marginals of single-rooted trees by the matrix-tree theorem (Koo et al. 2007), a batch at a time."""
    n = scores.shape[1]
    weights = np.exp(scores - scores.max(2, keepdims=True))
    root, arcs = weights[:, :, 0], weights[:, :, 1:]
    laplacian = -np.swapaxes(arcs, 1, 2)
    diagonal = np.arange(n)
    laplacian[:, diagonal, diagonal] = arcs.sum(2)
    laplacian[:, 0] = root
    inverse = np.linalg.inv(laplacian)
    own = inverse[:, diagonal, diagonal].copy()
    own[:, 0] = 0.0  # the first row of the Laplacian has no share of arcs between words
    other = inverse.copy()
    other[:, :, 0] = 0.0
    found = np.empty_like(scores)
    found[:, :, 0] = root * inverse[:, :, 0]
    found[:, :, 1:] = arcs * (own[:, :, None] - other)
    return found


def least(function: Callable[[], Any]) -> float:
    """CPU microseconds a sentence of the quickest of several calls on a batch."""
    times = []
    for _ in range(CALLS):
        clock = time.process_time()
        function()
        times.append(time.process_time() - clock)
    return 1e6 * min(times) / BATCH


def by_ufal(n: int) -> Callable[[], list[tuple[list[int], float]]] | None:
    """Best trees of a batch and their scores, a call each; None if it is not installed."""
    try:
        from ufal.chu_liu_edmonds import chu_liu_edmonds
    except ImportError:
        return None
    square = np.full((BATCH, n + 1, n + 1), np.nan)
    square[:, 1:] = np.where(np.isinf(sentences(n, 1)), np.nan, sentences(n, 1))
    matrices = list(square)

    return lambda: [chu_liu_edmonds(matrix) for matrix in matrices]


def agreement() -> str:
    """Whether our best trees with several roots are ufal's."""
    same = 0
    for n in SIZES:
        ufal, heads = by_ufal(n), np.zeros((BATCH, n), np.int32)
        if ufal is None:
            return "ufal: not compared: ufal.chu_liu_edmonds is not installed"
        best_trees(packed(n, False), sentences(n, 1).reshape(BATCH, -1), heads)
        same += sum(list(tree[1:]) == ours for (tree, _), ours in zip(ufal(), heads.tolist(), strict=True))
    return f"{same} of {BATCH * len(SIZES)} best trees are those of ufal"


def by_torch_struct(
    folder: Path, batches: dict[str, np.ndarray], limit: float
) -> tuple[dict[str, Any], dict[str, np.ndarray], str]:
    """Microseconds and marginals of each batch by name; or why there are none."""
    source, target = folder / "scores.npz", folder / "marginals.npz"
    np.savez(source, **{name: np.where(np.isinf(scores), 0.0, scores) for name, scores in batches.items()})
    interpreter = os.environ.get("PARTWISE_BENCH_TORCH", sys.executable)
    command = [interpreter, "-m", "benchmarks.peers.torch_struct_", str(source), str(target), str(CALLS)]
    cost = measure(command, {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}, limit)
    if cost.failure:
        return {}, {}, f"torch-struct: not compared: {cost.failure}"
    with np.load(target) as file:
        found = {name: file[name] for name in file.files}
    return {name: 1e6 * min(s.values()) / BATCH for name, s in cost.said["batch"].items()}, found, ""


def verdict(marginals: np.ndarray) -> str:
    """How far sums over the heads of a word are from one."""
    if not np.isfinite(marginals).all():
        return "not finite"
    return f"{np.abs(marginals.sum(2) - 1.0).max():.0e}"


def our_marginals(scores: np.ndarray) -> np.ndarray:
    """In the form of the scores."""
    parts = np.empty((BATCH, scores[0].size))
    probabilities(packed(scores.shape[1], True), scores.reshape(BATCH, -1), parts)
    return parts.reshape(scores.shape)


def round_of(n: int) -> dict[str, float]:
    """What runs in this process, once each, in turn."""
    scores = sentences(n, 1)
    flat, heads, parts = scores.reshape(BATCH, -1), np.zeros((BATCH, n), np.int32), np.empty((BATCH, scores[0].size))
    one, several = packed(n, True), packed(n, False)
    found = {
        "best, one root": least(lambda: best_trees(one, flat, heads)),
        "best, several roots": least(lambda: best_trees(several, flat, heads)),
        "marginals": least(lambda: probabilities(one, flat, parts)),
        "numpy": least(lambda: by_inverse(scores)),
    }
    if (ufal := by_ufal(n)) is not None:
        found["ufal"] = least(ufal)
    return found


def run(options: Options) -> Report:
    """Times by length, then sums by deviation."""
    batches = {f"n={n}": sentences(n, 1) for n in SIZES} | {f"deviation {d}": sentences(AT, d) for d in DEVIATIONS}
    round_of(SIZES[0])  # compiles
    rounds: dict[int, list[dict[str, float]]] = {n: [] for n in SIZES}
    why, theirs = "", {}
    for _ in range(options.repeats):
        peer, torch_marginals, why = ({}, {}, why) if why else by_torch_struct(options.folder, batches, options.limit)
        theirs = theirs or torch_marginals
        for n in SIZES:
            found = round_of(n)
            if f"n={n}" in peer:
                found["torch-struct"] = peer[f"n={n}"]
            rounds[n].append(found)
    report = Report("trees", notes=[why] if why else [])
    for n, some in rounds.items():
        median = {name: statistics.median(r[name] for r in some) for name in some[0]}
        for what in ("best, one root", "best, several roots"):
            report.rows.append(Row(f"{n} words", what, "us", median[what], median.get("ufal"), "ufal", "ufal: several roots"))
        for peer_name in ("torch-struct", "numpy"):
            report.rows.append(
                Row(f"{n} words", "marginals", "us", median["marginals"], median.get(peer_name), peer_name, "one root")
            )
    report.notes.append(agreement())
    for d in DEVIATIONS:
        scores = batches[f"deviation {d}"]
        with np.errstate(all="ignore"):
            numpy_says = says_inverse(scores)
        peer_says = {bits: verdict(theirs[f"deviation {d}, {bits} bits"]) if theirs else "-" for bits in (32, 64)}
        report.notes.append(
            f"deviation {d}, {AT} words, |sum - 1| at worst: partwise {verdict(our_marginals(scores))}, "
            f"torch-struct {peer_says[32]} in 32 bits, {peer_says[64]} in 64, numpy {numpy_says}"
        )
    return report


def says_inverse(scores: np.ndarray) -> str:
    """The verdict on numpy's answer, which may be an error."""
    try:
        return verdict(by_inverse(scores))
    except np.linalg.LinAlgError as error:
        return str(error).lower()
