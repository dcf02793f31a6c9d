"""`SegmentLabeler`: learns to cut sequences into labelled segments (semi-Markov models).

    minimise  Omega(w) + C sum_i weight_i L_i(w),    s(y) = sum of the scores of its segments (`structures.semi_markov`)

A segment is scored as a whole: by its first, inner and last tokens, its length, the segment before it, and by whether it is a
phrase that a dictionary has, or that was a segment in the training data.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from partwise import passes
from partwise.features.given_labels import GivenLabels
from partwise.losses.records import Family
from partwise.objective import best_outputs, completions, losses_at
from partwise.structures.common.hidden import States
from partwise.structures.semi_markov.kernels import CLASSES
from partwise.structures.semi_markov.problem import COSTS, SegmentProblem, longest_segments, named_costs, segment_problem
from partwise.tasks.common.base import Structured, is_corpus
from partwise.tasks.common.checks import is_bool, is_count
from partwise.tasks.common.distinct_kbest import distinct_kbest
from partwise.tasks.common.hidden_states import HiddenStates
from partwise.tasks.common.label_arrays import check_k, example_weights
from partwise.tasks.common.model_file import count_in, labels_in
from partwise.tasks.segments.data import OUTSIDE, Coding, Segment, SegmentedText, read_segmented, types_of
from partwise.tasks.segments.lexicon import Found, find_phrases, learn_phrases, read_phrases
from partwise.tasks.segments.scores import SegmentCounts, segment_counts
from partwise.tasks.segments.suspects import SegmentSuspects
from partwise.text.chunk_schemes import SCHEMES, recognise_coded
from partwise.text.phrases import PhraseTable
from partwise.text.template_encoder import TemplateEncoder


def is_dictionary(value: Any) -> bool:
    """Whether it can be read as one."""
    try:
        read_phrases({} if value is None else value)
    except (TypeError, ValueError):
        return False
    return True


@dataclass(eq=False, repr=False)
class SegmentLabeler(SegmentSuspects, HiddenStates, Structured):
    """Cuts sequences into labelled segments: entities, chunks; with features of whole segments.

    Sentences come from a column file (`partwise.datasets.read_segments`), or are lists of tokens, each a tuple of strings (a
    word, its part of speech, ...) or a word alone. Labels are chunk labels, one per token and in any scheme, or segments
    ``(label, begin, end)``. None stands for a label that is not known, a set for "one of these" (both in IOB2). Answers are
    labels in the scheme of the training data; `predict_segments` gives segments.

    Parameters
    ----------
    %(loss)s
    templates : {"chunking", "phrases", "words", "ner", "auto"}, path or list of str, optional
        How features of tokens are made of columns, as in `SequenceLabeler`: "phrases" where there are two columns or more, else
        "ner". Each has a weight for the first, an inner and the last token of a segment of each label.
    columns : list of str, optional
        Names of the columns, for templates; ``["w", "pos"]`` by default.
    min_count : int, default=1
        Features of tokens that occur fewer times in the training data are left out.
    dictionary : dict {name: phrases}, optional
        Phrases, strings or lists of words, under any number of names. A segment that is one of them, in upper or lower case, has
        a feature for each name.
    learn_phrases : bool, default=True
        Whether the segments of the training data make a dictionary, too: one for each label (see `tasks.segments.lexicon`).
    max_length : int, optional
        The longest segment there may be; by default, for each label, the longest in the training data.
    use_ends : bool, default=True
        Whether the last token of a segment has weights of its own.
    hidden : int, default=1
        States of each label that nobody sees (see `partwise.structures.common.hidden`): a whole segment is in one of those of its
        label, for labels whose segments come in several kinds. The labels that are answered are those of the states.
    cost : {"tokens", "labels", "boundaries"}, optional
        What a token costs, for losses with gamma > 0: 1 if its label or whether a segment begins there is wrong (the default); or
        only one of the two.
    %(learning)s

    Attributes
    ----------
    classes_ : array
        Labels of segments; the last, ``"O"``, is what is outside of all segments.
    limits_ : array (labels,)
        The longest segment of each.
    encoder_ : TemplateEncoder
        Makes features of tokens.
    phrases_ : PhraseTable or None
        The phrases that are known.
    scheme_ : str
        That of the training data, in which labels are answered.
    weights_ : array
        All weights, flat: see `weights_by_name`.
    result_, solver_, temperature_
        As in `Classifier`.

    Examples
    --------
    >>> X = [["He", "met", "Ann", "Lee"], ["Lee", "left", "Oslo"]]
    >>> y = [[("PER", 2, 4)], [("PER", 0, 1), ("LOC", 2, 3)]]
    >>> SegmentLabeler().fit(X, y).predict_segments([["Ann", "Lee", "left"]])  # doctest: +SKIP
    [[('PER', 0, 2)]]
    """

    _: KW_ONLY
    templates: Any = None
    columns: Any = None
    min_count: int = 1
    dictionary: Any = None
    learn_phrases: bool = True
    max_length: int | None = None
    use_ends: bool = True
    hidden: int = 1
    cost: str | None = None  # type: ignore[misc]
    dtype: Any = "float32"

    classes_: np.ndarray = field(init=False)
    weights_: np.ndarray = field(init=False)
    limits_: np.ndarray = field(init=False)
    encoder_: TemplateEncoder = field(init=False)
    scheme_: str = field(init=False)

    _checks = {
        **Structured._checks,
        "min_count": (is_count(1), "an int in the range [1, inf)"),
        "dictionary": (is_dictionary, "a dict of lists of phrases or None"),
        "learn_phrases": (is_bool, "a bool"),
        "max_length": (is_count(1, optional=True), "an int in the range [1, inf) or None"),
        "use_ends": (is_bool, "a bool"),
        "hidden": (is_count(1), "an int in the range [1, inf)"),
        "cost": (lambda value: value is None or value in COSTS, f"one of {', '.join(COSTS)}, or None"),
    }

    # -- training -----------------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None, *, validation=None, checkpoint=None):
        """Train from nothing, or with ``warm_start=True`` from the previous weights, with the features and labels of before.

        Parameters
        ----------
        X : SegmentedText, Columns or list of sentences
        y : list of labels or of segments for each sentence; of Columns also the number of a column
        sample_weight : array (sentences,), optional
        validation : SegmentedText or (X, y), optional
            Held-out sentences for early stopping, by F1, instead of a part of X.
        checkpoint : path, optional
            As in `SequenceLabeler.fit`.
        """
        if is_corpus(X):
            return self._fit_packed(X, (y, sample_weight), validation, checkpoint)
        loss, start, seed = self._check_parameters(), self._previous_weights, self._seed()
        text = read_segmented(X, y)
        text.truth()
        if not text.n_tokens:
            raise ValueError(f"There are no tokens to train on: {text.name} has {len(text)} sentences, all of them empty.")
        weight = example_weights(sample_weight, len(text), "sentence")
        text, weight, held = self._parts(text, weight, validation, read_segmented, seed)
        problem = self._learn(text) if start is None else self._problem(text, labelled=True)
        self._solve(problem, loss, weight, self._judge(held), start, seed, checkpoint)
        return self

    def _learn(self, text: SegmentedText) -> SegmentProblem:
        """Labels, features and phrases of the training data, and the data packed."""
        truth = text.truth()
        self.classes_ = np.array([*types_of(truth), OUTSIDE], object)
        self.scheme_ = "iob2"
        if not truth.is_partial:
            self.scheme_ = recognise_coded(truth.codes, text.columns.starts, truth.distinct) or "iob2"
        self.label_column_ = text.label_column
        codes, known = self._coding.encode(text)
        K = len(self.classes_)
        codes = self._shorter(codes)
        if codes.max(initial=-1) >= 2 * K:
            longest = int(np.diff(text.columns.starts).max(initial=1))
            self.limits_ = np.full(K, max(longest, 1), np.int64)
        else:
            self.limits_ = longest_segments(codes, K)
        if self.max_length is not None:
            self.limits_ = np.minimum(self.limits_, self.max_length)
        self.limits_[-1] = 1
        self.encoder_ = TemplateEncoder(self._templates(text), self.columns, min_count=self.min_count)
        self.encoder_.refuse_pairs(self._who)
        if text.label_column is not None:
            self.encoder_.refuse_column(text.label_column, "that of the labels")
        rows = self.encoder_.fit_transform(text.columns)
        self.phrases_, spans = learn_phrases(text, codes, self._coding, self.dictionary, self.learn_phrases)
        self._say(f"{K} labels, segments of up to {self.limits_.max()} tokens, {len(self.phrases_ or ()):,} phrases")
        return self._pack(rows, text, codes, known, spans)

    def _templates(self, text: SegmentedText) -> Any:
        if self.templates is not None and self.templates != "auto":
            return self.templates
        n = text.columns.n_columns - (text.label_column is not None)
        return "phrases" if n >= 2 else "ner"

    def _shorter(self, codes: np.ndarray) -> np.ndarray:
        """The same labels where no segment is longer than `max_length`: what is, is cut into pieces of that length."""
        K = len(self.classes_)
        if self.max_length is None or codes.max(initial=-1) >= 2 * K:
            return codes
        begins = np.flatnonzero(codes >= K)
        owner = np.repeat(begins, np.diff(np.append(begins, len(codes))))
        again = (codes < K) & ((np.arange(len(codes)) - owner) % self.max_length == 0)
        if again.any():
            self._say(f"{int(again.sum())} pieces of segments longer than {self.max_length} tokens were made segments")
        return np.where(again, codes + K, codes).astype(np.int32)

    def _judge(self, held: SegmentedText | None) -> Any:
        if held is None:
            return None
        truth, problem, starts = held.truth(), self._problem(held), held.columns.starts
        segment_counts(truth, truth, starts)  # refuses what cannot be compared with, before any work

        def wrong(w: np.ndarray) -> float:
            return (
                1.0
                - segment_counts(
                    truth, self._labels(self._states.labels(best_outputs(problem, w, self.n_jobs)[0]), starts), starts
                ).scores()["f1"]
            )

        return wrong

    # -- packing ------------------------------------------------------------------------------------------------------

    @property
    def _coding(self) -> Coding:
        return Coding(self.classes_.tolist())

    @property
    def _code_states(self) -> States:
        """Codes inside and at the beginning of a segment in some state, as states of such codes of labels."""
        return States(2 * len(self.classes_), self.hidden)

    def _problem(self, text: SegmentedText, labelled: bool = False) -> SegmentProblem:
        """Sentences as kernels see them, by the features of a fitted model."""
        codes, known = self._coding.encode(text) if labelled else (None, None)
        if codes is not None:
            codes = self._shorter(codes)
            self._check_limits(codes, text)
        return self._pack(self.encoder_.transform(text.columns), text, codes, known, find_phrases(self.phrases_, text))

    def _check_limits(self, codes: np.ndarray, text: SegmentedText) -> None:
        K = len(self.classes_)
        if codes.max(initial=-1) < 2 * K and (longest_segments(codes, K) > self.limits_).any():
            lengths = np.diff(np.append(np.flatnonzero(codes >= K), len(codes)))
            begins = np.flatnonzero(codes >= K)
            t = int(begins[np.flatnonzero(lengths > self.limits_[codes[begins] - K])[0]])
            raise ValueError(
                f"{text.columns.place(t)}: a segment of label {self.classes_[codes[t] - K]!r} is longer than any in the training "
                "data, which the model cannot answer. It can be judged in folds (folds=5), or learnt by fitting again."
            )

    def _pack(self, rows: Any, text: SegmentedText, codes: Any, known: Any, spans: Found | None) -> SegmentProblem:
        states = self._code_states
        costs: Any = self.cost
        if codes is not None and self.hidden > 1:
            codes, known = states.truth(codes, known)
            costs = states.costs(named_costs(self.cost or "tokens", len(self.classes_)))
        return segment_problem(
            rows,
            np.diff(text.columns.starts),
            codes,
            self._states.n,
            limits=np.repeat(self.limits_, self.hidden),
            costs=costs,
            known=known,
            spans=spans,
            use_ends=self.use_ends,
        )

    def _labels(self, codes: np.ndarray, starts: np.ndarray) -> GivenLabels:
        """Codes as labels in the scheme of the training data."""
        written, names = self._coding.write(codes, starts, self.scheme_)
        return GivenLabels(np.asarray(written, np.int32), names)

    # -- answers ------------------------------------------------------------------------------------------------------

    def _best(self, text: SegmentedText) -> np.ndarray:
        self._require_fitted()
        problem = self._problem(text)
        self._check_size(problem, self._kept_weights)
        return self._states.labels(best_outputs(problem, self._kept_weights, self.n_jobs)[0])

    def predict_labels(self, X) -> GivenLabels:
        """The labels of all tokens, end to end, numbered."""
        text = read_segmented(X)
        return self._labels(self._best(text), text.columns.starts)

    def predict(self, X) -> list[list[str]]:
        """The labels of the best segmentation of each sentence, one per token, in the scheme of the training data."""
        text = read_segmented(X)
        found = self._labels(self._best(text), text.columns.starts)
        return [[found.distinct[k] for k in own.tolist()] for own in _cut(found.codes, text.columns.starts)]

    def predict_segments(self, X) -> list[list[Segment]]:
        """The segments (label, begin, end) of each sentence."""
        text = read_segmented(X)
        return [self._coding.segments(own) for own in _cut(self._best(text), text.columns.starts)]

    def predict_kbest(self, X, k: int = 5) -> list[list[tuple[list[Segment], float]]]:
        """For each sentence a list of at most k pairs (segments, score), best first.

        With ``hidden > 1`` the score is that of the best states, and finding k takes k * length calls of the oracle.
        """
        check_k(k)
        self._require_fitted()
        text = read_segmented(X)
        problem, starts, states = self._problem(text), text.columns.starts, self._code_states
        if self.hidden > 1:
            out, values, found = distinct_kbest(problem, self.weights_, int(k), states.n, states.hidden, self.n_jobs)
        else:
            out, values, found = passes.kbest(problem, self.weights_, int(k), self.n_jobs)
        return self._candidates(out, values, found, starts, lambda i, y: self._coding.segments(y))

    def predict_marginals(self, X) -> list[np.ndarray]:
        """P(label of the token's segment | x), (length, labels) for each sentence. Refused for margin losses unless calibrated.

        The last label is "O"; `code_marginals` tells beginnings apart.
        """
        beta = self._beta()
        text, K = read_segmented(X), len(self.classes_)
        p = self._code_marginals(text, beta)
        return _cut(p[:, :K] + p[:, K:], text.columns.starts)

    def code_marginals(self, X) -> np.ndarray:
        """P(code | x) of all tokens, end to end, (tokens, 2 labels): inside a segment of each label, at the beginning of one."""
        beta = self._beta()
        return self._code_marginals(read_segmented(X), beta)

    def _code_marginals(self, text: SegmentedText, beta: float) -> np.ndarray:
        states = self._code_states
        return states.total(passes.marginals(self._problem(text), self.weights_, beta, self.n_jobs)[0][:, : states.n])

    def predict_max_marginals(self, X) -> list[np.ndarray]:
        """The score of the best segmentation in which a token is in a segment of each label, (length, labels) for each sentence.

        How much worse the best answer would be with another label; -inf where there is none. For every loss: these are scores, no
        probabilities. The last label is "O". The best segmentation has the highest score at all of its tokens.
        """
        self._require_fitted()
        text, states, K = read_segmented(X), self._code_states, len(self.classes_)
        found = states.highest(passes.max_marginals(self._problem(text), self.weights_, self.n_jobs)[:, : states.n])
        return _cut(np.maximum(found[:, :K], found[:, K:]), text.columns.starts)

    def decision_value(self, X, y=None) -> np.ndarray:
        """Score of the best segmentation of each sentence, or of `y`: of the best way to fill in what that leaves open."""
        self._require_fitted()
        problem = self._problem(read_segmented(X, y), labelled=y is not None)
        if y is None:
            return best_outputs(problem, self._kept_weights, self.n_jobs)[2]
        return completions(problem, self._kept_weights, self.n_jobs)[2]

    def log_probability(self, X, y=None) -> np.ndarray:
        """log p(y | x) of whole segmentations. Refused for margin losses unless calibrated."""
        beta = self._beta()
        problem = self._problem(read_segmented(X, y), labelled=True)
        return -beta * losses_at(problem, Family(beta, 0.0), self.weights_, self.n_jobs)

    def calibrate(self, X, y=None) -> Any:
        """Fit the temperature to held-out data, so that there are probabilities after training with a margin loss."""
        self._require_fitted()
        self._calibrate(self._problem(read_segmented(X, y), labelled=True))
        return self

    def counts(self, X, y=None) -> SegmentCounts:
        """True, found and right segments of each sentence."""
        text = read_segmented(X, y)
        return segment_counts(text.truth(), self.predict_labels(text), text.columns.starts)

    def score(self, X, y=None) -> float:
        """F1 of segments."""
        return self.counts(X, y).scores()["f1"]

    # -- the weights --------------------------------------------------------------------------------------------------

    def feature_name(self, j: int) -> str:
        """What feature j is called: those of tokens first, then those of phrases."""
        n = self.encoder_.n_features
        return self.encoder_.feature_name(j) if j < n or self.phrases_ is None else self.phrases_.feature_name(j - n)

    @property
    def n_features_in_(self) -> int:
        """Features of tokens and of phrases."""
        self._require_fitted("n_features_in_")
        return self.encoder_.n_features + (0 if self.phrases_ is None else self.phrases_.n_features)

    def _table(self) -> np.ndarray:
        """Weights (rows, roles, states): roles are inside, begin and, if they are used, end."""
        self._require_fitted()
        return self.weights_.reshape(-1, 3 if self.use_ends else 2, self._states.n)

    @property
    def transitions_(self) -> np.ndarray:
        """Weight of a segment of label column after one of label row, the last row being the beginning, (labels + 1, labels).

        With ``hidden > 1`` rows and columns are about `states_`.
        """
        return self._table()[self.n_features_in_ : self.n_features_in_ + self._states.n + 1, 1]

    @property
    def lengths_(self) -> np.ndarray:
        """Weights of classes of lengths, (classes, labels): 1 to 6 tokens, 7-8, 9-12, 13-20, more."""
        return self._table()[-CLASSES:, 1]

    # -- the model file -----------------------------------------------------------------------------------------------

    def _label_rows(self):
        return self.n_features_in_, (3 if self.use_ends else 2) * self._states.n

    def _to_file(self):
        state, tensors = self.encoder_.to_state()
        header = {"labels": self.classes_, "n_features": self.n_features_in_, "encoder": state, "scheme": self.scheme_}
        if self.label_column_ is not None:
            header["label_column"] = self.label_column_
        if self.phrases_ is not None:
            header["phrases"], more = self.phrases_.to_state()
            tensors |= more
        return header, {**tensors, "limits": self.limits_}

    def _from_file(self, header, tensors, need):
        self.classes_ = labels_in(header)
        names, K = self.classes_.tolist(), len(self.classes_)
        if not K or names[-1] != OUTSIDE or not all(isinstance(name, str) for name in names):
            raise ValueError("the labels of segments are not strings, or the last is not 'O'")
        self.encoder_ = TemplateEncoder.from_state(need(header, "encoder", dict), tensors)
        self.phrases_ = PhraseTable.from_state(header["phrases"], tensors) if "phrases" in header else None
        self.scheme_ = need(header, "scheme", str)
        if self.scheme_ not in SCHEMES:
            raise ValueError(f"unknown scheme {self.scheme_!r}")
        self.label_column_ = need(header, "label_column", int) if "label_column" in header else None
        limits = tensors.get("limits")
        if limits is None or limits.dtype != np.int64 or limits.shape != (K,) or (limits < 1).any():
            raise ValueError("the longest segments are missing or have a wrong shape")
        self.limits_ = np.array(limits)
        n = self.encoder_.n_features + (0 if self.phrases_ is None else self.phrases_.n_features)
        if n != count_in(header):
            raise ValueError("the features do not match their number")
        S = self._states.n
        return (n + S + 2 + CLASSES) * S * (3 if self.use_ends else 2)


def _cut(values: np.ndarray, starts: np.ndarray) -> list[np.ndarray]:
    edges = starts.tolist()
    return [values[a:b] for a, b in zip(edges[:-1], edges[1:], strict=True)]
