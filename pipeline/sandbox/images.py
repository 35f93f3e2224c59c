"""Environments of the Docker sandbox: one image per build spec, on our base. Content-addressed, built once.

They are not removed here: they are a cache that `docker image ls --filter label=expbench=1` lists.
"""

from __future__ import annotations

import json
import shutil
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.digests import digest_of
from pipeline.errors import FAILURES, ExpbenchError, FailureKind
from pipeline.progress import Reporter
from pipeline.sandbox._base_image import SYSTEM_PATH, BaseImage, BaseRecipe, base_image, image_id, require_image
from pipeline.sandbox._bootstrap import go_on
from pipeline.sandbox._engine import Attached, connection, engine_error, labels
from pipeline.sandbox._hostconfig import install_settings
from pipeline.sandbox._installlog import diagnose
from pipeline.sandbox._locks import locked
from pipeline.sandbox.base import BuildSpec, Image, StopHandle
from pipeline.schema import Record
from pipeline.scratch import scratch_directory

if TYPE_CHECKING:
    from docker import DockerClient

__all__ = ["BaseImage", "BaseRecipe", "ImageFacts", "base_image", "build_environment", "image_facts"]

_REPOSITORY_ENV: Final = "expbench/env"
# Building the largest environment tried (torch, CPU) took 4 minutes; compiling a package from source can take 20.
_BUILD_S: Final = 3600.0
_ATTEMPTS: Final = 3
# Before the second attempt; doubled before the third
_PAUSE_S: Final = 2.0
# dpkg and chown need these; there is no raw network, no device nodes, no tracing
_BUILD_CAPABILITIES: Final = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"]
_INSIDE: Final = "/run/expbench"
_OLD_SUBPROCESS: Final = """import os, subprocess, sys
if sys.version_info < (3, 9):
    def call(argv, user=None, group=None, extra_groups=None, umask=-1, _call=subprocess.call, **options):
        def become():
            os.setgroups(extra_groups)
            os.setgid(group)
            os.setuid(user)
            os.umask(umask)
        return _call(argv, preexec_fn=None if user is None else become, **options)
    subprocess.call = call
"""
"""Python 3.8's `subprocess` cannot change the user: done ahead of the builder, whose text names the images it makes."""


class ImageFacts(Record):
    """What an image says of itself, which everybody who may use it can read."""

    environment: tuple[str, ...]
    """`NAME=value`."""
    labels: tuple[tuple[str, str], ...]
    command: tuple[str, ...]
    """Entry point and default command."""
    history: tuple[str, ...]
    """How each layer was made, as the engine recorded it."""


def image_facts(image: Image) -> ImageFacts:
    """Configuration and history of a Docker image.

    Raises:
        ExpbenchError: `SANDBOX_BROKEN`, the engine does not have it; `SANDBOX_UNAVAILABLE`, there is no engine.
    """
    from docker.errors import APIError

    with connection() as client:
        try:
            found = client.images.get(image.digest)
            history = found.history()
        except APIError as error:
            raise engine_error(error, f"image {image.reference}") from error
    configuration = found.attrs.get("Config") or {}
    command = [*(configuration.get("Entrypoint") or ()), *(configuration.get("Cmd") or ())]
    return ImageFacts(
        environment=tuple(configuration.get("Env") or ()),
        labels=tuple(sorted((configuration.get("Labels") or {}).items())),
        command=tuple(command),
        history=tuple(f"{item.get('CreatedBy', '')} {item.get('Comment', '')}".strip() for item in history),
    )


def build_environment(
    spec: BuildSpec, *, log: Path, owner: str, reporter: Reporter, stop: StopHandle | None = None
) -> Image:
    """The image of `spec` on our base; see `StoppableSandbox.build`."""
    base = base_image(BaseRecipe.for_python(spec.python), reporter=reporter, stop=stop)
    digest = digest_of({"spec": spec.digest, "base": base.digest, "builder": _source("builder.py")})[:16]
    reference = f"{_REPOSITORY_ENV}:{digest}"
    with connection() as client:
        found = image_id(client, reference)
        if found:
            return Image(reference=reference, digest=found, spec_digest=spec.digest)
        reporter.start("environment")
        reporter.step("environment", f"building {reference} ({len(spec.packages)} packages)")
        with locked("env-" + digest, None if stop is None else partial(go_on, stop, f"build of {reference}")):
            found = image_id(client, reference) or _build_with_retries(
                client, base, spec, reference, log=log, owner=owner, reporter=reporter, stop=stop
            )
        reporter.end("environment", reference)
        return Image(reference=reference, digest=found, spec_digest=spec.digest)


def _build_with_retries(
    client: DockerClient, base: BaseImage, spec: BuildSpec, reference: str, *, log: Path, owner: str,
    reporter: Reporter, stop: StopHandle | None,
) -> str:  # fmt: skip
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _build(client, base, spec, reference, log=log, owner=owner, stop=stop)
        except ExpbenchError as error:
            stopped = error.kind is FailureKind.INTERRUPTED  # to be tried again by who stopped it, not here
            if stopped or not FAILURES[error.kind].retry or attempt == _ATTEMPTS:
                raise
            reporter.warn(f"attempt {attempt} of {_ATTEMPTS}: {error}")
            time.sleep(_PAUSE_S * attempt)
    raise AssertionError("unreachable")


def _build(
    client: DockerClient, base: BaseImage, spec: BuildSpec, reference: str, *, log: Path, owner: str,
    stop: StopHandle | None,
) -> str:  # fmt: skip
    from docker.errors import APIError

    log.parent.mkdir(parents=True, exist_ok=True)
    with scratch_directory() as scratch, log.open("wb") as output:
        python, version = _probe(client, base, owner)
        _write_settings(Path(scratch), spec, python if version == spec.python else spec.python)
        container = Attached(client, f"build of {reference}", _build_settings(base, python, Path(scratch), owner))
        with container:
            try:
                for data in container.lines(_BUILD_S, stop):
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
        "command": [python, "-I", "-S", "-c", _OLD_SUBPROCESS + f"exec({_source('builder.py')!r})"],
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
        "Env": [f"PATH=/opt/venv/bin:{SYSTEM_PATH}", "VIRTUAL_ENV=/opt/venv"],
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
    return require_image(client, reference)


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
