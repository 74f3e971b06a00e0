"""Lloyd iterations and k-means of scikit-learn and FAISS.

usage: peers.py POINTS CENTROIDS n d k threads, with float32 files; then one request a
line on standard input: sklearn or faiss, answered by nanoseconds of CPU time of an
iteration, "faiss N", answered by those of N iterations, whose centroids (float64) are written beside POINTS, to "fit",
or "fit SEED", answered by nanoseconds of wall time of scikit-learn's
k-means from one start and of CPU time, whose centroids are written there, too; or, to all, by "absent". An iteration is the difference of runs of several and of one,
a share of it for each iteration more.
"""

import os
import sys
import time
import warnings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = sys.argv[6]
# BLAS chooses its kernel and its blocks by the machine that it runs on.
for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402


def sklearn_run(x, c, iterations):
    from sklearn.cluster import KMeans

    return KMeans(len(c), init=c, n_init=1, max_iter=iterations, tol=0, algorithm="lloyd").fit(x).n_iter_


def faiss_train(x, c, iterations):
    import faiss

    faiss.omp_set_num_threads(int(sys.argv[6]))
    km = faiss.Kmeans(x.shape[1], len(c), niter=iterations, nredo=1,
                      max_points_per_centroid=1 << 30, min_points_per_centroid=1, update_index=False)
    km.train(x, init_centroids=c)
    return km.centroids


def faiss_run(x, c, iterations):
    faiss_train(x, c, iterations)
    return iterations


def keep(centroids):
    """Writes centroids where the process that asks reads them."""
    centroids.astype(np.float64).tofile(os.path.join(os.path.dirname(sys.argv[1]), "fit"))


def fit(x, k, seed):
    from sklearn.cluster import KMeans

    model = KMeans(k, n_init=1, random_state=seed)
    start, cpu = time.perf_counter(), time.process_time()
    model.fit(x)
    taken = time.perf_counter() - start, time.process_time() - cpu
    rest()
    keep(model.cluster_centers_)
    return taken


def rest():
    """Waits, a second at most, until no thread of this process spins: those of OpenMP and BLAS do
    for some milliseconds after their last work, on cores that who is timed next would lack."""
    for _ in range(200):
        cpu = time.process_time()
        time.sleep(0.005)
        if time.process_time() - cpu < 0.0005:
            return


def main():
    n, d, k = (int(a) for a in sys.argv[3:6])
    x = np.fromfile(sys.argv[1], dtype=np.float32).reshape(n, d)
    c = np.fromfile(sys.argv[2], dtype=np.float32).reshape(-1, d)
    more = 4 if n * d * k > 1e10 else 21
    runs = {"sklearn": sklearn_run, "faiss": faiss_run}
    for line in sys.stdin:
        try:
            if line.startswith("fit"):
                print(*(int(taken * 1e9) for taken in fit(x, k, int(line.split()[1]))), flush=True)
                continue
            if line.startswith("faiss "):
                start = time.process_time()
                keep(faiss_train(x, c.copy(), int(line.split()[1])))
                print(int((time.process_time() - start) * 1e9), flush=True)
                continue
            run, taken, done = runs[line.strip()], [], []
            for iterations in (1, more):
                start = time.process_time()
                done.append(run(x, c.copy(), iterations))
                taken.append(time.process_time() - start)
            print(int((taken[1] - taken[0]) / (done[1] - done[0]) * 1e9), flush=True)
        except ImportError:
            print("absent", flush=True)


if __name__ == "__main__":
    main()
