"""Clients that check the order of the driver's calls, for its test."""


class MaskedClient:
    def __init__(self, index, values, params):
        assert values.dtype == "int32" and values.shape[1] == params.dim
        self.index, self.values, self.params, self.associated, self.updates = index, values, params, False, 0

    def compute_assoc(self):
        self.associated = True

    def step_centroid(self):
        assert self.associated and self.params.dp_release == "centroid"
        assert self.params.min_cluster > 0 and self.params.assignment == "constrained"
        self.associated = False
        return self.values.sum(axis=0)

    def step_sumcount(self):
        assert self.associated and self.params.dp_release == "sumcount"
        self.associated = False
        return self.values.sum(axis=0), len(self.values)

    def update_centroids_centroid(self, centroids):
        assert len(centroids) == self.params.dim

    def update_centroids_sumcount(self, total, count):
        assert count == self.params.data_size, "some records are not there"
