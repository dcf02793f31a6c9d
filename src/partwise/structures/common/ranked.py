"""The k best so far: lists of scores, sorted downwards, and where each came from."""

from __future__ import annotations

from partwise.engine.compilation import helper


@helper
def insert(value, origin, values, origins):
    """Insert into a list sorted downwards, dropping its last; equal values keep the order they came in. O(k)."""
    j = len(values) - 1
    if value <= values[j]:
        return
    while j > 0 and values[j - 1] < value:
        values[j] = values[j - 1]
        origins[j] = origins[j - 1]
        j -= 1
    values[j] = value
    origins[j] = origin
