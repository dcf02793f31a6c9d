"""RNA as it is given: strings and files, letters that become numbers once."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import RnaFolder
from partwise.engine.compilation import interpret
from partwise.structures.folding import problem
from partwise.tasks.folding import data
from partwise.tasks.folding.data import read_sequences, read_structure
from partwise.tasks.folding.files import read_rna
from small_rna import as_fasta, hairpins


def test_structures_as_partners():
    for given, left in (([3, 4, None, 0, 1], 1), ([4, 3, -1, 1, 0], 0)):
        partners, crossing = read_structure(given, "it")
        assert crossing == left and partners.tolist() == ([-1, 4, -1, -1, 1] if left else given)


@pytest.mark.parametrize("from_file", [True, False])
def test_letters_become_numbers_once(monkeypatch, from_file):
    sequences, structures = hairpins(4)
    seen = []

    def encode(sequence, place="the sequence"):
        if not place.startswith("The pair"):
            seen.append(sequence)
        return problem_encode(sequence, place)

    problem_encode = problem.encode
    for module in (problem, data):
        monkeypatch.setattr(module, "encode", encode)
    X, y = (read_rna(as_fasta(sequences, structures).encode()), None) if from_file else (sequences, structures)
    with interpret():
        model = RnaFolder(max_epochs=1).fit(X, y)
        assert seen == sequences
        if from_file:
            model.predict(X.take([2, 0]))
            assert model.score(X) >= 0.0 and seen == sequences


def test_a_set_has_its_bases():
    X = read_rna(b">a\nGGNAAACC\n((....))\n>b\nacgt\n....\n")
    assert [bases.tolist() for bases in X.bases] == [[2, 2, 4, 0, 0, 0, 1, 1], [0, 1, 2, 3]]
    assert all(bases.dtype == np.int8 for bases in X.bases) and X.take([1]).bases[0] is X.bases[1]
    assert read_sequences(X).bases is X.bases
