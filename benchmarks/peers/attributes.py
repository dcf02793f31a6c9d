"""What a careful user of a string-based tool writes: a reader of column files and attribute extraction, in fast plain Python.

Attributes are made column-wise: one list comprehension per template and sentence, then a transposition by `zip`; that takes less
than half the time of a loop over tokens and templates. Tokens at the edges have fewer attributes and are put together one by one.
"""

from __future__ import annotations

import functools
import gzip
import re
from collections.abc import Callable, Iterator

RUNS = re.compile(r"(.)\1+")
DIGIT = re.compile("[0-9]")
Sentence = list[list[str]]  #: the columns of a sentence: words, parts of speech, ..., labels
Items = list[list[str]]  #: the attributes of every token


def read_sentences(path: str) -> Iterator[Sentence]:
    """Sentences of a column file, gzipped or not, split at blanks; one list per column."""
    with open(path, "rb") as f:
        packed = f.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rb") if packed else open(path, "rb") as f:
        text = f.read().decode("utf-8")
    for block in text.replace("\r\n", "\n").split("\n\n"):
        lines = block.strip("\n").split("\n")
        if lines != [""]:
            yield [list(column) for column in zip(*map(str.split, lines), strict=True)]


def write_sentence(columns: Sentence, labels: list[str]) -> str:
    """The sentence as text with one more column, and the blank line after it."""
    return "\n".join(map(" ".join, zip(*columns, labels, strict=True))) + "\n\n"


def _edges(n: int, width: int) -> list[int]:
    """Positions nearer than `width` to an end of a sentence of n tokens."""
    return list(range(n)) if n <= 2 * width else [*range(width), *range(n - width, n)]


def _placed(name: str, values: list[str], offset: int, n: int) -> list[str | None]:
    """The attributes of n tokens by a template that looks `offset` tokens away; None where that is outside the sentence.

    `values` may be shorter than n: a sentence has fewer pairs of neighbours than tokens.
    """
    made: list[str | None] = [f"{name}={value}" for value in values[max(offset, 0) : n + min(offset, 0)]]
    if offset < 0:
        made = [None] * min(-offset, n) + made
    return made + [None] * (n - len(made))


def _transposed(columns: list[list[str | None]], reach: int) -> Items:
    """One list per token; None, which stands for what is outside, is dropped near the edges."""
    items = list(map(list, zip(*columns, strict=True)))
    for i in _edges(len(items), reach):
        items[i] = [a for a in items[i] if a is not None]
    items[0].append("__BOS__")
    items[-1].append("__EOS__")
    return items  # type: ignore[return-value]


def chunking(columns: Sentence) -> Items:
    """The 19 templates of CRFsuite's chunking tutorial with ``__BOS__`` and ``__EOS__``.

    The same sets of attributes as `partwise.datasets.chunking_attributes`; a test holds the two together.
    """
    w, pos = columns[:2]
    two_w = [f"{a}|{b}" for a, b in zip(w, w[1:], strict=False)]
    two = [f"{a}|{b}" for a, b in zip(pos, pos[1:], strict=False)]
    three = [f"{a}|{b}" for a, b in zip(two, pos[2:], strict=False)]
    n = len(w)
    found = [_placed(f"w[{t}]", w, t, n) for t in (-2, -1, 0, 1, 2)]
    found += [_placed(f"w[{t}]|w[{t + 1}]", two_w, t, n) for t in (-1, 0)]
    found += [_placed(f"pos[{t}]", pos, t, n) for t in (-2, -1, 0, 1, 2)]
    found += [_placed(f"pos[{t}]|pos[{t + 1}]", two, t, n) for t in (-2, -1, 0, 1)]
    found += [_placed(f"pos[{t}]|pos[{t + 1}]|pos[{t + 2}]", three, t, n) for t in (-2, -1, 0)]
    return _transposed(found, 2)


@functools.cache
def _shape(word: str) -> str:
    """Runs of capitals, small letters and digits written once: McX-9.5 is XxX-d.d."""
    return RUNS.sub(r"\1", "".join("X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word))


@functools.cache
def _word_attributes(word: str) -> tuple[str, ...]:
    """Everything that depends on one word alone: made once per distinct word."""
    lengths = range(1, min(len(word), 5) + 1)
    tests = {"digit": DIGIT.search(word), "hyphen": "-" in word}
    return (
        f"lower={word.lower()}",
        *(f"prefix{k}={word[:k]}" for k in lengths),
        *(f"suffix{k}={word[-k:]}" for k in lengths),
        f"shape={_shape(word)}",
        *(name for name, found in tests.items() if found),
    )


def words(columns: Sentence) -> Items:
    """The attributes of partwise's template set ``words``, for tagging parts of speech; only the first column is looked at."""
    w = columns[0]
    n = len(w)
    shapes = [_shape(word) for word in w]
    two = [f"{a}|{b}" for a, b in zip(w, w[1:], strict=False)]
    two_shapes = [f"{a}|{b}" for a, b in zip(shapes, shapes[1:], strict=False)]
    ends = [word[-3:] if len(word) >= 3 else None for word in w]
    found = [_placed(f"w[{t}]", w, t, n) for t in (-2, -1, 0, 1, 2)]
    found += [_placed(f"w[{t}]|w[{t + 1}]", two, t, n) for t in (-1, 0)]
    found.append(_placed("shape[-1]|shape[0]", two_shapes, -1, n))
    items = _transposed(found, 2)
    for i, word in enumerate(w):
        items[i] += _word_attributes(word)
        if i and ends[i - 1]:
            items[i].append(f"suffix3[-1]={ends[i - 1]}")
        if i < n - 1 and ends[i + 1]:
            items[i].append(f"suffix3[1]={ends[i + 1]}")
    items[0].append(f"__BOS__|shape={shapes[0]}")
    return items


EXTRACTORS: dict[str, Callable[[Sentence], Items]] = {"chunking": chunking, "words": words}
