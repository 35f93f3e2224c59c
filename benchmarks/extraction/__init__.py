"""Reading papers, measured: `python -m benchmarks.extraction DIRECTORY` prints all measures beside the baselines."""
