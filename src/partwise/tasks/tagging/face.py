"""`SequenceLabeler`: the scikit-learn face of `Tagger`: one label per token, any loss and solver, linear chains of any order."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from partwise.tasks.tagging.estimator import Tagger


class SequenceLabeler(Tagger, BaseEstimator):
    """Labels sequences: tagging, chunking, entity recognition, segmentation, handwriting.

    Sequences are given as a list, each a list of tokens (dicts of attributes or lists of strings, as for CRFsuite; see
    `partwise.text.attributes`) or a matrix with one row per token (2-D array, sparse matrix); or all tokens end to end with
    ``lengths=``; or they come from a column file, as `Columns`, and templates make the features. Labels may be of any hashable
    type; None stands for an unknown label, a set for "one of these". Empty sequences are fine. With a single label in the
    training data the model works, and always answers that label.

    Parameters
    ----------
    loss : {"hinge", "crf", "softmax_margin", "perceptron", "slack", "summed", "ramp", "ramp_do", "ramp_2", "soft_ramp"} or Loss
        ``"hinge"`` is the structural SVM, ``"crf"`` the conditional random field, which also gives probabilities.
        The ramp losses are robust against wrong labels; the default is ``"hinge"``.
    C : float, default=1.0
        Weight of the losses against the regulariser. The smaller, the stronger the regularisation.
    solver : str or Solver, default="auto"
        A name from `partwise.SOLVERS` or an object with parameters; `solver_` says what ``"auto"`` picked.
    l1_ratio : float in [0, 1], default=0.0
        Share of the L1 norm in the penalty, l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2. Above 0 many weights become exactly zero
        (``result_.n_nonzero`` are not); 1 makes the sparsest models. Choose C anew: it means something else then.
    cost : array (labels, labels) or dict {(true, answered): cost}, optional
        What a wrong label costs per token; 1 by default. For losses with gamma > 0.
    constraints : list of pairs, str or dict, optional
        Forbidden transitions and labels, or a scheme: ``"iob2"``, ``"iob1"``, ``"iobes"``; see `partwise.tasks.tagging.constraints`.
        Obeyed in training and prediction; may be set after fitting.
    templates : {"chunking", "phrases", "words", "ner", "auto"}, path or list of str, optional
        How features are made of columns (see `partwise.text.templates`); tokens are then tuples of strings, or `Columns`.
        ``"auto"``, and None for `Columns`: "phrases" where there are two columns or more, "ner" for chunk labels, else "words".
    columns : list of str, optional
        Names of the columns, for templates; ``["w", "pos"]`` by default.
    min_count : int, default=1
        Features that occur fewer times in the training data are left out.
    hash_bits : int, optional
        Number the features of templates by hashing, into ``2 ** hash_bits`` of them, instead of keeping a vocabulary.
    order : int, default=1
        How many previous labels a transition looks at. An oracle takes O(length * (labels + 1)^order * labels).
    hidden : int, default=1
        States of each label that nobody sees (see `partwise.structures.common.hidden`): the model has weights for labels * hidden
        states, and what it answers are their labels. Training begins at small random weights, drawn from `random_state`.
    class_weight : dict {label: weight} or "balanced", optional
        Multiplies the cost of getting that label wrong. For losses with gamma > 0.
    use_start, use_stop : bool, default=True
        Whether the first and the last label have weights of their own.
    use_transitions : bool, default=True
        Whether pairs of labels have weights; False: tokens are labelled independently, as by a CRF++ file without a ``B``.
    validation_metric : {"cost", "error", "f1"}, default="cost"
        What early stopping judges by: the mean cost, the share of wrong tokens, or F1 of the spans that chunk labels write down.
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
    states_ : list
        What the rows and columns of these are called: the labels, or with ``hidden > 1`` their states, "NP/1", "NP/2".
    weights_ : array
        All weights, flat.
    encoder_
        Makes features of tokens; ``feature_name(j)`` says what column j of `coef_` is called.
    vocabulary_ : dict
        From attribute to column of `coef_` (attribute input only).
    n_features_in_ : int
    label_column_ : int or None
        The column that the labels came from.
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.two_d_array = False  # lists of sequences, or one matrix with lengths=
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = True
        return tags
