class MaskedClient:
    def __init__(self, index, values, params):
        self.values, self.params = values, params

    def step(self, params):
        return self.values.sum(axis=0), len(self.values), 0

    def update(self, total, count):
        assert count == self.params.data_size
        if self.params.seed == 99:
            raise ValueError("a failure\nof two lines")
