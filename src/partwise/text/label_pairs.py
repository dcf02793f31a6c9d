"""Which pairs of labels the features of transitions have weights for (see `partwise.structures.chain.pairs`)."""

from __future__ import annotations

from typing import Any

import numpy as np


def checked_pairs(ptr: Any, codes: Any, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Which label pairs features have weights for, as `to_state` wrote it; their labels are for the model to check."""
    if ptr is None or ptr.dtype != np.int64 or ptr.shape != (n_features + 1,) or codes is None or codes.dtype != np.int32:
        raise ValueError("the label pairs of the features are missing or have a wrong shape")
    if codes.ndim != 1 or ptr[0] != 0 or ptr[-1] != codes.size or (np.diff(ptr) < 0).any() or codes.min(initial=0) < 0:
        raise ValueError("the label pairs of the features do not fit together")
    return np.array(ptr), np.array(codes)
