"""Brackets that are probably wrong."""

import numpy as np
import pytest

from partwise import ConstituencyParser
from partwise.datasets import Constituent
from partwise.tasks.constituency.suspects import chains

pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")]
SETTINGS = {"hash_bits": 6, "templates": ["f.tag|l.tag", "f.tag"], "random_state": 0}
GOOD = ["(S (NP (DT the) (NN dog)) (VP (VBZ sees) (NP (NN cats))))", "(S (NP (NN cats)) (VP (VBZ see) (NP (DT the) (NN dog))))"]
BAD = "(S (NP (DT a) (NN dog)) (VP (NP (VBZ sees) (NN mice))))"  # sees is a noun here, and the object is no NP


def trees(*texts):
    return [Constituent.read(text) for text in texts]


@pytest.fixture(scope="module")
def parser():
    return ConstituencyParser(max_epochs=3, **SETTINGS).fit(trees(*GOOD, *GOOD, BAD))


def test_what_is_wrong_comes_first(parser):
    judged = parser.judge(trees(*GOOD, BAD), folds=None)
    assert judged.ranked(1e-9)[0] == 2 and judged.brackets[:2] == [("S", 0, 4), ("NP", 0, 2)]
    assert ("VP+NP", 2, 4) in judged.brackets and len(judged.found.parts) == len(judged.brackets) == 4 + 4 + 3
    worst = judged.suspect(2)
    assert str(worst.given) == BAD and worst.believed.words() == worst.given.words() and str(worst.believed) != BAD
    assert [(one.given, one.believed) for one in worst.parts] == [(("VP+NP", 2, 4), ("VP", 2, 4))]
    assert chains(worst.believed)[-1] == ("NP", 3, 4)  # the object
    assert worst.parts[0].part == 2 and 0.0 < worst.parts[0].probability <= 1.0


def test_in_folds_the_grammar_is_that_of_all_trees(parser):
    new = trees(*GOOD, "(S (NP (NN cats)) (ADVP (RB here)))", *GOOD)
    with pytest.raises(ValueError, match=r"sentence 2: this model does not have the symbol 'ADVP\+RB'. .*folds=5"):
        parser.suspects(new, folds=None)
    with pytest.raises(ValueError, match=r"sentence 0: its tree is none of this grammar: there is no rule .*folds=5"):
        parser.suspects(trees("(S (VP (VBZ sees) (NP (NN cats))) (NP (DT the) (NN dog)))"), folds=None)
    before = parser.grammar_
    p = parser.suspicion(new, folds=2)
    assert p.shape == (5,) and np.all((p >= 0) & (p <= 1)) and parser.grammar_ is before
    fresh = ConstituencyParser(max_epochs=1, **SETTINGS)
    assert fresh.suspicion(new, folds=2, parts=True).shape == (4 + 4 + 3 + 4 + 4,) and not hasattr(fresh, "weights_")


def test_brackets_that_are_not_known_are_in_no_doubt(parser):
    partial = BAD.replace("(NP (DT", "(? (DT")
    judged = parser.judge(trees(GOOD[1], partial), folds=None)
    odds = dict(zip(judged.brackets[4:], judged.found.parts[4:].tolist(), strict=True))
    assert odds["NP", 0, 2] == -np.inf < odds["VP+NP", 2, 4]  # the first is of the completion
    with pytest.raises(ValueError, match="There are no trees to judge"):
        parser.suspects([[("the", "DT")]], folds=None)
    with pytest.raises(ValueError, match="there are none: all have brackets labelled"):
        parser.suspects(trees(partial, partial), folds=2)
