#!/usr/bin/env bash
# Build the image of the Docker and Kubernetes work pools (see the Dockerfile beside this file).
#
# Usage: bash scripts/docker/build.sh [BASE_IMAGE]
#
# BASE_IMAGE: a Debian 12 image with Python 3.11. Default: the base image that expbench made on this machine, else
# python:3.11-slim-bookworm from the registry. Prints the image's name; progress goes to stderr.
set -euo pipefail
# shellcheck source=scripts/lib/common.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/../lib/common.sh"

command -v docker >/dev/null 2>&1 || fail "docker is missing. Install it: bash scripts/setup.sh"
VERSION="$(sed -n 's/^version = "\(.*\)"$/\1/p' "$ROOT/pyproject.toml" | head -n 1)"
[ -n "$VERSION" ] || fail "pyproject.toml names no version"
BASE="${1:-}"
if [ -z "$BASE" ]; then
  for candidate in $(docker images --filter reference='expbench/base' --format '{{.Repository}}:{{.Tag}}'); do
    if docker run --rm --network none "$candidate" python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
      BASE="$candidate" && break
    fi
  done
fi
BASE="${BASE:-python:3.11-slim-bookworm}"
say "Image expbench:$VERSION on $BASE"

PROXIES=()
for name in HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy; do
  if [ -n "${!name:-}" ]; then PROXIES+=(--build-arg "$name"); fi
done
# only what the image holds is sent to the engine
CONTEXT="$(mktemp -d)"
trap 'rm -rf -- "$CONTEXT"' EXIT
git -C "$ROOT" ls-files -z --cached --others --exclude-standard -- pyproject.toml uv.lock README.md LICENSE prefect.yaml \
  prefect.toml pipeline extractors masking evaluation flows datasets/examples |
  (cd "$ROOT" && xargs -0 --no-run-if-empty cp --parents --no-dereference --target-directory "$CONTEXT")
# what this machine trusts, for installing from behind a company's proxy
: >"$CONTEXT/ca.pem"
for candidate in "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt; do
  if [ -n "$candidate" ] && [ -s "$candidate" ]; then cp -- "$candidate" "$CONTEXT/ca.pem" && break; fi
done
docker build --network host --build-arg "BASE=$BASE" ${PROXIES[@]+"${PROXIES[@]}"} \
  --file "$ROOT/scripts/docker/Dockerfile" --tag "expbench:$VERSION" "$CONTEXT" >&2
echo "expbench:$VERSION"
