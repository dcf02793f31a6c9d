"""`DependencyParser`: the scikit-learn face of `TreeParser`."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from partwise.tasks.dependency.estimator import TreeParser


class DependencyParser(TreeParser, BaseEstimator):
    """Parses sentences into dependency trees, projective or not.

    Sentences come from a treebank (`partwise.datasets.read_treebank`: CoNLL-U, CoNLL-X), or are lists of words: dicts with the
    keys form, lemma, upos, xpos, feats (any of them), tuples of cells, or plain strings. Trees are lists of heads, with relations
    or without. Empty sentences are fine.

    Parameters
    ----------
    loss : str or Loss, default="hinge"
        As in `SequenceLabeler`; ``"crf"`` and ``"softmax_margin"`` give probabilities of arcs.
    C : float, default=0.05
        Weight of the losses against the regulariser.
    solver : str or Solver, default="dca"
        ``"sdm"``, say, finds the optimum of an SVM with a certificate; trees are good long before.
    l1_ratio : float in [0, 1], default=0.0
        Share of the L1 norm in the penalty.
    templates : list of str, optional
        Features of arcs (see `partwise.features.arc_rows`); those of McDonald et al. (2005) and some more by default.
    columns : list of str, optional
        Names of the cells of a word, where words are tuples; form, lemma, upos, xpos, feats by default.
    hash_bits : int, default=22
        There are 2^hash_bits weights of arcs.
    projective : bool, default=False
        Whether arcs must not cross. Training trees whose arcs do are left out then, with a warning.
    single_root : bool, optional
        Whether one word alone hangs from the root; by default, if it is so in all training trees.
    relations : bool, default=True
        Whether to learn the relations of arcs too, where there are any.
    order : {1, 2}, default=1
        2: score consecutive siblings and grandparents too. Some two points of UAS better on English, several times slower. The
        best tree is then sought by AD3, over the arcs that a model of first order finds worth it, and `proven_` tells how often
        it is known to be the best; probabilities are those of loopy belief propagation. Trees must be known as a whole.
    candidates : int, default=10
        Heads that are looked at for each word, at most, if `order` is 2.
    max_epochs : int, default=10
    tol, average, early_stopping, validation_fraction, patience, warm_start, random_state, n_jobs, callbacks, verbose
        As in `Classifier`. Early stopping judges by UAS.
    dtype : {"float32", "float64"}, default="float32"
        Of the weights.

    Attributes
    ----------
    classes_ : array
        The relations.
    weights_, relation_weights_ : array
        Weights of arcs, and of their relations, flat.
    columns_ : tuple of str
        The cells that the model looks at.
    single_root_ : bool
    result_, solver_, temperature_
        As in `Classifier`, of the heads.

    Examples
    --------
    >>> sentences = [["dogs", "bark"], ["they", "buy", "books"]]
    >>> trees = [([2, 0], ["nsubj", "root"]), ([2, 0, 2], ["nsubj", "root", "obj"])]
    >>> DependencyParser().fit(sentences, trees).predict([["dogs", "bark"]])[0].heads  # doctest: +SKIP
    [2, 0]
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False  # a treebank has its own
        tags.input_tags.two_d_array = False
        return tags
