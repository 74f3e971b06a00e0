"""The task without privacy, in Cohort: the import has changed."""

import numpy as np
from cohort_kmeans import KMeans

rng = np.random.default_rng(1)
X = np.vstack([rng.normal(m, 4, size=(3000, 2)) for m in ((20, 70), (50, 30), (80, 60))]).clip(0, 100)
model = KMeans(n_clusters=3, n_init=10, random_state=0).fit(X)
print("centres:", model.cluster_centers_.round().tolist())
print("inertia:", round(model.inertia_))
print("cluster of (75, 65):", model.predict([[75, 65]])[0])
