import numpy as np


def to_fixed(values):
    return (values * 2 ** 16).astype(np.int32)
