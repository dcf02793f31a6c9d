"""Changes to bytes, to JSON and to tensors, drawn by a random generator."""

from __future__ import annotations

import copy
import json
import random
import struct
from typing import Any

import numpy as np

from partwise.files.tensors import NO_DIGEST, SEAL, sealed, write_tensors

NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    255,
    256,
    2**15,
    2**31 - 1,
    -(2**31),
    2**31,
    2**53,
    2**63 - 1,
    -(2**63),
    10**18,
    0.5,
    -0.0,
    1e308,
    1e-308,
)
VALUES: tuple[Any, ...] = (
    *NUMBERS, None, True, False, "", "x", "hinge", "crf", "\x00", "é" * 50, "A" * 5000, [], {}, [[]], [1, 2], {"a": 1},
    {"float": "nan"}, {"float": "inf"}, {"tuple": [1, "a"]}, {"dict": [["a", 1]]}, {"array": ["<f8", [1.0, 2.0]]},
    {"array": ["<U1", ["A", "B"]]}, {"array": ["|O", [None, "x"]]}, {"numpy": ["<i8", 5]}, {"solver": ["sdm", {"dict": []}]},
    {"set": [1, 2]}, {"array": ["<i8", [[0, 1], [1, 0]]]}, 10**30, 10**400, -(10**400),
)  # fmt: skip
WORDS = (
    b"\t", b" ", b"\n", b"\n\n", b"\r\n", b"\r", b"\x00", b"\xff", b"\xef\xbb\xbf", b"#", b":", b"(", b")", b"_", b"-", b">",
    b"0", b"1", b"-1", b"99999999999999999999", b"1e308", b"nan", b"inf", b"2147483648", b"qid:", b"1:", b"O", b"B-", b"I-NP",
    b"\\", b'"', b"'", b",", b"{", b"}", b"[", b"]", b"null", b"\xe2\x80\xa8", b"\xf0\x9f\x98\x80",
    b"9" * 400, b"(" * 300, b"[" * 3000, b"a" * 3000, b"|", b".",
)  # fmt: skip


def of_bytes(rng: random.Random, data: bytes) -> bytes:
    """One to four changes of a text or any other bytes."""
    raw = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(raw) + 1)
        kind = rng.randrange(8)
        if kind == 0 and raw:
            raw[at % len(raw)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            raw[at:at] = rng.choice(WORDS)
        elif kind == 2:
            del raw[at : at + rng.choice((1, 1, 2, 5, 20))]
        elif kind == 3:
            raw[at : at + rng.choice((1, 2, 5))] = rng.choice(WORDS)
        elif kind == 4:
            del raw[at:]
        elif kind == 5:  # lines: one twice, or one gone
            lines = bytes(raw).split(b"\n")
            k = rng.randrange(len(lines))
            lines[k : k + 1] = [lines[k]] * rng.choice((0, 2, 3))
            raw = bytearray(b"\n".join(lines))
        elif kind == 6:  # lines that change places
            lines = bytes(raw).split(b"\n")
            rng.shuffle(lines)
            raw = bytearray(b"\n".join(lines))
        else:
            end = min(len(raw), at + rng.choice((1, 4, 30)))
            raw[at:at] = raw[at:end] * rng.choice((1, 3, 50))
    return bytes(raw)


def of_text(rng: random.Random, data: bytes) -> bytes:
    """Changes of a text; half of the time, where a line of it is JSON, a change of what it says."""
    lines = data.split(b"\n")
    k = rng.randrange(len(lines))
    if lines[k][:1] in (b"{", b"[") and rng.random() < 0.5:
        try:
            value = json.loads(lines[k])
            for _ in range(rng.choice((1, 1, 2))):
                value = of_json(rng, value)
            lines[k] = json.dumps(value).encode()
        except (ValueError, RecursionError):
            return of_bytes(rng, data)
        return b"\n".join(lines)
    return of_bytes(rng, data)


def places(value: Any, at: tuple = ()) -> list[tuple]:
    """The ways to all that is in JSON."""
    found = [at] if at else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += places(item, (*at, key))
    return found


def of_json(rng: random.Random, value: Any) -> Any:
    """One change somewhere in JSON."""
    value = copy.deepcopy(value)
    ways = places(value)
    if not ways:
        return rng.choice(VALUES)
    way = rng.choice(ways)
    holder = value
    for key in way[:-1]:
        holder = holder[key]
    old, kind = holder[way[-1]], rng.randrange(6)
    if kind == 0:
        del holder[way[-1]]
    elif kind == 1 and isinstance(old, int | float) and not isinstance(old, bool):
        holder[way[-1]] = rng.choice((old + 1, old - 1, -old, old * 2, float(old) if abs(old) < 1e300 else 0.5, old * 1000))
    elif kind == 1 and isinstance(old, str):
        holder[way[-1]] = of_bytes(rng, old.encode()).decode("utf-8", "replace")
    elif kind == 2:
        other = value
        for key in rng.choice(ways):
            other = other[key]
        holder[way[-1]] = copy.deepcopy(other)
    elif kind == 3 and isinstance(holder, dict):
        holder[rng.choice(("surprise", "", "__class__", "k", "n_features"))] = rng.choice(VALUES)
    else:
        holder[way[-1]] = copy.deepcopy(rng.choice(VALUES))
    return value


def of_tensors(rng: random.Random, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """One change of one tensor: values, shape, type, or whether it is there."""
    tensors = dict(tensors)
    name = rng.choice(list(tensors)) if tensors else "weights"
    array = np.array(tensors.get(name, np.zeros(3)))
    kind = rng.randrange(8)
    if kind == 0:
        tensors.pop(name, None)
        return tensors
    if kind == 1:
        array = array.reshape(-1)[: rng.choice((0, 1, max(array.size - 1, 0)))]
    elif kind == 2:
        array = np.concatenate([array.reshape(-1), array.reshape(-1)[: rng.choice((1, 7))]])
    elif kind == 3:
        with np.errstate(all="ignore"):
            array = array.astype(rng.choice(("f4", "f8", "i4", "i8", "u1", "i1", "u8", "f2", "u2", "b1")))
    elif kind == 4:
        array = array[None] if rng.random() < 0.5 else array.reshape(-1, 1)
    elif kind == 5:
        other = rng.choice(list(tensors) or ["weights"])
        array = np.array(tensors.get(other, array))
    elif array.size:
        flat = array.reshape(-1)
        for _ in range(rng.choice((1, 1, 3, 20))):
            wrong = rng.choice((*NUMBERS, array.size, array.size - 1, array.size + 1, np.nan, np.inf))
            with np.errstate(all="ignore"):
                if array.dtype.kind == "f":
                    flat[rng.randrange(flat.size)] = wrong
                elif array.dtype.kind == "b":
                    flat[rng.randrange(flat.size)] ^= True
                else:
                    flat[rng.randrange(flat.size)] = (
                        np.array([0 if wrong != wrong else max(min(wrong, 2**63 - 1), -(2**63))])
                        .astype(np.int64)
                        .astype(array.dtype)[0]
                    )
    tensors[name] = array
    return tensors


def parts_of(raw: bytes) -> tuple[dict[str, Any], bytes]:
    """The table of a safetensors file, and its tensors."""
    (n,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8 : 8 + n]), raw[8 + n :]


def of_table(rng: random.Random, raw: bytes) -> bytes:
    """A change of the table of a safetensors file: offsets, shapes, types; with the right digest."""
    table, body = parts_of(raw)
    inner = table.pop("__metadata__")
    changed = of_json(rng, table)
    table = changed if isinstance(changed, dict) else {}
    return sealed({"__metadata__": {**inner, SEAL: NO_DIGEST}, **table}) + body


def of_file(rng: random.Random, raw: bytes, header: dict[str, Any], tensors: dict[str, np.ndarray], path: Any) -> None:
    """Write a changed file of ours to `path`: any byte of it, or its header, tensors or table, with all sums right."""
    kind = rng.randrange(10)
    if kind == 0:
        path.write_bytes(of_bytes(rng, raw))
    elif kind == 1:
        path.write_bytes(of_table(rng, raw))
    else:
        for _ in range(rng.choice((1, 1, 2, 3))):
            if kind < 6:
                changed = of_json(rng, header)
                header = changed if isinstance(changed, dict) else header
            else:
                tensors = of_tensors(rng, tensors)
            kind = rng.randrange(2, 10)
        write_tensors(path, header, tensors)
