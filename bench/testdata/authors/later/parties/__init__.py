from parties.client import MaskedClient  # noqa: F401


class Server:
    def __init__(self, params):
        print("noise on standard output")

    def step(self, totals, counts, params):
        return sum(totals), sum(counts)
