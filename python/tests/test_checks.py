"""scikit-learn's own checks of estimators."""

import inspect

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cohort_kmeans import KMeans, PrivateKMeans

# The checks that PrivateKMeans need not pass, each with its reason in the class.
NAMED = {
    "check_clustering",
    "check_sample_weights_invariance",
    "check_sample_weight_equivalence_on_dense_data",
    "check_all_zero_sample_weights_error",
}


def left_out(estimator):
    return estimator._more_tags()["_xfail_checks"]


# Since scikit-learn 1.6 tests say which checks are expected to fail, where estimators' tags did before.
SAID = {"expected_failed_checks": left_out} if "expected_failed_checks" in inspect.signature(parametrize_with_checks).parameters else {}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([KMeans(), PrivateKMeans()], **SAID)
def test_checks_of_estimators(estimator, check):
    check(estimator)


def test_only_the_named_checks_are_left_out():
    assert left_out(KMeans()) == {}
    assert set(left_out(PrivateKMeans())) == NAMED
