"""What the loops of a folded RNA are scored by: a table of entries for the recursions, and the weights that entries share.

A structure is a set of nested base pairs; every pair closes a loop. The score of a loop is a sum of *entries* of one long
table, so that recursions look things up and never ask what they mean:

=============  ====================  =============================================================================================
block          shape                 of what
=============  ====================  =============================================================================================
PAIR           (16,)                 every base pair
STACK          (16, 16)              a pair on a pair, also across a bulge of one base
HAIRPIN_END    (16, 5, 5)            the pair that closes a hairpin, and the two bases next to it in the loop
INTERNAL_END   (16, 5, 5)            each of the two pairs of an internal loop, likewise
MULTI_END      (16, 5, 5)            each pair of a multi-loop, likewise
EXTERNAL_END   (16, 5, 5)            a pair that no other encloses, likewise; beyond the ends of the sequence is no base, N
BULGE_END      (16,)                 each of the two pairs of a bulge of more than one base
HAIRPIN        (31,)                 unpaired bases in a hairpin; 30 stands for more, too
TRILOOP        (64,), (256,)         the bases of a hairpin of three, of four (TETRALOOP)
BULGE          (31,)                 unpaired bases in a bulge
BULGE_BASE     (5,)                  the base in a bulge of one
INTERNAL       (31, 31)              unpaired bases on the two sides of an internal loop
ONE_BY_ONE     (5, 5)                the bases of an internal loop of one base on each side
MULTI_BASE     scalars               a multi-loop; MULTI_UNPAIRED, EXTERNAL_UNPAIRED: a base in one, a base that no pair encloses
=============  ====================  =============================================================================================

Bases are A, C, G, U = 0 .. 3, and N = 4 for any other letter or none. A pair, seen from a loop, is ``4 a + b``, where a is the
base whose right neighbour lies in the loop: (i, j) is read from i to j in the loop that it closes, and from j to i in the loop
outside.

An entry is the sum of a few *weights*, which entries share (tying): pairs and stacks read from either side are the same;
lengths are cumulative ("at least l"), so that lengths next to each other get scores next to each other; ends of helices have
weights by the pair alone, by the pair and one neighbour, and by the pair and both. The features are those of CONTRAfold, and
some more.

References
----------
C. B. Do, D. A. Woods, S. Batzoglou (2006). CONTRAfold: RNA secondary structure prediction without physics-based models.
Bioinformatics.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

BASES = "ACGU"
N = 4  #: a base that is not known, or none
LONGEST = 30  #: unpaired bases that lengths are told apart up to; internal loops and bulges have no more
SHORTEST = 3  #: unpaired bases in a hairpin, at least
EXPLICIT = 4  #: internal loops up to 4 x 4 have weights of their own

PAIR = 0
STACK = PAIR + 16
HAIRPIN_END = STACK + 16 * 16
INTERNAL_END = HAIRPIN_END + 16 * 25
MULTI_END = INTERNAL_END + 16 * 25
EXTERNAL_END = MULTI_END + 16 * 25
BULGE_END = EXTERNAL_END + 16 * 25
HAIRPIN = BULGE_END + 16
TRILOOP = HAIRPIN + LONGEST + 1
TETRALOOP = TRILOOP + 64
BULGE = TETRALOOP + 256
BULGE_BASE = BULGE + LONGEST + 1
INTERNAL = BULGE_BASE + 5
ONE_BY_ONE = INTERNAL + (LONGEST + 1) ** 2
MULTI_BASE = ONE_BY_ONE + 25
MULTI_UNPAIRED = MULTI_BASE + 1
EXTERNAL_UNPAIRED = MULTI_UNPAIRED + 1
N_ENTRIES = EXTERNAL_UNPAIRED + 1


class Tying(NamedTuple):
    """Which weights each entry is the sum of."""

    ptr: np.ndarray  #: (entries + 1,) int64 offsets into members
    members: np.ndarray  #: int32 weights
    names: list[str]  #: of the weights

    @property
    def n_weights(self) -> int:
        """How many weights there are."""
        return len(self.names)

    def entries(self, w: np.ndarray) -> np.ndarray:
        """The table for the weights w; what no structure has is zero."""
        sums = np.concatenate([[0.0], np.cumsum(np.asarray(w, np.float64)[self.members])])
        return np.diff(sums[self.ptr])

    def number(self, name: str) -> int:
        """The weight of that name."""
        return self.names.index(name)


def pair_name(code: int) -> str:
    """Two letters."""
    return BASES[code // 4] + BASES[code % 4]


def letter(base: int) -> str:
    """One letter."""
    return (BASES + "N")[base]


def _stack(outer: int, inner: int) -> str:
    """5' to 3' on one strand, a slash, 3' to 5' on the other; the same read from either end."""
    a, b, c, d = *divmod(outer, 4), *divmod(inner, 4)
    one, other = (a, c, b, d), (d, b, c, a)
    a, c, b, d = min(one, other)
    return f"stack {BASES[a]}{BASES[c]}/{BASES[b]}{BASES[d]}"


def _end(kind: str, more: str | None = None) -> Callable[[int, int, int], list[str]]:
    def names(code: int, right: int, left: int) -> list[str]:
        pair = pair_name(code)
        found = [f"closing {pair}", f"right of {pair}: {letter(right)}", f"left of {pair}: {letter(left)}"]
        found.append(f"{kind} end {pair}: {letter(right)}{letter(left)}")
        return [*found, more] if more else found

    return names


def _at_least(kind: str, low: int, length: int) -> list[str]:
    return [f"{kind} of at least {k}" for k in range(low, length + 1)]


def _internal(left: int, right: int) -> list[str]:
    if not left or not right or left + right > LONGEST:
        return []
    few, many = sorted((left, right))
    found = _at_least("internal loop", 2, left + right) + _at_least("asymmetry", 1, many - few)
    return [*found, f"internal loop {few} x {many}"] if many <= EXPLICIT else found


def _sequences(n: int) -> Iterator[str]:
    for code in range(4**n):
        yield "".join(BASES[code // 4**k % 4] for k in reversed(range(n)))


def _entries() -> Iterator[list[str]]:
    """The names of the weights of every entry, block by block."""
    codes, letters, lengths = range(16), range(5), range(LONGEST + 1)
    for code in codes:
        yield [f"pair {min(pair_name(code), pair_name(code)[::-1])}"]
    for outer in codes:
        for inner in codes:
            yield [_stack(outer, inner)]
    ends = (_end("hairpin"), _end("internal"), _end("multi", "multi-loop branch"), _end("external", "external branch"))
    for names in ends:
        for code in codes:
            for right in letters:
                for left in letters:
                    yield names(code, right, left)
    for code in codes:
        yield [f"closing {pair_name(code)}"]
    for length in lengths:
        yield _at_least("hairpin", SHORTEST, length)
    for n in (3, 4):
        for text in _sequences(n):
            yield [f"hairpin {text}"]
    for length in lengths:
        yield _at_least("bulge", 1, length)
    for base in letters:
        yield [f"bulge {letter(base)}"]
    for left in lengths:
        for right in lengths:
            yield _internal(left, right)
    for left in letters:
        for right in letters:
            yield [f"internal loop {letter(min(left, right))} x {letter(max(left, right))}"]
    yield ["multi-loop"]
    yield ["multi-loop unpaired"]
    yield ["external unpaired"]


@functools.cache
def tying() -> Tying:
    """Entries and weights of the model."""
    numbers: dict[str, int] = {}
    ptr, members = [0], list[int]()
    for names in _entries():
        members += [numbers.setdefault(name, len(numbers)) for name in names]
        ptr.append(len(members))
    return Tying(np.array(ptr, np.int64), np.array(members, np.int32), list(numbers))
