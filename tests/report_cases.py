"""Reports made up for tests, without a model; every text in them tries to be HTML."""

import numpy as np

from partwise.cli.report_page import made_report
from partwise.tasks.common.model_report import (
    ConfusionTable,
    MarkedWord,
    MistakeKind,
    ModelReport,
    Panel,
    ReportTable,
    ScoreRow,
    ShownExample,
    WeightList,
    reliability,
)
from partwise.tasks.dependency.drawing import as_svg

SCRIPT = "<script>document.title='owned'</script>"
IMAGE = "<img src=x onerror=document.title='owned'>"
QUOTES = "\"'`${1}</text></svg></style>&amp;"
HISTORY = {"metric": "f1", "epoch": [1, 2, 3], "loss": [9.0, 4.0, 1.0], "primal": [None, 5.0, 4.0], "dev": [0.5, 0.8, 0.9]}
POINTS = [{"examples": n, "measure": "f1", "value": v} for n, v in ((10, 0.5), (20, 0.7), (40, 0.8), (80, 0.85))]


def hostile_report(kinds=20):
    """One of each thing that a report may hold."""
    words = [MarkedWord(SCRIPT, "O"), MarkedWord(IMAGE, QUOTES, SCRIPT), MarkedWord("שלום", "B-X")]
    drawing = as_svg([SCRIPT, QUOTES, "日本語"], [2, 0, 2], [IMAGE, "root", "obj"], [1])
    example = ShownExample(
        f"line 3 {IMAGE}",
        SCRIPT,
        [
            Panel("words", words, SCRIPT),
            Panel("fields", [(SCRIPT, IMAGE), ("name", "value")]),
            Panel("text", f"a-{SCRIPT}\n||\nab"),
            Panel("drawing", drawing, "true"),
        ],
    )
    labels = [SCRIPT, IMAGE, QUOTES]
    return ModelReport(
        scores=[ScoreRow("f1", "F1", 0.9, 0.85, 0.95), ScoreRow("exact", "all right", float("nan"))],
        unit="sentences",
        tables=[ReportTable("labels", "Labels", ("label", "F1", "true"), [[name, 0.5, 1200] for name in labels * 10])],
        confusion=ConfusionTable(labels, np.array([[900, 50, 0], [1, 7, 2], [0, 0, 0]]), "tokens", 3),
        mistakes=[MistakeKind(SCRIPT, f"{IMAGE}{k}", 40 - k, [example]) for k in range(kinds)],
        more_mistakes=2,
        mistaken="Tokens.",
        worst=[example] * 10,
        ordered="The worst first.",
        reliability=reliability([0.95, 0.85, 0.55, 0.15], [True, True, False, False], "tokens"),
        weights=[WeightList(SCRIPT, [(IMAGE, 2.5), (QUOTES, -1.25)])],
        notes=[IMAGE],
    )


def write_report(path, report, **more):
    """The page of a report."""
    facts = {"loss": "crf", f"labels {SCRIPT}": IMAGE}
    about = {"model": f"m {SCRIPT}", "file": f"f {IMAGE}", "task": "tag", "level": 0.95, "does": "labels sequences"}
    path.write_bytes(made_report(report, {**about, "facts": facts, "history": HISTORY, "points": POINTS, **more}))
    return path
