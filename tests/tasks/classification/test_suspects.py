"""Classes that are probably wrong."""

import numpy as np
import pytest

from partwise import Classifier, interpret
from partwise.datasets import plant_errors
from partwise.metrics import average_precision


def test_classes():

    rng = np.random.default_rng(0)
    centres, y = rng.normal(size=(3, 5)) * 3, np.repeat(["a", "b", "c"], 60)
    X = centres[np.repeat(np.arange(3), 60)] + rng.normal(size=(180, 5))
    planted = plant_errors(y, 0.1, 0, "shuffle")
    model = Classifier(loss="ramp", C=0.1, solver="pegasos", random_state=0)
    folded = model.suspicion(X, planted.y, folds=3)
    assert average_precision(planted.changed, folded) > 0.9 and not hasattr(model, "weights_")
    model.fit(X, planted.y)
    found = model.suspects(X, planted.y)
    assert found and np.mean([planted.changed[s.example] for s in found]) > 0.9
    for s in found:
        assert s.given == planted.y[s.example] and s.parts is None and 0.5 < s.probability <= 1
        assert s.believed == y[s.example] or not planted.changed[s.example]
        assert set(s.as_dict()) == {"example", "given", "believed", "probability"}
    assert average_precision(planted.changed, model.suspicion(X, planted.y)) > 0.9
    np.testing.assert_allclose(model.suspicion(X, planted.y, parts=True), model.suspicion(X, planted.y), atol=1e-9)
    with interpret():
        unknown = [None, *planted.y[1:20].tolist()]
        assert model.suspicion(X[:20], unknown)[0] < 1e-12 and 0 not in [s.example for s in model.suspects(X[:20], unknown)]
    assert model.suspects(np.zeros((0, 5)), []) == []
    with pytest.raises(ValueError, match="Label 'z' of example 1"):
        model.suspects(X[:2], ["a", "z"])
    with pytest.raises(ValueError, match="inconsistent"):
        model.suspects(X, y[:5])
