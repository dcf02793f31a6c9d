"""What the tests of sklearn-crfsuite check, checked here: every algorithm, from fit to pickle."""

import pickle
import warnings

import pytest
from sklearn.model_selection import cross_val_score

from partwise.crfsuite import CRF, metrics

pytestmark = pytest.mark.interpreted

WALK, SHOP, CLEAN = {"walk": 1.0, "shop": 0.5}, {"walk": 0.5, "shop": 1.0}, {"clean": 1.0}
XSEQ = [WALK, WALK, {"walk": 1.0}, SHOP, CLEAN, {"clean": 1.0, "walk": 0.2}, CLEAN]
YSEQ = ["sunny", "sunny", "sunny", "sunny", "rainy", "rainy", "rainy"]
every = pytest.mark.parametrize("algorithm", ["lbfgs", pytest.param("l2sgd", marks=pytest.mark.slow), "pa", "ap", "arow"])


def fitted(algorithm, **options):
    limit = {"max_iterations": 8} if algorithm in ("l2sgd", "lbfgs") else {}
    return CRF(algorithm, **limit, **options).fit([XSEQ], [YSEQ])


@every
def test_it_learns_one_sequence(algorithm):
    crf = fitted(algorithm)
    assert (crf.predict([XSEQ]) == YSEQ).all() and (crf.predict([XSEQ]) == [YSEQ]).all()
    assert crf.score([XSEQ], [YSEQ]) == 1.0 and crf.predict_single(XSEQ) == YSEQ


@every
@pytest.mark.parametrize("use_dev", [True, False])
def test_verbose_with_and_without_held_out_data(algorithm, use_dev, capsys):
    dev = ([XSEQ], [YSEQ]) if use_dev else (None, None)
    crf = CRF(algorithm, verbose=True, max_iterations=5).fit([XSEQ, XSEQ], [YSEQ, YSEQ], *dev)
    assert crf.predict([XSEQ])[0] == YSEQ and capsys.readouterr().err


@every
def test_marginals_sum_to_one(algorithm):
    crf = fitted(algorithm)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (marginals,) = crf.predict_marginals([XSEQ])
    assert any("too sure" in str(one.message) for one in caught) == (algorithm in ("pa", "ap", "arow"))
    assert len(marginals) == len(YSEQ)
    for token in marginals:
        assert isinstance(token, dict) and set(token) == set(crf.tagger_.labels()) and sum(token.values()) == pytest.approx(1.0)
    with warnings.catch_warnings():  # held-out data were there: nothing to warn of
        warnings.simplefilter("error")
        CRF(algorithm, max_iterations=3).fit([XSEQ], [YSEQ], [XSEQ], [YSEQ]).predict_marginals([XSEQ])


@every
def test_nothing_is_predicted_before_fit(algorithm):
    with pytest.raises(ValueError, match="not fitted"):
        CRF(algorithm).predict([XSEQ])


@every
def test_pickle(algorithm):
    again = pickle.loads(pickle.dumps(fitted(algorithm), protocol=pickle.HIGHEST_PROTOCOL))
    assert again.score([XSEQ], [YSEQ]) == 1.0 and again.algorithm == algorithm


def test_model_filename(tmp_path):
    path = str(tmp_path / "foo.crfsuite")
    crf = fitted("lbfgs", model_filename=path)
    assert CRF(model_filename=path).score([XSEQ], [YSEQ]) == 1.0
    assert pickle.loads(pickle.dumps(crf)).score([XSEQ], [YSEQ]) == 1.0


def test_cross_validation():
    assert cross_val_score(CRF(max_iterations=5), [XSEQ] * 6, [YSEQ] * 6, cv=3).mean() == 1.0


def test_held_out_data_come_in_pairs():
    with pytest.raises(ValueError, match="belong together"):
        CRF().fit([XSEQ], [YSEQ], [XSEQ])


def test_attributes_are_none_before_fit_and_there_after():
    crf = CRF(max_iterations=5)
    names = ("tagger_", "size_", "classes_", "num_attributes_", "attributes_", "state_features_", "transition_features_")
    assert [getattr(crf, name) for name in (*names, "training_log_")] == [None] * 8
    crf.fit([XSEQ] * 3, [YSEQ] * 3)
    assert crf.tagger_.tag(XSEQ) == YSEQ and set(crf.classes_) == {"sunny", "rainy"}
    assert crf.size_ > 0 and len(crf.attributes_) == crf.num_attributes_ == 3 and "clean" in crf.attributes_
    assert all(isinstance(w, float) for w in (*crf.state_features_.values(), *crf.transition_features_.values()))
    assert all(name in crf.attributes_ and label in crf.classes_ for name, label in crf.state_features_)
    assert all(a in crf.classes_ and b in crf.classes_ for a, b in crf.transition_features_)


def test_measures_of_tokens_and_sequences():
    y, z = [["x", "z", "y"], ["x", "x"]], [["y", "z", "y"], ["x", "y"]]
    assert metrics.flat_accuracy_score(y, z) == 3 / 5
    assert metrics.flat_precision_score(y, z, average="micro") == metrics.flat_recall_score(y, z, average="micro") == 3 / 5
    assert metrics.flat_f1_score(y, z, average="macro") == 2 / 3 == metrics.flat_fbeta_score(y, z, beta=1, average="macro")
    assert metrics.flat_f1_score([["x", "y"]] * 2, [["x", "y"]] * 2, average="weighted") == 1.0  # fails there
    assert metrics.sequence_accuracy_score(y, z) == 0 == metrics.sequence_accuracy_score([], [])
    assert metrics.sequence_accuracy_score([[1, 2], [3], [4]], [[1, 2], [4], [4]]) == 2 / 3
    assert metrics.sequence_accuracy_score([[1, 2], [3]], [[1, 2], [3]]) == 1.0
    assert metrics.sequence_accuracy_score([[1, 2], [3]], [[3], [1, 2]]) == 0  # of other lengths
