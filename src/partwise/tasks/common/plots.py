"""The pictures of ``partwise inspect``: weights as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from partwise.cli.common import Refusal, write

if TYPE_CHECKING:
    from partwise.tasks.dependency.inspection import Attachments
    from partwise.tasks.tagging.inspection import Transitions

MOST_NUMBERS = 30  # labels, for weights to be written into the cells
FORBIDDEN = "0.85"  # grey


def draw_transitions(path: Path, transitions: Transitions) -> None:
    """Red: likely, blue: unlikely, grey: forbidden. From row to column; the last ones are the beginning and the end."""
    weights = np.where(np.isfinite(transitions.weights), transitions.weights, np.nan)
    n = len(weights)
    side = float(np.clip(1.5 + 0.38 * n, 4.0, 24.0))
    figure = new_figure(side + 1.0, side)
    image = heat_map(figure.add_subplot(), weights, transitions.rows, transitions.columns)
    figure.axes[0].set(xlabel="to", ylabel="from", title="Weights of transitions between labels")
    figure.colorbar(image, shrink=0.7)
    save(figure, path)


def draw_attachments(path: Path, arcs: Attachments) -> None:
    """Red: likely, blue: unlikely; means over lengths of arcs. Two panels: heads on the left of their word, and on the right."""
    weights = arcs.weights[..., 0].mean(axis=1)
    limit, side = float(np.abs(weights).max(initial=1e-9)), float(np.clip(1.5 + 0.38 * len(arcs.heads), 4.0, 24.0))
    figure = new_figure(2 * side + 1.0, side)
    axes = figure.subplots(1, 2)
    for axis, values, where in zip(axes, weights, ("left", "right"), strict=True):
        heads = arcs.heads if where == "left" else arcs.heads[1:]  # the root lies to the left of all words
        image = heat_map(axis, values[-len(heads) :], heads, arcs.words, limit)
        axis.set(xlabel="word", ylabel="head", title=f"Head on the {where} of its word")
    figure.colorbar(image, ax=axes, shrink=0.7)
    save(figure, path)


def new_figure(width: float, height: float) -> Any:
    """An empty one, or a refusal that says what to install."""
    try:
        from matplotlib.figure import Figure  # no pyplot: no window, no global state
    except ImportError:
        raise Refusal('a picture needs matplotlib: pip install "partwise[plot]".') from None
    return Figure(figsize=(width, height), layout="constrained")


def heat_map(axes: Any, weights: np.ndarray, rows: Sequence[str], columns: Sequence[str], limit: float | None = None) -> Any:
    """Weights in colours, with numbers in the cells where there is room; grey where there is none."""
    axes.set_facecolor(FORBIDDEN)
    limit = float(np.nanmax(np.abs(weights), initial=1e-9)) if limit is None else limit
    image = axes.imshow(weights, cmap="RdBu_r", vmin=-limit, vmax=limit)
    n = max(len(rows), len(columns))
    small = 8 if n <= 60 else max(2.0, 480 / n)
    axes.set_xticks(range(len(columns)), columns, rotation=90, fontsize=small)
    axes.set_yticks(range(len(rows)), rows, fontsize=small)
    digits = 1 if limit >= 1.0 else 2
    if n <= MOST_NUMBERS:
        for (row, column), value in np.ndenumerate(weights):
            if np.isfinite(value):
                colour = "white" if abs(value) > 0.6 * limit else "0.2"
                text = f"{round(value, digits) + 0.0:.{digits}f}"
                axes.text(column, row, text, ha="center", va="center", fontsize=6, color=colour)
    return image


def save(figure: Any, path: Path) -> None:
    """In the format that the name asks for."""
    import io

    content = io.BytesIO()
    try:
        figure.savefig(content, format=path.suffix.lstrip(".") or "png", dpi=150)
    except ValueError as error:
        raise Refusal(f"{path}: {error}.") from None
    write(path, content.getvalue())
