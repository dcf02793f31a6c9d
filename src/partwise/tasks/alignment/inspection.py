"""What an aligner has learnt: its letters, what gaps cost, and the substitution matrix, as text and as a heat map."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from partwise.tasks.common.command_options import Refusal


def look(aligner: Any, top: int | None, picture: Path | None) -> tuple[dict[str, Any], str]:
    """What it is; the substitution matrix, or with `top` its highest and lowest scores."""
    letters, gaps, matrix = aligner.classes_.tolist(), aligner.gap_scores(), substitutions(aligner)
    about: dict[str, Any] = {
        "task": "align",
        "mode": aligner.mode,
        **aligner._how_learnt(),
        "letters": letters,
        "templates": aligner.templates_,
        "weights": int(aligner.weights_.size),
        "gaps": gaps,
        "training": aligner.training_,
        "substitutions": None if matrix is None else matrix.tolist(),
    }
    lines = [
        f"aligns ({aligner.mode}) sequences of {len(letters)} letters: {' '.join(letters)}",
        f"{len(aligner.templates_)} templates: {' '.join(aligner.templates_)}",
        "mean scores of places opposite gaps: " + ", ".join(f"{name} {value:.2f}" for name, value in gaps.items()),
    ]
    if matrix is None:
        lines.append("no template looks at the letters themselves: there is no substitution matrix")
    elif top is None:
        lines += ["", "letters opposite each other, tenths:", as_text(matrix, letters)]
    else:
        lines.append("")
        order = ordered(matrix, letters, aligner.symmetric)
        for title, some in (("highest scores:", order[:top]), ("lowest scores: ", order[::-1][:top])):
            lines.append(f"{title} " + ", ".join(f"{a}{b} {value:+.2f}" for value, a, b in some))
    if picture is not None:
        if matrix is None:
            raise Refusal("--picture draws the substitution matrix, and this model has no template a.letter|b.letter.")
        draw(matrix, letters, picture)
        lines.append(f"wrote {picture}")
    return about, "\n".join(lines)


def substitutions(aligner: Any) -> np.ndarray | None:
    """The substitution matrix; None: the templates of the model have none."""
    try:
        return aligner.substitution_matrix()
    except ValueError:
        return None


def ordered(matrix: np.ndarray, letters: list[str], symmetric: bool) -> list[tuple[float, str, str]]:
    """Scores and their letters, the highest first; of both orders of two letters one, where they are the same."""
    cells = np.ndenumerate(matrix)
    return sorted(((float(value), letters[a], letters[b]) for (a, b), value in cells if a <= b or not symmetric), reverse=True)


def as_text(matrix: np.ndarray, letters: list[str]) -> str:
    """A matrix of tenths."""
    width = max(4, *(len(letter) + 1 for letter in letters))
    head = " " * width + "".join(f"{letter:>{width}}" for letter in letters)
    rows = [f"{letters[k]:>{width}}" + "".join(f"{round(10 * value):>{width}}" for value in row) for k, row in enumerate(matrix)]
    return "\n".join([head, *rows])


def draw(matrix: np.ndarray, letters: list[str], path: Path) -> None:
    """The substitution matrix as a heat map."""
    from partwise.tasks.common.plots import heat_map, new_figure, save

    side = min(max(1.5 + 0.38 * len(letters), 4.0), 24.0)
    figure = new_figure(side + 1.0, side)
    image = heat_map(figure.add_subplot(), matrix, letters, letters)
    figure.axes[0].set(xlabel="second sequence", ylabel="first sequence", title="Scores of letters opposite each other")
    figure.colorbar(image, shrink=0.7)
    save(figure, path)
