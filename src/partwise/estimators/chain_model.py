"""What a model of sequences is: vocabulary and labels, weights by name, and the packed problems it sees the world through."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from partwise import kernels
from partwise.estimators import sequences
from partwise.estimators.base import Structured
from partwise.estimators.constraints import check_gold, forbidden_transitions
from partwise.estimators.labels import class_weights, cost_matrix, encode_labels, numbering, shown
from partwise.estimators.sequences import ATTRIBUTES, MATRIX, Tokens
from partwise.features.attributes import encode
from partwise.features.rows import make_rows
from partwise.structures import ChainProblem, chain_problem
from partwise.structures.chain import chain_blocks

MOST_HISTORIES = 10_000_000  # of `order` labels each; an oracle keeps a few numbers for every one of them, per token


class ChainModel(Structured):
    """Base of `SequenceLabeler`: packs and unpacks; trains and answers nothing itself."""

    def _learned(self, kind, n_features, vocabulary, classes):
        self._kind, self.n_features_in_, self.classes_ = kind, n_features, classes
        if kind == ATTRIBUTES:
            self.vocabulary_ = vocabulary
        elif hasattr(self, "vocabulary_"):
            del self.vocabulary_

    # -- packing ------------------------------------------------------------------------------------------------------

    def _tokens(self, X, lengths, fresh: bool = False) -> Tokens:
        tokens = sequences.read_tokens(X, lengths, self._dtype)
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
                    f"X has {tokens.tokens.shape[1]} features per token, but {self._who} is expecting "
                    f"{self.n_features_in_} features."
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
        reader = type(self)(dtype=self.dtype)
        reader._learned(kind, n_features, vocabulary, classes)
        tokens = reader._tokens(X, lengths)
        codes = self._codes(sequences.read_labels(y, tokens), classes, tokens.starts)
        return self._problem(self._rows(tokens, vocabulary, grow=False), tokens.starts, classes, codes)

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
        """Weights of a label given the `order` before it, oldest first; the last place of an axis is "before the beginning"."""
        n = len(self.classes_)
        return self._block(f"transitions_{order}").reshape((n + 1,) * order + (n,))

    @property
    def feature_names_(self) -> list[str]:
        """The attributes, in the order of the columns of `coef_`."""
        self._require_fitted("feature_names_")
        if self._kind == ATTRIBUTES:
            return list(self.vocabulary_)
        return [f"x{k}" for k in range(self.n_features_in_)]

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
