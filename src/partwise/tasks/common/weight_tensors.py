"""The weights of a model as tensors of its file, and back: dense, without their zeros, and with fewer digits.

====================  =================================================================================  ==============
form                  tensors                                                                            format version
====================  =================================================================================  ==============
dense                 ``weights``                                                                        1
a bit for each        ``weights.mask`` whether it is not zero, ``weights.values`` those that are not     2
lists                 ``weights.counts``, ``weights.labels``, ``weights.values`` of what is not zero     3
                      in each feature's row, ``weights.rest`` the rows behind those of features
====================  =================================================================================  ==============

The smallest is taken: bits where less than half of the weights are there, lists where less than one in sixteen is and the model
has rows of labels. Lists stay lists when they are read (`partwise.features.sparse_weights`).

With fewer digits, in any form, the floats are float16, or int8 with a scale for each `BLOCK` of neighbours (``NAME.scales``):
then w is about q * scale, off by half a scale at most. That is version 3 too; ``weights`` in the header has the type they are
read as.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from partwise.features.sparse_weights import LABEL, SparseWeights, check_lists, sparse_weights, starts_of

DENSE, BITS, LISTS = 1, 2, 3  #: format versions
WEIGHTS, MASK, VALUES = "weights", "weights.mask", "weights.values"
COUNTS, LABELS, REST = "weights.counts", "weights.labels", "weights.rest"
SCALES = ".scales"
FLOATS = (WEIGHTS, VALUES, REST)  #: that may have fewer digits
PRECISIONS = ("float16", "int8")
BLOCK = 64  #: neighbours that share a scale
Tensors = dict[str, np.ndarray]


def to_tensors(w: Any, rows: tuple[int, int] | None, precision: str | None = None) -> tuple[dict[str, Any], Tensors]:
    """Entries of the header, and the tensors.

    Parameters
    ----------
    w : array or SparseWeights
    rows : (features, labels), optional
        The shape of the first weights, if they are a matrix.
    precision : {"float16", "int8"}, optional
    """
    lists: Any = w if isinstance(w, SparseWeights) else None if rows is None else sparse_weights(w, *rows)
    header: dict[str, Any] = {"format_version": LISTS}
    about: dict[str, Any] = {"dtype": w.dtype.name}
    if lists is not None:
        counts = np.diff(lists.starts).astype(LABEL)
        tensors = {COUNTS: counts, LABELS: lists.labels, VALUES: lists.values, REST: lists.rest}
        about["labels"] = lists.width
    else:
        tensors = without_zeros(w)
        if sum(array.nbytes for array in tensors.values()) < 0.5 * w.nbytes:
            header |= {"format_version": BITS, "n_weights": int(w.size)}
        else:
            tensors, header = {WEIGHTS: w}, {"format_version": DENSE}
    if precision is not None:
        header["format_version"] = LISTS
        tensors = rounded(tensors, precision)
    return header | ({"weights": about} if header["format_version"] == LISTS else {}), tensors


def from_tensors(header: dict[str, Any], tensors: Tensors) -> tuple[np.ndarray | SparseWeights, Tensors]:
    """The weights, and the tensors that are not theirs. Nothing is taken on trust: what does not fit together is a ValueError."""
    about = header.get("weights", {})
    if not isinstance(about, dict):
        raise ValueError("what the header says of the weights is no table")
    if about:
        tensors = unrounded(tensors, about.get("dtype"))
    others = {key: array for key, array in tensors.items() if key not in (*FLOATS, MASK, COUNTS, LABELS)}
    mine = {key: array for key, array in tensors.items() if key not in others}
    if set(mine) == {COUNTS, LABELS, VALUES, REST}:
        w: Any = _lists(mine, about.get("labels"))
        finite = all_finite(w.values) and all_finite(w.rest)
    else:
        w = with_zeros(mine, header.get("n_weights")) if set(mine) == {MASK, VALUES} else mine.get(WEIGHTS)
        if w is None or len(mine) > 2 or w.ndim != 1 or w.dtype not in (np.float32, np.float64):
            raise ValueError("the weights are missing or not a vector of floats")
        finite = all_finite(w)
    if not finite:
        raise ValueError("the weights are not all finite")
    return w, others


def _lists(tensors: Tensors, width: Any) -> SparseWeights:
    counts = tensors[COUNTS]
    if type(width) is not int or counts.ndim != 1 or counts.dtype != LABEL:
        raise ValueError(f"sparse weights have rows of {width!r} labels, and lengths of lists of type {counts.dtype}")
    labels, values, rest = (read_only(tensors[key]) for key in (LABELS, VALUES, REST))
    w = SparseWeights(read_only(starts_of(counts)), labels, values, rest, width)
    check_lists(w)
    return w


def read_only(array: np.ndarray) -> np.ndarray:
    """However a file was read, mapped or not: compiled loops are made for one type."""
    found = array.view()
    found.flags.writeable = False
    return found


def all_finite(array: np.ndarray) -> bool:
    """Without memory: infinities and NaN show in one of the ends, or in both."""
    return math.isfinite(array.min(initial=0.0)) and math.isfinite(array.max(initial=0.0))


# -- a bit for each weight ---------------------------------------------------------------------------------------------


def without_zeros(weights: np.ndarray) -> Tensors:
    """The weights as a bit for each, whether it is not zero, and those that are not."""
    mask = weights != 0
    return {MASK: np.packbits(mask), VALUES: weights[mask]}


def with_zeros(tensors: Tensors, n: Any) -> np.ndarray:
    """The n weights that `without_zeros` made two tensors of."""
    mask, values = tensors[MASK], tensors[VALUES]
    if mask.ndim != 1 or mask.dtype != np.uint8 or values.ndim != 1 or values.dtype not in (np.float32, np.float64):
        raise ValueError("sparse weights are not a vector of bits and one of floats")
    if type(n) is not int or not 0 <= 8 * mask.size - n < 8:
        raise ValueError(f"there are {8 * mask.size} bits for {n!r} weights")
    bits = np.unpackbits(mask).view(np.bool_)
    if bits[n:].any() or np.count_nonzero(bits) != values.size:
        raise ValueError(f"there are {values.size} weights for {np.count_nonzero(bits)} bits")
    weights = np.zeros(n, values.dtype)
    weights[bits[:n]] = values
    return weights


# -- fewer digits ------------------------------------------------------------------------------------------------------


def rounded(tensors: Tensors, precision: str) -> Tensors:
    """The same with fewer digits; TypeError for numbers that have no place there."""
    found = {}
    for key, array in tensors.items():
        if key not in FLOATS:
            found[key] = array
        elif precision == "float16":
            if np.abs(array).max(initial=0.0) > np.finfo(np.float16).max:
                raise TypeError(f"The largest weight is {np.abs(array).max():.3g}, too large for float16. Take int8")
            found[key] = array.astype(np.float16)
        else:
            blocks = np.zeros((-(-array.size // BLOCK), BLOCK))
            blocks.reshape(-1)[: array.size] = array
            scales = (np.abs(blocks).max(axis=1) / 127).astype(np.float32)
            steps = np.where(scales > 0, scales, 1.0).astype(np.float64)
            found[key] = np.rint(blocks / steps[:, None]).clip(-127, 127).astype(np.int8).reshape(-1)[: array.size]
            found[key + SCALES] = scales
    return found


def unrounded(tensors: Tensors, name: Any) -> Tensors:
    """What was rounded, as floats of the type `name`."""
    if name not in ("float32", "float64"):
        raise ValueError(f"the weights are of type {str(name)[:40]!r}")
    dtype, found = np.dtype(name), {key: array for key, array in tensors.items() if not key.endswith(SCALES)}
    for key in FLOATS:
        array, scales = found.get(key), tensors.get(key + SCALES)
        if array is None:
            continue
        if array.ndim != 1 or array.dtype not in (dtype, np.float16, np.int8):
            raise ValueError(f"{key!r} is not a vector of {name}, or of fewer digits")
        if array.dtype != np.int8:
            found[key] = array.astype(dtype, copy=False)
            continue
        if scales is None or scales.shape != (-(-array.size // BLOCK),) or scales.dtype != np.float32:
            raise ValueError(f"the scales of {key!r} are missing or have a wrong shape")
        found[key] = array * np.repeat(scales.astype(dtype), BLOCK)[: array.size]
    return found
