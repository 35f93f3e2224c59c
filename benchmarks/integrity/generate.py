"""Really run the scripted agents and record what happened.

    python -m benchmarks.integrity.generate OUT.jsonl [NAME...]

Every step is a command in one container (`DockerSandbox`, no network); file writes are made there, too. The world of a
scenario is a git repository of one commit, or of two where the originals are in the first. Each line of the output
holds a scenario's name, labels, trajectory and submission; `tests.evaluation.integrity.records` reads it back.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.integrity.holdout import HOLDOUT
from benchmarks.integrity.holdout2 import HOLDOUT_2
from benchmarks.integrity.scenarios import SCENARIOS, Respond, Run, Say, Scenario, Write
from evaluation.episode import EpisodeFolder
from evaluation.harness.submission_reader import take_submission
from evaluation.trajectory import CommandRun, End, Event, FileChange, ModelTurn
from pipeline.files import write_bytes, write_text
from pipeline.progress import SilentReporter
from pipeline.sandbox import BuildSpec, Command, Image, Limits, RunSpec
from pipeline.sandbox.docker import DockerSandbox
from tests.evaluation.integrity.world import KEPT, MASKED

OWNER: Final = "integrity-benchmark"
_MARK: Final = re.compile(r"\n?__exit__=(\d+)\n?\Z")
_PRINTED: Final = re.compile(r"estimator=(\w+) rate=([\d.]+) mse=(-?[\d.]+)")


def make_world(root: Path, world: str) -> None:
    """A repository with the masked files taken out; `history` keeps the commit that had them."""
    first = {**KEPT, **MASKED} if world == "history" else KEPT
    for path, text in first.items():
        write_text(root / path, text)
    _git(root, "init", "-q", "-b", "master")
    _commit(root, "Initial")
    if world == "history":
        for path in MASKED:
            (root / path).unlink()
        _commit(root, "Mask")


def _commit(root: Path, message: str) -> None:
    _git(root, "add", "-A")
    _git(root, "-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "-m", message)


def _git(root: Path, *arguments: str) -> None:
    date = "2026-01-01T00:00:00Z"
    subprocess.run(
        ["git", *arguments], cwd=root, check=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(root), "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date},
    )  # fmt: skip


def _shell(text: str) -> Command:
    """A step that never ends the run: its exit code is printed behind its output."""
    script = (
        f"exec 2>&1\nexport GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a "
        f'GIT_COMMITTER_EMAIL=a@b\n(\n{text}\n)\necho "\n__exit__=$?"\nexit 0'
    )
    return Command(
        argv=("bash", "-c", script.replace('echo "\n__exit__=$?"', 'rc=$?; printf "\\n__exit__=%s\\n" "$rc"')),
        directory=".",
    )


def _write(step: Write) -> Command:
    data = base64.b64encode(step.text.encode()).decode()
    path = shlex.quote(step.path)
    return _shell(f"mkdir -p $(dirname {path}) && echo {data} | base64 -d > {path}")


def run_scenario(scenario: Scenario, sandbox: DockerSandbox, image: Image, scratch: Path) -> dict[str, Any]:
    """Execute one scenario and return its record."""
    tree, out = scratch / "tree", scratch / "out"
    make_world(tree, scenario.world)
    masked = scratch / "masked"
    shutil.copytree(tree, masked)
    hidden = [_shell(f"cd . && {text}") for text in scenario.hidden]
    steps = [step for step in scenario.steps if isinstance(step, Run | Write)]
    commands = [
        *hidden,
        *(_write(step) if isinstance(step, Write) else _shell(step.command) for step in steps),
        Command(argv=("true",)),
    ]
    result = sandbox.run(
        image, tree, RunSpec(commands=tuple(commands), limits=Limits(wall_s=120, pids=64)), out=out, owner=OWNER
    )
    if result.failure is not None:
        sys.exit(f"{scenario.name}: {result.failure}: {result.message}")
    outputs = {id(step): _output(out, index) for index, step in enumerate(steps, len(hidden))}
    events, numbers = _events(scenario, outputs)
    _overlay(tree, out / "files")
    answer = next((step for step in scenario.steps if isinstance(step, Respond)), None)
    if answer is not None:
        text, reported = answer.conclude(numbers)
        response = json.dumps(
            {
                "design": {
                    "constant": {"n": "60", "repetitions": "80", "outlier": "8.0"},
                    "independent": {"estimator": ["mean", "median", "trimmed"], "rate": ["0.0", "0.1", "0.2"]},
                    "dependent": {"mean squared error": []},
                },
                "conclusion": {"text": text, "numbers": reported},
                "outputs": ["results.json"],
            },
            indent=1,
        )
        write_text(tree / "response.json", response)
        events.append(FileChange(seq=len(events), at=0.0, path="response.json", action="created"))
    events.append(End(seq=len(events), at=0.0, reason="finished"))
    folder = EpisodeFolder(scratch / "episode")
    take_submission(tree, masked, folder)
    return {
        "set": _set_of(scenario), "name": scenario.name,
        "labels": list(scenario.labels), "attempt": scenario.attempt,
        "events": [event.model_dump(mode="json", exclude_defaults=True) | {"kind": event.kind} for event in events],
        "patch": (folder.submission / "patch.diff").read_text("utf-8", "replace"),
        "response": _read(folder.submission / "response.json"), "reproduce": _read(folder.submission / "reproduce.sh"),
    }  # fmt: skip


def _set_of(scenario: Scenario) -> str:
    return "holdout" if scenario in HOLDOUT else "holdout-2" if scenario in HOLDOUT_2 else "development"


def _output(out: Path, index: int) -> tuple[str, int]:
    text = (out / f"{index}.stdout").read_text("utf-8", "replace")
    mark = _MARK.search(text)
    return (text[: mark.start()], int(mark[1])) if mark else (text, -1)


def _events(scenario: Scenario, outputs: dict[int, tuple[str, int]]) -> tuple[list[Event], dict[str, float]]:
    events: list[Event] = []
    numbers: dict[str, float] = {}
    for step in scenario.steps:
        seq = len(events)
        if isinstance(step, Say):
            events.append(ModelTurn(seq=seq, at=0.0, text=step.text))
        elif isinstance(step, Write):
            events.append(FileChange(seq=seq, at=0.0, path=step.path, action="created", text=step.text))
        elif isinstance(step, Run):
            text, code = outputs[id(step)]
            events.append(CommandRun(seq=seq, at=0.0, command=step.command, output=text, exit_code=code))
            numbers |= {f"{name} rate {rate}": float(value) for name, rate, value in _PRINTED.findall(text)}
    return events, numbers


def _overlay(tree: Path, produced: Path) -> None:
    for path in sorted(produced.rglob("*")) if produced.is_dir() else []:
        relative = path.relative_to(produced)
        if path.is_file() and not path.is_symlink() and ".git" not in relative.parts:
            (tree / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, tree / relative)


def _read(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def main() -> None:
    target = Path(sys.argv[1])
    wanted = set(sys.argv[2:])
    sandbox = DockerSandbox()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        image = sandbox.build(BuildSpec(), log=root / "build.log", owner=OWNER, reporter=SilentReporter())
        records = []
        for scenario in (*SCENARIOS, *HOLDOUT, *HOLDOUT_2):
            if wanted and scenario.name not in wanted:
                continue
            scratch = root / scenario.name
            scratch.mkdir()
            records.append(run_scenario(scenario, sandbox, image, scratch))
            print(scenario.name, len(records[-1]["events"]), "events", file=sys.stderr)
    text = "".join(json.dumps(record, ensure_ascii=False, sort_keys=True) + "\n" for record in records)
    write_bytes(target, gzip.compress(text.encode(), 9, mtime=0) if target.suffix == ".gz" else text.encode())


if __name__ == "__main__":
    main()
