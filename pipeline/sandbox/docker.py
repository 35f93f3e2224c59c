"""Run code in containers of a Docker Engine.

What holds a run in:

- no network, no capabilities for the code, no new privileges, a read-only root, the engine's default seccomp profile;
- `/work` (the tree), `/tmp` and `/dev/shm` are tmpfs of `disk_mb` each, and the supervisor holds their sum at
  `disk_mb`. The engine's own storage has no quotas on common file systems, so disk is memory here: the container's hard
  memory limit is `memory_mb + disk_mb` (and some for the supervisor), while the supervisor, which can tell files from
  memory, ends the run when the code's own memory goes over `memory_mb`;
- pids and cpus by the cgroup, wall time by the supervisor and once more from this side.

The supervisor runs as root with the three capabilities that it needs to become uid 1000 and to end processes of that
user; what it runs has none. Nothing of the host is mounted but the read-only directories that a run names.

GPUs are asked for as device requests. The engine finds out whether it has any when a container starts; a type is
looked for among the names that the driver reports.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final, Literal

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import Reporter
from pipeline.sandbox import images
from pipeline.sandbox._commands import check_directories, experiment_environment
from pipeline.sandbox._engine import Attached, connection, engine_error, labels, next_step_for
from pipeline.sandbox._gpus import device_request
from pipeline.sandbox._program import bootstrap
from pipeline.sandbox._session import SupervisorGone, drive
from pipeline.sandbox.base import BuildSpec, Image, Network, RunResult, RunSpec, SandboxStatus, StopHandle
from pipeline.schema import Problem, Severity

__all__ = ["DockerSandbox"]

_MB: Final = 1 << 20
_UID: Final = 1000
# The supervisor and init: 14 MB seen; the kernel charges page tables and inodes of the tree here too.
_SUPERVISOR_MB: Final = 96
_SUPERVISOR_PIDS: Final = 4
# 4 KB files fill the disk before its inodes run out
_INODES_PER_MB: Final = 256
# Inside the container, where nobody else is
_TMP: Final = "/tmp"  # noqa: S108
_SHM: Final = "/dev/shm"  # noqa: S108
_SYSTEM_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_MINIMUM_API: Final = (1, 40)


class DockerSandbox:
    """The sandbox of a machine with Docker Engine 19.03 or later."""

    name: Literal["docker", "process"] = "docker"

    def status(self) -> SandboxStatus:
        """Does an engine answer? Never raises."""
        try:
            with connection() as client:
                version = client.version()
        except ExpbenchError as error:
            return SandboxStatus(
                name="docker", available=False, detail=error.cause, next_step=next_step_for(error.cause)
            )
        except (OSError, ValueError) as error:
            return SandboxStatus(name="docker", available=False, detail=str(error), next_step=next_step_for(str(error)))
        engine, api = str(version.get("Version", "?")), str(version.get("ApiVersion", "0.0"))
        if tuple(int(part) for part in api.split(".")) < _MINIMUM_API or version.get("Os", "linux") != "linux":
            detail = f"Docker Engine {engine} (API {api}, {version.get('Os')}) is too old or not Linux"
            return SandboxStatus(name="docker", available=False, detail=detail, next_step="Install a newer engine")
        return SandboxStatus(name="docker", available=True, detail=f"Docker Engine {engine} (API {api})")

    def build(
        self, spec: BuildSpec, *, log: Path, owner: str, reporter: Reporter, stop: StopHandle | None = None
    ) -> Image:
        """See `StoppableSandbox.build`."""
        return images.build_environment(spec, log=log, owner=owner, reporter=reporter, stop=stop)

    def run(
        self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str, stop: StopHandle | None = None
    ) -> RunResult:
        """See `StoppableSandbox.run`."""
        from docker.errors import DockerException

        check_directories(spec.commands, spec.limits)
        with connection() as client:
            python, cpus = _inspect(client, image)
            problems = _announce(spec, cpus)
            settings = _settings(image, python, spec, owner, min(spec.limits.cpus, float(cpus)))
            began = time.time()
            with Attached(client, f"run of {image.reference}", settings) as container:
                try:
                    return drive(container, _payload(spec), tree, spec, out, problems, stop)
                except SupervisorGone:
                    return _gone(container, began, spec, problems)
                except DockerException as error:
                    raise engine_error(error, f"run of {image.reference}") from error

    def reap(self, owner: str) -> int:
        """See `Sandbox.reap`."""
        from docker.errors import APIError, NotFound

        removed = 0
        filters: dict[str, str | list[str] | bool] = {
            "label": [f"{name}={value}" for name, value in labels(owner).items()]
        }
        with connection() as client:
            try:
                for container in client.containers.list(all=True, filters=filters, ignore_removed=True):
                    try:
                        container.remove(force=True, v=True)
                    except NotFound:
                        continue
                    except APIError as error:
                        if error.status_code != 409:  # 409: the engine is removing it already
                            raise
                    removed += 1
                for volume in client.volumes.list(filters=filters):
                    volume.remove(force=True)
                    removed += 1
            except APIError as error:
                raise engine_error(error, f"what {owner} left behind") from error
        return removed


def _inspect(client: Any, image: Image) -> tuple[str, int]:
    """Path of the base's Python in the image, and the engine's number of CPUs."""
    from docker.errors import APIError, ImageNotFound

    try:
        found = client.images.get(image.digest)
        cpus = int(client.info()["NCPU"])
    except ImageNotFound as error:
        raise ExpbenchError(
            FailureKind.SANDBOX_BROKEN,
            f"image {image.reference}",
            "the engine no longer has it",
            consequence="Nothing was run",
            next_step="Run again: the environment is built anew",
        ) from error
    except APIError as error:
        raise engine_error(error, f"image {image.reference}") from error
    return str(found.labels.get("expbench.python", "/usr/bin/python3")), cpus


def _announce(spec: RunSpec, cpus: int) -> tuple[Problem, ...]:
    problems = []
    if spec.limits.cpus > cpus:
        message = f"{spec.limits.cpus:g} CPUs were asked for, the engine has {cpus}"
        problems.append(Problem(component="sandbox.docker", where="run", message=message, severity=Severity.INFO))
    if spec.network is not Network.NONE:
        message = "the run could reach the network"
        problems.append(Problem(component="sandbox.docker", where="run", message=message))
    return tuple(problems)


def _settings(image: Image, python: str, spec: RunSpec, owner: str, cpus: float) -> dict[str, Any]:
    from docker.types import Mount

    limits = spec.limits
    inodes = max(limits.disk_mb * _INODES_PER_MB, 4096)
    disk = f"size={limits.disk_mb}m,nr_inodes={inodes},uid={_UID},gid={_UID},exec"
    memory = (limits.memory_mb + limits.disk_mb + _SUPERVISOR_MB) * _MB
    tmpfs = {"/work": f"{disk},mode=0755", _TMP: f"{disk},mode=1777"}
    if spec.outbox is not None:
        tmpfs[spec.outbox] = f"{disk},mode=0755"
    # only root writes there, and only links: what goes through them is in the tree, and counts there
    tmpfs |= {f"/{path.split('/')[1]}": "size=1m,mode=0755" for path, _ in spec.links}
    settings: dict[str, Any] = {} if spec.gpus is None else {"device_requests": [device_request(spec.gpus)]}
    settings |= {} if spec.dns is None else {"dns": [spec.dns]}
    mounts = [Mount(mount.target, str(mount.source.resolve()), type="bind", read_only=True) for mount in spec.mounts]
    return settings | {
        "image": image.digest,
        "command": [python, "-I", "-S", "-c", bootstrap()],
        "user": "0:0",
        "working_dir": "/",
        "environment": {"PATH": f"/opt/venv/bin:{_SYSTEM_PATH}"},
        "hostname": "sandbox",
        "labels": labels(owner) | {"expbench.phase": "run"},
        "network_mode": "none" if spec.network is Network.NONE else "bridge",
        "auto_remove": True,
        "read_only": True,
        "cap_drop": ["ALL"],
        "cap_add": ["KILL", "SETGID", "SETUID"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": limits.pids + _SUPERVISOR_PIDS,
        "mem_limit": memory,
        "memswap_limit": memory,
        "nano_cpus": int(cpus * 1e9),
        "shm_size": limits.disk_mb * _MB,
        "tmpfs": tmpfs,
        "mounts": mounts,
    }


def _payload(spec: RunSpec) -> dict[str, Any]:
    return {
        "container": True,
        "kill_everything": True,
        "uid": _UID,
        "gid": _UID,
        "work": "/work",
        "make": [f"{_TMP}/home"],
        "disks": ["/work", _TMP, _SHM, *([spec.outbox] if spec.outbox else [])],
        "outbox": spec.outbox,
        "links": spec.links,
        "directories": [],
        "rlimits": {},
        "nproc": None,  # the cgroup counts
        "cpus": [],
        "env": experiment_environment(spec, home=f"{_TMP}/home", tmp=_TMP, venv="/opt/venv", system_path=_SYSTEM_PATH),
    }


def _gone(container: Attached, began: float, spec: RunSpec, problems: tuple[Problem, ...]) -> RunResult:
    """The supervisor ended early: the kernel ran out of the container's memory, or something is broken."""
    if container.ran_out_of_memory(began):
        return RunResult(
            commands=(),
            failure=FailureKind.RUN_OUT_OF_MEMORY,
            message=f"the container went over its memory limit ({spec.limits.memory_mb} MB beside "
            f"{spec.limits.disk_mb} MB of disk) so fast that its supervisor was ended too",
            problems=problems,
            duration_s=round(time.time() - began, 4),
        )
    said = container.diagnostics.decode("utf-8", "replace").strip()[-600:]
    raise ExpbenchError(
        FailureKind.SANDBOX_BROKEN,
        f"container {container.id[:12]}",
        f"its supervisor ended before the run did{': ' + said if said else ''}",
        consequence="Nothing is known about the code",
        next_step="Run again; if it comes back, look at the engine's log",
    )
