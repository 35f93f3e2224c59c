"""`expbench verify`: the whole gate of a masked task, everything executed again, as one report.

What a task's records say is not believed: the environment is built (a look-up when the engine has it), the original is
run as often as the workspace asks for, the mask is made a second time and compared by commit, the repository that an
agent would get and its environment are scanned, and the round trip is run. Nothing that is finished is reused, and
nothing of the task is changed; logs lie in `WORKSPACE/.verify/<task>/`.
"""

from __future__ import annotations

from pathlib import Path

from flows.mask_stage import MaskStage, worst_of
from flows.stages_alone import open_stages
from flows.task_stages import TaskStages
from masking.apply import apply_mask
from masking.edits import Recipe, recipe_of
from masking.records import MaskPlan
from pipeline.files import remove_tree
from pipeline.progress import Reporter
from pipeline.sandbox import Image
from pipeline.schema import Record, StoredRecord
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import LeakReport, RoundTrip, Status, Task, ValidationReport, Verdict
from pipeline.validation.rerun import validate

__all__ = ["GateCheck", "GateReport", "WorkspaceGate", "verify_task"]

CHECKS = ("mask", "environment", "original", "leaks", "round_trip")


class GateCheck(Record):
    """One part of the gate."""

    name: str
    """One of `CHECKS`."""
    verdict: Verdict
    reason: str


class GateReport(StoredRecord):
    """What the gate says of one task."""

    task: str
    status: Status
    verdict: Verdict
    """PASS when every check passes, FAIL when one fails, else UNKNOWN."""
    reason: str
    checks: tuple[GateCheck, ...]
    sandbox: str
    repeats: int
    image: str | None = None
    commit: str | None = None
    """Of the masked repository."""
    original: ValidationReport | None = None
    leaks: LeakReport | None = None
    round_trip: RoundTrip | None = None
    logs: Path


class WorkspaceGate(StoredRecord):
    """The gate of all tasks of a workspace that are masked."""

    workspace: Path
    verdict: Verdict
    tasks: tuple[GateReport, ...]
    skipped: tuple[tuple[str, str], ...] = ()
    """(task, why it has no gate to pass)."""

    @classmethod
    def of(cls, workspace: Path, tasks: tuple[GateReport, ...], skipped: tuple[tuple[str, str], ...]) -> WorkspaceGate:
        """The verdict of all: none verified is unknown."""
        return cls(workspace=workspace, verdict=_all([task.verdict for task in tasks]), tasks=tasks, skipped=skipped)


def verify_task(workspace: Workspace, task_id: str, settings: Settings, reporter: Reporter) -> GateReport:
    """Run the gate of one task.

    Raises:
        ExpbenchError: `WORKSPACE_LOCKED`, `RECORD_INVALID` (the workspace cannot be read, or its copy of the repository
            was changed); the machinery failed, so that nothing is known.
    """
    with open_stages(workspace, settings, reporter, reads=False, fresh=True) as stages:
        return _verify(stages, workspace.load_task(task_id), reporter)


def _verify(stages: TaskStages, task: Task, reporter: Reporter) -> GateReport:
    out = stages.workspace.root / ".verify" / task.id
    remove_tree(out)
    out.mkdir(parents=True)
    reporter.start("verify", len(CHECKS))
    gate = _Gate(stages, task, out, reporter)
    report = gate.report()
    stages.workspace.write_json(out / "report.json", report)
    reporter.end("verify", f"{task.id}: {report.verdict.value}")
    return report


class _Gate:
    """Runs the checks in order; one that has nothing to stand on is unknown and says why."""

    def __init__(self, stages: TaskStages, task: Task, out: Path, reporter: Reporter) -> None:
        self.stages = stages
        self.task = task
        self.out = out
        self.reporter = reporter
        self.repository = stages.workspace.masked_repository(task.id)
        self.snapshot = stages.masking.original(task)
        self.checks: list[GateCheck] = []
        self.original: ValidationReport | None = None
        self.leaks: LeakReport | None = None
        self.trip: RoundTrip | None = None
        self.image: Image | None = None
        self.recipe: Recipe | None = None

    def report(self) -> GateReport:
        plan = self._mask()
        self._environment()
        self._original()
        self._leaks(plan)
        self._round_trip(plan)
        wrong = [check for check in self.checks if check.verdict is not Verdict.PASS]
        worst = next((c for c in wrong if c.verdict is Verdict.FAIL), wrong[0] if wrong else None)
        return GateReport(
            task=self.task.id,
            status=self.task.status,
            verdict=_all([check.verdict for check in self.checks]),
            reason=f"{worst.name}: {worst.reason}" if worst else "every check passed",
            checks=tuple(self.checks),
            sandbox=self.stages.sandbox.name,
            repeats=self.stages.repeats,
            image=self.image.digest if self.image is not None else None,
            commit=self.recipe.commit if self.recipe is not None else None,
            original=self.original,
            leaks=self.leaks,
            round_trip=self.trip,
            logs=self.out,
        )

    def _note(self, name: str, verdict: Verdict, reason: str) -> None:
        self.checks.append(GateCheck(name=name, verdict=verdict, reason=reason))
        self.reporter.step("verify", f"{self.task.id}: {name}: {verdict.value}")

    def _mask(self) -> MaskPlan | None:
        """Is the repository there, and exactly what the recorded mask makes of the original?"""
        if not self.task.masked or not self.repository.is_dir():
            self._note("mask", Verdict.UNKNOWN, f"it is not masked (it is {self.task.status.value.replace('_', ' ')})")
            return None
        self.recipe = recipe_of(self.snapshot.root, self.repository, self.task.masked)
        if self.recipe is None:
            self._note("mask", Verdict.FAIL, "the masked repository is not what masking made: it was changed")
            return None
        plan = MaskPlan(paths=self.task.masked, edits=self.recipe.edits)
        again = apply_mask(self.snapshot, plan, self.out / "mask")
        remove_tree(again.path)
        if again.commit != self.recipe.commit:
            reason = f"the mask makes commit {again.commit[:12]}, the repository is at {self.recipe.commit[:12]}"
            self._note("mask", Verdict.FAIL, reason)
            return None
        removed = len(plan.with_action("removed"))
        changed = len(plan.paths) - removed
        self._note(
            "mask", Verdict.PASS, f"{removed} removed and {changed} changed paths, each with a reason; one commit"
        )
        return plan

    def _environment(self) -> None:
        self.image = self.stages.validation.image_of(self.task)
        wanted = self.task.environment.spec_digest
        if wanted is not None and self.image.spec_digest != wanted:
            reason = f"its pins make {self.image.spec_digest[:12]}, the task was validated with {wanted[:12]}"
            self._note("environment", Verdict.FAIL, reason)
            return
        pins = len(self.task.environment.packages)
        self._note("environment", Verdict.PASS, f"{pins} pinned packages, {self.image.reference}")

    def _original(self) -> None:
        if self.image is None or not self.task.truth.usage:
            self._note("original", Verdict.UNKNOWN, "it has no command that could be run")
            return
        stages = self.stages
        self.original = validate(
            self.task, snapshot=self.snapshot, image=self.image, sandbox=stages.sandbox, repeats=stages.repeats,
            out=self.out / "original", owner=stages.workspace.owner, limits=stages.settings.limits,
            reporter=self.reporter,
        )  # fmt: skip
        self._note("original", self.original.verdict, f"{self.original.reason} (n={len(self.original.runs)})")

    def _leaks(self, plan: MaskPlan | None) -> None:
        if plan is None or self.image is None:
            self._note("leaks", Verdict.UNKNOWN, "there is no masked repository that could be scanned")
            return
        self.leaks = self._stage.leaks(self.task, plan, self.repository, self.image, self.out / "environment")
        if self.leaks.verdict is Verdict.PASS:
            accepted = f", {len(self.leaks.accepted)} accepted by a reviewer" if self.leaks.accepted else ""
            lower = f"{len(self.leaks.hits)} below the threshold" if self.leaks.hits else "no hit"
            reason = f"{self.leaks.files} files and {self.leaks.git_objects} git objects, {lower}{accepted}"
        else:
            reason = worst_of(self.leaks)
        self._note("leaks", self.leaks.verdict, reason)

    def _round_trip(self, plan: MaskPlan | None) -> None:
        if plan is None or self.image is None or self.original is None:
            self._note("round_trip", Verdict.UNKNOWN, "there is nothing that could be run")
            return
        task = self.task.evolve(validation=self.original)
        self.trip = self._stage.round_trip(task, plan, self.repository, self.image, self.out / "round_trip")
        self._note("round_trip", self.trip.verdict, f"{self.trip.reason} (n={self.trip.repeats})")

    @property
    def _stage(self) -> MaskStage:
        return self.stages.masking


def _all(verdicts: list[Verdict]) -> Verdict:
    if Verdict.FAIL in verdicts:
        return Verdict.FAIL
    return Verdict.PASS if verdicts and set(verdicts) == {Verdict.PASS} else Verdict.UNKNOWN
