"""The pictures of ``partwise demo``: a learning curve and one word, with matplotlib or in plain characters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

SHADES = " .:-=+*#%@"
COLOURS = ("#c44e52", "#4c72b0", "#55a868")
CAPTION = "picked: of the words both chains read best, the one single letters misread most"
RIGHT, WRONG = "#333333", "#c44e52"

Curves = Sequence[tuple[str, Sequence[float]]]
Readings = Sequence[tuple[str, Sequence[int]]]


def save(
    folder: Path, sizes: Sequence[int], curves: Curves, word: np.ndarray, truth: Sequence[int], readings: Readings
) -> list[Path]:
    """Write ``learning_curve.png`` and ``misread_word.png`` into `folder`. ImportError where matplotlib is missing."""
    from matplotlib.figure import Figure  # no pyplot: no window, no global state

    folder.mkdir(parents=True, exist_ok=True)
    pictures = {
        "learning_curve.png": learning_curve(Figure, sizes, curves),
        "misread_word.png": picture(Figure, word, truth, readings),
    }
    for name, figure in pictures.items():
        figure.savefig(folder / name, dpi=150)
    return [folder / name for name in pictures]


def learning_curve(figure_class: Any, sizes: Sequence[int], curves: Curves) -> Any:
    """Held-out letter errors against the number of training words (log scale)."""
    figure = figure_class(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for (name, accuracies), colour in zip(curves, COLOURS, strict=False):
        axes.plot(sizes, [100 * (1 - a) for a in accuracies], "o-", color=colour, lw=2, ms=5, label=name)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("training words")
    axes.set_ylabel("letters misread, held out (%)")
    axes.set_title("Whoever learns the grammar misreads less", loc="left", fontsize=12)
    axes.grid(axis="y", color="0.9")
    axes.set_axisbelow(True)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def picture(figure_class: Any, word: np.ndarray, truth: Sequence[int], readings: Readings) -> Any:
    """The images of a word, and under each letter what it is and what every reader took it for; mistakes are red."""
    rows = [("truth", truth), *readings]
    n = len(truth)
    height = 1.4 + 0.34 * len(rows)
    left = 1.5
    figure = figure_class(figsize=(left + n * 0.85 + 0.1, height))
    width = figure.get_figwidth()
    for t, image in enumerate(word):
        box = ((left + t * 0.85) / width, (height - 0.95) / height, 0.8 / width, 0.8 / height)
        axes = figure.add_axes(box)
        axes.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_color("0.8")
    for r, (name, digits) in enumerate(rows):
        y = (height - 1.25 - 0.34 * r) / height
        figure.text(0.15 / width, y, name, va="center", fontsize=11, color="0.35")
        for t, digit in enumerate(digits):
            wrong = digit != truth[t]
            x = (left + t * 0.85 + 0.4) / width
            figure.text(
                x, y, str(digit), ha="center", va="center", fontsize=14,
                color=WRONG if wrong else RIGHT, fontweight="bold" if wrong or r == 0 else "normal",
            )  # fmt: skip
    figure.text(0.15 / width, 0.14 / height, CAPTION, va="center", fontsize=8, color="0.5")
    return figure


def as_text(word: np.ndarray, truth: Sequence[int], readings: Readings, width: int = 80) -> str:
    """The same picture in characters, as many letters side by side as fit into `width`; mistakes are in brackets."""
    margin = 2 + max(len(name) for name, _ in readings)
    per_line = max(1, (width - margin) // 18)
    lines = []
    for first in range(0, len(truth), per_line):
        here = slice(first, first + per_line)
        for r in range(8):
            cells = ("".join(2 * SHADES[int(round(9 * p))] for p in image.reshape(8, 8)[r]) for image in word[here])
            lines.append(" " * margin + "  ".join(cells))
        lines.append("")
        for name, digits in (("truth", truth), *readings):
            cells = (f"{f'[{d}]' if d != t else f'{d}':^16}" for d, t in zip(digits[here], truth[here], strict=True))
            lines.append(f"{name:<{margin}}" + "  ".join(cells))
        lines.append("")
    return "\n".join(line.rstrip() for line in [*lines, CAPTION])
