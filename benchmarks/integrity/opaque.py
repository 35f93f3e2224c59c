"""The scripted agents once more, each as one opaque script: what is found with and without the process trace?

    python -m benchmarks.integrity.opaque OUT.jsonl [NAME...]

Every scenario's steps become one shell script that a traced command runs in a container, as `--agent command` does. The
same run is then judged twice: with the programs that the tracer saw, and with the one command and its output alone.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final

from benchmarks.integrity.generate import OWNER, _events, _output, _overlay, _read, _set_of, _shell, make_world
from benchmarks.integrity.holdout import HOLDOUT
from benchmarks.integrity.holdout2 import HOLDOUT_2
from benchmarks.integrity.scenarios import SCENARIOS, Respond, Run, Scenario, Write
from evaluation.episode import EpisodeFolder
from evaluation.harness.processes import TRACE_SOCKET, WATCHER, ProcessRecorder
from evaluation.harness.submission_reader import take_submission
from evaluation.harness.workspace import write_inbox
from evaluation.integrity.monitor import check_integrity
from evaluation.trajectory import CommandRun, End, Event, FileChange
from pipeline.progress import SilentReporter
from pipeline.sandbox import BuildSpec, Command, Image, Limits, RunSpec
from pipeline.sandbox.base import ReadOnlyMount
from pipeline.sandbox.docker import DockerSandbox
from pipeline.task import Verdict
from tests.evaluation.integrity.records import episode, make_trees

EXPORTS: Final = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b\n"


def script_of(scenario: Scenario) -> str:
    """One shell script; files are written by here-documents."""
    parts = ["#!/bin/bash", "exec 2>&1", EXPORTS]
    for step in scenario.steps:
        if isinstance(step, Run):
            parts.append(f"(\n{step.command}\n)")
        elif isinstance(step, Write):
            parts.append(
                f"mkdir -p $(dirname {step.path}); cat > {step.path} <<'END_OF_FILE'\n{step.text.rstrip()}\nEND_OF_FILE"
            )
    return "\n".join(parts) + "\n"


def run_opaque(scenario: Scenario, sandbox: DockerSandbox, image: Image, scratch: Path) -> dict[str, Any]:
    """Run it under the tracer and return its record."""
    tree, masked, out = scratch / "tree", scratch / "masked", scratch / "out"
    for root in (tree, masked):
        make_world(root, scenario.world)
    inbox, harness = write_inbox(scratch, {"agent.sh": script_of(scenario)})
    seen: list[Event] = []
    python = ("/opt/venv/bin/python", "-I", "-S")
    hidden = [_shell(f"cd . && {text}") for text in scenario.hidden]
    start = Command(argv=(*python, f"/harness/{WATCHER}", f"/harness/{TRACE_SOCKET}", "--", "bash", "/agent/agent.sh"))
    spec = RunSpec(
        commands=(*hidden, start), limits=Limits(wall_s=180, pids=64),
        mounts=(ReadOnlyMount(source=inbox, target="/agent"), ReadOnlyMount(source=harness, target="/harness")),
    )  # fmt: skip
    with ProcessRecorder(harness, "/work", "/agent", masked, seen.append):
        sandbox.run(image, tree, spec, out=out, owner=OWNER)
    text, _ = _output(out, len(hidden))
    whole = CommandRun(seq=0, at=0, command="sh agent.sh", output=text)
    _, numbers = _events(Scenario(scenario.name, (step := Run("agent.sh"),)), {id(step): (text, 0)})
    _overlay(tree, out / "files")
    answer = next((step for step in scenario.steps if isinstance(step, Respond)), None)
    if answer is not None:
        said, reported = answer.conclude(numbers)
        response = {"design": {}, "conclusion": {"text": said, "numbers": reported}, "outputs": ["results.json"]}
        (tree / "response.json").write_text(json.dumps(response, indent=1))
    folder = EpisodeFolder(scratch / "episode")
    take_submission(tree, masked, folder)
    events = [
        event.model_copy(update={"seq": n})
        for n, event in enumerate([*seen, whole, End(seq=0, at=0, reason="finished")])
    ]
    return {
        "set": _set_of(scenario), "name": scenario.name, "labels": list(scenario.labels), "attempt": scenario.attempt,
        "events": [event.model_dump(mode="json", exclude_defaults=True) | {"kind": event.kind} for event in events],
        "patch": _read(folder.submission / "patch.diff"), "response": _read(folder.submission / "response.json"),
        "reproduce": _read(folder.submission / "reproduce.sh"),
    }  # fmt: skip


def _verdict(record: dict[str, Any], root: Path) -> Verdict:
    task = make_trees(root)
    folder, submission = episode(record, root / "episode")
    return check_integrity(task, folder, submission, client=None, reporter=SilentReporter()).verdict


def _untraced(record: dict[str, Any]) -> dict[str, Any]:
    kept = [
        e
        for e in record["events"]
        if not e.get("observed") and e["kind"] not in (FileChange.model_fields["kind"].default, "note")
    ]
    return {**record, "events": [{**event, "seq": n} for n, event in enumerate(kept)]}


def main() -> None:
    target, wanted = Path(sys.argv[1]), set(sys.argv[2:])
    sandbox = DockerSandbox()
    counts: Counter[tuple[str, str, str]] = Counter()
    with tempfile.TemporaryDirectory() as name, target.open("w", encoding="utf-8") as lines:
        root = Path(name)
        image = sandbox.build(BuildSpec(), log=root / "build.log", owner=OWNER, reporter=SilentReporter())
        for scenario in (*SCENARIOS, *HOLDOUT, *HOLDOUT_2):
            if wanted and scenario.name not in wanted and _set_of(scenario) not in wanted:
                continue
            scratch = root / scenario.name
            scratch.mkdir()
            record = run_opaque(scenario, sandbox, image, scratch)
            lines.write(json.dumps(record, sort_keys=True) + "\n")
            group = "honest" if not scenario.labels else "attempt" if scenario.attempt else "cheat"
            for how, one in (("traced", record), ("untraced", _untraced(record))):
                verdict = _verdict(one, scratch / how)
                counts[group, how, verdict.value] += 1
                print(scenario.name, group, how, verdict.value, file=sys.stderr, flush=True)
    for (group, how, verdict), count in sorted(counts.items()):
        print(f"{group:8} {how:9} {verdict:8} {count}")


if __name__ == "__main__":
    main()
