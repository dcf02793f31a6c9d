"""The papers' tables and figures, each one command: ``partwise reproduce NAME --data DIR``.

To add one: write a file with a subclass of `Experiment` (see `partwise.experiments.experiment`) and name it here.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from partwise.experiments.experiment import Experiment

EXPERIMENTS = {
    "mancev-table-5.1": "partwise.experiments.mancev_table_5_1:Table51",
    "mancev-figure-4.1": "partwise.experiments.mancev_figure_4_1:Figure41",
    "mancev-figure-5.1": "partwise.experiments.mancev_figure_5_1:Figure51",
    "do-table-1": "partwise.experiments.do_table_1:Table1",
    "do-figure-1": "partwise.experiments.do_figure_1:Figure1",
    "do-table-3": "partwise.experiments.do_table_3:Table3",
    "do-table-2": "partwise.experiments.do_table_2:Table2",
    "do-figure-2": "partwise.experiments.do_figure_2:Figure2",
    "balamurugan-table-3-4": "partwise.experiments.balamurugan_table_3_4:Table34",
    "balamurugan-table-5": "partwise.experiments.balamurugan_table_5:Table5",
    "balamurugan-figure-1": "partwise.experiments.balamurugan_figure_1:Figure1",
    "balamurugan-figure-2": "partwise.experiments.balamurugan_figure_2:Figure2",
    "martins-table-1": "partwise.experiments.martins_table_1:Table1",
    "martins-figure-3": "partwise.experiments.martins_curves:Figure3",
    "martins-figure-4": "partwise.experiments.martins_curves:Figure4",
    "robust-training": "partwise.experiments.robust_training:RobustTraining",
    "joachims-n-vs-1-slack": "partwise.experiments.joachims_slack:NAgainstOneSlack",
}


def get_experiment(name: str) -> Experiment:
    """The experiment of that name. Its module is imported now, not before."""
    if name not in EXPERIMENTS:
        raise ValueError(f"There is no experiment {name!r}. There are: {', '.join(EXPERIMENTS)}.")
    module, _, kind = EXPERIMENTS[name].partition(":")
    return getattr(importlib.import_module(module), kind)()
