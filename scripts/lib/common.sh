# Shared by the scripts beside this folder. Source it; it does nothing by itself.
# shellcheck shell=bash

ROOT="$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)"
# shellcheck disable=SC2034 # for uv.sh
TOOLS="$ROOT/.venv-tools"
VENV="$ROOT/.venv"

say() { printf '==> %s\n' "$*" >&2; }
note() { printf '    %s\n' "$*" >&2; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

is_root() { [ "$(id -u)" -eq 0 ]; }

# Run a command as root: directly, or through a sudo that asks nothing. Fails when there is neither.
as_root() {
  if is_root; then
    "$@"
  elif sudo -n true 2>/dev/null; then
    sudo -n "$@"
  else
    return 1
  fi
}

can_install() { command -v apt-get >/dev/null 2>&1 && { is_root || sudo -n true 2>/dev/null; }; }

APT_UPDATED=""

# Run apt-get as root; what it says is shown only when it fails.
apt_get() {
  local log
  note "apt-get $*"
  log="$(mktemp)"
  if as_root env DEBIAN_FRONTEND=noninteractive apt-get -y -q --no-install-recommends "$@" >"$log" 2>&1 </dev/null; then
    rm -f -- "$log"
    return 0
  fi
  tail -n 15 -- "$log" >&2
  rm -f -- "$log"
  return 1
}

# Install Debian packages. Package lists are refreshed once, and only when something is to be installed.
apt_install() {
  can_install || return 1
  if [ -z "$APT_UPDATED" ]; then
    apt_get update || return 1
    APT_UPDATED=yes
  fi
  apt_get install "$@"
}

# The interpreter to use: the one of an existing environment, else the first that is 3.11 or later.
find_python() {
  local candidate
  for candidate in "$VENV/bin/python" "${PYTHON:-}" python3 python3.11 python3.12 python3.13 python3.14; do
    if [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      # Never that of a virtual environment, which may be about to be replaced.
      "$candidate" -c 'import sys; print(sys._base_executable)'
      return 0
    fi
  done
  return 1
}
