"""What a ranker has learnt: the weights of features, as a list and as bars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

MOST_SHOWN = 20  # features, unless another number is asked for


def look(ranker: Any, top: int | None, picture: Path | None) -> tuple[dict[str, Any], str]:
    """What it is, and its largest weights either way."""
    weights = ranker.weights_
    about: dict[str, Any] = {
        "features": int(weights.size),
        "weights_not_zero": int((weights != 0.0).sum()),
        "objective": ranker.objective,
        "k": ranker.k,
        **ranker._how_learnt(),
        "training": ranker.training_,
    }
    lines = [f"{name:18}{value}" for name, value in about.items() if name != "training"]
    order = np.argsort(-np.abs(weights), kind="stable")[: MOST_SHOWN if top is None else top].tolist()
    about["largest"] = {str(f + 1): float(weights[f]) for f in order}
    lines += ["", "features with the largest weights", *(f"{weights[f]:10.4f}  {f + 1}" for f in order)]
    if picture is not None:
        draw(weights, picture)
        lines.append(f"wrote {picture}")
    return about, "\n".join(lines)


def draw(weights: np.ndarray, path: Path) -> None:
    """A bar for each feature."""
    from partwise.tasks.common.plots import new_figure, save

    figure = new_figure(9.0, 3.6)
    axes = figure.subplots()
    axes.bar(range(1, len(weights) + 1), weights, color=["tab:red" if w > 0 else "tab:blue" for w in weights])
    axes.axhline(0.0, color="black", lw=0.5)
    axes.set(title="What puts a document first", xlabel="feature", ylabel="weight")
    save(figure, path)
