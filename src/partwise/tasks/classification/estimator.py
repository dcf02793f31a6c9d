"""`Classifier`: linear multiclass classification with any loss and solver.

    minimise  Omega(W) + C sum_i weight_i L_i(W),    s(y) = x . W[:, y] + b[y]

with the penalty Omega(W) = l1_ratio ||W||_1 + (1 - l1_ratio)/2 ||W||^2. The intercept b is the weight of a constant feature,
regularised like the others, as in scikit-learn's LinearSVC.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from partwise.losses.records import get_loss
from partwise.tasks.classification.model import ClassModel, is_partial
from partwise.tasks.common.base import Structured, _is_bool, _is_count, _is_real
from partwise.tasks.common.label_arrays import check_k, example_weights, shown
from partwise.tasks.common.suspects import ClassSuspects


def _has_probabilities(self: Classifier) -> bool:
    if getattr(self, "temperature_", None) is None and not get_loss(self.loss).is_smooth:
        raise AttributeError(self._no_probabilities())
    return True


class Classifier(ClassifierMixin, ClassSuspects, ClassModel, BaseEstimator):
    """Linear classifier for two or more classes; with hidden components, a piecewise linear one.

    In training None stands for an unknown class, a set of classes for "one of these".

    Parameters
    ----------
    loss : {"hinge", "crf", "softmax_margin", "perceptron", "slack", "summed", "ramp", "ramp_do", "ramp_2", "soft_ramp"} or Loss
        ``"hinge"`` is the multiclass SVM of Crammer and Singer, ``"crf"`` is multinomial logistic regression.
        The ramp losses are robust against wrong labels; the default is ``"hinge"``.
    C : float, default=1.0
        Weight of the losses against the regulariser. The smaller, the stronger the regularisation.
    solver : str or Solver, default="auto"
        A name from `partwise.SOLVERS` or an object with parameters; `solver_` says what ``"auto"`` picked.
    l1_ratio : float in [0, 1], default=0.0
        Share of the L1 norm in the penalty, l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2. Above 0 many weights become exactly zero
        (``result_.n_nonzero`` are not); 1 makes the sparsest models. Choose C anew: it means something else then.
    cost : array (classes, classes) or dict {(true, answered): cost}, optional
        What a mistake costs; 1 by default. For losses with gamma > 0.
    constraints : dict {"allow_labels": [...]}, optional
        Only these classes are ever answered. May be set after fitting.
    class_weight : dict {class: weight} or "balanced", optional
        Multiplies the sample weights; where one of several classes is right, by the mean of theirs.
    hidden : int, default=1
        Components of each class, for classes that are not one lump (see `partwise.structures.common.hidden`): the model has weights for
        classes * hidden states, and the score of a class is that of its best one (finite beta: 1/beta log sum exp beta of them).
        Training begins at small random weights, drawn from `random_state`.
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
        A view of `weights_`: editing it edits the model. With ``hidden > 1``, for each of `states_`.
    intercept_ : array (classes,)
    states_ : list
        What the rows of `coef_` are called: the classes, or with ``hidden > 1`` their states, "cat/1", "cat/2".
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
        "hidden": (_is_count(1), "an int in the range [1, inf)"),
        "fit_intercept": (_is_bool, "a bool"),
        "intercept_scaling": (_is_real(0.0), "a float in the range (0, inf)"),
    }

    def __init__(
        self,
        loss="hinge",
        C=1.0,
        solver="auto",
        l1_ratio=0.0,
        cost=None,
        constraints=None,
        class_weight=None,
        hidden=1,
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
        self.l1_ratio = l1_ratio
        self.cost = cost
        self.constraints = constraints
        self.class_weight = class_weight
        self.hidden = hidden
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
        y : array or list (examples,)
            None stands for an unknown class, a set for "one of these".
        sample_weight : array (examples,), optional
            Non-negative; examples of weight zero are left out.
        validation : pair (X, y), optional
            Held-out data for early stopping, instead of a part of X.
        """
        loss = self._check_parameters()
        before = dict(self.__dict__) if self.warm_start and hasattr(self, "weights_") else None
        X, y = self._validate(X, y)
        classes = self._learn_classes(y)
        start = None
        if before is not None:
            classes, start = self._previous(before, classes, X.shape[1])
        elif len(classes) < 2:
            raise ValueError(f"Classifier needs examples of at least two classes; y has one class only: {classes.tolist()[0]!r}.")
        truth = self._truth(y, classes)
        weight = self._weights_of(X, truth, classes, sample_weight)
        seed = self._seed()
        held = None
        if validation is not None:
            held = self._problem(self._validate(validation[0], reset=False), self._truth(validation[1], classes), classes)
        elif self.early_stopping:
            kept, out = self._hold_out(X.shape[0], seed)
            held = self._problem(X[out], truth[out], classes)
            X, truth, weight = X[kept], truth[kept], weight[kept]
        if (weight == 0).any():
            X, truth, weight = X[weight > 0], truth[weight > 0], weight[weight > 0]
        self._solve(self._problem(X, truth, classes), loss, weight, held, start, seed)
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
        known = (self._learn_classes(y) if classes is None else np.unique(classes)) if fresh else self.classes_
        if len(known) < 2:
            raise ValueError(
                f"Classifier needs at least two classes; there is one only: {known.tolist()[0]!r}. Pass classes= on the "
                "first call of partial_fit."
            )
        if classes is not None and not np.array_equal(np.unique(classes), known):
            raise ValueError(f"classes={classes!r} is not what the first call of partial_fit or fit saw: {shown(known)}.")
        truth = self._truth(y, known, "Pass classes= with all classes on the first call of partial_fit.")
        weight = self._weights_of(X, truth, known, sample_weight)
        self._advance(self._problem(X, truth, known), loss, weight)
        self.classes_ = known
        return self

    def _previous(self, before, classes, n_features):
        """Classes and weights of the previous fit, if they serve."""
        old = before["classes_"]
        strange = [label for label in classes.tolist() if label not in set(old.tolist())]
        size = self._n_inputs(n_features) * len(old) * self.hidden
        if strange or n_features != before["n_features_in_"] or before["weights_"].size != size:
            self.__dict__.update(before)
            changed = "the number of features, 'hidden' or 'fit_intercept' has changed"
            why = f"y has the new class {strange[0]!r}" if strange else changed
            raise ValueError(f"warm_start=True cannot go on from the previous fit: {why}. Set warm_start=False to start afresh.")
        return old, before["weights_"]

    # -- prediction ---------------------------------------------------------------------------------------------------

    def _state_scores(self, X) -> np.ndarray:
        """s(y, h) of every state, (examples, states); -inf where constraints forbid it. With hidden=1 they are the classes."""
        self._require_fitted()
        X = self._validate(X, reset=False)
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        allowed = self._allowed(self.classes_)
        if allowed is not None:
            scores[:, ~self._states.sets(allowed)] = -np.inf
        return scores

    def _scores(self, X) -> np.ndarray:
        """s(y) of every class, (examples, classes): max_h s(y, h), or for finite beta 1/beta log sum_h exp beta s(y, h)."""
        scores, loss = self._state_scores(X), get_loss(self.loss)
        if self.hidden == 1:
            return scores
        scores = scores.reshape(len(scores), -1, self.hidden)
        if not loss.is_smooth:
            return scores.max(axis=2)
        return np.logaddexp.reduce(scores * loss.beta, axis=2) / loss.beta

    def decision_function(self, X):
        """Scores (examples, classes); for two classes the score of the second less that of the first, (examples,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def decision_value(self, X, y=None):
        """Score of the best class of each example, or of the classes `y` (of a set, that of the best in it)."""
        scores = self._scores(X)
        if y is None:
            return scores.max(axis=1)
        truth = self._truth(y, self.classes_)
        if len(truth) != len(scores):
            raise ValueError(f"X has {len(scores)} examples, but y has {len(truth)} labels.")
        return np.where(truth.fits(len(self.classes_)), scores, -np.inf).max(axis=1)

    def predict(self, X):
        """The class of highest score, (examples,)."""
        scores = self._scores(X)
        return self.classes_[scores.argmax(axis=1)]

    def score(self, X, y, sample_weight=None):
        """Accuracy. Of examples with several right classes any counts; those whose class is unknown do not count."""
        if not is_partial(y):
            return super().score(X, y, sample_weight)
        told = np.array([label is not None for label in y])
        weight = example_weights(sample_weight, len(told), "example")
        if not weight[told].any():
            raise ValueError("There are no labelled examples to score.")
        fits = self._truth(y, self.classes_).fits(len(self.classes_))
        right = fits[np.arange(len(fits)), self._scores(X).argmax(axis=1)]
        return float(np.average(right[told], weights=weight[told]))

    def predict_kbest(self, X, k=5):
        """The k best classes of each example, best first, and their scores: two arrays (examples, min(k, classes))."""
        check_k(k)
        scores = self._scores(X)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return self.classes_[order], np.take_along_axis(scores, order, axis=1)

    def predict_marginals(self, X):
        """P(y | x) ~ sum_h exp(s(y, h) / temperature), (examples, classes). Refused for margin losses unless calibrated."""
        beta = self._beta()
        scores = beta * self._state_scores(X).astype(np.float64)
        scores -= scores.max(axis=1, keepdims=True)
        p = self._states.total(np.exp(scores))
        return p / p.sum(axis=1, keepdims=True)

    @available_if(_has_probabilities)
    def predict_proba(self, X):
        """As `predict_marginals`, under scikit-learn's name; there only where probabilities are."""
        return self.predict_marginals(X)

    def calibrate(self, X, y):
        """Fit the temperature to held-out data, so that `predict_proba` may be used after training with a margin loss.

        One number: what is predicted does not change.
        """
        self._require_fitted()
        X = self._validate(X, reset=False)
        problem = self._problem(X, self._truth(y, self.classes_), self.classes_)
        self._check_size(problem, self.weights_)
        self._calibrate(problem)
        return self
