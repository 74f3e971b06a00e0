"""Rounds of the code that the papers' authors released, by its own clients and server.

usage: authors.py CHECKOUT; then one request a line on standard input:

    METHOD D K ROUNDS EPSILON SEED FILE ...

with a file of float32 records in [-1, 1] for each client. It is answered by the
nanoseconds of CPU time of each round, in one thread, or by "absent" and the reason. A round is what
the checkout's local protocol does in one: a step of each client, one of the server, and
the update of each client. CHECKOUT is one of D-Diaa/privateclustering (lloyd, sulloyd,
csulloyd, fastlloyd) or of its follow-up D-Diaa/FastLloyd (relative).
"""

import math
import os
import sys
import tempfile
import time
import warnings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["MPLBACKEND"] = "Agg"
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402

ALPHA = 1.25  # of the sizes of clusters, as the released experiments have it


def released(method, values, d, k, rounds, epsilon, seed):
    """Rounds of privateclustering: fastlloyd releases centroids, the others sums and counts."""
    from configs.params import Params
    from parties.clients import MaskedClient
    from parties.server import Server

    n, m = sum(len(v) for v in values), len(values)
    params = Params(num_clients=m, k=k, dim=d, data_size=n, iters=rounds, eps=epsilon, seed=seed,
                    dp="none" if method == "lloyd" else "laplace", cent_post="fold", max_dist=4 * d,
                    dp_release="centroid" if method == "fastlloyd" else "sumcount",
                    assignment="constrained" if method in ("fastlloyd", "csulloyd") else "unconstrained",
                    min_cluster=0, max_cluster=n)
    if params.assignment == "constrained":
        params.min_cluster = math.ceil(n / (ALPHA * k * m))
        params.max_cluster = math.floor(ALPHA * n / (k * m))
    clients = [MaskedClient(i, v, params) for i, v in enumerate(values)]
    server = Server(params)

    def by_centroids():
        sent = []
        for client in clients:
            client.compute_assoc()
            sent.append(client.step_centroid())
        centroids = server.step_centroid(sent)
        for client in clients:
            client.update_centroids_centroid(centroids)

    def by_sums():
        sums, counts = [], []
        for client in clients:
            client.compute_assoc()
            total, count = client.step_sumcount()
            sums.append(total)
            counts.append(count)
        total, count = server.step_sumcount(sums, counts)
        for client in clients:
            client.update_centroids_sumcount(total, count)

    return by_centroids if method == "fastlloyd" else by_sums


def follow_up(values, d, k, rounds, epsilon, seed):
    """Rounds of the follow-up."""
    from configs import Params
    from parties import MaskedClient, Server

    params = Params(num_clients=len(values), k=k, dim=d, data_size=sum(len(v) for v in values), iters=rounds,
                    eps=epsilon, seed=seed, dp="gaussiananalytic", method="diagonal_then_frac", post="fold")
    clients = [MaskedClient(i, v, params) for i, v in enumerate(values)]
    server = Server(params)
    done = 0

    def one():
        nonlocal done
        params.update_maxdist(done)
        sent = [client.step(params) for client in clients]
        total, count = server.step([s[0] for s in sent], [s[1] for s in sent], params)
        for client in clients:
            client.update(total, count)
        done += 1

    return one


def answer(request):
    from data_io.fixed import to_fixed

    method, d, k, rounds, epsilon, seed = request[:6]
    d, k, rounds, epsilon, seed = int(d), int(k), int(rounds), float(epsilon), int(seed)
    values = [to_fixed(np.fromfile(f, dtype=np.float32).reshape(-1, d).astype(np.float64)) for f in request[6:]]
    if method == "relative":
        one = follow_up(values, d, k, rounds, epsilon, seed)
    else:
        one = released(method, values, d, k, rounds, epsilon, seed)
    taken = []
    for _ in range(rounds):
        start = time.process_time_ns()
        one()
        taken.append(time.process_time_ns() - start)
    return taken


def main():
    out, sys.stdout = sys.stdout, sys.stderr  # the checkout prints
    sys.path.insert(0, os.path.abspath(sys.argv[1]))
    sys.dont_write_bytecode = True
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "data"))  # the follow-up lists it
        os.chdir(folder)
        for line in sys.stdin:
            try:
                print(*answer(line.split()), file=out, flush=True)
            except Exception as e:  # noqa: BLE001: whatever it is, ours goes on without
                print("absent", type(e).__name__ + ":", " ".join(str(e).split()), file=out, flush=True)


if __name__ == "__main__":
    main()
