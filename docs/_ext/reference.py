"""The reference: every public name has a page, and a line in the list of its subject."""

from __future__ import annotations

import importlib
from pathlib import Path

HEAD = """Reference
=========

Every public name. Classes for a task look like estimators of scikit-learn; `partwise.solve` takes packed problems.
The options of the commands are on :doc:`a page of their own <../command-line>`.

"""

#: what is neither a class nor a function, and so has no words of its own
TABLES = {
    ("partwise", "LOSSES"): 'The losses by name: a dict of records, ``LOSSES["hinge"]``.',
    ("partwise", "SOLVERS"): 'The solvers by name: a dict of classes, ``SOLVERS["dca"]``.',
}

#: heading, what is said below it, module, names; a star stands for all names that no other list has
LISTS: tuple[tuple[str, str, str, str], ...] = (
    (
        "Estimators",
        "One class per task: `fit`, `predict`, `score`, `save`.",
        "partwise",
        "SequenceLabeler SegmentLabeler Classifier DependencyParser ConstituencyParser GraphLabeler Aligner RnaFolder Ranker "
        "load ModelFileError",
    ),
    ("Learning", "From a packed problem to weights.", "partwise", "solve compare SolveResult Record Solver CCCP"),
    (
        "Losses",
        "What a mistake costs: :doc:`../losses`.",
        "partwise",
        "Family Ramp SoftRamp Rescaled RescaledRamp SquaredHinge Summed",
    ),
    (
        "Structures",
        "Packed problems, and graphs written by hand.",
        "partwise",
        "chain_problem ChainProblem multiclass_problem MulticlassProblem FactorGraph graph_problem graph_families",
    ),
    (
        "Text",
        "Column files, features without strings, packed corpora.",
        "partwise",
        "read_columns Columns ColumnFile TemplateEncoder pack PackedCorpus",
    ),
    ("More", "Compiled code, and what else there is.", "partwise", "*"),
    ("partwise.datasets", "Readers of corpora, and generators that need no files.", "partwise.datasets", "*"),
    ("partwise.metrics", "The scores of all tasks: :doc:`../metrics`.", "partwise.metrics", "*"),
    ("partwise.solvers", "One class per algorithm: :doc:`../solvers`.", "partwise.solvers", "*"),
    ("partwise.crfsuite", "The interface of sklearn-crfsuite: :doc:`../coming-from`.", "partwise.crfsuite", "*"),
    ("partwise.kernels", "The seam: what a structure may implement (:doc:`../first-structure`).", "partwise.kernels", "*"),
    ("partwise.objective", "What is minimised, for all examples.", "partwise.objective", "*"),
    ("partwise.passes", "Questions about all examples.", "partwise.passes", "*"),
    ("partwise.bridges", "To spaCy, data frames and annotation tools: :doc:`../bridges`.", "partwise.bridges", "*"),
)


def names_of(module: str) -> list[str]:
    """What a module offers: its ``__all__``, the classes of its solvers, its kernels, or its own functions."""
    home = importlib.import_module(module)
    if module == "partwise.solvers":
        return [f"{cls.__module__.removeprefix('partwise.solvers.')}.{cls.__name__}" for cls in home.SOLVERS.values()]
    if hasattr(home, "__all__"):
        return [name for name in home.__all__ if not name.startswith("__")]
    return [
        name
        for name, value in vars(home).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module and getattr(value, "__doc__", None)
    ]


def page() -> str:
    """The list of all names as reStructuredText."""
    parts, seen = [HEAD], {name for *_, names in LISTS for name in names.split()}
    for heading, said, module, names in LISTS:
        try:
            found = [name for name in names_of(module) if name not in seen or module != "partwise"]
        except ImportError:
            continue
        own = found if names == "*" else names.split()
        own = [name for name in own if (module, name) not in TABLES]
        if own:
            lines = "\n".join(f"   {name}" for name in own)
            parts.append(
                f"{heading}\n{'-' * len(heading)}\n\n{said}\n\n.. currentmodule:: {module}\n\n"
                f".. autosummary::\n   :toctree: .\n   :nosignatures:\n\n{lines}\n\n"
            )
    parts.append("Tables\n------\n\n")
    parts += [f".. py:data:: {module}.{name}\n\n   {said}\n\n" for (module, name), said in TABLES.items()]
    return "".join(parts)


def write(folder: Path) -> None:
    """``index.rst`` in `folder`, if it is not there already in this form; pages of names that are gone are removed."""
    folder.mkdir(exist_ok=True)
    pages = {f"{module}.{name}" for _, _, module, _ in LISTS for name in names_of(module)}
    for path in folder.glob("partwise.*.rst"):
        if path.stem not in pages:
            path.unlink()
    path, text = folder / "index.rst", page()
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
