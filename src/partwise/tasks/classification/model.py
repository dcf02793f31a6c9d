"""What a linear classifier is: classes and weights, how features are scaled, and the packed problems it sees the world through.

With ``hidden > 1`` every class is made of several states.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise.features.given_labels import GivenLabels
from partwise.features.rows import is_sparse, spread_of
from partwise.structures import MulticlassProblem, multiclass_problem
from partwise.structures.common.hidden import States
from partwise.tasks.classification.data import (
    Truth,
    check_names,
    is_partial,
    names_of,
    number_classes,
    place,
    read_classes,
    read_matrix,
)
from partwise.tasks.common.base import Structured
from partwise.tasks.common.hidden_states import HiddenStates
from partwise.tasks.common.label_arrays import class_weights, cost_matrix, encode_labels, example_weights, shown
from partwise.tasks.common.model_file import count_in, labels_in


class ClassModel(HiddenStates, Structured):
    """Packs and unpacks; trains and answers nothing itself."""

    constraints: Any
    class_weight: Any
    scale: bool
    fit_intercept: bool
    intercept_scaling: float
    classes_: np.ndarray
    weights_: np.ndarray
    n_features_in_: int
    scale_: np.ndarray | None = None  #: what features are divided by
    centre_: np.ndarray | None = None  #: what is taken off them before
    table_: dict[str, Any] | None = None  #: how columns of files become features: `partwise.tasks.classification.table_form`

    # -- reading ------------------------------------------------------------------------------------------------------

    def _validate(self, X, *y, reset=True):
        """X as a matrix of finite numbers; with y, both. Whether it has the features that it must have."""
        names = names_of(X)
        if not reset:
            check_names(getattr(self, "feature_names_in_", None), names, self._who)
        matrix = read_matrix(X, self._dtype)
        n, d = matrix.shape
        if not reset and d != self.n_features_in_:
            raise ValueError(f"X has {d} features, but {self._who} is expecting {self.n_features_in_} features as input.")
        if reset:
            self.n_features_in_ = d
            self.__dict__.pop("feature_names_in_", None)
            if names is not None:
                self.feature_names_in_ = names
        return (matrix, read_classes(y[0], n, self._who)) if y else matrix

    # -- scaling ------------------------------------------------------------------------------------------------------

    def _learn_scale(self, X, weight=None) -> None:
        """Standard deviations, and for dense features, whose zeros need not stay zero, means."""
        self.scale_ = self.centre_ = None
        if not self.scale:
            return
        weight = np.ones(X.shape[0]) if weight is None else weight
        weight = weight / weight.sum()
        mean = np.asarray(weight @ X, np.float64)
        if is_sparse(X):
            variance = np.asarray(weight @ X.multiply(X), np.float64).reshape(-1) - mean.reshape(-1) ** 2
        else:
            variance = weight @ np.square(X - mean)
            self.centre_ = mean
        variance[variance <= 1e-12 * np.square(mean.reshape(-1))] = 1.0  # it is constant
        self.scale_ = np.sqrt(variance)

    def _scaled(self, X):
        """Features as the weights see them."""
        if self.scale_ is None:
            return X
        if is_sparse(X) and self.centre_ is None:
            X = X.copy()
            X.data /= self.scale_[X.indices].astype(X.dtype)
            return X
        X = X.toarray() if is_sparse(X) else X
        return ((X - (0.0 if self.centre_ is None else self.centre_)) / self.scale_).astype(X.dtype)

    def _spread(self, problem: MulticlassProblem, weight: np.ndarray | None) -> float:
        return spread_of(problem.rows, weight)

    # -- packing ------------------------------------------------------------------------------------------------------

    def _learn_classes(self, y) -> np.ndarray:
        """The classes there are, those named in sets included."""
        return y.learn(place) if isinstance(y, GivenLabels) else np.unique(y)

    def _truth(self, y, classes, advice="It is not among the classes of this fit.") -> Truth:
        """What is known of the examples; `y` as given, or as `_validate` made it."""

        def refuse(k, label):
            what = f"Label {label!r} of {place(k)}" if label != set() else f"An empty set, the label of {place(k)},"
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
        X = self._scaled(X)
        constant = np.full((X.shape[0], 1), self.intercept_scaling, self._dtype)
        if is_sparse(X):
            if not X.has_canonical_format:
                X = X.copy()
                X.sum_duplicates()
            if self.fit_intercept:
                import scipy.sparse

                X = scipy.sparse.hstack([X, constant], format="csr")
        elif self.fit_intercept:
            X = np.hstack([X, constant])
        elif not X.flags.writeable:
            X = X.copy()  # read-only arrays are a type of their own to numba: not worth a compilation
        states = States(len(classes), self.hidden)
        costs = cost_matrix(self.cost, classes, self._who)
        allowed = self._allowed(classes)
        if allowed is not None:
            wrong = np.flatnonzero(~(truth.fits(len(classes)) & allowed).any(axis=1))
            if len(wrong):
                label = classes.tolist()[truth.codes[wrong[0]]] if truth.codes[wrong[0]] < len(classes) else "a set"
                raise ValueError(f"The label {label!r} of {place(wrong[0])} violates the 'constraints' parameter of {self._who}.")
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
        if self.table_ is not None:
            header["table"] = self.table_
        arrays = {"scale": self.scale_, "centre": self.centre_}
        return header, {name: array for name, array in arrays.items() if array is not None}

    def _from_file(self, header, tensors, need):
        self.classes_, self.n_features_in_ = labels_in(header), count_in(header)
        self.table_ = header.get("table")
        if "feature_names" in header:
            names = need(header, "feature_names", list)
            if len(names) != self.n_features_in_:
                raise ValueError(f"there are {len(names)} feature names for {self.n_features_in_} features")
            self.feature_names_in_ = np.array(names, object)
        self.scale_, self.centre_ = tensors.get("scale"), tensors.get("centre")
        for array in (self.scale_, self.centre_):
            if array is not None and (array.shape != (self.n_features_in_,) or not np.isfinite(array).all()):
                raise ValueError("features are scaled by something that is not a number for each")
        if self.scale_ is not None and not (self.scale_ > 0).all():
            raise ValueError("features are divided by something that is not positive")
        return self._n_inputs(self.n_features_in_) * self._states.n
