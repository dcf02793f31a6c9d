"""A model's answers as a file wants them: in the chunking scheme of the data, which need not be the one the model thinks in."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.features.given_labels import GivenLabels
from partwise.tasks.common.command_options import Refusal
from partwise.text.chunk_schemes import SCHEMES, Scheme, convert_coded, is_chunking, recognise, split_label
from partwise.text.columns import Columns


class Answers:
    """Labels of a model, and what is said of them, from and to the scheme of files.

    Parameters
    ----------
    model : SequenceLabeler
    scheme : str, optional
        The scheme of files; that of the training data by default.
    """

    def __init__(self, model: Any, scheme: str | None = None):
        self.model = model
        self.labels = [str(label) for label in model.classes_.tolist()]
        self.scheme = scheme or model.given_scheme_
        self.own = _own_scheme(model)
        if self.scheme is not None and self.scheme not in SCHEMES:
            raise Refusal(f"--scheme must be one of {', '.join(SCHEMES)}. Got {self.scheme!r}.")
        if self.scheme is not None and self.own is None:
            raise Refusal(f"--scheme {self.scheme}: the model's labels are no chunk labels like B-X, I-X, O: {self.labels[:5]}.")

    def written(self, codes: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, list[str]]:
        """The model's labels, as places in ``model.classes_``, as they are to be written: places in a list, and the list."""
        if self.scheme is None:
            return codes, self.labels
        converted = convert_coded(codes, starts, self.labels, self.scheme, self.own)
        return converted.codes, converted.labels

    def known(self, columns: Columns, column: int, unknown: str | None) -> GivenLabels:
        """What a column says of the labels; in another scheme, a label may stand for several of the model's."""
        given = columns.labels(column, unknown)
        may_be = self._written_as()
        distinct: list[Any] = []
        for number, label in enumerate(given.distinct):
            fitting = frozenset(name for k, name in enumerate(self.model.classes_.tolist()) if label in may_be[k])
            if label is not None and not fitting:
                where = f"{columns.place(given.where(number))}, column {column}"
                advice = "" if unknown is not None else " Say with --known-unknown which cell stands for an unknown label."
                raise Refusal(f"{where}: {label!r} is not a label that the model knows.{advice}")
            distinct.append(None if label is None else fitting)
        return GivenLabels(given.codes, distinct)

    def truth(self, columns: Columns, column: int) -> GivenLabels:
        """True labels in the model's own scheme."""
        given = columns.labels(column)
        if self.scheme is not None:
            converted = convert_coded(given.codes, columns.starts, given.distinct, self.own or "")
            given = GivenLabels(converted.codes, list(converted.labels))
        return given

    def probabilities(self, p: np.ndarray) -> tuple[np.ndarray, list[str]]:
        """P(y_t | x) of the model's labels, (tokens, labels), as that of labels to be written, and those.

        In the scheme of files where each label of the model has one meaning there (from IOBES to IOB2, say, B and S are both
        written B, and their probabilities are added); else of the model's own labels.
        """
        may_be = self._written_as()
        if any(len(names) != 1 for names in may_be):
            return p, self.labels
        written = [next(iter(names)) for names in may_be]
        names = sorted(set(written))
        if names == self.labels:
            return p, names
        merged = np.zeros((len(p), len(names)))
        for k, name in enumerate(written):
            merged[:, names.index(name)] += p[:, k]
        return merged, names

    def _written_as(self) -> list[set[str]]:
        """For each of the model's labels, what it may be called in the scheme of files."""
        if self.scheme is None or self.own is None:
            return [{label} for label in self.labels]
        own, other = SCHEMES[self.own], SCHEMES[self.scheme]
        found = []
        for label in self.labels:
            prefix, kind = split_label(label) or ("O", "")
            letters = {x for role in range(4) if prefix in _letters(own, role) for x in _letters(other, role)} or {"O"}
            found.append({f"{letter}-{kind}" if kind else letter for letter in letters})
        return found


def _own_scheme(model: Any) -> str | None:
    """The scheme a model labels in: as was noted when it was trained, else as its labels suggest."""
    if not is_chunking(model.classes_.tolist()):
        return None
    noted = [model.constraints]
    if model.given_scheme_ is None and model.training_:
        noted.append(model.training_.get("scheme"))
    return next((name for name in noted if isinstance(name, str) and name in SCHEMES), recognise(model.classes_.tolist()))


def _letters(scheme: Scheme, role: int) -> set[str]:
    """Prefixes that a token may have: role is 2 * (is the first of its span) + (is the last)."""
    if not scheme.only_between:
        return {scheme.letters[role]}
    return {scheme.letters[2 * first + last] for first in {0, role >> 1} for last in {0, role & 1}}
