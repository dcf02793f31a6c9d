"""Options that several verbs have, each described once."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

FILES, FEATURES, LABELS, LEARNING, OUTPUT = "Files", "Features", "Labels", "Learning", "Output"


class Number(str, Enum):
    """Types of weights."""

    float32 = "float32"
    float64 = "float64"


def option(panel: str | None, text: str, *names: str, **more: Any) -> Any:
    """An option in a panel of ``--help``."""
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


# -- everywhere
Json = Annotated[bool, option(None, "Print one JSON object on stdout, and what is for people on stderr.", "--json")]
Quiet = Annotated[bool, option(None, "Print nothing but errors and what was asked for.", "--quiet", "-q")]
Jobs = Annotated[int, option(None, "Threads for passes over all data; -1: all cores. Never changes the result.", "--jobs", "-j")]

# -- column files
Separator = Annotated[
    str | None, option(FILES, "What stands between columns: a string, or 'tab'. (default: any blanks)", "--separator", "-s")
]
Encoding = Annotated[str, option(FILES, "Of the text.")]
Comment = Annotated[str | None, option(FILES, "Lines that begin with it are left out; by default there is no such mark.")]
LabelColumn = Annotated[
    int | None, option(FILES, "Column of the labels, from 0; negative: from the last. (default: the last one)")
]

# -- training
Output = Annotated[Path, option(OUTPUT, "Where to save the model.", "--output", "-o")]
Dev = Annotated[str | None, option(LEARNING, "Held-out file: stop when it gets no better, and keep the best model.")]
Loss = Annotated[
    str,
    option(
        LEARNING,
        "hinge, crf, softmax_margin, perceptron, slack, summed; ramp, ramp_do, ramp_2, soft_ramp where labels may be wrong. "
        "crf and softmax_margin give probabilities.",
    ),
]
C = Annotated[
    float | None, option(LEARNING, "Weight of the losses against the regulariser. (default: 0.05; crf, softmax_margin: 1)", "-C")
]
L1Ratio = Annotated[
    float,
    option(
        LEARNING,
        "Share of the L1 norm in the regulariser: above 0 most weights become zero, the model file smaller.",
        min=0.0,
        max=1.0,
    ),
]
SolverName = Annotated[
    str,
    option(
        LEARNING,
        "dca, sdm, lbfgs, sgd, pegasos, bcfw, mira, kbest_mira, perceptron, nslack, oneslack, bmrm, bmrm_ls, ocas, proximal, "
        "nrbm, sdcd, lse_cutting_plane, owlqn, admm; auto: dca; lbfgs for crf, softmax_margin, soft_ramp; "
        "pegasos for ramp, ramp_do, slack; sdcd for summed; with --l1-ratio owlqn or admm.",
        "--solver",
    ),
]
Epochs = Annotated[
    int | None,
    option(LEARNING, "At most so many. (default: 10 for dca, mira, perceptron, else as is the habit of the solver)", min=1),
]
Tol = Annotated[float, option(LEARNING, "Stop at this relative duality gap, where the solver has a certificate.", min=0.0)]
Patience = Annotated[
    int | None,
    option(
        LEARNING, "Stop after so many epochs without improvement on --dev. (default: 5; lbfgs, sdm, bcfw, pegasos: 20)", min=1
    ),
]
Average = Annotated[bool | None, option(LEARNING, "Return the average of the weights on the way, or the last.")]
Seed = Annotated[int, option(LEARNING, "Of the order of the examples.", min=0)]
Dtype = Annotated[Number, option(LEARNING, "Of the weights.")]
StartFrom = Annotated[Path | None, option(LEARNING, "A model to go on from, with new data.")]
Resume = Annotated[bool, option(OUTPUT, "Go on with a run that was interrupted, from MODEL.checkpoint.", "--resume")]
CheckpointEvery = Annotated[float, option(OUTPUT, "Seconds between checkpoints; 0: none.", min=0.0)]
History = Annotated[Path | None, option(OUTPUT, "Write the numbers of every epoch, as JSON.")]
Curve = Annotated[Path | None, option(OUTPUT, "Draw the learning curve, as PNG (or PDF, SVG).")]
Certify = Annotated[
    bool, option(OUTPUT, "Compute the duality gap of the model also where that takes a pass of its own.", "--certify")
]
