"""A matrix beside attributes: the same as an attribute that is a vector, wherever sequences are given."""

import numpy as np
import pytest

from partwise import SequenceLabeler
from partwise.crfsuite import CRF

pytestmark = pytest.mark.interpreted

X = [[{"w": "a"}, {"w": "b", "n": 2.0}, {"w": "a"}], [], [{"w": "c"}]]
Y = [["u", "v", "u"], [], ["v"]]
DENSE = [np.array([[0.5, -1.0], [0.0, 2.0], [1.0, 0.25]]), np.zeros((0, 2)), np.array([[3.0, 0.0]])]
IN_TOKENS = [[{"dense": row, **token} for token, row in zip(x, d, strict=True)] for x, d in zip(X, DENSE, strict=True)]


def model(**options):
    return SequenceLabeler(**{"loss": "crf", "C": 1.0, "max_epochs": 20, "dtype": "float64"} | options)


def test_it_is_an_attribute_that_is_a_vector(tmp_path):
    beside, within = model().fit(X, Y, dense=DENSE), model().fit(IN_TOKENS, Y)
    assert list(beside.vocabulary_) == ["dense:0", "dense:1", "w:a", "w:b", "n", "w:c"]
    for name, j in within.vocabulary_.items():
        np.testing.assert_allclose(beside.coef_[:, beside.vocabulary_[name]], within.coef_[:, j], atol=1e-6)
    beside.save(tmp_path / "m")
    again = SequenceLabeler.load(tmp_path / "m")
    for one in (beside, again):
        assert one.predict(X, dense=DENSE) == within.predict(IN_TOKENS)
        assert one.score(X, Y, dense=DENSE) == within.score(IN_TOKENS, Y)
        for a, b in zip(one.predict_marginals(X, dense=DENSE), within.predict_marginals(IN_TOKENS), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)
    flat = [token for x in X for token in x]
    joined = model().fit(flat, sum(Y, []), lengths=[3, 0, 1], dense=np.concatenate(DENSE))
    np.testing.assert_array_equal(joined.weights_, beside.weights_)
    assert joined.predict(flat, lengths=[3, 0, 1], dense=np.concatenate(DENSE)).tolist() == sum(within.predict(IN_TOKENS), [])
    for name in ("decision_value", "log_probability"):
        np.testing.assert_allclose(getattr(beside, name)(X, Y, dense=DENSE), getattr(within, name)(IN_TOKENS, Y), atol=1e-5)
    assert beside.predict_kbest(X, 2, dense=DENSE)[0][0][0] == within.predict(IN_TOKENS)[0]
    assert beside.predict([[], []]) == [[], []]  # nothing to have numbers


def test_it_grows_and_is_held_out():
    stream = model(loss="hinge").partial_fit(X[:1], Y[:1], ["u", "v"], dense=DENSE[:1])
    stream.partial_fit(X, Y, dense=DENSE)
    assert list(stream.vocabulary_) == ["dense:0", "dense:1", "w:a", "w:b", "n", "w:c"]
    rare = model(min_count=2).fit(X, Y, dense=DENSE, validation=(X, Y, None, DENSE))
    assert list(rare.vocabulary_) == ["dense:0", "dense:1", "w:a"]
    assert len(model().suspicion(X * 4, Y * 4, dense=DENSE * 4, folds=2)) == 12


def test_crfsuite_face():
    crf = CRF("lbfgs", c2=0.1, max_iterations=20).fit(X, Y, X, Y, dense=DENSE, dense_dev=DENSE)
    assert crf.predict(X, dense=DENSE).tolist() == Y == [crf.predict_single(x, dense=d) for x, d in zip(X, DENSE, strict=True)]
    assert crf.score(X, Y, dense=DENSE) == 1.0 and len(crf.predict_marginals(X, dense=DENSE)) == 3
    sparse = CRF("lbfgs", c1=3.0, max_iterations=20).fit(X, Y, dense=DENSE)  # columns stay though their weights are zero
    assert sparse.attributes_[:2] == ["dense:0", "dense:1"] and len(sparse.predict(X, dense=DENSE)) == 3


@pytest.mark.parametrize(
    ("dense", "message"),
    [
        ([DENSE[0], DENSE[1]], "one matrix per sequence, 3. Got 2 of them"),
        ([DENSE[0][:2], *DENSE[1:]], "dense\\[0\\] has 2 rows, but there are 3 tokens"),
        ([DENSE[0], DENSE[1], np.zeros((1, 3))], "dense\\[2\\] has 3 columns, but those before have 2"),
        ([DENSE[0], DENSE[1], np.array([[1.0, np.inf]])], "column 1 of token 0 of sequence 2 is inf"),
        ([DENSE[0], DENSE[1], [["x", "y"]]], "dense\\[2\\] is not a matrix of numbers"),
        ([np.zeros((3, 0)), DENSE[1], np.zeros((1, 0))], "has no columns"),
    ],
)
def test_bad_matrices_are_refused_with_their_place(dense, message):
    with pytest.raises(ValueError, match=message):
        model().fit(X, Y, dense=dense)


def test_it_has_to_come_again():
    beside, without = model().fit(X, Y, dense=DENSE), model().fit(X, Y)
    with pytest.raises(ValueError, match="fitted with a matrix beside the attributes: give dense= with 2 columns"):
        beside.predict(X)
    with pytest.raises(ValueError, match="fitted without a matrix beside the attributes: leave out dense="):
        without.predict(X, dense=DENSE)
    with pytest.raises(ValueError, match="dense has 1 columns, but the model was fitted with 2"):
        beside.predict(X, dense=[d[:, :1] for d in DENSE])
    with pytest.raises(ValueError, match="put both into one matrix"):
        model().fit(DENSE, Y, dense=DENSE)
    with pytest.raises(ValueError, match="they have templates"):
        model(templates=["w[0]"], columns=["w"]).fit([[("a",)]], [["u"]], dense=[[[1.0]]])
