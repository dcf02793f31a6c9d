"""What an aligner has learnt, for people and for machines."""

from __future__ import annotations

import json

import pytest

from partwise import Aligner, Family, interpret
from partwise.tasks.alignment.inspection import look
from partwise.tasks.common.command_options import Refusal
from small_alignments import pairs


@pytest.mark.parametrize("symmetric", [True, False])
def test_letters_and_gaps(symmetric):
    with interpret():
        model = Aligner(loss=Family(1.0, 0.0), symmetric=symmetric, max_epochs=2).fit(*pairs())
        about, text = look(model, 20, None)
    assert json.loads(json.dumps(about))["loss"] == "crf" and about["letters"] == list("ACGT")
    line = next(line for line in text.splitlines() if line.startswith("highest scores"))
    assert line.count(", ") == (9 if symmetric else 15)  # of two letters one order, if both are the same


def test_models_that_do_not_look_at_letters(tmp_path):
    with interpret():
        kinds = {"A": 1, "C": 2, "G": 1, "T": 2}
        model = Aligner(templates=["a.kind|b.kind", "g"], properties={"kind": kinds}, max_epochs=1).fit(*pairs())
        about, text = look(model, None, None)
        assert about["substitutions"] is None and "no substitution matrix" in text
        with pytest.raises(Refusal, match="no template a.letter"):
            look(model, None, tmp_path / "matrix.svg")
