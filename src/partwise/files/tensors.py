"""Files of tensors: one safetensors file with a JSON header of ours, versioned, with checksums, written atomically. No pickle.

Any safetensors reader sees the tensors. Our header is JSON text under the key ``partwise`` of the file's metadata. Models
(`partwise.tasks.common.model_file`) and checkpoints of solvers are such files.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np

from partwise.files.mapped_tensors import NotSafetensors, mapped_tensors
from partwise.files.version import __version__
from partwise.files.whole_file import whole_file


class ModelFileError(ValueError):
    """A model cannot be written to, or read from, a file; the message names the file and says why."""


def write_tensors(path: Any, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    """A safetensors file, written without a second copy of the tensors in memory (the library's own writer makes two)."""
    arrays = {key: np.ascontiguousarray(tensor) for key, tensor in tensors.items()}
    header = {**header, "crc32": {key: zlib.crc32(_bytes(array)) for key, array in arrays.items()}}
    table: dict[str, Any] = {"__metadata__": {"partwise": json.dumps(header, allow_nan=False)}}
    end = 0
    for key, array in sorted(arrays.items(), key=lambda item: -item[1].itemsize):  # aligned, if the widest come first
        begin, end = end, end + array.nbytes
        table[key] = {"dtype": SAFETENSORS[array.dtype.str[1:]], "shape": list(array.shape), "data_offsets": [begin, end]}
    text = json.dumps(table).encode()
    text += b" " * (-len(text) % 8)
    try:
        with whole_file(path) as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for key in list(table)[1:]:
                file.write(_bytes(arrays[key]))
    except IsADirectoryError as error:
        raise ModelFileError(str(error)) from None


SAFETENSORS = {"f4": "F32", "f8": "F64", "i4": "I32", "i8": "I64", "u1": "U8", "b1": "BOOL", "u8": "U64", "u4": "U32", "i1": "I8"}
SAFETENSORS |= {"f2": "F16", "u2": "U16"}


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def read_tensors(path: str, kind: str, newest: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and tensors of a file of our format `kind`, mapped (`mapped_tensors`), after checking version and checksums."""
    try:
        metadata, tensors = mapped_tensors(path)
        header = json.loads(metadata.get("partwise", "null"))
    except NotSafetensors as error:
        raise ModelFileError(f"{path!r} is not a partwise model, or is truncated or damaged ({error}).") from None
    except OSError as error:
        raise ModelFileError(f"{path!r} cannot be read: {error}.") from None
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path!r} is damaged or was altered: its header is not JSON ({error}).") from None
    if not isinstance(header, dict) or header.get("format") != kind:
        raise ModelFileError(f"{path!r} is a safetensors file, but not a {kind.replace('-', ' ')}.")
    version = header.get("format_version", newest)
    if not isinstance(version, int) or version < 1:
        raise ModelFileError(f"{path!r} is damaged or was altered: its format version is {version!r}.")
    if version > newest:
        raise ModelFileError(
            f"{path!r} was written by partwise {header.get('partwise_version')} in format version {version}; this is partwise "
            f"{__version__}, which reads versions up to {newest}. Upgrade with: pip install --upgrade partwise"
        )
    sums = header.get("crc32")
    if not isinstance(sums, dict) or set(sums) != set(tensors):
        raise ModelFileError(f"{path!r} is damaged or was altered: its header does not match its tensors.")
    for key, tensor in tensors.items():
        if zlib.crc32(_bytes(np.ascontiguousarray(tensor))) != sums[key]:
            raise ModelFileError(f"{path!r} is damaged: the checksum of {key!r} does not match.")
    return header, tensors
