"""The estimators."""

from __future__ import annotations

import json
import math
import numbers
import os
import sys
import warnings
from typing import Any, Optional, Sequence, Union

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.preprocessing import normalize
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from . import _library
from ._ledger import Ledger
from ._library import PrivacyLeakWarning

try:  # since scikit-learn 1.6
    from sklearn.utils.validation import validate_data

    _NOT_FINITE = {"ensure_all_finite": False}  # is left to the library, which names the row
except ImportError:

    def validate_data(estimator: Any, X: Any, **how: Any) -> Any:
        return estimator._validate_data(X, **how)

    _NOT_FINITE = {"force_all_finite": False}

Bounds = Optional[tuple[Any, Any]]


def _is_arrow(X: Any) -> bool:
    """Whether X is to be read through the Arrow C stream interface; pandas lends its own arrays."""
    return hasattr(X, "__arrow_c_stream__") and not isinstance(X, np.ndarray) and type(X).__module__.split(".")[0] != "pandas"


def _check_frame(X: Any, why: Exception) -> None:
    """Say of a data frame that was refused what scikit-learn does not: that it has no columns, or which has no numbers."""
    if not hasattr(X, "iloc") or getattr(X, "ndim", 0) != 2:
        return
    if X.shape[1] == 0:
        raise ValueError("X: the data frame is empty: at least one column is needed") from why
    for i, name in enumerate(X.columns):
        if getattr(X.dtypes.iloc[i], "kind", "O") in "mM":
            raise ValueError(f"X, column {name!r}: has dates or times: give numbers, or leave the column out") from why
        try:
            np.asarray(X.iloc[:, i], dtype=np.float64)
        except (TypeError, ValueError) as e:
            raise ValueError(f"X, column {name!r}: {e}: give numbers, or leave the column out") from why


def _unmasked(X: Any, name: str = "X") -> Any:
    """X, unless values of it are masked: what reads its array would take what is under the mask for records."""
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError(f"{name}: has {np.ma.count_masked(X)} masked values: fill them, or leave their records out")
    return X


def _integer(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{name}: is {value!r}, must be an integer of at least {least}")
    return int(value)


def _path(name: str, value: Any) -> str:
    try:
        path = os.fsdecode(value)
        path.encode()  # names go to the library in UTF-8
    except (TypeError, UnicodeEncodeError):
        path = ""
    if not path or "\0" in path:
        raise ValueError(f"{name}: is {value!r}: give the path of a file, in UTF-8")
    return path


def _real(name: str, value: Any, least: float, above: bool = False) -> float:
    good = isinstance(value, numbers.Real) and not isinstance(value, bool) and least <= value <= sys.float_info.max
    if not good or above and value == least:
        raise ValueError(f"{name}: is {value!r}, must be a finite number {'above' if above else 'of at least'} {least:g}")
    return float(value)


def _spread(bounds: Bounds) -> dict[str, list[float]]:
    """Bounds as the library takes them: (lower, upper), each a number or one for each column."""
    if bounds is None:
        return {}
    try:
        lower, upper = (np.atleast_1d(np.asarray(_unmasked(b), dtype=float)) for b in bounds)
    except (TypeError, ValueError):
        raise ValueError("bounds: are no pair (lower, upper): give two numbers, or two lists with one for each column") from None
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        raise ValueError("bounds: are not finite: give finite numbers")
    if lower.size > 1 and (lower == upper).all():
        raise ValueError("bounds: lower ones equal upper ones: give (lower, upper), two lists with one for each column, "
                         "not a pair for each column")
    return {"lower": lower.tolist(), "upper": upper.tolist()}


def _pair(budget: Any) -> tuple[Optional[float], Optional[float]]:
    """The budget of a ledger file."""
    if budget is None:
        return None, None
    try:
        epsilon, delta = budget
    except (TypeError, ValueError):
        raise ValueError(f"ledger_budget: is {budget!r}, must be a pair (epsilon, delta)") from None
    return _real("ledger_budget", epsilon, 0, above=True), _real("ledger_budget", delta, 0)


class _Cohort(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
    """What the estimators share: reading X, and what a model gives."""

    n_clusters: int
    n_threads: Optional[int]

    def _source(self, X: Any, reset: bool) -> tuple[_library.Source, Any]:
        """X where it is. The second value is X as an array, None where only the library reads it."""
        if _is_arrow(X):
            return _library.arrow(X), None
        try:
            X = validate_data(self, _unmasked(X), accept_sparse=False, dtype=[np.float64, np.float32], reset=reset, **_NOT_FINITE)
        except (TypeError, ValueError) as e:  # dates beside numbers are a TypeError
            _check_frame(X, e)
            raise
        names = getattr(self, "feature_names_in_", None)
        return _library.matrix(X, names), X

    def _new(self, X: Any) -> tuple[_library.Source, np.ndarray]:
        """Records for a model that is fitted, also as an array."""
        check_is_fitted(self)
        return self._source(_from_arrow(X), reset=False)

    def _engine(self) -> _library.Engine:
        return _library.Engine.of(self.n_threads)

    def _take(self, model: _library.Model, dtype: Any, arrow: bool = False) -> dict[str, Any]:
        """Set what the fit has learned."""
        said = json.loads(model.json())
        self._model = model
        self.cluster_centers_ = model.centroids().astype(dtype, copy=False)
        self.labels_ = model.labels()
        self.n_iter_ = max(said.get("iterations", 0), 1)
        self.ledger_ = Ledger(said["ledger"])
        self.sizes_ = None if said["sizes"] is None else np.array(said["sizes"])
        self._n_features_out = model.k
        self._directions = said.get("metric") == "cosine"
        self._unit = (said["upper"][0] - said["lower"][0]) / 2 if said.get("one_scale") else None
        self._box = np.array(said["lower"]), np.array(said["upper"])
        self.notes_ = said.get("notes", [])
        if arrow:
            self.n_features_in_ = model.columns
            if said["columns"]:
                self.feature_names_in_ = np.array(said["columns"], dtype=object)
        return said

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        """X in the units of the model's distances."""
        if self._directions:
            return normalize(X)
        if self._unit is not None:
            return X
        lower, upper = self._box
        return np.clip(2 * (X - lower) / (upper - lower) - 1, -1, 1)

    def fit_predict(self, X: Any, y: Any = None, **parameters: Any) -> np.ndarray:
        """Fit, and return the cluster of each record.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The records.
        y : Ignored
            Not used.
        **parameters : dict
            Passed to ``fit``.

        Returns
        -------
        labels : ndarray of shape (n_samples,), dtype int32
        """
        return self.fit(X, y, **parameters).labels_  # type: ignore[attr-defined]

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each record.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New records, also as an Arrow table.

        Returns
        -------
        labels : ndarray of shape (n_samples,), dtype int32
        """
        source, array = self._new(X)
        return self._model.predict(self._engine(), source, len(array))[0]

    def transform(self, X: Any) -> np.ndarray:
        """The distance of each record to each centroid.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New records.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In the data's own units, or with each column scaled from its bounds to [-1, 1]
            where the estimator scales columns.
        """
        check_is_fitted(self)
        X = validate_data(self, _unmasked(_from_arrow(X)), dtype=[np.float64, np.float32], reset=False)
        return euclidean_distances(self._scaled(X), self._scaled(self.cluster_centers_)).astype(X.dtype, copy=False)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The negative sum of the squared distances of records to their centroids.

        It is computed from the records: no privacy budget covers it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New records.
        y : Ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the records.

        Returns
        -------
        score : float
        """
        source, array = self._new(X)
        _, distances = self._model.predict(self._engine(), source, len(array), distances=True)
        assert distances is not None
        squares = (distances * (self._unit or 1.0)) ** 2
        if sample_weight is not None:
            squares *= _check_weights(sample_weight, len(squares))
        return -float(squares.sum())

    # Checks of scikit-learn that need not pass, each with the reason.
    _left_out: dict[str, str] = {}

    def _more_tags(self) -> dict[str, Any]:  # before scikit-learn 1.6
        return {"preserves_dtype": [np.float64, np.float32], "_xfail_checks": self._left_out}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _check_weights(weights: Any, n: int) -> np.ndarray:
    if isinstance(weights, numbers.Number):
        weights = np.full(n, weights, dtype=np.float64)
    w = check_array(_unmasked(weights, "sample_weight"), ensure_2d=False, dtype=np.float64, order="C", input_name="sample_weight")
    if w.ndim != 1 or len(w) != n:
        raise ValueError(f"sample_weight: has the shape {w.shape} for {n} records: give one weight for each")
    if (w < 0).any():
        raise ValueError("sample_weight: has negative weights: give weights of 0 or more")
    return w


def _from_arrow(X: Any) -> Any:
    """X, an Arrow table as an array: for what reads single records."""
    if not _is_arrow(X):
        return X
    if hasattr(X, "to_numpy"):
        return np.asarray(X.to_numpy())
    if hasattr(X, "__array__"):
        return np.asarray(X)
    raise ValueError("X: cannot be read but as a stream: convert it to an array first")


class KMeans(_Cohort):
    """K-means clustering, a drop-in for :class:`sklearn.cluster.KMeans` without privacy.

    Coordinates are kept to 2^-22 of the widest column's range, which decides ties and the last digits of
    centres only. Clusters are numbered in the order of their centres, unless ``init`` is an array.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    init : {"k-means++", "k-means||", "random"}, array of shape (n_clusters, n_features) or callable, default="k-means++"
        The first centres: greedy k-means++, k-means|| (a few passes over the records, for many clusters), records at
        random, or given ones. A callable gets ``X``, ``n_clusters`` and ``random_state``.
    n_init : "auto" or int, default="auto"
        The number of starts, of which the best is returned. "auto" is 10 for small problems, falling to 1 for
        large ones; 1 for given centres.
    max_iter : int, default=300
        The most rounds from a start; with ``batch_size``, those on batches.
    tol : float, default=1e-4
        A start ends when the squared movements of all centres together are at most ``tol`` times the mean
        variance of the columns.
    verbose : int, default=0
        Not used.
    random_state : int, RandomState instance or None, default=None
        Makes the starts reproducible.
    copy_x : bool, default=True
        Not used: X is never changed.
    algorithm : {"lloyd", "auto", "full", "elkan"}, default="lloyd"
        Not used: results do not depend on it.
    n_threads : int or None, default=None
        The number of threads; None for all cores. Results do not depend on it.
    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine" clusters the directions of records and centres, spherical k-means: both have length 1 in distances,
        whose squares are 2 - 2 cos.
    max_points_per_centroid : int or None, default=None
        Train on at most so many records for each cluster, drawn at random, as FAISS does; None for all.
    batch_size : int or None, default=None
        Go over batches of so many records, drawn at random, in all rounds from a start but the last; None for all
        records in every round.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres.
    labels_ : ndarray of shape (n_samples,), dtype int32
        The cluster of each record.
    inertia_ : float
        The sum of the squared distances of the records to their centres, times their weights.
    n_iter_ : int
        The number of rounds of all starts.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The names of the columns, where they have some.

    Examples
    --------
    >>> import numpy as np
    >>> from cohort_kmeans import KMeans
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> KMeans(n_clusters=2, random_state=0).fit_predict(X)
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: Union[str, int] = "auto",
        max_iter: int = 300,
        tol: float = 1e-4,
        verbose: int = 0,
        random_state: Any = None,
        copy_x: bool = True,
        algorithm: str = "lloyd",
        n_threads: Optional[int] = None,
        metric: str = "euclidean",
        max_points_per_centroid: Optional[int] = None,
        batch_size: Optional[int] = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.copy_x = copy_x
        self.algorithm = algorithm
        self.n_threads = n_threads
        self.metric = metric
        self.max_points_per_centroid = max_points_per_centroid
        self.batch_size = batch_size

    def _options(self) -> dict[str, Any]:
        tol = _real("tol", self.tol, 0)
        if self.metric not in ("euclidean", "cosine"):
            raise ValueError(f"metric: is {self.metric!r}: choose euclidean or cosine")
        # A share of 0 would be the library's own default; this one asks that nothing moves.
        settings = {"iterations": _integer("max_iter", self.max_iter, 1), "rest": max(tol, 1e-300), "metric": self.metric}
        for name in ("max_points_per_centroid", "batch_size"):
            if getattr(self, name) is not None:
                settings[name.replace("_", "-")] = _integer(name, getattr(self, name), 1)
        return {"k": _integer("n_clusters", self.n_clusters, 1), "method": "lloyd", "settings": settings}

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "KMeans":
        """Cluster records.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The records: an array of float32 or float64 in any layout is read where it is; also a table that
            exports the Arrow C stream interface.
        y : Ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the records, 0 or more.

        Returns
        -------
        self : KMeans
        """
        options = self._options()
        source, array = self._source(X, reset=True)
        weights, kept = None, None
        if sample_weight is not None:
            if array is None:
                raise ValueError("sample_weight: is given for an Arrow table: convert the table to an array first")
            weights = _check_weights(sample_weight, len(array))
            if not weights.any():
                raise ValueError("sample_weight: is zero for all records: give some a positive weight")
            if (weights == 0).any():  # as if they were not there
                kept = weights > 0
                weights, rows = weights[kept], array[kept]
                source = _library.matrix(rows, getattr(self, "feature_names_in_", None))
            if (weights == weights[0]).all() and weights[0] == 1:
                weights = None
        rows = array if kept is None else array[kept]
        model, own = self._search(source, rows, options, weights)
        said = self._take(model, source.dtype, array is None)
        self.inertia_ = float(said["inertia"])
        if own is not None:
            self.n_iter_ = own
        if kept is not None:
            self.labels_ = self._model.predict(self._engine(), _library.matrix(array), len(array))[0]
        return self

    def _search(self, source: _library.Source, X: Any, options: dict[str, Any], weights: Any) -> tuple[_library.Model, Optional[int]]:
        """The best model of all starts."""
        engine, random = self._engine(), check_random_state(self.random_state)
        prepare = {"one_scale": True, "unit": self.metric == "cosine"}
        n_init = self.n_init if self.n_init == "auto" else _integer("n_init", self.n_init, 1)
        if X is not None and options["k"] > len(X):
            raise ValueError(f"n_samples={len(X)} should be >= n_clusters={options['k']}.")
        if isinstance(self.init, str) and self.init in ("k-means++", "k-means||"):
            options["settings"]["init"] = self.init.replace("-", "")
            if n_init != "auto":
                options["settings"]["n-init"] = n_init
            options["ordered"] = True
            if self.random_state is not None:
                options["seed"] = int(random.randint(np.iinfo(np.int32).max))
            return _library.fit(engine, [source], {**prepare, **options}, weights), None
        if isinstance(self.init, str) and self.init != "random" or not (isinstance(self.init, str) or callable(self.init) or hasattr(self.init, "__len__") or hasattr(self.init, "__array__")):
            raise ValueError(f"init: is {self.init!r}: choose k-means++, k-means||, random, an array of centres, or a callable")
        given = not (isinstance(self.init, str) or callable(self.init))
        if X is None and not given:
            raise ValueError("init: is not k-means++ for an Arrow table: convert the table to an array first")
        starts = 1 if given else 10 if n_init == "auto" and self.init == "random" else 1 if n_init == "auto" else n_init
        if given and n_init not in ("auto", 1):
            warnings.warn("n_init is not used: the first centres are given", RuntimeWarning, stacklevel=4)
        # One start is one call, and several are calls for records that were read once.
        records = _library.Records(engine, [source], prepare, weights) if starts > 1 else None
        best, least = None, math.inf
        for _ in range(starts):
            start = check_array(_unmasked(self._start(X, options["k"], random), "init"), dtype=np.float64, input_name="init")
            columns = source.data.columns or start.shape[1]
            if start.shape != (options["k"], columns):
                raise ValueError(f"init: has the shape {start.shape}, must have ({options['k']}, {columns})")
            from_here = {**options, "ordered": not given, "start": start.tolist(), "seed": 0}
            if records is None:
                return _library.fit(engine, [source], {**prepare, **from_here}, weights), None
            model = records.fit(from_here)
            inertia = json.loads(model.json())["inertia"]
            if best is None or inertia < least:
                best, least = model, inertia
        assert best is not None
        return best, None

    def _start(self, X: Any, k: int, random: np.random.RandomState) -> Any:
        if isinstance(self.init, str):
            return X[random.permutation(len(X))[:k]]
        if callable(self.init):
            return self.init(X, k, random_state=random)
        return self.init


class _Private(_Cohort):
    """What the estimators with a budget share."""

    epsilon: Optional[float]
    delta: Optional[float]
    bounds: Bounds
    method: Optional[str]
    settings: Optional[dict[str, Any]]
    random_state: Any

    def _budget(self) -> dict[str, Any]:
        options: dict[str, Any] = {
            "k": _integer("n_clusters", self.n_clusters, 1),
            "method": self.method,
            "settings": dict(self.settings or {}),
            **_spread(self.bounds),
        }
        if self.epsilon is not None:
            options["epsilon"] = _real("epsilon", self.epsilon, 0, above=True)
            if self.bounds is None:
                warnings.warn(
                    "Bounds have not been specified and will be calculated on the data provided. This will result in "
                    "additional privacy leakage. To ensure differential privacy and no additional privacy leakage, specify "
                    "`bounds` for each dimension.",
                    PrivacyLeakWarning,
                    stacklevel=3,
                )
        if self.delta is not None:
            options["delta"] = _real("delta", self.delta, 0)
            options["pure"] = options["delta"] == 0
        if self.random_state is not None:
            if self.epsilon is not None:
                warnings.warn("random_state makes the noise reproducible: this is a simulation, which is not private", PrivacyLeakWarning, stacklevel=3)
            options["seed"] = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        return options

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())  # a copy of what the object itself goes on with
        if self.epsilon is not None:  # what is pickled goes to others, and no budget covers the labels
            state.pop("labels_", None)
        return state

    def _estimate(self, said: dict[str, Any]) -> None:
        exact = said.get("inertia")
        self.inertia_ = exact if exact is not None else said.get("inertia_estimate")


class PrivateKMeans(_Private):
    """Differentially private k-means of one table.

    The centres, sizes and ``inertia_`` are private; ``labels_``, ``predict`` and ``score`` are computed from the
    records by who holds them, and no budget covers them. Pickles and deep copies leave ``labels_`` out.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    epsilon : float, default=1.0
        The privacy budget of the fit.
    delta : float or None, default=None
        The probability with which the guarantee may fail; None for 1/(n ln n), 0 for a pure guarantee.
    bounds : tuple (lower, upper) or None, default=None
        Public bounds of the columns: two numbers, or two arrays with one for each column. Without them they are
        taken from the data, which no budget covers, with a warning.
    method : str or None, default=None
        A name of :func:`methods` that serves one table; None for "hybrid".
    settings : dict or None, default=None
        Options of the method, by name.
    scale_columns : bool, default=True
        Map each column from its own bounds to [-1, 1] before distances are taken. False maps all by the widest
        one's, so that distances are those of the data's own units.
    ledger : str, path or None, default=None
        A ledger file that the fit is charged to: a fit that its budget cannot pay raises :class:`BudgetError`.
    ledger_budget : tuple (epsilon, delta) or None, default=None
        The budget of a new ledger file; None for that of the first fit.
    composition : {"basic", "zcdp", "gdp", "rdp"} or None, default=None
        How a new ledger file adds up fits; None for "basic".
    weight_cap : float, default=1.0
        The public most that a record may weigh, for fits with ``sample_weight``: a heavier one counts as that, and
        the noise hides so much.
    random_state : int, RandomState instance or None, default=None
        Makes the fit a simulation: reproducible, hence not private. None for real noise.
    n_threads : int or None, default=None
        The number of threads; None for all cores. Results do not depend on it.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres.
    labels_ : ndarray of shape (n_samples,), dtype int32
        The cluster of each record, which no budget covers.
    inertia_ : float or None
        The sum of squared distances, in the units of ``transform``, as estimated from what was released: rough where
        records are few or the cells of the synopsis much wider than clusters (mostly within a factor of two). None
        where the method releases nothing to estimate it from.
    sizes_ : ndarray of shape (n_clusters,) or None
        Noisy sizes of the clusters, where the method releases some.
    n_iter_ : int
        The number of rounds.
    ledger_ : Ledger
        What was released, and what it costs.
    n_features_in_ : int
        The number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        The names of the columns, where they have some.

    Examples
    --------
    >>> import numpy as np
    >>> from cohort_kmeans import PrivateKMeans
    >>> X = np.random.default_rng(0).uniform(0, 100, size=(5000, 2))
    >>> model = PrivateKMeans(4, epsilon=1, bounds=(0, 100)).fit(X)
    >>> model.ledger_.total()[0] <= 1
    True
    """

    _left_out = {
        "check_clustering": "50 records at epsilon 1 are mostly noise: whether the groups survive is chance",
        "check_sample_weights_invariance": "a fit with weights pays for their total, and has noise of its own",
        "check_sample_weight_equivalence_on_dense_data": "the same, as it is called since scikit-learn 1.6",
        "check_all_zero_sample_weights_error": "a refusal would tell that all weights are 0",
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: Optional[float] = None,
        bounds: Bounds = None,
        method: Optional[str] = None,
        settings: Optional[dict[str, Any]] = None,
        scale_columns: bool = True,
        ledger: Any = None,
        ledger_budget: Optional[tuple[float, float]] = None,
        composition: Optional[str] = None,
        weight_cap: float = 1.0,
        random_state: Any = None,
        n_threads: Optional[int] = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.method = method
        self.settings = settings
        self.scale_columns = scale_columns
        self.ledger = ledger
        self.ledger_budget = ledger_budget
        self.composition = composition
        self.weight_cap = weight_cap
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "PrivateKMeans":
        """Cluster records within the budget.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The records, also a table that exports the Arrow C stream interface.
        y : Ignored
            Not used.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the records, as private as they are, up to ``weight_cap``. Whether there are some is public; a
            fit with weights pays for their total, so it is another one than a fit without, even where all are 1.

        Returns
        -------
        self : PrivateKMeans
        """
        if self.epsilon is None:
            raise ValueError("epsilon: is None: give a budget, or use KMeans")
        options = self._budget()
        options["one_scale"] = not self.scale_columns
        for name in ("ledger_budget", "composition"):
            if self.ledger is None and getattr(self, name) is not None:
                raise ValueError(f"{name}: is given without a ledger file, so that nothing adds up what fits cost: give ledger, too")
        if self.ledger is not None:
            epsilon, delta = _pair(self.ledger_budget)
            terms = {"path": _path("ledger", self.ledger), "epsilon": epsilon, "delta": delta, "composition": self.composition}
            options["ledger"] = {name: value for name, value in terms.items() if value is not None}
        source, array = self._source(X, reset=True)
        # Under a public number of records a refusal would tell that there are fewer.
        if array is not None and options["k"] > len(array) and "public-n" not in options["settings"]:
            raise ValueError(f"n_samples={len(array)} should be >= n_clusters={options['k']}.")
        if array is not None and len(array) == 1 and self.bounds is None:
            raise ValueError("bounds: cannot be taken from n_samples=1: give public ones")
        weights = None
        if sample_weight is not None:
            if array is None:
                raise ValueError("sample_weight: is given for an Arrow table: convert the table to an array first")
            weights = _check_weights(sample_weight, len(array))  # all may be 0: a refusal would tell it
            options["settings"]["weight-cap"] = _real("weight_cap", self.weight_cap, 0)
        said = self._take(_library.fit(self._engine(), [source], options, weights), source.dtype, array is None)
        self._estimate(said)
        return self


class FederatedKMeans(_Private):
    """K-means of records that several clients hold, none of which shows them to the others.

    The clients and the server run in this process, as in a simulation, over the same messages as between machines.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    epsilon : float or None, default=None
        The privacy budget of the fit; None for k-means over masked sums without noise.
    delta : float or None, default=None
        The probability with which the guarantee may fail; None for the method's default, 0 for a pure guarantee.
    bounds : tuple (lower, upper) or None, default=None
        Public bounds of the columns, as in :class:`PrivateKMeans`.
    method : str or None, default=None
        A name of :func:`methods` over rows; None for "fastlloyd" with a budget and "lloyd" without.
    settings : dict or None, default=None
        Options of the method, by name, such as ``{"noise": "split"}``.
    random_state : int, RandomState instance or None, default=None
        Makes the fit a simulation: reproducible, hence not private.
    n_threads : int or None, default=None
        The number of threads; None for all cores.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres, which all clients see.
    labels_ : list of ndarray
        The cluster of each record, for each client: each computes its own.
    inertia_ : float or None
        The sum of squared distances without a budget; with one its estimate, None where there is none. In the units
        of ``transform``.
    n_iter_ : int
        The number of rounds.
    ledger_ : Ledger
        What was released to whom, and what it costs.
    n_features_in_ : int
        The number of columns.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: Optional[float] = None,
        delta: Optional[float] = None,
        bounds: Bounds = None,
        method: Optional[str] = None,
        settings: Optional[dict[str, Any]] = None,
        random_state: Any = None,
        n_threads: Optional[int] = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.method = method
        self.settings = settings
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, X: Sequence[Any], y: Any = None) -> "FederatedKMeans":
        """Cluster the records of all clients.

        Parameters
        ----------
        X : list of array-like of shape (n_samples_i, n_features)
            The records of each client.
        y : Ignored
            Not used.

        Returns
        -------
        self : FederatedKMeans
        """
        options = self._budget()
        if options["method"] is None and self.epsilon is not None:
            options["method"] = "fastlloyd"
        _check_holders(options["method"], "rows")
        parts = _holders(X, "client")
        sources, sizes = [], []
        for i, part in enumerate(parts):
            source, array = self._source(_from_arrow(part), reset=i == 0)
            sources.append(source)
            sizes.append(len(array))
        said = self._take(_library.fit(self._engine(), sources, options), np.float64)
        self.labels_ = np.split(self.labels_, np.cumsum(sizes)[:-1])
        self._estimate(said)
        return self


class VerticalKMeans(_Private):
    """K-means of records whose columns are held by several parties.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    epsilon : float or None, default=1.0
        The privacy budget of the fit; None for "vertical-plain", which has none.
    delta : float or None, default=None
        The probability with which the guarantee may fail; None for the method's default.
    bounds : tuple (lower, upper) or None, default=None
        Public bounds of all columns, those of the first party first.
    method : str or None, default=None
        A name of :func:`methods` over columns; None for "sketch".
    settings : dict or None, default=None
        Options of the method, by name.
    random_state : int, RandomState instance or None, default=None
        Makes the fit a simulation: reproducible, hence not private.
    n_threads : int or None, default=None
        The number of threads; None for all cores.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres, with the columns of the first party first.
    labels_ : ndarray of shape (n_samples,), dtype int32
        The cluster of each record, which takes the columns of all parties: no budget covers it.
    inertia_ : float or None
        As in :class:`FederatedKMeans`.
    n_iter_ : int
        The number of rounds.
    ledger_ : Ledger
        What was released to whom, and what it costs.
    n_features_in_ : int
        The number of columns of all parties.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: Optional[float] = 1.0,
        delta: Optional[float] = None,
        bounds: Bounds = None,
        method: Optional[str] = None,
        settings: Optional[dict[str, Any]] = None,
        random_state: Any = None,
        n_threads: Optional[int] = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.method = method
        self.settings = settings
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, X: Sequence[Any], y: Any = None) -> "VerticalKMeans":
        """Cluster records by the columns of all parties.

        Parameters
        ----------
        X : list of array-like of shape (n_samples, n_features_i)
            The columns of each party, of the same records in the same order.
        y : Ignored
            Not used.

        Returns
        -------
        self : VerticalKMeans
        """
        options = self._budget()
        if options["method"] is None:
            options["method"] = "sketch" if self.epsilon is not None else "vertical-plain"
        _check_holders(options["method"], "columns")
        options["holders"] = "columns"
        parts = _holders(X, "party")
        arrays = [
            check_array(_unmasked(p, f"party {i + 1}"), dtype=[np.float64, np.float32], input_name=f"party {i + 1}", **_NOT_FINITE)
            for i, p in enumerate(parts)
        ]
        model = _library.fit(self._engine(), [_library.matrix(a) for a in arrays], options)
        said = self._take(model, np.float64)
        self.n_features_in_ = model.columns
        self._estimate(said)
        return self

    def _whole(self, X: Any) -> Any:
        """X of all parties: a list of their columns is joined."""
        if isinstance(X, (list, tuple)) and X and all(getattr(p, "ndim", 0) == 2 for p in X):
            return np.hstack([np.asarray(_unmasked(p)) for p in X])
        return X

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each record.

        Parameters
        ----------
        X : list of array-like of shape (n_samples, n_features_i), or array-like with the columns of all
            New records.

        Returns
        -------
        labels : ndarray of shape (n_samples,), dtype int32
        """
        return super().predict(self._whole(X))

    def transform(self, X: Any) -> np.ndarray:
        """The distance of each record to each centroid, as in :meth:`PrivateKMeans.transform`.

        Parameters
        ----------
        X : list of array-like of shape (n_samples, n_features_i), or array-like with the columns of all
            New records.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
        """
        return super().transform(self._whole(X))


def _check_holders(method: Optional[str], holds: str) -> None:
    """Refuse a method for other holders, which would work on one table of the records of all."""
    held = {m["name"]: m["holds"] for m in _library.methods()}
    if held.get(method, holds) != holds:
        fitting = ", ".join(name for name, by in held.items() if by == holds)
        raise ValueError(f"method: {method} is for {held[method]}, and holders here have {holds}: choose one of {fitting}")


def _holders(X: Any, who: str) -> list[Any]:
    """The records of each holder."""
    if not isinstance(X, (list, tuple)) or not X:
        raise ValueError(f"X: is no list of the records of each {who}: give a list of arrays")
    return list(X)
