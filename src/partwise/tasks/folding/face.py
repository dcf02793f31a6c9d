"""`RnaFolder`: the scikit-learn face of `Folder`."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from partwise.tasks.folding.estimator import Folder


class RnaFolder(Folder, BaseEstimator):
    """Predicts the secondary structure of RNA: nested base pairs, without pseudoknots.

    Sequences are strings, or come from a file (`partwise.datasets.read_rna`); structures are dot-brackets. A structure is
    scored by its loops: base pairs, stacks, ends of helices, lengths and asymmetry of hairpins, bulges and internal loops,
    multi-loops, dangling bases; 2,400 weights in all (`partwise.structures.folding.loops`).

    Parameters
    ----------
    loss : str or Loss, default="crf"
        As in `SequenceLabeler`; ``"crf"`` and ``"softmax_margin"`` give probabilities of pairs, ``"hinge"`` is the quickest.
    C : float, default=0.1
        Weight of the losses against the regulariser.
    solver : str or Solver, default="dca"
        ``"lbfgs"`` (crf) and ``"sdm"`` (hinge) find the optimum with a certificate; structures are good long before.
    l1_ratio : float in [0, 1], default=0.0
        Share of the L1 norm in the penalty.
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
    max_epochs : int, default=5
    tol, average, early_stopping, validation_fraction, patience, warm_start, random_state, n_jobs, callbacks, verbose
        As in `Classifier`. Early stopping judges by F1.
    dtype : {"float64", "float32"}, default="float64"
        Of the weights.

    Attributes
    ----------
    weights_ : array
        One weight for each of ``tying_.names``.
    result_, solver_, temperature_
        As in `Classifier`.

    Examples
    --------
    >>> sequences, structures = ["GGGAAAACCC", "GCGAAAGC"], ["(((....)))", "((....))"]
    >>> RnaFolder().fit(sequences, structures).predict(["GGGAAAACCC"])  # doctest: +SKIP
    ['(((....)))']
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False  # an RnaSet has its own
        tags.input_tags.two_d_array = False
        return tags
