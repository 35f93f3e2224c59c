"""The program that installs an environment *inside* a build container.

Like `supervisor` it is sent in as text and uses the standard library only. Its settings (JSON, mounted for the build
only) may hold credentials, so they reach uv through its environment and are in no layer. apt runs as root; uv, and with
it the set-up code of packages, runs as the unprivileged user. It ends when stdin does, so that a build whose client
was killed does not go on.

Exit codes: 0 well, 10 system packages, 11 virtual environment, 12 Python packages, 13 client gone.
"""

# ruff: noqa: PTH103, PTH118, PTH123
# byte paths: file names need not be UTF-8, and pathlib has none

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading

SETTINGS = "/run/expbench/settings.json"
VENV = "/opt/venv"
CACHE = "/opt/uv-cache"
PASSWD = "runner:x:1000:1000:runner:/tmp/home:/bin/sh\n"


def run(argv: list[str], env: dict[str, str], user: int | None) -> int:
    """Run a step; its output goes to the build log."""
    print("+ " + " ".join(argv), flush=True)
    if user is None:
        return subprocess.call(argv, env=env, stdin=subprocess.DEVNULL, cwd="/")
    return subprocess.call(
        argv, env=env, stdin=subprocess.DEVNULL, cwd="/", user=user, group=user, extra_groups=[], umask=0o022
    )


def watch_client() -> None:
    """End the build when the client is gone."""
    while os.read(0, 4096):
        pass
    os._exit(13)


def prepare_user() -> None:
    """The account that commands run as."""
    with open("/etc/passwd", "r+", encoding="utf-8") as stream:
        if ":1000:1000:" not in stream.read():
            stream.write(PASSWD)
    with open("/etc/group", "r+", encoding="utf-8") as stream:
        if ":1000:" not in stream.read():
            stream.write("runner:x:1000:\n")
    for directory in (VENV, CACHE, "/opt/python"):
        os.makedirs(directory, exist_ok=True)
        os.chown(directory, 1000, 1000)
    os.makedirs("/work", exist_ok=True)


def system_packages(names: list[str]) -> int:
    """apt-get install, without leftovers."""
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LANG": "C.UTF-8"}
    env.update(settings["proxies"])
    quiet = ["-o", "Acquire::Retries=3", "-o", "APT::Sandbox::User=root"]
    code = run(["apt-get", *quiet, "update"], env, None)
    if code == 0:
        code = run(["apt-get", *quiet, "install", "-y", "--no-install-recommends", *names], env, None)
    if code == 0:
        run(["apt-get", "clean"], env, None)
        shutil.rmtree("/var/lib/apt/lists", ignore_errors=True)
    return code


def main() -> int:
    """All steps."""
    threading.Thread(target=watch_client, daemon=True).start()
    prepare_user()
    if settings["system_packages"] and system_packages(settings["system_packages"]) != 0:
        return 10
    env = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": "/opt/uv-cache/home",
        "LANG": "C.UTF-8",
        "UV_CACHE_DIR": CACHE,
        "UV_NO_PROGRESS": "1",
        "UV_PYTHON_INSTALL_DIR": "/opt/python",
    }
    env.update(settings["environment"])
    uv = "/run/expbench/uv"
    if run([uv, "venv", "--clear", "--no-config", "--python", settings["python"], VENV], env, 1000) != 0:
        return 11
    if settings["packages"]:
        pins = CACHE + "/pins.txt"
        with open(pins, "w", encoding="utf-8") as stream:
            stream.write("\n".join(settings["packages"]) + "\n")
        argv = [
            uv,
            "pip",
            "install",
            "--no-config",
            "--no-deps",
            "--compile-bytecode",
            "--python",
            VENV + "/bin/python",
        ]
        if run([*argv, "-r", pins], env, 1000) != 0:
            return 12
    shutil.rmtree(CACHE)
    for here, _, files in os.walk(VENV):
        for name in [".", *files]:
            os.chown(os.path.join(here, name), 0, 0, follow_symlinks=False)
    return 0


if __name__ == "__main__":
    with open(SETTINGS, encoding="utf-8") as source:
        settings = json.load(source)
    code = main()
    sys.stdout.flush()
    os._exit(code)
