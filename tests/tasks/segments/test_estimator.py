"""`SegmentLabeler`: what it takes, what it answers, what it refuses."""

import numpy as np
import pytest

import partwise
from partwise import SegmentLabeler
from partwise.structures.common.hidden import small_weights
from partwise.tasks.segments.data import Coding, read_segmented
from partwise.tasks.segments.inspection import look

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


def test_hidden_states_cost_what_was_asked_for():
    weights = [
        SegmentLabeler(templates=["w[0]"], hidden=2, cost=cost, solver="dca", max_epochs=2, random_state=0)
        .fit(X, SEGMENTS)
        .weights_
        for cost in (None, "tokens", "labels")
    ]
    np.testing.assert_array_equal(weights[0], weights[1])
    assert (weights[0] != weights[2]).any()


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


@pytest.fixture(scope="module")
def with_states():
    y = [[("PER", 2, 4)], [("PER", 0, 2), ("LOC", 3, 4)], [], [("LOC", 0, 1)], []]  # places have one token, people two
    return SegmentLabeler("crf", C=1.0, templates=["w[0]"], hidden=2, max_epochs=30, random_state=0).fit(X, y), y


def test_hidden_states_are_summed_or_the_best_is_taken(with_states):
    """Of a short sentence all segmentations are looked at: probabilities, max-marginals, limits."""
    model, y = with_states
    assert model.states_ == ["LOC/1", "LOC/2", "PER/1", "PER/2", "O/1", "O/2"] and model.score(X, y) == 1.0
    words = [["Ann", "Lee", "Oslo"]]
    ranked = model.predict_kbest(words, 1000)[0]
    assert len({str(segments) for segments, _ in ranked}) == len(ranked) == 33  # 1, 3, 10, 33: three of one token, one of two
    assert {label: max(b - a for own, _ in ranked for k, a, b in own if k == label) for label in ("LOC", "PER")} == {
        "LOC": 1,
        "PER": 2,
    }
    p = np.exp([model.log_probability(words, [own])[0] for own, _ in ranked])
    assert p.sum() == pytest.approx(1.0)
    marginals, highest = np.zeros((3, 3)), np.full((3, 3), -np.inf)
    for (own, score), share in zip(ranked, p, strict=True):
        labels = np.full(3, 2)
        for label, a, b in own:
            labels[a:b] = ["LOC", "PER"].index(label)
        marginals[np.arange(3), labels] += share
        highest[np.arange(3), labels] = np.maximum(highest[np.arange(3), labels], score)
    np.testing.assert_allclose(model.predict_marginals(words)[0], marginals, atol=1e-9)
    np.testing.assert_allclose(model.predict_max_marginals(words)[0], highest, rtol=1e-6)
    assert model.code_marginals(words).shape == (3, 6)


def test_a_model_with_hidden_states_survives_its_file_and_is_looked_into(with_states, tmp_path):
    model, y = with_states
    model.save(tmp_path / "model")
    again = partwise.load(tmp_path / "model")
    assert again.predict_segments(X) == y and again.hidden == 2 and again.transitions_.shape == (7, 6)
    about, text = look(again, 2, tmp_path / "weights.png")
    assert set(about["strongest"]) == set(model.states_) and "PER/2" in text
    assert len(model.judge(X, y, folds=None).given.codes) == 13


def test_costs_and_partial_labels_go_with_hidden_states():
    y = [["O", "O", "B-PER", None], ["B-PER", {"I-PER", "B-PER"}, "O", None], [], ["B-LOC"], ["B-LOC", "I-LOC", "O", None]]
    for cost in ("tokens", "labels"):
        model = SegmentLabeler("hinge", C=10.0, templates=["w[0]"], hidden=2, cost=cost, solver="sdm", random_state=0).fit(X, y)
        found = [[label[-3:] for label in own] for own in model.predict(X)[:2]]  # with cost="labels", where they begin is free
        assert found == [[label[-3:] for label in own] for own in IOB2[:2]]
    with pytest.raises(ValueError, match="goes? with hidden|one true output"):
        SegmentLabeler("summed", hidden=2).fit(X, SEGMENTS)
    with pytest.raises(ValueError, match="'hidden' parameter"):
        SegmentLabeler(hidden=0).fit(X, SEGMENTS)


def test_states_begin_at_weights_that_are_there():
    """Rows of lengths and transitions have no weights at the places of inner and last tokens."""
    model = SegmentLabeler(templates=["w[0]"], hidden=2)
    problem = model._learn(read_segmented(X, SEGMENTS))
    table = small_weights(problem, 0).reshape(-1, 3, 6)
    n = problem.rows.n_features
    assert table[:n].all() and table[n:, 1].all() and not table[n:, [0, 2]].any()


def test_max_marginals_need_no_probabilities():
    model = SegmentLabeler(templates=["w[0]"], C=10.0).fit(X, SEGMENTS)
    for scores, ranked in zip(model.predict_max_marginals(X), model.predict_kbest(X, 1), strict=True):
        np.testing.assert_allclose(scores.max(1, initial=-np.inf), ranked[0][1], rtol=1e-6)


def test_nothing_but_empty_sentences(model):
    assert model.predict([[]]) == model.predict_segments([[]]) == [[]] and model.predict([]) == []
    assert model.predict_kbest([[]], 3) == [[([], 0.0)]] and model.decision_value([[], []]).tolist() == [0.0, 0.0]
    assert model.predict_marginals([[]])[0].shape == model.predict_max_marginals([[]])[0].shape == (0, 3)
    for X_empty, y_empty in (([], []), ([[]], [[]])):
        with pytest.raises(ValueError, match="no tokens to train on"):
            SegmentLabeler().fit(X_empty, y_empty)


def test_scores_of_the_best_and_of_given_segments(model, with_states):
    for one, y in ((model, SEGMENTS), with_states):
        ranked = one.predict_kbest(X, 2)
        np.testing.assert_allclose(one.decision_value(X), [own[0][1] for own in ranked])
        np.testing.assert_allclose(one.decision_value(X, y), [own[0][1] for own in ranked], rtol=1e-6)  # weights in float32
        np.testing.assert_allclose(one.decision_value(X[:1], [ranked[0][1][0]]), ranked[0][1][1])
