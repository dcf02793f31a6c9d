"""Data frames of pandas, polars and Arrow with whatever may be in a table, given to every estimator that takes one."""

from __future__ import annotations

import datetime
import decimal
import importlib.util
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import partwise
from partwise import interpret
from partwise.bridges.frames import fit_frame, predict_frame
from partwise.tasks.common.registry import TASKS

SHOWN = (ValueError, TypeError, MemoryError, FloatingPointError, OverflowError)
CELLS: tuple[Any, ...] = (
    None, True, 0, 1, -1, 2**40, 0.5, float("nan"), float("inf"), "", "a", "O", "B-X", "é\n\t", b"x", [1.0, 2.0], ["a"], {"a": 1},
    (1, 2), datetime.date(2020, 1, 2), "(S (N a))", decimal.Decimal("1.5"), np.float32(2), np.datetime64("NaT"), "A" * 300,
    "((..))",
)  # fmt: skip
#: for each estimator a sound table, its label and its group
SOUND: dict[str, tuple[dict[str, list[Any]], str | None, str | None]] = {
    "SequenceLabeler": ({"s": [1, 1, 2, 2], "word": list("abac"), "tag": ["D", "N", "D", "N"]}, "tag", "s"),
    "SegmentLabeler": ({"s": [1, 1, 1, 2], "w": list("abac"), "tag": ["B-X", "I-X", "O", "B-Y"]}, "tag", "s"),
    "Classifier": ({"x": [0.5, 1.0, -2.0, 3.0], "kind": list("aabb"), "class": list("uvuv")}, "class", None),
    "Ranker": ({"qid": [1, 1, 2, 2], "x": [1.0, 2.0, 0.5, 0.0], "grade": [0, 1, 2, 0]}, "grade", "qid"),
    "DependencyParser": ({"sentence": [1, 1, 2], "form": ["a", "dog", "it"], "upos": ["D", "N", "P"], "head": [2, 0, 0],
                          "deprel": ["det", "root", "root"]}, None, "sentence"),
    "ConstituencyParser": ({"tree": ["(S (N a) (V b))", "(S (N c) (V d))"]}, None, None),
    "RnaFolder": ({"sequence": ["GGAAACC", "GAAAC"], "structure": ["((...))", "(...)"]}, None, None),
    "Aligner": ({"row1": ["GATTACA", "AC"], "row2": ["GA-TACA", "AC"]}, None, None),
}  # fmt: skip
SMALL = {"DependencyParser": {"hash_bits": 6}, "ConstituencyParser": {"hash_bits": 6}}


class Frames:
    """A sound table with a few other cells, titles and rows; fitted, and asked about another one."""

    name = "frames"

    def prepare(self, folder: Path) -> None:
        known = {task.estimator for task in TASKS if task.table is not None}
        assert known <= set(SOUND), known - set(SOUND)
        self.kinds = [name for name in ("pandas", "polars", "pyarrow") if importlib.util.find_spec(name)]

    def one(self, seed: int) -> str:
        if not self.kinds:
            return "nothing to make frames with"
        rng = random.Random(seed)
        name = list(SOUND)[seed % len(SOUND)]
        table, label, group = SOUND[name]
        with warnings.catch_warnings(), interpret(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                frames = [self.frame(rng, rng.choice(self.kinds), table) for _ in range(2)]
            except Exception as error:  # what these libraries do not take is no input for us
                return f"no frame: {type(error).__name__}"
            asked = {"label": label, "group": group}
            for option in asked:
                if rng.random() < 0.1:
                    asked[option] = rng.choice((None, "x", "missing", 0, *table))
            features = rng.choice((None, None, None, [], ["x"], list(table), "word"))
            try:
                model = getattr(partwise, name)(max_epochs=2, **SMALL.get(name, {}))
                fit_frame(model, frames[0], features=features, **asked)
                predict_frame(model, frames[1], group=asked["group"], name=rng.choice(("predicted", next(iter(table)), "")))
            except SHOWN:
                return f"{name}: refused"
        return f"{name}: answered"

    @staticmethod
    def frame(rng: random.Random, kind: str, table: dict[str, list[Any]]) -> Any:
        """The table with changes, as a frame."""
        columns = {title: list(cells) for title, cells in table.items()}
        for _ in range(rng.choice((0, 1, 1, 2, 4))):
            title, change = rng.choice(list(columns)), rng.randrange(8)
            cells = columns[title]
            if change < 4 and cells:
                cells[rng.randrange(len(cells))] = rng.choice(CELLS)
            elif change == 4:
                columns[title] = [rng.choice(CELLS)] * len(cells)
            elif change == 5 and len(columns) > 1:
                del columns[title]
            elif change == 6:
                columns[rng.choice(("x", "new", "", "head", "ID", title))] = columns.pop(title)
            else:
                n = rng.randrange(len(cells) + 1)
                columns = {name: [*some[:n], *some[:n]] if rng.random() < 0.3 else some[:n] for name, some in columns.items()}
        if kind == "pandas":
            import pandas

            frame = pandas.DataFrame(columns)
            if rng.random() < 0.1 and len(frame.columns) > 1:
                frame.columns = [frame.columns[0]] * len(frame.columns)
            if rng.random() < 0.2:
                frame = frame.astype({frame.columns[0]: "category"}) if frame.columns.is_unique else frame
            return frame.set_index(frame.columns[0], drop=False) if rng.random() < 0.1 else frame
        if kind == "polars":
            import polars

            return polars.DataFrame(columns, strict=False)
        import pyarrow

        return pyarrow.table(columns)
