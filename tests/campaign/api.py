"""Arrays of all shapes, types and strides, and labels of all kinds, given to estimators (by hypothesis)."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.extra.numpy as hnp
import numpy as np
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import partwise
from partwise import interpret

EACH = 25  #: inputs for a seed
SHOWN = (ValueError, TypeError, MemoryError, FloatingPointError, OverflowError)
DTYPES = st.sampled_from(["f8", "f4", "i8", "i4", "u1", "b1", "f2", ">f8", "c16", "U3", "O", "M8[s]"])
ARRAYS = DTYPES.flatmap(
    lambda dtype: hnp.arrays(
        np.dtype(dtype),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
        elements=st.sampled_from([None, 1.0, "a", np.nan]) if dtype == "O" else None,
    )
)


@st.composite
def matrices(draw: Any) -> Any:
    """Whatever might be given for a matrix: arrays, views with strides, sparse ones, lists."""
    array = draw(ARRAYS)
    kind = draw(st.sampled_from(["array", "array", "list", "csr", "coo", "reversed", "transposed", "strided", "readonly"]))
    if kind == "list":
        return array.tolist()
    if (
        kind in ("csr", "coo")
        and array.ndim == 2
        and array.dtype.kind in "fiu"
        and array.dtype.isnative
        and array.dtype.itemsize > 2
    ):
        return scipy.sparse.csr_matrix(array).asformat(kind)
    if kind == "reversed" and array.ndim:
        return array[::-1]
    if kind == "strided" and array.ndim:
        return array[::2]
    if kind == "readonly":
        array.flags.writeable = False
    return array.T if kind == "transposed" else array


SCALARS = st.one_of(st.integers(-3, 3), st.sampled_from([None, True, 1.5, float("nan"), "A", "B", b"x", (1, 2), frozenset("AB")]))
LABELS = st.one_of(ARRAYS, st.lists(SCALARS, max_size=6), st.lists(st.lists(SCALARS, max_size=5), max_size=4), SCALARS)
TOKENS = st.lists(
    st.lists(
        st.one_of(st.lists(st.text(max_size=3), max_size=3), st.dictionaries(st.text(max_size=2), SCALARS, max_size=2)),
        max_size=4,
    ),
    max_size=4,
)
MODELS = st.sampled_from(["Classifier", "SequenceLabeler", "Ranker", "Aligner", "RnaFolder", "DependencyParser", "GraphLabeler"])
PARAMETERS = st.fixed_dictionaries(
    {},
    optional={
        "loss": st.sampled_from(["hinge", "crf", "perceptron", "ramp_do", 3]),
        "C": st.sampled_from([1.0, 1e-300, 1e300, -1, "x"]),
    },
)


class Api:
    """`fit`, then `predict` on something else."""

    name = "api"
    inputs = EACH

    def prepare(self, folder: Path) -> None:
        pass

    def one(self, seed: int) -> str:
        @hypothesis.seed(seed)
        @settings(max_examples=EACH, database=None, deadline=None, suppress_health_check=list(HealthCheck))
        @given(
            MODELS,
            PARAMETERS,
            st.one_of(matrices(), TOKENS, st.lists(matrices(), max_size=3)),
            LABELS,
            st.one_of(matrices(), TOKENS),
        )
        def trial(name, parameters, X, y, other):
            with warnings.catch_warnings(), interpret(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    model = getattr(partwise, name)(max_epochs=2, **parameters).fit(X, y)
                    model.predict(X)
                    model.predict(other)
                except SHOWN:
                    pass

        trial()
        return "ended"
