"""Several SVG pictures on one page."""

from __future__ import annotations

import re
from collections.abc import Iterable


def one_below_other(pictures: Iterable[str]) -> str:
    """One SVG picture with these in it, each below the one before."""
    top, widest, parts = 0, 0, []
    for picture in pictures:
        width, height = (int(re.search(rf'{name}="(\d+)"', picture)[1]) for name in ("width", "height"))  # type: ignore[index]
        parts.append(picture.replace("<svg ", f'<svg y="{top}" ', 1))
        top, widest = top + height, max(widest, width)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{widest}" height="{top}">\n'
    return head + "".join(parts) + "</svg>\n"
