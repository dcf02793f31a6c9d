"""`RnaFolder`: learns RNA secondary structures.

minimise  Omega(w) + C sum_i weight_i L_i(w)        over nested structures, s(y) = sum over the loops of y
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from partwise import kernels, passes
from partwise.engine.memory import require_memory
from partwise.engine.threads import in_threads, n_threads
from partwise.losses.records import Loss
from partwise.objective import best_outputs
from partwise.structures.folding.accuracy import most_accurate
from partwise.structures.folding.loops import LONGEST, Tying, tying
from partwise.structures.folding.problem import (
    CANONICAL,
    FoldingProblem,
    folding_problem,
    memory_needed,
    possible_structure,
    which_pair,
)
from partwise.tasks.common.base import Structured, is_corpus
from partwise.tasks.common.checks import is_bool, is_count, is_real, is_share, one_of
from partwise.tasks.common.label_arrays import check_k, example_weights
from partwise.tasks.folding.data import Sequences, read_sequences
from partwise.tasks.folding.files import write_dot_bracket
from partwise.tasks.folding.scores import BasePairScores, base_pair_scores
from partwise.tasks.folding.suspects import FoldingSuspects


def _are_pairs(value: Any) -> bool:
    try:
        which_pair(value)
    except (ValueError, TypeError):
        return False
    return True


@dataclass(eq=False, repr=False)
class RnaFolder(FoldingSuspects, Structured):
    """Predicts the secondary structure of RNA: nested base pairs, without pseudoknots.

    Sequences are strings, or come from a file (`partwise.datasets.read_rna`); structures are dot-brackets. A structure is
    scored by its loops: base pairs, stacks, ends of helices, lengths and asymmetry of hairpins, bulges and internal loops,
    multi-loops, dangling bases; 2,400 weights in all (`partwise.structures.folding.loops`).

    Parameters
    ----------
    %(loss)s
    trade_off : float in [0, 1], default=0.5
        What losses with a cost count: ``(1 - trade_off)`` for a true pair that is missed, `trade_off` for a pair that is wrong.
        0 cares for sensitivity alone, 1 for selectivity.
    relative_cost : bool, default=False
        Whether costs are divided by the number of true pairs: with ``trade_off=0`` the cost is 1 - sensitivity, as in Do et al.
        (2008).
    decode : {"auto", "best", "mea"}, default="auto"
        The structure of highest score, or of maximum expected accuracy, which needs probabilities; "auto": the latter where
        there are some.
    gamma : float, default=1.0
        Of "mea": the higher, the more pairs are predicted, and the more of them wrongly.
    pairs : list of str, optional, default=("AU", "CG", "GU")
        Which bases pair; None: any with any.
    max_loop : int, default=30
        Unpaired bases of internal loops and bulges, at most.
    pseudoknots : {"drop", "refuse"}, default="drop"
        What to do with training pairs that cross others.
    %(learning)s

    Attributes
    ----------
    weights_ : array
        One weight for each of ``tying_.names``.
    result_, solver_, temperature_
        As in `Classifier`.

    Notes
    -----
    Unless said otherwise, ``loss="crf"``, ``C=0.1``, ``solver="dca"``, ``max_epochs=5``, ``patience=3``. Early stopping judges by
    F1 of base pairs.

    Examples
    --------
    >>> sequences, structures = ["GGGAAAACCC", "GCGAAAGC"], ["(((....)))", "((....))"]
    >>> RnaFolder().fit(sequences, structures).predict(["GGGAAAACCC"])
    ['(((....)))']
    """

    loss: Any = "crf"
    _: KW_ONLY
    patience: int | None = 3
    trade_off: float = 0.5
    relative_cost: bool = False
    decode: str = "auto"
    gamma: float = 1.0
    pairs: Any = CANONICAL
    max_loop: int = LONGEST
    pseudoknots: str = "drop"

    weights_: np.ndarray = field(init=False)

    _checks = {
        **Structured._checks,
        "trade_off": (is_share, "a float in the range [0, 1]"),
        "relative_cost": (is_bool, "a bool"),
        "decode": one_of("auto", "best", "mea"),
        "gamma": (is_real(0.0), "a float in the range (0, inf)"),
        "pairs": (_are_pairs, "a list of pairs such as 'GU', or None for all"),
        "max_loop": (lambda value: is_count(0)(value) and value <= LONGEST, f"an int in the range [0, {LONGEST}]"),
        "pseudoknots": one_of("drop", "refuse"),
    }

    def _check_parameters(self) -> Loss:
        loss = super()._check_parameters()
        if self.decode == "mea" and not loss.is_smooth:
            raise ValueError(
                f"decode='mea' needs probabilities, and the loss {loss.name!r} fits scores. Take decode='best', or loss='crf' or "
                "'softmax_margin'."
            )
        return loss

    # -- training -----------------------------------------------------------------------------------------------------

    def fit(self, X, y=None, sample_weight=None, *, validation=None, checkpoint=None):
        """Train from nothing, or with ``warm_start=True`` from the previous weights.

        Parameters
        ----------
        X : RnaSet, or list of str
            Sequences of A, C, G, U (or T); N and other IUPAC codes stand for bases that are not known.
        y : list of structures, optional
            Dot-brackets, or the partner of each base, from 0, with -1 or None for none; of an `RnaSet`, its own by default.
        sample_weight : array (sequences,), optional
        validation : RnaSet or (X, y), optional
            Held-out structures for early stopping, instead of a part of X.
        checkpoint : path, optional
            As in `SequenceLabeler.fit`.
        """
        if is_corpus(X):
            return self._fit_packed(X, (y, sample_weight), validation, checkpoint)
        loss = self._check_parameters()
        given = read_sequences(X, y, self.pseudoknots)
        if given.partners is None:
            raise ValueError("There are no structures to learn from: give y, or an RnaSet with structures.")
        if not len(given):
            raise ValueError(f"{self._who} needs at least one sequence to learn from. Got none.")
        weight = example_weights(sample_weight, len(given), "sequence")
        self._check_memory(given)
        seed = self._seed()
        given, weight, held = self._parts(given, weight, validation, read_sequences, seed)
        problem, lost = self._problem(given, labelled=True)
        if lost or given.pseudoknots:
            warnings.warn(
                f"{self._who}: {given.pseudoknots} pairs of the training structures cross others (pseudoknots) and {lost} are "
                f"impossible here (bases that may not pair, hairpins of fewer than three, loops of more than {self.max_loop}); "
                "they were left out.",
                stacklevel=2,
            )
        if not (problem.gold >= 0).any():
            warnings.warn(f"{self._who}: there is no base pair in the training structures, and so none to learn.", stacklevel=2)
        self._solve(problem, loss, weight, self._judge(held, loss), self._previous_weights, seed, checkpoint)
        return self

    def _judge_by(self, validation: Any, problem: Any) -> Any:
        return self._judge(read_sequences(*(validation if isinstance(validation, tuple) else (validation, None))), self._loss())

    def _judge(self, held: Sequences | None, loss: Loss) -> Any:
        if held is None:
            return None
        if held.partners is None:
            raise ValueError(f"{self._who} cannot tell when to stop: there are no structures of the held-out sequences.")
        problem, truth = self._problem(held)[0], held.partners

        def wrong(w: np.ndarray) -> float:
            return 1.0 - base_pair_scores(truth, self._fold(problem, w, 1.0 / loss.beta if loss.is_smooth else None)).f1

        return wrong

    # -- packing ------------------------------------------------------------------------------------------------------

    def _problem(self, given: Sequences, labelled: bool = False) -> tuple[FoldingProblem, int]:
        """Packed sequences, and how many pairs of their structures are impossible."""
        structures, lost, per_pair = None, 0, np.ones(len(given))
        if labelled and given.partners is not None:
            pairable = which_pair(self.pairs)
            fitted = [possible_structure(b, p, pairable, self.max_loop) for b, p in zip(given.bases, given.partners, strict=True)]
            structures, lost = [found for found, _ in fitted], sum(n for _, n in fitted)
            if self.relative_cost:
                per_pair = 1.0 / np.maximum([int((p >= 0).sum()) // 2 for p in structures], 1)
        problem = folding_problem(
            given.bases,
            structures,
            missed=(1.0 - self.trade_off) * per_pair,
            wrong=self.trade_off * per_pair,
            pairs=self.pairs,
            max_loop=self.max_loop,
        )
        return problem, lost

    def _check_memory(self, given: Sequences) -> None:
        """Say so before a long sequence takes all memory there is."""
        longest = int(given.lengths.max(initial=0))
        if longest:
            what = f"{given.places[int(np.argmax(given.lengths))]} has {longest} bases; folding it"
            needed = memory_needed(longest) * n_threads(self.n_jobs)
            require_memory(needed, self.n_jobs, what, "Cut it into parts")

    # -- answers ------------------------------------------------------------------------------------------------------

    def _read(self, X: Any, y: Any = None) -> Sequences:
        self._require_fitted()
        given = read_sequences(X, y)
        self._check_memory(given)
        return given

    def _fold(self, problem: FoldingProblem, w: np.ndarray, temperature: float | None) -> list[np.ndarray]:
        """Partners of every sequence: the best structure, or the most accurate one."""
        if self.decode == "best" or temperature is None:
            out, starts, _ = best_outputs(problem, w, self.n_jobs)
            return [out[a:b] for a, b in zip(starts[:-1], starts[1:], strict=True)]

        def fold(i: int) -> np.ndarray:
            n = int(kernels.length(problem, i))
            y = np.zeros(n, np.int32)
            most_accurate(passes.parts(problem, i, w, 1.0 / temperature)[problem.n_tied :], n, self.gamma, y)
            return y

        return in_threads(fold, range(kernels.n_examples(problem)), self.n_jobs)

    def _partners(self, given: Sequences) -> list[np.ndarray]:
        return self._fold(self._problem(given)[0], self.weights_, self.temperature_)

    def predict_partners(self, X) -> list[np.ndarray]:
        """The structure of each sequence as the partner of each base, from 0, -1 for none: see `decode`."""
        return self._partners(self._read(X))

    def predict(self, X) -> list[str]:
        """The same as dot-brackets."""
        return [write_dot_bracket(partners) for partners in self.predict_partners(X)]

    def base_pairs(self, X, y=None, *, slips: bool = False) -> BasePairScores:
        """Sensitivity, selectivity and F1 (see `partwise.metrics.base_pair_scores`)."""
        given = self._read(X, y)
        if given.partners is None:
            raise ValueError("There are no structures to compare with: give y, or an RnaSet with structures.")
        return base_pair_scores(given.partners, self._partners(given), slips=slips)

    def score(self, X, y=None) -> float:
        """Mean F1 of base pairs over sequences."""
        return self.base_pairs(X, y).f1

    def predict_marginals(self, X) -> list[np.ndarray]:
        """P(i pairs with j | x), a symmetric array (n, n) for each sequence. Refused for margin losses."""
        beta = self._beta()
        given = self._read(X)
        problem = self._problem(given)[0]
        found = []
        for i, n in enumerate(given.lengths.tolist()):
            table = np.zeros((n, n))
            table[np.triu_indices(n, 1)] = passes.parts(problem, i, self.weights_, beta)[problem.n_tied + n :]
            found.append(table + table.T)
        return found

    def predict_kbest(self, X, k: int = 5) -> list[list[tuple[str, float]]]:
        """For each sequence a list of at most k pairs (dot-bracket, score), best first. k * n calls of the oracle."""
        check_k(k)
        problem = self._problem(self._read(X))[0]
        return self._kbest(problem, k, problem.starts, lambda i, partners: write_dot_bracket(partners))

    def decision_value(self, X, y=None) -> np.ndarray:
        """The score of the given structures, or of the best ones."""
        given = self._read(X, y)
        problem = self._problem(given, labelled=y is not None)[0]
        if y is not None:
            return passes.values_of_targets(problem, self.weights_, self.n_jobs)
        return best_outputs(problem, self.weights_, self.n_jobs)[2]

    # -- what it has learnt -------------------------------------------------------------------------------------------

    @property
    def tying_(self) -> Tying:
        """Which weights there are, by name, and what they score."""
        return tying()

    def weights_by_name(self) -> dict[str, float]:
        """Every weight under its name."""
        return dict(zip(tying().names, map(float, self._require_fitted()), strict=True))

    # -- the model file -----------------------------------------------------------------------------------------------

    def _to_file(self):
        return {}, {}

    def _from_file(self, header, tensors, need):
        return tying().n_weights
