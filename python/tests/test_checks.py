"""scikit-learn's own checks of estimators."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from cohort_kmeans import KMeans, PrivateKMeans

# The checks that PrivateKMeans need not pass stand in its tags, each with the reason.
NAMED = {"check_clustering", "check_sample_weights_invariance"}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([KMeans(), PrivateKMeans()])
def test_checks_of_estimators(estimator, check):
    check(estimator)


def test_only_the_named_checks_are_left_out():
    assert "_xfail_checks" not in KMeans()._more_tags()
    assert set(PrivateKMeans()._more_tags()["_xfail_checks"]) == NAMED
