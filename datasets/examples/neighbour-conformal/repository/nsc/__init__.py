"""Neighbour-scaled conformal prediction intervals."""

import os

# One BLAS thread is fastest at these sizes. NumPy reads this when it is imported, so import nsc first.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

__version__ = "1.1.0"
