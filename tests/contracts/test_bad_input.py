"""What users get wrong: every mistake has an error that says what, where, and what to do."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse

from partwise import Classifier, SequenceLabeler
from partwise.solvers import SOLVERS

pytestmark = pytest.mark.interpreted

X = [[["a"], ["b"]], [["c"]]]
Y = [["A", "B"], ["A"]]
M = [np.eye(2), np.ones((1, 2))]
POINTS = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
CLASSES = np.array([0, 1, 1, 0])


def labeler(**parameters):
    return SequenceLabeler(**{"solver": "dca", "max_epochs": 1, "random_state": 0, **parameters})


def classifier(**parameters):
    return Classifier(**{"solver": "dca", "max_epochs": 1, "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def fitted():
    return labeler().fit(X, Y)


def says(*words):
    """A pattern for pytest.raises: these words, in this order."""
    return r"[\s\S]*".join(re.escape(word) for word in words)


# -- parameters -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("C", -1, says("The 'C' parameter of {who} must be a float in the range (0, inf) or None. Got -1 instead.")),
        ("C", "big", says("The 'C' parameter of {who} must be a float", "Got 'big' instead.")),
        ("C", float("nan"), says("The 'C' parameter of {who}", "Got nan instead.")),
        (
            "max_epochs",
            0,
            says("The 'max_epochs' parameter of {who} must be an int in the range [1, inf) or None. Got 0 instead."),
        ),
        ("max_epochs", 2.5, says("Got 2.5 instead.")),
        ("tol", -1e-3, says("The 'tol' parameter of {who} must be a float in the range [0, inf). Got -0.001 instead.")),
        ("validation_fraction", 1.0, says("The 'validation_fraction' parameter of {who} must be a float in the range (0, 1).")),
        ("patience", 0, says("The 'patience' parameter of {who}")),
        ("average", "yes", says("The 'average' parameter of {who} must be a bool or None. Got 'yes' instead.")),
        ("early_stopping", 1, says("The 'early_stopping' parameter of {who} must be a bool.")),
        ("dtype", "float16", says("The 'dtype' parameter of {who} must be 'float64' or 'float32'. Got 'float16' instead.")),
        ("dtype", "nonsense", says("The 'dtype' parameter of {who}")),
        ("callbacks", 3, says("The 'callbacks' parameter of {who} must be a callable, a list of callables or None.")),
        ("n_jobs", 0, says("The 'n_jobs' parameter must be None or a non-zero integer. Got 0 instead.")),
        ("loss", "hing", says("The 'loss' parameter must be one of", "'hinge'", "'crf'", "Got 'hing' instead.")),
        ("solver", "adam", says("The 'solver' parameter must be one of 'auto'", "'dca'", "Got 'adam' instead.")),
        (
            "class_weight",
            "even",
            says("The 'class_weight' parameter of {who} must be a dict, 'balanced' or None. Got 'even' instead."),
        ),
        ("class_weight", {"Q": 1.0}, says("The 'class_weight' parameter of {who} names 'Q', which is not one of the labels")),
        ("cost", np.ones((3, 3)), says("The 'cost' parameter of {who} must have shape (2, 2)", "Got (3, 3) instead.")),
        ("cost", np.ones((2, 2)), says("The 'cost' parameter of {who} must be finite and non-negative, with a zero diagonal.")),
        ("cost", {("A", "Q"): 1.0}, says("The 'cost' parameter of {who} names ('A', 'Q')", "pairs (true, answered)")),
    ],
)
@pytest.mark.parametrize("who", ["SequenceLabeler", "Classifier"])
def test_parameters(who, parameter, value, message):
    model, data = (labeler(), (X, Y)) if who == "SequenceLabeler" else (classifier(), (POINTS, CLASSES))
    with pytest.raises(ValueError, match=message.replace(re.escape("{who}"), who)):
        model.set_params(**{parameter: value}).fit(*data)
    assert not hasattr(model, "weights_")


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("order", 0, "The 'order' parameter of SequenceLabeler must be an int in the range [1, inf). Got 0 instead."),
        ("order", 40, "too large: 2 labels and order=40 make more than 10000000 histories"),
        ("use_start", None, "The 'use_start' parameter of SequenceLabeler must be a bool."),
        ("constraints", "bio3", "one of 'iob2', 'iob1', 'iobes', 'bilou', 'ioe2', 'ioe1', or a dict with keys among 'forbid'"),
        ("constraints", "iob2", "knows the label 'O' and the prefixes 'B-', 'I-'. Got the label 'A'."),
        ("constraints", {"forbidden": []}, "Got {'forbidden': []} instead."),
        ("constraints", [("A", "Q")], "names 'Q', which is not one of the labels 'A', 'B'"),
        ("constraints", ["AB"], "Got a list with 'AB' instead."),
    ],
)
def test_parameters_of_the_labeler(parameter, value, message):
    with pytest.raises(ValueError, match=says(message)):
        labeler(**{parameter: value}).fit(X, Y)


def test_constraints_of_the_classifier():
    for value in ("iob2", {"allow": [1]}):
        with pytest.raises(
            ValueError, match=says("The 'constraints' parameter of Classifier must be None or {'allow_labels': [...]}.")
        ):
            classifier(constraints=value).fit(POINTS, CLASSES)
    with pytest.raises(ValueError, match="names 7, which is not one of the classes 0, 1"):
        classifier(constraints={"allow_labels": [7]}).fit(POINTS, CLASSES)


def test_costs_for_losses_that_do_not_look_at_them():
    for loss in ("crf", "perceptron"):
        with pytest.raises(
            ValueError, match=f"The loss '{loss}' does not look at costs, so the 'cost' parameter of SequenceLabeler would do"
        ):
            labeler(loss=loss, cost={("A", "B"): 2.0}).fit(X, Y)


def test_a_solver_that_cannot_do_the_loss():
    solver = next(
        (name for name in ("mira", "lbfgs", "sdm") if name in SOLVERS and not SOLVERS[name]().accepts(_loss(name))), None
    )
    assert solver is not None
    with pytest.raises(ValueError, match=rf"Solver '{solver}' minimises .*Solvers that can: .*dca.*Losses that '{solver}' can: "):
        labeler(solver=solver, loss=_loss(solver)).fit(X, Y)


def _loss(solver):
    from partwise.losses.records import LOSSES

    return LOSSES["hinge" if solver == "lbfgs" else "crf"]


def test_averages_that_a_solver_does_not_have():
    solver = next(name for name in ("lbfgs", "sdm") if name in SOLVERS and not hasattr(SOLVERS[name](), "average"))
    with pytest.raises(
        ValueError, match=f"must be None for the solver '{solver}', which does not average its iterates. Solvers that can: "
    ):
        labeler(solver=solver, loss="crf" if solver == "lbfgs" else "hinge", average=True).fit(X, Y)


# -- sequences --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X, [["A"], ["A"]], "Sequence 0 has 2 tokens, but 1 labels."),
        (X, [["A", "B"], []], "Sequence 1 has 1 tokens, but 0 labels."),
        (X, [["A", "B"]], "X has 2 sequences, but y has 1 sequences of labels."),
        (X, None, "y must be a list of label sequences. Got a NoneType."),
        (X, "AB", "y must be a list of label sequences. Got a str."),
        (X, ["AB", "A"], "The labels of a sequence must be a list. Sequence 0 has 'AB' (str)."),
        (X, [["A", ["B"]], ["A"]], "Labels must be hashable. Got ['B'] (list; token 1 of sequence 0)."),
        (X, [["A", float("nan")], ["A"]], "NaN is not a label (token 1 of sequence 0)."),
        ([], [], "There are no training sequences: X is empty."),
        ([[], []], [[], []], "There are no tokens to train on: all 2 sequences are empty."),
        ("the dog", Y, "Got a str."),
        (["the dog", "a cat"], Y, "Sequence 0 is the str 'the dog'; X must be a list of sequences, not one sequence."),
        ([{"a": 1}, {"b": 1}], Y, "Sequence 0 is the dict {'a': 1}"),
        ([["the", "dog"], ["a"]], Y, "Got the bare string 'the' as token 0 of sequence 0; write ['the']"),
        ((x for x in X), Y, "Got a generator; if it yields sequences, pass list(X)."),
        ([iter(X[0]), X[1]], Y, "Sequence 0 is a list_iterator; if it yields tokens, pass a list of them."),
        ([1, 2], Y, "Sequence 0 is a int."),
        ([[1, 2], [3]], Y, "Token 0 of sequence 0 is 1 (int)."),
        (np.array(None, dtype=object), Y, "array without dimensions holding a NoneType"),
        (np.ones((3, 2)), Y, "Got one matrix of shape (3, 2) as X: where do its sequences begin? Give lengths="),
        (scipy.sparse.eye(3, format="csr"), Y, "Give lengths="),
        (
            [X[0], np.ones((1, 2))],
            Y,
            "All sequences must be of one kind. Got attributes in sequence 0, but matrix in sequence 1.",
        ),
        ([np.ones((2, 2)), np.ones((1, 3))], Y, "Sequence 1 has 3 features per token, but sequence 0 has 2."),
        ([np.ones(2), np.ones(1)], Y, "Sequence 0 has shape (2,) and dtype float64."),
        ([[[1.0, 2.0], [1.0]], [[1.0, 2.0]]], Y, "Sequence 0 is not a matrix of numbers with one row per token"),
        ([np.eye(2), np.array([[1.0, np.nan]])], Y, "NaN or infinity: feature 1 of token 0 of sequence 1 is nan."),
        ([scipy.sparse.csr_matrix([[0, 1.0], [np.inf, 0]]), np.eye(2)[:1]], Y, "feature 0 of token 1 of sequence 0 is inf."),
        ([[{"a": 1.0}, {"b": float("inf")}], [{}]], Y, "attribute 'b' of token 1 of sequence 0 is inf."),
        ([[{"a": None}, {}], [{}]], Y, "Got None (NoneType) for 'a' in token 0 of sequence 0."),
        ([[["a"], [3]], [["b"]]], Y, "Got 3 (int) in token 1 of sequence 0."),
    ],
)
def test_sequences(x, y, message):
    model = labeler()
    with pytest.raises((ValueError, TypeError), match=says(message)):
        model.fit(x, y)
    assert not hasattr(model, "weights_")


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([2, 2], "The lengths sum to 4, but X has 3 tokens."),
        ([4, -1], "lengths must be a list of non-negative integers"),
        ([1.5, 1.5], "lengths must be a list of non-negative integers"),
        (3, "lengths must be a list of non-negative integers"),
    ],
)
def test_lengths(lengths, message):
    with pytest.raises(ValueError, match=says(message)):
        labeler().fit(np.ones((3, 2)), ["A", "B", "A"], lengths=lengths)
    with pytest.raises(ValueError, match="X has 3 tokens, but y has 2 labels"):
        labeler().fit(np.ones((3, 2)), ["A", "B"], lengths=[2, 1])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0], "one number per sequence, shape (2,). Got shape (1,)."),
        ([1.0, -1.0], "sample_weight must be finite and non-negative."),
        ([1.0, np.nan], "sample_weight must be finite and non-negative."),
        ([0.0, 0.0], "sample_weight is zero for every sequence."),
    ],
)
def test_sample_weight(weight, message):
    with pytest.raises(ValueError, match=says(message)):
        labeler().fit(X, Y, sample_weight=weight)


def test_prediction(fitted):
    with pytest.raises(ValueError, match="SequenceLabeler was fitted with attributes as tokens, but X has matrix"):
        fitted.predict(M)
    with pytest.raises(ValueError, match="Sequence 1 has 1 tokens, but 2 known labels"):
        fitted.predict(X, known=[[None, None], ["A", "B"]])
    with pytest.raises(ValueError, match=r"Label 'Q' \(token 0 of sequence 1\) is not one of the labels 'A', 'B'"):
        fitted.decision_value(X, [["A", "B"], ["Q"]])
    with pytest.raises(ValueError, match="There are no tokens to score"):
        fitted.score([[]], [[]])
    with pytest.raises(ValueError, match=says("k must be an int in the range [1, inf). Got 0 instead.")):
        fitted.predict_kbest(X, 0)
    assert fitted.score(X, [["A", "never seen"], ["A"]]) < 1.0  # a label of the test set only is simply a mistake
    matrices = labeler().fit(M, Y)
    with pytest.raises(ValueError, match="X has 3 features per token, but SequenceLabeler is expecting 2 features"):
        matrices.predict([np.ones((1, 3))])


def test_unknown_label_in_partial_fit(fitted):
    with pytest.raises(
        ValueError, match=r"Label 'Q' \(token 0 of sequence 1\) is not one of .*Pass classes= with all labels on the first"
    ):
        labeler().partial_fit(X, Y).partial_fit([[["a"]], [["b"]]], [["A"], ["Q"]])
    labeler().partial_fit(X, Y, classes=["A", "B", "Q"]).partial_fit([[["b"]]], [["Q"]])
    with pytest.raises(ValueError, match="is not what the first call of partial_fit or fit saw: 'A', 'B'"):
        labeler().partial_fit(X, Y).partial_fit(X, Y, classes=["A", "Q"])
    with pytest.raises(
        ValueError, match="Label 9 of example 1 is not one of the classes 0, 1. Pass classes= with all classes on the first"
    ):
        classifier().partial_fit(POINTS, CLASSES).partial_fit(POINTS, [0, 9, 1, 1])


def test_early_stopping_needs_two_examples():
    with pytest.raises(ValueError, match="early_stopping=True needs at least two examples to hold one out. Got 1."):
        labeler(early_stopping=True).fit(X[:1], Y[:1])
    with pytest.raises(
        ValueError, match=says("validation must be (X, y), (X, y, lengths) or (X, y, lengths, dense), or Columns.")
    ):
        labeler().fit(X, Y, validation=X[0][0])


# -- points -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.array([[0.0, 1.0], [np.nan, 0.0]]), [0, 1], "NaN or infinity: row 1 holds nan."),
        (scipy.sparse.csr_matrix([[0.0, 1.0], [np.inf, 0.0]]), [0, 1], "NaN or infinity: row 1 holds inf."),
        (POINTS, [1, 1, 1, 1], "Classifier needs examples of at least two classes; y has one class only: 1."),
        (np.zeros((0, 2)), [], "0 sample(s)"),
        (POINTS, [0, 1], "inconsistent numbers of samples"),
        (POINTS, [0.5, 1.5, 2.5, 0.1], "Unknown label type"),
    ],
)
def test_points(x, y, message):
    with pytest.raises(ValueError, match=says(message)):
        classifier().fit(x, y)


def test_number_of_features_at_prediction():
    with pytest.raises(ValueError, match="X has 3 features, but Classifier is expecting 2 features"):
        classifier().fit(POINTS, CLASSES).predict(np.ones((1, 3)))


# -- Ctrl-C -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["labeler", "classifier"])
def test_control_c_keeps_the_model_so_far(kind):
    def impatient(record):
        if record.epoch == 3:
            raise KeyboardInterrupt

    model, data = (labeler(), (X, Y)) if kind == "labeler" else (classifier(), (POINTS, CLASSES))
    model.set_params(C=0.01, max_epochs=50, callbacks=impatient)
    with pytest.warns(
        UserWarning, match="fit was interrupted in epoch .*the model so far is kept. The fitted estimator can be used"
    ):
        model.fit(*data)
    assert model.result_.status == "interrupted" and not model.result_.converged and len(model.result_.history) == 3
    assert len(model.predict(data[0])) == len(data[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(callbacks=None, max_epochs=3).fit(*data)


def test_control_c_in_partial_fit():
    def impatient(record):
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted"):
        model = labeler(callbacks=impatient).partial_fit(X, Y)
    assert model.predict(X) and model.result_.status == "interrupted"
