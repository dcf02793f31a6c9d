"""Packing pairs: partners, costs, memory, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import kernels
from partwise.structures import alignment_problem
from small_alignments import one_letter


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"partners": [0, 5, -1]}, "pair 0, place 1: its partner 5 is no place of a second sequence of 2"),
        ({"partners": [1, 0, -1]}, "pair 0, place 1: its partner 0 is not after that of the place before"),
        ({"partners": [0]}, "a partner for each of 3 places"),
        ({"partners": [0, 1, -7]}, "its partner -7 is no place"),
        ({"counts": [True]}, "`counts` must have an entry for each of 3 places"),
        ({"allowed": [True]}, "`allowed` must have one entry per part"),
        ({"precision_weight": 2.0}, "'precision_weight' parameter must be a float in the range"),
        ({"cost_scale": -1.0}, "'cost_scale' parameter must be 'pairs' or a positive float"),
        ({"lengths": [(4, 2)]}, "have 32 parts, but there are 26 rows"),
        ({"memory": 1e-7}, "pair 0: sequences of 3 and 2 places need about 2.9e-07 GB, more than the 1e-07 GB allowed. Cut them"),
    ],
)
def test_bad_pairs_are_refused(change, message):
    settings = {"lengths": [(3, 2)], "partners": [0, 1, -1], **change}
    with pytest.raises(ValueError, match=message):
        alignment_problem(np.ones((26, 1)), settings.pop("lengths"), settings.pop("partners"), **settings)


def test_a_pair_of_two_thousand_places_fits():
    lengths = [(2000, 2000)]
    assert kernels.n_parts(alignment_problem(one_letter(lengths), lengths), 0) == 2000 * 2000 + 4 * 4000
    with pytest.raises(ValueError, match="sequences of 20,000 and 20,000 places need about 19 GB"):
        alignment_problem(one_letter([(20000, 20000)]), [(20000, 20000)])


def test_cost_is_recall_and_precision():
    problem = alignment_problem(
        one_letter([(3, 3)]), [(3, 3)], [0, 1, -1], counts=[True, False, True], precision_weight=0.25, cost_scale=8.0
    )
    cost = [kernels.cost(problem, 0, np.array(y, np.int32)) for y in ([0, 1, -1], [-1, 1, -1], [1, 2, -1], [0, -1, 2])]
    assert cost == [0.0, 6.0, 8.0, 2.0]  # missed, missed and wrong, wrong; the second place does not count
