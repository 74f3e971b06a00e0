"""Params with the names that the driver sets, for its test: not the authors' code."""


class Params:
    def __init__(self, **given):
        self.__dict__.update(given)
