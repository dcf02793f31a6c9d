"""Labels of sequences that are probably wrong: see `partwise.tasks.common.suspects`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from partwise.structures.common.hidden import States
from partwise.tasks.common.suspects import FindsSuspects, Judged, fitted_like, folds_of, judge, unfitted
from partwise.tasks.tagging.data import read_labels


@dataclass(frozen=True)
class JudgedSequences(Judged):
    """What is given and believed of all tokens, end to end."""

    given: LazyLabels = None  # type: ignore[assignment]
    believed: LazyLabels = None  # type: ignore[assignment]


class SequenceSuspects(FindsSuspects):
    """`suspects` and `suspicion` of models of sequences."""

    def judge(self, X, y=None, *, lengths=None, dense=None, folds="auto", judges: list[Any] | None = None) -> JudgedSequences:
        """What is to be thought of all labels; the parameters are those of `suspects`.

        Those who judge are put into the list `judges`, if there is one: this model or, in folds, one for each part.
        """
        me: Any = self
        fitted = hasattr(me, "weights_")
        if folds is None:
            me._require_fitted()
        elif not fitted:
            me = unfitted(me)
            me._check_parameters()
        tokens = me._tokens(X, lengths, me.encoder_ if fitted else None, dense)
        folds = folds_of(me, folds, tokens.n_sequences)
        given = read_labels(y, tokens)
        classes = me.classes_ if fitted else given.learn(tokens.place)
        gold, known = me._codes(given, classes, tokens)
        encoder = me.encoder_ if fitted else me._new_encoder(tokens, given)
        rows = me._encode(encoder, tokens, "transform" if fitted else "fit_transform")
        problem = me._problem(encoder, rows, tokens, classes, gold, known)
        if fitted:
            me._check_size(problem, me.weights_)
        learners: list[Any] = []
        found = judge(me, problem, folds, judges=learners)
        if judges is not None:
            judges += [fitted_like(me, one, encoder_=encoder, classes_=classes) for one in learners]
        codes = States(len(classes), me.hidden).labels(found.evidence.believed)
        labels, believed, starts = (
            LazyLabels(given.codes, given.distinct),
            LazyLabels(codes, classes.tolist()),
            found.evidence.starts,
        )

        def example(i: int) -> tuple[list[Any], list[Any]]:
            here = slice(int(starts[i]), int(starts[i + 1]))
            return labels[here], believed[here]

        return JudgedSequences(found, example, lambda t: (labels[t], believed[t]), labels, believed)


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
