"""Cross-fitted agreement weights for kernel classification with noisy labels."""

import os

# The matrices are small: more than one BLAS thread only costs time. Must be set before NumPy is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.3.0"
