"""Some rows of a set of feature rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.features.arc_rows import ArcRows
from partwise.features.rows import Binary, Dense, Sparse


def take_rows(rows: Any, which: np.ndarray) -> Any:
    """The rows numbered `which`, in that order, of the same kind. O(their non-zeros)."""
    if isinstance(rows, ArcRows):  # the cells of all words stay: arcs only point at them
        return rows._replace(head=np.ascontiguousarray(rows.head[which]), word=np.ascontiguousarray(rows.word[which]))
    if isinstance(rows, Dense):
        return Dense(rows.matrix[which], rows.n_features)
    counts = np.diff(rows.ptr)[which]
    ptr = np.zeros(len(which) + 1, np.int64)
    np.cumsum(counts, out=ptr[1:])
    # entry k of the result is as far into its row as k is from the row's new start
    entries = np.arange(ptr[-1]) + np.repeat(rows.ptr[:-1][which] - ptr[:-1], counts)
    if isinstance(rows, Binary):
        return Binary(ptr, rows.index[entries], rows.n_features)
    return Sparse(ptr, rows.index[entries], rows.value[entries], rows.n_features)
