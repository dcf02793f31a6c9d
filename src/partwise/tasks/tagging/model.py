"""What a model of sequences is: an encoder, labels and weights, and the packed problems it sees the world through."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from partwise import kernels
from partwise.features.given_labels import GivenLabels
from partwise.features.rows import Binary, spread_of
from partwise.structures.chain.problem import ChainProblem, chain_blocks, chain_problem
from partwise.structures.common.hidden import States
from partwise.tasks.common.base import Structured
from partwise.tasks.common.hidden_states import HiddenStates
from partwise.tasks.common.label_arrays import class_weights, cost_matrix, shown
from partwise.tasks.common.model_file import count_in, labels_in
from partwise.tasks.tagging.constraints import check_gold, forbidden_transitions
from partwise.tasks.tagging.data import Tokens, read_labels, read_tokens, with_dense
from partwise.text.given_encoders import ATTRIBUTES, COLUMNS, MATRIX, AttributeEncoder, MatrixEncoder
from partwise.text.template_encoder import TemplateEncoder

MOST_HISTORIES = 10_000_000  # of `order` labels each; an oracle keeps a few numbers for every one of them, per token
LARGE = 1e9  # bytes of weights that are worth a word
ENCODERS: dict[str, Any] = {ATTRIBUTES: AttributeEncoder, MATRIX: MatrixEncoder, COLUMNS: TemplateEncoder}

Encoder = AttributeEncoder | MatrixEncoder | TemplateEncoder


class ChainModel(HiddenStates, Structured):
    """Packs and unpacks; trains and answers nothing itself."""

    templates: Any
    columns: Any
    min_count: int
    hash_bits: int | None
    order: int
    constraints: Any
    class_weight: Any
    use_start: bool
    use_stop: bool
    use_transitions: bool
    pair_attributes: str | None
    label_pairs: str
    encoder_: Encoder
    weights_: np.ndarray
    label_column_: int | None = None  #: the column that the labels came from
    given_scheme_: str | None = None  #: the chunking scheme of the data, if they were converted to another one for training

    def _spread(self, problem: ChainProblem, weight: np.ndarray | None) -> float | None:
        """Of tokens described by numbers; attributes and templates that are there or not have the usual scale."""
        return None if isinstance(problem.rows, Binary) else spread_of(problem.rows)

    # -- packing ------------------------------------------------------------------------------------------------------

    def _tokens(self, X, lengths, encoder: Encoder | None, dense: Any = None) -> Tokens:
        """Sequences in any accepted form, of the kind that `encoder` takes; None if there is none yet."""
        in_columns = self.templates is not None if encoder is None else encoder.kind == COLUMNS
        tokens = with_dense(read_tokens(X, lengths, self._dtype, in_columns), dense, self._dtype)
        if encoder is None:
            if not tokens.n_sequences:
                raise ValueError("There are no training sequences: X is empty.")
            if not tokens.n_tokens:
                raise ValueError(f"There are no tokens to train on: all {tokens.n_sequences} sequences are empty.")
        elif tokens.kind and tokens.kind != encoder.kind:
            raise ValueError(f"{self._who} was fitted with {encoder.kind} as tokens, but X has {tokens.kind}.")
        elif not tokens.kind:  # nothing but empty sequences
            empty: Any = np.zeros((0, encoder.n_features), self._dtype) if encoder.kind == MATRIX else []
            tokens = tokens._replace(kind=encoder.kind, tokens=empty)
        return tokens

    def _new_encoder(self, tokens: Tokens, labels: GivenLabels) -> Encoder:
        if tokens.kind == MATRIX:
            for name, default in (("templates", None), ("hash_bits", None), ("min_count", 1), ("pair_attributes", None)):
                if getattr(self, name) != default:
                    raise ValueError(f"The {name!r} parameter of {self._who} is of no use for matrices. Leave it out.")
            return MatrixEncoder(self._dtype, who=self._who)
        if tokens.kind == ATTRIBUTES:
            if self.hash_bits is not None:
                raise ValueError(f"The 'hash_bits' parameter of {self._who} is for templates only.")
            n_dense = 0 if tokens.dense is None else tokens.dense.shape[1]
            return AttributeEncoder(self.min_count, self._dtype, n_dense, self.pair_attributes)
        if self.pair_attributes is not None:
            raise ValueError(
                f"The 'pair_attributes' parameter of {self._who} is for attributes. Templates of label pairs begin with B."
            )
        templates = self.templates
        if templates is None or (isinstance(templates, str) and templates == "auto"):
            templates = default_templates(tokens.tokens.n_columns - (labels.column is not None), labels)
        encoder = TemplateEncoder(templates, self.columns, min_count=self.min_count, hash_bits=self.hash_bits)
        if labels.column is not None:
            encoder.refuse_column(labels.column, f"the column of the labels ({tokens.tokens.name})")
        return encoder

    def _encode(self, encoder: Encoder, tokens: Tokens, how: str):
        """Feature rows; `how` is the method to call: ``fit_transform``, ``extend`` or ``transform``."""
        return getattr(encoder, how)(tokens.tokens if encoder.kind == COLUMNS else tokens)

    def _codes(self, labels: GivenLabels, classes, tokens: Tokens, advice=""):
        def refuse(t, label):
            what = f"Label {label!r}" if label != set() else "An empty set of labels"
            return ValueError(f"{what} ({tokens.place(t)}) is not one of the labels {shown(classes)}. {advice}".rstrip())

        return labels.encode(classes, refuse)

    def _problem(self, encoder, rows, tokens: Tokens, classes, gold=None, known=None, allowed=None) -> ChainProblem:
        states = States(len(classes), self.hidden)
        if (states.n + 1) ** min(self.order, 64) > MOST_HISTORIES:
            hidden = "" if self.hidden == 1 else f" of {self.hidden} hidden states"
            raise ValueError(
                f"The {'order' if self.order > 1 else 'hidden'!r} parameter of {self._who} is too large: {len(classes)} labels"
                f"{hidden} and order={self.order} make more than {MOST_HISTORIES} histories."
            )
        forbidden = forbidden_transitions(self.constraints, classes, self._who)
        costs = None
        if gold is not None:
            check_gold(forbidden, gold, tokens.starts, classes, tokens.place if tokens.kind == COLUMNS else None)
            costs = cost_matrix(self.cost, classes, self._who)
            if self.class_weight is not None:
                costs = 1.0 - np.eye(len(classes)) if costs is None else costs
                complete = gold[gold < len(classes)]
                costs = costs * class_weights(self.class_weight, classes, complete, None, self._who)[:, None]
            gold, known = states.truth(gold, known)
        problem = chain_problem(
            rows,
            tokens.lengths,
            gold,
            states.n,
            order=self.order,
            costs=states.costs(costs),
            allowed=None if allowed is None else states.sets(allowed),
            known=known,
            forbidden=states.transitions(forbidden),
            use_start=self.use_start,
            use_stop=self.use_stop,
            use_transitions=self.use_transitions and getattr(encoder, "has_transitions", True),
            dtype=self._dtype,
        )
        return problem if getattr(encoder, "pairs", None) is None else self._with_pairs(problem, encoder, tokens)

    def _with_pairs(self, problem: ChainProblem, encoder: TemplateEncoder | AttributeEncoder, tokens: Tokens) -> Any:
        """The problem with features of label pairs; which pairs they have weights for is learnt from the training data."""
        from partwise.structures.chain.pairs import all_pairs, observed_pairs, with_pairs

        assert encoder.pairs is not None
        if self.order > 1:
            raise ValueError(
                f"Features of label pairs (templates B with %x, pair_attributes) need order=1. This {self._who} has "
                f"order={self.order}."
            )
        rows = self._encode(encoder.pairs, tokens, "transform")
        if not isinstance(rows, Binary):
            raise ValueError("A feature of label pairs stands twice in a token, or has a value other than 1.")
        if encoder.pair_table is None:
            encoder.pair_table = (all_pairs if self.label_pairs == "all" else observed_pairs)(problem, rows)
        return with_pairs(problem, rows, *encoder.pair_table)

    def _warn_if_large(self, n_features: int, n_labels: int) -> None:
        """There is a weight for every feature and label: say so before memory is gone."""
        size = n_features * n_labels * np.dtype(self._dtype).itemsize
        if size > LARGE:
            warnings.warn(
                f"{self._who}: {n_features:,} features and {n_labels} labels make {size / 1e9:.1f} GB of weights, two to three "
                "times that while training. A larger min_count, hash_bits, or dtype='float32' make it less.",
                UserWarning,
                stacklevel=3,
            )

    def _allowed(self, known, tokens) -> np.ndarray:
        """Labels each token may have: what is known about it is None, a label, or a set of labels."""

        def refuse(t, label):
            what = "an empty set" if label == set() else repr(label)
            return ValueError(f"known holds {what} ({tokens.place(t)}), which is not one of the labels {shown(self.classes_)}.")

        given = read_labels(known, tokens, "known labels")
        given.encode(self.classes_, refuse)
        return given.allows(self.classes_)[given.codes]

    # -- growing ------------------------------------------------------------------------------------------------------

    def _grown(self, w, n_before, problem) -> np.ndarray:
        """Weights of the previous model with zeros for features that are new."""
        n_labels = problem.n_labels
        new = problem.rows.n_features - n_before
        if w.size + new * n_labels != kernels.n_weights(problem):
            raise ValueError(
                "The 'order' or the 'hidden' parameter has changed since the previous fit. Set warm_start=False to start afresh."
            )
        cut = n_before * n_labels
        return np.concatenate([w[:cut], np.zeros(new * n_labels, w.dtype), w[cut:]])

    def _grow(self, problem) -> None:
        """Make room for new features in the model and in what partial_fit remembers."""
        n_before = self._n_features()
        if problem.rows.n_features == n_before:
            return
        self.weights_ = self._grown(self.weights_, n_before, problem)
        stream = getattr(self, "_stream", None)
        if stream is not None:
            kept = stream["weights"]
            grown = {"v": self._grown(kept.v, n_before, problem)}
            if kept.u.size:
                grown["u"] = self._grown(kept.u, n_before, problem)
            stream["weights"] = kept._replace(**grown)

    def _n_features(self) -> int:
        """Features that have weights."""
        blocks = chain_blocks(0, self._states.n, self.order)
        return self.weights_.size // self._states.n - sum(n for _, n in blocks.values())

    def _label_rows(self) -> tuple[int, int] | None:
        """Tokens given as numbers may come as a dense matrix, which no lists of weights go with."""
        return None if self.encoder_.kind == MATRIX else (self.encoder_.n_features, self._states.n)

    # -- the weights --------------------------------------------------------------------------------------------------

    def _block(self, name: str) -> np.ndarray:
        self._require_fitted(name)
        n_states = self._states.n
        w = self.weights_.reshape(-1, n_states)
        first, n = chain_blocks(self.n_features_in_, n_states, self.order)[name]
        return w[first : first + n]

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        self._require_fitted("n_features_in_")
        return self.encoder_.n_features

    @property
    def vocabulary_(self) -> dict[str, int]:
        """From attribute to column of `coef_` (attribute input only)."""
        self._require_fitted("vocabulary_")
        return self.encoder_.vocabulary  # type: ignore[union-attr]  # AttributeError is what hasattr expects

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, (labels, features); as those below for states instead of labels, if they have several."""
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
        n = self._states.n
        return self._block(f"transitions_{order}").reshape((n + 1,) * order + (n,))

    def feature_name(self, j: int) -> str:
        """What feature j, column j of `coef_`, is called."""
        self._require_fitted("feature_name")
        return self.encoder_.feature_name(j)

    @property
    def feature_names_(self) -> list[str]:
        """The features, in the order of the columns of `coef_`."""
        self._require_fitted("feature_names_")
        return [self.encoder_.feature_name(j) for j in range(self.n_features_in_)]

    # -- the model file -----------------------------------------------------------------------------------------------

    def _to_file(self):
        state, tensors = self.encoder_.to_state()
        header = {"labels": self.classes_, "n_features": self.n_features_in_, "tokens": self.encoder_.kind, "encoder": state}
        for name in ("label_column", "given_scheme"):
            if getattr(self, f"{name}_", None) is not None:
                header[name] = getattr(self, f"{name}_")
        return header, tensors

    def _from_file(self, header, tensors, need):
        kind = need(header, "tokens", str)
        if kind not in ENCODERS:
            raise ValueError(f"unknown kind of tokens {kind!r}")
        state = need(header, "encoder", dict)
        if kind == COLUMNS:
            self.encoder_ = TemplateEncoder.from_state(state, tensors)
        else:
            self.encoder_ = ENCODERS[kind].from_state(state, tensors, self._dtype)
        if isinstance(self.encoder_, MatrixEncoder):
            self.encoder_.who = self._who
        if self.encoder_.n_features != count_in(header):
            raise ValueError("the features do not match their number")
        for name, type_ in (("label_column", int), ("given_scheme", str)):
            setattr(self, f"{name}_", need(header, name, type_) if name in header else None)
        self.classes_ = labels_in(header)
        n_states = self._states.n
        n_weights = self._kept_weights.size
        if (n_states + 1.0) ** min(self.order, 2000) > n_weights:  # before counting up to it
            raise ValueError(f"there are {n_weights} weights, too few for order {self.order}")
        blocks = chain_blocks(self.encoder_.n_features, n_states, self.order)
        n_pairs = 0
        if getattr(self.encoder_, "pairs", None) is not None:
            codes = self.encoder_.pair_table[1]  # type: ignore[union-attr,index]
            if codes.max(initial=-1) >= n_states**2 or self.order > 1:
                raise ValueError("the label pairs of the templates are not those of the labels")
            n_pairs = -(-len(codes) // n_states)
        return (sum(n for _, n in blocks.values()) + n_pairs) * n_states


def default_templates(n_columns: int, labels: GivenLabels) -> str:
    """A ready-made set for files with so many columns of features: two are taken for words and parts of speech."""
    from partwise.text.chunk_schemes import recognise

    if n_columns >= 2:
        return "phrases"
    return "ner" if recognise([label for label in labels.distinct if isinstance(label, str)]) else "words"
