"""`GraphLabeler`: the scikit-learn face of `NodeLabeler`."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from partwise.tasks.graphs.estimator import NodeLabeler


class GraphLabeler(NodeLabeler, BaseEstimator):
    """Labels the nodes of graphs, the pixels of pictures, or examples with several labels at once.

    What it learns from is recognised by its form:

    - *graphs*: a list of pairs (node features (n, d), edges (m, 2)), or of triples with edge features (m, e); labels are a
      sequence for each graph. Node features may be sparse. Graphs without edges, or without nodes, are fine;
    - *pictures*: arrays (height, width, d), of different sizes if you like; labels are arrays (height, width). Pixels are joined
      with their neighbours;
    - *multilabel*: one 2-D array (examples, d), dense or sparse; labels are a matrix (examples, labels) of 0 and 1.

    Labels of nodes can be anything hashable. None, or what `unknown` says, stands for a label that is not known: such nodes are
    completed in the course of training.

    Graphs without cycles are searched exactly. Where there are cycles, the best labelling is found by AD3, which mostly proves
    that there is none better, and says so if not (see `certify`); sums, for losses with probabilities, are those of belief
    propagation. Duality gaps of solvers are only as good as these answers.

    Parameters
    ----------
    loss : str or Loss, default="hinge"
        As in `SequenceLabeler`; ``"crf"`` and ``"softmax_margin"`` give probabilities of labels.
    C : float, default=0.1
        Weight of the losses, which are sums over nodes, against the regulariser.
    solver : str or Solver, default="dca"
        ``"sdm"`` and ``"bcfw"`` find the optimum of an SVM with a certificate; labels are good before that.
    l1_ratio : float in [0, 1], default=0.0
        Share of the L1 norm in the penalty.
    pairwise : {"full", "symmetric", "potts"}, default="full"
        Weights of an edge's feature: one for each pair of labels, in the direction of the edge; one for each pair without
        direction; or a single one, for equal labels.
    inference : {"auto", "exact"}, default="auto"
        exact: branch and bound where AD3 leaves a gap. It can take long.
    search : dict, optional
        Options of the search, say ``{"iterations": 200}`` (of AD3) or ``{"damping": 0.5, "sweeps": 500}`` (of belief
        propagation): see `partwise.structures.factor_graph.kernels.Search`.
    neighbours : {4, 8}, default=4
        Of a pixel.
    contrast : bool, default=False
        Give edges one more feature: exp(-d^2 / (2 m)), where d is the distance between the features of their nodes and m the
        mean of d^2 over all training edges. Not for multilabel problems.
    label_edges : {"tree", "full", "none"}, default="tree"
        Which labels of a multilabel problem are joined: those of the tree of highest mutual information (Chow and Liu), for
        which everything is exact; all; none.
    class_weight : dict {label: weight} or "balanced", optional
        What it costs to miss a node of that label; 1 by default. For losses that look at costs.
    unknown : optional
        A label that stands for an unknown one, besides None; say -1 or 255 in arrays of integers.
    fit_intercept : bool, default=True
        Add a constant feature to nodes, and to edges where they have features of their own.
    max_epochs : int, default=20
    tol, average, early_stopping, validation_fraction, patience, warm_start, random_state, n_jobs, dtype, callbacks, verbose
        As in `Classifier`. Early stopping judges by the share of right nodes.

    Attributes
    ----------
    classes_ : array
        The labels of nodes.
    coef_, intercept_ : arrays (features, classes) and (classes,)
        Weights of nodes; of a multilabel problem, with an axis of labels before them.
    pairwise_ : array (edge features, classes, classes)
        Weights of edges, from the first node to the second; `edge_names_` says what the features are.
    label_edges_ : array (pairs, 2)
        Which labels of a multilabel problem are joined.
    weights_ : array
        All weights, flat.
    not_proven_, not_converged_ : int
        Training graphs whose best output was not proven to be the best, or on which belief propagation did not converge, when
        they were last asked.
    result_, solver_, temperature_
        As in `Classifier`.

    Examples
    --------
    >>> from partwise.datasets import make_pictures
    >>> X, y = make_pictures(20)
    >>> GraphLabeler(random_state=0).fit(X[:10], y[:10]).score(X[10:], y[10:]) > 0.8  # doctest: +SKIP
    True
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False  # a GraphSet has its own
        tags.input_tags.two_d_array = False
        return tags
