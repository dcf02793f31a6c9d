"""Arc diagrams."""

from __future__ import annotations

import numpy as np
import pytest

from partwise.tasks.folding.drawing import as_svg, draw
from partwise.tasks.folding.files import read_dot_bracket


def test_pictures():
    partners = read_dot_bracket("((...))")[0]
    picture = as_svg("GGAAACC", partners, truth=read_dot_bracket("(.....)")[0], probabilities=np.eye(7), title="<a>")
    assert picture.startswith("<svg") and picture.count("<path") == 3 and "&lt;a&gt;" in picture
    with pytest.raises(ValueError, match="for each of 3 bases"):
        as_svg("GGA", partners)
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.add_subplot()
    draw(axes, "GGAAACC", partners, title="one")
    assert len(axes.patches) == 2
