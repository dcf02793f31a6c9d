"""`SegmentLabeler`: what it takes, what it answers, what it refuses."""

import numpy as np
import pytest

import partwise
from partwise import SegmentLabeler
from partwise.tasks.segments.data import Coding, read_segmented

pytestmark = pytest.mark.interpreted

X = [["He", "met", "Ann", "Lee"], ["Ann", "Lee", "left", "Oslo"], [], ["Oslo"], ["New", "York", "is", "large"]]
SEGMENTS = [[("PER", 2, 4)], [("PER", 0, 2), ("LOC", 3, 4)], [], [("LOC", 0, 1)], [("LOC", 0, 2)]]
IOB2 = [["O", "O", "B-PER", "I-PER"], ["B-PER", "I-PER", "O", "B-LOC"], [], ["B-LOC"], ["B-LOC", "I-LOC", "O", "O"]]


@pytest.fixture(scope="module")
def model():
    return SegmentLabeler("crf", C=10.0, templates=["w[0]", "short_shape(w[0])"], solver="lbfgs").fit(X, SEGMENTS)


def test_labels_and_segments_are_the_same(model):
    assert model.predict_segments(X) == SEGMENTS
    assert model.predict(X) == IOB2
    assert model.score(X, IOB2) == 1.0
    other = SegmentLabeler("crf", C=10.0, templates=["w[0]", "short_shape(w[0])"], solver="lbfgs").fit(X, IOB2)
    np.testing.assert_array_equal(other.weights_, model.weights_)


def test_answers_are_in_the_scheme_of_the_training_data():
    iobes = [["O", "O", "B-PER", "E-PER"], ["B-PER", "E-PER", "O", "S-LOC"], [], ["S-LOC"], ["B-LOC", "E-LOC", "O", "O"]]
    model = SegmentLabeler(templates=["w[0]"]).fit(X, iobes)
    assert model.scheme_ == "iobes" and model.predict(X) == iobes


def test_probabilities_and_the_k_best(model):
    for p, sentence in zip(model.predict_marginals(X), X, strict=True):
        assert p.shape == (len(sentence), 3)
        np.testing.assert_allclose(p.sum(1), 1.0)
    ranked = model.predict_kbest(X, 3)
    assert [own[0][0] for own in ranked] == SEGMENTS and len(ranked[0]) == 3 and ranked[0][0][1] >= ranked[0][1][1]
    best, second = (model.log_probability(X[:1], [segments]) for segments, _ in ranked[0][:2])
    assert best > second and np.exp(best) < 1.0


def test_a_model_survives_its_file(model, tmp_path):
    model.save(tmp_path / "model")
    again = partwise.load(tmp_path / "model")
    assert again.predict_segments(X) == SEGMENTS and again.limits_.tolist() == [2, 2, 1]
    assert again.phrases_.phrases == model.phrases_.phrases


def test_a_phrase_counts_in_training_only_if_another_sentence_has_it():
    model = SegmentLabeler(templates=["w[0]"])
    problem = model._learn(read_segmented(X, SEGMENTS))
    found = [(int(t), int(problem.span_length[j])) for t in range(13) for j in range(*problem.span_ptr[t : t + 2])]
    assert found == [(2, 2), (4, 2), (7, 1), (8, 1)]  # Ann Lee and Oslo, twice each; New York only once
    assert model._problem(read_segmented([["New", "York"]])).span_length.tolist() == [2]


def test_a_dictionary_helps_where_words_are_new():
    train = [["in", "Oslo"], ["in", "May"], ["in", "Rome"], ["in", "June"]]
    y = [[("LOC", 1, 2)], [], [("LOC", 1, 2)], []]
    cities = {"cities": ["oslo", "Rome", "Santa Fe"]}
    model = SegmentLabeler(templates=["short_shape(w[0])"], dictionary=cities, learn_phrases=False, C=10.0, solver="sdm")
    assert model.fit(train, y).predict_segments([["in", "Rome"], ["in", "July"]]) == [[("LOC", 1, 2)], []]
    assert SegmentLabeler(templates=["short_shape(w[0])"], learn_phrases=False, C=10.0).fit(train, y).score(train, y) < 1.0


def test_partial_labels_are_completed():
    y = [["O", "O", "B-PER", None], ["B-PER", {"I-PER", "B-PER"}, "O", None], [], ["B-LOC"], ["B-LOC", "I-LOC", "O", None]]
    model = SegmentLabeler("crf", C=10.0, templates=["w[0]", "short_shape(w[0])"]).fit(X, y)
    assert model.predict_segments(X)[:2] == SEGMENTS[:2]


def test_segments_longer_than_wanted_are_cut():
    model = SegmentLabeler(templates=["w[0]"], max_length=1).fit(X, SEGMENTS)
    assert model.limits_.tolist() == [1, 1, 1]
    assert max(b - a for own in model.predict_segments(X) for _, a, b in own) == 1


def test_what_cannot_be_is_refused_with_its_place(model):
    with pytest.raises(ValueError, match="sequence 1, token 0: the label 'NOUN' is not of the form"):
        SegmentLabeler().fit([["a"], ["b"]], [["O"], ["NOUN"]])
    with pytest.raises(ValueError, match=r"Sequence 0: the segment \('X', 0, 3\)"):
        SegmentLabeler().fit([["a", "b"]], [[("X", 0, 3)]])
    with pytest.raises(ValueError, match="Sequence 0 has 2 tokens, but 1 labels"):
        SegmentLabeler().fit([["a", "b"]], [["O"]])
    with pytest.raises(ValueError, match="without labels"):
        SegmentLabeler().fit([["a"]])
    with pytest.raises(ValueError, match="'dictionary' parameter"):
        SegmentLabeler(dictionary=["Oslo"]).fit(X, SEGMENTS)
    with pytest.raises(ValueError, match="longer than any in the training"):
        model.log_probability([["New", "York", "City"]], [[("LOC", 0, 3)]])
    with pytest.raises(ValueError, match="fits scores, not probabilities"):
        SegmentLabeler(templates=["w[0]"]).fit(X, SEGMENTS).predict_marginals(X)


def test_codes_write_down_segments():
    coding = Coding(["LOC", "PER", "O"])
    codes, known = coding.encode(read_segmented(X, SEGMENTS))
    assert known is None and codes[:4].tolist() == [5, 5, 4, 1]
    assert coding.segments(codes[4:8]) == SEGMENTS[1]
