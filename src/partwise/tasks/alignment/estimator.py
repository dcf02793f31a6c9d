"""`PairAligner`: learns to align pairs of sequences. It is all of `Aligner` but the face that scikit-learn wants to see.

    minimise  Omega(w) + C sum_i weight_i L_i(w)     over alignments, s(y) = sum of w . x over pairs of places and gaps

Alignments are answered by the highest score, or by the highest expected number of right pairs.

References
----------
C. Do, S. Gross, S. Batzoglou (2006). CONTRAlign: discriminative training for protein sequence alignment. RECOMB.
I. Holmes, R. Durbin (1998). Dynamic programming alignment accuracy. J. Comput. Biol. 5.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from partwise import passes
from partwise.engine.compilation import entry
from partwise.objective import best_outputs, in_threads
from partwise.structures.alignment.best import best_path
from partwise.structures.alignment.kernels import AlignmentProblem, alignment_problem
from partwise.structures.alignment.pair_tables import (
    AMINO_ACIDS,
    LETTERS,
    PROTEIN_PROPERTIES,
    PROTEINS,
    PairTables,
    pair_tables,
    read_template,
)
from partwise.structures.alignment.problem import BYTES, check_memory
from partwise.tasks.alignment.data import UNKNOWN, Alignment, Pairs, find_letters, letter_codes, read_pairs
from partwise.tasks.alignment.files import AlignedPairs
from partwise.tasks.alignment.scores import AlignmentScores, alignment_scores, recalls
from partwise.tasks.common.base import Structured, _is_bool, _is_real, _one_of
from partwise.tasks.common.label_arrays import check_k, example_weights

LEAST = 0.01
PROTEIN_LETTERS = set(AMINO_ACIDS + "BJOUXZ*")


class PairAligner(Structured):
    """Aligns; see `Aligner` for the parameters."""

    weights_: np.ndarray

    _checks = {
        **Structured._checks,
        "mode": _one_of("global", "local"),
        "decode": _one_of("auto", "best", "mea"),
        "core": _one_of("cost", "known", "ignore"),
        "symmetric": (_is_bool, "a bool"),
        "wildcard": (lambda value: value is None or isinstance(value, str), "a letter or None"),
        "precision_weight": (lambda value: _is_real(0.0, closed=True)(value) and value <= 1.0, "a float in the range [0, 1]"),
        "cost_scale": (lambda value: value == "pairs" or _is_real(0.0)(value), "'pairs' or a float in the range (0, inf)"),
        "memory": (_is_real(0.0), "a float in the range (0, inf)"),
    }

    def __init__(
        self,
        loss="crf",
        C=0.01,
        solver="dca",
        l1_ratio=0.0,
        mode="global",
        templates=None,
        properties=None,
        alphabet=None,
        wildcard=None,
        symmetric=True,
        decode="auto",
        core="cost",
        precision_weight=0.0,
        cost_scale="pairs",
        memory=4.0,
        max_epochs=10,
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
        self.l1_ratio = l1_ratio
        self.mode = mode
        self.templates = templates
        self.properties = properties
        self.alphabet = alphabet
        self.wildcard = wildcard
        self.symmetric = symmetric
        self.decode = decode
        self.core = core
        self.precision_weight = precision_weight
        self.cost_scale = cost_scale
        self.memory = memory
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

    # -- training -----------------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None, *, validation=None, checkpoint=None):
        """Train from nothing, or with ``warm_start=True`` from the previous weights.

        Parameters
        ----------
        X : AlignedPairs, or list of pairs of sequences
            Sequences are strings, or lists of letters.
        y : list of alignments, optional
            Two rows with gaps, pairs (i, j) of places, an `Alignment`, or for each place of the first sequence its partner in the
            second, -1 for a gap and None where it is not known. Of `AlignedPairs`, their own by default.
        sample_weight : array (pairs,), optional
        validation : AlignedPairs or (X, y), optional
            Held-out alignments for early stopping, instead of a part of X.
        checkpoint : path, optional
            As in `SequenceLabeler.fit`.
        """
        loss = self._check_parameters()
        given = read_pairs(X, y)
        if given.partners is None:
            raise ValueError("There are no alignments to learn from: give y, or AlignedPairs that are aligned.")
        weight = example_weights(sample_weight, len(given), "pair")
        warm = self.warm_start and hasattr(self, "weights_")
        if not warm:
            self._choose_letters(given)
        if warm or self.alphabet is not None:  # letters that the model does not know are named before pairs are renumbered
            self._tables(given, X.place if isinstance(X, AlignedPairs) else None)
        seed = self._seed()
        given, weight, held = self._parts(given, weight, validation, read_pairs, seed)
        problem = self._problem(given)
        self._solve(problem, loss, weight, self._judge(held), self.weights_ if warm else None, seed, checkpoint)
        return self

    def _choose_letters(self, given: Pairs) -> None:
        """The alphabet, and what there is to look at in its letters."""
        letters = list(dict.fromkeys(self.alphabet)) if self.alphabet is not None else find_letters(given)
        if self.wildcard is not None and self.wildcard not in letters:
            letters.append(self.wildcard)
        if not letters:
            raise ValueError("There is no letter in any sequence: give an 'alphabet'.")
        self.classes_ = np.array(letters, object)
        protein = set(letters) <= PROTEIN_LETTERS and len(set(letters) & set(AMINO_ACIDS)) >= 18
        self.templates_ = list(self.templates if self.templates is not None else PROTEINS if protein else LETTERS)
        self.properties_ = dict(self.properties if self.properties is not None else PROTEIN_PROPERTIES if protein else {})

    def _judge(self, held: Pairs | None) -> Any:
        if held is None or held.partners is None:
            return None
        problem, truth, core = self._problem(held, labelled=False), held.partners, held.core if self.core != "ignore" else None

        def missed(w: np.ndarray) -> float:
            out, starts, _ = best_outputs(problem, w, self.n_jobs)
            return 1.0 - float(np.nanmean(recalls(truth, np.split(out, starts[1:-1]), core)))

        return missed

    # -- packing ------------------------------------------------------------------------------------------------------

    def _tables(self, given: Pairs, place: Any = None) -> PairTables:
        letters = self.classes_.tolist()
        first, second = (
            letter_codes(sequences, letters, self.wildcard, side, place)
            for sequences, side in ((given.first, "first"), (given.second, "second"))
        )
        return pair_tables(first, second, letters, self.templates_, self.properties_, self.symmetric)

    def _problem(self, given: Pairs, labelled: bool = True, place: Any = None) -> AlignmentProblem:
        partners, counts = None, None
        if labelled and given.partners is not None:
            partners = np.concatenate([*given.partners, np.zeros(0, np.int32)])
            if given.core is not None and self.core != "ignore":
                counts = np.concatenate([*given.core, np.zeros(0, bool)])
                if self.core == "known":
                    partners = np.where(counts, partners, UNKNOWN)
        return alignment_problem(
            self._tables(given, place),
            given.lengths,
            partners,
            counts=counts,
            precision_weight=self.precision_weight,
            cost_scale=self.cost_scale,
            local=self.mode == "local",
            memory=self.memory,
        )

    def _read(self, X: Any, y: Any = None, labelled: bool = False) -> tuple[Pairs, AlignmentProblem]:
        self._require_fitted()
        given = read_pairs(X, y)
        problem = self._problem(given, labelled, X.place if isinstance(X, AlignedPairs) else None)
        self._check_size(problem, self.weights_)
        return given, problem

    # -- answers ------------------------------------------------------------------------------------------------------

    def predict(self, X) -> list[Alignment]:
        """The alignment of each pair: of highest expected accuracy, or of highest score (see `decode`)."""
        given, problem = self._read(X)
        answers = zip(given.first, given.second, self._partners(problem), strict=True)
        return [Alignment(a, b, partners.tolist()) for a, b, partners in answers]

    def _partners(self, problem: AlignmentProblem) -> list[np.ndarray]:
        if self.decode == "mea" or (self.decode == "auto" and self.temperature_ is not None):
            return self._from_probabilities(problem, most_expected)
        out, starts, _ = best_outputs(problem, self.weights_, self.n_jobs)
        return np.split(out, starts[1:-1]) if len(starts) > 1 else []

    def _from_probabilities(self, problem: AlignmentProblem, answer: Any) -> list[Any]:
        """answer(P) of each pair, where P[i, j] is the probability that place i stands opposite place j."""
        beta = self._beta()

        def of(i: int) -> Any:
            n, m = int(np.diff(problem.starts)[i]), int(np.diff(problem.others)[i])
            return answer(passes.parts(problem, i, self.weights_, beta)[: n * m].reshape(n, m))

        return in_threads(of, range(len(problem.starts) - 1), self.n_jobs)

    def predict_marginals(self, X) -> list[np.ndarray]:
        """P(place i opposite place j | x), arrays (first places, second places). Refused for margin losses before `calibrate`."""
        self._beta()
        return self._from_probabilities(self._read(X)[1], np.copy)

    def predict_kbest(self, X, k: int = 5) -> list[list[tuple[Alignment, float]]]:
        """For each pair a list of at most k (alignment, score), best first. O(n m k) time and 6 n m k bytes."""
        check_k(k, 16000)
        given, problem = self._read(X)
        check_memory(given.lengths, self.memory, BYTES + 6 * int(k))
        out, values, found = passes.kbest(problem, self.weights_, int(k), self.n_jobs)
        starts = problem.starts
        return [
            [
                (Alignment(given.first[i], given.second[i], out[j, starts[i] : starts[i + 1]].tolist()), float(values[i, j]))
                for j in range(int(found[i]))
            ]
            for i in range(len(found))
        ]

    def calibrate(self, X, y=None):
        """Fit the temperature to held-out data, so that probabilities may be asked for after training with a margin loss."""
        given, problem = self._read(X, y, labelled=True)
        if given.partners is None:
            raise ValueError("There are no alignments to calibrate with: give y, or AlignedPairs that are aligned.")
        self._calibrate(problem)
        return self

    def accuracy(self, X, y=None) -> AlignmentScores:
        """Recall, precision and F1 of pairs of places (see `partwise.metrics.alignment_scores`), on core columns if there are."""
        given, problem = self._read(X, y)
        if given.partners is None:
            raise ValueError("There are no alignments to compare with: give y, or AlignedPairs that are aligned.")
        core = given.core if self.core != "ignore" else None
        return alignment_scores(given.partners, self._partners(problem), core)

    def score(self, X, y=None) -> float:
        """Mean recall."""
        return self.accuracy(X, y).recall

    # -- what was learnt ----------------------------------------------------------------------------------------------

    def substitution_matrix(self) -> np.ndarray:
        """(letters, letters) scores of letters opposite each other, as in `classes_`: the table ``a.letter|b.letter``."""
        self._require_fitted()
        wanted = (("letter", 0),)
        number, size = 0, len(self.classes_) + 1
        empty = (np.zeros(0, np.int64), np.zeros(1, np.int64))
        tables = pair_tables(empty, empty, self.classes_.tolist(), self.templates_, self.properties_, self.symmetric)
        for template in map(read_template, self.templates_):
            if template.second is None:
                continue
            if template.first == template.second == wanted:
                start = int(tables.first[number])
                table = self.weights_[start : start + size * size].reshape(size, size)[:-1, :-1].astype(float)
                return np.triu(table) + np.triu(table, 1).T if self.symmetric else table
            number += 1
        raise ValueError("This model has no template a.letter|b.letter.")

    def gap_scores(self) -> dict[str, float]:
        """Mean score of a place opposite a gap, by kind: open, extend, end_open, end_extend; in a random sequence."""
        self._require_fitted()
        some = np.random.default_rng(0).permutation(np.repeat(self.classes_, 100)).tolist()
        problem = self._problem(Pairs([some], [[]], None, None), labelled=False)
        theta = np.zeros(4 * len(some), self._dtype)
        passes.score_pass(problem, 0, self.weights_, theta)
        return dict(zip(("open", "extend", "end_open", "end_extend"), theta.reshape(4, -1).mean(1).tolist(), strict=True))

    # -- the model file -----------------------------------------------------------------------------------------------

    def _to_file(self):
        header = {
            "labels": self.classes_,
            "n_features": int(self.weights_.size),
            "templates": list(self.templates_),
            "properties": {name: dict(values) for name, values in self.properties_.items()},
        }
        return header, {"weights": self.weights_}

    def _from_file(self, header, tensors, need):
        self.classes_ = need(header, "labels", np.ndarray)
        self.templates_, self.properties_ = need(header, "templates", list), need(header, "properties", dict)
        if not all(isinstance(name, str) for name in (*self.classes_.tolist(), *self.templates_, *self.properties_)):
            raise ValueError("letters, templates or properties are not strings")
        if not all(isinstance(values, dict) for values in self.properties_.values()):
            raise ValueError("properties are not tables of letters")
        self.weights_ = tensors["weights"]
        empty = (np.zeros(0, np.int64), np.zeros(1, np.int64))
        return pair_tables(empty, empty, self.classes_.tolist(), self.templates_, self.properties_, self.symmetric).n_features


@entry
def path_of(theta, n, m, y):
    """The best global alignment by these part scores."""
    return best_path(theta, n, m, False, y)


def most_expected(probabilities: np.ndarray) -> np.ndarray:
    """The alignment with the highest expected number of right pairs, sum of P(i, j) (Holmes and Durbin 1998). O(n m).

    Pairs less likely than LEAST are not worth aligning.
    """
    n, m = probabilities.shape
    theta, y = np.zeros(n * m + 4 * (n + m)), np.zeros(n, np.int32)
    theta[: n * m] = probabilities.ravel() - LEAST
    path_of(theta, n, m, y)
    return y
