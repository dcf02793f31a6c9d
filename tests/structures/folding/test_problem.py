"""Packing RNA: letters, structures that are none, pairs that no model may find."""

from __future__ import annotations

import numpy as np
import pytest

from oracle_cases import random_structure
from partwise import kernels
from partwise.structures import folding_problem
from partwise.structures.folding.problem import encode, inner_of, memory_needed, possible_structure, which_pair


@pytest.mark.parametrize(
    ("sequence", "partners", "message"),
    [
        ("ACGU", [-1, -1, -1], "it has 4 bases, but its structure 3"),
        ("GAAAC", [4, -1, -1, -1, 3], "does not pair with it"),
        ("GAAC", [3, -1, -1, 0], "leaves 2 bases between"),
        ("GAAAG", [4, -1, -1, -1, 0], "G and G, may not pair"),
        ("GGAAACCC", [5, 6, -1, -1, -1, 0, 1, -1], "a pseudoknot"),
        ("GAAAC", [7, -1, -1, -1, 0], "numbers from 0 to 4"),
    ],
)
def test_structures_that_are_none(sequence, partners, message):
    with pytest.raises(ValueError, match=f"sequence 0: .*{message}"):
        folding_problem([sequence], [partners])


def test_letters():
    assert encode("acgutnRX").tolist() == [0, 1, 2, 3, 3, 4, 4, 4]
    with pytest.raises(ValueError, match="sequence 1, base 3: 'J' is no base"):
        folding_problem(["ACGU", "ACJU"])
    with pytest.raises(ValueError, match="such as 'GU'"):
        which_pair(["AUG"])
    with pytest.raises(ValueError, match=r"range \[0, 30\]"):
        folding_problem(["A"], max_loop=31)
    codes = encode("ACGU")
    np.testing.assert_array_equal(folding_problem([codes, "GG"]).bases, [0, 1, 2, 3, 2, 2])
    with pytest.raises(ValueError, match="sequence 1: bases must be numbers from 0 to 4. Got 7"):
        folding_problem([codes, np.array([1, 7], np.int8)])


def test_impossible_pairs_are_left_out():
    bases = encode("G" + "A" * 20 + "GAAAAC" + "A" * 20 + "C")
    partners = np.full(len(bases), -1)
    partners[[0, -1, 21, 26]] = len(bases) - 1, 0, 26, 21
    assert possible_structure(bases, partners, which_pair(("CG",)))[1] == 1  # the inner pair: the loop has 40 bases
    assert possible_structure(bases, partners, which_pair(("CG",)))[0][21] == -1
    assert possible_structure(bases, partners, which_pair(("AU",)))[1] == 2
    assert possible_structure(encode("GAAC"), [3, -1, -1, 0], which_pair(("CG",)))[1] == 1  # a hairpin of two bases
    assert inner_of(partners, 0) == 21 and memory_needed(2000) < 1e9


def test_taking_sequences_of_a_problem():
    rng = np.random.default_rng(4)
    sequences = ["".join(rng.choice(list("ACGU"), n)) for n in (9, 0, 12, 7)]
    problem = folding_problem(sequences, [random_structure(rng, s) for s in sequences], missed=[1, 2, 3, 4], wrong=0.5)
    taken = kernels.take(problem, np.array([2, 0]))
    assert kernels.n_examples(taken) == 2 and taken.missed.tolist() == [3, 1]
    for i, j in ((0, 2), (1, 0)):
        np.testing.assert_array_equal(kernels.target(taken, i), kernels.target(problem, j))
