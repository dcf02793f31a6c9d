"""Safetensors files, read by mapping them into memory: what is not looked at is not read, and nothing is copied.

The format: eight bytes, the length n of the header (little endian); n bytes of JSON, ``{"name": {"dtype": "F32", "shape": [2, 3],
"data_offsets": [0, 24]}, ..., "__metadata__": {"key": "text"}}``; the tensors, one after the other, in the order of their
offsets, without gaps, to the end of the file. A file that is not exactly so is refused: nothing in it is believed.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

#: types of the format that numpy has; what cannot be read here is another matter than what we write
KINDS = {"F64": "f8", "F32": "f4", "F16": "f2", "BOOL": "?"}
KINDS |= {f"{sign}{8 * n}": f"{sign.lower()}{n}" for sign in "IU" for n in (1, 2, 4, 8)}
LONGEST_HEADER = 100_000_000  # bytes, as in the library of the format: JSON of that size takes a GB to read


class NotSafetensors(ValueError):
    """A file is not as the format has it; the message says where."""


def mapped_tensors(path: str) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Metadata and tensors of a file (`mapped_file`)."""
    return mapped_file(path)[1:]


def mapped_file(path: str) -> tuple[bytes, dict[str, str], dict[str, np.ndarray]]:
    """All bytes before the tensors, the metadata in them, and the tensors; these may be written to, which leaves the file alone.

    Notes
    -----
    Whoever replaces the file, as `whole_file` does, changes nothing for those who have it mapped; whoever writes *into* it
    changes their tensors. Where a file that is mapped cannot be replaced (Windows), it is read.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        first = file.read(8)
        n = int.from_bytes(first, "little")
        if size < 8 or n > min(size - 8, LONGEST_HEADER):
            raise NotSafetensors("it is shorter than its header")
        text = file.read(n)
        header = read_header(text)
        places = {name: place_of(name, about) for name, about in header.items() if name != "__metadata__"}
        check_places(places, size - 8 - n)
        if os.name == "nt":
            file.seek(0)
            memory: Any = bytearray(file.read())
        else:
            memory = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
    tensors = {}
    for name, (begin, end, kind, shape) in places.items():
        found = np.frombuffer(memory, kind, (end - begin) // kind.itemsize, 8 + n + begin).reshape(shape)
        tensors[name] = found if found.flags.aligned else found.copy()  # compiled loops are for aligned arrays
    return first + text, header.get("__metadata__", {}), tensors


def read_header(text: bytes) -> dict[str, Any]:
    """The header, an object whose metadata are strings."""
    try:
        header = json.loads(text.decode(), object_pairs_hook=distinct, parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise NotSafetensors(f"its header is no JSON: {error}") from None
    if not isinstance(header, dict):
        raise NotSafetensors("its header is no object")
    metadata = header.get("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise NotSafetensors("its metadata are no strings")
    return header


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys occur once."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def refuse(constant: str) -> Any:
    """NaN and infinities are no JSON."""
    raise ValueError(f"{constant} is no number")


def place_of(name: str, about: Any) -> tuple[int, int, np.dtype, tuple[int, ...]]:
    """Where a tensor begins and ends, its type and its shape."""
    if not isinstance(about, dict) or about.keys() != {"dtype", "shape", "data_offsets"}:
        raise NotSafetensors(f"of the tensor {name!r} other things are said than type, shape and offsets")
    shape, offsets = about["shape"], about["data_offsets"]
    numbers = all(isinstance(some, list) and all(type(k) is int and k >= 0 for k in some) for some in (shape, offsets))
    if not numbers or len(offsets) != 2 or len(shape) > 8:
        raise NotSafetensors(f"the shape or the offsets of the tensor {name!r} are no lists of numbers")
    if not isinstance(about["dtype"], str) or about["dtype"] not in KINDS:
        raise NotSafetensors(f"the tensor {name!r} is of type {str(about['dtype'])[:20]!r}")
    kind = np.dtype("<" + KINDS[about["dtype"]])  # `newbyteorder` would make a type that buffers say "<f" of, not "f"
    begin, end = offsets
    if end - begin != math.prod(shape) * kind.itemsize:
        raise NotSafetensors(f"the tensor {name!r} has {end - begin} bytes, which is not what its shape takes")
    return begin, end, kind, tuple(shape)


def check_places(places: Mapping[str, tuple[int, int, np.dtype, tuple[int, ...]]], size: int) -> None:
    """Tensors follow each other without gaps, from the first byte to the last."""
    reached = 0
    for name, (begin, end, _, _) in sorted(places.items(), key=lambda item: item[1][:2]):
        if begin != reached:
            raise NotSafetensors(f"the tensor {name!r} does not begin where the one before it ends")
        reached = end
    if reached != size:
        raise NotSafetensors(f"there are {size} bytes of tensors where {reached} should be")
