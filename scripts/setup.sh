#!/usr/bin/env bash
# Everything that expbench needs, on Debian or Ubuntu with bash, Python 3.11 or later and git. Safe to run again.
#
# Usage: bash scripts/setup.sh [--no-docker]
#
# Installs what is missing and can be installed: uv (into .venv-tools), the Python packages of uv.lock (into .venv),
# Tesseract (as root, or with a sudo that asks nothing), Docker Engine and debootstrap (as root). Says what it could not.
set -euo pipefail
# shellcheck source=scripts/lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=scripts/lib/uv.sh
source "$ROOT/scripts/lib/uv.sh"
# shellcheck source=scripts/lib/docker.sh
source "$ROOT/scripts/lib/docker.sh"

WANT_DOCKER=yes
for argument in "$@"; do
  case "$argument" in
    --no-docker) WANT_DOCKER="" ;;
    *) fail "unknown option $argument (usage: bash scripts/setup.sh [--no-docker])" ;;
  esac
done

command -v git >/dev/null 2>&1 || apt_install git || fail "git is missing. Install it: apt-get install git"

PYTHON_FOUND="$(find_python)" || fail "Python 3.11 or later is missing. Install it (Debian 12, Ubuntu 24.04 and later: \
apt-get install python3), or name one: PYTHON=/path/to/python3.12 bash scripts/setup.sh"
say "Python: $PYTHON_FOUND"

ensure_uv "$PYTHON_FOUND"

say "Python packages of uv.lock into .venv"
export UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT="$VENV"
unset VIRTUAL_ENV
"$UV" sync --locked --quiet --project "$ROOT" --python "$PYTHON_FOUND" >&2 ||
  fail "the Python packages could not be installed (see above). Check the network and the free disk space (1 GB)."

if command -v tesseract >/dev/null 2>&1; then
  say "Tesseract: $(tesseract --version 2>&1 | head -n 1)"
elif can_install; then
  say "Installing Tesseract (OCR for pages without a text layer)"
  apt_install tesseract-ocr tesseract-ocr-eng || note "It could not be installed; other pages are read without it."
else
  say "Tesseract is missing: pages without a text layer cannot be read, all others can"
  note "An administrator can install it: apt-get install tesseract-ocr"
fi

if [ -n "$WANT_DOCKER" ]; then
  say "Docker Engine"
  if ensure_docker; then
    ensure_debootstrap
  fi
fi
say "Ready: .venv/bin/expbench --help"
