# Chromium, for the tests that drive the review forms. Source after common.sh.
# shellcheck shell=bash

CHROMIUM=/usr/bin/chromium

# A file is not enough: Ubuntu's package is a shim that asks for a snap.
chromium_usable() { [ -x "$CHROMIUM" ] && "$CHROMIUM" --version >/dev/null 2>&1; }

# Returns 0 when Chromium is usable at the end.
ensure_chromium() {
  if chromium_usable; then
    return 0
  fi
  if can_install; then
    say "Installing Chromium (for the tests of the review forms)"
    apt_install chromium || note "It could not be installed."
  fi
  chromium_usable
}
