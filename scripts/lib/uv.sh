# Finding or installing uv, in a private folder of the clone (.venv-tools). Source after common.sh.
# shellcheck shell=bash

UV=""

# Sets UV. In turn: what is there; a virtual environment; the same with Debian's python3-venv; pip without a virtual
# environment of its own (Debian's Python refuses to install into itself, PEP 668, so always into the private folder).
ensure_uv() {
  local python="$1"
  if [ -x "$TOOLS/bin/uv" ] && "$TOOLS/bin/uv" --version >/dev/null 2>&1; then
    UV="$TOOLS/bin/uv"
  elif command -v uv >/dev/null 2>&1 && uv --version >/dev/null 2>&1; then
    UV="$(command -v uv)"
  else
    say "Installing uv into .venv-tools"
    rm -rf -- "$TOOLS"
    uv_by_venv "$python" || uv_after_apt "$python" || uv_by_pip "$python" || fail "uv could not be installed. \
Install python3-venv (as root: apt-get install python3-venv) or uv itself, and run this again."
  fi
  [ ! -d "$TOOLS" ] || printf '*\n' >"$TOOLS/.gitignore"
  note "$("$UV" --version)"
}

uv_by_venv() {
  "$1" -c 'import ensurepip, venv' 2>/dev/null || return 1
  "$1" -m venv "$TOOLS" >&2 || return 1
  "$TOOLS/bin/python" -m pip install --quiet --disable-pip-version-check uv >&2 || return 1
  UV="$TOOLS/bin/uv"
}

uv_after_apt() {
  local version
  version="$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
  rm -rf -- "$TOOLS"
  apt_install "python$version-venv" || apt_install python3-venv || return 1
  uv_by_venv "$1"
}

uv_by_pip() {
  local wheel
  rm -rf -- "$TOOLS"
  mkdir -p -- "$TOOLS"
  if "$1" -m pip --version >/dev/null 2>&1; then
    "$1" -m pip install --quiet --disable-pip-version-check --target "$TOOLS" uv >&2 || return 1
  else
    # Without root, Debian's own pip can still be downloaded and unpacked here.
    note "fetching pip from Debian's packages, unpacked privately"
    (cd -- "$TOOLS" && apt-get download -qq python3-pip-whl >&2 && dpkg-deb -x ./python3-pip-whl_*.deb .) || return 1
    wheel="$(find "$TOOLS/usr/share/python-wheels" -name 'pip-*.whl' | head -n 1)"
    [ -n "$wheel" ] || return 1
    "$1" "$wheel/pip" install --quiet --disable-pip-version-check --target "$TOOLS" uv >&2 || return 1
  fi
  [ -x "$TOOLS/bin/uv" ] && UV="$TOOLS/bin/uv"
}
