"""What an aligner is given: pairs of sequences in Python or from a file, with alignments or without, as numbered letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from partwise.structures.alignment.problem import UNKNOWN
from partwise.tasks.alignment.files import GAP, GAPS, AlignedPairs, aligned_rows, identity, partner_of


class Alignment(NamedTuple):
    """Two sequences, and for each place of the first the place of the second opposite it, or -1."""

    first: Sequence[str]
    second: Sequence[str]
    partners: list[int]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The places that stand opposite each other."""
        return [(i, j) for i, j in enumerate(self.partners) if j >= 0]

    @property
    def identity(self) -> float:
        """Share of pairs with the same letter; nan if there are none."""
        return identity(self.first, self.second, self.partners)

    def rows(self, gap: str = GAPS[0]) -> tuple[str, str]:
        """The two rows, with gaps."""
        first, second = aligned_rows(self.first, self.second, self.partners, gap)
        return "".join(first), "".join(second)

    def draw(self, names: Sequence[str] = ("", ""), width: int = 60) -> str:
        """The two rows as text, one below the other, with a line between them that marks equal letters."""
        from partwise.tasks.alignment.drawing import as_text

        return as_text(self.first, self.second, self.partners, names, width)


@dataclass(frozen=True)
class Pairs:
    """Both sequences of each pair, and what is known of their alignments."""

    first: list[Sequence[str]]
    second: list[Sequence[str]]
    partners: list[np.ndarray] | None
    core: list[np.ndarray] | None
    places: list[str]  #: where each pair came from, for messages

    def __len__(self) -> int:
        return len(self.first)

    @property
    def lengths(self) -> np.ndarray:
        """(N, 2) places."""
        return np.array([[len(a), len(b)] for a, b in zip(self.first, self.second, strict=True)], np.int64).reshape(-1, 2)

    def take(self, which: np.ndarray) -> Pairs:
        """The pairs numbered `which`."""

        def some(values: Any) -> Any:
            return None if values is None else [values[int(k)] for k in which]

        return Pairs(some(self.first), some(self.second), some(self.partners), some(self.core), some(self.places))


def read_pairs(X: Any, y: Any = None) -> Pairs:
    """From `AlignedPairs`, or a list of (first, second), strings or lists of letters, with a list of alignments or without."""
    if isinstance(X, AlignedPairs):
        first, second = list[Sequence[str]](X.first), list[Sequence[str]](X.second)
        partners, core, places = X.partners, X.core, [X.place(k) for k in range(len(X))]
    else:
        (first, second), partners, core = sequences_of(X), None, None
        places = [f"pair {k}" for k in range(len(first))]
    if y is not None:
        if len(y) != len(first):
            raise ValueError(f"There are {len(first)} pairs, but {len(y)} alignments.")
        rows = zip(y, first, second, places, strict=True)
        partners, core = [read_alignment(given, a, b, place) for given, a, b, place in rows], None
    return Pairs(first, second, partners, core, places)


def sequences_of(X: Any) -> tuple[list[Sequence[str]], list[Sequence[str]]]:
    """First and second sequences."""
    if isinstance(X, str | bytes) or not isinstance(X, Sequence | np.ndarray):
        raise TypeError(f"Pairs must be AlignedPairs or a list of (first, second). Got {type(X).__name__} instead.")
    first: list[Sequence[str]] = []
    second: list[Sequence[str]] = []
    for k, pair in enumerate(X):
        if isinstance(pair, str) or not isinstance(pair, Sequence | np.ndarray) or len(pair) != 2:
            raise ValueError(f"pair {k} must be two sequences. Got {pair!r:.60} instead.")
        for side, sequence in zip((first, second), pair, strict=True):
            side.append(sequence if isinstance(sequence, str) else [str(letter) for letter in sequence])
    return first, second


def read_alignment(given: Any, first: Sequence[str], second: Sequence[str], place: str) -> np.ndarray:
    """Partners from an `Alignment`, two rows with gaps, a list of pairs (i, j), or a list of partners; None is not known."""
    if isinstance(given, Alignment):
        given = given.partners
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(row, str) for row in given):
        if len(given[0]) != len(given[1]):
            raise ValueError(
                f"{place}: aligned rows must be as long as each other. Got {len(given[0])} and {len(given[1])} columns."
            )
        for row, sequence in zip(given, (first, second), strict=True):
            bare = row.replace(GAPS[0], "")
            if bare != "".join(sequence):
                raise ValueError(f"{place}: the row {bare[:30]!r} is not the sequence {''.join(sequence)[:30]!r} with gaps.")
        return partner_of(given)
    given = list(given)
    if given and isinstance(given[0], tuple | list):
        partners = np.full(len(first), GAP, np.int32)
        for i, j in given:
            if not (0 <= i < len(first) and 0 <= j < len(second)):
                raise ValueError(
                    f"{place}: there are no places {i} and {j} in sequences of {len(first)} and {len(second)} letters."
                )
            partners[i] = j
        return partners
    partners = np.array([UNKNOWN if j is None else int(j) for j in given], np.int32)
    if len(partners) != len(first):
        raise ValueError(f"{place}: the first sequence has {len(first)} letters, but its alignment {len(partners)} partners.")
    return partners


# ---------------------------------------------------------------------------------------------------------------------
# Letters
# ---------------------------------------------------------------------------------------------------------------------


def find_letters(pairs: Pairs) -> list[str]:
    """The letters that occur, sorted; a gap among them is refused."""
    found: set[str] = set()
    for a, b, place in zip(pairs.first, pairs.second, pairs.places, strict=True):
        new = set(a) | set(b)
        if not found >= new:
            if GAPS[0] in new:
                raise ValueError(
                    f"{place}: a sequence has a gap {GAPS[0]!r} in it. Give sequences without gaps, and rows with gaps as y."
                )
            found |= new
    return sorted(found)


def letter_codes(
    sequences: Sequence[Sequence[str]], letters: Sequence[str], wildcard: str | None, side: str, places: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the letters of all sequences, end to end, and where each begins; an unknown letter is named with its place."""
    index = {letter: k for k, letter in enumerate(letters)}
    starts = np.concatenate([[0], np.cumsum([len(s) for s in sequences])]).astype(np.int64)
    other = index.get(wildcard, -1) if wildcard is not None else -1
    codes = np.array([index.get(letter, other) for sequence in sequences for letter in sequence], np.int64)
    wrong = np.flatnonzero(codes < 0)
    if len(wrong):
        pair = int(np.searchsorted(starts, wrong[0], side="right")) - 1
        at = int(wrong[0] - starts[pair])
        shown = "".join(letters) if all(len(letter) == 1 for letter in letters) else ", ".join(letters)
        raise ValueError(
            f"{places[pair]}, {side} sequence, place {at}: the letter {sequences[pair][at]!r} is not in the alphabet {shown!r}. "
            "Pass an 'alphabet' that has it, or a 'wildcard', the letter that others are read as."
        )
    return codes, starts
