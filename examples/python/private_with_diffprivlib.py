"""The task with a privacy budget, in diffprivlib."""

import numpy as np
from diffprivlib.models import KMeans

rng = np.random.default_rng(1)
X = np.vstack([rng.normal(m, 4, size=(3000, 2)) for m in ((20, 70), (50, 30), (80, 60))]).clip(0, 100)
model = KMeans(n_clusters=3, epsilon=1.0, bounds=(0, 100)).fit(X)
print("centres:", model.cluster_centers_.round().tolist())
print("inertia:", round(model.inertia_))  # computed from the records
print("cluster of (75, 65):", model.predict([[75, 65]])[0])
