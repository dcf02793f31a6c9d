"""``partwise train graph``: from graphs or pictures with labels to a model that labels their nodes."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from partwise.cli import options
from partwise.cli.common import in_words
from partwise.cli.options import FEATURES, FILES, LABELS, LEARNING, option
from partwise.cli.train import Run, Settings, train
from partwise.tasks.graphs.command import scores


@train.command()
@in_words
def graph(
    file: Annotated[
        str, typer.Argument(help="JSON lines, a graph or a picture a line, gz; or .npz with the arrays images and labels.")
    ],
    output: options.Output,
    dev: Annotated[
        str | None, option(LEARNING, "Held-out file of the same kind: stop when it gets no better, and keep the best model.")
    ] = None,
    pairwise: Annotated[
        str, option(FEATURES, "Weights of an edge: full (each pair of labels), symmetric, or potts (equal labels).")
    ] = "full",
    neighbours: Annotated[int, option(FEATURES, "Of a pixel, 4 or 8.")] = 4,
    contrast: Annotated[
        bool, option(FEATURES, "Give edges a feature that tells how alike their nodes are.", "--contrast")
    ] = False,
    intercept: Annotated[bool, option(FEATURES, "A constant feature of nodes, and of edges that have features.")] = True,
    inference: Annotated[str, option(LEARNING, "auto, or exact: branch and bound where AD3 leaves a gap.")] = "auto",
    balanced: Annotated[
        bool, option(LABELS, "Make it cost more to miss rare labels, in proportion to how rare they are.", "--balanced")
    ] = False,
    unknown: Annotated[str | None, option(LABELS, "The label that stands for an unknown one, besides null.")] = None,
    first: Annotated[int | None, option(FILES, "Train on the first so many graphs only.", min=1)] = None,
    encoding: options.Encoding = "utf-8",
    loss: options.Loss = "hinge",
    c: options.C = None,
    solver: options.SolverName = "auto",
    epochs: options.Epochs = None,
    tol: options.Tol = 1e-3,
    patience: options.Patience = None,
    average: options.Average = None,
    seed: options.Seed = 0,
    dtype: options.Dtype = options.Number.float64,
    resume: options.Resume = False,
    checkpoint_every: options.CheckpointEvery = 10.0,
    history: options.History = None,
    curve: options.Curve = None,
    certify: options.Certify = False,
    jobs: options.Jobs = 1,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Learn to label the nodes of graphs, or the pixels of pictures.

    One graph a line, {"nodes": [[..], ..], "edges": [[0, 1], ..], "labels": [..]}, with "edge_features" if there are any:

        partwise train graph train.jsonl --dev dev.jsonl -o graph.model

    Pictures of one size are best kept in a .npz file, images (pictures, height, width, features) and labels.
    """
    from partwise.tasks.graphs.estimator import NodeLabeler
    from partwise.tasks.graphs.files import read_graphs

    if loss == "hinge" and solver in ("auto", "dca"):
        solver, epochs = "dca", epochs or 20  # graphs are few and large: more epochs than for sentences
    settings = Settings(loss, 0.1 if c is None else c, solver, epochs, tol, patience, average, seed, dtype.value, jobs)
    run = Run("graph", output, settings, resume, checkpoint_every, history, curve, as_json, quiet)
    shape: dict[str, Any] = {"pairwise": pairwise, "neighbours": neighbours, "contrast": contrast, "fit_intercept": intercept}
    shape |= {"inference": inference, "class_weight": "balanced" if balanced else None}
    labeler = NodeLabeler(**settings.parameters(), **shape)
    labeler._check_parameters()
    data = read_graphs(file, encoding, first)
    held_out = None if dev is None else read_graphs(dev, encoding)
    if unknown is not None:
        labeler.unknown = like_labels(unknown, data)
    kind = "pictures" if data.is_pictures else "graphs"
    run.say(f"{data.name}: {len(data):,} {kind}, {data.n_nodes:,} nodes")
    with run.fitting(labeler, certify):
        labeler.fit(data, validation=held_out, checkpoint=run.checkpoint)
    about = {
        "examples": len(data),
        "nodes": data.n_nodes,
        "labels": len(labeler.classes_),
        "features": labeler.n_features_in_,
        "edge_features": len(labeler.edge_names_),
        "not_proven": labeler.not_proven_,
        "not_converged": labeler.not_converged_,
    }
    run.finish(labeler, about, None if held_out is None else lambda: scores(labeler, held_out))


def like_labels(text: str, data: Any) -> Any:
    """A label on the command line, as a number where labels are numbers."""
    import numpy as np

    kinds = {np.asarray([label for label in np.ravel(y) if label is not None]).dtype.kind for y in data.labels if y is not None}
    return int(text) if kinds <= set("iufb") and text.lstrip("-").isdigit() else text
