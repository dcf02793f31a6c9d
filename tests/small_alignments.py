"""Short sequences and their alignments, as text, as packed pairs, and as random part scores."""

from __future__ import annotations

import numpy as np

from partwise.engine.compilation import compiled_loop
from partwise.structures.alignment.best import best_path
from partwise.structures.alignment.pair_tables import pair_tables
from partwise.structures.alignment.problem import END_EXTEND, END_OPEN, EXTEND, OPEN
from partwise.structures.alignment.sums import sum_in_floats, sum_in_logarithms


def pairs(n=14, seed=0):
    """Rows of DNA in which letters change now and then and some are lost."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        first, second = "", ""
        for letter in rng.choice(list("ACGT"), rng.integers(4, 8)):
            kind = rng.random()
            first += letter if kind < 0.9 else "-"
            second += "-" if kind < 0.12 else rng.choice(list("ACGT")) if kind < 0.2 else letter
        rows.append((first, second))
    return [tuple(row.replace("-", "") for row in two) for two in rows], rows


def as_table(rows, core=False):
    """As lines of a file."""
    head = "id1\tid2\trow1\trow2\tfamily" + ("\tcore" if core else "")
    lines = [f"s{k}\tt{k}\t{a}\t{b}\tf{k % 2}" + ("\t" + "1" * len(a) if core else "") for k, (a, b) in enumerate(rows)]
    return "\n".join([head, *lines, ""])


def one_letter(lengths):
    """Tables of sequences that are all alike."""
    sides = [(np.zeros(sum(pair[k] for pair in lengths), int), np.cumsum([0, *(pair[k] for pair in lengths)])) for k in (0, 1)]
    return pair_tables(*sides, "a")


@compiled_loop
def everything(theta, n, m, local, y, floats, logs):
    """The best alignment, and sums over all in two ways, compiled together."""
    value = best_path(theta, n, m, local, y)
    fast, fine = sum_in_floats(theta, n, m, local, floats)
    return value, fast, fine, sum_in_logarithms(theta, n, m, local, logs)


def run_paths(theta, n, m, local=False):
    """The same with buffers filled with rubbish."""
    y, floats, logs = np.zeros(n, np.int32), np.full(len(theta), 7.0), np.full(len(theta), 7.0)
    return *everything(theta, n, m, local, y, floats, logs), y, floats, logs


def random_scores(rng, n, m, gaps=(-8.0, -0.5, -3.0, -0.2), deviation=1.5):
    """Random matches, the same gaps everywhere."""
    theta = rng.normal(size=n * m + 4 * (n + m)) * deviation
    for kind, value in zip((OPEN, EXTEND, END_OPEN, END_EXTEND), gaps, strict=True):
        theta[n * m + kind * n : n * m + (kind + 1) * n] = value
        theta[n * m + 4 * n + kind * m : n * m + 4 * n + (kind + 1) * m] = value
    return theta
