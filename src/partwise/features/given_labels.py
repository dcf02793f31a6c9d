"""Labels as they are given, one per token: a label of any hashable type, None (unknown), or a set (any of these).

Distinct labels are numbered once; what is learnt or refused about labels is learnt from the distinct ones, so the cost per token
is that of one lookup in an array.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from numbers import Integral, Number
from typing import Any, NamedTuple

import numpy as np

LONGEST = 1024  # bytes of a string label in an array of strings; longer ones are kept as objects


class GivenLabels(NamedTuple):
    """The labels of all tokens, end to end."""

    codes: np.ndarray  #: (tokens,) int32: the token's label is ``distinct[code]``
    distinct: list[Any]  #: labels, None, or frozensets of labels
    column: int | None = None  #: of the `Columns` they came from, if they did

    @property
    def is_partial(self) -> bool:
        """Whether some token has no label, or several."""
        return any(label is None or isinstance(label, frozenset) for label in self.distinct)

    def where(self, number: int) -> int:
        """The first token with the label ``distinct[number]``."""
        return int(np.argmax(self.codes == number))

    def learn(self, place: Callable[[int], str], dtype: Any = None) -> np.ndarray:
        """The labels there are, those named in sets included; refuses what cannot be one, saying where it is."""
        found: list[Any] = []
        for number, label in enumerate(self.distinct):
            if label != label:
                raise ValueError(f"NaN is not a label ({place(self.where(number))}). For an unknown label give None.")
            found += label if isinstance(label, frozenset) else [] if label is None else [label]
        if not found:
            raise ValueError("There are no labels to learn from: every token's is None, which stands for unknown.")
        return learn_labels(found, dtype)

    def encode(self, classes: np.ndarray, refuse: Callable[[int, Any], Exception]) -> tuple[np.ndarray, np.ndarray | None]:
        """Labels as places in `classes`; a token with several, or none, as L + a row of `known`, in the way of `chain_problem`.

        Parameters
        ----------
        classes : array (L,)
        refuse : function of a token and a label
            Makes the exception to raise for a label that is not in `classes`.

        Returns
        -------
        gold : int32 array (tokens,)
        known : bool array (sets, L), or None if every token has one label
        """
        number = numbering(classes)
        for k, label in enumerate(self.distinct):
            named = label if isinstance(label, frozenset) else (label,)
            strange = [] if label is None else [one for one in named if one not in number]
            if strange or not named:
                raise refuse(self.where(k), strange[0] if strange else set())
        several = [k for k, label in enumerate(self.distinct) if label is None or isinstance(label, frozenset)]
        gold = np.zeros(len(self.distinct), np.int32)
        gold[several] = len(classes) + np.arange(len(several))
        complete = np.setdiff1d(np.arange(len(self.distinct)), several)
        gold[complete] = [number[self.distinct[k]] for k in complete.tolist()]
        return gold[self.codes], self.allows(classes)[several] if several else None

    def allows(self, classes: np.ndarray) -> np.ndarray:
        """Which of `classes` each of the distinct labels allows, bool (distinct, labels); None allows all."""
        number = numbering(classes)
        table = np.zeros((len(self.distinct), len(classes)), bool)
        for k, label in enumerate(self.distinct):
            if label is None:
                table[k] = True
                continue
            for one in label if isinstance(label, frozenset) else (label,):
                if one in number:
                    table[k, number[one]] = True
        return table


def number_labels(labels: Sequence[Any], place: Callable[[int], str]) -> GivenLabels:
    """Number labels given one by one; sets are frozen, what is not hashable is refused, saying where it is."""
    for attempt in range(2):
        numbers: Any = defaultdict(None)
        numbers.default_factory = numbers.__len__
        try:
            codes = np.fromiter(map(numbers.__getitem__, labels), np.int32, len(labels))
            refuse_alike(labels, codes, list(numbers), place)
            return GivenLabels(codes, list(numbers))
        except TypeError:
            if attempt == 0:
                labels = [frozenset(label) if isinstance(label, set) else label for label in labels]
    for k, label in enumerate(labels):
        try:
            hash(label)
        except TypeError:
            raise TypeError(f"Labels must be hashable. Got {label!r} ({type(label).__name__}; {place(k)}).") from None
    raise TypeError("Labels must be hashable.")


def refuse_alike(labels: Sequence[Any], codes: np.ndarray, distinct: list[Any], place: Callable[[int], str]) -> None:
    """Raise for labels that Python takes for one though they look like several: 1, 1.0 and True."""
    if not any(isinstance(label, Number | np.bool_) for label in distinct):
        return
    kinds = [kind_of(label) for label in distinct]
    for k, (label, code) in enumerate(zip(labels, codes.tolist(), strict=True)):
        if kind_of(label) != kinds[code]:
            first = distinct[code]
            raise ValueError(
                f"The labels {first!r} ({type(first).__name__}) and {label!r} ({type(label).__name__}; {place(k)}) are equal in "
                "Python, and would become one. Give labels of one type, strings say."
            )


def kind_of(label: Any) -> str:
    """Truth values, whole numbers, other numbers, and the rest."""
    if isinstance(label, bool | np.bool_):
        return "bool"
    return "int" if isinstance(label, Integral) else "float" if isinstance(label, Number) else ""


def label_array(labels: Sequence[Hashable], dtype: Any = None) -> np.ndarray:
    """A 1-D array holding exactly these labels: of their common numpy type where there is one, else of objects."""
    if dtype is not None or len({type(label) for label in labels}) == 1:
        try:
            natural = np.array(labels, dtype)
            # an array of strings takes the room of its longest for each; and numpy drops trailing zero bytes
            fits = natural.dtype.kind in "biuf" or (natural.dtype.kind == "U" and natural.dtype.itemsize <= LONGEST)
            if natural.ndim == 1 and fits and natural.tolist() == list(labels):
                return natural
        except (ValueError, OverflowError, TypeError):
            pass
    array = np.empty(len(labels), object)
    for k, label in enumerate(labels):
        array[k] = label
    return array


def learn_labels(labels: Iterable[Hashable], dtype: Any = None) -> np.ndarray:
    """The distinct labels, sorted where they can be, else in the order they are first met."""
    distinct: list[Any] = list(dict.fromkeys(labels))
    try:
        distinct = sorted(distinct)
    except TypeError:
        pass
    return label_array(distinct, dtype)


def numbering(classes: np.ndarray) -> dict[Hashable, int]:
    """From label to its place in `classes`."""
    return {label: k for k, label in enumerate(classes.tolist())}
