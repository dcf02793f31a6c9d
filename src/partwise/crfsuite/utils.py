"""What sklearn-crfsuite keeps in its module of this name."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any


def flatten(y: Iterable[Iterable[Any]]) -> list[Any]:
    """The labels of all sequences, end to end.

    Examples
    --------
    >>> flatten([["a", "b"], ["c"]])
    ['a', 'b', 'c']
    """
    return list(chain.from_iterable(y))
