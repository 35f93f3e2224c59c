#!/usr/bin/env bash
# Set-up, then every check: ruff, mypy, import-linter, pytest (with the Docker tests where Docker is usable).
#
# Usage: bash scripts/test.sh [PYTEST OPTION ...]
#
# EXPBENCH_REQUIRE_DOCKER=1 makes a Docker that cannot be used a failure instead of leaving its tests out.
set -euo pipefail
# shellcheck source=scripts/lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/lib/common.sh"
# shellcheck source=scripts/lib/docker.sh
source "$ROOT/scripts/lib/docker.sh"

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

marker="not docker"
if docker_usable; then
  marker="docker or not docker"
elif [ "${EXPBENCH_REQUIRE_DOCKER:-}" = 1 ]; then
  fail "EXPBENCH_REQUIRE_DOCKER=1, but Docker cannot be used here (see above)"
else
  note "Docker cannot be used here: its tests are left out"
fi

say "pytest -m '$marker' $*"
status=0
"$VENV/bin/pytest" -m "$marker" "$@" || status=$?
[ "${#failed[@]}" -eq 0 ] || exit 1
exit "$status"
