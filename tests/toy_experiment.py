"""An experiment that needs no training: for tests of what runs experiments."""

import os
import time
from dataclasses import dataclass

from partwise.experiments.experiment import Experiment, Table, groups, mean_interval, paired, values


@dataclass(frozen=True)
class Cell:
    loss: str
    seed: int


class Toy(Experiment):
    name = "toy"
    about = "Numbers from a file"
    source = "nobody"
    minutes = {"quick": 0, "full": 0}
    files = ("toy/numbers.txt",)
    together = ("seed",)
    notes = {"quick": "quick: two seeds."}

    def cells(self, setting):
        return [Cell(loss, seed) for seed in range(2 if setting == "quick" else 5) for loss in ("hinge", "ramp")]

    def run(self, data, cell):
        with open(data / "toy" / "log.txt", "a") as log:
            log.write(f"{cell.loss} {cell.seed}\n")
        time.sleep(float(os.environ.get("TOY_PAUSE", "0")))
        return {"f1": float((data / "toy/numbers.txt").read_text()) + cell.seed + (cell.loss == "ramp"), "none": float("nan")}

    def summarise(self, results):
        hinge, ramp = groups(results, "loss").values()
        table = Table("F1", ("loss", "mean", "difference"), differences=("difference",))
        table.rows.append(("hinge", mean_interval(values(hinge, "f1")), None))
        table.rows.append(("ramp", mean_interval(values(ramp, "f1")), mean_interval(paired(ramp, hinge, "f1", "seed"))))
        return [table]

    def draw(self, figure, results):
        figure.subplots().plot(values(results, "f1"))
