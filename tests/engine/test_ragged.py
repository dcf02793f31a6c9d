"""Things of different sizes laid end to end, against plain lists."""

import numpy as np

from partwise.engine.ragged import taken, totals


def test_taking_and_adding_up_are_those_of_lists():
    rng = np.random.default_rng(0)
    for _ in range(50):
        starts = np.concatenate([[0], np.cumsum(rng.integers(0, 4, rng.integers(0, 6)))])
        values = rng.integers(0, 9, starts[-1])
        lists = [values[a:b].tolist() for a, b in zip(starts[:-1], starts[1:], strict=True)]
        which = rng.integers(0, len(lists), 5 if lists else 0)
        own, at = taken(starts, which)
        assert [values[at][a:b].tolist() for a, b in zip(own[:-1], own[1:], strict=True)] == [lists[i] for i in which]
        assert totals(values, starts).tolist() == [sum(one) for one in lists]
