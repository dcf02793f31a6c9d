"""Weights as tensors of a file, in every form and precision, and models that are read with lists of weights."""

import copy
import pickle

import numpy as np
import pytest

import partwise
from partwise import SequenceLabeler
from partwise.engine.compilation import interpret
from partwise.features.sparse_weights import SparseWeights
from partwise.files.tensors import ModelFileError, read_tensors, write_tensors
from partwise.tasks.common.model_file import FORMAT, FORMAT_VERSION, save
from partwise.tasks.common.weight_tensors import BLOCK, from_tensors, to_tensors

F, L = 50, 40
RNG = np.random.default_rng(0)


def vector(share, dtype=np.float32):
    w = RNG.normal(size=(F + 2) * L) * (RNG.random((F + 2) * L) < share)
    return w.astype(dtype) + dtype(0.0)  # no -0.0, which comes back as 0.0


@pytest.mark.parametrize(("share", "version"), [(0.9, 1), (0.2, 2), (0.01, 3)])
@pytest.mark.parametrize("precision", [None, "float16", "int8"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_there_and_back(share, version, precision, dtype):
    w = vector(share, dtype)
    header, tensors = to_tensors(w, (F, L), precision)
    assert header["format_version"] == (version if precision is None else 3)
    again, others = from_tensors(header, {**tensors, "other": w})
    assert list(others) == ["other"] and isinstance(again, SparseWeights) == (share < 1 / 16)
    found = again.dense() if isinstance(again, SparseWeights) else again
    assert found.dtype == dtype
    if precision is None:
        assert found.tobytes() == w.tobytes()
    else:
        step = np.abs(w).max() * (2.0**-11 if precision == "float16" else 0.5001 / 127)
        assert 0 < np.abs(found - w).max() <= step and (found[w == 0] == 0).all()


def test_scales_are_of_blocks():
    w = np.concatenate([np.full(BLOCK, 1e-4), np.full(BLOCK + 3, 1e4)]).astype(np.float32)
    header, tensors = to_tensors(w, None, "int8")
    assert tensors["weights"].dtype == np.int8 and len(tensors["weights.scales"]) == 3
    np.testing.assert_allclose(from_tensors(header, tensors)[0], w, rtol=1e-6)


# -- models ------------------------------------------------------------------------------------------------------------

N_LABELS = 90


def sentences(seed=0, n=60):
    """Each word has its label; many labels."""
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(0, N_LABELS, rng.integers(1, 6)) for _ in range(n)]
    return [[[f"w{c}", f"v{c}"] for c in s] for s in drawn], [[f"L{c:02}" for c in s] for s in drawn]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    X, y = sentences()
    with interpret():
        model = SequenceLabeler("perceptron", solver="perceptron", max_epochs=1, random_state=0, use_transitions=False).fit(X, y)
    path = tmp_path_factory.mktemp("lists") / "model"
    model.save(path)
    return model, path, X


def test_lists_stay_lists_until_someone_looks(trained):
    model, path, X = trained
    again = partwise.load(path)
    with interpret():
        assert again.predict(X) == model.predict(X)
        np.testing.assert_array_equal(again.decision_value(X), model.decision_value(X))
    assert isinstance(again._kept_weights, SparseWeights) and "weights_" not in vars(again)
    for twin in (copy.deepcopy(again), pickle.loads(pickle.dumps(again))):
        np.testing.assert_array_equal(twin.weights_, model.weights_)
    again.coef_[:] = 0.0  # a view: editing it edits the model
    assert again._kept_weights is again.weights_ and not again.weights_[: again.coef_.size].any()


def test_lists_are_written_as_they_are(trained, tmp_path):
    _, path, _ = trained
    partwise.load(path).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_training_goes_on_from_lists(trained):
    model, path, X = trained
    y = sentences()[1]
    with interpret():
        ways = [partwise.load(path), copy.deepcopy(model)]
        for one in ways:
            one.set_params(warm_start=True).fit(X, y)
    np.testing.assert_array_equal(ways[0].weights_, ways[1].weights_)


@pytest.mark.parametrize("precision", ["float16", "int8"])
def test_fewer_digits(trained, tmp_path, precision):
    model, path, X = trained
    save(model, tmp_path / "small", precision)
    assert (tmp_path / "small").stat().st_size < path.stat().st_size
    with interpret():
        assert partwise.load(tmp_path / "small").predict(X) == model.predict(X)


def test_numbers_too_large_for_float16(trained, tmp_path):
    model = copy.deepcopy(trained[0])
    model.weights_[0] = 1e5
    with pytest.raises(ModelFileError, match=r"was not written. The largest weight is 1e\+05, too large for float16"):
        save(model, tmp_path / "m", "float16")
    with pytest.raises(ValueError, match="precision must be one of 'float16', 'int8'"):
        save(model, tmp_path / "m", "int4")


def change(name, to):
    return lambda t, h: t.update({name: to(t[name])})


@pytest.mark.parametrize(
    "spoil",
    [
        change("weights.labels", lambda a: a + a.dtype.type(N_LABELS)),
        change("weights.labels", lambda a: a[:-1]),
        change("weights.labels", lambda a: a.astype(np.int32)),
        change("weights.counts", lambda a: a[:-1]),
        change("weights.counts", lambda a: np.full_like(a, 65535)),
        change("weights.counts", lambda a: a.astype(np.int64) - 1),
        change("weights.counts", lambda a: np.append(a, a[:0].dtype.type(0))),
        change("weights.values", lambda a: np.full_like(a, np.inf)),
        change("weights.values", lambda a: a.astype(np.int8)),
        change("weights.values", lambda a: a[:-1]),
        change("weights.rest", lambda a: a[:-1]),
        change("weights.rest", lambda a: a[:-N_LABELS]),
        lambda t, h: t.pop("weights.rest"),
        lambda t, h: t.update({"weights": t["weights.values"]}),
        lambda t, h: h.pop("weights"),
        lambda t, h: h.update(weights=[1]),
        lambda t, h: h["weights"].update(labels=30),
        lambda t, h: h["weights"].update(labels=True),
        lambda t, h: h["weights"].update(dtype="object"),
    ],
)
def test_spoilt_lists_are_noticed(trained, tmp_path, spoil):
    header, tensors = read_tensors(str(trained[1]), FORMAT, FORMAT_VERSION)
    tensors = {key: np.array(array) for key, array in tensors.items()}
    spoil(tensors, header)
    write_tensors(tmp_path / "m", header, tensors)
    with pytest.raises(ModelFileError, match="damaged or was altered"):
        partwise.load(tmp_path / "m")
