from __future__ import annotations

import numpy as np
import pytest

from partwise.engine.places import Places, along_tree


def test_the_tree_is_fixed():
    said = []

    def add(a, b):
        said.append((a, b))
        return f"({a}{b})"

    assert along_tree(0, 5, lambda a, b: str(a), add) == "((01)(2(34)))"
    assert said == [("0", "1"), ("3", "4"), ("2", "(34)"), ("(01)", "(2(34))")]


@pytest.mark.parametrize("n", range(1, 20))
@pytest.mark.parametrize("few", range(1, 7))
def test_ranges_that_are_summed_as_a_whole_change_nothing(n, few):
    def one(k):
        return along_tree(0, k, lambda a, b: f"<{a}>", "({} {})".format)

    def some(a, b):  # the sum of a range that knows nothing of the rest
        assert b - a <= few
        return along_tree(0, b - a, lambda c, d: f"<{a + c}>", "({} {})".format)

    assert along_tree(0, n, some, "({} {})".format, few) == one(n)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_sums_do_not_depend_on_who_works(n_jobs):
    numbers = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.random.default_rng(1).integers(-8, 8, 1000)
    places = Places(numbers, [0, 10, 300, 301, 990, 1000], lambda a, b: numbers[a:b], n_jobs)
    assert places.parts_of(numbers.copy()) is None
    parts = places.parts_of(numbers)
    total = parts.total(lambda a, b: a + b, lambda part, scale: float(np.sum(part)) * scale, 2.0)
    leaves = [2.0 * float(np.sum(numbers[a:b])) for a, b in zip(places.edges[:-1], places.edges[1:], strict=True)]
    assert total == (leaves[0] + leaves[1]) + (leaves[2] + (leaves[3] + leaves[4]))
    doubled = parts.then(lambda part, piece: part + piece, pieces=places.cut(numbers))
    assert np.array_equal(np.concatenate(doubled.each(lambda part: part)), 2.0 * numbers)
