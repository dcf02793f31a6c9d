"""`Classifier`: linear multiclass classification with any loss and solver.

    minimise  1/2 ||W||^2 + C sum_i weight_i L_i(W),    s(y) = x . W[:, y] + b[y]

The intercept b is the weight of a constant feature, regularised like the others, as in scikit-learn's LinearSVC.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from partwise.estimators.base import Structured, _is_bool, _is_real
from partwise.estimators.labels import class_weights, cost_matrix, encode_labels, example_weights, shown
from partwise.losses import get_loss
from partwise.structures import MulticlassProblem, multiclass_problem


def _has_probabilities(self: Classifier) -> bool:
    if getattr(self, "temperature_", None) is None and not get_loss(self.loss).is_smooth:
        raise AttributeError(self._no_probabilities())
    return True


class Classifier(ClassifierMixin, Structured, BaseEstimator):
    """Linear classifier for two or more classes.

    Parameters
    ----------
    loss : {"hinge", "crf", "softmax_margin", "perceptron"} or Family, default="hinge"
        ``"hinge"`` is the multiclass SVM of Crammer and Singer, ``"crf"`` is multinomial logistic regression.
    C : float, default=1.0
        Weight of the losses against the regulariser. The smaller, the stronger the regularisation.
    solver : str or Solver, default="auto"
        A name from `partwise.SOLVERS` or an object with parameters; `solver_` says what ``"auto"`` picked.
    cost : array (classes, classes) or dict {(true, answered): cost}, optional
        What a mistake costs; 1 by default. For losses with gamma > 0.
    constraints : dict {"allow_labels": [...]}, optional
        Only these classes are ever answered. May be set after fitting.
    class_weight : dict {class: weight} or "balanced", optional
        Multiplies the sample weights.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=1.0
        Value of the constant feature: the larger, the less the intercept is regularised.
    max_epochs : int, optional
        Each solver has its default.
    tol : float, default=1e-3
        Stop at this relative duality gap, where the solver has a certificate.
    average : bool, optional
        Whether to return the average of the iterates, for solvers that can.
    early_stopping : bool, default=False
        Hold out `validation_fraction` of the examples, stop when their mean cost has not improved for `patience` epochs, and
        keep the best model seen.
    validation_fraction : float, default=0.1
    patience : int, default=5
    warm_start : bool, default=False
        Start from the weights of the previous fit. Features and classes must be the same.
    random_state : int, RandomState or None
        Decides the order of the examples and what is held out.
    n_jobs : int, optional
        Threads for passes over all examples. Never changes the answer.
    dtype : {"float64", "float32"}
        Of the weights.
    callbacks : callable or list of callables, optional
        Each is called with a `partwise.Record` after every epoch; a true answer stops.
    verbose : int, default=0
        Print a line per epoch to stderr.

    Attributes
    ----------
    classes_ : array (classes,)
    coef_ : array (classes, features)
        A view of `weights_`: editing it edits the model.
    intercept_ : array (classes,)
    weights_ : array
        All weights, flat.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    result_ : SolveResult
        How the solver fared, epoch by epoch.
    solver_ : str
        Which solver ran.
    temperature_ : float or None
        Of p(y | x) ~ exp(s(y) / temperature); None for margin losses before `calibrate`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> Classifier(loss="hinge", random_state=0).fit(X, y).score(X, y) > 0.9  # doctest: +SKIP
    True
    """

    _checks = {
        **Structured._checks,
        "fit_intercept": (_is_bool, "a bool"),
        "intercept_scaling": (_is_real(0.0), "a float in the range (0, inf)"),
    }

    def __init__(
        self,
        loss="hinge",
        C=1.0,
        solver="auto",
        cost=None,
        constraints=None,
        class_weight=None,
        fit_intercept=True,
        intercept_scaling=1.0,
        max_epochs=None,
        tol=1e-3,
        average=None,
        early_stopping=False,
        validation_fraction=0.1,
        patience=5,
        warm_start=False,
        random_state=None,
        n_jobs=None,
        dtype="float64",
        callbacks=None,
        verbose=0,
    ):
        self.loss = loss
        self.C = C
        self.solver = solver
        self.cost = cost
        self.constraints = constraints
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.max_epochs = max_epochs
        self.tol = tol
        self.average = average
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.dtype = dtype
        self.callbacks = callbacks
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- training -----------------------------------------------------------------------------------------------------

    def fit(self, X, y, sample_weight=None, *, validation=None):
        """Train from nothing, or with ``warm_start=True`` from the previous weights.

        Parameters
        ----------
        X : array or sparse matrix (examples, features)
        y : array (examples,)
        sample_weight : array (examples,), optional
            Non-negative; examples of weight zero are left out.
        validation : pair (X, y), optional
            Held-out data for early stopping, instead of a part of X.
        """
        loss = self._check_parameters()
        before = dict(self.__dict__) if self.warm_start and hasattr(self, "weights_") else None
        X, y = self._validate(X, y)
        classes = np.unique(y)
        start = None
        if before is not None:
            classes, start = self._previous(before, classes, X.shape[1])
        elif len(classes) < 2:
            raise ValueError(f"Classifier needs examples of at least two classes; y has one class only: {classes.tolist()[0]!r}.")
        codes = self._codes(y, classes)
        weight = self._weights_of(X, codes, classes, sample_weight)
        seed = self._seed()
        held = None
        if validation is not None:
            held = self._problem(self._validate(validation[0], reset=False), self._codes(validation[1], classes), classes)
        elif self.early_stopping:
            kept, out = self._hold_out(X.shape[0], seed)
            held = self._problem(X[out], codes[out], classes)
            X, codes, weight = X[kept], codes[kept], weight[kept]
        if (weight == 0).any():
            X, codes, weight = X[weight > 0], codes[weight > 0], weight[weight > 0]
        self._solve(self._problem(X, codes, classes), loss, weight, held, start, seed)
        self.classes_ = classes
        return self

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """One epoch of an online solver over these examples, going on from the current weights.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array, optional
            All classes that will ever come, on the first call; otherwise those of the first `y`.
        """
        loss = self._check_parameters()
        fresh = not hasattr(self, "weights_")
        X, y = self._validate(X, y, reset=fresh)
        known = np.unique(y if classes is None else classes) if fresh else self.classes_
        if len(known) < 2:
            raise ValueError(
                f"Classifier needs at least two classes; there is one only: {known.tolist()[0]!r}. Pass classes= on the "
                "first call of partial_fit."
            )
        if classes is not None and not np.array_equal(np.unique(classes), known):
            raise ValueError(f"classes={classes!r} is not what the first call of partial_fit or fit saw: {shown(known)}.")
        codes = self._codes(y, known, "Pass classes= with all classes on the first call of partial_fit.")
        weight = self._weights_of(X, codes, known, sample_weight)
        self._advance(self._problem(X, codes, known), loss, weight)
        self.classes_ = known
        return self

    def _validate(self, X, *y, reset=True):
        """X as a matrix of finite numbers; with y, both."""
        given = {"y": y[0]} if y else {}
        out = validate_data(
            self, X, **given, accept_sparse="csr", dtype=self._dtype, order="C", reset=reset, ensure_all_finite=False
        )
        matrix = out[0] if y else out
        values = matrix.data if scipy.sparse.issparse(matrix) else matrix
        if not np.isfinite(values).all():
            bad = np.flatnonzero(~np.isfinite(values))[0]
            row = (
                np.searchsorted(matrix.indptr, bad, side="right") - 1 if scipy.sparse.issparse(matrix) else bad // matrix.shape[1]
            )
            raise ValueError(f"Input X contains NaN or infinity: row {row} holds {values.flat[bad]}.")
        if not y:
            return matrix
        check_classification_targets(out[1])
        return matrix, column_or_1d(out[1], warn=True)

    def _codes(self, y, classes, advice="It is not among the classes of this fit."):
        def refuse(k):
            return ValueError(f"Label {labels[k]!r} of example {k} is not one of the classes {shown(classes)}. {advice}")

        labels = np.asarray(y).tolist()
        return encode_labels(labels, classes, refuse)

    def _previous(self, before, classes, n_features):
        """Classes and weights of the previous fit, if they serve."""
        old = before["classes_"]
        strange = [label for label in classes.tolist() if label not in set(old.tolist())]
        if strange or n_features != before["n_features_in_"] or before["weights_"].size != self._n_inputs(n_features) * len(old):
            self.__dict__.update(before)
            why = f"y has the new class {strange[0]!r}" if strange else "the number of features or fit_intercept has changed"
            raise ValueError(f"warm_start=True cannot go on from the previous fit: {why}. Set warm_start=False to start afresh.")
        return old, before["weights_"]

    def _weights_of(self, X, codes, classes, sample_weight):
        weight = example_weights(sample_weight, X.shape[0], "example")
        if self.class_weight is not None:
            weight = weight * class_weights(self.class_weight, classes, codes, weight, self._who)[codes]
        return weight

    def _problem(self, X, codes, classes) -> MulticlassProblem:
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
        costs = cost_matrix(self.cost, classes, self._who)
        allowed = self._allowed(classes)
        if allowed is not None:
            wrong = np.flatnonzero(~allowed[codes])
            if len(wrong):
                label = classes.tolist()[codes[wrong[0]]]
                raise ValueError(
                    f"The label {label!r} of example {wrong[0]} violates the 'constraints' parameter of {self._who}."
                )
            allowed = np.broadcast_to(allowed, (len(codes), len(allowed)))
        return multiclass_problem(X, codes, len(classes), costs, allowed, self._dtype)

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
        """Weights of the features, (classes, features)."""
        w = self._require_fitted("coef_")
        return w.reshape(-1, len(self.classes_))[: self.n_features_in_].T

    @property
    def intercept_(self) -> np.ndarray:
        """What is added to the scores, (classes,)."""
        w = self._require_fitted("intercept_").reshape(-1, len(self.classes_))
        if len(w) == self.n_features_in_:
            return np.zeros(len(self.classes_), w.dtype)
        return w[-1] * w.dtype.type(self.intercept_scaling)

    # -- prediction ---------------------------------------------------------------------------------------------------

    def _scores(self, X) -> np.ndarray:
        """s(y) of every class, (examples, classes); -inf where constraints forbid it."""
        self._require_fitted()
        X = self._validate(X, reset=False)
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        allowed = self._allowed(self.classes_)
        if allowed is not None:
            scores[:, ~allowed] = -np.inf
        return scores

    def decision_function(self, X):
        """Scores (examples, classes); for two classes the score of the second less that of the first, (examples,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def decision_value(self, X, y=None):
        """Score of the best class of each example, or of the classes `y`."""
        scores = self._scores(X)
        if y is None:
            return scores.max(axis=1)
        codes = self._codes(y, self.classes_)
        if len(codes) != len(scores):
            raise ValueError(f"X has {len(scores)} examples, but y has {len(codes)} labels.")
        return scores[np.arange(len(codes)), codes]

    def predict(self, X):
        """The class of highest score, (examples,)."""
        scores = self._scores(X)
        return self.classes_[scores.argmax(axis=1)]

    def predict_kbest(self, X, k=5):
        """The k best classes of each example, best first, and their scores: two arrays (examples, min(k, classes))."""
        if not (isinstance(k, int | np.integer) and k >= 1):
            raise ValueError(f"k must be an int in the range [1, inf). Got {k!r} instead.")
        scores = self._scores(X)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return self.classes_[order], np.take_along_axis(scores, order, axis=1)

    def predict_marginals(self, X):
        """P(y | x) ~ exp(s(y) / temperature), (examples, classes). Refused for margin losses unless calibrated."""
        beta = self._beta()
        scores = beta * self._scores(X).astype(np.float64)
        scores -= scores.max(axis=1, keepdims=True)
        p = np.exp(scores)
        return p / p.sum(axis=1, keepdims=True)

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """As `predict_marginals`, under scikit-learn's name; there only where probabilities are."""
        return self.predict_marginals(X)

    def calibrate(self, X, y):
        """Fit the temperature to held-out data, so that `predict_proba` may be used after training with a margin loss.

        One number: the ranking of the classes does not change.
        """
        self._require_fitted()
        X = self._validate(X, reset=False)
        problem = self._problem(X, self._codes(y, self.classes_), self.classes_)
        self._check_size(problem, self.weights_)
        self._calibrate(problem)
        return self

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
        return self._n_inputs(self.n_features_in_) * len(self.classes_)
