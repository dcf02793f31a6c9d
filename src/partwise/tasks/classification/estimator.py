"""`Classifier`: linear multiclass classification with any loss and solver.

    minimise  Omega(W) + C sum_i weight_i L_i(W),    s(y) = x . W[:, y] + b[y]

with the penalty Omega(W) = l1_ratio ||W||_1 + (1 - l1_ratio)/2 ||W||^2. The intercept b is the weight of a constant feature,
regularised like the others, as in scikit-learn's LinearSVC.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from partwise.tasks.classification.data import is_partial, read_classes
from partwise.tasks.classification.model import ClassModel
from partwise.tasks.classification.suspects import ClassSuspects
from partwise.tasks.common.base import Structured, is_corpus
from partwise.tasks.common.checks import is_bool, is_count, is_real
from partwise.tasks.common.label_arrays import check_k, example_weights, shown


class WhereProbabilitiesAre:
    """A method that is there only where there are probabilities, so that ``hasattr`` tells: what scikit-learn looks for."""

    def __init__(self, method: Any):
        self.method, self.__doc__ = method, method.__doc__

    def __get__(self, model: Any, owner: Any = None) -> Any:
        if model is None:
            return self.method
        if getattr(model, "temperature_", None) is None and not model._loss().is_smooth:
            raise AttributeError(model._no_probabilities())
        return self.method.__get__(model, owner)


@dataclass(eq=False, repr=False)
class Classifier(ClassSuspects, ClassModel):
    """Linear classifier for two or more classes; with hidden components, a piecewise linear one.

    In training None stands for an unknown class, a set of classes for "one of these". With ``loss="hinge"`` it is the multiclass
    SVM of Crammer and Singer, with ``"crf"`` multinomial logistic regression.

    Parameters
    ----------
    %(loss)s
    cost : array (classes, classes) or dict {(true, answered): cost}, optional
        What a mistake costs; 1 by default. For losses with gamma > 0.
    constraints : dict {"allow_labels": [...]}, optional
        Only these classes are ever answered. May be set after fitting.
    class_weight : dict {class: weight} or "balanced", optional
        Multiplies the sample weights; where one of several classes is right, by the mean of theirs.
    hidden : int, default=1
        Components of each class, for classes that are not one lump (see `partwise.structures.common.hidden`): the model has
        weights for classes * hidden states, and the score of a class is that of its best one (finite beta: 1/beta log sum exp
        beta of them). Training begins at small random weights, drawn from `random_state`.
    fit_intercept : bool, default=True
    intercept_scaling : float, default=1.0
        Value of the constant feature: the larger, the less the intercept is regularised.
    scale : bool, default=False
        Whether to divide features by their standard deviation in the training data, dense ones less their mean. What features
        of different units want; `coef_` is about scaled features then. Of `partial_fit` the first call decides.
    %(learning)s

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
    scale_, centre_ : arrays (features,) or None
        What features are divided by, and what is taken off before.
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
    >>> Classifier(loss="hinge", random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    _: KW_ONLY
    cost: Any = None  # type: ignore[misc]
    constraints: Any = None
    class_weight: Any = None
    hidden: int = 1
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    scale: bool = False

    sklearn_mixins = ("ClassifierMixin",)

    @classmethod
    def defaults(cls) -> Any:
        from partwise.solvers.defaults import LOG, Defaults

        # DCA loses up to ten points with wrong labels (docs/defaults.md)
        return Defaults(solver={LOG: "pegasos"})

    _checks = {
        **Structured._checks,
        "hidden": (is_count(1), "an int in the range [1, inf)"),
        "fit_intercept": (is_bool, "a bool"),
        "intercept_scaling": (is_real(0.0), "a float in the range (0, inf)"),
        "scale": (is_bool, "a bool"),
    }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = tags.input_tags.sparse = True
        return tags

    # -- training -----------------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None, *, validation=None, checkpoint=None):
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
        checkpoint : path, optional
            As in `SequenceLabeler.fit`.
        """
        if is_corpus(X):
            return self._fit_packed(X, (y, sample_weight), validation, checkpoint)
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
        if before is None:
            self._learn_scale(X, weight)
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
        self._solve(self._problem(X, truth, classes), loss, weight, held, start, seed, checkpoint)
        self.classes_ = classes
        return self

    def _judge_by(self, validation: Any, problem: Any) -> Any:
        X, y = validation
        return self._problem(self._validate(X, reset=False), self._truth(y, self.classes_), self.classes_)

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
        if fresh:
            self._learn_scale(X, weight)
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
        weights, constant = self.coef_, self.intercept_
        if self.scale_ is not None:
            weights = weights / self.scale_.astype(weights.dtype)
            constant = constant if self.centre_ is None else constant - weights @ self.centre_.astype(weights.dtype)
        scores = np.asarray(X @ weights.T) + constant
        allowed = self._allowed(self.classes_)
        if allowed is not None:
            scores[:, ~self._states.sets(allowed)] = -np.inf
        return scores

    def _scores(self, X) -> np.ndarray:
        """s(y) of every class, (examples, classes): max_h s(y, h), or for finite beta 1/beta log sum_h exp beta s(y, h)."""
        scores, loss = self._state_scores(X), self._loss()
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
        scores = self._scores(X)
        if not is_partial(y):
            right = self.classes_[scores.argmax(axis=1)] == read_classes(y, len(scores), self._who)
            return float(np.average(right, weights=example_weights(sample_weight, len(right), "example")))
        told = np.array([label is not None for label in y])
        weight = example_weights(sample_weight, len(told), "example")
        if not weight[told].any():
            raise ValueError("There are no labelled examples to score.")
        fits = self._truth(y, self.classes_).fits(len(self.classes_))
        right = fits[np.arange(len(fits)), scores.argmax(axis=1)]
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

    @WhereProbabilitiesAre
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
