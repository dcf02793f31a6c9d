"""Models that CRFsuite itself has written, read into a `SequenceLabeler`: the same labels, the same probabilities.

The format, as ``crf1d_model.c`` and ``cqdb.c`` of CRFsuite 0.12 write it; integers are of 32 bits, all little-endian:

=================  =====================================================================================================
header             "lCRF", size, "FOMC", version, features, labels, attributes, then where the five parts begin: features,
                   labels, attributes, and two lists of references, which say nothing that the features do not
features           "FEAT", size, number, then of each: kind (0: attribute and label, 1: label and next label), source,
                   destination, weight (float of 64 bits)
labels, attributes  "CQDB", size, flag, byte order (0x62445371), number, where the list of records begins; a record: its
                   number, bytes of the name with its final zero, the name
=================  =====================================================================================================

Every number that points somewhere is checked before it is followed. Names are UTF-8. Weights that are not in the file are zero.
"""

from __future__ import annotations

import os
import struct
from typing import Any

import numpy as np

from partwise import SequenceLabeler
from partwise.tasks.common.model_file import ModelFileError
from partwise.tasks.tagging.template_tagger import check_room
from partwise.text.given_encoders import AttributeEncoder

MAGIC = b"lCRF"
BYTE_ORDER = 0x62445371
RECORD = np.dtype([("kind", "<u4"), ("source", "<u4"), ("destination", "<u4"), ("weight", "<f8")])


def is_crfsuite_model(path: Any) -> bool:
    """Whether a file begins like one."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read_crfsuite_model(source: Any) -> SequenceLabeler:
    """A labeller with the weights of a model file of CRFsuite.

    Parameters
    ----------
    source : path or bytes
        The name of the file, or what is in it.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        name, content = "the model", bytes(source)
    else:
        name = os.fspath(source)
        with open(source, "rb") as file:
            content = file.read()
    try:
        return _labeler(content)
    except (struct.error, UnicodeDecodeError, ValueError) as error:
        raise ModelFileError(f"{name} is not a model of CRFsuite, or damaged: {error}.") from None


def _labeler(content: bytes) -> SequenceLabeler:
    magic, size, kind, _version = struct.unpack_from("<4sI4sI", content)
    if magic != MAGIC or kind != b"FOMC":
        raise ValueError(f"it begins with {magic!r} {kind!r}, not with b'lCRF' b'FOMC'")
    if size > len(content):
        raise ValueError(f"it has {len(content)} bytes of {size}")
    _n_features, n_labels, n_attributes, at_features, at_labels, at_attributes = struct.unpack_from("<6I", content, 16)
    labels = _names(content, at_labels, n_labels, "labels")
    attributes = _names(content, at_attributes, n_attributes, "attributes")
    features = _features(content, at_features)
    order = sorted(range(n_labels), key=lambda k: labels[k])
    place = np.argsort(order)  # classes of ours are sorted
    check_room(n_labels, n_attributes)
    weights = np.zeros((n_attributes + n_labels + 2, n_labels))  # attributes, transitions, first label, last label
    limits = (n_attributes, n_labels)
    for which in (0, 1):
        own = features[features["kind"] == which]
        if len(own) and (own["source"].max() >= limits[which] or own["destination"].max() >= n_labels):
            raise ValueError("a feature is of a label or an attribute that is not there")
        if not np.isfinite(own["weight"]).all():
            raise ValueError("a weight is not finite")
        rows = own["source"] if which == 0 else n_attributes + place[own["source"]]
        np.add.at(weights, (rows, place[own["destination"]]), own["weight"])
    labeler = SequenceLabeler(loss="crf", use_start=False, use_stop=False, dtype="float64")
    labeler.encoder_ = AttributeEncoder(1, np.float64)
    labeler.encoder_.vocabulary = {name: k for k, name in enumerate(attributes)}
    if len(labeler.encoder_.vocabulary) != n_attributes:
        raise ValueError("an attribute occurs twice")
    labeler.classes_ = np.array([labels[k] for k in order])
    labeler.weights_ = weights.ravel()
    labeler.label_column_, labeler.temperature_, labeler.solver_, labeler.C_ = None, 1.0, "lbfgs", 1.0
    return labeler


def _features(content: bytes, start: int) -> np.ndarray:
    chunk, _, number = struct.unpack_from("<4sII", content, start)
    if chunk != b"FEAT" or start + 12 + number * RECORD.itemsize > len(content):
        raise ValueError("its features are not where they should be")
    features = np.frombuffer(content, RECORD, number, start + 12)
    if len(features) and features["kind"].max() > 1:
        raise ValueError("a feature is of a kind that is not known")
    return features


def _names(content: bytes, start: int, number: int, what: str) -> list[str]:
    chunk, size, _, order, n_back, back = struct.unpack_from("<4s5I", content, start)
    if chunk != b"CQDB" or order != BYTE_ORDER or start + size > len(content):
        raise ValueError(f"its {what} are not where they should be")
    if n_back < number or back + 4 * n_back > size:
        raise ValueError(f"the list of its {what} is cut off")
    found = []
    for k, offset in enumerate(struct.unpack_from(f"<{number}I", content, start + back)):
        if not 0 < offset <= size - 8:
            raise ValueError(f"number {k} of its {what} is missing")
        own, length = struct.unpack_from("<II", content, start + offset)
        if own != k or not 0 < length <= size - offset - 8:
            raise ValueError(f"number {k} of its {what} is damaged")
        first = start + offset + 8
        found.append(content[first : first + length - 1].decode())
    return found
