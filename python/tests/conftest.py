import os
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
if os.environ.get("COHORT_INSTALLED") != "1":  # else the installed wheel is tested
    sys.path.insert(0, str(ROOT / "python"))
    os.environ.setdefault("COHORT_LIBRARY", str(ROOT / "bin" / "libcohort.so"))


@pytest.fixture
def blobs():
    """Three groups of 2000 records each in three columns, and their true labels."""
    rng = np.random.default_rng(5)
    centers = np.array([[10.0, 80.0, 30.0], [80.0, 20.0, 40.0], [40.0, 50.0, 90.0]])
    labels = np.repeat(np.arange(3), 2000)
    return centers[labels] + rng.normal(0, 3, size=(6000, 3)), labels
