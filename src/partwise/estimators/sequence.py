"""`SequenceLabeler`: one label per token, with any loss and solver, over linear chains of any order.

minimise  1/2 ||w||^2 + C sum_i weight_i L_i(w),    s(y) = sum_t x_t . W[:, y_t] + A[y_{t-1}, y_t] + start[y_1] + stop[y_T]
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partwise import kernels
from partwise.estimators import passes, sequences
from partwise.estimators.base import Structured, _is_bool, _is_count
from partwise.estimators.constraints import check_gold, forbidden_transitions
from partwise.estimators.labels import class_weights, cost_matrix, encode_labels, learn_labels, numbering, shown
from partwise.estimators.sequences import ATTRIBUTES, MATRIX, Tokens
from partwise.features.attributes import encode
from partwise.features.rows import make_rows
from partwise.features.selection import take_rows
from partwise.losses import Family
from partwise.objective import best_outputs, losses_at
from partwise.structures import ChainProblem, chain_problem
from partwise.structures.chain import chain_blocks

MOST_HISTORIES = 10_000_000  # of `order` labels each; an oracle keeps a few numbers for every one of them, per token


class SequenceLabeler(Structured):
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
        **Structured._checks,
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
        classes = self.classes_ if warm else learn(labels, y, tokens)
        advice = "warm_start=True cannot add labels; set warm_start=False to start afresh." if warm else ""
        codes = self._codes(labels, classes, tokens.starts, advice)
        weight = self._weights_of(tokens, sample_weight)
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
            held = take_sequences(problem, out)
            problem, weight = take_sequences(problem, kept), weight[kept]
        if (weight == 0).any():
            problem, weight = take_sequences(problem, np.flatnonzero(weight)), weight[weight > 0]
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
            known = learn(labels, y, tokens) if classes is None else learn_labels(classes)
        else:
            known = self.classes_
            if classes is not None and set(classes) != set(known.tolist()):
                raise ValueError(f"classes={classes!r} is not what the first call of partial_fit or fit saw: {shown(known)}.")
        codes = self._codes(labels, known, tokens.starts, "Pass classes= with all labels on the first call of partial_fit.")
        weight = self._weights_of(tokens, sample_weight)
        vocabulary = dict(self.vocabulary_) if not fresh and tokens.kind == ATTRIBUTES else {}
        rows = self._rows(tokens, vocabulary, grow=True)
        problem = self._problem(rows, tokens.starts, known, codes)
        if not fresh:
            self._grow(problem)
        self._advance(problem, loss, weight)
        self._learned(tokens.kind, rows.n_features, vocabulary, known)
        return self

    def _learned(self, kind, n_features, vocabulary, classes):
        self._kind, self.n_features_in_, self.classes_ = kind, n_features, classes
        if kind == ATTRIBUTES:
            self.vocabulary_ = vocabulary
        elif hasattr(self, "vocabulary_"):
            del self.vocabulary_

    def _check_class_weight(self, loss: Family) -> None:
        if self.class_weight is not None and loss.gamma == 0:
            raise ValueError(
                f"The 'class_weight' parameter of {self._who} scales the cost of a label, and the loss {loss.name!r} does not look at costs. "
                "Use 'hinge', 'softmax_margin' or another Family(beta, gamma) with gamma > 0."
            )

    # -- packing ------------------------------------------------------------------------------------------------------

    def _tokens(self, X, lengths, fresh: bool = False) -> Tokens:
        tokens = sequences.read_tokens(X, lengths, self._who, self._dtype)
        if fresh:
            if not len(tokens.lengths):
                raise ValueError("There are no training sequences: X is empty.")
            if not tokens.lengths.sum():
                raise ValueError(f"There are no tokens to train on: all {len(tokens.lengths)} sequences are empty.")
        elif tokens.kind and tokens.kind != self._kind:
            raise ValueError(f"{self._who} was fitted with {self._kind} as tokens, but X has {tokens.kind}.")
        elif not tokens.kind:  # nothing but empty sequences
            empty: Any = np.zeros((0, self.n_features_in_), self._dtype) if self._kind == MATRIX else []
            tokens = tokens._replace(kind=self._kind, tokens=empty)
        if tokens.kind == MATRIX:
            if not fresh and tokens.tokens.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"X has {tokens.tokens.shape[1]} features per token, but {self._who} is expecting {self.n_features_in_} features."
                )
            sequences.check_finite(tokens)
        return tokens

    def _rows(self, tokens: Tokens, vocabulary: dict[str, int], grow: bool):
        if tokens.kind == ATTRIBUTES:
            return encode(tokens.tokens, vocabulary, grow=grow, dtype=self._dtype, place=tokens.place)
        x = tokens.tokens
        if isinstance(x, np.ndarray) and not x.flags.writeable:
            x = x.copy()  # read-only arrays are a type of their own to numba: not worth a compilation
        return make_rows(x, self._dtype)

    def _codes(self, labels, classes, starts, advice=""):
        def refuse(k):
            where = sequences.place(starts, k)
            return ValueError(f"Label {labels[k]!r} ({where}) is not one of the labels {shown(classes)}. {advice}".rstrip())

        return encode_labels(labels, classes, refuse)

    def _problem(self, rows, starts, classes, codes=None, allowed=None) -> ChainProblem:
        if (len(classes) + 1) ** min(self.order, 64) > MOST_HISTORIES:
            raise ValueError(
                f"The 'order' parameter of {self._who} is too large: {len(classes)} labels and order={self.order} make more than "
                f"{MOST_HISTORIES} histories."
            )
        forbidden = forbidden_transitions(self.constraints, classes, self._who)
        costs = None
        if codes is not None:
            check_gold(forbidden, codes, starts, classes)
            costs = cost_matrix(self.cost, classes, self._who)
            if self.class_weight is not None:
                costs = 1.0 - np.eye(len(classes)) if costs is None else costs
                costs = costs * class_weights(self.class_weight, classes, codes, None, self._who)[:, None]
        return chain_problem(
            rows,
            np.diff(starts),
            codes,
            len(classes),
            order=self.order,
            costs=costs,
            allowed=allowed,
            forbidden=forbidden,
            use_start=self.use_start,
            use_stop=self.use_stop,
            dtype=self._dtype,
        )

    def _validation(self, validation, kind, n_features, vocabulary, classes):
        """The packed problem of held-out data, seen through a model that is not finished yet."""
        if not (isinstance(validation, tuple | list) and len(validation) in (2, 3)):
            raise ValueError("validation must be (X, y) or (X, y, lengths).")
        X, y, lengths = (*validation, None)[:3]
        reader = SequenceLabeler(dtype=self.dtype)
        reader._learned(kind, n_features, vocabulary, classes)
        tokens = reader._tokens(X, lengths)
        codes = self._codes(sequences.read_labels(y, tokens), classes, tokens.starts)
        return self._problem(self._rows(tokens, vocabulary, grow=False), tokens.starts, classes, codes)

    def _weights_of(self, tokens, sample_weight):
        n = len(tokens.lengths)
        weight = np.ones(n) if sample_weight is None else np.array(sample_weight, np.float64)
        if weight.shape != (n,):
            raise ValueError(f"sample_weight must have one number per sequence, shape ({n},). Got shape {weight.shape}.")
        if not np.isfinite(weight).all() or (weight < 0).any():
            raise ValueError("sample_weight must be finite and non-negative.")
        if not weight.any():
            raise ValueError("sample_weight is zero for all sequences.")
        return weight

    def _grown(self, w, n_before, problem) -> np.ndarray:
        """Weights of the previous model with zeros for attributes that are new."""
        n_labels = problem.n_labels
        new = problem.rows.n_features - n_before
        if w.size + new * n_labels != kernels.n_weights(problem):
            raise ValueError("The 'order' parameter has changed since the previous fit. Set warm_start=False to start afresh.")
        cut = n_before * n_labels
        return np.concatenate([w[:cut], np.zeros(new * n_labels, w.dtype), w[cut:]])

    def _grow(self, problem) -> None:
        """Make room for new attributes in the model and in what partial_fit remembers."""
        if problem.rows.n_features == self.n_features_in_:
            return
        self.weights_ = self._grown(self.weights_, self.n_features_in_, problem)
        stream = getattr(self, "_stream", None)
        if stream is not None:
            kept = stream["weights"]
            grown = {"v": self._grown(kept.v, self.n_features_in_, problem)}
            if kept.u.size:
                grown["u"] = self._grown(kept.u, self.n_features_in_, problem)
            stream["weights"] = kept._replace(**grown)

    # -- the weights --------------------------------------------------------------------------------------------------

    def _block(self, name: str) -> np.ndarray:
        w = self._require_fitted(name).reshape(-1, len(self.classes_))
        first, n = chain_blocks(self.n_features_in_, len(self.classes_), self.order)[name]
        return w[first : first + n]

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, (labels, features)."""
        self._require_fitted("coef_")
        return self._block("features").T

    @property
    def transitions_(self) -> np.ndarray:
        """Weight of label column after label row, (labels, labels)."""
        self._require_fitted("transitions_")
        return self._block("transitions_1")[:-1]

    @property
    def start_(self) -> np.ndarray:
        """Weights of the first label."""
        self._require_fitted("start_")
        return self._block("transitions_1")[-1]

    @property
    def stop_(self) -> np.ndarray:
        """Weights of the last label."""
        self._require_fitted("stop_")
        return self._block("stop")[0]

    def higher_transitions(self, order: int) -> np.ndarray:
        """Weights of a label given the `order` before it, oldest first; the last index of a previous label is "before the beginning"."""
        n = len(self.classes_)
        return self._block(f"transitions_{order}").reshape((n + 1,) * order + (n,))

    @property
    def feature_names_(self) -> list[str]:
        """The attributes, in the order of the columns of `coef_`."""
        self._require_fitted("feature_names_")
        if self._kind == ATTRIBUTES:
            return list(self.vocabulary_)
        return [f"x{k}" for k in range(self.n_features_in_)]

    # -- prediction ---------------------------------------------------------------------------------------------------

    def _packed(self, X, lengths, y=None, known=None) -> tuple[Tokens, ChainProblem]:
        check_is_fitted(self, "weights_")
        tokens = self._tokens(X, lengths)
        codes = None if y is None else self._codes(sequences.read_labels(y, tokens), self.classes_, tokens.starts)
        allowed = None if known is None else self._known(known, tokens)
        rows = self._rows(tokens, getattr(self, "vocabulary_", {}), grow=False)
        problem = self._problem(rows, tokens.starts, self.classes_, codes, allowed)
        self._check_size(problem, self.weights_)
        return tokens, problem

    def _known(self, known, tokens) -> np.ndarray:
        """Labels each token may have: what is known about it is None, a label, or a set of labels."""
        number = numbering(self.classes_)
        allowed = np.ones((int(tokens.lengths.sum()), len(self.classes_)), bool)
        for t, label in enumerate(sequences.read_labels(known, tokens, "known labels")):
            if label is None:
                continue
            options = label if isinstance(label, set | frozenset) else (label,)
            strange = [one for one in options if one not in number]
            if strange or not options:
                what = f"{strange[0]!r}" if strange else "an empty set"
                raise ValueError(
                    f"known holds {what} ({tokens.place(t)}), which is not one of the labels {shown(self.classes_)}."
                )
            allowed[t] = False
            allowed[t, [number[one] for one in options]] = True
        return allowed

    def _shaped(self, values, tokens):
        """Per token values in the layout in which the tokens came."""
        return values if tokens.joined else sequences.split(values, tokens.lengths)

    def _labels(self, codes, tokens):
        if tokens.joined:
            return self.classes_[codes]
        return sequences.split(list(map(self.classes_.tolist().__getitem__, codes.tolist())), tokens.lengths)

    def _refuse_impossible(self, values) -> None:
        if len(values) and values.min() == -np.inf:
            i = int(np.argmin(values))
            raise ValueError(f"No labelling of sequence {i} obeys the constraints and the known labels.")

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
        weight = np.repeat(self._weights_of(tokens, sample_weight), tokens.lengths)
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

    # -- the model file -----------------------------------------------------------------------------------------------

    def _to_file(self):
        header = {"labels": self.classes_, "n_features": int(self.n_features_in_), "tokens": self._kind}
        if self._kind == ATTRIBUTES:
            header["vocabulary"] = list(self.vocabulary_)
        return header, {"weights": self.weights_}

    def _from_file(self, header, tensors, need):
        kind = need(header, "tokens", str)
        if kind not in (ATTRIBUTES, MATRIX):
            raise ValueError(f"unknown kind of tokens {kind!r}")
        vocabulary = {}
        if kind == ATTRIBUTES:
            names = need(header, "vocabulary", list)
            vocabulary = {name: k for k, name in enumerate(names)}
            if len(vocabulary) != len(names) or len(names) != header["n_features"]:
                raise ValueError("the vocabulary does not match the number of features")
        self._learned(kind, need(header, "n_features", int), vocabulary, need(header, "labels", np.ndarray))
        self.weights_ = tensors["weights"]
        if (len(self.classes_) + 1.0) ** min(self.order, 2000) > self.weights_.size:  # before counting up to it
            raise ValueError(f"there are {self.weights_.size} weights, too few for order {self.order}")
        blocks = chain_blocks(self.n_features_in_, len(self.classes_), self.order)
        return sum(n for _, n in blocks.values()) * len(self.classes_)


def learn(labels, y, tokens) -> np.ndarray:
    """The distinct labels of a training set; refuses what cannot be a label, saying where it is."""
    try:
        distinct = dict.fromkeys(labels)
    except TypeError:
        for k, label in enumerate(labels):
            try:
                hash(label)
            except TypeError:
                raise TypeError(f"Labels must be hashable. Got {label!r} ({type(label).__name__}; {tokens.place(k)}).") from None
        raise
    for label in distinct:
        if label != label:
            raise ValueError(f"NaN is not a label ({tokens.place(next(k for k, one in enumerate(labels) if one is label))}).")
    dtype = y.dtype if isinstance(y, np.ndarray) and y.dtype.kind in "biufU" else None
    return learn_labels(distinct, dtype)


def take_sequences(problem: ChainProblem, which: np.ndarray) -> ChainProblem:
    """The sequences numbered `which`, as a problem of their own."""
    lengths = np.diff(problem.starts)[which]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    tokens = np.arange(starts[-1]) + np.repeat(problem.starts[:-1][which] - starts[:-1], lengths)
    gold = problem.gold[tokens]
    allowed = problem.allowed[tokens] if problem.allowed.size else problem.allowed
    return problem._replace(rows=take_rows(problem.rows, tokens), starts=starts, gold=gold, targets=gold, allowed=allowed)
