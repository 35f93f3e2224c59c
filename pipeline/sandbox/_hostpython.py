"""Environments of the process sandbox: an interpreter of this machine, a virtual environment per build spec."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from pipeline.digests import digest_of
from pipeline.errors import FAILURES, ExpbenchError, FailureKind
from pipeline.progress import Reporter
from pipeline.sandbox._hostconfig import install_settings
from pipeline.sandbox._installlog import INTERPRETER, diagnose
from pipeline.sandbox._isolation import Isolation, closed_parent, wrapped
from pipeline.sandbox._locks import cache_directory, locked
from pipeline.sandbox._users import claimed_user
from pipeline.sandbox.base import BuildSpec, Image

__all__ = ["build_environment", "environment_directory", "interpreter"]

_BUILD_S: Final = 3600.0
_ATTEMPTS: Final = 3
# Before the second attempt; doubled before the third
_PAUSE_S: Final = 2.0
# The scratch space of an install holds downloads and build directories; torch's wheels unpack to 5 GB.
_SCRATCH_BYTES: Final = 16 << 30
_REVISION: Final = 1
# Set-up code of packages can fork without end too; dash has -p where bash has -u, and the limit is as in containers.
_BOUNDED: Final = '(ulimit -p 4096) 2>/dev/null && ulimit -p 4096 || ulimit -u 4096; exec "$@"'


def interpreter(version: str, held: Isolation) -> str | None:
    """An interpreter of this `major.minor` on this machine, the system's own first (others may see only that)."""
    names = [f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"]
    if f"{sys.version_info[0]}.{sys.version_info[1]}" == version:
        names.append(str(getattr(sys, "_base_executable", sys.executable)))
    names.append(shutil.which(f"python{version}") or "")
    for name in names:
        if not name or not Path(name).is_file():
            continue
        real = str(Path(name).resolve())
        public = closed_parent(Path(real)) is None
        if _runs(real, version) and (public or held.namespaces or os.geteuid() != 0):
            return real
    return None


def _runs(path: str, version: str) -> bool:
    code = "import sys, hashlib, ssl; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([path, "-I", "-c", code], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == version


def environment_directory(image: Image) -> Path:
    """Where the environment of this image lies."""
    return cache_directory() / "environments" / image.reference.removeprefix("process:")


def build_environment(spec: BuildSpec, held: Isolation, *, log: Path, reporter: Reporter) -> Image:
    """The environment of `spec`; see `Sandbox.build`."""
    _require_system_packages(spec)
    found = interpreter(spec.python, held)
    digest = digest_of({"spec": spec.digest, "interpreter": found or "managed", "revision": _REVISION})[:16]
    image = Image(reference=f"process:{digest}", digest=digest, spec_digest=spec.digest)
    final = environment_directory(image)
    if final.is_dir():
        return image
    reporter.start("environment")
    reporter.step("environment", f"building {image.reference} ({len(spec.packages)} packages)")
    with locked("env-process-" + digest):
        for attempt in range(1, _ATTEMPTS + 1):
            if final.is_dir():
                break
            try:
                _build(spec, found, final, log, held)
            except ExpbenchError as error:
                if not FAILURES[error.kind].retry or attempt == _ATTEMPTS:
                    raise
                reporter.warn(f"attempt {attempt} of {_ATTEMPTS}: {error}")
                time.sleep(_PAUSE_S * attempt)
    reporter.end("environment", image.reference)
    return image


def _require_system_packages(spec: BuildSpec) -> None:
    """Outside containers nothing is installed on the host; what is there serves."""
    missing = []
    for name in spec.system_packages:
        query = ["dpkg-query", "--show", "--showformat=${Status}", name]
        if not shutil.which("dpkg-query"):
            missing.append(name)
            continue
        done = subprocess.run(query, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode != 0 or not done.stdout.endswith(" installed"):
            missing.append(name)
    if missing:
        raise ExpbenchError(
            FailureKind.ENVIRONMENT_UNBUILDABLE,
            f"environment {spec.digest[:12]}",
            f"system packages are missing on this machine: {', '.join(missing)}",
            consequence="The process sandbox installs nothing on the machine itself, so the code was not run",
            next_step=f"Run `sudo apt install {' '.join(missing)}`, or use the Docker sandbox",
        )


def _build(spec: BuildSpec, found: str | None, final: Path, log: Path, held: Isolation) -> None:
    """Install into a directory beside the final one, then rename: an environment is there completely or not at all."""
    final.parent.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    stage = Path(tempfile.mkdtemp(prefix=f".{final.name}-", dir=final.parent))
    try:
        stage.chmod(0o755)
        with claimed_user() as uid, log.open("wb") as output:
            if uid is not None:
                os.chown(stage, uid, uid)
            python = found or _managed(spec, stage, log, output.fileno())
            venv = stage / "venv"
            steps = [["venv", "--relocatable", "--no-config", "--python", python, str(venv)]]
            if spec.packages:
                pins = stage / "pins.txt"
                pins.write_text("\n".join(spec.packages) + "\n", encoding="utf-8")
                install = ["pip", "install", "--no-config", "--no-deps", "--compile-bytecode", "-r", str(pins)]
                steps.append([*install, "--python", str(venv / "bin" / "python")])
            for step in steps:
                _uv(step, spec, stage, python, log, output.fileno(), held, uid)
        if uid is not None:
            _hand_over(venv)
        venv.rename(final)
    except OSError as error:
        raise ExpbenchError(
            FailureKind.DISK_FULL if error.errno == 28 else FailureKind.SANDBOX_BROKEN,
            f"environment directory {final}",
            str(error),
            consequence="The environment was not built",
            next_step="Check that the disk has room and that the directory can be written",
        ) from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _managed(spec: BuildSpec, stage: Path, log: Path, output: int) -> str:
    """An interpreter from uv's builds, where this machine has none of that version."""
    target = cache_directory() / "python"
    target.mkdir(parents=True, exist_ok=True)
    with locked(f"python-{spec.python}"):
        pattern = f"cpython-{spec.python}.*/bin/python{spec.python}"
        if not list(target.glob(pattern)):
            environment = install_settings().environment | {"HOME": str(stage), "PATH": os.defpath}
            command = [_uv_binary(), "python", "install", "--no-config", "--no-bin", spec.python]
            environment |= {"UV_PYTHON_INSTALL_DIR": str(target), "UV_CACHE_DIR": str(stage / "cache")}
            environment |= _certificates()
            code = _run(command, environment, output)
            if code != 0 or not list(target.glob(pattern)):
                raise _failure(spec, INTERPRETER, log)
        return str(sorted(target.glob(pattern))[-1].resolve())


def _uv_binary() -> str:
    import uv

    return uv.find_uv_bin()


def _certificates() -> dict[str, str]:
    bundle = install_settings().ca_bundle
    if bundle is None:
        return {}
    return dict.fromkeys(("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"), str(bundle))


def _uv(
    arguments: list[str], spec: BuildSpec, stage: Path, python: str, log: Path, output: int, held: Isolation,
    uid: int | None,
) -> None:  # fmt: skip
    """One step of uv, shut in as far as this machine permits (set-up code of packages runs here)."""
    settings = install_settings()
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(stage / "home"),
        "LANG": "C.UTF-8",
        "TMPDIR": str(stage),
        "UV_CACHE_DIR": str(stage / "cache"),
        "UV_NO_PROGRESS": "1",
        "UV_PYTHON_DOWNLOADS": "never",
    }
    environment |= settings.environment | _certificates()
    uv = _uv_binary()
    argv = [uv, *arguments]
    if held.namespaces:
        bundle = [(settings.ca_bundle, False)] if settings.ca_bundle else []
        resolver = Path("/etc/resolv.conf").resolve()
        expose = [
            (stage, True), (Path(uv).resolve().parent, False), (Path(uv).parent, False),
            (Path(python).parents[1], False), (resolver, False), *bundle,
            *((path, False) for path in settings.directories),
        ]  # fmt: skip
        argv = wrapped(argv, hide=[], scratch_bytes=_SCRATCH_BYTES, expose=_existing(expose), network=True, user=uid)
        uid = None
    code = _run(argv, environment, output, uid)
    if code != 0:
        raise _failure(spec, code, log)


def _existing(expose: list[tuple[Path, bool]]) -> list[tuple[Path, bool]]:
    """Each path once, only those that exist, outer ones first."""
    return sorted({path: writable for path, writable in expose if path.exists()}.items())


def _run(argv: list[str], environment: dict[str, str], output: int, uid: int | None = None) -> int:
    """Run a step in a process group of its own, ended as a whole at the time limit."""
    os.write(output, ("+ " + " ".join(argv[-8:]) + "\n").encode("utf-8", "replace"))
    extra: list[int] | None = [] if uid is not None else None
    bounded = ["/bin/sh", "-c", _BOUNDED, "sh", *argv]
    with subprocess.Popen(
        bounded, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", umask=0o022,
        start_new_session=True, user=uid, group=uid, extra_groups=extra,
    ) as process:  # fmt: skip
        try:
            return process.wait(_BUILD_S)
        except subprocess.TimeoutExpired:
            os.write(output, b"ended at the time limit\n")
            return 1
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)


def _hand_over(venv: Path) -> None:
    """Root keeps what the install's user made: what runs later as that user must not change the environment."""
    for here, directories, files in os.walk(venv):
        for name in (".", *directories, *files):
            os.chown(Path(here) / name, 0, 0, follow_symlinks=False)


def _failure(spec: BuildSpec, code: int, log: Path) -> ExpbenchError:
    kind, cause = diagnose(log.read_text("utf-8", "replace"), code, spec)
    steps = {
        FailureKind.NETWORK: "Check that this machine reaches its package index, then run again",
        FailureKind.DISK_FULL: "Free space on this machine's disk, then run again",
    }
    return ExpbenchError(
        kind,
        f"environment {spec.digest[:12]} (Python {spec.python}, {len(spec.packages)} packages)",
        cause,
        consequence="The environment was not built, so the code was not run",
        next_step=steps.get(kind, "Correct the repository's declared requirements or the pins") + f"; the log is {log}",
    )
