"""Constituency trees drawn: as text, one node a line, and as SVG, the words in a row below their tree."""

from __future__ import annotations

from xml.sax.saxutils import escape

from partwise.tasks.constituency.files import Constituent

LETTER, LEVEL, GAP, MARGIN = 8, 44, 14, 12  # pixels: a letter, between levels, between words, around


def as_text(tree: Constituent) -> str:
    """Lines go from a label down to what is below it; words stand beside their tags."""
    lines: list[str] = []

    def visit(node: Constituent, before: str, here: str) -> None:
        if node.is_word:
            lines.append(f"{before}{here}{node.label} {node.children[0]}" if node.label else f"{before}{here}{node.children[0]}")
            return
        lines.append(before + here + node.label)
        if here:
            before += "│  " if here.startswith("├") else "   "
        for k, child in enumerate(node.children):
            visit(child, before, "└─ " if k == len(node.children) - 1 else "├─ ")

    visit(tree, "", "")
    return "\n".join(lines)


def as_svg(tree: Constituent) -> str:
    """An SVG picture: labels above the middle of their children, words with their tags on one line at the foot."""
    marks: list[tuple[float, int, str, bool]] = []  # x, level, text, whether it is a word
    strokes: list[tuple[float, int, float, int]] = []
    right = float(MARGIN)

    def depth(node: Constituent) -> int:
        return 0 if node.is_word else 1 + max(map(depth, node.children), default=0)

    foot = depth(tree)

    def visit(node: Constituent, level: int) -> tuple[float, int]:
        nonlocal right
        if node.is_word:
            room = LETTER * max(len(node.children[0]), len(node.label), 1)
            x, right, level = right + room / 2, right + room + GAP, foot
            marks.append((x, level, node.label, False))
            marks.append((x, level + 1, node.children[0], True))
            return x, level
        below = [visit(child, level + 1) for child in node.children]
        x = (below[0][0] + below[-1][0]) / 2 if below else right + LETTER
        marks.append((x, level, node.label, False))
        strokes.extend((x, level, to, down) for to, down in below)
        return x, level

    visit(tree, 0)
    width, height = int(right - GAP + MARGIN), MARGIN * 2 + LEVEL * foot + LEVEL // 2 + 8
    top = MARGIN + 10

    def y(level: int) -> float:
        return top + LEVEL * level if level <= foot else top + LEVEL * foot + LEVEL / 2 - 4

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="13">'
    ]
    parts += [
        f'<line x1="{x:.1f}" y1="{y(a) + 4:.1f}" x2="{to:.1f}" y2="{y(b) - 13:.1f}" stroke="#8c8c8c"/>' for x, a, to, b in strokes
    ]
    for x, level, text, word in marks:
        style = ' font-style="italic"' if word else ' fill="#4c72b0"'
        parts.append(f'<text x="{x:.1f}" y="{y(level):.1f}" text-anchor="middle"{style}>{escape(text)}</text>')
    return "\n".join([*parts, "</svg>", ""])
