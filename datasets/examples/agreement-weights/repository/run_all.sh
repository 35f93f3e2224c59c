#!/usr/bin/env bash
# All experiments of the paper, one after the other.
set -euo pipefail
cd "$(dirname "$0")"

bash scripts/benchmark.sh
bash scripts/ablation.sh
python experiments/run_noise_sweep.py --config configs/noise_sweep.yaml
python experiments/run_sample_size.py --config configs/sample_size.yaml
