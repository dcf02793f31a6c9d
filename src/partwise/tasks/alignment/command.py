"""Models that align, on the command line: see `partwise.cli.tasks`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from partwise.cli.tasks import percent

BINS = ((0, 10), (10, 20), (20, 30), (30, 100))  # of identity, %, as Do et al. (2008) have them


def read(file: str, encoding: str) -> Any:
    """Pairs of sequences, aligned or not."""
    from partwise.tasks.alignment.files import read_alignments

    return read_alignments(file, encoding)


def count(pairs: Any) -> dict[str, int]:
    """How much it is."""
    return {"pairs": len(pairs), "letters": int(pairs.lengths.sum())}


def as_table_of_rows(aligner: Any, pairs: Any) -> str:
    """A table: names, the two rows, and all other columns that the file had."""
    named = {key: values for key, values in pairs.fields.items() if key not in ("id1", "id2")}
    lines = ["\t".join(["id1", "id2", "row1", "row2", *named])]
    for k, found in enumerate(aligner.predict(pairs)):
        lines.append("\t".join([*pairs.names(k), *found.rows(), *(values[k] for values in named.values())]))
    return "\n".join([*lines, ""])


def as_fasta(aligner: Any, pairs: Any) -> str:
    """Aligned FASTA, two rows for each pair."""
    lines = []
    for k, found in enumerate(aligner.predict(pairs)):
        for name, row in zip(pairs.names(k), found.rows(), strict=True):
            lines += [f">{name}", row]
    return "\n".join([*lines, ""])


def as_jsonl(aligner: Any, pairs: Any) -> str:
    """One JSON object a pair."""
    rows = ({"ids": pairs.names(k), "rows": found.rows(), "pairs": found.pairs} for k, found in enumerate(aligner.predict(pairs)))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def as_drawings(aligner: Any, pairs: Any) -> str:
    """Alignments drawn with a line between the rows, a blank line after each."""
    return "".join(found.draw(pairs.names(k)) + "\n\n" for k, found in enumerate(aligner.predict(pairs)))


FORMS: dict[str, Callable[[Any, Any], str]] = {
    "columns": as_table_of_rows,
    "fasta": as_fasta,
    "jsonl": as_jsonl,
    "text": as_drawings,
}


def scores(aligner: Any, pairs: Any) -> dict[str, Any]:
    """Recall, precision and F1 of pairs, on core columns if the file has them; recall by identity."""
    import numpy as np

    from partwise.tasks.alignment.scores import alignment_scores, recalls

    if pairs.partners is None:
        raise ValueError(f"{pairs.name}: the rows of some pairs differ in length, so there is no alignment to compare with.")
    core = pairs.core if aligner.core != "ignore" else None
    answers = [found.partners for found in aligner.predict(pairs)]
    found = alignment_scores(pairs.partners, answers, core)._asdict()
    each, identity = recalls(pairs.partners, answers, core), pairs.identity()
    by_identity, whole = [], np.round(100 * identity)
    for low, high in BINS:
        some = (whole > (low if low else -1)) & (whole <= high) & ~np.isnan(each)
        recall = float(each[some].mean()) if some.any() else None
        by_identity.append({"above": low, "to": high, "alignments": int(some.sum()), "recall": recall})
    return {**found, "core": core is not None, "by_identity": by_identity}


def as_table(found: dict[str, Any]) -> str:
    """For people."""
    counted = "core pairs" if found["core"] else "pairs"
    lines = [f"{found['alignments']:,} alignments, {found['pairs']:,} true {counted}", f"{'':22}{'mean':>10}{'pooled':>10}"]
    for name in ("recall", "precision"):
        lines.append(f"{name:22}{percent(found[name]):>10}{percent(found[f'pooled_{name}']):>10}")
    lines += [f"{'F1':22}{percent(found['f1']):>10}", f"{'all pairs found':22}{percent(found['complete']):>10}", ""]
    lines.append(f"{'identity':22}{'recall':>10}{'alignments':>12}")
    for row in found["by_identity"]:
        shown = "-" if row["recall"] is None else percent(row["recall"])
        name = f"{row['above'] + (row['above'] > 0)} - {row['to']} %"
        lines.append(f"{name:22}{shown:>10}{row['alignments']:>12,}")
    return "\n".join(lines)


def look(aligner: Any, top: int | None, picture: Path | None) -> tuple[dict[str, Any], str]:
    """Letters, gaps and the substitution matrix."""
    letters, gaps = aligner.classes_.tolist(), aligner.gap_scores()
    about: dict[str, Any] = {
        "task": "align", "mode": aligner.mode, "loss": aligner.loss, "letters": letters, "templates": aligner.templates_,
        "weights": int(aligner.weights_.size), "gaps": gaps,
    }  # fmt: skip
    lines = [
        f"aligns ({aligner.mode}) sequences of {len(letters)} letters: {' '.join(letters)}",
        f"{len(aligner.templates_)} templates: {' '.join(aligner.templates_)}",
        "mean scores of places opposite gaps: " + ", ".join(f"{name} {value:.2f}" for name, value in gaps.items()),
    ]
    matrix = aligner.substitution_matrix()
    about["substitutions"] = matrix.tolist()
    if top is not None:
        order = sorted(
            ((float(matrix[a, b]), letters[a], letters[b]) for a in range(len(letters)) for b in range(len(letters))
             if a <= b or not aligner.symmetric),
            reverse=True,
        )  # fmt: skip
        lines += ["", "highest scores: " + ", ".join(f"{a}{b} {v:+.2f}" for v, a, b in order[:top])]
        lines += ["lowest scores:  " + ", ".join(f"{a}{b} {v:+.2f}" for v, a, b in order[: -top - 1 : -1])]
    else:
        lines += ["", "letters opposite each other, tenths:", as_text(matrix, letters)]
    if picture is not None:
        draw(picture, matrix, letters)
        lines.append(f"wrote {picture}")
    return about, "\n".join(lines)


def as_text(matrix: Any, letters: list[str]) -> str:
    """A matrix of tenths."""
    width = max(4, *(len(letter) + 1 for letter in letters))
    head = " " * width + "".join(f"{letter:>{width}}" for letter in letters)
    rows = [f"{letters[k]:>{width}}" + "".join(f"{round(10 * value):>{width}}" for value in row) for k, row in enumerate(matrix)]
    return "\n".join([head, *rows])


def draw(path: Path, matrix: Any, letters: list[str]) -> None:
    """The substitution matrix as a heat map."""
    from partwise.tasks.common.plots import heat_map, new_figure, save

    side = min(max(1.5 + 0.38 * len(letters), 4.0), 24.0)
    figure = new_figure(side + 1.0, side)
    image = heat_map(figure.add_subplot(), matrix, letters, letters)
    figure.axes[0].set(xlabel="second sequence", ylabel="first sequence", title="Scores of letters opposite each other")
    figure.colorbar(image, shrink=0.7)
    save(figure, path)
