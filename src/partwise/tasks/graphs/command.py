"""``partwise train graph`` and what follows: from graphs or pictures with labels to a model that labels their nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from partwise.tasks.common import command_options as common
from partwise.tasks.common.command import Command, json_lines
from partwise.tasks.common.command_options import FEATURES, FILES, LABELS, LEARNING, Refusal, Training, option, percent

SEARCH = ("iterations", "sweeps", "damping", "sums")
TINY = """{"nodes": [[1, 0], [0.8, 0.1], [0, 1]], "edges": [[0, 1], [1, 2]], "labels": ["a", "a", "b"]}
{"nodes": [[0, 0.9], [0.1, 1]], "edges": [[0, 1]], "labels": ["b", "b"]}
{"nodes": [[0.9, 0.2], [0.1, 0.7]], "edges": [[0, 1]], "labels": ["a", "b"]}
"""


@dataclass
class Options(common.Options):
    """Of ``train graph``."""

    pairwise: str | None = option(
        FEATURES, "Weights of an edge: full (each pair of labels), symmetric, antisymmetric, or potts (equal labels)."
    )
    submodular: bool | None = option(FEATURES, "Constrain weights of edges so that the search is exact.", "--submodular")
    hidden: int | None = option(FEATURES, "Hidden states of each label, for labels whose nodes come in several kinds.", min=1)
    neighbours: int | None = option(FEATURES, "Of a pixel, 4 or 8.")
    contrast: bool | None = option(FEATURES, "Give edges a feature that tells how alike their nodes are.", "--contrast")
    fit_intercept: bool | None = option(
        FEATURES, "A constant feature of nodes, and of edges that have features.", "--intercept/--no-intercept"
    )
    inference: str | None = option(LEARNING, "auto, or exact: branch and bound where AD3 leaves a gap.")
    iterations: int | None = option(LEARNING, "Of AD3, at most. (default: 1000)", min=1)
    sweeps: int | None = option(LEARNING, "Of belief propagation, at most. (default: 100)", min=1)
    damping: float | None = option(
        LEARNING, "Share of the old message that belief propagation keeps. (default: 0)", min=0.0, max=0.999
    )
    sums: str | None = option(
        LEARNING, "Where there are cycles: bethe, or trw, never too low and several times slower. (default: bethe)"
    )
    class_weight: bool | None = option(
        LABELS,
        "Make it cost more to miss rare labels, in proportion to how rare they are.",
        "--balanced",
        read=lambda on: "balanced" if on else None,
    )
    unknown_label: str | None = option(LABELS, "The label that stands for an unknown one, besides null.", "--unknown")
    first: int | None = option(FILES, "Train on the first so many graphs only.", min=1)


# -- answers ----------------------------------------------------------------------------------------------------------


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
    return json_lines(rows)


def as_labels(labeler: Any, data: Any) -> str:
    """The labels alone: of a graph in one line, with tabs between them; of a picture a line a row, a blank line after each."""
    rows = [labels if data.is_pictures else [labels] for labels in answers(labeler, data)]
    between = "\n\n" if data.is_pictures else "\n"
    return "".join("\n".join("\t".join(map(str, line)) for line in lines) + between for lines in rows)


def as_pictures(labeler: Any, data: Any) -> str:
    """One SVG picture with all answers, a colour for each label; the truth, where it is known, on the right."""
    from partwise.files.svg_page import one_below_other
    from partwise.tasks.graphs.drawing import as_svg

    if not data.is_pictures:
        raise Refusal("--format svg draws pictures, and these are graphs. Take jsonl or labels.")
    panels = []
    for found, truth in zip(answers(labeler, data), data.labels, strict=True):
        panels.append([found] if truth is None else [found, truth.tolist() if hasattr(truth, "tolist") else truth])
    return one_below_other(as_svg(some, labeler.classes_.tolist()) for some in panels)


def like_labels(text: str, data: Any) -> Any:
    """A label on the command line, as a number where labels are numbers."""
    import numpy as np

    kinds = {np.asarray([label for label in np.ravel(y) if label is not None]).dtype.kind for y in data.labels if y is not None}
    return int(text) if kinds <= set("iufb") and text.lstrip("-").isdigit() else text


def require_labels(data: Any, why: str) -> None:
    """Say which graph has none."""
    if not data.has_labels:
        missing = next(i for i, labels in enumerate(data.labels) if labels is None)
        raise ValueError(f"{data.place(missing)}: there are no labels {why}.")


class GraphCommand(Command):
    """Graphs and pictures."""

    file = "JSON lines, a graph or a picture a line, gz; or .npz with the arrays images and labels."
    details = (
        'One graph a line, {"nodes": [[..], ..], "edges": [[0, 1], ..], "labels": [..]}, with "edge_features" if there are any. '
        "Pictures of one size are best kept in a .npz file, images (pictures, height, width, features) and labels."
    )
    example = "partwise train graph train.jsonl --dev dev.jsonl -o graph.model"
    options = Options
    forms = {"jsonl": as_jsonl, "labels": as_labels, "svg": as_pictures}
    suspects_options = common.Suspects
    reading = ("encoding",)
    judged_file = "JudgedGraphs"
    reader = "read_graphs"
    tiny = "graphs.jsonl", TINY
    usual = (
        ("--inference", "exact"),
        ("--pairwise", "potts"),
        ("--hidden", "2"),
        ("--loss", "crf", "--sums", "trw"),
        ("--contrast",),
        ("--balanced",),
    )

    def start(self, file: str, dev: str | None, options: Options, make: Callable[..., Any]) -> Training:
        from partwise.tasks.graphs.files import read_graphs

        labeler = make()
        search = {name: value for name in SEARCH if (value := getattr(options, name)) is not None}
        if search:
            labeler.search = {**(labeler.search or {}), **search}
        data = read_graphs(file, options.encoding, options.first)
        held_out = None if dev is None else read_graphs(dev, options.encoding)
        if options.unknown_label is not None:
            labeler.unknown = like_labels(options.unknown_label, data)

        def about() -> dict[str, Any]:
            return {
                "examples": len(data),
                "nodes": data.n_nodes,
                "labels": len(labeler.classes_),
                "features": labeler.n_features_in_,
                "edge_features": len(labeler.edge_names_),
                "not_proven": labeler.not_proven_,
                "not_converged": labeler.not_converged_,
            }

        describe = f"{data.name}: {len(data):,} {'pictures' if data.is_pictures else 'graphs'}, {data.n_nodes:,} nodes"
        return self.training(labeler, data, held_out, describe, about)

    def read_to_judge(self, model: Any, file: str, options: Any) -> Any:
        data = self.read_for(model, file, options)
        require_labels(data, "to judge")
        return data

    def read_labels(self, file: bytes, options: Any) -> tuple[Any, Any]:
        from partwise.tasks.graphs.files import as_row

        data = self.read(file, options)  # type: ignore[arg-type]
        return [as_row(graph) for graph in data.graphs], data.labels

    def count(self, data: Any) -> dict[str, int]:
        return {"graphs": len(data), "nodes": data.n_nodes}

    def scores(self, model: Any, data: Any) -> dict[str, Any]:
        require_labels(data, "to compare with")
        found, proven = model._judged(data)
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

    def table(self, found: dict[str, Any]) -> str:
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


COMMAND = GraphCommand()
