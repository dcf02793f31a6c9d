"""The picture of ``partwise inspect``: transitions as a heat map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from partwise.cli.common import Refusal, write

if TYPE_CHECKING:
    from partwise.inspection import Transitions

MOST_NUMBERS = 30  # labels, for weights to be written into the cells
FORBIDDEN = "0.85"  # grey


def draw_transitions(path: Path, transitions: Transitions) -> None:
    """Red: likely, blue: unlikely, grey: forbidden. From row to column; the last ones are the beginning and the end."""
    try:
        from matplotlib.figure import Figure  # no pyplot: no window, no global state
    except ImportError:
        raise Refusal('--picture needs matplotlib: pip install "partwise[plot]".') from None

    import io

    weights = np.where(np.isfinite(transitions.weights), transitions.weights, np.nan)
    n = len(weights)
    side = float(np.clip(1.5 + 0.38 * n, 4.0, 24.0))
    figure = Figure(figsize=(side + 1.0, side), layout="constrained")
    axes = figure.add_subplot()
    axes.set_facecolor(FORBIDDEN)
    limit = float(np.nanmax(np.abs(weights), initial=1e-9))
    image = axes.imshow(weights, cmap="RdBu_r", vmin=-limit, vmax=limit)
    small = 8 if n <= 60 else max(2.0, 480 / n)
    axes.set_xticks(range(n), transitions.columns, rotation=90, fontsize=small)
    axes.set_yticks(range(n), transitions.rows, fontsize=small)
    axes.set(xlabel="to", ylabel="from", title="Weights of transitions between labels")
    if n <= MOST_NUMBERS:
        for (row, column), value in np.ndenumerate(weights):
            if np.isfinite(value):
                colour = "white" if abs(value) > 0.6 * limit else "0.2"
                axes.text(column, row, f"{round(value, 1) + 0.0:.1f}", ha="center", va="center", fontsize=6, color=colour)
    figure.colorbar(image, shrink=0.7)
    content = io.BytesIO()
    try:
        figure.savefig(content, format=path.suffix.lstrip(".") or "png", dpi=150)
    except ValueError as error:
        raise Refusal(f"{path}: {error}.") from None
    write(path, content.getvalue())
