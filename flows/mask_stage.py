"""The mask of one task: plan, apply, scan the result and its environment for leaks, round trip."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from flows.validate_stage import snapshot_of
from masking.accepted import accepted_hits
from masking.apply import apply_mask
from masking.environments import scan_environment
from masking.leaks import scan_leaks
from masking.partial import MaskPolicy
from masking.plan import plan_mask
from masking.records import MaskPlan
from masking.roundtrip import round_trip
from pipeline.files import remove_tree
from pipeline.paper import Document
from pipeline.repository import Snapshot
from pipeline.sandbox import Image, RunResult, Sandbox
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import LeakReport, RoundTrip, Status, Task, Verdict
from pipeline.validation import make_plan
from pipeline.validation.outcome import decide, match_claims, read_outputs
from pipeline.validation.responses import seed_nobody_has

__all__ = ["MaskStage"]

Adjust = Callable[[MaskPlan], MaskPlan]
"""Changes a plan before it is applied, e.g. for paths that a reviewer wants masked."""


@dataclass(frozen=True)
class MaskStage:
    """Masks tasks of one snapshot."""

    workspace: Workspace
    settings: Settings
    sandbox: Sandbox
    snapshot: Snapshot
    document: Document
    pdf: Path
    repeats: int
    image_of: Callable[[Task], Image]
    """The environment of the task's validation."""

    def original(self, task: Task) -> Snapshot:
        """The repository that is masked: the paper's, or that with a script which a model wrote for the task."""
        return snapshot_of(self.workspace, task, self.snapshot)

    def plan(self, task: Task, policy: MaskPolicy | None = None) -> MaskPlan:
        """What would be taken out, and why; nothing is written.

        Raises:
            ExpbenchError: `USAGE`: the policy names a function that cannot be masked.
        """
        return plan_mask(
            task, self.original(task), documents=(self.document,), paper_sha256=self.document.sha256, policy=policy
        )

    def masked(self, task: Task, adjust: Adjust | None = None, policy: MaskPolicy | None = None) -> Task:
        """Mask, scan, round trip; only what passes all three becomes a release candidate.

        Args:
            task: validated.
            adjust: changes the plan before it is applied.
            policy: whole files or single functions.
        """
        plan = self.plan(task, policy)
        if adjust is not None:
            plan = adjust(plan)
        task = task.evolve(masked=plan.paths, problems=(*task.problems, *plan.problems))
        removed = {path.path for path in plan.paths if path.action == "removed"}
        # without further seeds nobody asked how the numbers vary: that it is not known is then no finding
        if self.settings.seeds and (reason := seed_nobody_has(task, removed)):
            return task.evolve(status=Status.REJECTED, status_reason=reason)
        repository = self.workspace.masked_repository(task.id)
        remove_tree(repository)  # of a run that was ended before this stage was recorded
        apply_mask(self.original(task), plan, repository)
        out = self.workspace.task_dir(task.id) / "validation"
        image = self.image_of(task)
        leaks = self.leaks(task, plan, repository, image, out / "environment")
        task = task.evolve(leaks=leaks)
        if leaks.verdict is not Verdict.PASS:
            return task.evolve(status=Status.REJECTED, status_reason=f"the answer can be read: {worst_of(leaks)}")
        trip = self.round_trip(task, plan, repository, image, out / "round_trip")
        task = task.evolve(round_trip=trip)
        if trip.verdict is Verdict.PASS:
            return task.evolve(status=Status.MASKED)
        if trip.verdict is Verdict.UNKNOWN:
            return task.evolve(status_reason=f"round trip unknown: {trip.reason}")
        return task.evolve(status=Status.REJECTED, status_reason=f"round trip failed: {trip.reason}")

    def leaks(self, task: Task, plan: MaskPlan, repository: Path, image: Image, out: Path) -> LeakReport:
        """The leak scan of a masked repository and of the environment that goes with it."""
        remove_tree(out)
        environment = scan_environment(
            task, snapshot=self.original(task), plan=plan, image=image, sandbox=self.sandbox, out=out,
            owner=self.workspace.owner,
        )  # fmt: skip
        return scan_leaks(
            repository, snapshot=self.original(task), plan=plan, task=task, documents=(self.document,), pdf=self.pdf,
            environment=environment, accepted=accepted_hits(self.workspace.task_dir(task.id)),
        )  # fmt: skip

    def round_trip(self, task: Task, plan: MaskPlan, repository: Path, image: Image, out: Path) -> RoundTrip:
        """The release gate: each of the two repositories as often as the original was run."""
        claims = task.truth.expected.claims
        original = self.original(task)
        spec = make_plan(task, original, limits=self.settings.limits)

        def judge(result: RunResult, logs: Path) -> Verdict:
            matches = match_claims(claims, [read_outputs(result, logs, spec.commands)])
            return decide(claims, matches)[0]

        remove_tree(out)
        return round_trip(
            task, masked=repository, snapshot=original, plan=plan, image=image, sandbox=self.sandbox, spec=spec,
            judge=judge, out=out, owner=self.workspace.owner, repeats=self.repeats,
        )  # fmt: skip


def worst_of(leaks: LeakReport) -> str:
    """The worst hit of a scan in one line, or that a check could not run."""
    worst = max(leaks.hits, key=lambda hit: hit.score, default=None)
    if leaks.verdict is Verdict.FAIL and worst is not None:
        return f"{worst.where}: {worst.detail}"
    problem = next((p for p in leaks.problems if p.severity != "info"), None)
    return f"a check could not run: {problem.where}: {problem.message}" if problem else "a check could not run"
