"""Params with the names that the driver sets, for its test: not the authors' code."""


class Params:
    def __init__(self, **given):
        self.__dict__.update(given)
        self.updated = -1

    def update_maxdist(self, round):
        assert round == self.updated + 1
        self.updated = round
