"""Labels of sequences that a model refuses to believe: see `partwise.tasks.common.suspects`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partwise.structures.common.hidden import States
from partwise.tasks.common.suspects import Judged, Suspect, SuspectToken, fitted_like, in_order, learn_and_doubt, unfitted
from partwise.tasks.tagging.data import read_labels


class SequenceSuspects:
    """`suspects` and `suspicion` of models of sequences."""

    def suspects(self, X, y=None, *, lengths=None, threshold=None, top=None, cv=None) -> list[Suspect]:
        """Sequences whose labels the model refuses to believe, largest margin first (see `partwise.tasks.common.suspects`).

        Parameters
        ----------
        X : sequences, or tokens end to end with `lengths`, or Columns
        y : label sequences, or labels end to end; for Columns also the number of a column, or None for the last one
            The labels to be judged. A token whose label is unknown, None, is never in doubt; of a set the best label is.
        lengths : array, optional
        threshold : float, optional
            By default those are listed that the loss has given up: for ``"ramp"``, where other labels are better by more than
            their cost; for others, where the prediction is not what was given. With a threshold, those whose prediction is not
            what was given and whose margin is larger.
        top : int, optional
            At most so many.
        cv : int, optional
            Judge every sequence by a model that has not seen it: train on all but one of so many parts, with the parameters (and
            the features, if fitted) of this estimator, which then need not be fitted.

        Returns
        -------
        list of Suspect
            Each with the fields ``example`` (its number in X), ``given``, ``believed`` (lists of labels), ``margin``, and
            ``tokens``, the tokens where the two differ: ``token``, ``given``, ``believed``, ``margin``, largest margin first.
        """
        judged = self.judge(X, y, lengths=lengths, threshold=threshold, cv=cv)
        return [suspect_sequence(judged, i) for i in judged.ranked(threshold, top)]

    def suspicion(self, X, y=None, *, lengths=None, tokens=False, cv=None) -> np.ndarray:
        """The margin of the best other labelling over the given one, of all sequences, (sequences,); -inf where none is given.

        With ``tokens=True`` the margins of the single tokens instead, end to end, (tokens,).
        """
        found = self.judge(X, y, lengths=lengths, cv=cv).found
        return found.token_margins if tokens else found.margins

    def judge(self, X, y=None, *, lengths=None, threshold=None, cv=None, judges: list[Any] | None = None) -> Judged:
        """What the model makes of all labels; the parameters are those of `suspects`.

        Those who judge are put into the list `judges`, if there is one: this model or, with `cv`, one for each part.
        """
        me: Any = self
        fitted = hasattr(me, "weights_")
        if cv is None:
            me._require_fitted()
        elif not fitted:
            me = unfitted(me)
            me._check_parameters()
        tokens = me._tokens(X, lengths, me.encoder_ if fitted else None)
        given = read_labels(y, tokens)
        classes = me.classes_ if fitted else given.learn(tokens.place)
        gold, known = me._codes(given, classes, tokens)
        encoder = me.encoder_ if fitted else me._new_encoder(tokens, given)
        rows = me._encode(encoder, tokens, "transform" if fitted else "fit_transform")
        problem = me._problem(encoder, rows, tokens, classes, gold, known)
        if fitted:
            me._check_size(problem, me.weights_)
        learners: list[Any] = []
        found = learn_and_doubt(me, problem, threshold, cv, judges=None if judges is None else learners)
        if judges is not None:
            judges += [fitted_like(me, one, encoder_=encoder, classes_=classes) for one in learners] if cv else [me]
        believed = States(len(classes), me.hidden).labels(found.believed)
        return Judged(found, LazyLabels(given.codes, given.distinct), LazyLabels(believed, classes.tolist()))


def suspect_sequence(judged: Judged, i: int) -> Suspect:
    """The record of sequence i."""
    found = judged.found
    first, last = found.starts[i : i + 2].tolist()
    order = first + in_order(found.token_margins[first:last], found.wrong[first:last])
    tokens = tuple(
        SuspectToken(t - first, judged.given[t], judged.believed[t], float(found.token_margins[t])) for t in order.tolist()
    )
    return Suspect(i, list(judged.given[first:last]), list(judged.believed[first:last]), float(found.margins[i]), tokens)


class LazyLabels(Sequence[Any]):
    """Labels end to end, made when they are asked for: a record needs few of them."""

    def __init__(self, codes: np.ndarray, names: list[Any]):
        self.codes, self.names = codes, names

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            return [self.names[k] for k in self.codes[which].tolist()]
        return self.names[self.codes[which]]
