"""The base image of the Docker sandbox: Debian or Ubuntu with Python, pip, venv, git and CA certificates.

It is bootstrapped from the distribution's packages, because a machine that can install such need not reach an image
registry; with a registry and without `debootstrap`, the official Python image serves. Nothing is ever named `:latest`.
Images are not removed here: they are a cache that `docker image ls --filter label=expbench=1` lists.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pipeline.digests import digest_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import Reporter, SilentReporter
from pipeline.sandbox._bootstrap import cleared_directory, go_on, import_root, run_debootstrap
from pipeline.sandbox._engine import connection, engine_error
from pipeline.sandbox._hostconfig import debian_mirror
from pipeline.sandbox._locks import cache_directory, locked
from pipeline.sandbox._ubuntu import UBUNTU, ubuntu_keyring, ubuntu_mirror
from pipeline.sandbox.base import StopHandle
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
_CHANGES: Final = [
    f"ENV PATH={SYSTEM_PATH}",
    "LABEL expbench=1",
    "LABEL expbench.kind=image",
    "LABEL expbench.base=debootstrap",
]


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


def base_image(
    recipe: BaseRecipe | None = None, *, reporter: Reporter | None = None, stop: StopHandle | None = None
) -> BaseImage:
    """The base image: the one named by EXPBENCH_BASE_IMAGE, or ours, made now when there is none (about two minutes).

    Args:
        recipe: what ours is made from.
        reporter: progress.
        stop: gives the making up; so does an exception in this thread (Ctrl-C). Nothing half-made stays.

    Raises:
        ExpbenchError: `SANDBOX_UNAVAILABLE` (no engine, or no way to get a base), `NETWORK`, `DISK_FULL`,
            `SANDBOX_BROKEN`, `INTERRUPTED`.
    """
    recipe, reporter = recipe or BaseRecipe(), reporter or SilentReporter()
    with connection() as client:
        configured = configured_base()
        if configured:
            return _configured(client, configured)
        found = image_id(client, recipe.reference)
        if found:
            return BaseImage(reference=recipe.reference, digest=found, origin="present")
        what = f"base image {recipe.reference}"
        waiting = None if stop is None else partial(go_on, stop, what)
        with locked("base-" + recipe.reference.rpartition(":")[2], waiting) as lock:
            found = image_id(client, recipe.reference)
            if found:
                return BaseImage(reference=recipe.reference, digest=found, origin="present")
            if os.geteuid() == 0 and shutil.which("debootstrap"):
                _bootstrap(client, recipe, lock, reporter, stop)
                origin: Literal["debootstrap", "registry"] = "debootstrap"
            else:
                _pull(client, recipe, reporter, stop)
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


def _bootstrap(
    client: DockerClient, recipe: BaseRecipe, lock: int, reporter: Reporter, stop: StopHandle | None
) -> None:
    mirror = ubuntu_mirror() if recipe.ubuntu else debian_mirror()
    reporter.start("base image")
    where = mirror or "debootstrap's own mirror"
    name = "Ubuntu" if recipe.ubuntu else "Debian"
    reporter.step("base image", f"bootstrapping {name} {recipe.suite} from {where} (about two minutes, once)")
    place = cache_directory() / "bases" / recipe.reference.rpartition(":")[2]
    with cleared_directory(place) as scratch:
        root = scratch / "root"
        argv = ["debootstrap", f"--variant={recipe.variant}", f"--include={','.join(recipe.include)}"]
        script: list[str] = []
        if recipe.ubuntu:
            keyring = ubuntu_keyring(scratch, mirror or UBUNTU)
            argv += [f"--components={','.join(recipe.components)}", f"--keyring={keyring}", "--force-check-gpg"]
            # an older debootstrap does not know newer releases by name; they are all made in the same way
            script = ["/usr/share/debootstrap/scripts/gutsy"]
        target = [recipe.suite, str(root), *([mirror] if mirror else []), *script]
        run_debootstrap(
            [*argv, *target],
            what=f"base image (debootstrap from {where})",
            next_step=f"Check that the mirror can be reached, or name another base image in {_BASE_VARIABLE}, "
            "or use `--sandbox process`",
            lock=lock,
            reporter=reporter,
            stop=stop,
        )
        _finish_root(root, recipe, mirror or debian_mirror(root / "etc/apt"))
        reporter.step("base image", "importing into Docker")
        import_root(client, root, recipe.reference, _CHANGES, stop)
    reporter.end("base image", recipe.reference)


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


def _pull(client: DockerClient, recipe: BaseRecipe, reporter: Reporter, stop: StopHandle | None) -> None:
    """The official image by its tag, resolved once; from then on our own tag names what was pulled."""
    from docker.errors import APIError

    name = f"{recipe.registry_image}:{recipe.registry_tag}"
    reporter.start("base image")
    reporter.step("base image", f"pulling {name}")
    try:
        # the engine gives a pull up when nobody listens to its progress any more
        with contextlib.closing(
            client.api.pull(recipe.registry_image, tag=recipe.registry_tag, stream=True, decode=True)
        ) as progress:
            for _ in progress:
                go_on(stop, f"pull of {name}")
        pulled = client.images.get(name)
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
