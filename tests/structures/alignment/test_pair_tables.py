"""Templates of pairs and gaps, and the tables they make."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import kernels
from partwise.structures import alignment_problem
from partwise.structures.alignment.pair_tables import PROTEIN_PROPERTIES, PROTEINS, pair_tables


@pytest.mark.parametrize(
    ("templates", "message"),
    [
        (["a.letter"], "expected both of a and b"),
        (["a.letter|b.colour", "g"], "a and b must have the same columns"),
        (["a.colour|b.colour", "g"], "There is no column 'colour'"),
        (["a.letter|b.letter"], "and one of gaps"),
        (["a.letter[99]|b.letter[99]", "g"], "cannot read 'a.letter\\[99\\]'"),
        (["h.letter", "g"], "cannot read 'h.letter'"),
        (["a.p|b.p", "g"], "no value for any letter"),
    ],
)
def test_bad_templates_are_refused(templates, message):
    one = (np.zeros(2, int), np.array([0, 2]))
    with pytest.raises(ValueError, match=message):
        pair_tables(one, one, "ab", templates, {"p": {"z": 1}})


def test_properties_of_proteins():
    """Windows end with the sequence, neighbours outside it have a value of their own."""
    letters = "ACDEFGHIKLMNPQRSTVWYX"
    codes, starts = np.array([letters.index(c) for c in "IIIIIIIDDDDDDDW"]), np.array([0, 14, 15])
    tables = pair_tables((codes, starts), (codes, starts), letters, PROTEINS, PROTEIN_PROPERTIES)
    hydropathy = tables.x[5].tolist()
    assert hydropathy[0] == max(hydropathy) and hydropathy[13] == min(hydropathy)
    assert hydropathy[:14] == sorted(hydropathy[:14], reverse=True)
    assert tables.x[1, 0] == len(letters) and tables.x[1, 14] == len(letters) and tables.x[1, 1] == codes[0]
    assert tables.n_features > 3 * 21 * 21
    alone = (codes[14:], np.array([0, 1]))
    assert pair_tables(alone, alone, letters, PROTEINS, PROTEIN_PROPERTIES).x[5, 0] == hydropathy[14]


def test_sequences_of_different_kinds_have_gaps_of_their_own():
    one = (np.zeros(1, int), np.array([0, 1]))
    for symmetric in (True, False):
        problem = alignment_problem(pair_tables(one, one, "a", symmetric=symmetric), [(1, 1)])
        theta = np.zeros(kernels.n_parts(problem, 0))
        kernels.score(problem, 0, np.arange(kernels.n_weights(problem), dtype=float) ** 2, theta)
        assert (theta[1:5] == theta[5:]).all() == symmetric
