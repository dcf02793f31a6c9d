"""A text model of CRF++ as the binary file that its tagger opens: what ``crf_learn -C`` makes of it.

The file: version, type, cost factor, number of weights, number of columns, size of the trie, labels and templates (with their
lengths, ended by zeros), a double-array trie from features to numbers, weights as float32.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

EMPTY = 0


def double_array(keys: dict[bytes, int]) -> bytes:
    """A trie: from the node at `base`, letter c leads to unit base + c + 1, whose check is `base`; a key ends at unit `base`."""
    bases, checks, starts = [1], [EMPTY], {1}

    def place(words: list[tuple[bytes, int]], depth: int) -> int:
        """Units of the children of a node; returns its base."""
        codes: dict[int, list[tuple[bytes, int]]] = {}
        for word, value in words:
            codes.setdefault(word[depth] + 1 if depth < len(word) else 0, []).append((word, value))
        base = 1
        while base in starts or any(base + code < len(checks) and checks[base + code] != EMPTY for code in codes):
            base += 1
        starts.add(base)
        size = base + 258  # so that no letter of a text leads beyond the end
        bases.extend([0] * (size - len(bases)))
        checks.extend([EMPTY] * (size - len(checks)))
        for code in codes:
            checks[base + code] = base
        for code, some in codes.items():
            bases[base + code] = place(some, depth + 1) if code else -some[0][1] - 1
        return base

    root = place(list(keys.items()), 0)
    bases[0] = root
    return np.array([bases, checks], np.int32).T.tobytes()


def binary_model(text: str) -> bytes:
    """The file for the text of a model."""
    head, labels, templates, features, weights = (block.split("\n") for block in text.strip().split("\n\n"))
    said = dict(line.split(": ") for line in head)
    trie = double_array({name.encode(): int(number) for number, name in (line.split(" ", 1) for line in features)})
    names = b"".join(one.encode() + b"\0" for one in labels)
    patterns = b"".join(one.encode() + b"\0" for one in templates)
    patterns += b"\0" * (-(len(names) + len(patterns)) % 4)
    begin = struct.pack(
        "<IidIII", int(said["version"]), 0, float(said["cost-factor"]), int(said["maxid"]), int(said["xsize"]), len(trie)
    )
    blocks = b"".join(struct.pack("<I", len(block)) + block for block in (names, patterns))
    return begin + blocks + trie + np.array(weights, np.float32).tobytes()


def write_binary_model(text: str, path: str | Path) -> None:
    """See `binary_model`."""
    Path(path).write_bytes(binary_model(text))
