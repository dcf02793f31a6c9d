"""Chunking schemes: how spans are written down as one label per token, read, recognised and converted.

A span (NP, PER, ...) is a run of tokens; a label is ``O``, or a prefix and a type, parted at the first dash: ``B-NP``. A scheme
says which prefix a token gets, from whether it is the first and whether it is the last of its span:

=======  ======  =====  =====  ==============  =====================================================================
scheme   inside  last   first  first and last  the first (last) of a span is marked
=======  ======  =====  =====  ==============  =====================================================================
iob2     I       I      B      B               always
iob1     I       I      B      B               only after (before) a neighbouring span of the same type; otherwise I
iobes    I       E      B      S               always
bilou    I       L      B      U               always
ioe2     I       E      I      E               always
ioe1     I       E      I      E               only after (before) a neighbouring span of the same type; otherwise I
=======  ======  =====  =====  ==============  =====================================================================

Every other fact about schemes in this library (what may follow what, which scheme a corpus is in, conversion) is derived from
this table. Labels without a type (``B``, ``I``, ``O``) are labels of the empty type.

**Reading** needs no scheme and never fails on chunk tags, ill-formed as they may be: token t goes on with the span of token
t - 1 if both have the same type, t is not marked as a first token (B, S, U) and t - 1 is not marked as a last one (E, L, S, U).
Otherwise it begins a span: both I's of ``O I-NP I-VP`` do. On B, I, O and on I, E, O this is what conlleval does, the script that
evaluates the CoNLL shared tasks since 2000. It does not know S, L and U, nor that a B after an E of the same type begins a span;
those are read as their schemes mean them. What reading makes of ill-formed labels is also how they are repaired: `convert` writes
the spans that were read, and `count_repairs` says how many tokens are not as the scheme would have them.

Functions that end in ``_coded`` take numbered labels: token t has the label ``labels[codes[t]]``, and sequence i is the tokens
``starts[i] : starts[i + 1]``. They take a few vector operations over the tokens.

References: L. Ramshaw and M. Marcus, "Text chunking using transformation-based learning", 1995 (IOB1); E. Tjong Kim Sang and
J. Veenstra, "Representing text chunks", EACL 1999 (IOB2, IOE1, IOE2); L. Ratinov and D. Roth, "Design challenges and
misconceptions in named entity recognition", CoNLL 2009 (BILOU).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from partwise.text.label_codes import Coded, check_coded, code_sequences, place

OUTSIDE = "O"
FIRST = "BSU"  #: prefixes that mark the first token of a span
LAST = "ELSU"  #: prefixes that mark the last token of a span
PREFIXES = "BIELSU"
FORM = "B-type, I-type, E-type (or L), S-type (or U), or O"
FOREIGN = -2  # the type of a label that is not a chunk tag; -1 is that of O


class Scheme(NamedTuple):
    """One row of the table above."""

    letters: str  #: prefixes of a token inside, last, first, first and last of its span: ``letters[2 * first + last]``
    only_between: bool = False  #: whether first and last are marked only between neighbouring spans of the same type


#: In the order of preference where a corpus is well formed in several.
SCHEMES: dict[str, Scheme] = {
    "iob2": Scheme("IIBB"),
    "iob1": Scheme("IIBB", only_between=True),
    "iobes": Scheme("IEBS"),
    "bilou": Scheme("ILBU"),
    "ioe2": Scheme("IEIE"),
    "ioe1": Scheme("IEIE", only_between=True),
}


def split_label(label: Any) -> tuple[str, str] | None:
    """Prefix and type of a chunk tag, parted at the first dash; None for what is not one.

    Examples
    --------
    >>> split_label("B-NP-SBJ"), split_label("I"), split_label("O"), split_label("NOUN")
    (('B', 'NP-SBJ'), ('I', ''), ('O', ''), None)
    """
    if not isinstance(label, str):
        return None
    prefix, dash, kind = label.partition("-")
    if prefix == OUTSIDE:
        return None if dash else (OUTSIDE, "")
    return (prefix, kind) if len(prefix) == 1 and prefix in PREFIXES else None


def is_chunking(labels: Iterable[Any]) -> bool:
    """Whether all labels have the form of chunk tags; False for part-of-speech tags and the like, and for no labels at all."""
    parsed = [split_label(label) for label in labels]
    return bool(parsed) and None not in parsed


def get_scheme(name: Any, parameter: str = "scheme") -> Scheme:
    """The scheme of that name."""
    if not isinstance(name, str) or name not in SCHEMES:
        raise ValueError(f"The {parameter!r} parameter must be one of {', '.join(map(repr, SCHEMES))}. Got {name!r} instead.")
    return SCHEMES[name]


@lru_cache(maxsize=4096)
def may_follow(scheme: str, before: str, after: str, same_type: bool) -> bool:
    """Whether a token with prefix `after` may follow one with prefix `before` (``"O"``: outside, the beginning, the end).

    A pair of labels is forbidden if no spans, written down in the scheme, have it. Labels are well formed if all their pairs are.

    Examples
    --------
    >>> may_follow("iob2", "O", "I", False), may_follow("iobes", "B", "E", True), may_follow("iob1", "O", "B", False)
    (False, True, False)
    """
    letters, only_between = get_scheme(scheme)

    def last(is_last: bool) -> bool:  # may `before` be written for the last (not the last) token of a span?
        return before in (letters[is_last], letters[2 + is_last])

    def first(is_first: bool) -> bool:
        return after in (letters[2 * is_first], letters[2 * is_first + 1])

    if before == OUTSIDE or after == OUTSIDE:
        marked = not only_between
        return (before == OUTSIDE or last(marked)) and (after == OUTSIDE or first(marked))
    marked = same_type or not only_between
    return (same_type and last(False) and first(False)) or (last(marked) and first(marked))


# ---------------------------------------------------------------------------------------------------------------------
# Labels, parsed
# ---------------------------------------------------------------------------------------------------------------------


class LabelTable(NamedTuple):
    """What chunk tags say, label by label, as arrays."""

    labels: list[Any]
    types: list[str]  #: the distinct types, in the order they are first met
    kind: np.ndarray  #: (labels,) int32: place in `types`; -1 for O, FOREIGN for what is not a chunk tag
    prefix: np.ndarray  #: (labels,) uint8: the prefix's character
    is_first: np.ndarray  #: (labels,) bool: prefix in FIRST
    is_last: np.ndarray  #: (labels,) bool: prefix in LAST


def label_table(labels: Iterable[Any], types: Iterable[str] = ()) -> LabelTable:
    """Parse every label once. Types are numbered from those of `types` on."""
    labels = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    number = {kind: k for k, kind in enumerate(types)}
    parsed = [split_label(label) for label in labels]
    kinds = [FOREIGN if one is None else -1 if one[0] == OUTSIDE else number.setdefault(one[1], len(number)) for one in parsed]
    prefixes = ["?" if one is None else one[0] for one in parsed]
    return LabelTable(
        labels,
        list(number),
        np.array(kinds, np.int32),
        np.array([ord(p) for p in prefixes], np.uint8),
        np.array([p in FIRST for p in prefixes], bool),
        np.array([p in LAST for p in prefixes], bool),
    )


# ---------------------------------------------------------------------------------------------------------------------
# Reading and writing spans
# ---------------------------------------------------------------------------------------------------------------------


class Boundaries(NamedTuple):
    """Spans, token by token."""

    kind: np.ndarray  #: (tokens,) int32: type of the span that the token is in; -1 outside
    begins: np.ndarray  #: (tokens,) bool: first token of a span
    ends: np.ndarray  #: (tokens,) bool: last token of a span
    touches: np.ndarray  #: (tokens,) bool: the token before it, in the same sequence, is in a span of the same type


def read_boundaries(coded: Coded, table: LabelTable, name: str = "labels", advice: str = "") -> Boundaries:
    """Where spans begin and end, read as the module's docstring says. O(tokens)."""
    codes, starts = coded
    kind = table.kind[codes]
    if (table.kind == FOREIGN).any() and (kind == FOREIGN).any():
        t = int(np.argmax(kind == FOREIGN))
        raise ValueError(f"{place(starts, t)} of {name}: the label {table.labels[codes[t]]!r} is not of the form {FORM}.{advice}")
    inside = kind >= 0
    touches = np.zeros(len(codes), bool)
    np.equal(kind[1:], kind[:-1], out=touches[1:])
    touches &= inside
    touches[starts[:-1][starts[:-1] < len(codes)]] = False
    continues = touches & ~table.is_first[codes]
    continues[1:] &= ~table.is_last[codes[:-1]]
    ends = inside.copy()
    ends[:-1] &= ~continues[1:]
    return Boundaries(kind, inside & ~continues, ends, touches)


def _roles(spans: Boundaries, scheme: Scheme) -> np.ndarray:
    """Place of each token's prefix in ``scheme.letters``, whatever the token outside of spans."""
    begins, ends = spans.begins, spans.ends
    if scheme.only_between:
        begins = begins & spans.touches
        ends = ends.copy()
        ends[:-1] &= spans.touches[1:]
        ends[-1:] = False
    return 2 * begins.astype(np.int8) + ends


def _prefixes(spans: Boundaries, scheme: Scheme) -> np.ndarray:
    """The characters that spans have in a scheme, (tokens,) uint8."""
    letters = np.frombuffer(scheme.letters.encode(), np.uint8)
    return np.where(spans.kind >= 0, letters[_roles(spans, scheme)], ord(OUTSIDE))


def _covers(scheme: Scheme, prefixes: set[str]) -> bool:
    return prefixes <= {*scheme.letters, OUTSIDE}


# ---------------------------------------------------------------------------------------------------------------------
# Recognising
# ---------------------------------------------------------------------------------------------------------------------


def recognise(labels: Any) -> str | None:
    """Which scheme labels are in: a name of `SCHEMES`, or None if they are not chunk tags.

    Given label *sequences*, the answer is the scheme that has all their prefixes and needs the fewest repairs; so between IOB1
    and IOB2, a B that begins a span where none of its type precedes speaks for IOB2, an I that begins a span for IOB1. The first
    of `SCHEMES` wins a tie: labels that are all ``O`` are taken for IOB2.

    Given only the *set* of labels (an iterable of strings), their order cannot be known: the answer is the first scheme
    that has the prefixes and could write a span of each type. ``B-X I-X O`` is taken for IOB2, ``I-X O`` for IOB1.

    None also if there are no labels, or if their prefixes are of no one scheme (E and L). Of partly labelled data (None or a set
    for a label), give the set of the labels that are known.

    Examples
    --------
    >>> recognise([["B-X", "I-X", "O", "B-X"]]), recognise([["I-X", "I-X", "B-X", "O", "I-X"]])
    ('iob2', 'iob1')
    >>> recognise({"B-X", "E-X", "O"}), recognise([["DET", "NOUN"]])
    ('iobes', None)
    """
    if isinstance(labels, str | bytes) or not hasattr(labels, "__iter__"):
        raise TypeError(f"labels must be a set of labels or a list of label sequences. Got a {type(labels).__name__}.")
    items = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
    if not any(isinstance(item, list | tuple | np.ndarray) for item in items):
        return _recognise_set(items)
    number: dict[Any, int] = {}
    coded = code_sequences(items, number, "labels")
    return recognise_coded(*coded, list(number))


def recognise_coded(codes: np.ndarray, starts: np.ndarray, labels: Sequence[Any]) -> str | None:
    """`recognise` for numbered labels; where there are no tokens, by the set of labels."""
    coded = check_coded(codes, starts, len(labels))
    if not len(coded.codes):
        return _recognise_set(labels)
    table = label_table(labels)
    used = np.bincount(coded.codes, minlength=len(labels)) > 0
    if (table.kind[used] == FOREIGN).any():
        return None
    prefixes = {chr(p) for p in table.prefix[used]}
    candidates = [name for name, scheme in SCHEMES.items() if _covers(scheme, prefixes)]
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    spans, written = read_boundaries(coded, table), table.prefix[coded.codes]
    repairs = [int(np.count_nonzero(_prefixes(spans, SCHEMES[name]) != written)) for name in candidates]
    return candidates[int(np.argmin(repairs))]


def _recognise_set(labels: Iterable[Any]) -> str | None:
    prefixes: dict[str, set[str]] = {}  # of each type
    for label in labels:
        parsed = split_label(label)
        if parsed is None:
            return None
        prefixes.setdefault(parsed[1], set()).add(parsed[0])
    by_type = [own - {OUTSIDE} for own in prefixes.values() if own != {OUTSIDE}]

    def can_write(scheme: Scheme, own: set[str]) -> bool:  # a span without neighbours, of one token or of two
        letters = scheme.letters
        return letters[0] in own if scheme.only_between else letters[3] in own or {letters[1], letters[2]} <= own

    candidates = [name for name, scheme in SCHEMES.items() if all(_covers(scheme, own) for own in by_type)]
    fitting = [name for name in candidates if all(can_write(SCHEMES[name], own) for own in by_type)] or candidates
    return fitting[0] if prefixes and fitting else None


# ---------------------------------------------------------------------------------------------------------------------
# Converting
# ---------------------------------------------------------------------------------------------------------------------


class Converted(NamedTuple):
    """Numbered labels in another scheme."""

    codes: np.ndarray  #: (tokens,) int32
    labels: list[str]  #: those that occur, sorted
    n_repaired: int  #: tokens whose old label was not as the old scheme would have it


def convert(sequences: Sequence[Sequence[str]], to: str, from_: str | None = None) -> list[list[str]]:
    """Label sequences in another scheme; the spans stay what they are.

    Ill-formed labels are read as conlleval reads them (see the module's docstring), so converting to the scheme that labels are
    already in repairs them; `count_repairs` says how many tokens that changes.

    Parameters
    ----------
    sequences : list of lists of str
    to : name of a scheme
    from_ : name of a scheme, optional
        The scheme that labels are in; recognised if None. A label with a prefix that it does not have is an error.

    Examples
    --------
    >>> convert([["B-X", "I-X", "B-X", "O"]], "iobes")
    [['B-X', 'E-X', 'S-X', 'O']]
    """
    number: dict[Any, int] = {}
    coded = code_sequences(sequences, number, "sequences")
    converted = convert_coded(*coded, list(number), to, from_)
    flat = list(map(converted.labels.__getitem__, converted.codes.tolist()))
    edges = coded.starts.tolist()
    return [flat[a:b] for a, b in zip(edges[:-1], edges[1:], strict=True)]


def convert_coded(codes: np.ndarray, starts: np.ndarray, labels: Sequence[Any], to: str, from_: str | None = None) -> Converted:
    """`convert` for numbered labels."""
    target = get_scheme(to, "to")
    coded = check_coded(codes, starts, len(labels))
    if not len(coded.codes):
        if from_ is not None:
            get_scheme(from_, "from_")
        return Converted(np.zeros(0, np.int32), [], 0)
    table = label_table(labels)
    spans, n_repaired = _read_in(coded, table, from_, "from_")
    # a table of all labels there could be: types (the last: outside) x roles
    written = [f"{letter}-{kind}" if kind else letter for kind in table.types for letter in target.letters] + [OUTSIDE] * 4
    key = 4 * np.where(spans.kind >= 0, spans.kind, len(table.types)) + _roles(spans, target)
    occurring = sorted({written[k] for k in np.flatnonzero(np.bincount(key, minlength=len(written)))})
    number = {label: k for k, label in enumerate(occurring)}
    recode = np.array([number.get(label, -1) for label in written], np.int32)
    return Converted(recode[key], occurring, n_repaired)


def count_repairs(sequences: Sequence[Sequence[str]], scheme: str | None = None) -> int:
    """How many tokens have a label that is not what `scheme` (recognised if None) gives to the spans that were read.

    Examples
    --------
    >>> count_repairs([["O", "I-X", "I-X"]], "iob2"), count_repairs([["O", "I-X", "I-X"]], "iob1")
    (1, 0)
    """
    number: dict[Any, int] = {}
    coded = code_sequences(sequences, number, "sequences")
    return count_repairs_coded(*coded, list(number), scheme)


def count_repairs_coded(codes: np.ndarray, starts: np.ndarray, labels: Sequence[Any], scheme: str | None = None) -> int:
    """`count_repairs` for numbered labels."""
    coded = check_coded(codes, starts, len(labels))
    if scheme is not None:
        get_scheme(scheme)
    return _read_in(coded, label_table(labels), scheme, "scheme")[1] if len(coded.codes) else 0


def _read_in(coded: Coded, table: LabelTable, name: str | None, parameter: str) -> tuple[Boundaries, int]:
    """The spans, and how many tokens have to change to be well formed in that scheme."""
    spans = read_boundaries(coded, table)
    if name is None:
        name = recognise_coded(*coded, table.labels)
        if name is None:
            used = sorted({str(table.labels[c])[0] for c in np.unique(coded.codes)} - {OUTSIDE})
            raise ValueError(
                f"The prefixes {', '.join(used)} are not those of one scheme; the schemes are {', '.join(SCHEMES)}. "
                f"Set the {parameter!r} parameter after correcting the labels."
            )
    return spans, int(np.count_nonzero(_differs(coded, table, spans, name, parameter)))


def _differs(coded: Coded, table: LabelTable, spans: Boundaries, name: str, parameter: str) -> np.ndarray:
    """Which tokens have another prefix than a scheme gives to the spans, (tokens,) bool; refuses prefixes it does not have."""
    scheme = get_scheme(name, parameter)
    prefixes = table.prefix[coded.codes]
    known = np.isin(prefixes, np.frombuffer((scheme.letters + OUTSIDE).encode(), np.uint8))
    if not known.all():
        t = int(np.argmin(known))
        raise ValueError(
            f"{place(coded.starts, t)}: the scheme {name!r} has the prefixes {', '.join(sorted(set(scheme.letters)))} and 'O'. "
            f"Got the label {table.labels[coded.codes[t]]!r}."
        )
    return _prefixes(spans, scheme) != prefixes


def read_strictly(coded: Coded, table: LabelTable, spans: Boundaries, scheme: str, parameter: str = "scheme") -> np.ndarray:
    """Which of the spans that were read are written down as a scheme would have them, (spans,) bool. O(tokens)."""
    wrong = np.concatenate([[0], np.cumsum(_differs(coded, table, spans, scheme, parameter))])
    return wrong[np.flatnonzero(spans.begins)] == wrong[np.flatnonzero(spans.ends) + 1]
