"""Images for the Docker sandbox: the base, and one environment per build spec. Content-addressed, built once.

The base is bootstrapped from Debian's packages, because a machine that can install Debian packages need not reach an
image registry; with a registry and without `debootstrap`, the official Python image serves. Nothing is ever named
`:latest`. Images are not removed here: they are a cache that `docker image ls --filter label=expbench=1` lists.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal

from pipeline.digests import digest_of
from pipeline.errors import FAILURES, ExpbenchError, FailureKind
from pipeline.progress import Reporter, SilentReporter
from pipeline.sandbox._engine import Attached, connection, engine_error, labels
from pipeline.sandbox._hostconfig import debian_mirror, install_settings
from pipeline.sandbox._installlog import diagnose
from pipeline.sandbox._locks import locked
from pipeline.sandbox.base import BuildSpec, Image
from pipeline.schema import Record

if TYPE_CHECKING:
    from docker import DockerClient

__all__ = ["BaseImage", "BaseRecipe", "base_image", "build_environment"]

_REPOSITORY_BASE: Final = "expbench/base"
_REPOSITORY_ENV: Final = "expbench/env"
_BASE_VARIABLE: Final = "EXPBENCH_BASE_IMAGE"
_SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Building the largest environment tried (torch, CPU) took 4 minutes; compiling a package from source can take 20.
_BUILD_S: Final = 3600.0
_ATTEMPTS: Final = 3
# Before the second attempt; doubled before the third
_PAUSE_S: Final = 2.0
# dpkg and chown need these; there is no raw network, no device nodes, no tracing
_BUILD_CAPABILITIES: Final = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"]
_INSIDE: Final = "/run/expbench"


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

    @property
    def reference(self) -> str:
        """Repository and tag."""
        return f"{_REPOSITORY_BASE}:{digest_of(self.model_dump(mode='json'))[:12]}"


class BaseImage(Record):
    """A base image that is there."""

    reference: str
    digest: str
    origin: Literal["configured", "present", "debootstrap", "registry"]


def base_image(recipe: BaseRecipe | None = None, *, reporter: Reporter | None = None) -> BaseImage:
    """The base image: the one named by EXPBENCH_BASE_IMAGE, or ours, made now when there is none (about two minutes).

    Raises:
        ExpbenchError: `SANDBOX_UNAVAILABLE` (no engine, or no way to get a base), `NETWORK`, `DISK_FULL`,
            `SANDBOX_BROKEN`.
    """
    recipe, reporter = recipe or BaseRecipe(), reporter or SilentReporter()
    with connection() as client:
        configured = os.environ.get(_BASE_VARIABLE, "")
        if configured:
            return _configured(client, configured)
        found = _image_id(client, recipe.reference)
        if found:
            return BaseImage(reference=recipe.reference, digest=found, origin="present")
        with locked("base-" + recipe.reference.rpartition(":")[2]):
            found = _image_id(client, recipe.reference)
            if found:
                return BaseImage(reference=recipe.reference, digest=found, origin="present")
            if os.geteuid() == 0 and shutil.which("debootstrap"):
                _bootstrap(client, recipe, reporter)
                origin: Literal["debootstrap", "registry"] = "debootstrap"
            else:
                _pull(client, recipe, reporter)
                origin = "registry"
            return BaseImage(reference=recipe.reference, digest=_require(client, recipe.reference), origin=origin)


def _configured(client: DockerClient, reference: str) -> BaseImage:
    found = _image_id(client, reference)
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


def _image_id(client: DockerClient, reference: str) -> str:
    from docker.errors import APIError, ImageNotFound

    try:
        return str(client.images.get(reference).id)
    except ImageNotFound:
        return ""
    except APIError as error:
        raise engine_error(error, f"image {reference}") from error


def _require(client: DockerClient, reference: str) -> str:
    found = _image_id(client, reference)
    if not found:
        raise engine_error(RuntimeError("the image that was just made is not there"), f"image {reference}")
    return found


# --- the base ---------------------------------------------------------------------------------------------------------


def _bootstrap(client: DockerClient, recipe: BaseRecipe, reporter: Reporter) -> None:
    mirror = debian_mirror()
    reporter.start("base image")
    reporter.step("base image", f"bootstrapping Debian {recipe.suite} from {mirror} (about two minutes, once)")
    with tempfile.TemporaryDirectory(prefix="expbench-base-") as scratch:
        root = Path(scratch) / "root"
        argv = ["debootstrap", f"--variant={recipe.variant}", f"--include={','.join(recipe.include)}"]
        lines = _streamed([*argv, recipe.suite, str(root), mirror], reporter)
        _finish_root(root, recipe.suite, mirror)
        reporter.step("base image", "importing into Docker")
        _import(client, root, recipe, lines)
    reporter.end("base image", recipe.reference)


def _streamed(argv: list[str], reporter: Reporter) -> list[str]:
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
            f"base image ({argv[0]} {argv[-3]} from {argv[-1]})",
            f"debootstrap ended with {code}: {text[:600]}",
            consequence="There is no base image, so no container can be run",
            next_step=f"Check that the mirror can be reached, or name another base image in {_BASE_VARIABLE}, "
            "or use `--sandbox process`",
        )
    return tail


def _finish_root(root: Path, suite: str, mirror: str) -> None:
    """Drop download caches (about 100 MB) and host traces, name the update suite for later installs."""
    for pattern in ("var/cache/apt/archives/*.deb", "var/lib/apt/lists/*", "var/log/*.log", "var/log/apt/*"):
        for path in sorted(root.glob(pattern)):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
    sources = f"deb {mirror} {suite} main\ndeb {mirror} {suite}-updates main\n"
    (root / "etc/apt/sources.list").write_text(sources, encoding="utf-8")
    for name in ("etc/hostname", "etc/resolv.conf"):
        (root / name).write_text("", encoding="utf-8")
    (root / "etc/machine-id").write_text("", encoding="utf-8")


def _import(client: DockerClient, root: Path, recipe: BaseRecipe, lines: list[str]) -> None:
    from docker.errors import APIError

    repository, _, tag = recipe.reference.rpartition(":")
    changes = [
        f"ENV PATH={_SYSTEM_PATH}",
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


# --- environments -----------------------------------------------------------------------------------------------------


def build_environment(spec: BuildSpec, *, log: Path, owner: str, reporter: Reporter) -> Image:
    """The image of `spec` on our base; see `Sandbox.build`."""
    base = base_image(reporter=reporter)
    digest = digest_of({"spec": spec.digest, "base": base.digest, "builder": _source("builder.py")})[:16]
    reference = f"{_REPOSITORY_ENV}:{digest}"
    with connection() as client:
        found = _image_id(client, reference)
        if found:
            return Image(reference=reference, digest=found, spec_digest=spec.digest)
        reporter.start("environment")
        reporter.step("environment", f"building {reference} ({len(spec.packages)} packages)")
        with locked("env-" + digest):
            found = _image_id(client, reference) or _build_with_retries(
                client, base, spec, reference, log=log, owner=owner, reporter=reporter
            )
        reporter.end("environment", reference)
        return Image(reference=reference, digest=found, spec_digest=spec.digest)


def _build_with_retries(
    client: DockerClient, base: BaseImage, spec: BuildSpec, reference: str, *, log: Path, owner: str, reporter: Reporter
) -> str:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _build(client, base, spec, reference, log=log, owner=owner)
        except ExpbenchError as error:
            if not FAILURES[error.kind].retry or attempt == _ATTEMPTS:
                raise
            reporter.warn(f"attempt {attempt} of {_ATTEMPTS}: {error}")
            time.sleep(_PAUSE_S * attempt)
    raise AssertionError("unreachable")


def _build(client: DockerClient, base: BaseImage, spec: BuildSpec, reference: str, *, log: Path, owner: str) -> str:
    from docker.errors import APIError

    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="expbench-build-") as scratch, log.open("wb") as output:
        python, version = _probe(client, base, owner)
        _write_settings(Path(scratch), spec, python if version == spec.python else spec.python)
        container = Attached(client, f"build of {reference}", _build_settings(base, python, Path(scratch), owner))
        with container:
            try:
                for data in container.lines(_BUILD_S):
                    output.write(data)
                    output.flush()  # a person may be following it
            except TimeoutError:
                output.write(b"\nended at the time limit\n")
                raise _unbuildable(spec, f"not built within {_BUILD_S:.0f} s", log) from None
            code = container.exit_code()
            output.flush()
            if code != 0:
                kind, cause = diagnose(log.read_text("utf-8", "replace"), code, spec)
                raise _failed(kind, spec, cause, log)
            try:
                return _commit(client, container.id, spec, base, python, reference, owner)
            except APIError as error:
                raise engine_error(error, f"commit of {reference}") from error


def _probe(client: DockerClient, base: BaseImage, owner: str) -> tuple[str, str]:
    """Path and `major.minor` of the base's Python."""
    code = "import sys; print(sys.executable, '%d.%d' % sys.version_info[:2])"
    settings = {
        "image": base.digest,
        "command": ["python3", "-I", "-S", "-c", code],
        "labels": labels(owner),
        "network_mode": "none",
        "cap_drop": ["ALL"],
        "auto_remove": True,
    }
    with Attached(client, f"base image {base.reference}", settings) as container:
        text = b"".join(container.lines(60.0)).decode("utf-8", "replace").split()
    if len(text) != 2 or not text[0].startswith("/"):
        raise engine_error(RuntimeError(f"its python3 answered {text}"), f"base image {base.reference}")
    return text[0], text[1]


def _write_settings(scratch: Path, spec: BuildSpec, python: str) -> None:
    settings = install_settings()
    environment = dict(settings.environment)
    if settings.ca_bundle is not None:
        shutil.copyfile(settings.ca_bundle, scratch / "ca.crt")
        for name in ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
            environment[name] = f"{_INSIDE}/ca.crt"
    payload = {
        "python": python,
        "packages": list(spec.packages),
        "system_packages": list(spec.system_packages),
        "environment": environment,
        "proxies": {name: value for name, value in environment.items() if name.lower().endswith("_proxy")},
    }
    # readable inside by the unprivileged builder through its parent only: the directory is ours alone on the host
    (scratch / "settings.json").write_text(json.dumps(payload), encoding="utf-8")
    shutil.copyfile(_uv(), scratch / "uv")
    (scratch / "uv").chmod(0o755)
    scratch.chmod(0o755)


def _uv() -> str:
    import uv

    return uv.find_uv_bin()


def _build_settings(base: BaseImage, python: str, scratch: Path, owner: str) -> dict[str, Any]:
    from docker.types import Mount

    # Mounts, not `volumes`: the committed image would declare those, and each run would get them as writable volumes
    mounts = [Mount(_INSIDE, str(scratch), type="bind", read_only=True)]
    mounts += [Mount(str(path), str(path), type="bind", read_only=True) for path in install_settings().directories]
    return {
        "image": base.digest,
        "command": [python, "-I", "-S", "-c", _source("builder.py")],
        "user": "0:0",
        "working_dir": "/",
        "labels": labels(owner) | {"expbench.phase": "install"},
        "network_mode": "bridge",
        "cap_drop": ["ALL"],
        "cap_add": _BUILD_CAPABILITIES,
        "security_opt": ["no-new-privileges"],
        "pids_limit": 4096,
        "mounts": mounts,
    }


def _commit(
    client: DockerClient, container: str, spec: BuildSpec, base: BaseImage, python: str, reference: str, owner: str
) -> str:
    repository, _, tag = reference.rpartition(":")
    configuration = {
        "Env": [f"PATH=/opt/venv/bin:{_SYSTEM_PATH}", "VIRTUAL_ENV=/opt/venv"],
        "Cmd": ["/opt/venv/bin/python"],
        "Entrypoint": [],
        "User": "1000:1000",
        "WorkingDir": "/work",
        "Labels": labels(owner, "image")
        | {
            "expbench.spec": spec.digest,
            "expbench.base": base.digest,
            "expbench.python": python,
            "expbench.phase": "run",
        },
    }
    client.api.commit(container, repository=repository, tag=tag, conf=configuration)
    return _require(client, reference)


def _source(name: str) -> str:
    return (Path(__file__).with_name("_inside") / name).read_text(encoding="utf-8")


def _unbuildable(spec: BuildSpec, cause: str, log: Path) -> ExpbenchError:
    return _failed(FailureKind.ENVIRONMENT_UNBUILDABLE, spec, cause, log)


def _failed(kind: FailureKind, spec: BuildSpec, cause: str, log: Path) -> ExpbenchError:
    steps = {
        FailureKind.NETWORK: "Check that this machine reaches its package index, then run again",
        FailureKind.DISK_FULL: "Free space where Docker keeps its data (`docker info`), then run again",
    }
    return ExpbenchError(
        kind,
        f"environment {spec.digest[:12]} (Python {spec.python}, {len(spec.packages)} packages)",
        cause,
        consequence="The environment was not built, so the code was not run",
        next_step=steps.get(kind, "Correct the repository's declared requirements or the pins") + f"; the log is {log}",
    )
