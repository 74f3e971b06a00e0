"""The C library by ctypes: handles, errors, cancelling, forks."""

from __future__ import annotations

import ctypes
import json
import os
import sys
import threading
import weakref
from concurrent import futures
from pathlib import Path
from typing import Any, Callable, Optional, Sequence

import numpy as np

ABI_VERSION = 1

OK, FAILED, WRONG_REQUEST, BUDGET, CANCELLED, BAD_HANDLE, FORKED = range(7)
FLOAT32, FLOAT64, ARROW_STREAM, FILE = range(1, 5)


class CohortError(RuntimeError):
    """A fit failed: the machine, a file."""


class LibraryError(CohortError):
    """The C library is missing, or of another version than this package."""


class ForkError(CohortError):
    """This process was forked after the library was loaded, and has none of its threads."""


class BudgetError(ValueError):
    """A privacy budget cannot pay for what was asked."""


class PrivacyLeakWarning(RuntimeWarning):
    """Something that no privacy budget covers is used or shown."""


class Call(ctypes.Structure):
    """struct cohort_call."""

    PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    _fields_ = [
        ("cancel", ctypes.POINTER(ctypes.c_int32)),
        ("progress", PROGRESS),
        ("user", ctypes.c_void_p),
        ("status", ctypes.c_int32),
        ("text", ctypes.c_char * 1020),
    ]


class Data(ctypes.Structure):
    """struct cohort_data."""

    _fields_ = [
        ("kind", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        ("data", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("columns", ctypes.c_int64),
        ("row_stride", ctypes.c_int64),
        ("column_stride", ctypes.c_int64),
        ("names", ctypes.POINTER(ctypes.c_char_p)),
    ]


_forked = False


def _note_fork() -> None:
    global _forked
    _forked = True


def _find() -> str:
    """The path of the library: COHORT_LIBRARY, or the one in this package."""
    if given := os.environ.get("COHORT_LIBRARY"):
        return given
    name = {"darwin": "libcohort.dylib", "win32": "cohort.dll"}.get(sys.platform, "libcohort.so")
    return str(Path(__file__).with_name(name))


def _load(path: str) -> ctypes.CDLL:
    try:
        lib = ctypes.CDLL(path)
        lib.cohort_abi_version.restype = ctypes.c_uint32
        found = lib.cohort_abi_version()
    except (OSError, AttributeError) as e:
        raise LibraryError(
            f"library: {path} cannot be loaded ({e}): install the wheel, or name the library in COHORT_LIBRARY"
        ) from None
    if found != ABI_VERSION:
        raise LibraryError(
            f"library: {path} has interface {found} and this package knows {ABI_VERSION}: install both of one version"
        )
    handle, call, text = ctypes.c_void_p, ctypes.POINTER(Call), ctypes.c_char_p
    out, data = ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(Data)
    shapes = ctypes.POINTER(ctypes.c_int64)
    for name, arguments in {
        "methods": [out, call],
        "engine_new": [ctypes.c_int32, out, call],
        "prepare": [handle, data, ctypes.c_int32, handle, text, call, out],
        "fit_records": [handle, handle, text, call, out],
        "fit": [handle, data, ctypes.c_int32, handle, text, call, out],
        "model_shape": [handle, shapes, shapes, shapes],
        "model_centroids": [handle, handle, ctypes.c_int64],
        "model_labels_view": [handle, out],
        "model_json": [handle, out, call],
        "model_load": [text, call, out],
        "predict": [handle, handle, data, handle, handle, call],
    }.items():
        function = getattr(lib, "cohort_" + name)
        function.argtypes, function.restype = arguments, ctypes.c_int32
    for name in ("free", "engine_free", "records_free", "model_free"):
        function = getattr(lib, "cohort_" + name)
        function.argtypes, function.restype = [handle], None
    lib.cohort_version.restype = ctypes.c_char_p
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_note_fork)
    return lib


_loaded: Optional[ctypes.CDLL] = None
_lock = threading.Lock()


def library() -> ctypes.CDLL:
    """The library, which is loaded when it is first used."""
    global _loaded
    if _forked and _loaded is not None:
        raise ForkError(
            "library: this process was forked after it was loaded, and has none of its threads: "
            "start processes by spawn, or use it in the child alone"
        )
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load(_find())
    return _loaded


def library_version() -> str:
    """The version of the C library, such as ``"0.1.0"``."""
    return library().cohort_version().decode()


def methods() -> list[dict[str, Any]]:
    """All methods by name: what they are, who holds what, their options and defaults."""
    out = ctypes.c_void_p()
    call = Call()
    _check(library().cohort_methods(ctypes.byref(out), ctypes.byref(call)), call)
    return json.loads(_take(out))


def _take(text: ctypes.c_void_p) -> str:
    """What a function returned as char *, which is freed."""
    try:
        return ctypes.string_at(text.value).decode()
    finally:
        library().cohort_free(text)


def _check(status: int, call: Optional[Call] = None, memory: bool = False) -> None:
    """Raise what a status stands for. Faults of data in memory are those of the argument."""
    if status == OK:
        return
    text = call.text.decode() if call is not None else "a handle is refused"
    text = text.replace("+Inf", "inf").replace("-Inf", "-inf")
    if status == BUDGET:
        raise BudgetError(text)
    if status == WRONG_REQUEST or status == FAILED and memory:
        raise ValueError(text)
    if status == FORKED:
        raise ForkError(text)
    raise CohortError(text)


# One thread for calls of the main thread, which stays free to be interrupted meanwhile.
_aside: Optional[futures.ThreadPoolExecutor] = None


def _run(function: Callable[..., int], *arguments: Any, call: Call) -> int:
    """Call the library so that Ctrl-C ends it: signals are handled by the main thread alone, and only between
    its own instructions."""
    global _aside
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    if _aside is None:
        _aside = futures.ThreadPoolExecutor(1, thread_name_prefix="cohort")
    cancel = ctypes.c_int32(0)
    call.cancel = ctypes.pointer(cancel)
    try:
        future: futures.Future[int] = _aside.submit(function, *arguments)
        while True:  # a signal that another thread of the process was given does not wake this one
            try:
                return future.result(timeout=0.1)
            except futures.TimeoutError:
                continue
    except BaseException:
        cancel.value = 1
        while _aside is not None:  # the memory is borrowed until the call has returned
            try:
                _aside.shutdown()
                _aside = None
            except BaseException:  # one more Ctrl-C
                continue
        raise


def _options(options: dict[str, Any]) -> bytes:
    return json.dumps({k: v for k, v in options.items() if v is not None}).encode()


class Engine:
    """Worker threads, shared by all estimators that ask for as many."""

    _all: dict[int, "Engine"] = {}

    def __init__(self, workers: int) -> None:
        out, call = ctypes.c_void_p(), Call()
        _check(library().cohort_engine_new(workers, ctypes.byref(out), ctypes.byref(call)), call)
        self.handle = out.value

    @classmethod
    def of(cls, workers: Optional[int]) -> "Engine":
        library()
        n = 0 if workers is None else workers
        engine = cls._all.get(n)
        if engine is None:
            if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 0:
                raise ValueError(f"n_threads: is {workers!r}, must be a number of threads, or None for all cores")
            with _lock:
                engine = cls._all.get(n) or cls._all.setdefault(n, cls(int(n)))
        return engine


class Source:
    """Records of one holder where they are: what keeps them alive, and struct cohort_data."""

    def __init__(self, data: Data, keep: Any, dtype: Any) -> None:
        self.data, self.keep, self.dtype = data, keep, dtype


def matrix(x: np.ndarray, names: Optional[Sequence[str]] = None) -> Source:
    """Describe an array. It is copied only where its layout or type leaves no choice."""
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float32 if x.dtype.itemsize <= 2 and x.dtype.kind in "iufb" else np.float64)
    size = x.dtype.itemsize
    if not x.dtype.isnative or not x.flags.aligned or any(s % size for s in x.strides):
        x = np.array(x, dtype=x.dtype.newbyteorder("="), order="C")
    texts = None
    if names is not None:
        texts = (ctypes.c_char_p * len(names))(*[str(n).encode() for n in names])
    kind = FLOAT32 if size == 4 else FLOAT64
    rows, columns = x.shape
    data = Data(kind, 0, x.__array_interface__["data"][0], rows, columns, x.strides[0] // size, x.strides[1] // size, texts)
    return Source(data, (x, texts), x.dtype)


_capsule = ctypes.pythonapi.PyCapsule_GetPointer
_capsule.restype, _capsule.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def arrow(x: Any) -> Source:
    """Describe what exports the Arrow C stream interface, such as a table of polars or pyarrow."""
    stream = x.__arrow_c_stream__()
    pointer = _capsule(stream, b"arrow_array_stream")
    return Source(Data(ARROW_STREAM, 0, pointer, 0, 0, 0, 0, None), (x, stream), np.dtype(np.float64))


def _address(x: np.ndarray) -> int:
    """Where the numbers of an own array are, which ``x.ctypes.data`` says in three times the time."""
    return ctypes.addressof(ctypes.c_char.from_buffer(x)) if x.size else x.ctypes.data


def _array(sources: Sequence[Source]) -> Any:
    return (Data * len(sources))(*[s.data for s in sources])


def _weights(weights: Optional[np.ndarray]) -> Optional[int]:
    return None if weights is None else weights.ctypes.data


class Records:
    """Records that are ready to be clustered as often as wanted."""

    def __init__(self, engine: Engine, sources: Sequence[Source], options: dict[str, Any], weights: Optional[np.ndarray] = None) -> None:
        self.engine = engine
        out, call, lib = ctypes.c_void_p(), Call(), library()
        status = _run(
            lib.cohort_prepare, engine.handle, _array(sources), len(sources), _weights(weights), _options(options),
            ctypes.pointer(call), ctypes.pointer(out), call=call,
        )
        _check(status, call, memory=True)
        self.handle = out.value
        weakref.finalize(self, _free, lib.cohort_records_free, self.handle).atexit = False

    def fit(self, options: dict[str, Any]) -> "Model":
        out, call = ctypes.c_void_p(), Call()
        status = _run(
            library().cohort_fit_records, self.engine.handle, self.handle, _options(options),
            ctypes.pointer(call), ctypes.pointer(out), call=call,
        )
        _check(status, call, memory=True)
        return Model(out.value)


def fit(engine: Engine, sources: Sequence[Source], options: dict[str, Any], weights: Optional[np.ndarray] = None) -> "Model":
    """Read records and cluster them."""
    out, call = ctypes.c_void_p(), Call()
    status = _run(
        library().cohort_fit, engine.handle, _array(sources), len(sources), _weights(weights), _options(options),
        ctypes.pointer(call), ctypes.pointer(out), call=call,
    )
    _check(status, call, memory=True)
    return Model(out.value)


def _free(free: Any, handle: int) -> None:
    if not _forked:
        free(handle)


# Work (products of records, clusters and columns) below which a call is over before anybody could interrupt it.
_SHORT = 1 << 22


class Model:
    """What a fit has learned. It is pickled as JSON."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        weakref.finalize(self, _free, library().cohort_model_free, handle).atexit = False
        k, columns, rows = ctypes.c_int64(), ctypes.c_int64(), ctypes.c_int64()
        _check(library().cohort_model_shape(handle, k, columns, rows))
        self.k, self.columns, self.rows = k.value, columns.value, rows.value

    @classmethod
    def load(cls, text: str) -> "Model":
        out, call = ctypes.c_void_p(), Call()
        _check(library().cohort_model_load(text.encode(), ctypes.byref(call), ctypes.byref(out)), call)
        return cls(out.value)

    def __reduce__(self) -> Any:
        return Model.load, (self.json(),)

    def __deepcopy__(self, memo: Any) -> "Model":
        return Model.load(self.json())

    def json(self) -> str:
        out, call = ctypes.c_void_p(), Call()
        _check(library().cohort_model_json(self.handle, ctypes.byref(out), ctypes.byref(call)), call)
        return _take(out)

    def centroids(self) -> np.ndarray:
        c = np.empty((self.k, self.columns))
        _check(library().cohort_model_centroids(self.handle, c.ctypes.data, c.size))
        return c

    def labels(self) -> np.ndarray:
        """The labels where the library has them: their array keeps the model."""
        if self.rows == 0:
            return np.empty(0, dtype=np.int32)
        at = ctypes.c_void_p()
        _check(library().cohort_model_labels_view(self.handle, ctypes.byref(at)))
        memory = (ctypes.c_int32 * self.rows).from_address(at.value)
        memory.model = self
        return np.frombuffer(memory, dtype=np.int32)

    def predict(self, engine: Engine, source: Source, n: int, distances: bool = False) -> tuple[np.ndarray, Optional[np.ndarray]]:
        labels = np.empty(n, dtype=np.int32)
        x = np.empty(n) if distances else None
        call = Call()
        arguments = (
            engine.handle, self.handle, ctypes.byref(source.data), _address(labels),
            None if x is None else _address(x), ctypes.byref(call),
        )
        if n * self.k * self.columns < _SHORT:
            status = library().cohort_predict(*arguments)
        else:
            status = _run(library().cohort_predict, *arguments, call=call)
        _check(status, call, memory=True)
        return labels, x
