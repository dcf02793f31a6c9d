"""Dependency trees as text, for terminals, and as SVG, for pages: words in a row and arcs above them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from xml.sax.saxutils import escape

import numpy as np

UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
SHAPES = "  ││ ┘┐┤ └┌├─┴┬┼"  # by the ways that lines leave a cell
WIDE, HIGH, MARGIN = 9, 26, 14  # pixels: of a character, between two levels of arcs, around
MARKED = "#c44e52"


def as_text(words: Sequence[str], heads: Sequence[int], relations: Sequence[str] | None = None) -> str:
    """One word a line, in the order of the sentence, with lines that lead from each word to its head.

    Examples
    --------
    >>> print(as_text(["They", "buy", "books"], [2, 0, 2], ["nsubj", "root", "obj"]))
    ┌─> They   nsubj
    ├── buy    root
    └─> books  obj
    """
    n = len(words)
    check(words, heads, relations)
    arcs = sorted(((min(m, h), max(m, h), m) for m, h in enumerate(heads, 1) if h > 0), key=lambda arc: arc[1] - arc[0])
    lanes: list[list[tuple[int, int, int]]] = []
    for arc in arcs:  # short arcs nearest to the words
        lane = next((k for k, others in enumerate(lanes) if all(not overlap(arc, other) for other in others)), len(lanes))
        if lane == len(lanes):
            lanes.append([])
        lanes[lane].append(arc)
    width = 2 * len(lanes) + 1
    grid = np.zeros((n + 1, width), int)  # which ways lines leave each cell
    for lane, own in enumerate(lanes):
        column = width - 3 - 2 * lane
        for low, high, _ in own:
            grid[low, column] |= DOWN
            grid[low + 1 : high, column] |= UP | DOWN
            grid[high, column] |= UP
            for end in (low, high):
                grid[end, column] |= RIGHT
                grid[end, column + 1 :] |= LEFT | RIGHT
    shapes = np.array(list(SHAPES), "U1")[grid]
    for m, h in enumerate(heads, 1):
        if h > 0:
            shapes[m, width - 1] = ">"
    longest = max(map(len, words), default=0)
    lines = []
    for k, form in enumerate(words, 1):
        relation = "" if relations is None else f"  {relations[k - 1]}"
        lines.append(f"{''.join(shapes[k])} {form.ljust(longest)}{relation}".rstrip())
    return "\n".join(lines)


def overlap(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    """Whether two arcs need lanes of their own: they may meet at an end."""
    return a[0] < b[1] and b[0] < a[1] or a[:2] == b[:2]


def as_svg(
    words: Sequence[str], heads: Sequence[int], relations: Sequence[str] | None = None, marked: Collection[int] = ()
) -> str:
    """An SVG picture: the words in a row, an arc from each head to its words with the relation on it, the root from above.

    Arcs to the words numbered `marked`, from 1, are red.
    """
    n = len(words)
    check(words, heads, relations)
    names = [""] * n if relations is None else list(relations)
    widths = [WIDE * max(len(form), len(name) + 1, 3) for form, name in zip(words, names, strict=True)]
    centres = [MARGIN + sum(widths[:k]) + widths[k] / 2 for k in range(n)]
    levels = levels_of(heads)
    top = max(levels, default=1) + 1
    base = MARGIN + HIGH * top
    width, height = sum(widths) + 2 * MARGIN, base + 34
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        'font-family="sans-serif" font-size="13">',
        '<g fill="none" stroke="#555" stroke-width="1.2">',
    ]
    labels = []
    for m, h in enumerate(heads, 1):
        x, colour = centres[m - 1], f' stroke="{MARKED}"' if m in marked else ""
        if h == 0:
            out.append(f'<path{colour} d="M{x:.1f},{MARGIN} L{x:.1f},{base}"/>')
            labels.append((x + 3, MARGIN + 9.0, names[m - 1], "start"))
        else:
            start = centres[h - 1] + (5 if m > h else -5)
            y = base - HIGH * levels[m - 1]
            out.append(f'<path{colour} d="M{start:.1f},{base} C{start:.1f},{y:.1f} {x:.1f},{y:.1f} {x:.1f},{base}"/>')
            labels.append(((start + x) / 2, base - 0.75 * HIGH * levels[m - 1] - 3, names[m - 1], "middle"))
        out.append(f'<path{colour} d="M{x - 3:.1f},{base - 6} L{x:.1f},{base} L{x + 3:.1f},{base - 6}"/>')
    out.append('</g><g fill="#4c72b0" font-size="10">')
    out += [f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{side}">{escape(name)}</text>' for x, y, name, side in labels if name]
    out.append('</g><g fill="#222" text-anchor="middle">')
    out += [f'<text x="{x:.1f}" y="{base + 18}">{escape(form)}</text>' for x, form in zip(centres, words, strict=True)]
    return "\n".join([*out, "</g></svg>", ""])


def levels_of(heads: Sequence[int]) -> list[int]:
    """How high the arc to each word has to be drawn: one more than those under it."""
    arcs = sorted((abs(m - h), m, h) for m, h in enumerate(heads, 1) if h > 0)
    levels = [1] * len(heads)
    done: list[tuple[int, int, int]] = []
    for _, m, h in arcs:
        low, high = min(m, h), max(m, h)
        levels[m - 1] = 1 + max((level for a, b, level in done if a < high and low < b), default=0)
        done.append((low, high, levels[m - 1]))
    return levels


def check(words: Sequence[str], heads: Sequence[int], relations: Sequence[str] | None) -> None:
    """Raise unless there is a head, in the sentence, and a relation for each word."""
    if len(heads) != len(words) or (relations is not None and len(relations) != len(words)):
        raise ValueError(f"There must be a head, and a relation, for each of {len(words)} words. Got {len(heads)} heads.")
    wrong = [h for h in heads if not 0 <= h <= len(words)]
    if wrong:
        raise ValueError(f"Heads must be numbers from 0 to {len(words)}. Got {wrong[0]}.")
