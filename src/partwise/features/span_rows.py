"""Features of spans of words: those of the arc from the first word of a span to its last (`arc_rows`), under other names.

A template names cells of the first word (``f``) and of the last (``l``), with an offset where a neighbour is meant:
``f.tag[-1]`` is the tag before the span, ``l.tag[1]`` the one after it. Every template gives its feature twice, alone and
together with the length of the span (1, 2, 3, 4, 5, 6-11, more). ``b`` stands for the words between the two, one feature for
each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from partwise.features.arc_rows import ArcRows, CodedColumns, arc_rows
from partwise.features.rows import take_rows

SPANS = (
    "f.form", "l.form", "f.tag", "l.tag", "f.form[-1]", "l.form[1]", "f.tag[-1]", "l.tag[1]", "f.suffix", "l.suffix",
    "f.form|l.form", "f.tag|l.tag", "f.form|l.tag", "f.tag|l.form", "f.tag[-1]|f.tag", "l.tag|l.tag[1]",
    "f.form[-1]|f.form", "l.form|l.form[1]", "f.tag[-1]|l.tag[1]", "f.form[-1]|l.form[1]", "f.suffix|l.suffix",
    "f.tag[-1]|f.tag|l.tag|l.tag[1]", "f.tag|f.tag[1]|l.tag[-1]|l.tag", "f.tag|l.tag|l.tag[1]", "f.tag[-1]|f.tag|l.tag",
    "f.form[-1]|f.form|f.form[1]", "f.shape", "f.form[-1]|f.tag|l.tag", "f.form[-1]|f.form|l.form",
)  # fmt: skip

#: without a grammar, which tells what goes with what: more of what is at both ends, also by the first two letters of tags
#: (NNS and NNP are NN, say), and which words and tags are within
FREE_SPANS = (
    *SPANS,
    "f.tag[-2]|f.tag[-1]|f.tag", "f.tag|f.tag[1]|f.tag[2]", "l.tag[-2]|l.tag[-1]|l.tag", "l.tag|l.tag[1]|l.tag[2]",
    "f.tag|f.tag[1]", "l.tag[-1]|l.tag",
    "f.coarse|l.coarse", "f.coarse[-1]|f.coarse", "l.coarse|l.coarse[1]", "f.coarse[-1]|l.coarse[1]",
    "f.coarse[-1]|f.coarse|l.coarse|l.coarse[1]", "f.coarse|f.coarse[1]|l.coarse[-1]|l.coarse",
    "f.coarse|l.coarse|l.coarse[1]", "f.coarse[-1]|f.coarse|l.coarse", "f.coarse|f.coarse[1]", "l.coarse[-1]|l.coarse",
    "f.coarse[-2]|f.coarse[-1]|f.coarse", "f.coarse|f.coarse[1]|f.coarse[2]",
    "l.coarse[-2]|l.coarse[-1]|l.coarse", "l.coarse|l.coarse[1]|l.coarse[2]",
    "f.coarse|f.coarse[1]|l.coarse", "f.coarse|l.coarse[-1]|l.coarse",
    "f.coarse|f.coarse[1]|f.coarse[2]|l.coarse", "f.coarse|l.coarse[-2]|l.coarse[-1]|l.coarse",
    "f.coarse|f.coarse[1]|f.coarse[2]|l.coarse[-2]|l.coarse[-1]|l.coarse",
    "f.form|f.form[1]", "l.form[-1]|l.form", "f.form|f.coarse[1]", "l.coarse[-1]|l.form",
    "f.form|l.tag[1]", "f.form[-1]|l.tag[1]", "f.tag[-1]|l.form[1]", "b.tag", "b.form",
)  # fmt: skip


def span_rows(columns: CodedColumns, names: Sequence[str], templates: Sequence[str] = SPANS, bits: int = 16) -> ArcRows:
    """All spans of all sentences, by first word and then by last, in the order that `partwise.structures.constituency` wants.

    Parameters
    ----------
    columns : CodedColumns
        The words.
    names : sequence of str
        Names of the columns; templates that name others are left out.
    templates : sequence of str
    bits : int
        There are 2^bits features.
    """
    arcs = arc_rows(columns, names, as_arc_templates(templates), bits)
    which, first = [np.zeros(0, np.int64)], 0
    for n in np.diff(columns.starts).tolist():
        begin, last = np.triu_indices(n)
        which.append(first + last * (n + 1) + begin + 1)
        first += n * (n + 1)
    return take_rows(arcs, np.concatenate(which))


def as_arc_templates(templates: Sequence[str]) -> list[str]:
    """The same templates as `arcs` writes them."""
    for text in templates:
        for part in text.split("|"):
            if not re.match(r"\s*[flb]\.", part):
                raise ValueError(f"span template {text!r}: cannot read {part!r}. Expected f.column, l.column or b.column.")
    return [re.sub(r"\b([fl])\.", lambda m: "hm"["fl".index(m[1])] + ".", text) for text in templates]
