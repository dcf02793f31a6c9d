"""Alignments as text: two rows, and a line between them that marks equal letters."""

from __future__ import annotations

from collections.abc import Sequence

from partwise.tasks.alignment.files import aligned_rows

SAME, OTHER, NONE = "|", ".", " "


def as_text(
    first: Sequence[str], second: Sequence[str], partners: Sequence[int], names: Sequence[str] = ("", ""), width: int = 60
) -> str:
    """Blocks of `width` columns, with the numbers of the first and last place of each row, from 1.

    Examples
    --------
    >>> print(as_text("HEAGAWGHEE", "PAWHEAE", [-1, -1, 0, -1, 1, 2, -1, 3, 4, 6]))
     1 HEAGAWGHE-E 10
         . || || |
     1 --P-AW-HEAE 7
    """
    rows = aligned_rows(first, second, partners)
    if not all(len(letter) == 1 for row in rows for letter in row):  # letters of several characters get blanks between them
        wide = [max(len(a), len(b)) for a, b in zip(*rows, strict=True)]
        cells = [[letter.ljust(n + 1) for letter, n in zip(row, wide, strict=True)] for row in rows]
    else:
        cells = [list(row) for row in rows]
    middle = [
        (NONE if "-" in (a, b) else SAME if a == b else OTHER).ljust(len(cell))
        for a, b, cell in zip(*rows, cells[0], strict=True)
    ]
    label = max(map(len, names)) and max(map(len, names)) + 1
    digits = len(str(max(len(first), len(second), 1)))
    blocks, done = [], [0, 0]
    for start in range(0, max(len(middle), 1), width):
        stop = start + width
        lines = []
        for k in range(2):
            here = sum(letter != "-" for letter in rows[k][start:stop])
            begin, done[k] = done[k] + (1 if here else 0), done[k] + here
            lines.append(f"{names[k]:{label}}{begin:{digits}} {''.join(cells[k][start:stop])} {done[k]}")
        mark = " " * (label + digits + 1) + "".join(middle[start:stop])
        blocks.append("\n".join([lines[0], mark.rstrip(), lines[1]]))
    return "\n\n".join(blocks)
