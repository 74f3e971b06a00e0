"""Times beside scikit-learn's, interleaved in one process: medians of wall and CPU time, and their ratios.

    make wheel && COHORT_LIBRARY=bin/libcohort.so PYTHONPATH=python python3 python/bench.py [--quick] [--threads N]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
import warnings

import numpy as np


def rest():
    """Waits, a second at most, until no thread of this process spins: those of OpenMP and BLAS do for some
    milliseconds after their last work, on cores that who is timed next would lack."""
    for _ in range(200):
        cpu = time.process_time()
        time.sleep(0.005)
        if time.process_time() - cpu < 0.0005:
            return


def measure(functions, runs):
    """Median seconds of each function, run in turn, each after a rest: (wall, CPU of all threads)."""
    times = [([], []) for _ in functions]
    for f in functions:
        f()  # once for caches and threads
    for _ in range(runs):
        for f, (wall, cpu) in zip(functions, times):
            rest()
            begin = time.perf_counter(), time.process_time()
            f()
            wall.append(time.perf_counter() - begin[0])
            cpu.append(time.process_time() - begin[1])
    return [(statistics.median(wall), statistics.median(cpu)) for wall, cpu in times]


def data(n, d, k, dtype=np.float32):
    rng = np.random.default_rng(n + d)
    centers = rng.uniform(-1, 1, size=(k, d))
    X = centers[rng.integers(k, size=n)] + rng.normal(0, 0.3, size=(n, d))
    return np.ascontiguousarray(X, dtype=dtype)


def row(name, goal, ours, theirs):
    cells = "".join(f" {1e3 * a:8.1f} {1e3 * b:8.1f} {b / a:6.2f}x" for a, b in zip(ours, theirs))
    print(f"{name:52s}{cells}  {goal}", flush=True)


def peak(X, code):
    """Most memory that a fit adds to a process that holds X, in bytes: measured in a process of its own."""
    import subprocess
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.npy")
        np.save(path, X)
        program = f"""
import threading, numpy as np
from cohort_kmeans import KMeans
X = np.load({path!r})
KMeans(2, init=X[:2], max_iter=1).fit(X[:1000])  # the library with its threads
def anonymous():
    return sum(int(l.split()[1]) << 10 for l in open("/proc/self/status") if l.startswith("RssAnon"))
most, over = [0], threading.Event()
def watch():
    while not over.wait(0.0005):
        most[0] = max(most[0], anonymous())
before = anonymous()
t = threading.Thread(target=watch)
t.start()
{code}
over.set()
t.join()
print(most[0] - before)
"""
        out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True,
                             env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
        return int(out.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer runs, and the smaller sets")
    parser.add_argument("--threads", type=int, default=None, help="threads of both (default: all cores)")
    arguments = parser.parse_args()

    import sklearn.cluster
    from threadpoolctl import threadpool_limits

    from cohort_kmeans import KMeans, PrivateKMeans

    threads = arguments.threads or os.cpu_count()
    runs = 3 if arguments.quick else 7
    print(f"{threads} threads, medians of {runs} interleaved runs, in milliseconds; load {os.getloadavg()[0]:.1f}")
    print(f"{'':52s} wall: ours, scikit-learn {sklearn.__version__}; CPU: the same; goal of the ratio")
    warnings.simplefilter("ignore")
    cases = [(100_000, 10, 20, ">= 4.5"), (1_000_000, 16, 64, ">= 6"), (70_000, 784, 10, ">= 3.5")]
    with threadpool_limits(limits=threads):
        for n, d, k, goal in cases[: 1 if arguments.quick else 3]:
            X = data(n, d, k)
            start = X[:k].copy()

            def ours():
                return KMeans(k, init=start, max_iter=20, tol=0, n_threads=threads).fit(X)

            def theirs():
                return sklearn.cluster.KMeans(k, init=start, n_init=1, max_iter=20, tol=0, algorithm="lloyd").fit(X)

            a, b = ours(), theirs()
            assert abs(a.inertia_ - b.inertia_) < 1e-3 * b.inertia_, (a.inertia_, b.inertia_)
            row(f"{n} x {d}, k={k}, {a.n_iter_} rounds, same start", goal, *measure([ours, theirs], runs if n < 1e6 else 3))
        X = data(100_000, 10, 20)
        row("the same with k-means++, one start each", "", *measure([
            lambda: KMeans(20, n_init=1, max_iter=20, tol=0, random_state=0, n_threads=threads).fit(X),
            lambda: sklearn.cluster.KMeans(20, n_init=1, max_iter=20, tol=0, random_state=0).fit(X)], runs))
        model, peer = KMeans(20, random_state=0, n_init=1, n_threads=threads).fit(X), sklearn.cluster.KMeans(20, n_init=1, random_state=0).fit(X)
        row("labels of 100000 x 10, k=20", "", *measure([lambda: model.predict(X), lambda: peer.predict(X)], 3 * runs))
        ((private, cpu),) = measure([lambda: PrivateKMeans(20, epsilon=1, bounds=(-3, 3), n_threads=threads).fit(X)], runs)
        print(f"{'PrivateKMeans of 100000 x 10, k=20':52s} {1e3 * private:9.1f} wall {1e3 * cpu:9.1f} CPU  < 60 ms")
    from cohort_kmeans import _library

    engine, source = _library.Engine.of(threads), _library.matrix(X[:1])
    ((call, _),) = measure([lambda: [model._model.predict(engine, source, 1) for _ in range(1000)]], runs)
    print(f"{'overhead of a call: labels of one record':52s} {1e3 * call:9.1f} us  < 20")
    for n, d, k in ((1_000_000, 10, 20), (70_000, 784, 10))[: 1 if arguments.quick else 2]:
        X = data(n, d, k)
        for name, code in (("given start", f"KMeans({k}, init=X[:{k}], max_iter=20, tol=0).fit(X)"), ("k-means++", f"KMeans({k}, n_init=1, max_iter=20, tol=0).fit(X)")):
            print(f"{f'memory beside X of {n} x {d}, {name}':52s} {peak(X, code) / X.nbytes:9.2f} of X  < 1.3")


if __name__ == "__main__":
    main()
