"""What a parser has learnt is what its arcs are scored by."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import partwise
from partwise import DependencyParser
from partwise.features.arc_rows import MOST, arc_features, arc_rows
from partwise.tasks.dependency.data import read_sentences
from partwise.tasks.dependency.inspection import attachments, pair_template, strongest
from small_treebanks import sentences


@pytest.fixture(scope="module")
def parser():
    return DependencyParser(C=0.05, solver="dca", hash_bits=14, max_epochs=5).fit(*sentences())


@pytest.mark.filterwarnings("ignore:overflow encountered")  # hashes wrap around
def test_attachments_are_weights_of_arcs(parser, tmp_path):
    """What inspection looks up by tags is what an arc between such words has."""
    index, tags, found = np.zeros(MOST, np.int64), "NVNV.NV", attachments(parser)
    words = read_sentences([[("word", tag) for tag in tags]], None, parser.columns_).words
    rows = arc_rows(words, parser.columns_, [pair_template(parser)], bits=14)
    for r in range(len(rows.head)):
        m, h = divmod(r, len(tags) + 1)
        if h == m + 1:
            continue
        n = arc_features(rows, r, index)
        length = min(abs(h - m - 1), 5) - 1
        place = (int(h > m), length, found.heads.index(tags[h - 1] if h else "root"), found.words.index(tags[m]), 0)
        np.testing.assert_allclose(found.weights[place], parser.weights_[index[:n]].sum(), rtol=1e-6)
    top = strongest(parser, 2)
    assert ("V", "N", "right", "1") in [one[:4] for one in top["for"]] and top["relations"]["obj"][0][:3] == ("V", "N", "left")
    parser.save(tmp_path / "model")
    again = partwise.load(tmp_path / "model")
    assert again.tags_ == parser.tags_ == (".", "N", "V") and strongest(again, 2) == top
    bare = clone(parser).set_params(templates=["h.form|m.form"], max_epochs=1).fit(*sentences())
    with pytest.raises(ValueError, match="no template h.upos|m.upos"):
        attachments(bare)
