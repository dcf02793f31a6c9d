"""`Aligner`: learns to align pairs of sequences.

    minimise  Omega(w) + C sum_i weight_i L_i(w)     over alignments, s(y) = sum of w . x over pairs of places and gaps

Alignments are answered by the highest score, or by the highest expected number of right pairs.

References
----------
C. Do, S. Gross, S. Batzoglou (2006). CONTRAlign: discriminative training for protein sequence alignment. RECOMB.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from partwise import passes
from partwise.engine.threads import in_threads
from partwise.objective import best_outputs
from partwise.structures.alignment.accuracy import most_expected
from partwise.structures.alignment.pair_tables import (
    AMINO_ACIDS,
    LETTERS,
    PROTEIN_PROPERTIES,
    PROTEINS,
    PairTables,
    pair_tables,
    read_template,
)
from partwise.structures.alignment.problem import BYTES, UNKNOWN, AlignmentProblem, alignment_problem, check_memory
from partwise.tasks.alignment.data import Alignment, Pairs, find_letters, letter_codes, read_pairs
from partwise.tasks.alignment.scores import AlignmentScores, alignment_scores, pair_counts, recalls
from partwise.tasks.alignment.suspects import AlignmentSuspects
from partwise.tasks.common.base import Structured, is_corpus
from partwise.tasks.common.checks import is_bool, is_real, is_share, one_of
from partwise.tasks.common.label_arrays import check_k, example_weights
from partwise.tasks.common.model_file import labels_in

PROTEIN_LETTERS = set(AMINO_ACIDS + "BJOUXZ*")
LETTER = (("letter", 0),)  # what a template looks at that looks at the letter itself


@dataclass(eq=False, repr=False)
class Aligner(AlignmentSuspects, Structured):
    """Aligns pairs of sequences over any alphabet, with affine gaps; substitution and gap scores are learnt from alignments.

    Pairs come from a file (`partwise.datasets.read_alignments`: tables of two rows, FASTA), or are tuples of two strings, or of
    two lists of letters. Alignments are two rows with gaps, pairs of places, or for each place of the first sequence its partner
    in the second. Empty sequences are fine.

    Parameters
    ----------
    %(loss)s
    mode : {"global", "local"}, default="global"
        Whether sequences are aligned from end to end, or may have ends left out that have nothing to do with each other.
    templates : list of str, optional
        Features of pairs of places and of gaps (see `partwise.structures.alignment.pair_tables`). By default letters and their
        neighbours; for proteins also classes of amino acids and hydropathy, in the kind of CONTRAlign.
    properties : dict of dicts, optional
        Columns for templates beside ``letter``: what each makes of a letter, a string or a number. For proteins ``class`` and
        ``hydropathy`` by default.
    alphabet : sequence of str, optional
        The letters; those of the training data by default.
    wildcard : str, optional
        The letter that others are read as; by default a letter outside the alphabet is refused.
    symmetric : bool, default=True
        Whether exchanging the two sequences changes nothing. Take False for sequences of different kinds.
    decode : {"auto", "best", "mea"}, default="auto"
        The alignment of highest score, or of highest expected accuracy, the sum of the probabilities of its pairs. ``"auto"``:
        the latter where there are probabilities.
    core : {"cost", "known", "ignore"}, default="cost"
        Where the data tell reliable columns from others: only their pairs count for cost and accuracy; or nothing but them is
        taken to be known, and the rest is completed in training; or all columns are alike.
    precision_weight : float in [0, 1], default=0.0
        The cost is 1 - recall, or a mixture with the number of wrong pairs for each true one.
    cost_scale : "pairs" or float, default="pairs"
        What missing all pairs costs: their number, or the same for all alignments. Losses that look at costs only.
    memory : float, default=4.0
        GB that one pair may take; a larger one is refused before any work. 2,000 by 2,000 places need 0.2.
    %(learning)s

    Attributes
    ----------
    classes_ : array
        The letters.
    weights_ : array
        All tables end to end; see `substitution_matrix` and `gap_scores`.
    templates_, properties_
        What the model looks at.
    result_, solver_, temperature_
        As in `Classifier`.

    Notes
    -----
    Unless said otherwise, ``loss="crf"``, ``C=0.01``, ``solver="dca"``; ``"lbfgs"`` finds the optimum, with a certificate, but
    alignments are good long before. Early stopping judges by recall.

    Examples
    --------
    >>> rows = [("GATTACA", "GAT-ACA"), ("GATC-CA", "G-TCTCA")]
    >>> pairs = [tuple(row.replace("-", "") for row in two) for two in rows]
    >>> Aligner().fit(pairs, rows).predict([("GATTA", "GATA")])[0].rows()
    ('GATTA', 'GA-TA')
    """

    loss: Any = "crf"
    _: KW_ONLY
    mode: str = "global"
    templates: Any = None
    properties: Any = None
    alphabet: Any = None
    wildcard: str | None = None
    symmetric: bool = True
    decode: str = "auto"
    core: str = "cost"
    precision_weight: float = 0.0
    cost_scale: Any = "pairs"
    memory: float = 4.0

    classes_: np.ndarray = field(init=False)
    weights_: np.ndarray = field(init=False)
    templates_: list[str] = field(init=False)
    properties_: dict[str, dict[str, Any]] = field(init=False)

    @classmethod
    def defaults(cls) -> Any:
        from partwise.solvers.defaults import KINDS, LOG, Defaults

        # few weights are shared by hundreds of places, and DCA learns wrong alignments by heart (docs/defaults.md)
        return Defaults(C={kind: 0.01 for kind in KINDS}, solver={LOG: "pegasos"})

    _checks = {
        **Structured._checks,
        "mode": one_of("global", "local"),
        "wildcard": (lambda value: value is None or isinstance(value, str), "a letter or None"),
        "symmetric": (is_bool, "a bool"),
        "decode": one_of("auto", "best", "mea"),
        "core": one_of("cost", "known", "ignore"),
        "precision_weight": (is_share, "a float in the range [0, 1]"),
        "cost_scale": (lambda value: value == "pairs" or is_real(0.0)(value), "'pairs' or a float in the range (0, inf)"),
        "memory": (is_real(0.0), "a float in the range (0, inf)"),
    }

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
        if is_corpus(X):
            return self._fit_packed(X, (y, sample_weight), validation, checkpoint)
        loss = self._check_parameters()
        given = read_pairs(X, y)
        if given.partners is None:
            raise ValueError("There are no alignments to learn from: give y, or AlignedPairs that are aligned.")
        weight = example_weights(sample_weight, len(given), "pair")
        if self._previous_weights is None:
            self._choose_letters(given)
        seed = self._seed()
        given, weight, held = self._parts(given, weight, validation, read_pairs, seed)
        self._solve(self._problem(given), loss, weight, self._judge(held), self._previous_weights, seed, checkpoint)
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

    def _judge_by(self, validation: Any, problem: Any) -> Any:
        return self._judge(read_pairs(*(validation if isinstance(validation, tuple) else (validation, None))))

    def _judge(self, held: Pairs | None) -> Any:
        if held is None:
            return None
        truth, core = held.partners, self._core(held)
        if truth is None or not pair_counts(truth, truth, core)[:, 0].any():
            raise ValueError(f"{self._who} cannot tell when to stop: no places of the held-out pairs are known to be aligned.")
        problem = self._problem(held, labelled=False)

        def missed(w: np.ndarray) -> float:
            out, starts, _ = best_outputs(problem, w, self.n_jobs)
            return 1.0 - float(np.nanmean(recalls(truth, np.split(out, starts[1:-1]), core)))

        return missed

    # -- packing ------------------------------------------------------------------------------------------------------

    def _core(self, given: Pairs) -> list[np.ndarray] | None:
        """Which places count."""
        return None if self.core == "ignore" else given.core

    def _tables(self, given: Pairs) -> PairTables:
        letters = self.classes_.tolist()
        first, second = (
            letter_codes(sequences, letters, self.wildcard, side, given.places)
            for sequences, side in ((given.first, "first"), (given.second, "second"))
        )
        return pair_tables(first, second, letters, self.templates_, self.properties_, self.symmetric)

    def _no_tables(self) -> PairTables:
        """Tables of no pairs at all: where their weights are, and how many."""
        return self._tables(read_pairs([]))

    def _problem(self, given: Pairs, labelled: bool = True) -> AlignmentProblem:
        partners, counts, core = None, None, self._core(given)
        if labelled and given.partners is not None:
            partners = np.concatenate([*given.partners, np.zeros(0, np.int32)])
            if core is not None:
                counts = np.concatenate([*core, np.zeros(0, bool)])
                if self.core == "known":
                    partners = np.where(counts, partners, UNKNOWN)
        return alignment_problem(
            self._tables(given),
            given.lengths,
            partners,
            counts=counts,
            precision_weight=self.precision_weight,
            cost_scale=self.cost_scale,
            local=self.mode == "local",
            memory=self.memory,
            places=given.places,
        )

    def _read(self, X: Any, y: Any = None, labelled: bool = False) -> tuple[Pairs, AlignmentProblem]:
        self._require_fitted()
        given = read_pairs(X, y)
        problem = self._problem(given, labelled)
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
            n, m = (int(offsets[i + 1] - offsets[i]) for offsets in (problem.starts, problem.others))
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
        check_memory(given.lengths, self.memory, BYTES + 6 * int(k), given.places)

        def answer(i: int, partners: np.ndarray) -> Alignment:
            return Alignment(given.first[i], given.second[i], partners.tolist())

        return self._kbest(problem, k, problem.starts, answer)

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
        return alignment_scores(given.partners, self._partners(problem), self._core(given))

    def score(self, X, y=None) -> float:
        """Mean recall."""
        return self.accuracy(X, y).recall

    # -- what it has learnt -------------------------------------------------------------------------------------------

    def substitution_matrix(self) -> np.ndarray:
        """(letters, letters) scores of letters opposite each other, as in `classes_`: the table ``a.letter|b.letter``."""
        self._require_fitted()
        of_pairs = [template for template in map(read_template, self.templates_) if template.second is not None]
        number = next((k for k, template in enumerate(of_pairs) if template.first == template.second == LETTER), None)
        if number is None:
            raise ValueError("This model has no template a.letter|b.letter.")
        start, size = int(self._no_tables().first[number]), len(self.classes_) + 1
        table = self.weights_[start : start + size * size].reshape(size, size)[:-1, :-1].astype(float)
        return np.triu(table) + np.triu(table, 1).T if self.symmetric else table

    def gap_scores(self) -> dict[str, float]:
        """Mean score of a place opposite a gap, by kind: open, extend, end_open, end_extend; in a random sequence."""
        self._require_fitted()
        some = np.random.default_rng(0).permutation(np.repeat(self.classes_, 100)).tolist()
        problem = self._problem(read_pairs([(some, [])]))
        theta = np.zeros(4 * len(some), self._dtype)
        passes.score_pass(problem, 0, self.weights_, theta)
        return dict(zip(("open", "extend", "end_open", "end_extend"), theta.reshape(4, -1).mean(1).tolist(), strict=True))

    # -- the model file -----------------------------------------------------------------------------------------------

    def _to_file(self):
        header = {
            "labels": self.classes_,
            "templates": list(self.templates_),
            "properties": {name: dict(values) for name, values in self.properties_.items()},
        }
        return header, {}

    def _from_file(self, header, tensors, need):
        self.classes_ = labels_in(header)
        self.templates_, self.properties_ = need(header, "templates", list), need(header, "properties", dict)
        if not all(isinstance(name, str) for name in (*self.classes_.tolist(), *self.templates_, *self.properties_)):
            raise ValueError("letters, templates or properties are not strings")
        if not all(isinstance(values, dict) for values in self.properties_.values()):
            raise ValueError("properties are not tables of letters")
        return self._no_tables().n_features
