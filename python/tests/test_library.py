"""Interrupts, forks, other versions, threads, Arrow."""

import ctypes
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy as np
import pytest

from cohort_kmeans import FederatedKMeans, KMeans, LibraryError, PrivateKMeans, _library, library_version


def script(text, **environment):
    """Run a program of its own, which must end by itself."""
    path = os.pathsep.join(sys.path)
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)], env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True, text=True, timeout=120,
    )


def interrupt_process():
    os.kill(os.getpid(), signal.SIGINT)


def interrupt_thread():
    """The signal's handler runs on this thread, as any thread of a process may be given its signals."""
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)


@pytest.mark.parametrize("interrupt", [interrupt_process, interrupt_thread])
def test_interrupt_ends_a_fit_and_the_library_goes_on(blobs, interrupt):
    # A shell starts what runs in its background with interrupts ignored, and Python leaves that so.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        fit_and_interrupt(blobs, interrupt)
    finally:
        signal.signal(signal.SIGINT, before)


def fit_and_interrupt(blobs, interrupt):
    X = np.random.default_rng(0).uniform(size=(400_000, 8))
    slow = KMeans(300, init="k-means++", n_init=50, max_iter=100_000, tol=0)
    timer = threading.Timer(0.5, interrupt)
    timer.start()
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        slow.fit(X)
    assert time.monotonic() - begin < 30
    assert not hasattr(slow, "labels_")
    assert len(KMeans(3, random_state=0).fit(blobs[0]).labels_) == 6000


def test_fork_gives_one_clear_error():
    out = script("""
        import os, sys
        import numpy as np
        from cohort_kmeans import FederatedKMeans, KMeans, ForkError, _library
        X = np.random.default_rng(0).normal(size=(500, 2))
        m = KMeans(2).fit(X)
        pid = os.fork()
        if pid == 0:
            try:
                m.predict(X)
            except ForkError as e:
                print("in the child:", e, flush=True)
            out, call = _library.ctypes.c_void_p(), _library.Call()  # the library refuses by itself, too
            status = _library._loaded.cohort_engine_new(1, out, call)
            print("status", status, call.text.decode(), flush=True)
            del m
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        print("in the parent:", len(m.predict(X)))
    """)
    assert out.returncode == 0, out.stderr
    assert "in the child: library: this process was forked" in out.stdout
    assert "status 6 library: this process was forked" in out.stdout
    assert "in the parent: 500" in out.stdout


def test_load_after_fork_works():
    out = script("""
        import multiprocessing as mp
        import numpy as np
        import cohort_kmeans  # imported, but not used before the fork
        def work(seed):
            X = np.random.default_rng(seed).normal(size=(500, 2))
            return cohort_kmeans.KMeans(2, random_state=0).fit(X).inertia_
        with mp.get_context("fork").Pool(2) as pool:
            print(len(pool.map(work, range(4))))
    """)
    assert out.returncode == 0 and out.stdout.strip() == "4", out.stderr


def test_other_versions_and_missing_libraries(tmp_path):
    source = tmp_path / "other.c"
    source.write_text("unsigned cohort_abi_version(void) { return 99; }\n")
    other = tmp_path / "libother.so"
    if subprocess.run(["gcc", "-shared", "-fPIC", "-o", other, source], capture_output=True).returncode != 0:
        pytest.skip("a library of another version is made with gcc")
    with pytest.raises(LibraryError, match="has interface 99 and this package knows 1"):
        _library._load(str(other))
    with pytest.raises(LibraryError, match="cannot be loaded"):
        _library._load(str(tmp_path / "none.so"))
    assert library_version() == "0.1.0"


def test_threads(blobs):
    X, _ = blobs
    want = KMeans(4, random_state=2).fit(X).cluster_centers_
    found = []
    threads = [threading.Thread(target=lambda: found.append(KMeans(4, random_state=2).fit(X).cluster_centers_)) for _ in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 6 and all(np.array_equal(c, want) for c in found)


def test_handles_are_given_back(blobs):
    X = blobs[0][:500]
    m = KMeans(2, random_state=0).fit(X)
    handle = m._model.handle
    assert _library.library().cohort_model_shape(handle, None, None, None) == _library.OK
    del m
    assert _library.library().cohort_model_shape(handle, None, None, None) == _library.BAD_HANDLE


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


def _release(of):
    return ctypes.CFUNCTYPE(None, ctypes.POINTER(of))


Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))), ("dictionary", ctypes.c_void_p), ("release", _release(Schema)), ("private", ctypes.c_void_p),
]
Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.POINTER(ctypes.POINTER(Array))), ("dictionary", ctypes.c_void_p),
    ("release", _release(Array)), ("private", ctypes.c_void_p),
]
Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Stream), ctypes.POINTER(Array))),
    ("last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(Stream))), ("release", _release(Stream)), ("private", ctypes.c_void_p),
]


class Table:
    """A stand-in for a table of polars or pyarrow: columns in batches, lent by the Arrow C stream interface."""

    FORMATS = {"f": b"f", "d": b"g", "i": b"i", "h": b"s"}

    def __init__(self, names, batches):
        self.names, self.batches, self.released, self.keep = names, batches, 0, []

    def __arrow_c_stream__(self, requested_schema=None):
        left = iter(self.batches)

        def done(p):
            self.released += 1
            ctypes.memset(ctypes.addressof(p.contents) + type(p.contents).release.offset, 0, 8)

        ends = _release(Schema)(done), _release(Array)(done), _release(Stream)(done)

        def get_schema(_, out):
            kinds = [Schema(self.FORMATS[c.dtype.char], n.encode(), None, 0, 0, None, None, ends[0], None) for n, c in zip(self.names, self.batches[0])]
            pointers = (ctypes.POINTER(Schema) * len(kinds))(*map(ctypes.pointer, kinds))
            self.keep += [kinds, pointers]
            out[0] = Schema(b"+s", b"", None, 0, len(kinds), pointers, None, ends[0], None)
            return 0

        def get_next(_, out):
            columns = next(left, None)
            if columns is None:
                ctypes.memset(out, 0, ctypes.sizeof(Array))
                return 0
            arrays = []
            for c in columns:
                buffers = (ctypes.c_void_p * 2)(None, c.ctypes.data)
                arrays.append(Array(len(c), 0, 0, 2, 0, buffers, None, None, ends[1], None))
                self.keep.append(buffers)
            pointers = (ctypes.POINTER(Array) * len(arrays))(*map(ctypes.pointer, arrays))
            none = (ctypes.c_void_p * 1)()
            self.keep += [arrays, pointers, none]
            out[0] = Array(len(columns[0]), 0, 0, 1, len(arrays), none, pointers, None, ends[1], None)
            return 0

        kinds = dict(Stream._fields_)
        stream = Stream(kinds["get_schema"](get_schema), kinds["get_next"](get_next), kinds["last_error"](lambda _: b"no reason"), ends[2], None)
        self.keep += [stream, ends]
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(stream), b"arrow_array_stream", None)

    def __array__(self, dtype=None):
        return np.vstack([np.column_stack(b) for b in self.batches]).astype(dtype or np.float64)


def test_arrow(blobs):
    X, _ = blobs
    a, b, c = X[:, 0].astype(np.float32), X[:, 1].copy(), X[:, 2].round().astype(np.int32)
    cuts = [slice(0, 1000), slice(1000, 1000), slice(1000, 6000)]
    table = Table(["age", "height", "visits"], [(a[s], b[s], c[s]) for s in cuts])
    want = KMeans(3, random_state=0).fit(np.asarray(table))
    got = KMeans(3, random_state=0).fit(table)
    np.testing.assert_array_equal(got.cluster_centers_, want.cluster_centers_)
    np.testing.assert_array_equal(got.labels_, want.labels_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an array has no names
        np.testing.assert_array_equal(got.predict(table), want.labels_)
        np.testing.assert_array_equal(got.transform(table), want.transform(np.asarray(table)))
        assert got.score(table) == want.score(np.asarray(table))
    assert list(got.feature_names_in_) == ["age", "height", "visits"] and got.n_features_in_ == 3
    assert table.released == 5  # schema, three batches, stream
    parts = [Table(table.names, table.batches[:1]), Table(table.names, table.batches[1:])]
    f = FederatedKMeans(3, bounds=(0, 100)).fit(parts)
    assert [len(found) for found in f.labels_] == [1000, 5000]
    m = PrivateKMeans(3, epsilon=2, bounds=(0, 100)).fit(table)
    assert m.ledger_.total()[0] <= 2 and len(m.labels_) == 6000


class Lent:
    """What has the array interface alone."""

    def __init__(self, x):
        self.x, self.__array_interface__ = x, x.__array_interface__


def test_array_interface(blobs):
    X = blobs[0].astype(np.float32)
    np.testing.assert_array_equal(KMeans(3, random_state=0).fit_predict(Lent(X)), KMeans(3, random_state=0).fit_predict(X))


def test_examples_in_docstrings():
    import doctest

    from cohort_kmeans import _estimators

    assert doctest.testmod(_estimators).failed == 0


def test_labels_outlive_their_model():
    X = np.random.default_rng(0).normal(size=(5000, 3))
    model = KMeans(3, random_state=0).fit(X)
    labels, copy = model.labels_, model.labels_.copy()
    assert labels.base is not None and labels.flags.writeable and np.array_equal(labels, model.predict(X))
    del model
    for seed in range(20):  # takes memory that is free
        gc.collect()
        KMeans(3, random_state=seed).fit(X)
    assert np.array_equal(labels, copy)


def test_fits_collect_little_garbage():
    """Fits of small records leave some garbage: a collection stops the workers."""
    done = script(
        """
        import numpy as np
        from cohort_kmeans import KMeans, PrivateKMeans
        X = np.random.default_rng(0).uniform(-1, 1, size=(20000, 10)).astype(np.float32)
        for _ in range(5):
            KMeans(20, init=X[:20]).fit(X)
            PrivateKMeans(20, bounds=(-1, 1)).fit(X)
        """,
        GODEBUG="gctrace=1",
    )
    assert done.returncode == 0, done.stderr
    assert 1 <= sum(line.startswith("gc ") for line in done.stderr.splitlines()) <= 15, done.stderr
