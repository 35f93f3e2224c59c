"""Ubuntu's archive on a Debian machine: where it is, and the key that signs it.

Debian's stable releases do not ship Ubuntu's key. It is taken from Ubuntu's own keyring package, which by itself proves
nothing; what is trusted are the fingerprints below, and only keys that have one of them are handed on. debootstrap then
checks the release file with them, and through it every package.
"""

from __future__ import annotations

import os
import re
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Final

from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["UBUNTU", "ubuntu_keyring", "ubuntu_mirror"]

UBUNTU: Final = "http://archive.ubuntu.com/ubuntu"
_MIRROR_VARIABLE: Final = "EXPBENCH_UBUNTU_MIRROR"
_FINGERPRINTS: Final = frozenset({
    "790BC7277767219C42C86F933B4FE6ACC0B21F32",  # Ubuntu Archive Automatic Signing Key (2012)
    "F6ECB3762474EDA9D21B7022871920D1991BC93C",  # Ubuntu Archive Automatic Signing Key (2018)
})  # fmt: skip
_INSTALLED: Final = Path("/usr/share/keyrings/ubuntu-archive-keyring.gpg")
_PACKAGE: Final = "pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb"
_INSIDE: Final = "usr/share/keyrings/ubuntu-archive-keyring.gpg"
_MAX_PACKAGE: Final = 1 << 20
_TIMEOUT_S: Final = 60


def ubuntu_mirror() -> str:
    """The mirror of Ubuntu's archive: EXPBENCH_UBUNTU_MIRROR, or Ubuntu's own."""
    return os.environ.get(_MIRROR_VARIABLE, UBUNTU).rstrip("/")


def ubuntu_keyring(scratch: Path, mirror: str) -> Path:
    """A keyring that holds Ubuntu's archive keys and no others.

    Args:
        scratch: directory for it, ours alone.
        mirror: where the keyring package is fetched when the machine has none.

    Raises:
        ExpbenchError: `NETWORK`, it cannot be fetched; `SANDBOX_UNAVAILABLE`, a tool is missing, or what was fetched
            does not hold the keys that are known.
    """
    source = _INSTALLED if _INSTALLED.is_file() else _fetched(scratch, mirror)
    found = [key for key in _fingerprints(source, scratch) if key in _FINGERPRINTS]
    if not found:
        raise _refused(f"{source.name} holds none of the keys that sign Ubuntu's archive")
    checked = scratch / "ubuntu-checked.gpg"
    _gpg(scratch, "--import", str(source))
    checked.write_bytes(_gpg(scratch, "--export", *found))
    return checked


def _fetched(scratch: Path, mirror: str) -> Path:
    package = scratch / "ubuntu-keyring.deb"
    address = f"{mirror}/{_PACKAGE}"
    try:
        with urllib.request.urlopen(address, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - the mirror's scheme
            package.write_bytes(answer.read(_MAX_PACKAGE))
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise ExpbenchError(
            FailureKind.NETWORK,
            f"Ubuntu's keyring ({address})",
            f"could not be fetched: {error}",
            consequence="No base image of an Ubuntu release can be made, so that its Python cannot be had",
            next_step=f"Install `ubuntu-archive-keyring`, or name another mirror in {_MIRROR_VARIABLE}",
        ) from error
    listing = _tool(scratch, ["dpkg-deb", "--fsys-tarfile", str(package)])
    target = scratch / "ubuntu-fetched.gpg"
    target.write_bytes(_tool(scratch, ["tar", "-xO", f"./{_INSIDE}"], listing))
    return target


def _fingerprints(keyring: Path, scratch: Path) -> list[str]:
    text = _gpg(scratch, "--show-keys", "--with-colons", str(keyring)).decode("ascii", "replace")
    return re.findall(r"^pub:.*\n(?:fpr:+([0-9A-F]{40}):)", text, re.MULTILINE)


def _gpg(scratch: Path, *arguments: str) -> bytes:
    home = scratch / "gnupg"
    home.mkdir(mode=0o700, exist_ok=True)
    return _tool(scratch, ["gpg", "--homedir", str(home), "--batch", "--no-autostart", "--quiet", *arguments])


def _tool(scratch: Path, argv: list[str], data: bytes | None = None) -> bytes:
    try:
        done = subprocess.run(argv, input=data, capture_output=True, check=False, cwd=scratch, timeout=_TIMEOUT_S)
    except FileNotFoundError as error:
        raise _refused(f"the program `{argv[0]}` is missing") from error
    if done.returncode != 0:
        raise _refused(f"`{argv[0]}` failed: {done.stderr.decode('utf-8', 'replace').strip()[-300:]}")
    return done.stdout


def _refused(cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.SANDBOX_UNAVAILABLE,
        "Ubuntu's signing key",
        cause,
        consequence="No base image of an Ubuntu release is made, so that its Python cannot be had",
        next_step="Install `ubuntu-archive-keyring` or gnupg, or let tasks run with another Python",
    )
