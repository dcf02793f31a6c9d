"""`ConstituencyParser`: the scikit-learn face of `BracketParser`."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from partwise.tasks.constituency.estimator import BracketParser


class ConstituencyParser(BracketParser, BaseEstimator):
    """Parses sentences into constituency trees.

    Trees come from a file (`partwise.datasets.read_brackets`) or are written in brackets, ``"(S (NP (PRP They)) (VP (VBP
    bark)))"``; sentences are lists of (word, tag), or of words. A sentence that the grammar has no tree of gets one of pieces
    below the commonest root; `unparsed_` lists those.

    Parameters
    ----------
    loss : str or Loss, default="hinge"
        As in `SequenceLabeler`; ``"crf"`` and ``"softmax_margin"`` give probabilities of brackets.
    C : float, default=0.1
        Weight of the losses against the regulariser.
    solver : str or Solver, default="dca"
    l1_ratio : float in [0, 1], default=0.0
        Share of the L1 norm in the penalty.
    tags : {"given", "predicted"}, default="given"
        Whether tags of words are part of the input, or of the tree that is looked for.
    markov : int or None, default=0
        Children that a node with more than two remembers; None: all of them. More is a larger grammar: slower, and stricter.
    templates : list of str, optional
        Features of spans (see `partwise.features.span_rows`).
    hash_bits : int, default=16
        There are 2^hash_bits features of spans, each with a weight for every symbol.
    memory : float, optional
        GB that charts of a sentence may take, on all threads together; what is free by default. One that would take more is
        refused before any work: 2,000 words and 50 symbols need 4.
    max_epochs : int, default=10
    tol, average, early_stopping, validation_fraction, patience, warm_start, random_state, n_jobs, callbacks, verbose
        As in `Classifier`. Early stopping judges by F1 of brackets.
    dtype : {"float32", "float64"}, default="float32"
        Of the weights.

    Attributes
    ----------
    grammar_ : TreeGrammar
        Symbols and rules.
    classes_ : array
        The labels of brackets.
    weights_ : array
        Of spans, and then of rules, flat.
    unparsed_ : array
        Sentences last predicted that the grammar has no tree of.
    result_, solver_, temperature_
        As in `Classifier`.

    Examples
    --------
    >>> from partwise.datasets import make_brackets
    >>> parser = ConstituencyParser().fit(make_brackets(100))  # doctest: +SKIP
    >>> print(parser.predict([[("they", "PRP"), ("saw", "VBD"), ("the", "DT"), ("man", "NN"), (".", ".")]])[0])  # doctest: +SKIP
    (S (NP (PRP they)) (VP (VBD saw) (NP (DT the) (NN man))) (. .))
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False  # brackets have their own
        tags.input_tags.two_d_array = False
        return tags
