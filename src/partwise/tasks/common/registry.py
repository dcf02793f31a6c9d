"""The tasks there are: the one table that the command line, the model file and the facades read.

A task is a package under `partwise.tasks` and one line here. What it does is found by the names of its modules (roles):
``estimator`` has the public class, ``command`` the `Command` that the command line makes verbs of.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class RegisteredTask:
    """Something to learn."""

    verb: str  #: ``partwise train VERB``
    package: str  #: below ``partwise.tasks``
    estimator: str  #: the public class, and what a model file calls itself
    does: str  #: what a model of it does, in a word or two
    about: str  #: a line for ``partwise train --help``

    def module(self, role: str) -> Any:
        """One of its modules."""
        return importlib.import_module(f"partwise.tasks.{self.package}.{role}")

    @property
    def core(self) -> Any:
        """The estimator, without scikit-learn."""
        return getattr(self.module("estimator"), self.estimator)

    @property
    def public(self) -> Any:
        """The estimator as users see it: ``partwise.X``."""
        from partwise.tasks.common.sklearn_face import with_face

        return with_face(self.core)

    @property
    def command(self) -> Any:
        """What the command line needs to know of it."""
        return self.module("command").COMMAND

    @property
    def table(self) -> Any:
        """What it makes of data frames and parquet files, a `TaskTable`; None: a table is not natural for it."""
        if importlib.util.find_spec(f"partwise.tasks.{self.package}.table") is None:
            return None
        return self.module("table").TABLE


TASKS = (
    RegisteredTask("classify", "classification", "Classifier", "classifies", "Learn to classify the rows of a table."),
    RegisteredTask("tag", "tagging", "SequenceLabeler", "labels sequences", "Learn to label sequences, from a column file."),
    RegisteredTask(
        "segment",
        "segments",
        "SegmentLabeler",
        "finds segments",
        "Learn to find labelled segments, scored as wholes, from a column file with chunk labels.",
    ),
    RegisteredTask("parse", "dependency", "DependencyParser", "parses", "Learn to parse: dependency trees, from a treebank."),
    RegisteredTask("align", "alignment", "Aligner", "aligns", "Learn to align pairs of sequences."),
    RegisteredTask("fold", "folding", "RnaFolder", "folds RNA", "Learn to fold RNA: the base pairs of its secondary structure."),
    RegisteredTask("rank", "ranking", "Ranker", "ranks", "Learn to rank the documents of a query."),
    RegisteredTask(
        "constituency",
        "constituency",
        "ConstituencyParser",
        "parses into constituents",
        "Learn to parse into constituents, from bracketed trees.",
    ),
    RegisteredTask(
        "graph", "graphs", "GraphLabeler", "labels graphs", "Learn to label the nodes of graphs, or the pixels of pictures."
    ),
)

BY_VERB = {task.verb: task for task in TASKS}
BY_ESTIMATOR = {task.estimator: task for task in TASKS}
