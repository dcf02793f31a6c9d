"""Files of tensors: one safetensors file with a JSON header of ours, versioned, with checksums, written atomically. No pickle.

Any safetensors reader sees the tensors. Our header is JSON text under the key ``partwise`` of the file's metadata. Models
(`partwise.tasks.common.model_file`) and checkpoints of solvers are such files.

Every byte counts: our header has a CRC-32 of each tensor, and the metadata have under ``sha256`` the digest of all that comes
before the tensors, computed with zeros in its own place. Files of earlier versions have no such digest. These sums find damage;
whoever alters a file on purpose can compute them anew, so that readers believe nothing else either.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from typing import Any

import numpy as np

from partwise.files.mapped_tensors import NotSafetensors, mapped_file
from partwise.files.version import __version__
from partwise.files.whole_file import whole_file

#: the first version of each format whose header has a digest; of other formats all have
SEALED = {"partwise-model": 4, "partwise-checkpoint": 2}
SEAL, NO_DIGEST = "sha256", "0" * 64


class ModelFileError(ValueError):
    """A model cannot be written to, or read from, a file; the message names the file and says why.

    Examples
    --------
    >>> import partwise
    >>> from pathlib import Path
    >>> _ = Path("no.model").write_text("something else")
    >>> try:
    ...     partwise.load("no.model")
    ... except partwise.ModelFileError as error:
    ...     print(type(error).__name__)
    ModelFileError
    """


def write_tensors(path: Any, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    """A safetensors file, written without a second copy of the tensors in memory (the library's own writer makes two)."""
    arrays = {key: np.ascontiguousarray(tensor) for key, tensor in tensors.items()}
    header = {**header, "crc32": {key: zlib.crc32(_bytes(array)) for key, array in arrays.items()}}
    table: dict[str, Any] = {"__metadata__": {"partwise": json.dumps(header, allow_nan=False), SEAL: NO_DIGEST}}
    end = 0
    for key, array in sorted(arrays.items(), key=lambda item: -item[1].itemsize):  # aligned, if the widest come first
        begin, end = end, end + array.nbytes
        table[key] = {"dtype": SAFETENSORS[array.dtype.str[1:]], "shape": list(array.shape), "data_offsets": [begin, end]}
    try:
        with whole_file(path) as file:
            file.write(sealed(table))
            for key in list(table)[1:]:
                file.write(_bytes(arrays[key]))
    except IsADirectoryError as error:
        raise ModelFileError(str(error)) from None


def sealed(table: dict[str, Any]) -> bytes:
    """What comes before the tensors: the table of them, in whose metadata the digest is filled in."""
    text = json.dumps(table).encode()
    text += b" " * (-len(text) % 8)
    text = len(text).to_bytes(8, "little") + text
    return _with_digest(text, NO_DIGEST, hashlib.sha256(text).hexdigest())


def _with_digest(head: bytes, old: str, new: str) -> bytes:
    return head.replace(f'"{SEAL}": "{old}"'.encode(), f'"{SEAL}": "{new}"'.encode(), 1)


def has_seal(path: str, head: bytes, metadata: dict[str, str]) -> bool:
    """Whether there is a digest of what comes before the tensors; one that does not match is an error."""
    found = metadata.get(SEAL)
    if found is None:
        return False
    if len(found) != len(NO_DIGEST) or hashlib.sha256(_with_digest(head, found, NO_DIGEST)).hexdigest() != found:
        raise ModelFileError(f"{path!r} is damaged or was altered: the digest of its header does not match.")
    return True


SAFETENSORS = {"f4": "F32", "f8": "F64", "i4": "I32", "i8": "I64", "u1": "U8", "b1": "BOOL", "u8": "U64", "u4": "U32", "i1": "I8"}
SAFETENSORS |= {"f2": "F16", "u2": "U16"}


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def read_tensors(path: str, kind: str, newest: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and tensors of a file of our format `kind`, mapped (`mapped_file`), after checking version and checksums."""
    try:
        head, metadata, tensors = mapped_file(path)
        whole = has_seal(path, head, metadata)
        header = json.loads(metadata.get("partwise", "null"))
    except ModelFileError:
        raise
    except NotSafetensors as error:
        raise ModelFileError(f"{path!r} is not a partwise model, or is truncated or damaged ({error}).") from None
    except OSError as error:
        raise ModelFileError(f"{path!r} cannot be read: {error}.") from None
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path!r} is damaged or was altered: its header is not JSON ({error}).") from None
    if not isinstance(header, dict) or header.get("format") != kind:
        raise ModelFileError(f"{path!r} is a safetensors file, but not a {kind.replace('-', ' ')}.")
    version = header.get("format_version", 1)
    if type(version) is not int or version < 1:
        raise ModelFileError(f"{path!r} is damaged or was altered: its format version is {version!r}.")
    if version > newest:
        raise ModelFileError(
            f"{path!r} was written by partwise {header.get('partwise_version')} in format version {version}; this is partwise "
            f"{__version__}, which reads versions up to {newest}. Upgrade with: pip install --upgrade partwise"
        )
    if version >= SEALED.get(kind, 1) and not whole:
        raise ModelFileError(f"{path!r} is damaged or was altered: there is no digest of its header.")
    sums = header.get("crc32")
    if not isinstance(sums, dict) or set(sums) != set(tensors):
        raise ModelFileError(f"{path!r} is damaged or was altered: its header does not match its tensors.")
    for key, tensor in tensors.items():
        if zlib.crc32(_bytes(np.ascontiguousarray(tensor))) != sums[key]:
            raise ModelFileError(f"{path!r} is damaged: the checksum of {key!r} does not match.")
    return header, tensors
