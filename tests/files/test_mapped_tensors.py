"""Safetensors files are read as their library reads them, and refused where it refuses them."""

import json
import os
import struct

import numpy as np
import pytest
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from partwise.files.mapped_tensors import KINDS, LONGEST_HEADER, NotSafetensors, mapped_tensors
from partwise.files.tensors import SAFETENSORS

RNG = np.random.default_rng(0)
TENSORS = {kind: RNG.integers(0, 2, (3, k % 3)).astype(kind) for k, kind in enumerate(KINDS.values())}
TENSORS |= {"number": np.full((), 3.5, np.float32), "nothing": np.zeros((0, 4), np.int64)}


def test_tensors_and_metadata_are_those_of_the_library(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(save(TENSORS, {"key": "é\U0001f600"}))
    metadata, found = mapped_tensors(str(path))
    with safe_open(path, framework="numpy") as file:
        assert metadata == file.metadata() and set(found) == set(file.keys()) == set(TENSORS)
        for name, tensor in found.items():
            expected = file.get_tensor(name)
            np.testing.assert_array_equal(tensor, expected)
            assert tensor.dtype == expected.dtype and tensor.shape == expected.shape
            assert memoryview(tensor).format == memoryview(np.zeros(1, expected.dtype)).format  # what compiled code is told


def test_what_is_written_can_be_read():
    assert {name: kind for kind, name in SAFETENSORS.items()}.items() <= {
        n: np.dtype(k).str[1:] for n, k in KINDS.items()
    }.items()


def test_tensors_can_be_written_to_and_the_file_stays_as_it_is(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(save({"a": np.arange(5.0)}))
    before = path.read_bytes()
    found = mapped_tensors(str(path))[1]["a"]
    found += 1
    assert found.tolist() == [1, 2, 3, 4, 5] and path.read_bytes() == before
    os.replace(path, tmp_path / "other")  # another takes its name
    path.write_bytes(b"something else")
    assert found.tolist() == [1, 2, 3, 4, 5]


def test_tensors_are_aligned_wherever_they_lie(tmp_path):
    path = tmp_path / "file"
    write(path, {"a": about([1], [0, 1], "U8"), "b": about([2], [1, 17], "F64")}, b"\x07" + np.array([1.5, 2.5]).tobytes())
    found = mapped_tensors(str(path))[1]
    assert found["b"].flags.aligned and found["b"].flags.writeable and found["b"].tolist() == [1.5, 2.5]


def about(shape, offsets, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def write(path, header, body, n=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if n is None else n) + text + body)


GOOD = about([2, 3], [0, 24])
BODY = bytes(24)


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ([], BODY),
        ("tensors", BODY),
        (b"", b""),
        (b"{", BODY),
        (b"\xff" * 40, BODY),
        (b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}", b""),
        (b'{"a": {"dtype": "F32", "shape": [NaN], "data_offsets": [0, 0]}}', b""),
        ({"a": None}, b""),
        ({"a": [1]}, b""),
        ({"a": {"dtype": "F32", "shape": [0]}}, b""),
        ({"a": about("23", [0, 24])}, BODY),
        ({"a": about([2, 3.0], [0, 24])}, BODY),
        ({"a": about([-2, -3], [0, 24])}, BODY),
        ({"a": about([True, 6], [0, 24])}, BODY),
        ({"a": about([2, 3], [0])}, BODY),
        ({"a": about([2, 3], [0, 24, 24])}, BODY),
        ({"a": about([2, 3], [24, 0])}, BODY),
        ({"a": about([2, 3], [0, 28])}, BODY),
        ({"a": about([2**40], [0, 24])}, BODY),
        ({"a": about([2**62, 4], [0, 0])}, b""),
        ({"a": about([2, 3], [-24, 0])}, BODY),
        ({"a": about([2, 3], [4, 28])}, BODY + b"more"),
        ({"a": about([2, 3], [0, 24], "F3")}, BODY),
        ({"a": about([2, 3], [0, 24], None)}, BODY),
        ({"a": about([2, 3], [0, 24], ["F32"])}, BODY),
        ({"a": GOOD}, BODY[:-1]),
        ({"a": GOOD}, BODY + b"m"),
        ({"a": GOOD, "b": GOOD}, BODY),
        ({"a": GOOD, "b": about([1], [20, 24])}, BODY),
        ({"a": GOOD, "b": about([1], [28, 32])}, BODY + bytes(8)),
        ({"a": GOOD, "__metadata__": {"key": 1}}, BODY),
        ({"a": GOOD, "__metadata__": ["key"]}, BODY),
    ],
)
def test_refused_like_by_the_library(tmp_path, header, body):
    path = tmp_path / "file"
    write(path, header, body)
    with pytest.raises(NotSafetensors):
        mapped_tensors(str(path))
    with pytest.raises((SafetensorError, TypeError)), safe_open(path, framework="numpy") as file:
        [file.get_tensor(key) for key in file.keys()]  # noqa: SIM118


def test_stricter_than_the_library(tmp_path):
    """What has two meanings, and what nobody has written."""
    path = tmp_path / "file"
    good = json.dumps(GOOD)
    for header in (f'{{"a": {good}, "a": {good}}}', f'{{"a": {good[:-1]}, "more": 1}}}}'):
        write(path, header.encode(), BODY)
        with pytest.raises(NotSafetensors):
            mapped_tensors(str(path))


def test_lengths_of_headers(tmp_path):
    path = tmp_path / "file"
    for n in (3, 10**6, LONGEST_HEADER + 1, 2**63, 2**64 - 1):
        write(path, {"a": GOOD}, BODY, n)
        with pytest.raises(NotSafetensors):
            mapped_tensors(str(path))
    for raw in (b"", b"1234567", b"\0" * 8):
        path.write_bytes(raw)
        with pytest.raises(NotSafetensors):
            mapped_tensors(str(path))
    with open(path, "wb") as file:  # a header that is as long as it says, and too long
        file.write(struct.pack("<Q", LONGEST_HEADER + 1))
        file.truncate(LONGEST_HEADER + 100)
    with pytest.raises(NotSafetensors, match="header"):
        mapped_tensors(str(path))


def test_a_flipped_bit_of_the_header_is_refused_or_harmless(tmp_path):
    """Whatever comes out has the bytes that are there."""
    path = tmp_path / "file"
    raw = save({"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.arange(3)}, {"key": "value"})
    (n,) = struct.unpack("<Q", raw[:8])
    for k in range(8 + n):
        for bit in (1, 4, 16, 64):
            path.write_bytes(raw[:k] + bytes([raw[k] ^ bit]) + raw[k + 1 :])
            try:
                found = mapped_tensors(str(path))[1]
            except NotSafetensors:
                continue
            assert sum(tensor.nbytes for tensor in found.values()) == len(raw) - 8 - n
