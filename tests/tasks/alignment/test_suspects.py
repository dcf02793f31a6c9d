"""Alignments that are probably wrong."""

from __future__ import annotations

import numpy as np
import pytest

from partwise import Aligner

pytestmark = pytest.mark.interpreted


def test_a_shifted_alignment_is_found():
    rows = [("ACGT", "ACGT"), ("CA-G", "CATG"), ("GTCA", "GTCA"), ("TTAC", "TTAC"), ("ACGT-", "-ACGT"), ("GATC", "G-TC")]
    pairs = [tuple(row.replace("-", "") for row in two) for two in rows]
    aligner = Aligner(C=1.0)
    judged = aligner.judge(pairs, rows, folds=2)
    assert int(np.argmax(judged.found.examples)) == 4 and not hasattr(aligner, "weights_")
    suspect = judged.suspect(4)
    assert suspect.given == ("ACGT-", "-ACGT") and suspect.believed == ("ACGT", "ACGT")
    assert {(part.part, part.given, part.believed) for part in suspect.parts} == {(0, None, 0), (1, 0, 1), (2, 1, 2), (3, 2, 3)}
    with pytest.raises(ValueError, match="There are no alignments to judge"):
        aligner.judge(pairs, folds=2)
