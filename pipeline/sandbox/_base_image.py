"""The base image of the Docker sandbox: Debian or Ubuntu with Python, pip, venv, git and CA certificates.

It is bootstrapped from the distribution's packages, because a machine that can install such need not reach an image
registry; with a registry and without `debootstrap`, the official Python image serves. Nothing is ever named `:latest`.
Images are not removed here: they are a cache that `docker image ls --filter label=expbench=1` lists.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Literal

from pipeline.digests import digest_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import Reporter, SilentReporter
from pipeline.sandbox._engine import connection, engine_error
from pipeline.sandbox._hostconfig import debian_mirror
from pipeline.sandbox._locks import locked
from pipeline.sandbox._ubuntu import UBUNTU, ubuntu_keyring, ubuntu_mirror
from pipeline.schema import Record

if TYPE_CHECKING:
    from docker import DockerClient

__all__ = [
    "SUITES",
    "SYSTEM_PATH",
    "BaseImage",
    "BaseRecipe",
    "base_image",
    "configured_base",
    "image_id",
    "require_image",
]

_REPOSITORY_BASE: Final = "expbench/base"
_BASE_VARIABLE: Final = "EXPBENCH_BASE_IMAGE"
SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


SUITES: Final = {
    "3.8": ("ubuntu", "focal"),
    "3.9": ("debian", "bullseye"),
    "3.10": ("ubuntu", "jammy"),
    "3.11": ("debian", "bookworm"),
    "3.12": ("ubuntu", "noble"),
    "3.13": ("debian", "trixie"),
}
"""Python -> the release whose own Python it is. Older ones stand in no release that is still served in full; those of
other sources (uv's are downloads from GitHub) are tried by the builder, and a build that finds none says so."""


class BaseRecipe(Record):
    """What the base image is made from; its digest is the image's tag."""

    suite: str = "bookworm"
    variant: str = "minbase"
    include: tuple[str, ...] = ("python3", "python3-venv", "python3-pip", "git", "ca-certificates")
    registry_image: str = "python"
    """Used where there is no debootstrap, by `registry_tag`; what was pulled is recorded by digest."""
    registry_tag: str = "3.11-slim-bookworm"
    revision: int = 1
    """Raised when the way of building changes."""

    @classmethod
    def for_python(cls, python: str) -> BaseRecipe:
        """The base whose own Python this is; the default base where no release has it."""
        distribution, suite = SUITES.get(python, ("", ""))
        if not suite:
            return cls()
        tag = f"{python}-slim-{suite}" if distribution == "debian" else f"{python}-slim-bookworm"
        return cls(suite=suite, registry_tag=tag)

    @property
    def ubuntu(self) -> bool:
        """Is it an Ubuntu release? Its packages for Python stand in `universe`, and it has a signing key of its own."""
        return ("ubuntu", self.suite) in SUITES.values()

    @property
    def components(self) -> tuple[str, ...]:
        """Parts of the archive."""
        return ("main", "universe") if self.ubuntu else ("main",)

    @property
    def reference(self) -> str:
        """Repository and tag."""
        return f"{_REPOSITORY_BASE}:{digest_of(self.model_dump(mode='json'))[:12]}"


class BaseImage(Record):
    """A base image that is there."""

    reference: str
    digest: str
    origin: Literal["configured", "present", "debootstrap", "registry"]


def configured_base() -> str:
    """The base image that the user named (EXPBENCH_BASE_IMAGE); empty without one."""
    return os.environ.get(_BASE_VARIABLE, "")


def base_image(recipe: BaseRecipe | None = None, *, reporter: Reporter | None = None) -> BaseImage:
    """The base image: the one named by EXPBENCH_BASE_IMAGE, or ours, made now when there is none (about two minutes).

    Raises:
        ExpbenchError: `SANDBOX_UNAVAILABLE` (no engine, or no way to get a base), `NETWORK`, `DISK_FULL`,
            `SANDBOX_BROKEN`.
    """
    recipe, reporter = recipe or BaseRecipe(), reporter or SilentReporter()
    with connection() as client:
        configured = configured_base()
        if configured:
            return _configured(client, configured)
        found = image_id(client, recipe.reference)
        if found:
            return BaseImage(reference=recipe.reference, digest=found, origin="present")
        with locked("base-" + recipe.reference.rpartition(":")[2]):
            found = image_id(client, recipe.reference)
            if found:
                return BaseImage(reference=recipe.reference, digest=found, origin="present")
            if os.geteuid() == 0 and shutil.which("debootstrap"):
                _bootstrap(client, recipe, reporter)
                origin: Literal["debootstrap", "registry"] = "debootstrap"
            else:
                _pull(client, recipe, reporter)
                origin = "registry"
            return BaseImage(reference=recipe.reference, digest=require_image(client, recipe.reference), origin=origin)


def _configured(client: DockerClient, reference: str) -> BaseImage:
    found = image_id(client, reference)
    if not found:
        raise ExpbenchError(
            FailureKind.SANDBOX_UNAVAILABLE,
            f"base image {reference} (from {_BASE_VARIABLE})",
            "the engine does not have it",
            consequence="No environment can be built",
            next_step=f"Run `docker pull {reference}` or unset {_BASE_VARIABLE}",
        )
    if client.images.get(found).attrs["Config"].get("Volumes"):
        raise ExpbenchError(
            FailureKind.SANDBOX_UNAVAILABLE,
            f"base image {reference} (from {_BASE_VARIABLE})",
            "it declares volumes, which would be writable places without a limit in every run",
            consequence="No environment is built on it",
            next_step="Name an image without VOLUME instructions",
        )
    return BaseImage(reference=reference, digest=found, origin="configured")


def image_id(client: DockerClient, reference: str) -> str:
    """The engine's id of an image, empty when it has none of that name."""
    from docker.errors import APIError, ImageNotFound

    try:
        return str(client.images.get(reference).id)
    except ImageNotFound:
        return ""
    except APIError as error:
        raise engine_error(error, f"image {reference}") from error


def require_image(client: DockerClient, reference: str) -> str:
    """The id of an image that was just made."""
    found = image_id(client, reference)
    if not found:
        raise engine_error(RuntimeError("the image that was just made is not there"), f"image {reference}")
    return found


def _bootstrap(client: DockerClient, recipe: BaseRecipe, reporter: Reporter) -> None:
    mirror = ubuntu_mirror() if recipe.ubuntu else debian_mirror()
    reporter.start("base image")
    where = mirror or "debootstrap's own mirror"
    name = "Ubuntu" if recipe.ubuntu else "Debian"
    reporter.step("base image", f"bootstrapping {name} {recipe.suite} from {where} (about two minutes, once)")
    with tempfile.TemporaryDirectory(prefix="expbench-base-") as scratch:
        root = Path(scratch) / "root"
        argv = ["debootstrap", f"--variant={recipe.variant}", f"--include={','.join(recipe.include)}"]
        script: list[str] = []
        if recipe.ubuntu:
            keyring = ubuntu_keyring(Path(scratch), mirror or UBUNTU)
            argv += [f"--components={','.join(recipe.components)}", f"--keyring={keyring}", "--force-check-gpg"]
            # an older debootstrap does not know newer releases by name; they are all made in the same way
            script = ["/usr/share/debootstrap/scripts/gutsy"]
        target = [recipe.suite, str(root), *([mirror] if mirror else []), *script]
        lines = _streamed([*argv, *target], where, reporter)
        _finish_root(root, recipe, mirror or debian_mirror(root / "etc/apt"))
        reporter.step("base image", "importing into Docker")
        _import(client, root, recipe, lines)
    reporter.end("base image", recipe.reference)


def _streamed(argv: list[str], where: str, reporter: Reporter) -> list[str]:
    """Run debootstrap with its steps reported; its last lines."""
    tail: list[str] = []
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            tail = [*tail[-30:], line.rstrip()]
            if re.match(r"I: (?:Installing|Unpacking|Configuring|Resolving|Base) .*(?:packages|system)", line):
                reporter.step("base image", line[3:].strip())
        code = process.wait()
    if code != 0:
        errors = [line for line in tail if line.startswith(("E:", "W:"))] or tail[-3:]
        text = "; ".join(errors)
        network = any(word in text for word in ("Failed getting release", "Couldn't download", "resolve"))
        disk = "No space left" in text
        raise ExpbenchError(
            FailureKind.DISK_FULL if disk else FailureKind.NETWORK if network else FailureKind.SANDBOX_BROKEN,
            f"base image ({argv[0]} from {where})",
            f"debootstrap ended with {code}: {text[:600]}",
            consequence="There is no base image, so no container can be run",
            next_step=f"Check that the mirror can be reached, or name another base image in {_BASE_VARIABLE}, "
            "or use `--sandbox process`",
        )
    return tail


def _finish_root(root: Path, recipe: BaseRecipe, mirror: str | None) -> None:
    """Drop download caches (about 100 MB) and host traces, name the update suite for later installs."""
    for pattern in ("var/cache/apt/archives/*.deb", "var/lib/apt/lists/*", "var/log/*.log", "var/log/apt/*"):
        for path in sorted(root.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    if mirror:
        parts = f"{' '.join(recipe.components)}\n"
        sources = "".join(f"deb {mirror} {suite} {parts}" for suite in (recipe.suite, f"{recipe.suite}-updates"))
        (root / "etc/apt/sources.list").write_text(sources, encoding="utf-8")
    for name in ("etc/hostname", "etc/resolv.conf"):
        (root / name).write_text("", encoding="utf-8")
    (root / "etc/machine-id").write_text("", encoding="utf-8")


def _import(client: DockerClient, root: Path, recipe: BaseRecipe, lines: list[str]) -> None:
    from docker.errors import APIError

    repository, _, tag = recipe.reference.rpartition(":")
    changes = [
        f"ENV PATH={SYSTEM_PATH}",
        "LABEL expbench=1",
        "LABEL expbench.kind=image",
        "LABEL expbench.base=debootstrap",
    ]
    argv = ["tar", "--numeric-owner", "--sort=name", "--exclude=./dev/*", "-C", str(root), "-c", "."]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as archive:
        assert archive.stdout is not None
        try:
            answer = client.api.import_image_from_data(
                _chunks(archive.stdout), repository=repository, tag=tag, changes=changes
            )
        except (APIError, OSError) as error:
            archive.kill()
            raise engine_error(error, f"import of base image {recipe.reference}") from error
    if archive.returncode != 0 or '"error"' in str(answer):
        raise engine_error(RuntimeError(f"import failed: {answer}"), f"import of base image {recipe.reference}")


def _chunks(stream: IO[bytes]) -> Iterator[bytes]:
    while data := stream.read(1 << 20):
        yield data


def _pull(client: DockerClient, recipe: BaseRecipe, reporter: Reporter) -> None:
    """The official image by its tag, resolved once; from then on our own tag names what was pulled."""
    from docker.errors import APIError

    name = f"{recipe.registry_image}:{recipe.registry_tag}"
    reporter.start("base image")
    reporter.step("base image", f"pulling {name}")
    try:
        pulled = client.images.pull(recipe.registry_image, tag=recipe.registry_tag)
    except APIError as error:
        how = "needs root" if shutil.which("debootstrap") else "needs `apt install debootstrap`, and root"
        raise ExpbenchError(
            FailureKind.SANDBOX_UNAVAILABLE,
            "base image",
            f"there is none yet; bootstrapping one {how}, and no registry gave {name} "
            f"({str(error.explanation or error)[:300]})",
            consequence="No container can be run",
            next_step=f"Run once as root with debootstrap, or name an image with Python in {_BASE_VARIABLE}, "
            "or use `--sandbox process`",
        ) from error
    repository, _, tag = recipe.reference.rpartition(":")
    pulled.tag(repository, tag)
    reporter.end("base image", f"{recipe.reference} = {', '.join(pulled.attrs.get('RepoDigests', [])) or pulled.id}")
