"""Planted errors of spans: boundaries that move, types that change."""

import numpy as np
import pytest

from partwise.datasets import make_sentences, plant_errors
from partwise.text.chunk_schemes import SCHEMES, convert, count_repairs


def labels(n=150, scheme="iob2"):
    return convert([[token[-1] for token in sentence] for sentence in make_sentences(n, 0)], scheme)


def spans(sentence):
    """(begin, end, type) of well-formed IOB2 labels."""
    found = []
    for t, label in enumerate(convert([sentence], "iob2")[0]):
        if label[0] == "B":
            found.append([t, t + 1, label[2:]])
        elif label[0] == "I":
            found[-1][1] = t + 1
    return [tuple(span) for span in found]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("how", ["boundary", "type"])
def test_a_fraction_of_the_spans_is_changed_and_labels_stay_well_formed(how, scheme):
    y = labels(scheme=scheme)
    noisy = plant_errors(y, 0.1, 3, how)
    assert count_repairs(noisy.y, scheme) == 0
    assert noisy.tokens.tolist() == [a != b for old, new in zip(y, noisy.y, strict=True) for a, b in zip(old, new, strict=True)]
    pairs = [(spans(old), spans(new)) for old, new in zip(y, noisy.y, strict=True)]
    assert all(len(old) == len(new) for old, new in pairs)  # none is lost, none comes
    changes = [(a, b) for old, new in pairs for a, b in zip(old, new, strict=True) if a != b]
    total = sum(len(old) for old, _ in pairs)
    if how == "type":
        assert all(a[:2] == b[:2] and a[2] != b[2] for a, b in changes) and len(changes) == round(0.1 * total)
    else:
        assert all(a[2] == b[2] for a, b in changes)  # a neighbour may give way, twice
        assert max(abs(a[k] - b[k]) for a, b in changes for k in (0, 1)) <= 2
        assert 0.1 * total <= len(changes) <= 0.2 * total
    assert plant_errors(y, 0.1, 3, how).y == noisy.y != plant_errors(y, 0.1, 4, how).y


def test_what_cannot_be_written_stays():
    assert plant_errors([["B-A", "O"]], 1.0, 0, "type").y == [["B-A", "O"]]  # there is no other type
    assert plant_errors([["B-A"], ["B-B"]], 1.0, 0, "boundary").y == [["B-A"], ["B-B"]]  # there is no room
    assert plant_errors([["B-A", "O"]], 1.0, 0, "boundary").y == [["O", "B-A"]]  # there is no I-A
    y = [["B-A", "I-A", None], ["B-A", "I-A", "O"]]
    assert plant_errors(y, 1.0, 0, "boundary").y[0] == y[0] and not np.all(plant_errors(y, 1.0, 0, "boundary").y[1] == y[1])
    with pytest.raises(ValueError, match="need labels like 'B-NP', 'I-NP' and 'O'. Got 'x'"):
        plant_errors([["x", "O"]], 0.5, 0, "type")
