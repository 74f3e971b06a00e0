"""The task with a privacy budget, in Cohort: what was released stands in the ledger."""

import numpy as np
from cohort_kmeans import PrivateKMeans

rng = np.random.default_rng(1)
X = np.vstack([rng.normal(m, 4, size=(3000, 2)) for m in ((20, 70), (50, 30), (80, 60))]).clip(0, 100)
model = PrivateKMeans(n_clusters=3, epsilon=1.0, bounds=(0, 100)).fit(X)
print("centres:", model.cluster_centers_.round().tolist())
print("epsilon, delta of an outsider's view:", model.ledger_.total())
print("cluster of (75, 65):", model.predict([[75, 65]])[0])
