"""From template values to feature numbers, in integers: an exact hash table in compiled code.

A feature is a row of small integers, its *key*: the template, then the codes of the values the template found. Keys are kept as
they are, so two features never fall together, whatever their hashes do; features are numbered in the order they are first met::

    number(key):    slot = hash(key) mod slots
                    while slot is taken:  if its tag is hash(key)'s and keys[its number] == key: return its number;  slot += 1
                    if growing: put key in as the next number

A token and a template take O(1) expected time; a feature takes 4 (1 + values) bytes for its key and 16 to 32 for its slots. The
alternative that keeps no keys at all is `hash_rows`: the number *is* the hash, modulo a fixed size (Weinberger et al. 2009,
"Feature hashing for large scale multitask learning", ICML).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partwise.engine.compilation import compiled_loop, helper
from partwise.engine.prefetch import request

EMPTY = -1  # a free slot
LARGEST = np.iinfo(np.int32).max


class Program(NamedTuple):
    """Templates as integers. An atom looks at one row of values, at a distance from the current token."""

    group: np.ndarray  #: (templates,) int32: templates of one group share their features
    ptr: np.ndarray  #: (templates + 1,) int64: which atoms are a template's
    row: np.ndarray  #: (atoms,) int64: which row of values
    offset: np.ndarray  #: (atoms,) int64
    padded: np.ndarray  #: (templates,) uint8: whether there are symbols outside the sentence, or no values
    arity: np.ndarray  #: (groups,) int64: values in a key
    repeats: bool  #: whether two templates may find the same feature at the same token


class Boundary(NamedTuple):
    """Codes of the symbols that stand outside the sentence: ``before[k]`` is k + 1 tokens before its start."""

    before: np.ndarray  #: int32
    after: np.ndarray  #: int32


class FeatureVocabulary:
    """The features met so far, and their numbers.

    Parameters
    ----------
    width : int
        The longest key: one more than the largest number of values in a template.
    """

    def __init__(self, width: int):
        self.n = 0
        self.keys: np.ndarray = np.empty((0, width), np.int32)
        self.slots = np.full(2, EMPTY, np.int64)

    def __len__(self) -> int:
        return self.n

    @classmethod
    def from_keys(cls, keys: np.ndarray, arity: np.ndarray) -> FeatureVocabulary:
        """The vocabulary with these features, numbered in this order; they must be distinct (ValueError)."""
        vocabulary = cls(keys.shape[1])
        vocabulary.n = len(keys)
        vocabulary.keys = np.ascontiguousarray(keys, np.int32)
        vocabulary._reserve(len(keys), arity)
        return vocabulary

    def _reserve(self, room: int, arity: np.ndarray) -> None:
        """Make room for `room` features in all."""
        if room > LARGEST:
            raise ValueError(f"There are more than {LARGEST} distinct features; use hash_bits, fewer templates, or less data.")
        keys = np.empty((room, self.keys.shape[1]), np.int32)
        keys[: self.n] = self.keys[: self.n]
        self.keys = keys
        self.slots = np.full(1 << max(2 * room, 16).bit_length(), EMPTY, np.int64)
        with np.errstate(over="ignore"):  # hashes wrap around
            if put_all(self.keys, self.n, self.slots, arity) != self.n:
                raise ValueError("a feature occurs twice")

    def number(
        self, values: np.ndarray, starts: np.ndarray, program: Program, boundary: Boundary
    ) -> tuple[np.ndarray, np.ndarray]:
        """Offsets and features of every token's row; features that are new enter (`partwise.text.lookup` only asks).

        Parameters
        ----------
        values : int32 array (rows of values, tokens)
            Codes; a negative one is no value, and no feature comes of it.
        starts : int64 array (sentences + 1,)
        program, boundary
            The templates.
        """
        n_tokens, n_templates = values.shape[1], len(program.group)
        ptr = np.zeros(n_tokens + 1, np.int64)
        index = np.empty(n_tokens * n_templates, np.int32)  # the most there can be; what is not touched takes no memory
        sought = np.empty((BLOCK * n_templates, self.keys.shape[1]), np.int32)
        hashes = np.empty(BLOCK * n_templates, np.uint64)
        state = np.array([0, 0, 0, self.n], np.int64)
        if len(self.keys) - self.n < BLOCK * n_templates:
            self._reserve(max(2 * self.n, n_tokens // 2) + BLOCK * n_templates, program.arity)
        elif not self.slots.size:
            self._reserve(len(self.keys), program.arity)
        with np.errstate(over="ignore"):
            while number_rows(values, starts, program, boundary, self.keys, self.slots, ptr, index, sought, hashes, state):
                self.n = int(state[3])
                self._reserve(2 * self.n + BLOCK * n_templates, program.arity)
        self.n = int(state[3])
        return ptr, index[: state[2]]

    def merge(self, keys: np.ndarray, arity: np.ndarray) -> np.ndarray:
        """The numbers of the features with these keys; those that are new enter, in this order."""
        if len(self.keys) - self.n < len(keys) or not self.slots.size:
            self._reserve(2 * self.n + len(keys), arity)
        numbers = np.empty(len(keys), np.int64)
        with np.errstate(over="ignore"):
            self.n = int(merge_keys(keys, self.keys, self.n, self.slots, arity, numbers))
        return numbers

    def rest(self) -> None:
        """Forget the hash table, which is as large as the keys, and made again in no time if it is needed."""
        self.keys = self.keys[: self.n].copy()
        self.slots = np.empty(0, np.int64)

    def wake(self, arity: np.ndarray) -> None:
        """Make the hash table again, if it was forgotten."""
        if not self.slots.size:
            self._reserve(self.n, arity)


def hash_rows(
    values: np.ndarray,
    starts: np.ndarray,
    program: Program,
    boundary: Boundary,
    value_hashes: np.ndarray,
    group_hashes: np.ndarray,
    bits: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and features of every token's row, a feature's number being its hash modulo ``2**bits``.

    ``value_hashes[code]`` and ``group_hashes[group]`` (uint64) must depend on the strings alone; then so do the numbers.
    """
    ptr = np.zeros(values.shape[1] + 1, np.int64)
    index = np.empty(values.shape[1] * len(program.group), np.int32)
    key = np.empty((1, 1 + int(program.arity.max(initial=0))), np.int32)
    mask = np.uint64((1 << bits) - 1)
    with np.errstate(over="ignore"):
        n = hash_tokens(values, starts, program, boundary, value_hashes, group_hashes, mask, ptr, index, key)
    return ptr, index[:n]


# ---------------------------------------------------------------------------------------------------------------------
# Compiled loops. Helpers are given rows by number, not as views, and return early instead of breaking out of loops: otherwise
# numba counts references to arrays inside the loops, which takes longer than the work (0.30 s instead of 0.07 s for CoNLL-2000).
# ---------------------------------------------------------------------------------------------------------------------

BLOCK = 8  # tokens whose slots are asked for before the first of them is looked up
SEED, FACTOR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
SHIFT, TAG_SHIFT = np.uint64(32), np.uint64(33)


@helper
def spread(h):
    """Make all bits of a hash depend on all others, nearly."""
    h = (h ^ (h >> SHIFT)) * FACTOR
    return h ^ (h >> SHIFT)


@helper
def tagged(h, number):
    """What a slot holds: 31 bits of the hash over 32 bits of the number."""
    return (np.int64(h >> TAG_SHIFT) << 32) | number


@helper
def read_key(values, program, boundary, template, t, first, last, keys, k):
    """Write the key that a template finds at token t of the sentence [first, last) into row k of `keys`; returns its hash.

    If there is no key, because a value is missing, the row begins with -1.
    """
    h = spread(SEED ^ np.uint64(program.group[template]))
    keys[k, 0] = -1
    begin = program.ptr[template]
    for a in range(begin, program.ptr[template + 1]):
        p = t + program.offset[a]
        if first <= p < last:
            code = values[program.row[a], p]
        elif program.padded[template] == 0:
            return h
        elif p < first:
            code = boundary.before[first - p - 1]
        else:
            code = boundary.after[p - last]
        if code < 0:
            return h
        keys[k, 1 + a - begin] = code
        h = spread(h ^ np.uint64(code))
    keys[k, 0] = program.group[template]
    return h


@helper
def hash_key(keys, k, length):
    """The same hash, of a key that is there."""
    h = SEED
    for j in range(length):
        h = spread(h ^ np.uint64(keys[k, j]))
    return h


@helper
def is_key(keys, number, sought, k, length):
    for j in range(length):
        if keys[number, j] != sought[k, j]:
            return False
    return True


@helper
def find(keys, slots, sought, k, length, h):
    """The slot that holds the key in row k of `sought`, or the free one where it belongs."""
    slot = np.int64(h & np.uint64(slots.size - 1))
    while True:
        held = slots[slot]
        if held == EMPTY:
            return slot
        number = held & 0xFFFFFFFF
        if held == tagged(h, number) and is_key(keys, number, sought, k, length):
            return slot
        slot = (slot + 1) & (slots.size - 1)


@helper
def is_among(index, start, stop, feature):
    for k in range(start, stop):
        if index[k] == feature:
            return True
    return False


@compiled_loop
def put_all(keys, n, slots, arity):
    """Put keys 0..n-1 into empty slots; returns the number of the first that is there already, or n."""
    for number in range(n):
        length = 1 + arity[keys[number, 0]]
        h = hash_key(keys, number, length)
        slot = find(keys, slots, keys, number, length, h)
        if slots[slot] != EMPTY:
            return number
        slots[slot] = tagged(h, number)
    return n


@compiled_loop
def merge_keys(more, keys, n, slots, arity, numbers):
    """Numbers of the keys in the rows of `more`; those that are not among the n there are put in. Returns how many there are."""
    for k in range(more.shape[0]):
        length = 1 + arity[more[k, 0]]
        h = hash_key(more, k, length)
        slot = find(keys, slots, more, k, length, h)
        if slots[slot] == EMPTY:
            for j in range(keys.shape[1]):
                keys[n, j] = more[k, j]
            slots[slot] = tagged(h, n)
            n += 1
        numbers[k] = slots[slot] & 0xFFFFFFFF
    return n


@compiled_loop
def number_rows(values, starts, program, boundary, keys, slots, ptr, index, sought, hashes, state):
    """Number the features of all tokens from where `state` says; returns whether it stopped for want of room.

    state : sentence, token, entries, features
    sought, hashes : scratch memory, one row per template for a block of tokens

    Slots lie all over memory: those of a block of tokens are asked for together, so that they arrive together.
    """
    s, t, n, size = state[0], state[1], state[2], state[3]
    n_templates = program.group.size
    full = False
    while s < starts.size - 1 and not full:
        first, last = starts[s], starts[s + 1]
        while t < last:
            stop = min(t + BLOCK, last)
            if size + (stop - t) * n_templates > keys.shape[0]:
                full = True
                break
            for template in range(n_templates):
                for u in range(t, stop):
                    k = (u - t) * n_templates + template
                    hashes[k] = read_key(values, program, boundary, template, u, first, last, sought, k)
                    if sought[k, 0] >= 0:
                        request(slots, np.int64(hashes[k] & np.uint64(slots.size - 1)))
            k = 0
            for u in range(t, stop):
                begin = n
                for template in range(n_templates):
                    if sought[k, 0] >= 0:
                        length = 1 + program.ptr[template + 1] - program.ptr[template]
                        slot = find(keys, slots, sought, k, length, hashes[k])
                        if slots[slot] != EMPTY:
                            number = slots[slot] & 0xFFFFFFFF
                        else:
                            number = size
                            for j in range(keys.shape[1]):
                                keys[number, j] = sought[k, j] if j < length else -1
                            slots[slot] = tagged(hashes[k], number)
                            size += 1
                        if not (program.repeats and is_among(index, begin, n, number)):
                            index[n] = number
                            n += 1
                    k += 1
                ptr[u + 1] = n
            t = stop
        if not full:
            s += 1
    state[0], state[1], state[2], state[3] = s, t, n, size
    return full


@compiled_loop
def drop_features(ptr, index, renumber):
    """In place: number features anew and leave out those whose new number is negative; returns the number of entries left."""
    n = 0
    begin = ptr[0]
    for t in range(ptr.size - 1):
        for k in range(begin, ptr[t + 1]):
            if renumber[index[k]] >= 0:
                index[n] = renumber[index[k]]
                n += 1
        begin = ptr[t + 1]
        ptr[t + 1] = n
    return n


@compiled_loop
def hash_tokens(values, starts, program, boundary, value_hashes, group_hashes, mask, ptr, index, key):
    """Write the hashes of all tokens' features, each once per token; returns how many there are."""
    n = 0
    for s in range(starts.size - 1):
        first, last = starts[s], starts[s + 1]
        for t in range(first, last):
            begin = n
            for template in range(program.group.size):
                read_key(values, program, boundary, template, t, first, last, key, 0)
                if key[0, 0] >= 0:
                    h = group_hashes[key[0, 0]]
                    for k in range(1, 1 + program.arity[key[0, 0]]):
                        h = spread(h ^ value_hashes[key[0, k]])
                    feature = np.int64(spread(h) & mask)
                    if not is_among(index, begin, n, feature):
                        index[n] = feature
                        n += 1
            ptr[t + 1] = n
    return n
