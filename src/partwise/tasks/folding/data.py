"""What a folder is given: RNA sequences in Python or from a file, with structures or without, as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.structures.folding.problem import encode
from partwise.tasks.folding.files import RnaSet, read_dot_bracket


@dataclass(frozen=True)
class Sequences:
    """Bases, and what is known of their pairs."""

    bases: list[np.ndarray]  #: int8, see `partwise.structures.folding.loops`
    partners: list[np.ndarray] | None  #: from 0, -1 without
    places: list[str]  #: where each came from, for messages
    pseudoknots: int  #: pairs that were left out because they cross others

    def __len__(self) -> int:
        return len(self.bases)

    @property
    def lengths(self) -> np.ndarray:
        """Bases of each sequence."""
        return np.array([len(b) for b in self.bases], np.int64)

    def take(self, which: np.ndarray) -> Sequences:
        """The sequences numbered `which`."""
        own = [int(i) for i in which]
        partners = None if self.partners is None else [self.partners[i] for i in own]
        return Sequences([self.bases[i] for i in own], partners, [self.places[i] for i in own], self.pseudoknots)


def read_sequences(X: Any, y: Any = None, pseudoknots: str = "drop") -> Sequences:
    """From an `RnaSet`, or from strings of bases; structures are dot-brackets, or partners from 0 with -1 or None for none."""
    given: Any
    if isinstance(X, RnaSet):
        bases, places = X.bases, [X.place(i) for i in range(len(X))]
        given, crossing = (list(X.partners), int(X.pseudoknots.sum())) if X.has_structures else (None, 0)
        if given is not None and y is None and crossing and pseudoknots == "refuse":
            raise ValueError(refusal(places[int(np.argmax(X.pseudoknots > 0))]))
    else:
        if isinstance(X, str | bytes) or not hasattr(X, "__len__"):
            raise TypeError(f"Sequences must be an RnaSet, or a list of strings. Got {type(X).__name__} instead.")
        places, given, crossing = [f"sequence {i}" for i in range(len(X))], None, 0
        bases = [encode(text, place) for text, place in zip(X, places, strict=True)]
    if y is not None:
        if len(y) != len(bases):
            raise ValueError(f"There are {len(bases)} sequences, but {len(y)} structures.")
        given, crossing = [], 0
        for structure, place in zip(y, places, strict=True):
            partners, left_out = read_structure(structure, place)
            if left_out and pseudoknots == "refuse":
                raise ValueError(refusal(place))
            given.append(partners)
            crossing += left_out
    for own, partners, place in zip(bases, given or [], places, strict=False):
        if len(own) != len(partners):
            raise ValueError(f"{place} has {len(own)} bases, but its structure {len(partners)}.")
    return Sequences(bases, given, places, crossing)


def read_structure(structure: Any, place: str) -> tuple[np.ndarray, int]:
    """Partners, without pairs that cross others, and how many those are."""
    if isinstance(structure, str):
        return read_dot_bracket(structure, place)
    partners = np.array([-1 if j is None else j for j in structure], np.int64)
    n = len(partners)
    for i, j in enumerate(partners.tolist()):
        if not -1 <= j < n or j == i or (j >= 0 and partners[j] != i):
            raise ValueError(
                f"{place}: base {i + 1} has the partner {j}: partners are numbers from 0 to {n - 1}, each other's, or -1."
            )
    crossing = 0
    for i in range(n):
        j = int(partners[i])
        inside = partners[i + 1 : j]
        if j > i and ((inside >= 0) & ((inside < i) | (inside > j))).any():
            partners[i] = partners[j] = -1
            crossing += 1
    return partners, crossing


def refusal(place: str) -> str:
    """Why a pseudoknot is not learnt from."""
    return f"{place}: some of its pairs cross, a pseudoknot, and pseudoknots='refuse'. Take 'drop' to leave such pairs out."
