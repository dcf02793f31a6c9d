"""Labels of pictures, drawn: a square for each pixel, a colour for each label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

PIXEL = 6  # of a pixel's square
COLOURS = ("#d9d9d9", "#d65f4f", "#4c78c8", "#5fae57", "#e3bd3b", "#8c5fb0", "#3fb6b6", "#a0744c", "#e08fb4", "#555555")


def as_svg(panels: Sequence[Sequence[Sequence[Any]]], labels: Sequence[Any]) -> str:
    """One SVG picture of one or more labellings of one size, side by side: rows of labels each."""
    colour = {label: COLOURS[k % len(COLOURS)] for k, label in enumerate(labels)}
    height, width = len(panels[0]) * PIXEL, (len(panels[0][0]) if len(panels[0]) else 0) * PIXEL
    squares = []
    for k, panel in enumerate(panels):
        for r, row in enumerate(panel):
            start = 0
            for c in range(1, len(row) + 1):  # one rectangle for a run of pixels with one label
                if c == len(row) or row[c] != row[start]:
                    x, fill = k * (width + PIXEL) + start * PIXEL, colour.get(row[start], "white")
                    shape = f'x="{x}" y="{r * PIXEL}" width="{(c - start) * PIXEL}" height="{PIXEL}"'
                    squares.append(f'<rect {shape} fill="{fill}"/>')
                    start = c
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{len(panels) * (width + PIXEL)}" height="{height + PIXEL}">'
    return head + "".join(squares) + "</svg>\n"


def legend(labels: Sequence[Any]) -> str:
    """One SVG picture: which colour stands for which label."""
    parts, side, line = [], 2 * PIXEL, 3 * PIXEL
    for k, label in enumerate(labels):
        parts.append(f'<rect x="0" y="{k * line}" width="{side}" height="{side}" fill="{COLOURS[k % len(COLOURS)]}"/>')
        parts.append(f'<text x="{side + PIXEL}" y="{k * line + side - 2}" fill="#222">{escape(str(label))}</text>')
    width = side + 2 * PIXEL + 8 * max(len(str(label)) for label in labels)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{line * len(labels)}" font-size="12">'
    return head + "".join(parts) + "</svg>\n"
