"""What a trained model of sequences answers: labels, probabilities, the k best labellings, scores."""

from __future__ import annotations

from typing import cast

import numpy as np

from partwise import kernels, passes
from partwise.losses.records import Family
from partwise.objective import best_outputs, completions, losses_at
from partwise.tasks.common.label_arrays import check_k, example_weights
from partwise.tasks.common.suspects import SequenceSuspects
from partwise.tasks.tagging import data as sequences
from partwise.tasks.tagging.kbest import distinct_kbest
from partwise.tasks.tagging.model import ChainModel


class Decoder(SequenceSuspects, ChainModel):
    """Answers; trains nothing."""

    def predict(self, X, *, lengths=None, known=None):
        """The labelling of highest score of each sequence; with ``hidden > 1``, the labels of the best sequence of states.

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
        tokens, codes = self._decode(X, lengths, known)
        if tokens.joined:
            return self.classes_[codes]
        return sequences.split(list(map(self.classes_.tolist().__getitem__, codes.tolist())), tokens.lengths)

    def predict_codes(self, X, *, lengths=None, known=None):
        """The labels of all tokens end to end, as places in `classes_`; int32 (tokens,). Quicker than making lists of them."""
        return self._decode(X, lengths, known)[1]

    def _decode(self, X, lengths, known):
        tokens, problem = self._packed(X, lengths, known=known)
        states, _, values = best_outputs(problem, self.weights_, self.n_jobs)
        self._refuse_impossible(values, tokens)
        return tokens, self._states.labels(states)

    def score(self, X, y=None, sample_weight=None, *, lengths=None):
        """Accuracy: the fraction of tokens labelled right, those of a sequence weighted by its `sample_weight`.

        Of tokens with several right labels any counts; those whose label is unknown do not count.
        """
        tokens, codes = self._decode(X, lengths, None)
        truth = sequences.read_labels(y, tokens)
        if not len(codes):
            raise ValueError("There are no tokens to score.")
        weight = np.repeat(example_weights(sample_weight, len(tokens.lengths), "sequence"), tokens.lengths)
        told = np.array([label is not None for label in truth.distinct])[truth.codes]
        if not weight[told].any():
            raise ValueError("There are no labelled tokens to score.")
        return float(np.average(truth.allows(self.classes_)[truth.codes, codes][told], weights=weight[told]))

    def predict_marginals(self, X, *, lengths=None, known=None, pairs=False):
        """P(y_t | x) of every label, under p(y | x) ~ exp(s(y) / temperature). Refused for margin losses unless calibrated.

        With ``hidden > 1`` the states of a label are added up, so the likeliest label need not be that of the best states.

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
        total = self._states.total
        if pairs:
            found = (passes.pairs(problem, i, self.weights_, beta) for i in range(len(tokens.lengths)))
            return [total(total(p, 1), 2) for p in found]
        p, log_z = passes.marginals(problem, self.weights_, beta, self.n_jobs)
        self._refuse_impossible(log_z, tokens)
        p = total(p)
        return p if tokens.joined else sequences.split(p, tokens.lengths)

    def predict_kbest(self, X, k=5, *, lengths=None, known=None):
        """For each sequence a list of at most k pairs (labels, score), best first.

        With ``hidden > 1`` the score of a labelling is that of its best states, and finding k takes k * length calls of the
        oracle (see `partwise.tasks.tagging.kbest`).
        """
        check_k(k)
        tokens, problem = self._packed(X, lengths, known=known)
        if self.hidden > 1:
            out, values, found = distinct_kbest(problem, self.weights_, int(k), self.hidden, self.n_jobs)
        else:
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
        """Score of the best labelling of each sequence, or of the labelling `y`; (sequences,).

        Where `y` leaves something open, partial labels or hidden states, it is that of the best way to fill it in.
        """
        _, problem = self._packed(X, lengths, y)
        if y is None:
            return best_outputs(problem, self.weights_, self.n_jobs)[2]
        if kernels.is_partial(problem):
            return completions(problem, self.weights_, self.n_jobs)[2]
        return passes.values_of_targets(problem, self.weights_, self.n_jobs)

    def log_probability(self, X, y=None, *, lengths=None):
        """log p(y | x) of whole labellings, (sequences,). Refused for margin losses unless calibrated."""
        beta = self._beta()
        _, problem = self._packed(X, lengths, y, labelled=True)
        return -beta * losses_at(problem, Family(beta, 0.0), self.weights_, self.n_jobs)

    def calibrate(self, X, y=None, *, lengths=None):
        """Fit the temperature to held-out data, so that `predict_marginals` may be used after training with a margin loss.

        One number: the ranking of labellings does not change.
        """
        _, problem = self._packed(X, lengths, y, labelled=True)
        self._calibrate(problem)
        return self

    def _refuse_impossible(self, values, tokens) -> None:
        if len(values) and values.min() == -np.inf:
            i = int(np.argmin(values))
            line = f" ({tokens.place(tokens.starts[i])})" if getattr(tokens.tokens, "ends", None) is not None else ""
            raise ValueError(f"No labelling of sequence {i}{line} obeys the constraints and the known labels.")
