"""The answer hidden in many ways: each is taken out by the plan or reported by the scan; none passes silently."""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from masking.apply import apply_mask
from masking.environments import EnvironmentFindings, scan_environment
from masking.leaks import scan_leaks
from masking.numbers import BLOCKING
from masking.plan import plan_mask
from pipeline.sandbox import images
from pipeline.sandbox.base import BuildSpec, CommandResult, Image, ProducedFile, RunResult, RunSpec
from pipeline.sandbox.images import ImageFacts
from pipeline.task import Environment, LeakReport, Task, Verdict
from tests.masking import builders, independent
from tests.masking.planting import NUMBER, PLANTED, RUN, TAMPERED, renamed

IMAGE = Image(reference="here", digest="d" * 64, spec_digest=BuildSpec().digest)
NO_FACTS = ImageFacts(environment=("PATH=/usr/bin",), labels=(), command=("python",), history=())


class Interpreter:
    """Runs the looking program with this Python; only what is planted counts as installed."""

    name = "process"

    def __init__(self, installed: Path) -> None:
        self.installed = installed

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
        with tempfile.TemporaryDirectory() as name:
            work = Path(name)
            for path in tree.iterdir():
                (work / path.name).write_bytes(path.read_bytes())
            argv = [sys.executable, "-S", "-B", *spec.commands[0].argv[1:]]
            done = subprocess.run(
                argv, cwd=work, env={"PYTHONPATH": str(self.installed)}, capture_output=True, check=False
            )
            assert done.returncode == 0, done.stderr
            (out / "files").mkdir(parents=True)
            produced = [path for path in work.iterdir() if not (tree / path.name).exists()]
            for path in produced:
                (out / "files" / path.name).write_bytes(path.read_bytes())
        files = tuple(ProducedFile(path=path.name, size=0, sha256="0" * 64) for path in sorted(produced))
        return RunResult(commands=(CommandResult(exit_code=0),), produced=files)


def planted(name: str, tmp_path: Path) -> None:
    """In the files of the original: taken out, or left and reported."""
    files, expected = PLANTED[name]
    snapshot = builders.make(tmp_path / "original", files)
    task = builders.task()
    documents = [builders.document()]
    plan = plan_mask(task, snapshot, documents=documents)
    masked = apply_mask(snapshot, plan, tmp_path / "masked")
    report = scan_leaks(masked.path, snapshot=snapshot, plan=plan, task=task, documents=documents)
    target = max(files)
    actions = {item.path: item.action for item in plan.paths}
    if expected == "reported":
        assert target not in actions
        assert any(target in hit.where for hit in report.hits)
    else:
        assert actions[target] == expected, plan
        assert not any(hit.score >= BLOCKING for hit in report.hits), report.hits
        if expected == "removed":
            assert not (masked.path / target).exists()
        assert independent.holders(masked.path, [NUMBER.encode()]) == []
    assert (masked.path / "estimators.py").read_text() == builders.ESTIMATORS
    assert (masked.path / "LICENSE").exists()


def tampered(tamper: Callable[[Path], None], tmp_path: Path) -> None:
    """In a finished masked repository: the scan, which passed before, fails."""
    snapshot = builders.make(tmp_path / "original")
    task = builders.task()
    documents = [builders.document()]
    plan = plan_mask(task, snapshot, documents=documents)
    masked = apply_mask(snapshot, plan, tmp_path / "masked").path

    def scan() -> LeakReport:
        return scan_leaks(
            masked, snapshot=snapshot, plan=plan, task=task, documents=documents, canaries=["canary-7f3a"]
        )

    before = scan()
    assert (before.verdict, [hit for hit in before.hits if hit.score >= BLOCKING]) == (Verdict.PASS, [])
    tamper(masked)
    after = scan()
    assert after.verdict is Verdict.FAIL
    assert TAMPERED[tamper] in {hit.kind for hit in after.hits if hit.score >= BLOCKING}


def stated(field: str, tmp_path: Path) -> None:
    """In the public text of the task."""
    task = builders.task().evolve(**{field: f"Show that shrinking gives {NUMBER}."})
    assert _blocking(_scan(task, tmp_path)) == {"task_text"}


def own_distribution(tmp_path: Path) -> None:
    """In the repository's own package, which the environment installs from the index."""
    task = builders.task(environment=Environment(packages=("numpy==2.0.0", "Shrink_Age==1.0")))
    assert _blocking(_scan(task, tmp_path, {"pyproject.toml": b'[project]\nname = "shrink-age"\n'})) == {"exact"}


def installed(path: str, data: bytes, kind: str, tmp_path: Path) -> None:
    """In a file of an installed package."""
    target = tmp_path / "site-packages" / path
    target.parent.mkdir(parents=True)
    target.write_bytes(data)
    report = _scan(builders.task(), tmp_path, installed_below=tmp_path / "site-packages")
    assert report.verdict is Verdict.FAIL
    blocking = [hit for hit in report.hits if hit.score >= BLOCKING]
    assert kind in {hit.kind for hit in blocking}
    assert all(hit.where.startswith(f"environment:{target}") for hit in blocking)


def configured(facts: dict[str, object], where: str, tmp_path: Path) -> None:
    """In what an image says of itself."""
    report = _scan(
        builders.task(), tmp_path, facts=NO_FACTS.evolve(**facts), installed_below=tmp_path / "site-packages"
    )
    assert report.verdict is Verdict.FAIL
    assert {hit.where.rpartition(":")[0] for hit in report.hits if hit.score >= BLOCKING} == {where}


def _scan(
    task: Task,
    tmp_path: Path,
    files: dict[str, bytes] | None = None,
    *,
    installed_below: Path | None = None,
    facts: ImageFacts | None = None,
) -> LeakReport:
    snapshot = builders.make(tmp_path / "original", files)
    documents = [builders.document()]
    plan = plan_mask(task, snapshot, documents=documents)
    masked = apply_mask(snapshot, plan, tmp_path / "masked")
    found: EnvironmentFindings | None = None
    if installed_below is not None:
        installed_below.mkdir(exist_ok=True)
        sandbox = Interpreter(installed_below)
        with pytest.MonkeyPatch.context() as patch:
            if facts is not None:
                sandbox.name = "docker"
                patch.setattr(images, "image_facts", lambda _: facts)
            found = scan_environment(
                task, snapshot=snapshot, plan=plan, image=IMAGE, sandbox=sandbox, out=tmp_path / "out", owner="test"
            )
    return scan_leaks(masked.path, snapshot=snapshot, plan=plan, task=task, documents=documents, environment=found)


def _blocking(report: LeakReport) -> set[str]:
    return {hit.kind for hit in report.hits if hit.score >= BLOCKING}


VENDORED = renamed(builders.RUN).encode()
PLACES: dict[str, Callable[[Path], None]] = {
    **{f"original: {name}": functools.partial(planted, name) for name in PLANTED},
    **{f"repository: {tamper.__name__}": functools.partial(tampered, tamper) for tamper in TAMPERED},
    **{f"task: {field}": functools.partial(stated, field) for field in ("question", "method", "agent_instructions")},
    "environment: own distribution": own_distribution,
    "environment: installed file": functools.partial(installed, "shrinklib/run_experiment.py", RUN, "exact"),
    "environment: installed under another name": functools.partial(installed, "shrinklib/core.py", RUN, "exact"),
    "environment: installed with other names": functools.partial(
        installed, "shrinklib/run_experiment.py", VENDORED, "near_duplicate"),
    "environment: results in the repository's own package": functools.partial(
        installed, "estimators/results.csv", f"estimator,mse\nplain,0.2\nshrunk,{NUMBER}\n".encode(), "number"),
    "image: variable": functools.partial(
        configured, {"environment": (f"EXPECTED_MSE_SHRUNK={NUMBER}",)}, "image:environment variables"),
    "image: label": functools.partial(configured, {"labels": (("shrunk.mse", NUMBER),)}, "image:labels"),
    "image: history": functools.partial(
        configured, {"history": (f"RUN echo shrunk mse {NUMBER} > /dev/null",)}, "image:history"),
}  # fmt: skip

ASKED_FOR = {
    "history": "repository: history", "tag": "repository: tag", "stash": "repository: stash",
    "reflog": "repository: reflog", "notes": "repository: notes", "packed object": "repository: packed",
    "alternates": "repository: alternates", "submodule history": "repository: module_history",
    "renamed copy": "original: renamed copy with an edit", "reformatted copy": "original: reformatted copy",
    "identifiers renamed": "original: identifiers renamed", "notebook": "original: copy in notebook cells",
    "zip": "original: copy in a zip", "compiled": "original: compiled python", "build": "original: build directory",
    "egg-info": "original: egg-info with the README", "base64": "original: base64 blob",
    "docstring": "original: number in a docstring", "test": "original: number in a test",
    "Dockerfile": "original: number in a comment of a Dockerfile", "README table": "original: number in a README table",
    "picture": "original: picture of a table", "CSV of results": "original: number in a CSV of results",
    "git config": "repository: config", "hook": "repository: hook",
    "installed package": "environment: own distribution", "environment variable": "image: variable",
}  # fmt: skip
"""What people look for first, with the place that stands for it; the others are ways that were found on the way."""


@pytest.mark.parametrize("place", sorted(PLACES))
def test_the_answer_hidden_in(place: str, tmp_path: Path) -> None:
    PLACES[place](tmp_path)


def test_every_way_that_people_look_for_is_tried() -> None:
    assert len(ASKED_FOR) >= 25
    assert set(ASKED_FOR.values()) <= set(PLACES)


def test_a_clean_environment_has_nothing_to_report(tmp_path: Path) -> None:
    other = tmp_path / "site-packages" / "numbers" / "tools.py"
    other.parent.mkdir(parents=True)
    other.write_text("def f(x):\n    return x + 0.5\n")
    report = _scan(builders.task(), tmp_path, facts=NO_FACTS, installed_below=tmp_path / "site-packages")
    assert report.verdict is Verdict.PASS
    assert {"installed_files", "image_configuration"} <= set(report.checks)


def test_an_environment_that_cannot_be_looked_into_is_unknown(tmp_path: Path) -> None:
    class Broken(Interpreter):
        def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
            return RunResult(commands=(), message="ended by the machine")

    snapshot = builders.make(tmp_path / "original")
    task = builders.task()
    plan = plan_mask(task, snapshot)
    found = scan_environment(
        task, snapshot=snapshot, plan=plan, image=IMAGE, sandbox=Broken(tmp_path), out=tmp_path / "out", owner="test"
    )
    assert found.checks == []
    assert "were not looked into: ended by the machine" in found.problems[0].message


def test_pictures_without_tesseract_are_no_clean_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from masking import pictures
    from pipeline.errors import ExpbenchError, FailureKind

    def missing(data: bytes) -> str:
        raise ExpbenchError(FailureKind.TOOL_MISSING, "tesseract", "not installed", consequence="c", next_step="n")

    monkeypatch.setattr(pictures, "picture_text", missing)
    files = {"docs/table.png": PLANTED["picture of a table"][0]["docs/table.png"]}
    report = _scan(builders.task(), tmp_path, files)
    assert report.verdict is Verdict.UNKNOWN
    assert any("docs/table.png" in problem.where for problem in report.problems)
