"""RNA structures as arc diagrams: the bases in a row and an arc for each pair, as SVG, and as PNG where matplotlib is installed.

Two structures of one sequence are drawn above and below it, to be compared. Arcs may be as dark as their pairs are probable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

STEP, MARGIN, LETTERS = 10.0, 14.0, 16.0  # pixels: between two bases, around, for the line of bases
COLOURS = {"AU": "#4c72b0", "CG": "#c44e52", "GU": "#55a868"}
OTHER, SHARED, MISSED = "#8c8c8c", "#333333", "#c44e52"


def pairs_of(partners: Sequence[int] | np.ndarray) -> list[tuple[int, int]]:
    """The pairs i < j."""
    return [(i, int(j)) for i, j in enumerate(partners) if j > i]


def colour_of(sequence: str, i: int, j: int) -> str:
    """By the letters of a pair."""
    a, b = sorted((sequence[i].upper().replace("T", "U"), sequence[j].upper().replace("T", "U")))
    return COLOURS.get(a + b, OTHER)


def check(sequence: str, partners: Sequence[int] | np.ndarray) -> None:
    """Raise unless there is a partner, or -1, for each base."""
    if len(partners) != len(sequence):
        raise ValueError(f"There must be a partner, or -1, for each of {len(sequence)} bases. Got {len(partners)}.")
    wrong = [j for j in np.asarray(partners).tolist() if not -1 <= j < len(sequence)]
    if wrong:
        raise ValueError(f"Partners must be numbers from 0 to {len(sequence) - 1}, or -1. Got {wrong[0]}.")


def as_svg(
    sequence: str,
    partners: Sequence[int] | np.ndarray,
    truth: Sequence[int] | np.ndarray | None = None,
    probabilities: np.ndarray | None = None,
    title: str = "",
) -> str:
    """An SVG picture.

    Parameters
    ----------
    sequence : str
    partners : integers (n,)
        The partner of each base, from 0, or -1: drawn above.
    truth : integers (n,), optional
        Another structure, drawn below; pairs that are in one of the two only are red.
    probabilities : array (n, n), optional
        Of pairs: the darker, the more probable.
    title : str
    """
    check(sequence, partners)
    above = pairs_of(partners)
    below = [] if truth is None else pairs_of(truth)
    if truth is not None:
        check(sequence, truth)
    tall, deep = (STEP * max([j - i for i, j in some], default=0) / 2 for some in (above, below))
    head = LETTERS if title else 0.0
    base, width = MARGIN + head + tall, STEP * max(len(sequence), 1) + 2 * MARGIN
    height = base + LETTERS + deep + MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}"'
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="monospace" font-size="10">']
    if title:
        out.append(f'<text x="{MARGIN:.1f}" y="{MARGIN + 4:.1f}" font-size="12">{escape(title)}</text>')
    out.append('<g fill="none" stroke-width="1.3">')
    common = set(above) & set(below)
    for some, y, sweep in ((above, base, 1), (below, base + LETTERS, 0)):
        for i, j in some:
            colour = colour_of(sequence, i, j) if truth is None else SHARED if (i, j) in common else MISSED
            shade = "" if probabilities is None or sweep == 0 else f'opacity="{max(float(probabilities[i, j]), 0.05):.2f}" '
            start, end, radius = centre(i), centre(j), STEP * (j - i) / 2
            curve = f"M{start:.1f},{y:.1f} A{radius:.1f},{radius:.1f} 0 0 {sweep} {end:.1f},{y:.1f}"
            out.append(f'<path {shade}d="{curve}" stroke="{colour}"/>')
    out.append('</g><g fill="#222" text-anchor="middle">')
    out += [f'<text x="{centre(k):.1f}" y="{base + LETTERS - 4:.1f}">{escape(c)}</text>' for k, c in enumerate(sequence)]
    return "\n".join([*out, "</g></svg>", ""])


def centre(k: int) -> float:
    """Where base k is, from the left."""
    return MARGIN + STEP * (k + 0.5)


def reach_of(partners: Sequence[int] | np.ndarray) -> float:
    """How high the arcs of a structure are, in bases, and some room."""
    return max([j - i for i, j in pairs_of(partners)], default=0) / 2 + 2.0


def draw(
    axes: Any,
    sequence: str,
    partners: Sequence[int] | np.ndarray,
    truth: Sequence[int] | np.ndarray | None = None,
    title: str = "",
) -> None:
    """The same into matplotlib axes: ``figure.savefig("fold.png")`` makes a PNG of it."""
    from matplotlib.patches import Arc

    check(sequence, partners)
    above, below = pairs_of(partners), [] if truth is None else pairs_of(truth)
    common = set(above) & set(below)
    for some, angles in ((above, (0, 180)), (below, (180, 360))):
        for i, j in some:
            colour = colour_of(sequence, i, j) if truth is None else SHARED if (i, j) in common else MISSED
            axes.add_patch(Arc(((i + j) / 2, 0.0), j - i, j - i, theta1=angles[0], theta2=angles[1], edgecolor=colour))
    low = 2.0 if truth is None else reach_of(truth)
    axes.set(xlim=(-1, max(len(sequence), 1)), ylim=(-low, reach_of(partners)), aspect="equal", title=title, yticks=[])
    if len(sequence) <= 120:
        for k, letter in enumerate(sequence):
            axes.text(k, 0.0, letter, ha="center", va="center", fontsize=6)


def as_png(
    sequences: Sequence[str],
    folded: Sequence[np.ndarray],
    truth: Sequence[np.ndarray | None],
    names: Sequence[str],
) -> bytes:
    """Arc diagrams one below the other; true structures, where they are known, below the bases."""
    import io

    from partwise.tasks.common.plots import new_figure

    heights = [sum(reach_of(some) for some in both if some is not None) for both in zip(folded, truth, strict=True)]
    width = min(0.1 * max(60, *map(len, sequences)), 30.0)
    scale = width / max(60, *map(len, sequences))
    figure = new_figure(width, sum(scale * height + 0.5 for height in heights))
    figure.get_layout_engine().set(h_pad=0.0)
    axes = figure.subplots(len(sequences), squeeze=False, height_ratios=heights)[:, 0]
    for row in zip(axes, sequences, folded, truth, names, strict=True):
        draw(*row)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100)
    return out.getvalue()
