"""Who judges, and how suspects are ranked."""

import warnings

import numpy as np
import pytest

from partwise.passes import Evidence
from partwise.solvers.dca import DCA
from partwise.solvers.noise import Judgement, dealt, fit_noise
from partwise.tasks.classification.estimator import Classifier
from partwise.tasks.common.suspects import Judged, folds_of, head, probability, watched
from partwise.tasks.ranking.estimator import Ranker


def test_the_head_of_a_ranking():
    log_odds = np.array([-3.0, 800.0, -np.inf, 1.0, 900.0, -0.5, np.inf])
    assert head(log_odds, None, None).tolist() == [6, 4, 1, 3]  # in order also where probabilities round to one
    assert head(log_odds, None, 2).tolist() == [6, 4] and head(log_odds, None, 0).tolist() == []
    p = probability(log_odds[[6, 4, 1, 3, 5, 0]])
    for n in (3, 4, 5, 6):
        assert len(head(log_odds, float(p[:n].mean()) - 1e-9, None)) == n  # what is not given is never listed
    assert len(head(log_odds, 1.0, None)) == 3 and len(head(np.array([-1.0]), 0.9, None)) == 0
    for wrong in ({"precision": 0.0}, {"precision": 1.5}, {"precision": True}, {"top": -1}, {"top": 1.5}):
        with pytest.raises(ValueError, match=f"The '{next(iter(wrong))}' parameter"):
            head(log_odds, **{"precision": None, "top": None, **wrong})


def test_who_judges():
    fresh, fitted, robust = Classifier(), Classifier(), Classifier(loss="ramp")
    fitted.weights_ = robust.weights_ = np.zeros(2)
    assert folds_of(fresh, "auto", 100) == folds_of(fitted, "auto", 100) == folds_of(Classifier(loss="ramp"), "auto", 100) == 5
    assert folds_of(robust, "auto", 100) is None and folds_of(fitted, "auto", 3) == 3 and folds_of(fitted, "auto", 1) is None
    ranker = Ranker(loss="ramp_do")
    ranker.weights_ = np.zeros(2)
    assert folds_of(ranker, "auto", 100) == 5  # for NDCG such a loss is the usual one, and refuses nothing
    assert folds_of(fitted, None, 100) is None and folds_of(robust, 4, 100) == 4
    for wrong in (1, True, 2.5, "five"):
        with pytest.raises(ValueError, match="The 'folds' parameter"):
            folds_of(fitted, wrong, 100)
    assert np.bincount(dealt(11, 5, 0)).tolist() == [3, 2, 2, 2, 2]


@pytest.mark.interpreted
def test_judging_says_how_far_it_is_and_can_be_interrupted(monkeypatch):
    X, y = np.array([[1.0], [2.0], [-1.0], [-2.0]] * 2), [1, 1, 0, 0] * 2
    model, told = Classifier(loss="crf", solver="dca", max_epochs=2), []
    with watched(told.append):
        model.suspects(X, y, folds=2)
    judges = [f"training judge {k} of 4" for k in (1, 2, 3, 4)]
    assert [words for words in told if words in judges] == judges
    model.suspects(X, y, folds=2)  # unwatched
    assert [words for words in told if words in judges] == judges
    epoch, epochs = DCA.epoch, []

    def impatient(self, task, state):
        epochs.append(1)
        if len(epochs) == 2:
            raise KeyboardInterrupt
        return epoch(self, task, state)

    monkeypatch.setattr(DCA, "epoch", impatient)
    with warnings.catch_warnings(), pytest.raises(KeyboardInterrupt):
        warnings.simplefilter("error")
        model.suspects(X, y, folds=2)
    assert len(epochs) == 2  # the next judge is not trained


def test_records_name_what_is_disputed_worst_first():
    evidence = Evidence(np.array([0, 3, 5]), np.ones(5), np.zeros(5, np.int32), np.array([True, False, True, False, True]))
    found = Judgement(evidence, np.array([2.0, 1.0]), np.array([0.5, 3.0, 2.0, -np.inf, -1.0]), fit_noise([]))
    judged = Judged(found, lambda i: (f"given {i}", f"believed {i}"), lambda t: (f"g{t}", f"b{t}"))
    first = judged.suspect(judged.ranked()[0])
    assert (first.example, first.given, first.believed) == (0, "given 0", "believed 0")
    assert [(part.part, part.given, part.believed) for part in first.parts] == [(2, "g2", "b2"), (0, "g0", "b0")]
    assert first.probability == pytest.approx(1 / (1 + np.exp(-2))) and first.parts[1].probability == judged.wrong_part(0)
    assert judged.ranked_parts() == [2, 0]  # nothing else is believed of the worst one
