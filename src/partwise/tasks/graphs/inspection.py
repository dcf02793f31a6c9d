"""What a labeller of graphs has learnt: weights of pairs of labels, as tables and as heat maps, and of features of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from partwise.tasks.common.command_options import Refusal

WIDE = 12  # labels, for tables of pairs of them to fit on a screen


def look(labeler: Any, top: int | None, picture: Path | None) -> tuple[dict[str, Any], str]:
    """What it is and its weights of pairs; with `top`, the features that speak most for each label; a heat map of the pairs."""
    names = [str(state) for state in labeler.states_]
    about: dict[str, Any] = {
        "kind": labeler.kind_,
        "labels": labeler.classes_.tolist(),
        **({"hidden": labeler.hidden, "states": names} if labeler.hidden > 1 else {}),
        **({"node_types": [[name, list(own)] for name, own in labeler.node_types_.items()]} if labeler.node_types_ else {}),
        "features": labeler.n_features_in_,
        "edge_features": labeler.edge_names_,
        "pairwise": dict(labeler.pairwise) if isinstance(labeler.pairwise, Mapping) else labeler.pairwise,
        **({"submodular": True} if labeler.submodular else {}),
        "inference": labeler.inference,
        "weights": int(labeler.weights_.size),
        **labeler._how_learnt(),
        "training": labeler.training_,
        "pairwise_weights": dict(zip(labeler.edge_names_, labeler.pairwise_.tolist(), strict=True)),
    }
    shown = {name: value for name, value in about.items() if name not in ("training", "pairwise_weights")}
    shown |= {"labels": ", ".join(map(str, labeler.classes_.tolist())), "edge_features": ", ".join(labeler.edge_names_) or "none"}
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
    weights = labeler.coef_.astype(np.float64)
    weights = weights - weights.mean(axis=1, keepdims=True)
    found = {}
    for k, name in enumerate(names):
        order = np.argsort(-weights[:, k], kind="stable")[:top]
        found[name] = {f"feature {j}": float(weights[j, k]) for j in order}
    return found


def draw_pairs(labeler: Any, names: list[str], path: Path) -> None:
    """A heat map for each feature of edges."""
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
