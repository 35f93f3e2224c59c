#!/usr/bin/env bash
# Everything that the paper reports. Usage: scripts/reproduce.sh
set -eu
cd "$(dirname "$0")/.."

python experiments/main_table.py --config configs/main.yaml
python -m experiments.ablate --config configs/ablation.yaml
python experiments/calibration_size.py --config configs/calibration.yaml
bash scripts/shift.sh
