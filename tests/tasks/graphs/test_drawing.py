"""Labels of pictures, drawn."""

from __future__ import annotations

from partwise.tasks.graphs.drawing import COLOURS, PIXEL, as_svg, legend


def test_runs_of_one_label_are_one_rectangle():
    picture = as_svg([[["a", "a", "b"], ["b", "b", "b"]]], ["a", "b"])
    assert picture.count("<rect") == 3 and f'width="{2 * PIXEL}"' in picture
    assert picture.count(COLOURS[0]) == 1 and picture.count(COLOURS[1]) == 2
    beside = as_svg([[[1, 1]], [[1, None]]], [1])
    assert beside.count("<rect") == 3 and "white" in beside  # what is no label has no colour
    assert as_svg([[]], [1]).count("<rect") == 0


def test_the_legend_names_the_colours():
    picture = legend(["a", "<b>"])
    assert picture.count("<rect") == 2 and COLOURS[1] in picture and "&lt;b&gt;" in picture and "<b>" not in picture
