"""Lists of strings as two arrays, for files that hold arrays: all bytes end to end, and where each string begins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def pack_strings(strings: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """UTF-8 bytes of all strings (uint8), and their offsets (strings + 1, int64)."""
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    return np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([0, *map(len, encoded)], dtype=np.int64)


def unpack_strings(text: np.ndarray | None, offsets: np.ndarray | None, what: str) -> list[str]:
    """The strings again. Nothing is taken on trust: what does not fit together is a ValueError about `what`."""
    if text is None or text.dtype != np.uint8 or text.ndim != 1:
        raise ValueError(f"{what} are missing or have a wrong shape")
    if offsets is None or offsets.dtype != np.int64 or offsets.ndim != 1 or not offsets.size:
        raise ValueError(f"the offsets of {what} are missing or have a wrong shape")
    if offsets[0] != 0 or offsets[-1] != text.size or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"the offsets of {what} are not in order")
    raw, edges = text.tobytes(), offsets.tolist()
    return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in zip(edges[:-1], edges[1:], strict=True)]
