"""Constants chosen from grids that grow."""

import pytest

from partwise.experiments.choosing import choose_inside


def test_grows_only_where_the_best_lies_at_an_end():
    asked = []

    def judge(best):
        asked.clear()
        return lambda C: asked.append(C) or -abs(C - best)

    assert choose_inside(judge(0.1), (0.01, 0.1, 1.0)) == 0.1 and asked == [0.01, 0.1, 1.0]
    assert choose_inside(judge(100.0), (0.1, 1.0, 10.0)) == 100.0 and asked == [0.1, 1.0, 10.0, 100.0, 1000.0]
    assert choose_inside(judge(0.0), (0.1, 1.0), most=2) == 0.001 and asked == [0.1, 1.0, 0.01, 0.001]
    assert choose_inside(lambda C: 0.0, (1.0, 3.0)) == 1.0  # all alike: the smallest, and nothing more is tried


def test_a_grid_that_cannot_grow_is_refused():
    with pytest.raises(ValueError, match="two positive values"):
        choose_inside(float, (1.0,))
