"""What this machine knows about reaching package sources: Debian mirror, CA certificates, Python indexes, proxies.

An environment is built elsewhere (in a container, or with a scrubbed environment), where none of the host's settings
apply; a machine behind a company's mirror or an intercepting proxy could then install nothing. Values may hold
credentials: they are handed over in a file that is mounted for the build only, never through the image.
"""

from __future__ import annotations

import configparser
import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pipeline.schema import Record

__all__ = ["InstallSettings", "ca_bundle", "debian_mirror", "install_settings"]

_CA_VARIABLES: Final = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_CA_FILES: Final = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


class InstallSettings(Record):
    """What an install phase needs of the host."""

    environment: dict[str, str]
    """For uv and for build back ends. May hold credentials."""
    directories: tuple[Path, ...]
    """Local package directories that the settings name, to be mounted read-only at the same place."""
    ca_bundle: Path | None


def debian_mirror(root: Path = Path("/etc/apt")) -> str | None:
    """The mirror that apt below `root` uses for Debian; None where it uses none (debootstrap then has its own)."""
    texts = [root / "sources.list", *sorted((root / "sources.list.d").glob("*.list"))]
    for path in texts:
        for line in _lines(path):
            match = re.match(r"deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)", line)
            if match and _is_debian(match[1]):
                return match[1].rstrip("/")
    for path in sorted((root / "sources.list.d").glob("*.sources")):
        for line in _lines(path):
            if line.lower().startswith("uris:"):
                for uri in line.split()[1:]:
                    if _is_debian(uri):
                        return uri.rstrip("/")
    return None


def _is_debian(uri: str) -> bool:
    return uri.startswith(("http://", "https://")) and uri.rstrip("/").endswith("/debian")


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def ca_bundle() -> Path | None:
    """The file with the CA certificates that this machine trusts, None where there is none."""
    for name in (*(os.environ.get(variable, "") for variable in _CA_VARIABLES), *_CA_FILES):
        if name and Path(name).is_file():
            return Path(name).resolve()
    return None


def install_settings() -> InstallSettings:
    """Pip's and uv's configuration of this machine in uv's terms.

    pip's files and variables count because they are what administrators set; uv's own variables win over them.
    """
    pip = _pip_configuration()
    environment = {name: os.environ[name] for name in os.environ if name.upper() in _PROXIES}
    if "index-url" in pip:
        environment["UV_DEFAULT_INDEX"] = pip["index-url"].split()[0]
    if "extra-index-url" in pip:
        environment["UV_INDEX"] = " ".join(pip["extra-index-url"].split())
        # pip looks at all indexes as one; uv's default stops at the first that knows the name
        environment["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    if "find-links" in pip:
        environment["UV_FIND_LINKS"] = ",".join(pip["find-links"].split())
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS",
                 "UV_INDEX_STRATEGY", "UV_HTTP_RETRIES", "UV_HTTP_TIMEOUT"):  # fmt: skip
        if os.environ.get(name):
            environment[name] = os.environ[name]
    values = [environment.get(name, "") for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX",
                                                     "UV_EXTRA_INDEX_URL", "UV_FIND_LINKS")]  # fmt: skip
    directories = {path for value in values for item in re.split(r"[\s,]+", value) for path in _local(item)}
    return InstallSettings(
        environment=environment, directories=tuple(sorted(_outermost(directories))), ca_bundle=ca_bundle()
    )


def _pip_configuration() -> dict[str, str]:
    """Options of pip's files (later ones win) and of its environment variables (these win over files)."""
    home = Path.home()
    files = [Path("/etc/pip.conf"), home / ".pip" / "pip.conf", home / ".config" / "pip" / "pip.conf"]
    if os.environ.get("PIP_CONFIG_FILE"):
        files = [*files, Path(os.environ["PIP_CONFIG_FILE"])]
    values: dict[str, str] = {}
    for path in files:
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue  # pip itself reports a broken file; here it only means that there is no setting to take over
        for section in ("global", "install"):
            if parser.has_section(section):
                values.update(parser.items(section))
    for option in ("index-url", "extra-index-url", "find-links"):
        variable = "PIP_" + option.upper().replace("-", "_")
        if os.environ.get(variable):
            values[option] = os.environ[variable]
    return values


def _local(item: str) -> list[Path]:
    """The directory that an index or find-links entry names, when it is on this machine."""
    item = item.partition("=")[2] if re.match(r"[\w.-]+=file:", item) else item
    path = Path(unquote(urlsplit(item).path)) if item.startswith("file:") else Path(item)
    if not path.is_absolute() or not path.is_dir():
        return []
    # an index's pages link to files beside it (`../files/...`): its parent is needed too, unless that is the root
    return [path.parent] if item.startswith("file:") and len(path.parts) > 2 else [path]


def _outermost(directories: set[Path]) -> list[Path]:
    return [path for path in directories if not any(other in path.parents for other in directories)]
