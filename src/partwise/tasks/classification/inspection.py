"""What a classifier has learnt: its classes, the features that speak most for and against each, and a heat map of weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from partwise.tasks.classification.table_form import TableForm, from_dict
from partwise.tasks.common.command_options import Refusal
from partwise.tasks.common.label_arrays import shown

MOST_DRAWN = 40  # features, and classes


def feature_names(model: Any) -> list[str]:
    """What features are called: as in the file, or in the data frame; else by their numbers."""
    if model.table_ is not None:
        return from_dict(model.table_).features
    names = getattr(model, "feature_names_in_", None)
    return [f"feature {k}" for k in range(model.n_features_in_)] if names is None else list(names)


def look(model: Any, top: int | None, label: str | None, picture: Path | None) -> tuple[dict[str, Any], str]:
    """What it is; with `top`, the strongest weights of each class, or of one."""
    form = None if model.table_ is None else from_dict(model.table_)
    about: dict[str, Any] = {
        "classes": model.classes_.tolist(),
        "features": model.n_features_in_,
        "hidden": model.hidden,
        "weights": int(model.weights_.size),
        "weights_not_zero": int(np.count_nonzero(model.weights_)),
        "scaled": model.scale_ is not None,
        **model._how_learnt(),
        "trained_on": None if form is None else form.kind,
        "training": model.training_,
    }
    if isinstance(form, TableForm):
        about["label_column"] = form.label
        about["columns"] = {column.name: "numbers" if column.words is None else column.words for column in form.columns}
    lines = [f"{name:18}{value}" for name, value in about.items() if name not in ("classes", "training", "columns")]
    lines.insert(0, f"{'classes':18}{len(model.classes_)}: {shown(model.classes_, 20)}")
    if top is not None:
        about["strongest"] = strongest(model, top, label)
        lines += ["", "what speaks for a class (+) and against it (-): weight less the mean over classes"]
        for name, weights in about["strongest"].items():
            lines.append(f"  {name}")
            lines += [f"    {weight:+10.4f}  {feature}" for feature, weight in weights.items()]
    elif label is not None:
        raise Refusal("--label goes with --top: how many of its weights to show.")
    if picture is not None:
        draw_weights(model, picture)
        lines.append(f"wrote {picture}")
    return about, "\n".join(lines)


def centred(model: Any) -> np.ndarray:
    """Weights (states, features) less their mean over states: what only shifts all scores says nothing."""
    weights = model.coef_.astype(np.float64)
    return weights - weights.mean(axis=0)


def strongest(model: Any, top: int, label: str | None) -> dict[str, dict[str, float]]:
    """Of each class, or of each of its states, the features with the largest weights, either way."""
    names, weights = feature_names(model), centred(model)
    classes = [str(one) for one in np.repeat(model.classes_, model.hidden).tolist()]
    if label is not None and label not in classes:
        raise Refusal(f"--label {label}: there is no such class; there are {shown(model.classes_)}.")
    found = {}
    for k, (owner, state) in enumerate(zip(classes, model.states_, strict=True)):
        if label is None or label == owner:
            order = np.argsort(-np.abs(weights[k]), kind="stable")[:top]
            order = order[np.argsort(-weights[k][order], kind="stable")]
            found[str(state)] = {names[j]: float(weights[k, j]) for j in order.tolist()}
    return found


def draw_weights(model: Any, path: Path) -> None:
    """A heat map of the features that matter most."""
    from partwise.tasks.common.plots import heat_map, new_figure, save

    weights, names, states = centred(model), feature_names(model), [str(state) for state in model.states_]
    if len(states) > MOST_DRAWN:
        raise Refusal(f"--picture: there are {len(states):,} classes; a picture has room for {MOST_DRAWN}.")
    columns = np.sort(np.argsort(-np.abs(weights).max(axis=0), kind="stable")[:MOST_DRAWN])
    figure = new_figure(2.0 + 0.38 * len(columns), 2.0 + 0.38 * len(states))
    axes = figure.subplots()
    image = heat_map(axes, weights[:, columns], states, [names[j] for j in columns.tolist()])
    what = "features" if len(columns) == len(names) else f"the {len(columns)} strongest of {len(names):,} features"
    axes.set(title="Weights", xlabel=what, ylabel="class")
    figure.colorbar(image, ax=axes, shrink=0.7)
    save(figure, path)
