"""Structures that are probably wrong."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import RnaFolder

SEQUENCES, HELIX = ["GGAAAACC", "GCAAAAGC", "GGAAAACC"], "((....))"


@pytest.fixture
def folder():
    """A model that likes pairs of C and G."""
    made = RnaFolder()
    made.weights_ = np.array([2.0 if "CG" in name else 0.0 for name in made.tying_.names])
    made.temperature_ = 1.0
    return made


@pytest.mark.interpreted
def test_a_structure_without_pairs_is_found(folder):
    judges = []
    judged = folder.judge(SEQUENCES, [HELIX, "........", "(<....)>"], folds=None, judges=judges)
    assert len(judges) == 1 and int(np.argmax(judged.found.examples)) == 1
    suspect = judged.suspect(1)
    assert (suspect.given, suspect.believed) == ("........", HELIX)
    pairs = {(part.part, part.given, part.believed) for part in suspect.parts}
    assert pairs == {(0, None, 7), (7, None, 0), (1, None, 6), (6, None, 1)}
    assert judged.part(0) == (7, 7) and judged.part(2) == (None, None)
    assert judged.example(2)[0] == "(.....)."  # the pseudoknot is not judged


@pytest.mark.slow
def test_a_structure_that_others_contradict_is_found():
    given = [HELIX] * 9 + ["........"]
    found = RnaFolder(C=10.0).suspects(["GGAAAACC", "GCAAAAGC", "CCAAAAGG", "CGAAAACG", "GGUAAACC"] * 2, given, folds=5, top=1)
    assert [one.example for one in found] == [9] and found[0].believed == HELIX


def test_without_structures_there_is_nothing_to_judge():
    with pytest.raises(ValueError, match="There are no structures to judge"):
        RnaFolder().judge(SEQUENCES, folds=2)
