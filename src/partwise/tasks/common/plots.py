"""Pictures of weights: heat maps, and figures that are saved in the format that a name asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from partwise.files.whole_file import whole_file
from partwise.tasks.common.command_options import Refusal

MOST_NUMBERS = 30  # labels, for weights to be written into the cells
FORBIDDEN = "0.85"  # grey


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


def save(figure: Any, path: Path, dpi: int = 150) -> None:
    """In the format that the name asks for."""
    import io

    content = io.BytesIO()
    try:
        figure.savefig(content, format=path.suffix.lstrip(".") or "png", dpi=dpi)
    except ValueError as error:
        raise Refusal(f"{path}: {error}.") from None
    with whole_file(path) as file:
        file.write(content.getvalue())
