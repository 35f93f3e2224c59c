"""harbor task directories: `task.toml`, `instruction.md`, `environment/`, `solution/`, `tests/` (task format 1.1).

The agent sees the instruction and the container; `tests/` and `solution/` hold ground truth and reach the container
after the agent has ended (solution: for harbor's oracle only). The verifier writes `/logs/verifier/reward.json`:
`reward` (1 when everything passes), and beside it of an experiment `execution` and `conclusion` (share of the expected
numbers), of a histogram `closeness`, of tables `overall` and `data_accuracy`. Non-goals: design, implementation and
integrity, which need expbench's judges and monitor.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from evaluation.exports.forms import exported, scorer_packages, unexportable, write_scorer
from evaluation.exports.parts import CANARY, ExportReport, notes_for, program, times
from evaluation.task import EvaluationTask
from pipeline.files import replace_directory, write_text
from pipeline.formats.archives import write_archive
from pipeline.text import shorten

__all__ = ["WORKSPACE", "dockerfile", "write_harbor"]

WORKSPACE: Final = "/workspace"
_ORG: Final = "expbench"
_PYTHON: Final = "3.11"
"""Where the source of a task does not say."""
_TEST: Final = f"""#!/usr/bin/env bash
# {CANARY}
# Always writes the rewards anew: whatever the agent may have left there does not count.
set -u
mkdir -p /logs/verifier
rm -f /logs/verifier/reward.json /logs/verifier/reward.txt
exec python3 /tests/verify.py --workspace {WORKSPACE} --expected /tests/expected.json --out /logs/verifier
"""
_SCORER: Final = "/opt/expbench-scorer"
_SCORE: Final = f"""#!/usr/bin/env bash
# {CANARY}
# Always writes the rewards anew: whatever the agent may have left there does not count.
set -u
mkdir -p /logs/verifier
rm -f /logs/verifier/reward.json /logs/verifier/reward.txt
python={_SCORER}/bin/python
[ -x "$python" ] || python=python3
exec "$python" /tests/score.py --score /tests/score.json --submission {WORKSPACE} --out /logs/verifier
"""
_SOLVE: Final = f"""#!/usr/bin/env bash
# {CANARY}
set -euo pipefail
here="$(cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")" && pwd)"
cp -a "$here/files/." {WORKSPACE}/
cd {WORKSPACE}
if [ -f reproduce.sh ]; then bash reproduce.sh; fi
"""


def write_harbor(
    tasks: Sequence[EvaluationTask], out: Path, *, base_image: str | None = None, installed: bool = False,
    network: Literal["no-network", "public"] = "no-network",
) -> ExportReport:  # fmt: skip
    """Write one task directory a task; earlier ones of the same names are replaced as a whole.

    Args:
        tasks: as `evaluation.sources.load_tasks` gives them.
        out: directory that gets them.
        base_image: image that the environments build on; None: Docker's official Python of the task's version.
        installed: it has the task's packages already (as the images that expbench builds have).
        network: of the containers; the tasks are made for none.
    """
    written, skipped, without = [], [], []
    for task in tasks:
        why = unexportable(task)
        if why:
            skipped.append((task.id, why))
            continue
        with replace_directory(out / task.id) as directory:
            missing = _write_task(task, directory, base_image, installed=installed, network=network)
        written.append(task.id)
        if missing:
            without.append((task.id, missing))
    return ExportReport(
        form="harbor", directory=out, tasks=tuple(written), skipped=tuple(skipped), without_oracle=tuple(without),
        notes=notes_for(tasks, written),
    )  # fmt: skip


def _write_task(task: EvaluationTask, directory: Path, base_image: str | None, *, installed: bool, network: str) -> str:
    form = exported(task)
    write_text(directory / "instruction.md", form.instructions)
    write_text(directory / "task.toml", _toml(_config(task, form.verifier_s, network)))
    environment = directory / "environment"
    write_archive(environment / "repository.tar.gz", form.tree)
    write_text(
        environment / "Dockerfile",
        dockerfile(
            task, base_image, installed=installed, workspace=WORKSPACE, home=WORKSPACE,
            scorer=_SCORER if form.program == "score.py" else None,
        ),
    )  # fmt: skip
    write_text(environment / "requirements.txt", "".join(f"{pin}\n" for pin in task.public.environment.packages))
    tests = directory / "tests"
    if form.program == "score.py":
        write_scorer(tests)
    else:
        write_text(tests / form.program, program(form.program))
    form.write_verifier(tests)
    _write_script(tests / "test.sh", _TEST if form.program == "verify.py" else _SCORE)
    missing = form.write_solution(directory / "solution" / "files")
    if not missing:
        _write_script(directory / "solution" / "solve.sh", _SOLVE)
    return missing


def _write_script(path: Path, text: str) -> None:
    write_text(path, text)
    path.chmod(0o755)


def _config(task: EvaluationTask, verifier: int, network: str) -> dict[str, Any]:
    public = task.public
    agent = times(task).agent
    environment: dict[str, Any] = {
        "build_timeout_sec": 1800.0,
        "cpus": max(1, math.ceil(public.resources.cpus)),
        "memory_mb": public.resources.memory_mb,
        "storage_mb": 10240,
        "gpus": public.resources.gpus,
        "workdir": WORKSPACE,
        "network_mode": network,
    }
    metadata = {
        "family": public.family.value,
        "paper": public.paper.title,
        "paper_url": public.paper.url,
        "repository": public.repository.url,
        "repository_commit": public.repository.commit,
        "repository_license": public.repository.license,
        "category": task.category,
    }
    return {
        "schema_version": "1.1",
        "task": {
            "name": f"{_ORG}/{task.id}",
            "description": shorten(public.question, 200),
            "keywords": ["research-experiment", public.family.value],
        },
        "metadata": {name: value for name, value in metadata.items() if value},
        "verifier": {"timeout_sec": float(verifier)},
        "agent": {"timeout_sec": float(agent)},
        "environment": environment,
    }


def _toml(value: Mapping[str, Any]) -> str:
    """TOML of tables of plain values; JSON's texts, numbers and lists of texts are TOML's too."""
    lines = [f"{name} = {_toml_value(item)}" for name, item in value.items() if not isinstance(item, dict)]
    for name, item in value.items():
        if isinstance(item, dict):
            lines += ["", f"[{name}]", *(f"{key} = {_toml_value(inner)}" for key, inner in item.items())]
    return "\n".join(lines) + "\n"


def _toml_value(value: Any) -> str:
    # a delete character is the one that JSON leaves bare and TOML forbids
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def dockerfile(
    task: EvaluationTask, base_image: str | None, *, installed: bool, workspace: str | None, home: str,
    scorer: str | None = None,
) -> str:  # fmt: skip
    """The build file of a task's container.

    Args:
        task: names Python and packages.
        base_image: to build on; None: Docker's official Python.
        installed: it has the packages already.
        workspace: where the masked repository is put; None: nowhere, the harness copies it in.
        home: working directory.
        scorer: directory for an environment of the scorer's packages; None: it needs none there.
    """
    environment = task.public.environment
    # images that expbench builds name an unprivileged user; these harnesses install agents and verifiers as root
    lines = [f"FROM {base_image or f'python:{environment.python or _PYTHON}-slim'}", "USER root"]
    if not installed:
        system = ("bash", "git", "ca-certificates", *environment.system_packages)
        packages = " ".join(shlex.quote(name) for name in system)
        lines.append(
            f"RUN apt-get update && apt-get install -y --no-install-recommends {packages}"
            " && rm -rf /var/lib/apt/lists/*"
        )
        if environment.packages:
            lines += [
                "COPY requirements.txt /tmp/requirements.txt",
                "RUN python3 -m pip install --no-cache-dir -r /tmp/requirements.txt",
            ]
        if scorer is not None:  # apart from the task's packages, which it must not change
            pins = " ".join(shlex.quote(pin) for pin in scorer_packages())
            lines.append(f"RUN python3 -m venv {scorer} && {scorer}/bin/pip install --no-cache-dir {pins}")
    if workspace is not None:
        lines.append(f"ADD repository.tar.gz {workspace}/")
    lines.append(f"WORKDIR {home}")
    if workspace is not None:  # one commit, so that a patch can be taken; no history to look into
        commit = "git -c user.name=expbench -c user.email=expbench@localhost commit -q -m 'starter code'"
        lines.append(f"RUN git init -q && git add -A && {commit}")
    return "\n".join(lines) + "\n"
