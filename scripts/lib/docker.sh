# Docker Engine: is it usable, and what can be done about it. Source after common.sh.
# shellcheck shell=bash

# Asks expbench itself, so that scripts and program agree on what "usable" means.
docker_usable() {
  "$VENV/bin/python" -c '
import sys
from pipeline.sandbox.docker import DockerSandbox
status = DockerSandbox().status()
print("   ", status.detail, file=sys.stderr)
sys.exit(not status.available)'
}

# Returns 0 when Docker is usable at the end. Never fails the caller: the process sandbox serves without it.
ensure_docker() {
  if docker_usable; then
    return 0
  fi
  if ! is_root; then
    note "Docker is optional. An administrator can provide it: apt-get install docker.io debootstrap, and add you to"
    note "the group docker. Until then the process sandbox serves: fine for code that you trust."
    return 1
  fi
  if [ -n "${DOCKER_HOST:-}" ]; then
    note "DOCKER_HOST names an engine that does not answer ($DOCKER_HOST); nothing was installed beside it."
    return 1
  fi
  if ! command -v dockerd >/dev/null 2>&1; then
    say "Installing Docker Engine"
    apt_install docker.io || {
      note "Docker Engine could not be installed; the process sandbox serves instead."
      return 1
    }
  fi
  start_docker
}

start_docker() {
  local log="${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/expbench/dockerd.log" pid=""
  if [ -d /run/systemd/system ]; then
    say "Starting Docker Engine (systemctl start docker)"
    systemctl start docker >&2 || {
      note "systemctl could not start it (journalctl -u docker). The process sandbox serves instead."
      return 1
    }
  else
    say "Starting Docker Engine by hand (no systemd here; log: $log)"
    mkdir -p -- "$(dirname -- "$log")"
    setsid dockerd >"$log" 2>&1 </dev/null &
    pid=$!
  fi
  for _ in $(seq 60); do
    if docker_usable 2>/dev/null; then
      docker_usable
      return 0
    fi
    if [ -n "$pid" ] && ! kill -0 "$pid" 2>/dev/null; then
      break
    fi
    sleep 1
  done
  note "Docker Engine did not start. The process sandbox serves instead."
  if [ -n "$pid" ]; then
    grep -oE 'failed to start daemon: .*' -- "$log" | tail -n 1 | cut -c 1-200 | sed 's/^/    /' >&2 || true
    note "(inside a container it needs --privileged; all of it is in $log)"
  fi
  return 1
}

# Where no image registry can be reached, the base image is made from Debian's packages.
ensure_debootstrap() {
  if is_root && ! command -v debootstrap >/dev/null 2>&1; then
    # The keyring is Debian's own: on Ubuntu debootstrap does not bring it along.
    apt_install debootstrap debian-archive-keyring || note "debootstrap could not be installed: the base image must come from a registry."
  fi
}
