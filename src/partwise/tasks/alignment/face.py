"""`Aligner`: the scikit-learn face of `PairAligner`."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from partwise.tasks.alignment.estimator import PairAligner


class Aligner(PairAligner, BaseEstimator):
    """Aligns pairs of sequences over any alphabet, with affine gaps; substitution and gap scores are learnt from alignments.

    Pairs come from a file (`partwise.datasets.read_alignments`: tables of two rows, FASTA), or are tuples of two strings, or of
    two lists of letters. Alignments are two rows with gaps, pairs of places, or for each place of the first sequence its partner
    in the second. Empty sequences are fine.

    Parameters
    ----------
    loss : str or Loss, default="crf"
        As in `SequenceLabeler`; ``"crf"`` and ``"softmax_margin"`` give probabilities, which the most accurate alignments need.
    C : float, default=0.01
        Weight of the losses against the regulariser.
    solver : str or Solver, default="dca"
        ``"lbfgs"``, say, finds the optimum of a CRF with a certificate; alignments are good long before.
    l1_ratio : float in [0, 1], default=0.0
        Share of the L1 norm in the penalty.
    mode : {"global", "local"}, default="global"
        Whether sequences are aligned from end to end, or may have ends left out that have nothing to do with each other.
    templates : list of str, optional
        Features of pairs of places and of gaps (see `partwise.structures.alignment.pair_tables`). By default letters and their neighbours; for
        proteins also classes of amino acids and hydropathy, in the kind of CONTRAlign.
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
    max_epochs : int, default=10
    tol, average, early_stopping, validation_fraction, patience, warm_start, random_state, n_jobs, callbacks, verbose
        As in `Classifier`. Early stopping judges by recall.
    dtype : {"float64", "float32"}, default="float64"
        Of the weights.

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

    Examples
    --------
    >>> rows = [("GATTACA", "GAT-ACA"), ("GATC-CA", "G-TCTCA")]
    >>> pairs = [tuple(row.replace("-", "") for row in two) for two in rows]
    >>> Aligner().fit(pairs, rows).predict([("GATTA", "GATA")])[0].rows()  # doctest: +SKIP
    ('GATTA', 'GA-TA')
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False  # aligned pairs have their own
        tags.input_tags.two_d_array = False
        return tags
