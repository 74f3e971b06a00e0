"""KMeans beside scikit-learn's."""

import copy
import io
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn.cluster
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cohort_kmeans import FederatedKMeans, KMeans, Ledger, PrivateKMeans, VerticalKMeans


def test_finds_what_scikit_learn_finds(blobs):
    X, labels = blobs
    ours = KMeans(3, random_state=0).fit(X)
    theirs = sklearn.cluster.KMeans(3, n_init=10, random_state=0).fit(X)
    assert adjusted_rand_score(ours.labels_, labels) == 1
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-5)
    order = np.argsort(theirs.cluster_centers_[:, 0])
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_[order], atol=1e-4)
    assert -ours.score(X) == pytest.approx(ours.inertia_, rel=1e-4)
    np.testing.assert_array_equal(ours.predict(X), ours.labels_)
    np.testing.assert_allclose(np.min(ours.transform(X) ** 2, axis=1).sum(), ours.inertia_, rtol=1e-5)


def test_same_start_same_rounds(blobs):
    X, _ = blobs
    start = X[[0, 1, 2500, 5000, 5999]]
    for rounds in (1, 3):
        ours = KMeans(5, init=start, max_iter=rounds, tol=0).fit(X)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = sklearn.cluster.KMeans(5, init=start, n_init=1, max_iter=rounds, tol=0).fit(X)
        np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, atol=1e-4)
        assert adjusted_rand_score(ours.labels_, theirs.labels_) > 0.999
        assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-5)


def test_columns_of_different_ranges_keep_their_units():
    X = np.array([[0, 0.1], [1, 0.9], [1000, 0.1], [1001, 0.9]])
    assert list(KMeans(2, random_state=0).fit_predict(X)) == [0, 0, 1, 1]
    constant = np.column_stack([X[:, 0], np.full(4, 7.0)])
    np.testing.assert_allclose(KMeans(2, random_state=0).fit(constant).cluster_centers_[:, 1], 7)


def test_predicts_far_outside(blobs):
    X, _ = blobs
    m = KMeans(3, random_state=0).fit(X)
    far = np.array([[-1e6, 2e6, 0], [1e9, 0, 0], [0, 0, 1e9], [40, 50, 91]])
    want = np.argmin(((far[:, None] - m.cluster_centers_) ** 2).sum(axis=2), axis=1)
    np.testing.assert_array_equal(m.predict(far), want)


@pytest.mark.parametrize("init", ["k-means++", "random", lambda X, k, random_state: X[random_state.permutation(len(X))[:k]]])
def test_starts(blobs, init):
    X, labels = blobs
    a, b = (KMeans(3, init=init, n_init=8, random_state=4).fit(X) for _ in range(2))
    np.testing.assert_array_equal(a.labels_, b.labels_)
    assert adjusted_rand_score(a.labels_, labels) == 1


def test_weights(blobs):
    X, _ = blobs
    X = X[::20]
    w = np.arange(len(X)) % 4
    weighted = KMeans(3, random_state=0).fit(X, sample_weight=w)
    repeated = KMeans(3, random_state=0).fit(np.repeat(X, w, axis=0))
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_, atol=1e-3)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_, rel=1e-4)
    assert len(weighted.labels_) == len(X)
    for bad in (w[:-1], -1.0 * w, w * np.nan, np.zeros(len(X)), np.ones((len(X), 2))):
        with pytest.raises(ValueError):
            KMeans(3).fit(X, sample_weight=bad)


def layouts(X):
    wide = np.zeros((2 * len(X), 7), dtype=X.dtype)
    wide[::2, 1:6:2] = X
    backwards = np.ascontiguousarray(X[::-1, ::-1])
    frozen = X.copy()
    frozen.flags.writeable = False
    unaligned = np.frombuffer(b"x" + X.tobytes(), dtype=np.uint8)[1:].view(X.dtype).reshape(X.shape)
    record = np.zeros(len(X), dtype=[("tag", "i1"), ("x", X.dtype, 3)])
    record["x"] = X
    return {
        "Fortran": np.asfortranarray(X),
        "strided": wide[::2, 1:6:2],
        "negative strides": backwards[::-1, ::-1],
        "read-only": frozen,
        "unaligned": unaligned,
        "fields of a record": record["x"],
        "big endian": X.astype(X.dtype.newbyteorder()),
        "data frame": pd.DataFrame(X),
        "list": X.tolist(),
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layouts(blobs, dtype):
    X = blobs[0].astype(dtype)[::5]
    want = KMeans(4, random_state=1).fit(X)
    assert want.cluster_centers_.dtype == dtype
    for name, array in layouts(X).items():
        got = KMeans(4, random_state=1).fit(array)
        np.testing.assert_array_equal(got.cluster_centers_.astype(dtype), want.cluster_centers_, err_msg=name)
        np.testing.assert_array_equal(got.predict(array), want.labels_, err_msg=name)


def test_memory_map(blobs, tmp_path):
    X, _ = blobs
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    np.testing.assert_array_equal(KMeans(3, random_state=0).fit_predict(mapped), KMeans(3, random_state=0).fit_predict(X))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.float16, bool])
def test_other_numbers(dtype):
    X = np.array([[0, 1], [1, 0], [1, 1], [0, 0]], dtype=dtype)
    assert KMeans(4, random_state=0).fit(X).inertia_ == 0


def test_nothing_is_copied(blobs):
    from cohort_kmeans import _library

    for X in (blobs[0], np.asfortranarray(blobs[0]), blobs[0].astype(np.float32), blobs[0][::-3]):
        source = _library.matrix(X)
        assert source.data.data == X.__array_interface__["data"][0]
        first = np.ctypeslib.as_array((np.ctypeslib.ctypes.c_byte * X.itemsize).from_address(source.data.data)).view(X.dtype)
        assert first[0] == X[0, 0]


def test_bad_input(blobs):
    X, _ = blobs
    X = X[:50]
    nan, inf = X.copy(), X.copy()
    nan[7, 1], inf[3, 2] = np.nan, np.inf
    for bad, says in (
        (nan, "row 8"), (inf, "row 4"), (X[:0], "0 sample"), (X[:, :0], "0 feature"), (X[:, 0], "2D"), (X[:2], "n_samples=2"),
        (pd.DataFrame({"a": [1] * 50, "b": ["x"] * 50}), "X, column 'b': could not convert"), (X + 1j, "Complex"),
        (pd.DataFrame({"day": pd.date_range("2026", periods=50), "b": range(50)}), "X, column 'day': has dates"),
        (pd.DataFrame(), "X: the data frame is empty"), (pd.DataFrame({"a": []}), "0 sample"),
        (np.array([["x"]] * 50, dtype=object), "could not convert"), (X * 1e300, "inertia"), (np.full((50, 2), 1e308), "inertia"),
    ):
        with pytest.raises(ValueError, match=says) as refused:
            KMeans(3).fit(bad)
        assert "--" not in str(refused.value)  # no words of the command line
    m = KMeans(3, random_state=0).fit(X)
    for bad, says in ((X[:, :2], "features"), (nan, "row 8")):
        with pytest.raises(ValueError, match=says):
            m.predict(bad)
    for parameters, says in (
        ({"n_clusters": 0}, "n_clusters"), ({"n_clusters": 2.5}, "n_clusters"), ({"n_init": 0}, "n_init"), ({"max_iter": 0}, "max_iter"),
        ({"tol": -1}, "tol"), ({"init": "no such"}, "init"), ({"init": X[:2]}, "init"), ({"n_threads": -1}, "n_threads"), ({"n_threads": 100000}, "workers"),
    ):
        with pytest.raises(ValueError, match=says):
            KMeans(**{"n_clusters": 3, **parameters}).fit(X)


def test_masks(blobs):
    X = blobs[0][:50]
    mask = np.zeros(X.shape, dtype=bool)
    plain = KMeans(3, random_state=0).fit(X)
    np.testing.assert_array_equal(KMeans(3, random_state=0).fit(np.ma.array(X, mask=mask)).labels_, plain.labels_)
    mask[7, 1] = mask[9, 0] = True
    bad = np.ma.array(X, mask=mask)
    weights = np.ma.array(np.ones(50), mask=mask[:, 1])
    private = {"epsilon": 1, "bounds": (-10, 10)}
    for use, says in (
        (lambda: KMeans(3).fit(bad), "X: has 2 masked values"),
        (lambda: KMeans(3).fit(X, sample_weight=weights), "sample_weight: has 1 masked"),
        (lambda: KMeans(10, init=bad[:10]).fit(X), "init: has 2 masked"),
        (lambda: plain.predict(bad), "X: has 2 masked"),
        (lambda: plain.transform(bad), "X: has 2 masked"),
        (lambda: plain.score(bad), "X: has 2 masked"),
        (lambda: PrivateKMeans(3, **private).fit(bad), "X: has 2 masked"),
        (lambda: PrivateKMeans(3, epsilon=1, bounds=(np.ma.array([-9, -9, -9], mask=[1, 0, 0]), 10)).fit(X), "bounds"),
        (lambda: FederatedKMeans(3, **private).fit([X, bad]), "X: has 2 masked"),
        (lambda: VerticalKMeans(3, **private).fit([X, bad]), "party 2: has 2 masked"),
        (lambda: plain.__class__(3).fit_predict(bad), "X: has 2 masked"),
    ):
        with pytest.raises(ValueError, match=says):
            use()


@pytest.mark.parametrize("keep", [
    lambda m: pickle.loads(pickle.dumps(m)),
    copy.deepcopy,
    lambda m: joblib.load(_dump(m)),
])
def test_pickles(blobs, keep):
    X, _ = blobs
    m = KMeans(3, random_state=0).fit(X)
    again = keep(m)
    np.testing.assert_array_equal(again.predict(X), m.labels_)
    assert again.inertia_ == m.inertia_ and again.ledger_ == m.ledger_


def _dump(m):
    f = io.BytesIO()
    joblib.dump(m, f)
    f.seek(0)
    return f


def test_in_pipelines_and_searches(blobs):
    X, labels = blobs
    pipe = make_pipeline(StandardScaler(), KMeans(3, random_state=0)).fit(X)
    assert adjusted_rand_score(pipe.predict(X), labels) == 1
    search = GridSearchCV(KMeans(random_state=0), {"n_clusters": [2, 3]}, n_jobs=2).fit(X[::10])
    assert search.best_params_ == {"n_clusters": 3}
    assert clone(pipe).get_params()["kmeans__n_clusters"] == 3
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    m = KMeans(3, random_state=0).set_output(transform="pandas").fit(frame)
    assert list(m.transform(frame).columns) == ["kmeans0", "kmeans1", "kmeans2"]
    assert list(m.feature_names_in_) == ["a", "b", "c"]


def test_threads_change_nothing(blobs):
    X, _ = blobs
    fits = [KMeans(5, random_state=3, n_threads=n).fit(X) for n in (1, 2, 5, None)]
    for m in fits[1:]:
        np.testing.assert_array_equal(m.cluster_centers_, fits[0].cluster_centers_)


def test_ledger_of_a_fit_without_privacy(blobs):
    m = KMeans(3, random_state=0).fit(blobs[0])
    assert isinstance(m.ledger_, Ledger) and m.ledger_.total("outsider")[0] is None


def test_cosine_clusters_directions():
    random = np.random.default_rng(2)
    centres = random.normal(size=(5, 30))
    labels = random.integers(5, size=2000)
    X = (centres[labels] + 0.4 * random.normal(size=(2000, 30))) * np.exp(2 * random.normal(size=(2000, 1)))
    ours = KMeans(5, metric="cosine", random_state=0).fit(X)
    assert adjusted_rand_score(ours.labels_, labels) == 1
    assert adjusted_rand_score(KMeans(5, random_state=0).fit(X).labels_, labels) < 0.5
    np.testing.assert_allclose(np.linalg.norm(ours.cluster_centers_, axis=1), 1, rtol=1e-6)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for j, c in enumerate(ours.cluster_centers_):
        mean = unit[ours.labels_ == j].sum(axis=0)
        np.testing.assert_allclose(c, mean / np.linalg.norm(mean), atol=1e-3)
    squares = 2 - 2 * (unit * ours.cluster_centers_[ours.labels_]).sum(axis=1)
    assert ours.inertia_ == pytest.approx(squares.sum(), rel=1e-4)
    np.testing.assert_array_equal(ours.predict(3 * X), ours.labels_)
    np.testing.assert_allclose(np.min(ours.transform(X) ** 2, axis=1), squares, atol=1e-5)
    given = KMeans(5, metric="cosine", init=10 * ours.cluster_centers_, random_state=0).fit(X)
    np.testing.assert_array_equal(given.labels_, ours.labels_)
    with pytest.raises(ValueError, match="length 0"):
        KMeans(2, metric="cosine").fit(np.vstack([X, np.zeros(30)]))
    with pytest.raises(ValueError, match="metric"):
        KMeans(2, metric="manhattan").fit(X)


def test_fewer_records_and_batches_come_near(blobs):
    X, labels = blobs
    whole = KMeans(3, random_state=0).fit(X)
    for few in ({"batch_size": 500}, {"max_points_per_centroid": 100}, {"init": "k-means||"}):
        ours = KMeans(3, random_state=0, **few).fit(X)
        assert adjusted_rand_score(ours.labels_, labels) == 1, few
        assert ours.inertia_ <= 1.02 * whole.inertia_, few
    heavy = KMeans(3, batch_size=500, random_state=0).fit(X, sample_weight=np.full(len(X), 2.0))
    assert heavy.inertia_ == pytest.approx(2 * whole.inertia_, rel=0.02)
    with pytest.raises(ValueError, match="batch_size"):
        KMeans(3, batch_size=0).fit(X)
