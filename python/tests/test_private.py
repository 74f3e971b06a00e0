"""Fits with a budget, and several holders."""

import copy
import os
import pickle
import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from cohort_kmeans import BudgetError, FederatedKMeans, PrivacyLeakWarning, PrivateKMeans, VerticalKMeans, methods


def test_private(blobs):
    X, labels = blobs
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m = PrivateKMeans(3, epsilon=2, bounds=(0, 100)).fit(X)
    assert adjusted_rand_score(m.labels_, labels) > 0.9  # three groups 50 apart; the noise at 2000 each moves centres by about 1
    epsilon, delta = m.ledger_.total()
    assert 0 < epsilon <= 2 and 0 < delta < 1e-3
    assert m.inertia_ is not None and m.inertia_ > 0
    np.testing.assert_array_equal(m.predict(X), m.labels_)
    assert m.transform(X).shape == (len(X), 3)
    a, b = (PrivateKMeans(3, epsilon=2, bounds=(0, 100)).fit(X).cluster_centers_ for _ in range(2))
    assert not np.array_equal(a, b)  # fresh noise
    a, b = (_quiet(PrivateKMeans(3, epsilon=2, bounds=(0, 100), random_state=6)).fit(X).cluster_centers_ for _ in range(2))
    assert np.array_equal(a, b)


def _quiet(m):
    class Quiet:
        def fit(self, X):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyLeakWarning)
                return m.fit(X)

    return Quiet()


@pytest.mark.parametrize("passed_on", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
def test_what_is_passed_on_has_no_labels(blobs, passed_on):
    X, _ = blobs
    m = PrivateKMeans(3, epsilon=2, bounds=(0, 100)).fit(X)
    f = FederatedKMeans(3, epsilon=2, bounds=(0, 100)).fit([X[:900], X[900:]])
    for fitted in m, f:
        again = passed_on(fitted)
        assert not hasattr(again, "labels_") and hasattr(fitted, "labels_")
        np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
        assert again.ledger_ == fitted.ledger_
    plain = passed_on(FederatedKMeans(3, bounds=(0, 100)).fit([X[:900], X[900:]]))
    assert len(plain.labels_) == 2


def test_no_refusal_tells_the_number_of_records(blobs):
    X, _ = blobs
    few = PrivateKMeans(5, epsilon=2, bounds=(0, 100), settings={"public-n": 300}).fit(X[:3])
    assert few.cluster_centers_.shape == (5, 3)
    with pytest.raises(ValueError, match="n_clusters"):
        PrivateKMeans(5, epsilon=2, bounds=(0, 100)).fit(X[:3])


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1"])
def test_no_budget(epsilon):
    with pytest.raises(ValueError, match="^epsilon: is .*, must be a finite number above 0$"):
        PrivateKMeans(2, epsilon=epsilon, bounds=(0, 1)).fit([[0.0], [1.0]])


def test_what_is_not_covered_warns(blobs):
    X, _ = blobs
    with pytest.warns(PrivacyLeakWarning, match="Bounds have not been specified"):
        PrivateKMeans(3).fit(X)
    with pytest.warns(PrivacyLeakWarning, match="simulation"):
        PrivateKMeans(3, bounds=(0, 100), random_state=1).fit(X)


def test_texts_name_no_flags():
    """What a text says of the command line alone is left out."""
    with pytest.raises(ValueError, match="column 2 is constant .*: state the bounds, or leave the column out$"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrivacyLeakWarning)
            PrivateKMeans(2, epsilon=1).fit(np.c_[np.arange(9.0), np.ones(9)])
    nan = "column 2: NaN and Inf are not allowed: correct the cell, or leave the column out$"
    with pytest.raises(ValueError, match=nan):
        PrivateKMeans(2, epsilon=1, bounds=(0, 1)).fit(np.array([[1, np.nan], [2, 3]]))


def test_bounds_and_scales(blobs):
    X, labels = blobs
    lower, upper = np.zeros(3), np.array([100, 100, 100.0])
    m = PrivateKMeans(3, epsilon=4, bounds=(lower, upper), scale_columns=False).fit(X)
    assert adjusted_rand_score(m.labels_, labels) > 0.9
    assert np.median(m.transform(X).min(axis=1)) > 1  # in the data's own units
    for bad in (5, (0,), ([0, 0], [1, 1]), ("a", "b"), (1, 0), (0, np.nan), (0, np.inf)):
        with pytest.raises(ValueError, match="bounds"):
            PrivateKMeans(3, bounds=bad).fit(X)


def test_weights(blobs):
    X, labels = blobs
    w = np.where(labels == labels[0], 3.0, 1.0)
    m = PrivateKMeans(3, epsilon=20, bounds=(0, 100), weight_cap=4).fit(X, sample_weight=w)
    assert adjusted_rand_score(m.labels_, labels) > 0.9
    assert m.sizes_.sum() == pytest.approx(w.sum(), rel=0.05)  # in the units of the weights
    assert m.sizes_[m.labels_[0]] == pytest.approx(w[labels == labels[0]].sum(), rel=0.1)
    assert m.inertia_ == pytest.approx(-m.score(X, sample_weight=w), rel=1)
    capped = PrivateKMeans(3, epsilon=20, bounds=(0, 100), weight_cap=1).fit(X, sample_weight=100 * w)
    assert capped.sizes_.sum() == pytest.approx(len(X), rel=0.05)
    for bad in (w[:-1], -1.0 * w, w * np.nan):
        with pytest.raises(ValueError):
            PrivateKMeans(3, bounds=(0, 100)).fit(X, sample_weight=bad)
    PrivateKMeans(3, epsilon=2, bounds=(0, 100)).fit(X, sample_weight=0 * w)  # a refusal would tell that all are 0
    for weight_cap in (0, -1, np.inf, "1"):
        with pytest.raises(ValueError, match="weight.cap"):
            PrivateKMeans(3, bounds=(0, 100), weight_cap=weight_cap).fit(X, sample_weight=w)
    for method in ("sulloyd", "relative", "lsf"):
        m = PrivateKMeans(3, epsilon=20, bounds=(0, 100), method=method, weight_cap=4).fit(X, sample_weight=w)
        assert m.sizes_.sum() == pytest.approx(w.sum(), rel=0.1), method
    with pytest.raises(ValueError, match="fastlloyd"):
        PrivateKMeans(3, bounds=(0, 100), method="fastlloyd").fit(X, sample_weight=w)


def test_pure_and_other_methods(blobs):
    X, _ = blobs
    m = PrivateKMeans(3, epsilon=2, delta=0, bounds=(0, 100)).fit(X)
    assert m.ledger_.total()[1] == 0
    m = PrivateKMeans(3, epsilon=2, bounds=(0, 100), method="sulloyd", settings={"iterations": 3}).fit(X)
    assert m.n_iter_ == 3
    with pytest.raises(ValueError, match="choose one of"):
        PrivateKMeans(3, bounds=(0, 100), method="no such").fit(X)
    with pytest.raises(ValueError, match="no method has such an option"):
        PrivateKMeans(3, bounds=(0, 100), settings={"no-such": 1}).fit(X)
    with pytest.raises(ValueError, match="does not take it"):
        PrivateKMeans(3, bounds=(0, 100), settings={"radius": 0.5}).fit(X)
    with pytest.raises(ValueError, match="not private.*leave epsilon out"):  # no flags of the command line
        PrivateKMeans(3, bounds=(0, 100), method="lloyd").fit(X)
    for epsilon in (10**400, 0, -1, np.nan, np.inf, None, "1"):
        with pytest.raises(ValueError, match="epsilon"):
            PrivateKMeans(3, epsilon=epsilon, bounds=(0, 100)).fit(X)
    assert {"hybrid", "fastlloyd", "sketch", "lloyd"} <= {m["name"] for m in methods()}


def test_ledger_file(blobs, tmp_path):
    X, _ = blobs
    m = PrivateKMeans(3, epsilon=1, bounds=(0, 100), ledger=tmp_path / "people.ledger", ledger_budget=(2, 1e-3))
    for _ in range(2):
        m.fit(X)
    assert any("of the ledger file" in n for n in m.notes_)
    with pytest.raises(BudgetError, match="missing"):
        m.fit(X)
    with pytest.raises(ValueError, match="bounds"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        PrivateKMeans(3, ledger=tmp_path / "other.ledger").fit(X)
    for alone in ({"ledger_budget": (2, 1e-3)}, {"composition": "zcdp"}):  # nothing would be charged
        with pytest.raises(ValueError, match="without a ledger file"):
            PrivateKMeans(3, bounds=(0, 100), **alone).fit(X)
    for budget in (2, (2,), (2, 1e-3, 0), (0, 0), ("2", 0), (2, -1)):
        with pytest.raises(ValueError, match="ledger_budget"):
            PrivateKMeans(3, bounds=(0, 100), ledger=tmp_path / "other.ledger", ledger_budget=budget).fit(X)
    with pytest.raises(ValueError, match="simulation"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        PrivateKMeans(3, bounds=(0, 100), ledger=tmp_path / "other.ledger", random_state=0).fit(X)


def test_ledger_file_is_the_one_that_was_named(blobs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (b"bytes.ledger", "text.ledger"):
        PrivateKMeans(3, bounds=(0, 100), ledger=path).fit(blobs[0])
    for path in (True, 5, "", "a\0b", "\udcff", open(os.devnull)):
        with pytest.raises(ValueError, match="ledger: is .* give the path"):
            PrivateKMeans(3, bounds=(0, 100), ledger=path).fit(blobs[0])
    assert sorted(os.listdir()) == ["bytes.ledger", "text.ledger"]


def test_ledger_in_a_notebook(blobs):
    ledger = PrivateKMeans(3, bounds=(0, 100)).fit(blobs[0]).ledger_
    html = ledger._repr_html_()
    assert html.count("<tr>") == len(ledger.releases) + 1
    assert "discrete-gaussian" in html and "epsilon 1" in html and "<script" not in html
    assert "everything that the outsider may see" in repr(ledger)
    ledger.entries[0]["what"] = "<b>"
    assert "&lt;b&gt;" in ledger._repr_html_()


def test_federated(blobs):
    X, labels = blobs
    order = np.random.default_rng(1).permutation(len(X))
    parts = np.split(order, [1000, 3500])
    for epsilon, least in ((None, 1.0), (4, 0.9)):
        m = FederatedKMeans(3, epsilon=epsilon, bounds=(0, 100)).fit([X[p] for p in parts])
        assert [len(found) for found in m.labels_] == [1000, 2500, 2500]
        for p, found in zip(parts, m.labels_):
            assert adjusted_rand_score(found, labels[p]) >= least
    assert m.ledger_.total("outsider")[0] <= 4
    with pytest.raises(ValueError, match="list"):
        FederatedKMeans(3).fit(X)
    for method in ("lsf", "pca", "sketch"):  # which would work on one table of all
        with pytest.raises(ValueError, match=f"method: {method} is for .*choose one of lloyd"):
            FederatedKMeans(3, epsilon=1, bounds=(0, 100), method=method).fit([X, X])
    with pytest.raises(ValueError, match="features"):
        FederatedKMeans(3).fit([X, X[:, :2]])
    with pytest.raises(ValueError, match="part 2, row 6"):
        bad = X.copy()
        bad[5, 0] = np.nan
        FederatedKMeans(3, bounds=(0, 100)).fit([X, bad])


def test_vertical(blobs):
    X, labels = blobs
    m = VerticalKMeans(3, epsilon=None, bounds=(0, 100)).fit([X[:, :1], X[:, 1:]])
    assert adjusted_rand_score(m.labels_, labels) == 1 and m.n_features_in_ == 3
    np.testing.assert_array_equal(m.predict([X[:, :1], X[:, 1:]]), m.labels_)
    np.testing.assert_array_equal(m.predict(X), m.labels_)
    m = VerticalKMeans(3, epsilon=8, bounds=(0, 100)).fit([X[:, :1], X[:, 1:]])
    assert adjusted_rand_score(m.labels_, labels) > 0.5 and m.ledger_.releases
    with pytest.raises(ValueError, match="records"):
        VerticalKMeans(3, bounds=(0, 100)).fit([X, X[:50]])
    for method in ("lsf", "hybrid"):
        with pytest.raises(ValueError, match=f"method: {method} is for .*choose one of vertical-plain"):
            VerticalKMeans(3, bounds=(0, 100), method=method).fit([X[:, :1], X[:, 1:]])
