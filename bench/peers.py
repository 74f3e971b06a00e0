"""Time of one Lloyd iteration of scikit-learn and FAISS on one thread.

usage: peers.py POINTS CENTROIDS n d k, with float32 files; then one name a line on
standard input (sklearn, faiss), each answered by nanoseconds of CPU time, or by
"absent". An iteration is half the difference of runs of three and of one.
"""

import os
import sys
import time
import warnings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402


def sklearn_run(x, c, iterations):
    from sklearn.cluster import KMeans

    KMeans(len(c), init=c, n_init=1, max_iter=iterations, tol=0, algorithm="lloyd").fit(x)


def faiss_run(x, c, iterations):
    import faiss

    faiss.omp_set_num_threads(1)
    km = faiss.Kmeans(x.shape[1], len(c), niter=iterations, nredo=1,
                      max_points_per_centroid=1 << 30, min_points_per_centroid=1, update_index=False)
    km.train(x, init_centroids=c)


def main():
    n, d, k = (int(a) for a in sys.argv[3:6])
    x = np.fromfile(sys.argv[1], dtype=np.float32).reshape(n, d)
    c = np.fromfile(sys.argv[2], dtype=np.float32).reshape(k, d)
    runs = {"sklearn": sklearn_run, "faiss": faiss_run}
    for line in sys.stdin:
        try:
            run, taken = runs[line.strip()], []
            for iterations in (1, 3):
                start = time.process_time()
                run(x, c.copy(), iterations)
                taken.append(time.process_time() - start)
            print(int((taken[1] - taken[0]) / 2 * 1e9), flush=True)
        except ImportError:
            print("absent", flush=True)


if __name__ == "__main__":
    main()
