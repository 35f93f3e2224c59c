#!/usr/bin/env bash
# Set-up, then every check: ruff, mypy, import-linter, pytest (with the Docker tests where Docker is usable, and those in
# a browser where Chromium is or can be installed).
#
# Usage: bash scripts/test.sh [PYTEST OPTION ...]
#
# EXPBENCH_REQUIRE_DOCKER=1 makes a Docker that cannot be used a failure instead of leaving its tests out;
# EXPBENCH_REQUIRE_BROWSER=1 does the same for Chromium. EXPBENCH_SCREENSHOTS=DIR keeps what the browser showed.
# EXPBENCH_TEST_AGENTS names the products whose bundles are built for their tests (default: all; "": none).
set -euo pipefail
# shellcheck source=scripts/lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=scripts/lib/docker.sh
source "$ROOT/scripts/lib/docker.sh"
# shellcheck source=scripts/lib/chromium.sh
source "$ROOT/scripts/lib/chromium.sh"

bash "$ROOT/scripts/setup.sh"
cd -- "$ROOT"

failed=()
check() {
  say "$*"
  "$VENV/bin/$1" "${@:2}" >&2 || failed+=("$1")
}
check ruff check .
check ruff format --check .
check mypy
check lint-imports
if [ "${#failed[@]}" -gt 0 ]; then
  note "FAILED before the tests: ${failed[*]}"
fi

marker=""
if docker_usable; then
  # the products in their containers: 60 s of processor time for OpenHands, 7 to 30 s for each of the others, and
  # npm and a Python 3.12, which not every machine has
  for agent in ${EXPBENCH_TEST_AGENTS-openhands claude-code codex mini-swe-agent aider}; do
    say "expbench agents --install $agent"
    "$VENV/bin/expbench" agents --install "$agent" >&2 || note "its bundle cannot be built here: its episodes are left out"
  done
elif [ "${EXPBENCH_REQUIRE_DOCKER:-}" = 1 ]; then
  fail "EXPBENCH_REQUIRE_DOCKER=1, but Docker cannot be used here (see above)"
else
  note "Docker cannot be used here: its tests are left out"
  marker="not docker"
fi
if ensure_chromium; then
  :
elif [ "${EXPBENCH_REQUIRE_BROWSER:-}" = 1 ]; then
  fail "EXPBENCH_REQUIRE_BROWSER=1, but Chromium cannot be used here (see above)"
else
  note "There is no usable $CHROMIUM: the tests in a browser are left out"
  marker="${marker:+$marker and }not browser"
fi
marker="${marker:-docker or not docker}" # all: the default leaves out what is slow

say "pytest -m '$marker' -n 2 $*"
status=0
# two at a time: many tests wait for containers; tests/conftest.py says what stays together
"$VENV/bin/pytest" -m "$marker" -n 2 --dist loadfile --no-loadscope-reorder --durations=25 "$@" || status=$?
[ "${#failed[@]}" -eq 0 ] || exit 1
exit "$status"
