"""Judgements made up for tests, without a model, and what becomes of a file if all is accepted."""

import json

import numpy as np

from partwise.files.text_edits import EditableText
from partwise.passes import Evidence
from partwise.solvers.noise import Judgement, Noise
from partwise.tasks.common.decisions import Decisions


def made_up(outputs, believed):
    """The judgement about outputs that something else is believed of: the more it differs, the more probably it is wrong."""
    given, other = (np.concatenate([np.zeros(0, np.int32), *(np.asarray(y, np.int32) for y in ys)]) for ys in (outputs, believed))
    starts = np.concatenate([[0], np.cumsum([len(y) for y in outputs])]).astype(np.int64)
    disputed = given != other
    n = np.diff(np.concatenate([[0], np.cumsum(disputed)])[starts])
    parts = np.where(disputed, 3.0 - 0.01 * np.arange(len(given)), -3.0)
    evidence = Evidence(starts, np.where(disputed, 0.1, 0.9), other.astype(np.int32), disputed)
    return Judgement(evidence, np.where(n > 0, n.astype(float), -4.0), parts, Noise(1.0, 5.0, 0.1, 0.0, np.zeros((0, 0))))


def accepted(command, review, task, path):
    """The file after accepting all that is believed, checked as ``partwise repair`` does."""
    source = EditableText.read(str(path))
    data = review.packed(task, source, "said")
    decisions = []
    for k, item in enumerate(data["items"]):
        passage, changes = data["passages"][item["passage"]], []
        for doubt in item["doubts"]:
            word = doubt["word"]
            raw = passage["raw"][word] if "raw" in passage else data["labels"][passage["given"][word]]
            line = passage["lines"][word] if "lines" in passage else passage["line"] + word
            to = data["labels"][doubt["believed"]]
            if data["labels"][passage["given"][word]] != to:
                changes.append({"line": line, "at": passage["at"] + passage["begins"][word], "from": raw, "to": to})
        decisions.append({"item": k, "line": passage["line"], "choice": "accept", "changes": changes})
    said = {"format": "partwise decisions", "version": 1, "task": task, "file": data["file"], "reading": data["reading"]}
    file = path.with_suffix(".decisions.json")
    file.write_text(json.dumps({**said, "decisions": decisions}))
    after = Decisions.read(file).apply(source)
    command.check_repaired(source.original, after, command.options(**data["reading"]))
    return after.decode()


class Asked:
    """Options of ``partwise suspects``."""

    precision = top = truth = folds = None
    random_state = 0

    def __init__(self, parts=False):
        self.parts = parts

    def folds_to_judge(self):
        return None
