#!/usr/bin/env bash
# Table 2: all methods on all problems.
set -euo pipefail
cd "$(dirname "$0")/.."
python experiments/run_benchmark.py --config configs/benchmark.yaml --out results/benchmark.csv "$@"
