"""Wrong spans planted on purpose: what annotators of chunks and entities get wrong (see `partwise.datasets.planted`)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise.text.chunk_schemes import OUTSIDE, convert, is_chunking, label_table, read_boundaries, recognise_coded
from partwise.text.label_codes import Coded

# how far the beginning and the end of a span move: one of them, or both the same way
MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (1, 1)])


class Span(NamedTuple):
    """Tokens begin <= t < end of a sentence."""

    begin: int
    end: int
    kind: str


class Chunks:
    """Sentences whose labels are chunk tags, to be changed span by span."""

    def __init__(self, codes: np.ndarray, starts: np.ndarray, certain: np.ndarray, names: np.ndarray):
        if not is_chunking(names):
            odd = next(name for name in names.tolist() if not is_chunking([name]))
            raise ValueError(f"Errors of spans need labels like 'B-NP', 'I-NP' and 'O'. Got {odd!r}.")
        self.codes, self.starts, self.names = codes, starts, names.tolist()
        self.number = {name: k for k, name in enumerate(self.names)}
        self.scheme = recognise_coded(codes, starts, self.names) or "iob2"
        table = label_table(self.names)
        found = read_boundaries(Coded(codes, starts), table)
        self.types = table.types
        begins, ends = np.flatnonzero(found.begins), np.flatnonzero(found.ends)
        sentence = np.searchsorted(starts, begins, side="right") - 1
        known = np.array([bool(certain[a:b].all()) for a, b in zip(starts[:-1], starts[1:], strict=True)], np.bool_)
        self.spans: list[list[Span]] = [[] for _ in range(len(starts) - 1)]
        self.places: list[tuple[int, int]] = []  # sentence and number of each span that may be changed
        for i, begin, end in zip(sentence.tolist(), begins.tolist(), ends.tolist(), strict=True):
            if known[i]:  # a sentence with unknown labels stays
                self.places.append((i, len(self.spans[i])))
                first = int(starts[i])
                self.spans[i].append(Span(begin - first, end + 1 - first, self.types[found.kind[begin]]))

    def written(self, i: int, spans: list[Span]) -> list[str]:
        """The labels of sentence i with these spans."""
        labels = [OUTSIDE] * int(self.starts[i + 1] - self.starts[i])
        for begin, end, kind in spans:
            for t in range(begin, end):
                labels[t] = ("B" if t == begin else "I") + (f"-{kind}" if kind else "")
        return convert([labels], self.scheme, "iob2")[0]

    def replace(self, i: int, spans: list[Span]) -> bool:
        """Give sentence i other spans; False where that takes a label there is not. Only what they change is changed."""
        old, new = self.written(i, self.spans[i]), self.written(i, spans)
        if any(label not in self.number for label in new) or old == new:
            return False
        for t, (before, after) in enumerate(zip(old, new, strict=True)):
            if before != after:
                self.codes[self.starts[i] + t] = self.number[after]
        self.spans[i] = spans
        return True

    def plant(self, fraction: float, rng: Any, change: Any) -> None:
        """Change a fraction of the spans: ``change(sentence, number of the span)`` says whether it could."""
        wanted = round(fraction * len(self.places))
        for k in rng.permutation(len(self.places)).tolist():
            if wanted <= 0:
                break
            wanted -= bool(change(*self.places[k]))


def move_boundaries(
    codes: np.ndarray, starts: np.ndarray, certain: np.ndarray, fraction: float, names: np.ndarray, rng: Any
) -> None:
    """Move the beginning, the end or both of a fraction of the spans by one token; neighbours give way."""
    chunks = Chunks(codes, starts, certain, names)

    def change(i: int, k: int) -> bool:
        n = int(starts[i + 1] - starts[i])
        for begin_by, end_by in rng.permutation(MOVES).tolist():
            spans = list(chunks.spans[i])
            begin, end, kind = spans[k].begin + begin_by, spans[k].end + end_by, spans[k].kind
            if begin < 0 or end > n or begin >= end:
                continue
            spans[k] = Span(begin, end, kind)
            if k and spans[k - 1].end > begin:
                spans[k - 1] = spans[k - 1]._replace(end=begin)
            if k + 1 < len(spans) and spans[k + 1].begin < end:
                spans[k + 1] = spans[k + 1]._replace(begin=end)
            if all(span.begin < span.end for span in spans) and chunks.replace(i, spans):
                return True
        return False

    chunks.plant(fraction, rng, change)


def change_types(
    codes: np.ndarray, starts: np.ndarray, certain: np.ndarray, fraction: float, names: np.ndarray, rng: Any
) -> None:
    """Another type, drawn uniformly, for a fraction of the spans."""
    chunks = Chunks(codes, starts, certain, names)

    def change(i: int, k: int) -> bool:
        for kind in rng.permutation(chunks.types).tolist():
            spans = list(chunks.spans[i])
            if kind != spans[k].kind:
                spans[k] = spans[k]._replace(kind=kind)
                if chunks.replace(i, spans):
                    return True
        return False

    chunks.plant(fraction, rng, change)
