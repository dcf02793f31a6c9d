"""`SequenceLabeler`: learns to label sequences, on data in memory, on a stream, or bit by bit.

    minimise  Omega(w) + C sum_i weight_i L_i(w),    s(y) = sum_t x_t . W[:, y_t] + A[y_{t-1}, y_t] + start[y_1] + stop[y_T]

with the penalty Omega(w) = l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2.
"""

from __future__ import annotations

import copy
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, cast

import numpy as np

from partwise import kernels
from partwise.engine.ragged import taken
from partwise.features.given_labels import GivenLabels, learn_labels
from partwise.structures.common.hidden import States
from partwise.tasks.common.base import is_corpus
from partwise.tasks.common.checks import is_bool, is_count, one_of
from partwise.tasks.common.label_arrays import example_weights, shown
from partwise.tasks.tagging import held_out
from partwise.tasks.tagging.data import read_labels
from partwise.tasks.tagging.decoder import Decoder
from partwise.tasks.tagging.held_out import HeldOut
from partwise.tasks.tagging.model import Encoder
from partwise.tasks.tagging.token_weights import by_levels, read_token_weights, token_weights
from partwise.text.columns import Columns
from partwise.text.template_encoder import TemplateEncoder


@dataclass(eq=False, repr=False)
class SequenceLabeler(Decoder):
    """Labels sequences: tagging, chunking, entity recognition, segmentation, handwriting.

    Sequences are given as a list, each a list of tokens (dicts of attributes or lists of strings, as for CRFsuite; see
    `partwise.text.attributes`) or a matrix with one row per token (2-D array, sparse matrix); or all tokens end to end with
    ``lengths=``; or they come from a column file, as `Columns`, and templates make the features. Labels may be of any hashable
    type; None stands for an unknown label, a set for "one of these". Empty sequences are fine. With a single label in the
    training data the model works, and always answers that label.

    Parameters
    ----------
    %(loss)s
    cost : array (labels, labels) or dict {(true, answered): cost}, optional
        What a wrong label costs per token; 1 by default. For losses with gamma > 0.
    constraints : list of pairs, str or dict, optional
        Forbidden transitions and labels, or a scheme: ``"iob2"``, ``"iob1"``, ``"iobes"``, ``"bilou"``; see
        `partwise.tasks.tagging.constraints`. Obeyed in training and prediction; may be set after fitting.
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
        Multiplies the cost of getting that label wrong; for losses that do not look at costs, like ``"crf"``, it is the weight of
        the tokens that have the label (see `partwise.tasks.tagging.token_weights`).
    use_start, use_stop : bool, default=True
        Whether the first and the last label have weights of their own.
    use_transitions : bool, default=True
        Whether pairs of labels have weights; False: tokens are labelled independently, as by a CRF++ file without a ``B``.
    pair_attributes : str, optional
        Attributes whose names begin with this, say ``"pair:"``, make transitions look at the input: each has a weight for the
        label of its token together with the one before. Templates have ``B01:%%x[0,0]`` for that. Order 1 only.
    label_pairs : {"observed", "all"}, default="observed"
        The pairs of labels that such features have weights for: those that were seen with them in the training data, or all.
    validation_metric : {"auto", "cost", "error", "f1"}, default="auto"
        What early stopping judges by: the mean cost of a sequence, the share of wrong tokens, or F1 of the spans that chunk
        labels write down; "auto": the last where labels are such, else the share of wrong tokens.
    %(learning)s

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

    Weights are of 32 bits by default: half the size, and as good. For a small duality gap take ``dtype="float64"``.

    With ``warm_start=True`` new attributes are added; labels and matrix widths must be the same.

    Examples
    --------
    >>> X = [[["the"], ["dog"], ["barks"]], [["a"], ["cat"]]]
    >>> y = [["D", "N", "V"], ["D", "N"]]
    >>> SequenceLabeler(solver="dca").fit(X, y).predict([[["a"], ["dog"]]])
    [['D', 'N']]
    """

    _: KW_ONLY
    cost: Any = None  # type: ignore[misc]  # users may say
    constraints: Any = None
    templates: Any = None
    columns: Any = None
    min_count: int = 1
    hash_bits: int | None = None
    order: int = 1
    hidden: int = 1
    class_weight: Any = None
    use_start: bool = True
    use_stop: bool = True
    use_transitions: bool = True
    pair_attributes: str | None = None
    label_pairs: str = "observed"
    validation_metric: str = "auto"
    dtype: Any = "float32"

    keep_held_out: ClassVar[bool] = False  #: whether what early stopping judged by stays after `fit`, as `held_out_`
    held_out_: ClassVar[HeldOut | None] = None

    _checks = {
        **Decoder._checks,
        "hidden": (is_count(1), "an int in the range [1, inf)"),
        "min_count": (is_count(1), "an int in the range [1, inf)"),
        "hash_bits": (is_count(1, optional=True), "an int in the range [1, 30] or None"),
        "order": (is_count(1), "an int in the range [1, inf)"),
        "use_start": (is_bool, "a bool"),
        "use_stop": (is_bool, "a bool"),
        "use_transitions": (is_bool, "a bool"),
        "pair_attributes": (lambda value: value is None or (isinstance(value, str) and value != ""), "a string or None"),
        "label_pairs": one_of("observed", "all"),
        "validation_metric": one_of("auto", "cost", "error", "f1"),
    }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.three_d_array = tags.input_tags.sparse = True  # lists of sequences, or one matrix with lengths=
        return tags

    # -- data in memory -----------------------------------------------------------------------------------------------

    def fit(
        self, X, y=None, sample_weight=None, *, lengths=None, dense=None, token_weight=None, validation=None, checkpoint=None
    ):
        """Train from nothing, or with ``warm_start=True`` from the previous weights.

        Parameters
        ----------
        X : sequences, or tokens end to end with `lengths`, or Columns
        y : label sequences, or labels end to end; for Columns also the number of a column, or None for the last one
            None as a label stands for an unknown one, a set of labels for "one of these".
        sample_weight : array (sequences,), optional
            Non-negative; sequences of weight zero are left out.
        lengths : array (sequences,), optional
            Number of tokens of each sequence, if X and y are end to end.
        dense : list of arrays (length, columns), or one array (tokens, columns) with `lengths`, optional
            Numbers beside the attributes of the tokens, an embedding say. The same as an attribute "dense" that is a vector, but
            quick; wherever X is given later, it has to be given too.
        token_weight : list of arrays (length,), or one array (tokens,) with `lengths`, optional
            What each token counts, non-negative, for any convex loss (see `partwise.tasks.tagging.token_weights`).
        validation : tuple (X, y), (X, y, lengths) or (X, y, lengths, dense), or Columns, optional
            Held-out data for early stopping, instead of a part of X.
        checkpoint : path, optional
            What it takes to go on after an interruption is written there now and then; if it is there already, training goes on
            from it, exactly as if nothing had happened. Removed when done.
        """
        if is_corpus(X):
            return self._fit_packed(X, (y, sample_weight, lengths, dense, token_weight), validation, checkpoint)
        loss = self._check_parameters()
        warm = self.warm_start and hasattr(self, "weights_")
        if warm:
            self._refuse_pairs("warm_start=True")
        tokens = self._tokens(X, lengths, self.encoder_ if warm else None, dense)
        given = read_labels(y, tokens)
        classes = self.classes_ if warm else given.learn(tokens.place, _dtype_of(y))
        advice = "warm_start=True cannot add labels; set warm_start=False to start afresh." if warm else ""
        gold, known = self._codes(given, classes, tokens, advice)
        weight = example_weights(sample_weight, tokens.n_sequences, "sequence")
        counts = token_weights(read_token_weights(token_weight, tokens), self.class_weight, loss, gold, classes, self._who)
        column = given.column
        encoder = copy.deepcopy(self.encoder_) if warm else self._new_encoder(tokens, given)
        rows = self._encode(encoder, tokens, _to_learn_more(encoder) if warm else "fit_transform")
        self._warn_if_large(rows.n_features, len(classes) * self.hidden)
        if len(classes) == 1:
            warnings.warn(f"{self._who}: there is one label only, {shown(classes)}: nothing can be learnt.", stacklevel=2)
        problem = self._problem(encoder, rows, tokens, classes, gold, known)
        start = self._grown(self.weights_, self.n_features_in_, problem) if warm else None
        seed = self._seed()
        held = None
        if validation is not None:
            held = self._validation(validation, encoder, classes, column, problem.costs)
        elif self.early_stopping:
            kept, out = self._hold_out(tokens.n_sequences, seed)
            held = held_out.from_problem(kernels.take(problem, out), classes, self.hidden)
            counts = None if counts is None else counts[taken(problem.starts, kept)[1]]
            problem, weight = kernels.take(problem, kept), weight[kept]
        if counts is not None:
            problem, weight = by_levels(problem, weight, counts)
        if (weight == 0).any():
            problem, weight = kernels.take(problem, np.flatnonzero(weight)), weight[weight > 0]
        del tokens, given, rows  # what training does not need, it does not hold
        self._solve(problem, loss, weight, self._judge(held, classes), start, seed, checkpoint)
        self._learned(encoder, classes, column)
        return self

    def _refuse_pairs(self, what: str) -> None:
        if getattr(self.encoder_, "pairs", None) is not None:
            raise ValueError(f"{what}: a model with features of label pairs cannot go on learning. Fit it again.")

    def _learned(self, encoder: Encoder, classes: np.ndarray, column: int | None) -> None:
        self.encoder_, self.classes_, self.label_column_ = encoder, classes, column

    def _validation(self, validation, encoder, classes, column, costs) -> HeldOut:
        """Held-out data, seen through a model that is not finished yet."""
        if isinstance(validation, Columns):
            validation = (validation, column)
        if not (isinstance(validation, tuple | list) and len(validation) in (2, 3, 4)):
            raise ValueError("validation must be (X, y), (X, y, lengths) or (X, y, lengths, dense), or Columns.")
        X, y, lengths, dense = (*validation, None, None)[:4]
        tokens = self._tokens(X, lengths, encoder, dense)
        given = read_labels(y, tokens)
        problem = self._problem(encoder, self._encode(encoder, tokens, "transform"), tokens, classes)
        states = States(len(classes), self.hidden)
        return held_out.from_labels(problem, given, classes, states.label_costs(costs)[: len(classes)], self.hidden)

    def _judge_by(self, validation: Any, problem: Any) -> Any:
        held = self._validation(validation, self.encoder_, self.classes_, self.label_column_, problem.costs)
        return self._judge(held, self.classes_)

    def _judge(self, held: HeldOut | None, classes: np.ndarray) -> Any:
        if self.keep_held_out:
            self.held_out_ = held  # type: ignore[misc]
        return None if held is None else held.judge(self.validation_metric, classes, self.n_jobs)

    # -- from elsewhere -----------------------------------------------------------------------------------------------

    @classmethod
    def from_torch(cls, layer: Any, classes: Any = None, linear: Any = None, **parameters: Any) -> SequenceLabeler:
        """A model with the weights of a CRF layer on a network; torch is not needed for anything it does then.

        Parameters
        ----------
        layer : partwise.torch.CRF or torchcrf.CRF
        classes : sequence, optional
            The labels, in the layer's order; 0, 1, ... by default.
        linear : torch.nn.Linear, optional
            What makes emissions of the network's last states: tokens are then vectors of states, else of emissions.
        **parameters
            Of the model. The loss and the constraints are the layer's by default.
        """
        from partwise.tasks.tagging.from_layer import labeler_from_layer

        return labeler_from_layer(cls, layer, classes, linear, parameters)

    # -- bit by bit ---------------------------------------------------------------------------------------------------

    def partial_fit(self, X, y=None, classes=None, sample_weight=None, *, lengths=None, dense=None, token_weight=None):
        """One epoch of an online solver over these sequences, in their order, going on from the current weights.

        Features that are new enter the model. However a stream is cut into calls, the model after it is the same; not so with
        ``hidden > 1``, where the features of the first call begin at small random weights, and later ones at zero.

        Parameters
        ----------
        X, y, sample_weight, lengths, dense, token_weight
            As in `fit`.
        classes : sequence, optional
            All labels that will ever come, on the first call; otherwise those of the first `y`.
        """
        loss = self._check_parameters()
        fresh = not hasattr(self, "weights_")
        if not fresh:
            self._refuse_pairs("partial_fit")
        tokens = self._tokens(X, lengths, None if fresh else self.encoder_, dense)
        given = read_labels(y, tokens)
        if fresh:
            learned = given.learn(tokens.place, _dtype_of(y)) if classes is None else learn_labels(classes)
        else:
            learned = self.classes_
            if classes is not None and set(classes) != set(learned.tolist()):
                raise ValueError(f"classes={classes!r} is not what the first call of partial_fit or fit saw: {shown(learned)}.")
        advice = "Pass classes= with all labels on the first call of partial_fit."
        gold, known = self._codes(given, learned, tokens, advice)
        weight = example_weights(sample_weight, tokens.n_sequences, "sequence")
        counts = token_weights(read_token_weights(token_weight, tokens), self.class_weight, loss, gold, learned, self._who)
        encoder = self._new_encoder(tokens, given) if fresh else self.encoder_
        rows = self._encode(encoder, tokens, "extend" if fresh else _to_learn_more(encoder))
        problem = self._problem(encoder, rows, tokens, learned, gold, known)
        if not fresh:
            self._grow(problem)
        if counts is not None:
            problem, weight = by_levels(problem, weight, counts)
        self._advance(problem, loss, weight)
        self._learned(encoder, learned, given.column if fresh else self.label_column_)
        return self

    # -- streams ------------------------------------------------------------------------------------------------------

    def fit_stream(self, parts: Iterable[Any], y: int = -1, *, validation=None, checkpoint=None, labels=Columns.labels):
        """Train on data that do not fit into memory, an epoch being one pass over them (see `partwise.solvers.streamed`).

        One pass before the first epoch learns labels and vocabulary (with ``hash_bits`` only labels), so the model is the same
        however the data are cut into parts.

        Parameters
        ----------
        parts : iterable of Columns
            Iterated once per epoch and once before, so not a generator; e.g. ``ColumnFile("train.txt.gz")``.
        y : int
            The column of the labels.
        validation : as in `fit`
        checkpoint : as in `fit`
        labels : function of (Columns, column)
            Makes labels of the cells of a column; by default as they are.
        """
        from partwise.solvers import with_average
        from partwise.solvers.base import Task
        from partwise.solvers.streamed import STEPWISE, Streamed

        loss = self._check_parameters()
        if self.class_weight is not None and not loss.uses_cost:
            raise ValueError(f"class_weight with the loss {loss.name!r} weighs tokens, which a stream cannot. Use fit.")
        self._refuse_l1("fit_stream")
        if not any(kind().accepts(loss) for kind in STEPWISE):
            names = ", ".join(repr(kind.name) for kind in STEPWISE)
            raise ValueError(f"The loss {loss.name!r} cannot be learnt from a stream, by none of the solvers {names}. Use fit.")
        if isinstance(parts, Iterator):
            raise TypeError(
                "parts must be iterable more than once, like a list or a ColumnFile; a generator is spent after a pass."
            )
        first = next(iter(parts), None)
        if first is None:
            raise ValueError("There are no training sequences: the stream is empty.")
        tokens, given = self._tokens(first, None, None), labels(first, y)
        column = given.column
        encoder = self._new_encoder(tokens, given)
        if not isinstance(encoder, TemplateEncoder):
            raise TypeError("A stream must consist of Columns.")
        encoder.refuse_pairs("fit_stream")
        seen: dict[Any, None] = {}
        n_parts = 0

        def watched() -> Iterator[Columns]:
            nonlocal n_parts
            for part in parts:
                seen.update(dict.fromkeys(labels(part, y).distinct))
                n_parts += 1
                yield part

        if encoder.hash_bits is None:
            encoder.fit(watched())
        else:
            deque(watched(), maxlen=0)
        classes = GivenLabels(np.arange(len(seen), dtype=np.int32), list(seen)).learn(lambda _: first.name)
        self._warn_if_large(encoder.n_features, len(classes) * self.hidden)

        def pack(part: Columns):
            return self._pack_columns(part, labels(part, y), encoder, classes)

        nothing = pack(first.take([]))
        chosen, one_by_one = self._choose(loss, nothing, streamed=True)
        self.C_ = chosen.C
        solver = Streamed(cast(Any, with_average(one_by_one, self.average)), lambda: map(pack, parts), float(chosen.C))
        task = Task(nothing, loss, np.zeros(0), self._seed(), False, self._dtype, cast(Any, self.n_jobs))
        held = None if validation is None else self._validation(validation, encoder, classes, column, nothing.costs)
        self._say(f"solver {solver.name!r}, loss {loss.name!r}, {n_parts} parts")
        start = self._start(task, one_by_one)
        self._run(solver, task, loss, self._judge(held, classes), start, checkpoint, chosen.epochs, evaluate="never")
        self._learned(encoder, classes, column)
        return self

    def _pack_columns(self, part: Columns, given: GivenLabels | None, encoder: Any = None, classes: Any = None) -> Any:
        """A part of the training data, packed for a vocabulary and labels that are known: by default those of the model."""
        encoder, classes = encoder or self.encoder_, self.classes_ if classes is None else classes
        tokens = self._tokens(part, None, encoder)
        gold, known = (None, None) if given is None else self._codes(given, classes, tokens)
        return self._problem(encoder, encoder.transform(part), tokens, classes, gold, known)


def _dtype_of(y: Any) -> Any:
    """The type that labels given as an array have, to be kept."""
    return y.dtype if isinstance(y, np.ndarray) and y.dtype.kind in "biufU" else None


def _to_learn_more(encoder: Encoder) -> str:
    """How a vocabulary goes on: it grows, unless rare features were cut off, which takes all data at once."""
    return "transform" if getattr(encoder, "min_count", 1) > 1 else "extend"
