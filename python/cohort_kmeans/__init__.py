"""K-means for scikit-learn users: fast, and private where asked for.

Four estimators on the Cohort engine:

- :class:`KMeans`: plain k-means, a drop-in for :class:`sklearn.cluster.KMeans`.
- :class:`PrivateKMeans`: differentially private k-means of one table.
- :class:`FederatedKMeans`: several clients hold rows that none may show to the others.
- :class:`VerticalKMeans`: several parties hold different columns of the same records.

Every release of a private fit stands in its ``ledger_``, with its mechanism, its
scale and the theorem that bounds it.
"""

from ._estimators import FederatedKMeans, KMeans, PrivateKMeans, VerticalKMeans
from ._ledger import Ledger
from ._library import (
    BudgetError,
    CohortError,
    ForkError,
    LibraryError,
    PrivacyLeakWarning,
    library_version,
    methods,
)

__version__ = "0.1.0"

__all__ = [
    "BudgetError",
    "CohortError",
    "FederatedKMeans",
    "ForkError",
    "KMeans",
    "Ledger",
    "LibraryError",
    "PrivacyLeakWarning",
    "PrivateKMeans",
    "VerticalKMeans",
    "library_version",
    "methods",
]
