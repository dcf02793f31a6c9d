"""Constraints on labellings, and the chunking schemes by name."""

import copy
import itertools

import numpy as np
import pytest
from sklearn.base import clone

from partwise import SequenceLabeler
from partwise.tasks.tagging.constraints import forbidden_transitions
from partwise.text.columns import read_columns
from small_taggers import labelled_words

pytestmark = pytest.mark.interpreted

X, Y = labelled_words()


def model(**parameters):
    return SequenceLabeler(**{"C": 1.0, "solver": "dca", "max_epochs": 5, "dtype": "float64", **parameters})


def test_constraints_in_training_and_after():
    constrained = model(constraints="iob2").fit(X, Y)
    noise = [[["w=?"]] * 5] * 3
    tricky = copy.deepcopy(constrained)
    tricky.weights_[:] = 0.0
    tricky.coef_[1] = 10.0
    tricky.start_[1] = 10.0
    assert tricky.predict(noise)[0][0] != "I"
    free = clone(constrained).set_params(constraints=None).fit(X, Y)
    free.start_[1] = 100.0
    assert free.predict(noise)[0][0] == "I"
    assert free.set_params(constraints="iob2").predict(noise)[0][0] != "I"
    assert free.set_params(constraints=[(None, "I"), (None, "B")]).predict(noise)[0][0] == "O"
    assert set(free.set_params(constraints={"allow_labels": ["O", "B"]}).predict(noise)[0]) <= {"O", "B"}
    with pytest.raises(ValueError, match="No labelling of sequence 1 obeys the constraints and the known labels"):
        free.set_params(constraints={"forbid_start": ["I"]}).predict(noise[:2], known=[[None] * 5, ["I"] + [None] * 4])


def test_gold_that_violates_constraints_is_named():
    x, y = [[["a"]], [["a"], ["b"], ["c"]]], [["B-X"], ["O", "B-X", "I-Y"]]
    with pytest.raises(
        ValueError, match="labels of sequence 1 violate the constraints at token 2: from 'B-X' to 'I-Y' is forbidden"
    ):
        model(constraints="iob2").fit(x, y)
    with pytest.raises(ValueError, match="sequence 0 violate the constraints at token 0: from 'B-X' to the end is forbidden"):
        model(constraints={"forbid_stop": ["B-X"]}).fit(x, y)
    with pytest.raises(ValueError, match="sequence 1 violate the constraints at token 0: from the beginning to 'O' is forbidden"):
        model(constraints=[(None, "O")]).fit(x, y)


def test_constraints_pass_over_what_is_unknown():
    x = [[["a"], ["b"], ["c"]]]
    with pytest.raises(ValueError, match="violate the constraints at token 1"):
        model(constraints="iob2").fit(x, [["O", "I-X", "B-X"]])
    model(constraints="iob2").fit(x, [[None, "I-X", "B-X"]])
    with pytest.raises(ValueError, match=r"sequence 0 violate the constraints at token 1 \(bad.txt, line 2\)"):
        model(constraints="iob2", templates=["w[0]"]).fit(read_columns(b"a O\nb I-X\n", name="bad.txt"))


def legal(scheme, labels):
    """An independent reading of the schemes: is this sequence of labels well formed?"""
    open_type = None  # of the chunk that must go on (iobes), or may go on (iob)
    for label in labels:
        prefix, _, kind = label.partition("-")
        if scheme == "iobes":
            if (prefix in ("I", "E")) != (open_type is not None) or (open_type is not None and kind != open_type):
                return False
            open_type = kind if prefix in ("B", "I") else None
        else:
            if prefix == {"iob2": "I", "iob1": "B"}[scheme] and kind != open_type:
                return False
            open_type = None if prefix == "O" else kind
    return scheme != "iobes" or open_type is None


@pytest.mark.parametrize("scheme", ["iob1", "iob2", "iobes"])
def test_schemes_against_an_independent_reading(scheme):

    prefixes = "BIES" if scheme == "iobes" else "BI"
    labels = ["O", *(f"{p}-{kind}" for p in prefixes for kind in "XY")]
    forbidden = set(forbidden_transitions(scheme, np.array(labels), "test"))
    for n in (1, 2, 3):
        for codes in itertools.product(range(len(labels)), repeat=n):
            path = [None, *codes, None]
            fine = not any(pair in forbidden for pair in zip(path[:-1], path[1:], strict=True))
            assert fine == legal(scheme, [labels[c] for c in codes]), [labels[c] for c in codes]


def test_forced_transitions():
    classes = np.array(["A", "B", "C"])
    assert forbidden_transitions({"force": [("A", "B"), ("A", None)]}, classes, "test") == [(0, 0), (0, 2)]
    assert forbidden_transitions({"force": [(None, "A")]}, classes, "test") == [(None, 1), (None, 2)]
    assert forbidden_transitions({"force": [("B", "C")], "forbid": [("A", "A")]}, classes, "test") == [
        (0, 0),
        (1, None),
        (1, 0),
        (1, 1),
    ]
