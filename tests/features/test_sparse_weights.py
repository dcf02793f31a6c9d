"""Lists of weights score like the array they were made of, to the byte; what does not fit together is refused."""

import numpy as np
import pytest

from partwise.engine.accumulator import row
from partwise.engine.compilation import compiled_loop
from partwise.features.rows import Binary, Sparse, emit
from partwise.features.sparse_weights import SparseWeights, check_lists, n_not_zero, sparse_weights, without_small

F, L = 60, 70


def weights(seed=0, share=0.02, dtype=np.float32):
    """Most are zero, but some features have many labels in common: their sums are rounded."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(F + L + 2, L)) * (rng.random((F + L + 2, L)) < share)
    w[:5, :20] = rng.normal(size=(5, 20))
    w[7] = 0.0
    return w.astype(dtype).reshape(-1)


def rows(seed=0):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 12, 40)
    index = np.concatenate([rng.permutation(F)[:n] if k % 2 else rng.integers(0, 6, n) for k, n in enumerate(counts)])
    return Binary(np.concatenate([[0], np.cumsum(counts)]), index.astype(np.int32), F)


@compiled_loop
def emit_all(rows, w, width, out):
    for r in range(out.shape[0]):
        emit(rows, r, w, width, out[r])


def scores(rows, w, loop=emit_all, dtype=np.float32):
    out = np.zeros((len(rows.ptr) - 1, L), dtype)
    loop(rows, w, L, out)
    return out


@pytest.mark.compiled
def test_scores_are_the_same_to_the_byte():
    x, w = rows(), weights()
    lists = sparse_weights(w, F, L)
    assert scores(x, lists).tobytes() == scores(x, w).tobytes()
    assert np.abs(scores(x, w)).max() > 1


def test_scores_in_the_interpreter_and_of_more_digits():
    x, w = rows(), weights()
    lists = sparse_weights(w, F, L)
    for loop, dtype in ((emit_all.interpreted, np.float32), (emit_all.interpreted, np.float64)):
        dense = scores(x, w, loop, dtype)  # four features of float32 are added up before they enter a sum of float64
        np.testing.assert_allclose(scores(x, lists, loop, dtype), dense, rtol=0, atol=4e-7 * np.abs(dense).max())


def test_features_with_values():
    x, w = rows(), weights(dtype=np.float64)
    x = Sparse(x.ptr, x.index, np.random.default_rng(1).normal(size=len(x.index)), F)
    lists = sparse_weights(w, F, L)
    dense = scores(x, w, emit_all.interpreted, np.float64)
    np.testing.assert_array_equal(scores(x, lists, emit_all.interpreted, np.float64), dense)


def test_to_lists_and_back():
    w = weights()
    lists = sparse_weights(w, F, L)
    check_lists(lists)
    np.testing.assert_array_equal(lists.dense(), w)
    assert (lists.size, lists.shape, lists.ndim, lists.dtype) == (w.size, w.shape, 1, w.dtype)
    assert n_not_zero(lists) == n_not_zero(w) == np.count_nonzero(w)
    np.testing.assert_array_equal(row(lists, F + 3, L), w.reshape(-1, L)[F + 3])


def test_without_the_smallest():
    w = weights()
    lists = without_small(sparse_weights(w, F, L), 0.5)
    check_lists(lists)
    np.testing.assert_array_equal(lists.dense(), np.where(np.abs(w) < 0.5, 0, w))
    np.testing.assert_array_equal(without_small(w, 0.5), lists.dense())
    assert lists.dtype == lists.rest.dtype == np.float32 and n_not_zero(lists) < n_not_zero(w)


def test_only_where_it_is_worth_it():
    assert sparse_weights(weights(share=0.2), F, L) is None
    assert sparse_weights(np.zeros(F * 4, np.float32), F, 4) is None  # a bit for each weight is less than a length for each row
    assert sparse_weights(np.zeros(10, np.float32), 0, 5) is None


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda w: w._replace(labels=w.labels + np.uint16(L)), "where there are 70"),
        (lambda w: w._replace(starts=w.starts[::-1].copy()), "do not begin"),
        (lambda w: w._replace(starts=np.where(np.arange(F + 1) == 2, 0, w.starts)), "do not begin"),
        (lambda w: w._replace(starts=w.starts[:-1]), "do not begin"),
        (lambda w: w._replace(starts=w.starts[:0]), "do not begin"),
        (lambda w: w._replace(starts=w.starts.astype(np.int32)), "not lists"),
        (lambda w: w._replace(labels=w.labels[:-1]), "labels for"),
        (lambda w: w._replace(labels=w.labels.astype(np.int64)), "not lists"),
        (lambda w: w._replace(labels=np.zeros_like(w.labels)), "do not rise"),
        (lambda w: w._replace(values=w.values[None]), "not lists"),
        (lambda w: w._replace(values=w.values.astype(np.float64)), "not lists"),
        (lambda w: w._replace(rest=w.rest[:-1]), "that are dense"),
        (lambda w: w._replace(width=0), "rows of 0"),
        (lambda w: w._replace(width=1 << 16), "rows of"),
    ],
)
def test_what_does_not_fit_is_refused(spoil, said):
    lists = sparse_weights(weights(), F, L)
    assert isinstance(lists, SparseWeights)
    with pytest.raises(ValueError, match=said):
        check_lists(spoil(lists))
