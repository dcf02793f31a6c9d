"""`SequenceLabeler`: one label per token, with any loss and solver, over linear chains of any order.

minimise  1/2 ||w||^2 + C sum_i weight_i L_i(w),    s(y) = sum_t x_t . W[:, y_t] + A[y_{t-1}, y_t] + start[y_1] + stop[y_T]
"""

from __future__ import annotations

from typing import cast

import numpy as np

from partwise.estimators import passes, sequences
from partwise.estimators.base import _is_bool, _is_count
from partwise.estimators.chain_model import ChainModel
from partwise.estimators.labels import example_weights, learn_label_sequences, learn_labels, numbering, shown
from partwise.estimators.sequences import ATTRIBUTES
from partwise.losses import Family
from partwise.objective import best_outputs, losses_at


class SequenceLabeler(ChainModel):
    """Labels sequences: tagging, chunking, entity recognition, segmentation, handwriting.

    Sequences are given as a list, each a list of tokens (dicts of attributes or lists of strings, as for CRFsuite; see
    `partwise.features.attributes`) or a matrix with one row per token (2-D array, sparse matrix); or all tokens end to end with
    ``lengths=``. Labels may be of any hashable type. Empty sequences are fine. With a single label in the training data the model
    works, and always answers that label.

    Parameters
    ----------
    loss : {"hinge", "crf", "softmax_margin", "perceptron"} or Family, default="hinge"
        ``"hinge"`` is the structural SVM, ``"crf"`` the conditional random field, which also gives probabilities.
    C : float, default=1.0
        Weight of the losses against the regulariser. The smaller, the stronger the regularisation.
    solver : str or Solver, default="auto"
        A name from `partwise.SOLVERS` or an object with parameters; `solver_` says what ``"auto"`` picked.
    cost : array (labels, labels) or dict {(true, answered): cost}, optional
        What a wrong label costs per token; 1 by default. For losses with gamma > 0.
    constraints : list of pairs, str or dict, optional
        Forbidden transitions and labels, or a scheme: ``"iob2"``, ``"iob1"``, ``"iobes"``; see `partwise.estimators.constraints`.
        Obeyed in training and prediction; may be set after fitting.
    order : int, default=1
        How many previous labels a transition looks at. An oracle takes O(length * (labels + 1)^order * labels).
    class_weight : dict {label: weight} or "balanced", optional
        Multiplies the cost of getting that label wrong. For losses with gamma > 0.
    use_start, use_stop : bool, default=True
        Whether the first and the last label have weights of their own.
    max_epochs, tol, average, early_stopping, validation_fraction, patience, random_state, n_jobs, dtype, callbacks, verbose
        As in `Classifier`.
    warm_start : bool, default=False
        Start from the weights of the previous fit. New attributes are added; labels and matrix widths must be the same.

    Attributes
    ----------
    classes_ : array (labels,)
    coef_ : array (labels, features)
        A view of `weights_`, like those below: editing it edits the model.
    transitions_ : array (labels, labels)
        Weight of going from row to column.
    start_, stop_ : array (labels,)
    weights_ : array
        All weights, flat.
    vocabulary_ : dict
        From attribute to column of `coef_` (attribute input only).
    n_features_in_ : int
    result_, solver_, temperature_
        As in `Classifier`.

    Notes
    -----
    There is no intercept: transitions and start weights already hold one weight per label.

    Examples
    --------
    >>> X = [[["the"], ["dog"], ["barks"]], [["a"], ["cat"]]]
    >>> y = [["D", "N", "V"], ["D", "N"]]
    >>> SequenceLabeler(solver="dca").fit(X, y).predict([[["a"], ["dog"]]])  # doctest: +SKIP
    [['D', 'N']]
    """

    _checks = {
        **ChainModel._checks,
        "order": (_is_count(1), "an int in the range [1, inf)"),
        "use_start": (_is_bool, "a bool"),
        "use_stop": (_is_bool, "a bool"),
    }

    def __init__(
        self,
        loss="hinge",
        C=1.0,
        solver="auto",
        cost=None,
        constraints=None,
        order=1,
        class_weight=None,
        use_start=True,
        use_stop=True,
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
        self.order = order
        self.class_weight = class_weight
        self.use_start = use_start
        self.use_stop = use_stop
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
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False  # lists of sequences, or one matrix with lengths=
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        return tags

    # -- training -----------------------------------------------------------------------------------------------------

    def fit(self, X, y, sample_weight=None, *, lengths=None, validation=None):
        """Train from nothing, or with ``warm_start=True`` from the previous weights.

        Parameters
        ----------
        X : sequences, or tokens end to end with `lengths`
        y : label sequences, or labels end to end
        sample_weight : array (sequences,), optional
            Non-negative; sequences of weight zero are left out.
        lengths : array (sequences,), optional
            Number of tokens of each sequence, if X and y are end to end.
        validation : tuple (X, y) or (X, y, lengths), optional
            Held-out data for early stopping, instead of a part of X.
        """
        loss = self._check_parameters()
        self._check_class_weight(loss)
        warm = self.warm_start and hasattr(self, "weights_")
        tokens = self._tokens(X, lengths, fresh=not warm)
        labels = sequences.read_labels(y, tokens)
        classes = self.classes_ if warm else learn_label_sequences(labels, y, tokens.place)
        advice = "warm_start=True cannot add labels; set warm_start=False to start afresh." if warm else ""
        codes = self._codes(labels, classes, tokens.starts, advice)
        weight = example_weights(sample_weight, len(tokens.lengths), "sequence")
        vocabulary = dict(self.vocabulary_) if warm and tokens.kind == ATTRIBUTES else {}
        rows = self._rows(tokens, vocabulary, grow=True)
        problem = self._problem(rows, tokens.starts, classes, codes)
        start = self._grown(self.weights_, self.n_features_in_, problem) if warm else None
        seed = self._seed()
        held = None
        if validation is not None:
            held = self._validation(validation, tokens.kind, rows.n_features, vocabulary, classes)
        elif self.early_stopping:
            kept, out = self._hold_out(len(tokens.lengths), seed)
            held = sequences.take_sequences(problem, out)
            problem, weight = sequences.take_sequences(problem, kept), weight[kept]
        if (weight == 0).any():
            problem, weight = sequences.take_sequences(problem, np.flatnonzero(weight)), weight[weight > 0]
        self._solve(problem, loss, weight, held, start, seed)
        self._learned(tokens.kind, rows.n_features, vocabulary, classes)
        return self

    def partial_fit(self, X, y, classes=None, sample_weight=None, *, lengths=None):
        """One epoch of an online solver over these sequences, going on from the current weights.

        Attributes that are new enter the model.

        Parameters
        ----------
        X, y, sample_weight, lengths
            As in `fit`.
        classes : sequence, optional
            All labels that will ever come, on the first call; otherwise those of the first `y`.
        """
        loss = self._check_parameters()
        self._check_class_weight(loss)
        fresh = not hasattr(self, "weights_")
        tokens = self._tokens(X, lengths, fresh=fresh)
        labels = sequences.read_labels(y, tokens)
        if fresh:
            known = learn_label_sequences(labels, y, tokens.place) if classes is None else learn_labels(classes)
        else:
            known = self.classes_
            if classes is not None and set(classes) != set(known.tolist()):
                raise ValueError(f"classes={classes!r} is not what the first call of partial_fit or fit saw: {shown(known)}.")
        codes = self._codes(labels, known, tokens.starts, "Pass classes= with all labels on the first call of partial_fit.")
        weight = example_weights(sample_weight, len(tokens.lengths), "sequence")
        vocabulary = dict(self.vocabulary_) if not fresh and tokens.kind == ATTRIBUTES else {}
        rows = self._rows(tokens, vocabulary, grow=True)
        problem = self._problem(rows, tokens.starts, known, codes)
        if not fresh:
            self._grow(problem)
        self._advance(problem, loss, weight)
        self._learned(tokens.kind, rows.n_features, vocabulary, known)
        return self

    def _check_class_weight(self, loss: Family) -> None:
        if self.class_weight is not None and loss.gamma == 0:
            raise ValueError(
                f"The 'class_weight' parameter of {self._who} scales the cost of a label, and the loss {loss.name!r} does not "
                "look at costs. Use 'hinge', 'softmax_margin' or another Family(beta, gamma) with gamma > 0."
            )

    # -- prediction ---------------------------------------------------------------------------------------------------

    def predict(self, X, *, lengths=None, known=None):
        """The labelling of highest score of each sequence.

        Parameters
        ----------
        X : sequences, or tokens end to end with `lengths`
        lengths : array, optional
        known : label sequences, optional
            What is already known of the labels: None (nothing), a label, or a set of labels, for each token.

        Returns
        -------
        list of lists of labels, or an array of labels if `lengths` were given
        """
        tokens, problem = self._packed(X, lengths, known=known)
        codes, _, values = best_outputs(problem, self.weights_, self.n_jobs)
        self._refuse_impossible(values)
        return self._labels(codes, tokens)

    def score(self, X, y, sample_weight=None, *, lengths=None):
        """Accuracy: the fraction of tokens labelled right, those of a sequence weighted by its `sample_weight`."""
        tokens, problem = self._packed(X, lengths)
        truth = sequences.read_labels(y, tokens)
        number = numbering(self.classes_)
        gold = np.fromiter((number.get(label, -1) for label in truth), np.int64, len(truth))
        codes, _, _ = best_outputs(problem, self.weights_, self.n_jobs)
        if not len(gold):
            raise ValueError("There are no tokens to score.")
        weight = np.repeat(example_weights(sample_weight, len(tokens.lengths), "sequence"), tokens.lengths)
        return float(np.average(codes == gold, weights=weight))

    def predict_marginals(self, X, *, lengths=None, known=None, pairs=False):
        """P(y_t | x) of every label, under p(y | x) ~ exp(s(y) / temperature). Refused for margin losses unless calibrated.

        Parameters
        ----------
        X, lengths, known
            As in `predict`.
        pairs : bool
            Return P(y_t, y_{t+1} | x) instead: a list of arrays (length - 1, labels, labels).

        Returns
        -------
        list of arrays (length, labels), or one array (tokens, labels) if `lengths` were given
        """
        beta = self._beta()
        tokens, problem = self._packed(X, lengths, known=known)
        if pairs:
            return [passes.pairs(problem, i, self.weights_, beta) for i in range(len(tokens.lengths))]
        p, log_z = passes.marginals(problem, self.weights_, beta, self.n_jobs)
        self._refuse_impossible(log_z)
        return self._shaped(p, tokens)

    def predict_kbest(self, X, k=5, *, lengths=None, known=None):
        """For each sequence a list of at most k pairs (labels, score), best first."""
        if not (isinstance(k, int | np.integer) and k >= 1):
            raise ValueError(f"k must be an int in the range [1, inf). Got {k!r} instead.")
        tokens, problem = self._packed(X, lengths, known=known)
        out, values, found = passes.kbest(problem, self.weights_, int(k), self.n_jobs)
        names, starts = self.classes_.tolist(), tokens.starts
        return [
            [
                ([names[c] for c in out[j, starts[i] : starts[i + 1]].tolist()], float(values[i, j]))
                for j in range(cast(int, found[i]))
            ]
            for i in range(len(found))
        ]

    def decision_value(self, X, y=None, *, lengths=None):
        """Score of the best labelling of each sequence, or of the labelling `y`; (sequences,)."""
        _, problem = self._packed(X, lengths, y)
        if y is None:
            return best_outputs(problem, self.weights_, self.n_jobs)[2]
        return passes.values_of_targets(problem, self.weights_, self.n_jobs)

    def log_probability(self, X, y, *, lengths=None):
        """log p(y | x) of whole labellings, (sequences,). Refused for margin losses unless calibrated."""
        beta = self._beta()
        _, problem = self._packed(X, lengths, y)
        return -beta * losses_at(problem, Family(beta, 0.0), self.weights_, self.n_jobs)

    def calibrate(self, X, y, *, lengths=None):
        """Fit the temperature to held-out data, so that `predict_marginals` may be used after training with a margin loss.

        One number: the ranking of labellings does not change.
        """
        _, problem = self._packed(X, lengths, y)
        self._calibrate(problem)
        return self
