#!/usr/bin/env bash
# Table 3: CAW without one of its parts at a time.
set -euo pipefail
cd "$(dirname "$0")/.."
python experiments/run_ablation.py --config configs/ablation.yaml --out results/ablation.csv "$@"
