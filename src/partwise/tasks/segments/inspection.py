"""What a model of segments has learnt: features of labels by role, lengths, which segments follow each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

ROLES = ("inside", "begin", "end")
LENGTHS = ("1", "2", "3", "4", "5", "6", "7-8", "9-12", "13-20", "more")


def look(model: Any, top: int | None, picture: Path | None) -> tuple[dict[str, Any], str]:
    """What it is; with `top`, the strongest features of each label; weights of lengths and of transitions as a picture."""
    labels, states = [str(label) for label in model.classes_.tolist()], [str(state) for state in model.states_]
    table = model._table()
    about: dict[str, Any] = {
        "weights": int(table.size),
        "weights_not_zero": int(np.count_nonzero(table)),
        "features": model.n_features_in_,
        "phrases": 0 if model.phrases_ is None else len(model.phrases_),
        "labels": labels,
        "longest": dict(zip(labels, model.limits_.tolist(), strict=True)),
        "scheme": model.scheme_,
        **({"hidden": model.hidden, "states": states} if model.hidden > 1 else {}),
        **model._how_learnt(),
        "training": model.training_,
    }
    lines = [f"{name:18}{value}" for name, value in about.items() if name != "training"]
    if top is not None:
        about["strongest"] = {label: strongest(model, k, top) for k, label in enumerate(states)}
        for label, named in about["strongest"].items():
            lines += ["", label, *(f"{weight:10.3f}  {name}" for name, weight in named)]
        lines += ["", "one segment after another", *(f"{weight:10.3f}  {name}" for name, weight in following(model)[:top])]
    if picture is not None:
        draw(model, states, picture)
        lines.append(f"wrote {picture}")
    return about, "\n".join(lines)


def strongest(model: Any, k: int, top: int) -> list[tuple[str, float]]:
    """The features with the largest weights for label k, or hidden state k: ``begin w[0]=Mr.``; of phrases as they are called."""
    table = model._table()[: model.n_features_in_, :, k]
    order = np.argsort(-np.abs(table), axis=None, kind="stable")[:top]
    n, found = model.encoder_.n_features, []
    for place in order.tolist():
        j, role = divmod(place, table.shape[1])
        name = model.feature_name(j)
        found.append((name if j >= n else f"{ROLES[role]} {name}", float(table[j, role])))
    return sorted((one for one in found if one[1]), key=lambda one: -one[1])


def following(model: Any) -> list[tuple[str, float]]:
    """Weights of a segment after another, highest first."""
    labels = [*map(str, model.states_), "(begin)"]
    pairs = [(f"{a} → {b}", float(model.transitions_[i, j])) for i, a in enumerate(labels) for j, b in enumerate(labels[:-1])]
    return sorted((pair for pair in pairs if pair[1]), key=lambda pair: -pair[1])


def draw(model: Any, labels: list[str], path: Path) -> None:
    """Transitions as a heat map, and weights of lengths."""
    from partwise.tasks.common.plots import heat_map, new_figure, save

    figure = new_figure(11.0, 4.6)
    left, right = figure.subplots(1, 2)
    image = heat_map(left, model.transitions_, labels, [*labels, "(begin)"])
    left.set(title="One segment after another", xlabel="segment", ylabel="the one before")
    figure.colorbar(image, ax=left, shrink=0.7)
    for k, label in enumerate(labels[: -model.hidden]):
        right.plot(range(len(LENGTHS)), model.lengths_[:, k], marker=".", label=label or "-")
    right.set(title="Lengths", xlabel="tokens", ylabel="weight", xticks=range(len(LENGTHS)), xticklabels=LENGTHS)
    right.legend(fontsize="small")
    save(figure, path)
