"""`Tagger`: trains a model of sequences, on data in memory, on a stream, or bit by bit.

    minimise  Omega(w) + C sum_i weight_i L_i(w),    s(y) = sum_t x_t . W[:, y_t] + A[y_{t-1}, y_t] + start[y_1] + stop[y_T]

with the penalty Omega(w) = l1_ratio ||w||_1 + (1 - l1_ratio)/2 ||w||^2. It is all of `SequenceLabeler` but the face that
scikit-learn wants to see; the command line uses it as it is.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, cast

import numpy as np

from partwise.features.given_labels import GivenLabels, learn_labels
from partwise.losses.records import Loss
from partwise.solvers import get_solver, with_average
from partwise.solvers.base import Task
from partwise.solvers.streamed import Streamed
from partwise.structures.chain.kernels import take
from partwise.structures.common.hidden import States
from partwise.tasks.common.base import _is_bool, _is_count
from partwise.tasks.common.label_arrays import example_weights, shown
from partwise.tasks.tagging import data as sequences
from partwise.tasks.tagging import held_out
from partwise.tasks.tagging.decoder import Decoder
from partwise.tasks.tagging.held_out import METRICS, HeldOut
from partwise.tasks.tagging.model import Encoder
from partwise.text.columns import Columns
from partwise.text.template_encoder import TemplateEncoder


class Tagger(Decoder):
    """Labels sequences; see `SequenceLabeler` for the parameters."""

    _checks = {
        **Decoder._checks,
        "hidden": (_is_count(1), "an int in the range [1, inf)"),
        "min_count": (_is_count(1), "an int in the range [1, inf)"),
        "hash_bits": (_is_count(1, optional=True), "an int in the range [1, 30] or None"),
        "order": (_is_count(1), "an int in the range [1, inf)"),
        "use_start": (_is_bool, "a bool"),
        "use_stop": (_is_bool, "a bool"),
        "use_transitions": (_is_bool, "a bool"),
        "validation_metric": (lambda value: value in METRICS, "one of 'cost', 'error', 'f1'"),
    }

    def __init__(
        self,
        loss="hinge",
        C=1.0,
        solver="auto",
        l1_ratio=0.0,
        cost=None,
        constraints=None,
        templates=None,
        columns=None,
        min_count=1,
        hash_bits=None,
        order=1,
        hidden=1,
        class_weight=None,
        use_start=True,
        use_stop=True,
        use_transitions=True,
        max_epochs=None,
        tol=1e-3,
        average=None,
        early_stopping=False,
        validation_fraction=0.1,
        validation_metric="cost",
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
        self.templates = templates
        self.columns = columns
        self.min_count = min_count
        self.hash_bits = hash_bits
        self.order = order
        self.hidden = hidden
        self.class_weight = class_weight
        self.use_start = use_start
        self.use_stop = use_stop
        self.use_transitions = use_transitions
        self.max_epochs = max_epochs
        self.tol = tol
        self.average = average
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.validation_metric = validation_metric
        self.patience = patience
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.dtype = dtype
        self.callbacks = callbacks
        self.verbose = verbose

    # -- data in memory -----------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None, *, lengths=None, validation=None, checkpoint=None):
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
        validation : tuple (X, y) or (X, y, lengths), or Columns, optional
            Held-out data for early stopping, instead of a part of X.
        checkpoint : path, optional
            What it takes to go on after an interruption is written there now and then; if it is there already, training goes on
            from it, exactly as if nothing had happened. Removed when done.
        """
        loss = self._check_parameters()
        self._check_class_weight(loss)
        warm = self.warm_start and hasattr(self, "weights_")
        tokens = self._tokens(X, lengths, self.encoder_ if warm else None)
        given = sequences.read_labels(y, tokens)
        classes = self.classes_ if warm else given.learn(tokens.place, _dtype_of(y))
        advice = "warm_start=True cannot add labels; set warm_start=False to start afresh." if warm else ""
        gold, known = self._codes(given, classes, tokens, advice)
        weight = example_weights(sample_weight, len(tokens.lengths), "sequence")
        column = given.column
        encoder = copy.deepcopy(self.encoder_) if warm else self._new_encoder(tokens, given)
        rows = self._encode(encoder, tokens, _to_learn_more(encoder) if warm else "fit_transform")
        self._warn_if_large(rows.n_features, len(classes) * self.hidden)
        problem = self._problem(encoder, rows, tokens, classes, gold, known)
        start = self._grown(self.weights_, self.n_features_in_, problem) if warm else None
        seed = self._seed()
        held = None
        if validation is not None:
            held = self._validation(validation, encoder, classes, column, problem.costs)
        elif self.early_stopping:
            kept, out = self._hold_out(len(tokens.lengths), seed)
            held = held_out.from_problem(take(problem, out), classes, self.hidden)
            problem, weight = take(problem, kept), weight[kept]
        if (weight == 0).any():
            problem, weight = take(problem, np.flatnonzero(weight)), weight[weight > 0]
        del tokens, given, rows  # what training does not need, it does not hold
        self._solve(problem, loss, weight, self._judge(held, classes), start, seed, checkpoint)
        self._learned(encoder, classes, column)
        return self

    def _learned(self, encoder: Encoder, classes: np.ndarray, column: int | None) -> None:
        self.encoder_, self.classes_, self.label_column_ = encoder, classes, column

    def _validation(self, validation, encoder, classes, column, costs) -> HeldOut:
        """Held-out data, seen through a model that is not finished yet."""
        if isinstance(validation, Columns):
            validation = (validation, column)
        if not (isinstance(validation, tuple | list) and len(validation) in (2, 3)):
            raise ValueError("validation must be (X, y) or (X, y, lengths), or Columns.")
        X, y, lengths = (*validation, None)[:3]
        tokens = self._tokens(X, lengths, encoder)
        given = sequences.read_labels(y, tokens)
        problem = self._problem(encoder, self._encode(encoder, tokens, "transform"), tokens, classes)
        states = States(len(classes), self.hidden)
        return held_out.from_labels(problem, given, classes, states.label_costs(costs)[: len(classes)], self.hidden)

    def _judge(self, held: HeldOut | None, classes: np.ndarray) -> Any:
        return None if held is None else held.judge(self.validation_metric, classes, self.n_jobs)

    # -- bit by bit ---------------------------------------------------------------------------------------------------

    def partial_fit(self, X, y=None, classes=None, sample_weight=None, *, lengths=None):
        """One epoch of an online solver over these sequences, in their order, going on from the current weights.

        Features that are new enter the model. However a stream is cut into calls, the model after it is the same; not so with
        ``hidden > 1``, where the features of the first call begin at small random weights, and later ones at zero.

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
        tokens = self._tokens(X, lengths, None if fresh else self.encoder_)
        given = sequences.read_labels(y, tokens)
        if fresh:
            learned = given.learn(tokens.place, _dtype_of(y)) if classes is None else learn_labels(classes)
        else:
            learned = self.classes_
            if classes is not None and set(classes) != set(learned.tolist()):
                raise ValueError(f"classes={classes!r} is not what the first call of partial_fit or fit saw: {shown(learned)}.")
        advice = "Pass classes= with all labels on the first call of partial_fit."
        gold, known = self._codes(given, learned, tokens, advice)
        weight = example_weights(sample_weight, len(tokens.lengths), "sequence")
        encoder = self._new_encoder(tokens, given) if fresh else self.encoder_
        rows = self._encode(encoder, tokens, "extend" if fresh else _to_learn_more(encoder))
        problem = self._problem(encoder, rows, tokens, learned, gold, known)
        if not fresh:
            self._grow(problem)
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
        loss = self._check_parameters()
        self._check_class_weight(loss)
        self._refuse_l1("fit_stream")
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
            tokens = self._tokens(part, None, encoder)
            gold, known = self._codes(labels(part, y), classes, tokens)
            return self._problem(encoder, encoder.transform(part), tokens, classes, gold, known)

        base: Any = with_average(get_solver("dca" if self.solver == "auto" else self.solver), self.average)
        solver = Streamed(base, lambda: map(pack, parts), float(self.C))
        nothing = pack(first.take([]))
        task = Task(nothing, loss, np.zeros(0), self._seed(), False, self._dtype, cast(Any, self.n_jobs))
        held = None if validation is None else self._validation(validation, encoder, classes, column, nothing.costs)
        self._say(f"solver {solver.name!r}, loss {loss.name!r}, {n_parts} parts")
        self._run(solver, task, loss, self._judge(held, classes), self._start(task), checkpoint, evaluate="never")
        self._learned(encoder, classes, column)
        return self

    def _check_class_weight(self, loss: Loss) -> None:
        if self.class_weight is not None and not loss.uses_cost:
            raise ValueError(
                f"The 'class_weight' parameter of {self._who} scales the cost of a label, and the loss {loss.name!r} does not "
                "look at costs. Use 'hinge', 'softmax_margin' or another Family(beta, gamma) with gamma > 0."
            )


def _dtype_of(y: Any) -> Any:
    """The type that labels given as an array have, to be kept."""
    return y.dtype if isinstance(y, np.ndarray) and y.dtype.kind in "biufU" else None


def _to_learn_more(encoder: Encoder) -> str:
    """How a vocabulary goes on: it grows, unless rare features were cut off, which takes all data at once."""
    return "transform" if getattr(encoder, "min_count", 1) > 1 else "extend"
