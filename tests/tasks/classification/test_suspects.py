"""Classes that a model refuses to believe."""

import numpy as np
import pytest

from partwise import Classifier
from partwise.datasets import plant_errors
from partwise.metrics import average_precision


def test_classes():

    rng = np.random.default_rng(0)
    centres, y = rng.normal(size=(3, 5)) * 3, np.repeat(["a", "b", "c"], 60)
    X = centres[np.repeat(np.arange(3), 60)] + rng.normal(size=(180, 5))
    planted = plant_errors(y, 0.1, 0, "shuffle")
    model = Classifier(loss="ramp", C=0.1, random_state=0)
    folded = model.suspicion(X, planted.y, cv=3)
    assert average_precision(planted.changed, folded) > 0.9 and not hasattr(model, "weights_")
    model.fit(X, planted.y)
    found = model.suspects(X, planted.y)
    assert found and all(planted.changed[s.example] for s in found)
    scores = model._scores(X)
    for s in found:
        assert s.given == planted.y[s.example] and s.believed == y[s.example] and s.tokens is None
        k = model.classes_.tolist().index(s.given)
        assert s.margin == pytest.approx(np.delete(scores[s.example], k).max() - scores[s.example, k])
        assert set(s.as_dict()) == {"example", "given", "believed", "margin"}
    assert len(model.suspects(X, planted.y, threshold=0.0)) == np.count_nonzero(model.predict(X) != planted.y)
    assert average_precision(planted.changed, model.suspicion(X, planted.y)) > 0.9
    unknown = [None, *planted.y[1:].tolist()]
    assert model.suspicion(X, unknown)[0] == -np.inf and 0 not in [s.example for s in model.suspects(X, unknown)]
    assert model.suspects(np.zeros((0, 5)), []) == []
    with pytest.raises(ValueError, match="Label 'z' of example 1"):
        model.suspects(X[:2], ["a", "z"])
    with pytest.raises(ValueError, match="inconsistent"):
        model.suspects(X, y[:5])
