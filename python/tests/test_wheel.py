"""The package as it is installed."""

import os
from pathlib import Path

import pytest

import cohort_kmeans
from cohort_kmeans import _library


def test_uses_its_own_library():
    if os.environ.get("COHORT_INSTALLED") != "1":
        pytest.skip("needs an installed wheel: run make test-python")
    folder = Path(cohort_kmeans.__file__).parent
    assert "site-packages" in str(folder)
    assert Path(_library._find()).parent == folder
    assert (folder / "py.typed").exists()
    assert cohort_kmeans.library_version() == cohort_kmeans.__version__
