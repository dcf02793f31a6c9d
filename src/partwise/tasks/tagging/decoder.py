"""What a trained model of sequences answers: labels, probabilities, the k best labellings, scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from partwise import kernels, passes
from partwise.losses.records import Family
from partwise.objective import best_outputs, completions, losses_at
from partwise.structures.chain.problem import ChainProblem
from partwise.structures.chain.sums import pair_probabilities
from partwise.tasks.common.distinct_kbest import distinct_kbest
from partwise.tasks.common.label_arrays import check_k, example_weights
from partwise.tasks.tagging.data import Tokens, read_labels
from partwise.tasks.tagging.model import ChainModel
from partwise.tasks.tagging.scores import acceptable_share
from partwise.tasks.tagging.suspects import SequenceSuspects


class KBest(NamedTuple):
    """The k best labellings of all sequences."""

    codes: np.ndarray  #: (k, tokens) int32 labels as places in ``classes_``
    scores: np.ndarray  #: (sequences, k) -inf where there are fewer
    n: np.ndarray  #: (sequences,) how many there are


class Packed:
    """Sequences as a fitted model sees them: packed once, they can be asked for this and that.

    Answers are about all tokens, end to end; labels are places in ``classes_``.
    """

    def __init__(self, model: ChainModel, tokens: Tokens, problem: ChainProblem, allowed: np.ndarray | None):
        self.tokens, self.problem = tokens, problem
        self._model, self._allowed = model, allowed

    def best(self) -> np.ndarray:
        """The labelling of highest score, int32 (tokens,)."""
        states, _, values = best_outputs(self.problem, self._model._kept_weights, self._model.n_jobs)
        self.refuse_impossible(values)
        return self._model._states.labels(states)

    def marginals(self) -> np.ndarray:
        """P(y_t | x) of every label, (tokens, labels)."""
        p, log_z = passes.marginals(self.problem, self._model._kept_weights, self._model._beta(), self._model.n_jobs)
        self.refuse_impossible(log_z)
        return self._model._states.total(p)

    def max_marginals(self) -> np.ndarray:
        """The score of the best labelling that has each label, (tokens, labels)."""
        model = self._model
        found = passes.max_marginals(self.problem, model._kept_weights, model.n_jobs)
        return model._states.highest(found)

    def kbest(self, k: int) -> KBest:
        """The k labellings of highest score."""
        check_k(k)
        model = self._model
        if model.hidden > 1:
            states = model._states
            return KBest(*distinct_kbest(self.problem, model._kept_weights, int(k), states.n, states.hidden, model.n_jobs))
        return KBest(*passes.kbest(self.problem, model._kept_weights, int(k), model.n_jobs))

    def log_probabilities(self, found: KBest) -> np.ndarray:
        """log p(y | x) of labellings, (sequences, k); -inf where there are fewer."""
        model = self._model
        beta, w = model._beta(), model._kept_weights
        if model.hidden == 1:
            log_z = passes.marginals(self.problem, w, beta, model.n_jobs)[1]
            return np.minimum(beta * found.scores - log_z[:, None], 0.0)
        # the score is that of the best states only: add up all of them
        p = np.full(found.scores.shape, -np.inf)
        for j, codes in enumerate(found.codes):
            there = found.n > j
            gold = np.where(np.repeat(there, self.tokens.lengths), codes, found.codes[0])
            told = model._problem(model.encoder_, self.problem.rows, self.tokens, model.classes_, gold, allowed=self._allowed)
            p[there, j] = -beta * losses_at(told, Family(beta, 0.0), w, model.n_jobs)[there]
        return p

    def refuse_impossible(self, values: np.ndarray) -> None:
        """Raise if the best labelling of a sequence has the score -inf."""
        if len(values) and values.min() == -np.inf:
            i, tokens = int(np.argmin(values)), self.tokens
            line = f" ({tokens.place(tokens.starts[i])})" if getattr(tokens.tokens, "ends", None) is not None else ""
            raise ValueError(f"No labelling of sequence {i}{line} obeys the constraints and the known labels.")


class Decoder(SequenceSuspects, ChainModel):
    """Answers; trains nothing."""

    def pack(self, X, y=None, *, lengths=None, dense=None, known=None, labelled=False) -> Packed:
        """Sequences as the model sees them: for several questions about the same ones, and answers as numbers.

        Parameters
        ----------
        X, lengths, dense, known
            As in `predict`.
        y : labels, optional
            As in `fit`: for the problem to have a truth.
        labelled : bool
            Whether None for `y` stands for the last column of X.
        """
        self._require_fitted()
        tokens = self._tokens(X, lengths, self.encoder_, dense)
        gold, sets = None, None
        if labelled or y is not None:
            gold, sets = self._codes(read_labels(y, tokens), self.classes_, tokens)
        allowed = None if known is None else self._allowed(known, tokens)
        rows = self._encode(self.encoder_, tokens, "transform")
        problem = self._problem(self.encoder_, rows, tokens, self.classes_, gold, sets, allowed)
        self._check_size(problem, self._kept_weights)
        return Packed(self, tokens, problem, allowed)

    def predict(self, X, *, lengths=None, dense=None, known=None) -> Any:
        """The labelling of highest score of each sequence; with ``hidden > 1``, the labels of the best sequence of states.

        Parameters
        ----------
        X : sequences, or tokens end to end with `lengths`
        lengths : array, optional
        dense : optional
            What was beside the attributes in `fit`.
        known : label sequences, optional
            What is already known of the labels: None (nothing), a label, or a set of labels, for each token.

        Returns
        -------
        list of lists of labels, or an array of labels if `lengths` were given
        """
        packed = self.pack(X, lengths=lengths, dense=dense, known=known)
        codes = packed.best()
        if packed.tokens.joined:
            return self.classes_[codes]
        return packed.tokens.split(list(map(self.classes_.tolist().__getitem__, codes.tolist())))

    def predict_codes(self, X, *, lengths=None, dense=None, known=None):
        """The labels of all tokens end to end, as places in `classes_`; int32 (tokens,). Quicker than making lists of them."""
        return self.pack(X, lengths=lengths, dense=dense, known=known).best()

    def score(self, X, y=None, sample_weight=None, *, lengths=None, dense=None):
        """Accuracy: the fraction of tokens labelled right, those of a sequence weighted by its `sample_weight`.

        Of tokens with several right labels any counts; those whose label is unknown do not count.
        """
        packed = self.pack(X, lengths=lengths, dense=dense)
        codes, tokens = packed.best(), packed.tokens
        truth = read_labels(y, tokens)
        if not len(codes):
            raise ValueError("There are no tokens to score.")
        weight = np.repeat(example_weights(sample_weight, tokens.n_sequences, "sequence"), tokens.lengths)
        found = acceptable_share(truth, codes, self.classes_, weight)
        if found != found:
            raise ValueError("There are no labelled tokens to score.")
        return found

    def predict_marginals(self, X, *, lengths=None, dense=None, known=None, pairs=False):
        """P(y_t | x) of every label, under p(y | x) ~ exp(s(y) / temperature). Refused for margin losses unless calibrated.

        With ``hidden > 1`` the states of a label are added up, so the likeliest label need not be that of the best states.

        Parameters
        ----------
        X, lengths, dense, known
            As in `predict`.
        pairs : bool
            Return P(y_t, y_{t+1} | x) instead: a list of arrays (length - 1, labels, labels).

        Returns
        -------
        list of arrays (length, labels), or one array (tokens, labels) if `lengths` were given
        """
        beta = self._beta()
        packed = self.pack(X, lengths=lengths, dense=dense, known=known)
        if pairs:
            if getattr(self.encoder_, "pairs", None) is not None:
                raise ValueError("pairs=True: not for a model with features of label pairs.")
            total = self._states.total
            found = (pair_probabilities(packed.problem, i, self.weights_, beta) for i in range(packed.tokens.n_sequences))
            return [total(total(p, 1), 2) for p in found]
        p = packed.marginals()
        return p if packed.tokens.joined else packed.tokens.split(p)

    def predict_max_marginals(self, X, *, lengths=None, dense=None, known=None):
        """The score of the best labelling that has each label at each token: how much worse another would be, and -inf
        where there is none. For every loss: scores, no probabilities. The best labelling has the highest score at all of
        its tokens.

        Parameters
        ----------
        X, lengths, dense, known
            As in `predict`.

        Returns
        -------
        list of arrays (length, labels), or one array (tokens, labels) if `lengths` were given
        """
        packed = self.pack(X, lengths=lengths, dense=dense, known=known)
        scores = packed.max_marginals()
        return scores if packed.tokens.joined else packed.tokens.split(scores)

    def predict_kbest(self, X, k=5, *, lengths=None, dense=None, known=None):
        """For each sequence a list of at most k pairs (labels, score), best first.

        With ``hidden > 1`` the score of a labelling is that of its best states, and finding k takes k * length calls of the
        oracle (see `partwise.tasks.common.distinct_kbest`).
        """
        check_k(k)
        packed = self.pack(X, lengths=lengths, dense=dense, known=known)
        found, names = packed.kbest(k), self.classes_.tolist()
        labellings = [packed.tokens.split(list(map(names.__getitem__, codes.tolist()))) for codes in found.codes]
        return [[(labellings[j][i], float(found.scores[i, j])) for j in range(n)] for i, n in enumerate(found.n.tolist())]

    def decision_value(self, X, y=None, *, lengths=None, dense=None):
        """Score of the best labelling of each sequence, or of the labelling `y`; (sequences,).

        Where `y` leaves something open, partial labels or hidden states, it is that of the best way to fill it in.
        """
        problem = self.pack(X, y, lengths=lengths, dense=dense).problem
        if y is None:
            return best_outputs(problem, self._kept_weights, self.n_jobs)[2]
        if kernels.is_partial(problem):
            return completions(problem, self._kept_weights, self.n_jobs)[2]
        return passes.values_of_targets(problem, self._kept_weights, self.n_jobs)

    def log_probability(self, X, y=None, *, lengths=None, dense=None):
        """log p(y | x) of whole labellings, (sequences,). Refused for margin losses unless calibrated."""
        beta = self._beta()
        problem = self.pack(X, y, lengths=lengths, dense=dense, labelled=True).problem
        return -beta * losses_at(problem, Family(beta, 0.0), self.weights_, self.n_jobs)

    def calibrate(self, X, y=None, *, lengths=None, dense=None) -> Any:
        """Fit the temperature to held-out data, so that `predict_marginals` may be used after training with a margin loss.

        One number: the ranking of labellings does not change.
        """
        self._calibrate(self.pack(X, y, lengths=lengths, dense=dense, labelled=True).problem)
        return self
