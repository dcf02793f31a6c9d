"""Features of new text in a vocabulary that is finished: most of what tagging does besides the oracle.

Most templates need no hash table for that. If the values that a template can find are few enough (one value, or several parts of
speech), all their combinations have a place in a table, and a feature's number stands there::

    number(template, values v_1 .. v_n) = table[base(template) + sum_a stride_a v_a]

Values are numbered anew for it, row by row, as far as features have them. The other templates (pairs of words) ask the hash table
of `partwise.text.vocabulary`, a block of tokens at a time. Time: O(tokens * templates); memory: the table, 4 * MOST bytes at
most.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise.engine.compilation import compiled_loop
from partwise.engine.prefetch import request
from partwise.text.vocabulary import EMPTY, FeatureVocabulary, Program, find, is_among, read_key

BLOCK = 32  # tokens that are looked up together
OUTSIDE = -(1 << 60)  # a place so far off that no sum of codes brings it back
LARGEST, MOST = 1 << 20, 1 << 23  # entries of the table: for one template, and in all; larger ones would be slower than hashing


class Lookup(NamedTuple):
    """The vocabulary, to be asked."""

    table: np.ndarray  #: int32: number of the feature, -1 if there is none
    base: np.ndarray  #: (templates,) int64: where a template's part of the table begins, -1 if it has none
    stride: np.ndarray  #: (atoms,) int64
    small: (
        np.ndarray
    )  #: (rows, values + 1) int32: the number of a value in a row, -1 for none; the last is for values that are -1
    keys: np.ndarray
    slots: np.ndarray


def make_lookup(vocabulary: FeatureVocabulary, program: Program, n_rows: int, n_values: int) -> Lookup:
    """O(features + rows * values + table)."""
    vocabulary.wake(program.arity)
    keys = vocabulary.keys[: len(vocabulary)]
    first_template = {int(group): t for t, group in reversed(list(enumerate(program.group.tolist())))}
    order = np.argsort(keys[:, 0], kind="stable")
    edges = np.searchsorted(keys[order, 0], np.arange(len(program.arity) + 1))
    features = [order[a:b] for a, b in zip(edges[:-1], edges[1:], strict=True)]  # of each group

    small = np.full((n_rows, n_values + 1), -1, np.int32)
    for t, group in enumerate(program.group.tolist()):
        for k, a in enumerate(range(program.ptr[t], program.ptr[t + 1])):
            small[program.row[a], keys[features[group], 1 + k]] = 0
    for row in small:
        used = np.flatnonzero(row[:-1] == 0)
        row[used] = np.arange(len(used), dtype=np.int32)
    sizes = small.max(axis=1, initial=-1).astype(np.int64) + 1

    base, stride = np.full(len(program.group), -1, np.int64), np.zeros(len(program.row), np.int64)
    total, tables = 0, []
    shared = len(first_template) < len(program.group)
    for t, group in enumerate(program.group.tolist()):
        atoms = np.arange(program.ptr[t], program.ptr[t + 1])
        own = sizes[program.row[atoms]]
        n = int(np.prod(own.astype(float)))
        if shared or not len(atoms) or n > LARGEST or total + n > MOST:
            continue  # templates that share features (of CRF++) look at different rows: leave those to the hash table
        base[t], stride[atoms] = total, np.append(np.cumprod(own[::-1])[::-1][1:], 1)
        part = np.full(n, -1, np.int32)
        values = keys[features[group], 1 : 1 + len(atoms)]
        part[(small[program.row[atoms], values].astype(np.int64) * stride[atoms]).sum(axis=1)] = features[group]
        tables.append(part)
        total += n
    table = np.concatenate(tables) if tables else np.zeros(0, np.int32)
    return Lookup(table, base, stride, small, vocabulary.keys, vocabulary.slots)


def look_up(
    lookup: Lookup, values: np.ndarray, starts: np.ndarray, program: Program, boundary: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and features of every token's row; features that are not there are left out. Else as `FeatureVocabulary.number`."""
    n_tokens, n_templates = values.shape[1], len(program.group)
    ptr = np.zeros(n_tokens + 1, np.int64)
    index = np.empty(n_tokens * n_templates, np.int32)  # the most there can be; what is not touched takes no memory
    sought, hashes = np.empty((BLOCK, lookup.keys.shape[1]), np.int32), np.empty(BLOCK, np.uint64)
    found, places = np.empty((n_templates, BLOCK), np.int32), np.empty(BLOCK, np.int64)
    own = np.empty_like(values)
    for row, numbers, out in zip(values, lookup.small, own, strict=True):
        np.take(numbers, row, out=out, mode="wrap")  # -1 finds the last
    with np.errstate(over="ignore"):  # hashes wrap around
        n = look_up_rows(lookup, values, own, starts, program, boundary, ptr, index, sought, hashes, found, places)
    return ptr, index[:n]


@compiled_loop
def look_up_rows(lookup, values, own, starts, program, boundary, ptr, index, sought, hashes, found, places):
    """Write the features of all tokens; returns how many there are.

    found : scratch memory, (templates, BLOCK): numbers of the features of a block of tokens, template by template: that way the
        inner loops run over neighbouring tokens.
    places : scratch memory, (BLOCK,)

    Arrays are taken out of their tuples once: in the loop that would count references, four times as long as the work.
    """
    table, base, stride, small, keys, slots = lookup.table, lookup.base, lookup.stride, lookup.small, lookup.keys, lookup.slots
    row, offset, padded, atom = program.row, program.offset, program.padded, program.ptr
    before, after, repeats = boundary.before, boundary.after, program.repeats
    n_templates = program.group.size
    n = 0
    for s in range(starts.size - 1):
        first, last = starts[s], starts[s + 1]
        t = first
        while t < last:
            size = min(BLOCK, last - t)
            for template in range(n_templates):
                if base[template] >= 0:
                    for k in range(size):
                        places[k] = base[template]
                    for a in range(atom[template], atom[template + 1]):
                        codes, step, shift = own[row[a]], stride[a], offset[a]
                        low = min(max(first - t - shift, 0), size)  # tokens before it look in front of the sentence
                        high = max(min(last - t - shift, size), low)  # from it on, behind the sentence
                        for k in range(low, high):
                            code = codes[t + k + shift]
                            places[k] = places[k] + code * step if code >= 0 else OUTSIDE
                        for k in range(size):
                            if k < low or k >= high:
                                code = np.int32(-1)
                                if padded[template] != 0:
                                    p = t + k + shift
                                    code = small[row[a], before[first - p - 1] if p < first else after[p - last]]
                                places[k] = places[k] + code * step if code >= 0 else OUTSIDE
                    for k in range(size):
                        found[template, k] = table[places[k]] if places[k] >= 0 else -1
                else:
                    for k in range(size):
                        hashes[k] = read_key(values, program, boundary, template, t + k, first, last, sought, k)
                        if sought[k, 0] >= 0:
                            request(slots, np.int64(hashes[k] & np.uint64(slots.size - 1)))
                    for k in range(size):
                        found[template, k] = -1
                        if sought[k, 0] >= 0:
                            slot = find(keys, slots, sought, k, 1 + atom[template + 1] - atom[template], hashes[k])
                            if slots[slot] != EMPTY:
                                found[template, k] = slots[slot] & 0xFFFFFFFF
            for k in range(size):
                begin = n
                for template in range(n_templates):
                    number = found[template, k]
                    if number >= 0 and not (repeats and is_among(index, begin, n, number)):
                        index[n] = number
                        n += 1
                ptr[t + k + 1] = n
            t += size
    return n
