"""Attributes as strings, as one would build them for CRFsuite; templates do the same without strings (`partwise.features`)."""

from __future__ import annotations

from collections.abc import Sequence

# The templates of CRFsuite's chunking tutorial: (column, offset) pairs joined into one attribute.
_W, _POS = 0, 1
CHUNKING_TEMPLATES: tuple[tuple[tuple[int, int], ...], ...] = (
    *(((_W, t),) for t in (-2, -1, 0, 1, 2)),
    ((_W, -1), (_W, 0)),
    ((_W, 0), (_W, 1)),
    *(((_POS, t),) for t in (-2, -1, 0, 1, 2)),
    *(((_POS, t), (_POS, t + 1)) for t in (-2, -1, 0, 1)),
    *(((_POS, t), (_POS, t + 1), (_POS, t + 2)) for t in (-2, -1, 0)),
)
_NAMES = tuple("|".join(f"{('w', 'pos')[c]}[{t}]" for c, t in template) + "=" for template in CHUNKING_TEMPLATES)


def chunking_attributes(sentence: Sequence[Sequence[str]]) -> list[list[str]]:
    """Attributes of every token by the 19 templates of CRFsuite's chunking tutorial, with ``__BOS__`` and ``__EOS__``.

    Words in a window of five, two word pairs, part-of-speech tags in the same window, and their pairs and triples. A template
    that reaches outside the sentence gives no attribute.

    Parameters
    ----------
    sentence : sequence of tokens
        The first column is the word, the second its part-of-speech tag; further columns are not looked at.

    Returns
    -------
    list of lists of str

    References
    ----------
    Okazaki (2007), CRFsuite, tutorial "Chunking".

    Examples
    --------
    >>> chunking_attributes([("He", "PRP"), ("runs", "VBZ")])[1][:3]
    ['w[-1]=He', 'w[0]=runs', 'w[-1]|w[0]=He|runs']
    """
    n = len(sentence)
    result = []
    for i in range(n):
        attributes = []
        for name, template in zip(_NAMES, CHUNKING_TEMPLATES, strict=True):
            if 0 <= i + template[0][1] and i + template[-1][1] < n:
                attributes.append(name + "|".join(sentence[i + t][c] for c, t in template))
        if i == 0:
            attributes.append("__BOS__")
        if i == n - 1:
            attributes.append("__EOS__")
        result.append(attributes)
    return result
