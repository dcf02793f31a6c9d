"""Models that label the nodes of graphs and the pixels of pictures, on the command line: see `partwise.cli.tasks`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from partwise.cli.common import Refusal
from partwise.cli.tasks import percent

WIDE = 12  # labels, for tables of pairs of them to fit on a screen
PIXEL = 6  # of a pixel's square in a picture
COLOURS = ("#d9d9d9", "#d65f4f", "#4c78c8", "#5fae57", "#e3bd3b", "#8c5fb0", "#3fb6b6", "#a0744c", "#e08fb4", "#555555")


def read(file: str, encoding: str) -> Any:
    """Graphs, with their labels if there are any."""
    from partwise.tasks.graphs.files import read_graphs

    return read_graphs(file, encoding)


def count(data: Any) -> dict[str, int]:
    """How much it is."""
    return {"graphs": len(data), "nodes": data.n_nodes}


def answers(labeler: Any, data: Any) -> list[Any]:
    """The labels of each graph, as lists."""
    if labeler.kind_ == "multilabel":
        raise Refusal("This model answers several labels at once (multilabel); the command line reads graphs and pictures.")
    return [labels.tolist() for labels in labeler.predict(data)]


def as_jsonl(labeler: Any, data: Any) -> str:
    """The graphs as they were, with the answered labels; of pictures, the labels alone."""
    from partwise.tasks.graphs.files import as_row

    rows = []
    for graph, labels in zip(data.graphs, answers(labeler, data), strict=True):
        rows.append({"labels": labels} if data.is_pictures else as_row(graph) | {"labels": labels})
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def as_labels(labeler: Any, data: Any) -> str:
    """The labels alone: of a graph in one line, with tabs between them; of a picture a line a row, a blank line after each."""
    rows = [labels if data.is_pictures else [labels] for labels in answers(labeler, data)]
    between = "\n\n" if data.is_pictures else "\n"
    return "".join("\n".join("\t".join(map(str, line)) for line in lines) + between for lines in rows)


def as_pictures(labeler: Any, data: Any) -> str:
    """One SVG picture with all answers, a colour for each label; the truth, where it is known, on the right."""
    from partwise.files.svg_page import one_below_other

    if not data.is_pictures:
        raise Refusal("--format svg draws pictures, and these are graphs. Take jsonl or labels.")
    colour = {label: COLOURS[k % len(COLOURS)] for k, label in enumerate(labeler.classes_.tolist())}
    pages = []
    for found, truth in zip(answers(labeler, data), data.labels, strict=True):
        panels = [found] if truth is None else [found, truth.tolist() if hasattr(truth, "tolist") else truth]
        height, width = len(found) * PIXEL, (len(found[0]) if found else 0) * PIXEL
        squares = []
        for k, panel in enumerate(panels):
            for r, row in enumerate(panel):
                start = 0
                for c in range(1, len(row) + 1):  # one rectangle for a run of pixels with one label
                    if c == len(row) or row[c] != row[start]:
                        x, fill = k * (width + PIXEL) + start * PIXEL, colour.get(row[start], "white")
                        shape = f'x="{x}" y="{r * PIXEL}" width="{(c - start) * PIXEL}" height="{PIXEL}"'
                        squares.append(f'<rect {shape} fill="{fill}"/>')
                        start = c
        wide = len(panels) * (width + PIXEL)
        head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{height + PIXEL}">'
        pages.append(head + "".join(squares) + "</svg>\n")
    return one_below_other(pages)


FORMS: dict[str, Callable[[Any, Any], str]] = {"jsonl": as_jsonl, "labels": as_labels, "svg": as_pictures}


def scores(labeler: Any, data: Any) -> dict[str, Any]:
    """Accuracy, F1 and intersection over union, by label too."""
    if not data.has_labels:
        missing = next(i for i, labels in enumerate(data.labels) if labels is None)
        raise ValueError(f"{data.place(missing)}: there are no labels to compare with.")
    found, proven = labeler._judged(data)
    return {
        "accuracy": found.accuracy,
        "complete": found.complete,
        "macro_f1": found.macro_f1,
        "mean_iou": found.mean_iou,
        "proven": float(proven.mean()),
        "labelled_nodes": found.nodes,
        "by_label": {str(label): one._asdict() for label, one in found.labels.items()},
        "confusion": found.confusion.tolist(),
    }


def as_table(found: dict[str, Any]) -> str:
    """For people."""
    lines = [
        f"{found['labelled_nodes']:,} nodes with labels",
        f"{'right nodes':24}{percent(found['accuracy']):>10}",
        f"{'graphs all right':24}{percent(found['complete']):>10}",
        f"{'mean F1 of labels':24}{percent(found['macro_f1']):>10}",
        f"{'mean IoU of labels':24}{percent(found['mean_iou']):>10}",
        f"{'answers proven the best':24}{percent(found['proven']):>10}",
        "",
        f"{'label':16}{'nodes':>10}{'precision':>11}{'recall':>10}{'F1':>10}{'IoU':>10}",
    ]
    for label, one in found["by_label"].items():
        shares = [percent(one[name]) for name in ("precision", "recall", "f1", "iou")]
        lines.append(f"{label:16}{one['nodes']:>10,}{shares[0]:>11}" + "".join(f"{share:>10}" for share in shares[1:]))
    return "\n".join(lines)


def look(labeler: Any, top: int | None, picture: Path | None) -> tuple[dict[str, Any], str]:
    """What it is and its weights of pairs; with `top`, the features that speak most for each label; a heat map of the pairs."""
    from partwise.losses.records import get_loss

    names = [str(label) for label in labeler.classes_.tolist()]
    about: dict[str, Any] = {
        "kind": labeler.kind_,
        "labels": labeler.classes_.tolist(),
        "features": labeler.n_features_in_,
        "edge_features": labeler.edge_names_,
        "pairwise": labeler.pairwise,
        "inference": labeler.inference,
        "weights": int(labeler.weights_.size),
        "loss": get_loss(labeler.loss).name,
        "C": labeler.C,
        "solver": labeler.solver_,
        "training": labeler.training_,
        "pairwise_weights": dict(zip(labeler.edge_names_, labeler.pairwise_.tolist(), strict=True)),
    }
    shown = {name: value for name, value in about.items() if name not in ("training", "pairwise_weights")}
    shown |= {"labels": ", ".join(names), "edge_features": ", ".join(labeler.edge_names_) or "none"}
    lines = [f"{name:18}{value}" for name, value in shown.items()]
    for name, table in zip(labeler.edge_names_, labeler.pairwise_, strict=True):
        lines += ["", f"{name}: weights of pairs, first node (rows), second node (columns); the higher, the likelier"]
        lines += table_of(table, names)
    if top is not None and labeler.kind_ != "multilabel":
        about["strongest"] = strongest(labeler, names, top)
        lines += ["", "what speaks for a label, weight less the mean over labels"]
        lines += [
            f"  {label:12}" + ", ".join(f"{f} {w:+.3f}" for f, w in some.items()) for label, some in about["strongest"].items()
        ]
    if picture is not None:
        draw_pairs(labeler, names, picture)
        lines.append(f"wrote {picture}")
    return about, "\n".join(lines)


def table_of(table: Any, names: list[str]) -> list[str]:
    """Weights as text, of the first labels where there are many."""
    some = names[:WIDE]
    lines = [f"{'':12}" + "".join(f"{name[:8]:>9}" for name in some)]
    lines += [f"{a[:11]:12}" + "".join(f"{table[i, j]:9.3f}" for j in range(len(some))) for i, a in enumerate(some)]
    return lines + ([f"... {len(names)} labels in all; --json or --picture shows all"] if len(names) > WIDE else [])


def strongest(labeler: Any, names: list[str], top: int) -> dict[str, dict[str, float]]:
    """The features of nodes with the largest weights, for each label."""
    import numpy as np

    weights = labeler.coef_.astype(np.float64)
    weights = weights - weights.mean(axis=1, keepdims=True)
    found = {}
    for k, name in enumerate(names):
        order = np.argsort(-weights[:, k], kind="stable")[:top]
        found[name] = {f"feature {j}": float(weights[j, k]) for j in order}
    return found


def draw_pairs(labeler: Any, names: list[str], path: Path) -> None:
    """A heat map for each feature of edges."""
    import numpy as np

    from partwise.tasks.common.plots import heat_map, new_figure, save

    tables, titles = labeler.pairwise_, labeler.edge_names_
    if not len(tables):
        raise Refusal("This model has no edges, so there are no weights of pairs to draw.")
    columns = min(len(tables), 4)
    rows = -(-len(tables) // columns)
    side = float(np.clip(1.5 + 0.38 * len(names), 3.0, 16.0))
    figure = new_figure(columns * side + 1.0, rows * side)
    axes = figure.subplots(rows, columns, squeeze=False)
    limit = float(np.abs(tables).max(initial=1e-9))
    for k, axis in enumerate(axes.reshape(-1)):
        if k >= len(tables):
            axis.set_axis_off()
            continue
        image = heat_map(axis, tables[k], names, names, limit)
        axis.set(title=titles[k], xlabel="second node", ylabel="first node")
    figure.colorbar(image, ax=axes, shrink=0.7)
    save(figure, path)
