"""What a linear classifier is: classes and weights, and the packed problems it sees the world through.

The truth of an example is a class, None (unknown) or a set of candidate classes. With ``hidden > 1`` every class is made of
several states.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from partwise.features.given_labels import GivenLabels, number_labels
from partwise.structures import MulticlassProblem, multiclass_problem
from partwise.structures.common.hidden import States
from partwise.tasks.common.base import Structured
from partwise.tasks.common.label_arrays import class_weights, cost_matrix, encode_labels, example_weights, shown


class Truth:
    """The classes of some examples: codes, and the sets that codes from the number of classes on stand for."""

    def __init__(self, codes: np.ndarray, known: np.ndarray | None = None):
        self.codes, self.known = codes, known

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, which: Any) -> Truth:
        return Truth(self.codes[which], self.known)

    def fits(self, n_classes: int) -> np.ndarray:
        """Which classes may be right, bool (examples, classes)."""
        single = np.eye(n_classes, dtype=bool)
        return (single if self.known is None else np.vstack([single, self.known]))[self.codes]


class ClassModel(Structured):
    """Packs and unpacks; trains and answers nothing itself."""

    constraints: Any
    class_weight: Any
    fit_intercept: bool
    intercept_scaling: float
    classes_: np.ndarray
    weights_: np.ndarray
    n_features_in_: int

    # -- packing ------------------------------------------------------------------------------------------------------

    def _validate(self, X, *y, reset=True):
        """X as a matrix of finite numbers; with y, both."""
        partial = bool(y) and is_partial(y[0])
        given = {"y": y[0]} if y and not partial else {}
        out = validate_data(
            self, X, **given, accept_sparse="csr", dtype=self._dtype, order="C", reset=reset, ensure_all_finite=False
        )
        matrix = out[0] if given else out
        values = matrix.data if scipy.sparse.issparse(matrix) else matrix
        if not np.isfinite(values).all():
            bad = np.flatnonzero(~np.isfinite(values))[0]
            row = (
                np.searchsorted(matrix.indptr, bad, side="right") - 1 if scipy.sparse.issparse(matrix) else bad // matrix.shape[1]
            )
            raise ValueError(f"Input X contains NaN or infinity: row {row} holds {values.flat[bad]}.")
        if not y:
            return matrix
        if partial:
            return matrix, number_classes(y[0], matrix.shape[0])
        check_classification_targets(out[1])
        return matrix, column_or_1d(out[1], warn=True)

    def _learn_classes(self, y) -> np.ndarray:
        """The classes there are, those named in sets included."""
        return y.learn(_place) if isinstance(y, GivenLabels) else np.unique(y)

    def _truth(self, y, classes, advice="It is not among the classes of this fit.") -> Truth:
        """What is known of the examples; `y` as given, or as `_validate` made it."""

        def refuse(k, label):
            what = f"Label {label!r} of {_place(k)}" if label != set() else f"An empty set, the label of {_place(k)},"
            return ValueError(f"{what} is not one of the classes {shown(classes)}. {advice}")

        if isinstance(y, GivenLabels) or is_partial(y):
            given = y if isinstance(y, GivenLabels) else number_classes(y, len(y))
            return Truth(*given.encode(classes, refuse))
        labels = np.asarray(y).tolist()
        return Truth(encode_labels(labels, classes, lambda k: refuse(k, labels[k])))

    def _weights_of(self, X, truth: Truth, classes, sample_weight):
        weight = example_weights(sample_weight, X.shape[0], "example")
        if self.class_weight is not None:  # of several candidates, the mean of theirs
            single = truth.codes < len(classes)
            each = class_weights(self.class_weight, classes, truth.codes[single], weight[single], self._who)
            fits = truth.fits(len(classes))
            weight = weight * (fits @ each / fits.sum(axis=1))
        return weight

    def _problem(self, X, truth: Truth, classes) -> MulticlassProblem:
        if scipy.sparse.issparse(X):
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            if self.fit_intercept:
                X = scipy.sparse.hstack([X, np.full((X.shape[0], 1), self.intercept_scaling, self._dtype)], format="csr")
        elif self.fit_intercept:
            X = np.hstack([X, np.full((X.shape[0], 1), self.intercept_scaling, self._dtype)])
        elif not X.flags.writeable:
            X = X.copy()  # read-only arrays are a type of their own to numba: not worth a compilation
        states = States(len(classes), self.hidden)
        costs = cost_matrix(self.cost, classes, self._who)
        allowed = self._allowed(classes)
        if allowed is not None:
            wrong = np.flatnonzero(~(truth.fits(len(classes)) & allowed).any(axis=1))
            if len(wrong):
                label = classes.tolist()[truth.codes[wrong[0]]] if truth.codes[wrong[0]] < len(classes) else "a set"
                raise ValueError(
                    f"The label {label!r} of {_place(wrong[0])} violates the 'constraints' parameter of {self._who}."
                )
            allowed = np.broadcast_to(states.sets(allowed), (len(truth), states.n))
        gold, known = states.truth(truth.codes, truth.known)
        return multiclass_problem(X, gold, states.n, states.costs(costs), allowed, self._dtype, known)

    def _allowed(self, classes):
        """Which classes may be answered, or None: all."""
        if self.constraints is None:
            return None
        if not (isinstance(self.constraints, dict) and set(self.constraints) == {"allow_labels"}):
            raise ValueError(
                f"The 'constraints' parameter of {self._who} must be None or {{'allow_labels': [...]}}. "
                f"Got {self.constraints!r} instead."
            )
        labels = list(self.constraints["allow_labels"])

        def refuse(k):
            return ValueError(
                f"The 'constraints' parameter of {self._who} names {labels[k]!r}, which is not one of the classes "
                f"{shown(classes)}."
            )

        codes = encode_labels(labels, classes, refuse)
        allowed = np.zeros(len(classes), bool)
        allowed[codes] = True
        if not allowed.any():
            raise ValueError(f"The 'constraints' parameter of {self._who} allows no class at all.")
        return allowed

    # -- the weights --------------------------------------------------------------------------------------------------

    def _n_inputs(self, n_features):
        return n_features + bool(self.fit_intercept)

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, (classes, features), or (states, features) if classes have several."""
        w = self._require_fitted("coef_")
        return w.reshape(-1, self._states.n)[: self.n_features_in_].T

    @property
    def intercept_(self) -> np.ndarray:
        """What is added to the scores, (classes,) or (states,)."""
        w = self._require_fitted("intercept_").reshape(-1, self._states.n)
        if len(w) == self.n_features_in_:
            return np.zeros(self._states.n, w.dtype)
        return w[-1] * w.dtype.type(self.intercept_scaling)

    # -- the model file -----------------------------------------------------------------------------------------------

    def _to_file(self):
        header = {"labels": self.classes_, "n_features": int(self.n_features_in_)}
        if hasattr(self, "feature_names_in_"):
            header["feature_names"] = [str(name) for name in self.feature_names_in_]
        return header, {"weights": self.weights_}

    def _from_file(self, header, tensors, need):
        self.classes_ = need(header, "labels", np.ndarray)
        self.n_features_in_ = need(header, "n_features", int)
        if "feature_names" in header:
            names = need(header, "feature_names", list)
            if len(names) != self.n_features_in_:
                raise ValueError(f"there are {len(names)} feature names for {self.n_features_in_} features")
            self.feature_names_in_ = np.array(names, object)
        self.weights_ = tensors["weights"]
        return self._n_inputs(self.n_features_in_) * self._states.n


def _place(k: int) -> str:
    return f"example {k}"


def is_partial(y: Any) -> bool:
    """Whether some label is None (unknown) or a set (one of these)."""
    if isinstance(y, np.ndarray):
        y = y if y.dtype == object else ()
    elif not isinstance(y, list | tuple):
        return False
    return any(label is None or isinstance(label, set | frozenset) for label in y)


def number_classes(y: Any, n: int) -> GivenLabels:
    """Labels some of which are unknown or sets."""
    labels = y.tolist() if isinstance(y, np.ndarray) else list(y)
    if len(labels) != n:
        raise ValueError(f"X has {n} examples, but y has {len(labels)} labels.")
    return number_labels(labels, _place)
