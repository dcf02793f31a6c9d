"""scikit-learn's own checks of estimators."""

import inspect

import numpy as np
import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

from partwise import Classifier, Ranker, SequenceLabeler

ONLINE = {
    "check_sample_weight_equivalence_on_dense_data": "an online solver visits a repeated example twice, a heavy one once",
    "check_sample_weight_equivalence_on_sparse_data": "an online solver visits a repeated example twice, a heavy one once",
}


def expected_to_fail(estimator):
    return ONLINE if estimator.solver == "dca" else {}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        Classifier(loss="crf", solver="lbfgs", tol=1e-9),
        Classifier(
            loss="hinge", solver="sdm", tol=1e-14, max_epochs=100
        ),  # as exact as the check of weights against repetitions asks
        Classifier(loss="hinge", solver="dca"),
    ],
    expected_failed_checks=expected_to_fail,
)
def test_classifier(estimator, check):
    check(estimator)


BY_QUERY = dict.fromkeys(ONLINE, "a query weighs what its documents weigh in the mean, and has no more pairs for a heavy one")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore::UserWarning")
@pytest.mark.interpreted
@parametrize_with_checks([Ranker(objective="pairwise", max_epochs=5)], expected_failed_checks=lambda estimator: BY_QUERY)
def test_ranker(estimator, check):
    check(estimator)


# SequenceLabeler takes lists of sequences, which scikit-learn's checks cannot make. These checks need no data.
WITHOUT_DATA = [
    "check_estimator_cloneable",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_estimator_repr",
    "check_no_attributes_set_in_init",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_mixin_order",
    "check_get_params_invariance",
    "check_set_params",
    "check_parameters_default_constructible",
]

# Checks that would need data of the form (examples, features), and where the same is tested with sequences.
EXCEPTIONS = {
    "check_estimators_dtypes": "labels and matrices of many types: test_sequence_labeler.py, test_labels_of_any_type",
    "check_estimators_fit_returns_self": "below, test_with_sequences",
    "check_estimators_overwrite_params": "below, test_with_sequences",
    "check_dont_overwrite_parameters": "below, test_with_sequences",
    "check_dict_unchanged": "below, test_with_sequences",
    "check_fit_idempotent": "below, test_with_sequences",
    "check_fit_check_is_fitted": "below, test_with_sequences",
    "check_methods_subset_invariance": "below, test_with_sequences",
    "check_methods_sample_order_invariance": "below, test_with_sequences",
    "check_readonly_memmap_input": "below, test_with_sequences (read-only matrices)",
    "check_estimators_pickle": "test_sequence_labeler.py, test_in_the_company_of_scikit_learn",
    "check_pipeline_consistency": "transformers of scikit-learn take no lists of sequences",
    "check_estimators_unfitted": "test_sequence_labeler.py, test_not_fitted",
    "check_fit_score_takes_y": "below, test_with_sequences",
    "check_n_features_in": "test_sequence_labeler.py, test_matrices_in_every_form",
    "check_n_features_in_after_fitting": "test_bad_input.py, test_prediction",
    "check_requires_y_none": "test_bad_input.py, test_sequences",
    "check_estimators_nan_inf": "test_bad_input.py, test_sequences",
    "check_estimators_empty_data_messages": "test_bad_input.py, test_sequences",
    "check_complex_data": "complex matrices are refused: below, test_complex_matrices",
    "check_dtype_object": "test_sequence_labeler.py, test_numpy_object_arrays_are_read",
    "check_estimator_sparse_tag": "one sparse matrix needs lengths=",
    "check_estimator_sparse_array": "test_sequence_labeler.py, test_matrices_in_every_form",
    "check_estimator_sparse_matrix": "test_sequence_labeler.py, test_matrices_in_every_form",
    "check_f_contiguous_array_estimator": "below, test_with_sequences (column-major matrices)",
    "check_fit2d_predict1d": "1-D arrays are refused: test_bad_input.py, test_sequences",
    "check_fit2d_1sample": "one matrix needs lengths=",
    "check_fit2d_1feature": "one matrix needs lengths=",
    "check_fit1d": "1-D arrays are refused: test_bad_input.py, test_sequences",
    "check_sample_weights_pandas_series": "sample_weight goes through numpy.array",
    "check_sample_weights_not_an_array": "sample_weight goes through numpy.array",
    "check_sample_weights_list": "test_bad_input.py, test_sample_weight",
    "check_all_zero_sample_weights_error": "test_bad_input.py, test_sample_weight",
    "check_sample_weights_shape": "test_bad_input.py, test_sample_weight",
    "check_sample_weights_not_overwritten": "below, test_with_sequences",
    "check_sample_weight_equivalence_on_dense_data": "test_sequence_labeler.py, test_sequences_of_weight_zero_are_left_out",
    "check_sample_weight_equivalence_on_sparse_data": "test_sequence_labeler.py, test_sequences_of_weight_zero_are_left_out",
    "check_array_api_input": "lists of sequences are not arrays",
    "check_dataframe_column_names_consistency": "columns of data frames are not features of tokens",
    "check_positive_only_tag_during_fit": "negative features are fine, and no tag says otherwise",
}


@pytest.mark.parametrize("name", WITHOUT_DATA)
def test_labeler_without_data(name):
    check = getattr(estimator_checks, name)
    check("SequenceLabeler", SequenceLabeler())


class AsIf(SequenceLabeler):
    """As if it took plain matrices: then scikit-learn tells which checks it has."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


def test_every_check_is_run_or_explained():
    names = {getattr(check, "func", check).__name__ for check in estimator_checks._yield_all_checks(AsIf(), legacy=True)}
    assert len(names) > 30
    assert names - set(WITHOUT_DATA) - set(EXCEPTIONS) == set()


RNG = np.random.default_rng(0)
MATRICES = [RNG.normal(size=(n, 2)) for n in (3, 1, 4, 0, 2)]
LABELS = [(m[:, 0] > 0).astype(int).tolist() for m in MATRICES]


@pytest.mark.interpreted
def test_with_sequences():
    model = SequenceLabeler(solver="dca", max_epochs=2, random_state=0)
    parameters = model.get_params()
    weight = np.ones(5)
    assert model.fit(MATRICES, LABELS, sample_weight=weight) is model
    assert model.get_params() == parameters and (weight == 1).all()
    state = dict(vars(model))
    answers = model.predict(MATRICES)
    assert vars(model) == state and model.score(MATRICES, LABELS) > 0
    assert [model.predict([m])[0] for m in MATRICES] == answers
    assert model.predict(MATRICES[::-1]) == answers[::-1]
    w = model.weights_
    np.testing.assert_array_equal(model.fit(MATRICES, LABELS).weights_, w)
    columns = [np.asfortranarray(m) for m in MATRICES]
    for m in columns:
        m.setflags(write=False)
    np.testing.assert_array_equal(model.fit(columns, LABELS).weights_, w)
    for name in ("fit", "score", "partial_fit"):
        assert list(inspect.signature(getattr(model, name)).parameters)[:2] == ["X", "y"]


def test_complex_matrices():
    with pytest.raises(
        ValueError, match="must have two dimensions and hold numbers. Sequence 0 has shape .* and dtype complex128"
    ):
        SequenceLabeler().fit([m + 1j for m in MATRICES], LABELS)
