"""The compiled scan over the bytes of a column file; `partwise.text.columns` is its face.

One pass: cut lines into cells, hash each cell while its bytes are at hand, find it in an open-addressing table whose entries
point at the cell's first place in the buffer. Nothing is allocated: when the table is full the scan says so, and goes on where it
stopped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise.engine.compilation import compiled_loop, helper
from partwise.text.vocabulary import EMPTY, spread, tagged


class Layout(NamedTuple):
    """How lines are cut into cells."""

    separator: np.ndarray  #: uint8; empty for any run of blanks and tabs
    comment: np.ndarray  #: uint8; lines that begin so are left out, if it is not empty
    marks: np.ndarray  #: uint8; lines whose first cell is one of these are left out
    mark_edges: np.ndarray  #: int64
    target: np.ndarray  #: (columns of the file,) int64: which column of the result, or -1


DONE, FULL, RAGGED = 0, 1, 2
OFFSET_BASIS, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)  # FNV-1a


@helper
def is_blank(byte):
    return byte == 32 or byte == 9


@helper
def is_at(pattern, data, start, stop):
    """Whether data[start:stop] begins with `pattern`."""
    if start + pattern.size > stop:
        return False
    for k in range(pattern.size):
        if data[start + k] != pattern[k]:
            return False
    return True


@helper
def is_same(data, a, b, length):
    for k in range(length):
        if data[a + k] != data[b + k]:
            return False
    return True


@helper
def is_mark(layout, data, start, stop):
    """Whether data[start:stop], a cell, is one of the marks."""
    for m in range(layout.mark_edges.size - 1):
        begin, k = layout.mark_edges[m], start
        if layout.mark_edges[m + 1] - begin == stop - start:
            while k < stop and data[k] == layout.marks[begin + k - start]:
                k += 1
            if k == stop:
                return True
    return False


@helper
def read_cell(separator, data, start, stop):
    """Where the cell that begins at `start` ends, and its hash."""
    h = OFFSET_BASIS
    if separator.size == 0:
        for p in range(start, stop):
            if is_blank(data[p]):
                return p, h
            h = (h ^ np.uint64(data[p])) * PRIME
    else:
        for p in range(start, stop):
            if data[p] == separator[0] and is_at(separator, data, p, stop):
                return p, h
            h = (h ^ np.uint64(data[p])) * PRIME
    return stop, h


@helper
def find_cell(data, start, stop, column, h, found, slots, n):
    """Number of the entry of `found` that holds this cell of this column; n, now put in the table, if there is none."""
    h = spread(h ^ np.uint64(column))
    slot = np.int64(h & np.uint64(slots.size - 1))
    while True:
        held = slots[slot]
        if held == EMPTY:
            slots[slot] = tagged(h, n)
            return n
        e = held & 0xFFFFFFFF
        if held == tagged(h, e) and found[e, 2] == column and found[e, 1] - found[e, 0] == stop - start:
            if is_same(data, found[e, 0], start, stop - start):
                return e
        slot = (slot + 1) & (slots.size - 1)


@compiled_loop
def code_cells(data, layout, codes, starts, ends, found, slots, counts, state):
    """Number the cells of all lines from where `state` says; returns whether that was all.

    state : position, line, tokens, sentences, distinct cells, columns of a ragged line
    found : (room, 4) first place, its end, column and code of each distinct cell
    """
    position, line, t, s, n = state[0], state[1], state[2], state[3], state[4]
    for e in range(n):  # after growing: the table is new, what was found is not
        h = OFFSET_BASIS
        for p in range(found[e, 0], found[e, 1]):
            h = (h ^ np.uint64(data[p])) * PRIME
        find_cell(data, found[e, 0], found[e, 1], found[e, 2], h, found, slots, e)
    width = layout.target.size
    status = DONE
    while position < data.size:
        if n + counts.size > found.shape[0]:
            status = FULL
            break
        following = position
        while following < data.size and data[following] != 10:
            following += 1
        start, stop = position, following
        while stop > start and data[stop - 1] == 13:
            stop -= 1
        last = stop
        while last > start and is_blank(data[last - 1]):
            last -= 1
        if last == start:  # a blank line ends the sentence
            if t > starts[s]:
                s += 1
                starts[s] = t
            position = following + 1
            line += 1
            continue
        first = start
        while is_blank(data[first]):
            first += 1
        if layout.separator.size == 0:
            start, stop = first, last
        commented = layout.comment.size > 0 and is_at(layout.comment, data, first, stop)
        end, h = read_cell(layout.separator, data, start, stop)
        if not commented and not is_mark(layout, data, start, end):
            column = 0
            while True:
                if column < width and layout.target[column] >= 0 and t < ends.size:
                    c = layout.target[column]
                    e = find_cell(data, start, end, c, h, found, slots, n)
                    if e == n:
                        found[n, 0], found[n, 1], found[n, 2], found[n, 3] = start, end, c, counts[c]
                        counts[c] += 1
                        n += 1
                    codes[c, t] = found[e, 3]
                column += 1
                if end >= stop:
                    break
                start = end + max(1, layout.separator.size)
                if layout.separator.size == 0:
                    while is_blank(data[start]):
                        start += 1
                end, h = read_cell(layout.separator, data, start, stop)
            if column != width:
                state[5] = column
                status = RAGGED
                break
            ends[t] = stop
            t += 1
        position = following + 1
        line += 1
    if status == DONE and t > starts[s]:
        s += 1
        starts[s] = t
    state[0], state[1], state[2], state[3], state[4] = position, line, t, s, n
    return status


@compiled_loop
def insert_cells(data, ends, codes, added, edges, out):
    """Copy `data` to `out`, with the bytes added[edges[codes[t]]:edges[codes[t] + 1]] put in at ends[t]."""
    k = p = 0
    for t in range(ends.size):
        while p < ends[t]:
            out[k] = data[p]
            p += 1
            k += 1
        for q in range(edges[codes[t]], edges[codes[t] + 1]):
            out[k] = added[q]
            k += 1
    while p < data.size:
        out[k] = data[p]
        p += 1
        k += 1
