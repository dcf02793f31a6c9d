"""`CRF`: the estimator of sklearn-crfsuite, made of a `SequenceLabeler`."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from partwise import SequenceLabeler
from partwise.crfsuite.binary_model import is_crfsuite_model, read_crfsuite_model
from partwise.crfsuite.given import AnswerArray, as_labels, as_sequence, as_sequences
from partwise.crfsuite.settings import make_labeler
from partwise.crfsuite.training_log import TrainingLog
from partwise.text.given_encoders import AttributeEncoder

CALIBRATED = 1000  # training sequences that probabilities of scores are fitted to, for want of others
TOO_SURE = (
    "CRF: this algorithm fits scores, not probabilities. What it gives as such was fitted to its training data, and is too sure: "
    "call calibrate(X_dev, y_dev) with held-out data."
)


class CRF(BaseEstimator):
    """Linear-chain conditional random field with the parameters, methods and attributes of ``sklearn_crfsuite.CRF`` 0.5.

    `partwise.crfsuite.settings` says how the algorithms correspond. None stands for CRFsuite's default, which depends on the
    algorithm; as there, a parameter that the algorithm does not have is an error.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}, default="lbfgs"
    min_freq : float, default=0
        Attributes that occur fewer times in the training data are left out. (CRFsuite counts pairs of attribute and label.)
    all_possible_states, all_possible_transitions : bool, optional
        Always on. False is warned of.
    c1 : float, default=0
        Weight of ||w||_1: the larger, the more weights are exactly zero (lbfgs, which is OWL-QN then).
    c2 : float, default=1
        Weight of ||w||^2; C = 1 / (c1 + 2 c2). It may be 0 if c1 is not.
    max_iterations : int, optional
        Epochs at most: lbfgs unlimited, l2sgd 1000, ap and pa 100.
    num_memories : int, default=6
        Pairs of vectors that L-BFGS remembers.
    epsilon, period, delta : float, int, float
        When lbfgs and l2sgd stop, as in CRFsuite (see `partwise.crfsuite.training_log.Rule`); 1e-5, 10, 1e-5 (l2sgd: 1e-6).
    max_linesearch : int, default=20
        Points that a line search looks at.
    linesearch, calibration_eta, calibration_rate, calibration_samples, calibration_candidates, calibration_max_trials
        Accepted. They are about the way to the optimum, which the solvers here find by other means.
    pa_type : {0, 1}, default=1
        Passive-aggressive without slack, or PA-I.
    c : float, default=1
        The longest step of PA-I.
    error_sensitive : bool, default=True
        Margins grow with the number of wrong labels. False is warned of.
    averaging : bool, default=True
        Whether pa returns the average of its weights.
    variance, gamma : float, default=1
        Of arow: how unsure the weights are at first, and how little a mistake moves them.
    verbose : bool, default=False
        Print a line on stderr after every epoch.
    model_filename : path, optional
        Where `fit` saves the model. One that is there already, written by partwise or by CRFsuite, can be used without `fit`.
    keep_tempfiles, trainer_cls
        Accepted. There are no temporary files, and no trainer of python-crfsuite.
    pair_attributes : str, optional
        Ours: attributes whose names begin with this make transitions look at the input, see `SequenceLabeler`. CRFsuite has no
        such features.
    label_pairs : {"observed", "all"}, default="observed"
        Ours: the pairs of labels that such attributes have weights for.
    n_jobs : int, optional
        Ours: threads for passes over all data. Never changes the answer.

    Attributes
    ----------
    labeler_ : SequenceLabeler
        Does the work, and can do more: k-best labellings, known labels, scores, inspection.
    classes_ : list
        Labels, sorted.
    attributes_ : list of str
    num_attributes_ : int
    state_features_ : dict {(attribute, label): weight}
        Those that are not zero. Made when asked for, like all of these: keep it if you need it twice.
    transition_features_ : dict {(label, next label): weight}
    size_ : int
        Bytes of the model as a file.
    tagger_ : partwise.crfsuite.pycrfsuite.Tagger
        The model, in the shape of python-crfsuite's.
    training_log_ : TrainingLog
        ``iterations`` and ``last_iteration``.

    All but `labeler_` are None before `fit`, as there.

    Examples
    --------
    >>> X, y = [[["a"], ["b"]], [["b"]]], [["A", "B"], ["B"]]
    >>> CRF(algorithm="lbfgs", c2=0.1, max_iterations=20).fit(X, y).predict(X)
    AnswerArray([list(['A', 'B']), list(['B'])], dtype=object)
    """

    def __init__(
        self,
        algorithm=None,
        min_freq=None,
        all_possible_states=None,
        all_possible_transitions=None,
        c1=None,
        c2=None,
        max_iterations=None,
        num_memories=None,
        epsilon=None,
        period=None,
        delta=None,
        linesearch=None,
        max_linesearch=None,
        calibration_eta=None,
        calibration_rate=None,
        calibration_samples=None,
        calibration_candidates=None,
        calibration_max_trials=None,
        pa_type=None,
        c=None,
        error_sensitive=None,
        averaging=None,
        variance=None,
        gamma=None,
        verbose=False,
        model_filename=None,
        keep_tempfiles=False,
        trainer_cls=None,
        n_jobs=None,
        pair_attributes=None,
        label_pairs="observed",
    ):
        self.algorithm = algorithm
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.num_memories = num_memories
        self.epsilon = epsilon
        self.period = period
        self.delta = delta
        self.linesearch = linesearch
        self.max_linesearch = max_linesearch
        self.calibration_eta = calibration_eta
        self.calibration_rate = calibration_rate
        self.calibration_samples = calibration_samples
        self.calibration_candidates = calibration_candidates
        self.calibration_max_trials = calibration_max_trials
        self.pa_type = pa_type
        self.c = c
        self.error_sensitive = error_sensitive
        self.averaging = averaging
        self.variance = variance
        self.gamma = gamma
        self.verbose = verbose
        self.model_filename = model_filename
        self.keep_tempfiles = keep_tempfiles
        self.trainer_cls = trainer_cls
        self.n_jobs = n_jobs
        self.pair_attributes = pair_attributes
        self.label_pairs = label_pairs

    def fit(self, X, y, X_dev=None, y_dev=None, *, dense=None, dense_dev=None, token_weight=None):
        """Train from nothing.

        Parameters
        ----------
        X : list of sequences of attribute dicts, or of lists of strings
        y : list of label sequences
        X_dev, y_dev : optional
            Held-out data to be looked at after every epoch, for the log. As in CRFsuite they neither stop the training nor
            choose the model; ``SequenceLabeler.fit(validation=)`` does both.
        dense, dense_dev, token_weight : optional
            Ours: a matrix beside the attributes of each sequence, and what tokens count; see ``SequenceLabeler.fit``.
        """
        return self.fit_watched(X, y, X_dev, y_dev, dense=dense, dense_dev=dense_dev, token_weight=token_weight)

    def fit_watched(
        self,
        X,
        y,
        X_dev=None,
        y_dev=None,
        watch: Callable[[dict[str, Any]], None] | None = None,
        *,
        dense=None,
        dense_dev=None,
        token_weight=None,
    ):
        """`fit` that calls `watch` with what each iteration saw, an entry of ``training_log_.iterations``. Ours."""
        if (X_dev is None) != (y_dev is None):
            raise ValueError("X_dev and y_dev belong together: pass both, or neither.")
        X, y = as_sequences(X), as_labels(y)
        if X_dev is not None:
            X_dev, y_dev = as_sequences(X_dev), as_labels(y_dev)
        labeler, log = make_labeler(self)
        log.watch = watch
        held_out = None if X_dev is None else (X_dev, y_dev, None, dense_dev)
        labeler.fit(X, y, dense=dense, token_weight=token_weight, validation=held_out)
        labeler.callbacks = None
        if X_dev is not None:
            labeler.weights_ = log.weights  # the last ones; the labeler has kept the best ones
        leave_out_unused(labeler)
        log.finish(y_dev, None if X_dev is None else labeler.predict(X_dev, dense=dense_dev))
        self._too_sure = labeler.temperature_ is None and X_dev is None
        if labeler.temperature_ is None:
            if X_dev is None:
                labeler.calibrate(X[:CALIBRATED], y[:CALIBRATED], dense=None if dense is None else dense[:CALIBRATED])
            else:
                labeler.calibrate(X_dev, y_dev, dense=dense_dev)
        self._labeler, self.training_log_ = labeler, log
        if self.model_filename is not None:
            labeler.save(self.model_filename)
        return self

    def calibrate(self, X, y, *, dense=None):
        """Fit probabilities to held-out data, for a model of ap, pa or arow. Not in sklearn-crfsuite."""
        self.labeler_.calibrate(as_sequences(X), as_labels(y), dense=dense)
        self._too_sure = False
        return self

    # -- answers ------------------------------------------------------------------------------------------------------

    def predict(self, X, *, dense=None):
        """The best labelling of each sequence: an array (sequences,) of lists of labels, to compare with others by ``==``."""
        return AnswerArray(self.labeler_.predict(as_sequences(X), dense=dense))

    def predict_single(self, xseq, *, dense=None):
        """The best labelling of one sequence: a list of labels."""
        return self.predict([as_sequence(xseq)], dense=None if dense is None else [dense])[0]

    def predict_marginals(self, X, *, dense=None):
        """Probabilities of the labels: an array (sequences,) of lists, for each token a dict {label: probability}.

        ap, pa and arow fit scores, not probabilities. Theirs are fitted to X_dev, y_dev of `fit`, or by `calibrate`; else to the
        training data, with a warning.
        """
        if getattr(self, "_too_sure", False):
            warnings.warn(TOO_SURE, UserWarning, stacklevel=2)
        labels = self.labeler_.classes_.tolist()
        marginals = [p.tolist() for p in self.labeler_.predict_marginals(as_sequences(X), dense=dense)]
        return AnswerArray([[dict(zip(labels, token, strict=True)) for token in p] for p in marginals])

    def predict_marginals_single(self, xseq, *, dense=None):
        """Probabilities of the labels of one sequence: for each token a dict {label: probability}."""
        return self.predict_marginals([as_sequence(xseq)], dense=None if dense is None else [dense])[0]

    def score(self, X, y, *, dense=None):
        """Share of tokens labelled right."""
        return self.labeler_.score(as_sequences(X), as_labels(y), dense=dense)

    # -- the model ----------------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "_labeler" in vars(self) or (self.model_filename is not None and os.path.exists(self.model_filename))

    @property
    def labeler_(self) -> SequenceLabeler:
        """The trained model, or that of `model_filename`."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError("This CRF instance is not fitted yet. Call 'fit' first.")
        if "_labeler" not in vars(self):
            self._labeler = _load(self.model_filename)
        return self._labeler

    @property
    def tagger_(self) -> Any:
        """The model, in the shape of python-crfsuite's."""
        from partwise.crfsuite.pycrfsuite import Tagger

        return Tagger(self.labeler_) if self.__sklearn_is_fitted__() else None

    @property
    def classes_(self) -> list[Any] | None:
        """The labels."""
        return self.labeler_.classes_.tolist() if self.__sklearn_is_fitted__() else None

    @property
    def size_(self) -> int | None:
        """Size of the model file in bytes; weights that are zero take none."""
        if not self.__sklearn_is_fitted__():
            return None
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model")
            self.labeler_.save(path)
            return os.path.getsize(path)

    @property
    def num_attributes_(self) -> int | None:
        """Number of attributes that have weights."""
        return self.labeler_.n_features_in_ if self.__sklearn_is_fitted__() else None

    @property
    def attributes_(self) -> list[str] | None:
        """The attributes."""
        return self.labeler_.feature_names_ if self.__sklearn_is_fitted__() else None

    @property
    def state_features_(self) -> dict[tuple[str, Any], float] | None:
        """Weights of the labels of tokens that have an attribute."""
        if not self.__sklearn_is_fitted__():
            return None
        return _not_zero(self.labeler_.coef_.T, self.labeler_.feature_names_, self.labeler_.states_)

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float] | None:
        """Weights of pairs of labels that follow each other."""
        if not self.__sklearn_is_fitted__():
            return None
        return _not_zero(self.labeler_.transitions_, self.labeler_.states_, self.labeler_.states_)

    training_log_: TrainingLog | None = None


def leave_out_unused(labeler: SequenceLabeler) -> None:
    """Forget attributes whose weights are all zero, as CRFsuite does: answers stay the same, files get smaller."""
    encoder: Any = labeler.encoder_
    n, names = labeler.n_features_in_, labeler.feature_names_
    table = labeler.weights_.reshape(-1, len(labeler.classes_))
    if not isinstance(encoder, AttributeEncoder):
        return
    used = np.union1d(np.arange(encoder.n_dense), np.flatnonzero(table[:n].any(axis=1)))
    if len(used) < n:
        encoder.vocabulary = {names[k]: place for place, k in enumerate(used.tolist())}
        labeler.weights_ = np.concatenate([table[used], table[n:]]).ravel()


def _not_zero(weights: np.ndarray, rows: list[Any], columns: list[Any]) -> dict[tuple[Any, Any], float]:
    row, column = np.nonzero(weights)
    values = weights[row, column].tolist()
    return {(rows[i], columns[j]): value for i, j, value in zip(row.tolist(), column.tolist(), values, strict=True)}


def _load(path: Any) -> SequenceLabeler:
    return read_crfsuite_model(path) if is_crfsuite_model(path) else SequenceLabeler.load(path)
