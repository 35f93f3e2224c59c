"""Cross-fitted agreement weights for kernel classification with noisy labels."""

__version__ = "0.3.0"
