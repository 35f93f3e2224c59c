#!/usr/bin/env bash
# Covariate shift. The density ratios come from a submodule: git submodule update --init
set -eu
cd "$(dirname "$0")/.."
if [ ! -e third_party/ratiokit/ratiokit/__init__.py ]; then
  echo "third_party/ratiokit is empty: run 'git submodule update --init' first" >&2
  exit 1
fi
python experiments/covariate_shift.py --config configs/shift.yaml --output results/covariate_shift.json
