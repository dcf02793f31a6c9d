"""Planted structures, alignments and relevance: what changed is told, and what comes back can be right."""

from __future__ import annotations

import numpy as np

from partwise.datasets.planted_parts import plant_shifts, plant_shuffles, plant_structures
from partwise.tasks.folding.files import read_dot_bracket


def test_structures_of_others_fit_and_are_told():
    structures = ["((....))..", "..((....))", "(((....)))", "..........", "(......)", "((((....))))"]
    noisy = plant_structures(structures, 0.5, seed=3)
    assert noisy.changed.sum() == 3 and [a != b for a, b in zip(noisy.y, structures, strict=True)] == noisy.changed.tolist()
    before, after = (np.concatenate([read_dot_bracket(text)[0] for text in y]) for y in (structures, noisy.y))
    np.testing.assert_array_equal(noisy.tokens, before != after)
    assert plant_structures(structures, 0.5, seed=3).y == noisy.y and plant_structures(structures, 0.0).y == structures


def test_shifted_alignments_still_rise():
    rng = np.random.default_rng(0)
    partners = [np.sort(rng.choice(40, 30, replace=False)).astype(np.int32) for _ in range(50)]
    partners[0][:] = -1
    noisy = plant_shifts(partners, [40] * 50, 0.5, seed=1)
    assert 20 <= noisy.changed.sum() <= 25 and not noisy.changed[0]
    for y in noisy.y:
        matched = y[y >= 0]
        assert (np.diff(matched) > 0).all() and (matched < 40).all()
    wrong = np.concatenate([a != b for a, b in zip(noisy.y, partners, strict=True)])
    np.testing.assert_array_equal(noisy.tokens, wrong)


def test_shuffled_groups_keep_their_labels():
    y, groups = np.array([2, 0, 1, 0, 2, 1]), np.array(["b", "a", "b", "a", "b", "a"])
    noisy = plant_shuffles(y, groups, 0.5, seed=2)
    for name in "ab":
        assert sorted(noisy.y[groups == name]) == sorted(y[groups == name])
    assert noisy.changed.shape == (2,) and noisy.changed.sum() <= 1
    np.testing.assert_array_equal(noisy.tokens, noisy.y != y)
