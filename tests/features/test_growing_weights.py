"""Lists that grow are trained like arrays of weights: the same model, entry by entry, through every step on the way."""

import errno

import numpy as np
import pytest

import partwise.engine.accumulator as accumulator_module
import partwise.features.growing_weights as growing_module
from partwise.engine.accumulator import accumulator, compact, dot, row
from partwise.features.growing_weights import growing_weights
from partwise.features.rows import Binary, Sparse, emit
from partwise.features.sparse_weights import sparse_weights, written_out
from partwise.solvers.weights import add, averaged, count_step, current, in_use, make_weights, shrink
from partwise.tasks.common import solving
from partwise.tasks.tagging.estimator import SequenceLabeler

pytestmark = pytest.mark.interpreted
F, L, REST = 30, 9, 18  # features, labels, weights behind those of features
N = F * L + REST


def some(gradient, seed):
    """A few rows touched, with few labels each; the last rows are not of features."""
    rng = np.random.default_rng(seed)
    for r in rng.permutation(F + REST // L)[:8]:
        into = row(gradient, r, L)
        into[rng.integers(0, L, 2)] += rng.normal()


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_are_those_of_arrays(average, dtype):
    kinds = [make_weights(N, dtype, average, power=1.0), make_weights(N, dtype, average, power=1.0, lists=(F, L))]
    gradients = [compact(accumulator(N, L, dtype)) for _ in kinds]
    for step in range(60):
        for gradient in gradients:
            some(gradient, step)
        products = [dot(gradient, weights.v) for gradient, weights in zip(gradients, kinds, strict=True)]
        assert products[0] == pytest.approx(products[1], rel=1e-5, abs=1e-6)
        for gradient, weights in zip(gradients, kinds, strict=True):
            shrink(weights, 1e-3 if step % 20 == 19 else 0.9)  # some are small enough for everything to be written out
            add(weights, 0.3, gradient)
            count_step(weights)
    array, lists = kinds
    assert int(lists.v.sizes.max()) > 4  # lists have moved more than once
    for read in (current, averaged):
        dense, found = read(array), read(lists)
        assert np.count_nonzero(dense) > 100
        np.testing.assert_array_equal(found.dense(), dense)
        assert all(np.array_equal(a, b) for a, b in zip(sparse_weights(dense, F, L) or found, found, strict=True))
    assert array.v @ array.v == pytest.approx(lists.v @ lists.v, rel=1e-5)
    assert found.min() == dense.min() and found.max() == dense.max()


def test_scores_are_those_of_arrays():
    weights, gradient = make_weights(N, lists=(F, L)), compact(accumulator(N, L))
    for step in range(40):
        some(gradient, step)
        add(weights, 1.0, gradient)
    array, rng = written_out(current(weights)), np.random.default_rng(0)
    index = rng.integers(0, F, 24).astype(np.int32)
    ptr = np.array([0, 5, 5, 24])
    for rows in (Binary(ptr, index, F), Sparse(ptr, index, rng.normal(size=24), F)):
        for r in range(3):
            found, expected = np.zeros(L), np.zeros(L)
            emit(rows, r, weights.v, L, found)
            emit(rows, r, array, L, expected)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(row(weights.v, F + 1, L), array[(F + 1) * L : (F + 2) * L])


def test_a_list_of_every_label_fits():
    v, u = growing_weights(3, 5, 15, np.float64, True)
    weights, gradient = make_weights(15, lists=(3, 5)), compact(accumulator(15, 5))
    for label in range(5):
        for r in range(3):
            row(gradient, r, 5)[label] = 1.0 + r
        add(weights, 1.0, gradient)
    assert weights.v.used[0] <= len(v.pool) == len(u.pool)
    np.testing.assert_array_equal(current(weights).dense(), np.repeat([1.0, 2.0, 3.0], 5))


X = [[["a", "b"], ["c"], ["a"]], [["b"], ["d", "a"]], [["c", "d"]], [["b", "c"], ["a"], ["d"]]] * 2
Y = [["P", "Q", "R"], ["Q", "S"], ["T"], ["Q", "P", "S"], ["R", "Q", "P"], ["Q", "T"], ["S"], ["P", "R", "R"]]


@pytest.fixture
def lists(monkeypatch):
    """Tiny models are trained as large ones are."""
    monkeypatch.setattr(solving, "MANY", 1)
    monkeypatch.setattr(SequenceLabeler, "listed_from", 0)


def learnt(solver, **more):
    model = SequenceLabeler(solver=solver, max_epochs=6, dtype="float64", **more)
    model.evaluate = "auto"
    return model


@pytest.mark.parametrize("solver", ["dca", "pegasos"])
def test_models_are_those_of_arrays(solver, lists, tmp_path, monkeypatch):
    model = learnt(solver).fit(X, Y)
    assert type(model._kept_weights).__name__ == "SparseWeights"
    answers = model.predict(X)
    model.save(tmp_path / "model")
    monkeypatch.setattr(SequenceLabeler, "listed_from", 1 << 60)
    dense = learnt(solver).fit(X, Y)
    assert isinstance(dense._kept_weights, np.ndarray)
    np.testing.assert_allclose(model.weights_, dense.weights_, rtol=1e-9, atol=1e-12)
    assert np.array_equal(model.weights_ != 0, dense.weights_ != 0)
    assert answers == dense.predict(X) == SequenceLabeler.load(tmp_path / "model").predict(X)
    assert (model.result_.primal, model.result_.n_nonzero) == pytest.approx((dense.result_.primal, dense.result_.n_nonzero))
    if solver == "pegasos":
        assert model.result_.dual == pytest.approx(dense.result_.dual)


def test_where_addresses_are_limited_there_are_arrays(lists, monkeypatch):
    """As under ``ulimit -v``: lists have room to grow by reserving addresses."""
    of_lists = learnt("dca").fit(X, Y).weights_

    def refused(*_):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    def untouched_zeros(*given):
        with monkeypatch.context() as patch:
            patch.setattr(accumulator_module, "LARGE", 0)
            patch.setattr(accumulator_module.mmap, "mmap", refused)
            return accumulator_module.untouched_zeros(*given)

    with pytest.raises(MemoryError, match=r"no room for 3.2 GB of addresses \(Cannot allocate memory\)"):
        untouched_zeros(3 << 28, np.float32)
    monkeypatch.setattr(growing_module, "untouched_zeros", untouched_zeros)
    model = learnt("dca").fit(X, Y)
    assert isinstance(model._kept_weights, np.ndarray)
    np.testing.assert_allclose(model.weights_, of_lists, rtol=1e-12)


def test_what_needs_arrays_has_them(lists):
    for how in (dict(loss="crf", solver="dca"), dict(solver="mira"), dict(solver="dca", hidden=2)):
        assert isinstance(learnt(**how).fit(X, Y)._kept_weights, np.ndarray)
    with_bound = learnt("dca")
    with_bound.evaluate = "end"
    assert isinstance(with_bound.fit(X, Y)._kept_weights, np.ndarray)


def test_a_checkpoint_goes_on(lists, tmp_path):
    whole = learnt("pegasos").fit(X, Y, validation=(X[:3], Y[:3]))

    def stop(record):
        if record.epoch == 3:
            raise KeyboardInterrupt

    begun = learnt("pegasos", callbacks=[stop])
    begun.checkpoint_seconds = 0.0
    with pytest.warns(UserWarning, match="interrupted"):
        begun.fit(X, Y, validation=(X[:3], Y[:3]), checkpoint=tmp_path / "run")
    assert (tmp_path / "run").stat().st_size < 20_000  # room to grow is not written down
    rest = learnt("pegasos").fit(X, Y, validation=(X[:3], Y[:3]), checkpoint=tmp_path / "run")
    assert rest.result_.n_epochs == whole.result_.n_epochs
    np.testing.assert_array_equal(rest.weights_, whole.weights_)


def test_only_what_is_in_use_is_written_down():
    weights, gradient = make_weights(N, lists=(F, L)), compact(accumulator(N, L))
    some(gradient, 0)
    add(weights, 1.0, gradient)
    kept = in_use(weights)
    assert len(kept.v.pool) == len(kept.v.labels) == len(kept.u.pool) == weights.v.used[0] < len(weights.v.pool)
    assert in_use(make_weights(N)).v.size == N
