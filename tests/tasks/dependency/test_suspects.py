"""Heads and relations that are probably wrong."""

from dataclasses import replace

import numpy as np
import pytest

from partwise import DependencyParser
from partwise.passes import Evidence
from partwise.solvers.noise import Judgement
from partwise.tasks.common.suspects import probability
from partwise.tasks.dependency.data import Tree
from partwise.tasks.dependency.suspects import JudgedRelations, as_log_odds, keep_heads, minus_log_right
from small_treebanks import sentences

pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")]
SETTINGS = {"hash_bits": 8, "templates": ["h.upos|m.upos", "h.upos", "m.form"], "random_state": 0}


def with_mistakes():
    """Sentences of which the first has a wrong head, the second a wrong relation, and the third a head that is not known."""
    X, y = sentences(6, seed=1)
    y[0] = ([2, 0, 1, *y[0][0][3:]], y[0][1])
    y[1] = (y[1][0], ["punct", *y[1][1][1:]])
    y[2] = ([None, *y[2][0][1:]], y[2][1])
    return X, y


@pytest.fixture(scope="module")
def judged():
    """By a parser that has seen no mistakes."""
    return DependencyParser(max_epochs=6, **SETTINGS).fit(*sentences(12)).judge(*with_mistakes(), folds=None)


def test_what_is_wrong_comes_first(judged):
    X, y = with_mistakes()
    assert set(judged.ranked(1e-9, 2)) == {0, 1}
    starts = judged.found.evidence.starts
    assert set(judged.ranked_parts(1e-9, 2)) == {2, int(starts[1])}
    first, second = judged.suspect(0), judged.suspect(1)
    assert isinstance(first.given, Tree) and first.given.heads[:3] == [2, 0, 1] and first.believed.heads[:3] == [2, 0, 2]
    assert [(one.part, one.given, one.believed) for one in first.parts] == [(2, (1, "obj"), (2, "obj"))]
    assert [(one.part, one.given, one.believed) for one in second.parts] == [(0, (2, "punct"), (2, "nsubj"))]
    assert 0.0 < first.parts[0].probability <= first.probability <= 1.0
    k = int(starts[2])
    assert judged.found.parts[k] == -np.inf and not judged.found.evidence.disputed[k]
    assert judged.suspect(2).given.heads[0] is None and judged.suspect(2).believed.heads[0] == 2
    assert (judged.found.examples[[0, 1]].min() > np.delete(judged.found.examples, [0, 1])).all()


def test_only_what_is_worth_a_look_is_said_of_a_sentence(judged):
    """Words that are rather right, and whose head is not moved, are left out of a sentence, but may be listed by themselves."""
    a, b = judged.found.evidence.starts[:2].tolist()
    disputed, parts = judged.found.evidence.disputed.copy(), judged.found.parts.copy()
    disputed[a:b], parts[a:b] = True, -1.0
    heads = judged.heads.copy()
    heads[a:b] = judged.given.heads[a:b]
    weak = replace(judged, found=judged.found._replace(evidence=judged.found.evidence._replace(disputed=disputed), parts=parts))
    assert replace(weak, heads=heads).doubted(0) == list(range(a, b))  # better than nothing
    heads[a + 1] = 3
    assert replace(weak, heads=heads).doubted(0) == [a + 1]
    parts[a + 2] = 0.5
    assert replace(weak, heads=heads).doubted(0) == [a + 2, a + 1]


def test_heads_stay_where_only_a_relation_is_wrong(judged):
    """Two sentences of two words: both heads of each are disputed; in the first a relation is, and its heads are rather right."""
    starts = np.array([0, 2, 4])
    evidence = Evidence(starts, np.ones(4), np.zeros(4, np.int32), np.ones(4, bool))
    found = Judgement(evidence, np.array([-1.0, 1.0]), np.zeros(4), judged.found.noise)
    of_relations = Judgement(evidence, np.zeros(4), np.array([2.0, -3.0, 2.0, -3.0]), judged.found.noise)
    given, heads = np.array([2, 0, 2, 0]), np.array([0, 1, 0, 1])
    kept = keep_heads(found, JudgedRelations(of_relations, np.arange(4), [], np.zeros(4), [], None), given, heads)
    assert heads.tolist() == [2, 0, 0, 1] and kept.evidence.disputed.tolist() == [False, False, True, True]


def test_in_folds_without_a_model():
    """What `suspicion` says is in the order of X, and the estimator stays as it was."""
    X, y = with_mistakes()
    parser = DependencyParser(max_epochs=2, relations=False, **SETTINGS)
    p = parser.suspicion(X, y, folds=2, parts=True)
    assert p.shape == (sum(map(len, X)),) and p.argmax() == 2 and not hasattr(parser, "weights_")
    with pytest.raises(ValueError, match="There are no trees to judge"):
        parser.suspects(X, folds=2)
    with pytest.raises(ValueError, match="'folds' parameter is 7, but there are 6 examples"):
        parser.suspects(X, y, folds=7)


def test_trees_of_kinds_that_the_model_does_not_know():
    """Two roots, where it has one, and arcs that cross: both are judged, and the model stays as it was."""
    parser = DependencyParser(max_epochs=2, relations=False, projective=True, **SETTINGS).fit(*sentences(8))
    X = [[{"form": word, "upos": tag} for word, tag in zip("abcd", "NVNN", strict=True)]]
    assert parser.single_root_
    for heads in ([2, 0, 0, 2], [3, 0, 2, 1]):
        assert parser.suspicion(X, [heads], folds=None, parts=True).shape == (4,)
    assert parser.single_root_ and parser.projective


def test_probabilities_of_either():
    h, r = np.array([-3.0, 2.0, -np.inf, 700.0]), np.array([1.0, -40.0, -np.inf, 0.0])
    together = probability(as_log_odds(minus_log_right(h) + minus_log_right(r)))
    np.testing.assert_allclose(together, 1 - (1 - probability(h)) * (1 - probability(r)))
    assert as_log_odds(np.array([np.inf]))[0] == np.inf


@pytest.mark.slow
@pytest.mark.parametrize("fitted", [False, True])
def test_second_order_in_folds(fitted):
    X, y = with_mistakes()
    y[2] = ([2, *y[2][0][1:]], y[2][1])
    parser = DependencyParser(max_epochs=2, order=2, relations=False, hash_bits=8, random_state=0)
    if fitted:
        parser.fit(X, y)
    assert parser.suspicion(X, y, folds=2, parts=True).argmax() == 2
