"""The stages of one task: locate, trace, validate (with refinement), mask. Each is recorded when it is finished.

A task is never lost: what a stage cannot support becomes `not_found` or `rejected` with the reason, and what the
machinery could not establish (data that is not at hand, a broken sandbox) stays where it is with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TypeVar

from extractors.outcome import restate_expected
from masking.apply import apply_mask
from masking.leaks import scan_leaks
from masking.plan import plan_mask
from masking.records import MaskPlan
from masking.roundtrip import round_trip
from pipeline.digests import digest_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import remove_tree
from pipeline.locator import Chain, Location, RepositoryIndex, TaskQuery, build_index, locate
from pipeline.paper import Document
from pipeline.progress import Details, Reporter
from pipeline.repository import Snapshot
from pipeline.sandbox import BuildSpec, Image, RunResult, Sandbox
from pipeline.schema import Problem, Record
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import Environment, Hyperparameter, RoundTrip, Status, Task, ValidationReport, Verdict
from pipeline.tracing import Trace, trace
from pipeline.validation import (
    EnvironmentPlan,
    extend_environment,
    make_plan,
    missing_modules,
    missing_system_packages,
    resolve_environment,
    validate,
    validate_with_refinement,
)
from pipeline.validation.outcome import decide, learn_bands, match_claims, read_outputs, supported_claims
from pipeline.version import STAGE_VERSIONS

__all__ = ["TaskStages"]

_ENVIRONMENT_ROUNDS = 3
"""How often a missing module may extend an environment: each round names one more, and research code rarely has more
than two that nothing declares."""


class _Located(Record):
    """A task with the chains that may answer it, best first."""

    task: Task
    chains: tuple[Chain, ...] = ()


class _State(Record):
    """A task after a stage."""

    task: Task


ItemT = TypeVar("ItemT", _Located, Task)


@dataclass
class TaskStages:
    """Carries the tasks of one paper through their stages."""

    workspace: Workspace
    settings: Settings
    sandbox: Sandbox
    snapshot: Snapshot
    document: Document
    pdf: Path
    repeats: int
    reporter: Reporter

    def process(self, tasks: Sequence[Task], queries: Sequence[TaskQuery]) -> list[Task]:
        """All stages for all tasks, stage by stage; returns the tasks in the order given.

        Args:
            tasks: drafts.
            queries: what to look for in the repository, one per task.
        """
        located = self._locate_all(tasks, queries)
        validated = self._each("validate", located, self._validated)
        masked = self._each("mask", validated, self._masked)
        return [self._saved(task) for task in masked]

    @property
    def _details(self) -> Details:
        return Details(self.reporter, "validate")

    # --- locate and trace ---

    def _locate_all(self, tasks: Sequence[Task], queries: Sequence[TaskQuery]) -> list[_Located]:
        index: RepositoryIndex | None = None
        self.reporter.start("locate", len(tasks))
        results = []
        for task, query in zip(tasks, queries, strict=True):
            key = self._key("locate", task)
            found = self.workspace.finished(f"{task.id}/locate", key, _Located)
            if found is None:
                with self.workspace.ledger.timed("locate", task.id):
                    if index is None:
                        index = build_index(self.snapshot, cache=self.settings.cache_dir / "indexes")
                    found = self._located(task, locate(index, query))
                    self._saved(found.task)
                    self.workspace.finish(f"{task.id}/locate", key, found)
            results.append(found)
            entry = ", ".join(found.chains[0].entries) if found.chains else f"not found: {found.task.status_reason}"
            self.reporter.step("locate", f"{task.id}: {entry}")
        self.reporter.end("locate", f"{sum(bool(r.chains) for r in results)} of {len(tasks)} tasks have a chain")
        return results

    def _located(self, task: Task, location: Location) -> _Located:
        problems = (*task.problems, *location.problems)
        if location.chain is None:
            not_found = location.not_found
            assert not_found is not None, "locate returns a chain or says what it searched"
            truth = task.truth.evolve(not_found=not_found)
            rejected = task.evolve(
                status=Status.NOT_FOUND, status_reason=not_found.reason, truth=truth, problems=problems
            )
            return _Located(task=rejected)
        chains = (location.chain, *location.alternatives)[: self.settings.refinement_rounds]
        traced = _with_chain(task, chains[0], trace(self.snapshot, chains[0].sources, chains[0].usage))
        return _Located(task=traced.evolve(status=Status.LOCATED, problems=problems), chains=chains)

    # --- validate ---

    def _validated(self, located: _Located) -> Task:
        """Try the chains in order until one reproduces the claims (EXP-Bench 3.2, stage 3: refinement)."""
        if not located.chains:
            return located.task
        candidates: dict[int, Task] = {}
        refined = validate_with_refinement(
            located.chains,
            lambda chain, number, _: self._attempt(located.task, chain, number, candidates),
            rounds=self.settings.refinement_rounds,
            reporter=self._details,
        )
        assert refined is not None, "there was at least one chain"
        report = refined.best.report
        task = candidates[refined.best.number].evolve(validation=report)
        if report.verdict is Verdict.PASS:
            return _supported(task, report)
        reason = "; ".join(f"{attempt.candidate.entries[0]}: {attempt.report.reason}" for attempt in refined.attempts)
        if report.verdict is Verdict.UNKNOWN:
            return task.evolve(status=Status.LOCATED, status_reason=f"not validated: {reason}")
        return task.evolve(status=Status.REJECTED, status_reason=f"not reproduced: {reason}")

    def _attempt(self, base: Task, chain: Chain, number: int, candidates: dict[int, Task]) -> ValidationReport:
        """Validate one chain; what its run misses extends the environment, a bounded number of times."""
        traced = trace(self.snapshot, chain.sources, chain.usage)
        task = _with_chain(base, chain, traced)
        out = self.workspace.task_dir(task.id) / "validation" / f"attempt-{number}"
        modules: tuple[str, ...] = ()
        libraries: tuple[str, ...] = ()
        for _ in range(_ENVIRONMENT_ROUNDS):
            candidates[number] = task
            environment = self._environment(task, traced, modules, libraries)
            image, problem = self._image(environment)
            if image is None:
                reason = f"the environment cannot be built: {problem.message if problem else 'unknown'}"
                problems = (*environment.problems, *([problem] if problem else []))
                return ValidationReport(
                    verdict=Verdict.UNKNOWN, reason=reason, sandbox=self.sandbox.name, problems=problems
                )
            task = task.evolve(environment=self._environment_record(environment, image))
            candidates[number] = task
            report = validate(
                task,
                snapshot=self.snapshot,
                image=image,
                sandbox=self.sandbox,
                repeats=self.repeats,
                out=out,
                owner=self.workspace.owner,
                limits=self.settings.limits,
                reporter=self._details,
            )
            more_modules = set(missing_modules(report, out)) - set(modules)
            more_libraries = set(missing_system_packages(report, out)) - set(libraries)
            if report.verdict is Verdict.PASS or not (more_modules or more_libraries):
                break
            modules, libraries = (*modules, *sorted(more_modules)), (*libraries, *sorted(more_libraries))
        return report.evolve(problems=(*traced.problems, *environment.problems, *report.problems))

    def _environment(
        self, task: Task, traced: Trace, modules: tuple[str, ...], libraries: tuple[str, ...]
    ) -> EnvironmentPlan:
        plan = resolve_environment(
            self.snapshot,
            sources=tuple(source.path for source in task.truth.sources),
            reached=traced.reached,
            extra=modules,
            before=_commit_date(self.snapshot),
            cache=self.settings.cache_dir,
            reporter=self._details,
        )
        return extend_environment(plan, libraries)

    def _image(self, plan: EnvironmentPlan) -> tuple[Image | None, Problem | None]:
        """The built environment, or why this repository's declarations cannot be built."""
        directory = self.workspace.root / "environments" / plan.spec.digest[:12]
        self.workspace.write_json(directory / "spec.json", plan.spec)
        try:
            log = directory / "build.log"
            return self.sandbox.build(plan.spec, log=log, owner=self.workspace.owner, reporter=self._details), None
        except ExpbenchError as error:
            if error.kind is not FailureKind.ENVIRONMENT_UNBUILDABLE:
                raise
            return None, Problem(component="validate.environment", where=error.object, message=error.cause)

    def _environment_record(self, plan: EnvironmentPlan, image: Image) -> Environment:
        return Environment(
            sandbox=self.sandbox.name,
            image=image.digest if self.sandbox.name == "docker" else None,
            spec_digest=plan.spec.digest,
            python=plan.spec.python,
            packages=plan.spec.packages,
            system_packages=plan.spec.system_packages,
            declared_in=plan.declared_in,
        )

    # --- mask ---

    def _masked(self, task: Task) -> Task:
        """Mask, scan, round trip; only what passes all three becomes a release candidate."""
        directory = self.workspace.task_dir(task.id)
        if task.status is not Status.VALIDATED:
            return task
        plan = plan_mask(task, self.snapshot, documents=(self.document,), paper_sha256=self.document.sha256)
        task = task.evolve(masked=plan.paths, problems=(*task.problems, *plan.problems))
        repository = self.workspace.masked_repository(task.id)
        remove_tree(repository)  # of a run that was ended before this stage was recorded
        apply_mask(self.snapshot, plan, repository)
        leaks = scan_leaks(
            repository, snapshot=self.snapshot, plan=plan, task=task, documents=(self.document,), pdf=self.pdf
        )
        task = task.evolve(leaks=leaks)
        if leaks.verdict is not Verdict.PASS:
            worst = max(leaks.hits, key=lambda hit: hit.score, default=None)
            detail = f"{worst.where}: {worst.detail}" if worst else "a check could not run"
            return task.evolve(status=Status.REJECTED, status_reason=f"the answer can be read: {detail}")
        trip = self._round_trip(task, plan, repository, directory / "validation" / "round_trip")
        task = task.evolve(round_trip=trip)
        if trip.verdict is Verdict.PASS:
            return task.evolve(status=Status.MASKED)
        if trip.verdict is Verdict.UNKNOWN:
            return task.evolve(status_reason=f"round trip unknown: {trip.reason}")
        return task.evolve(status=Status.REJECTED, status_reason=f"round trip failed: {trip.reason}")

    def _round_trip(self, task: Task, plan: MaskPlan, repository: Path, out: Path) -> RoundTrip:
        claims = task.truth.expected.claims
        spec = make_plan(task, self.snapshot, limits=self.settings.limits)

        def judge(result: RunResult, logs: Path) -> Verdict:
            matches = match_claims(claims, [read_outputs(result, logs, spec.commands)])
            return decide(claims, matches)[0]

        return round_trip(
            task,
            masked=repository,
            snapshot=self.snapshot,
            plan=plan,
            image=self._image_of(task),
            sandbox=self.sandbox,
            spec=spec,
            judge=judge,
            out=out,
            owner=self.workspace.owner,
        )

    def _image_of(self, task: Task) -> Image:
        """The task's image again; building it is a look-up, as it was built for the validation."""
        environment = task.environment
        spec = BuildSpec(
            python=environment.python or BuildSpec().python,
            packages=environment.packages,
            system_packages=environment.system_packages,
        )
        log = self.workspace.root / "environments" / spec.digest[:12] / "build.log"
        return self.sandbox.build(spec, log=log, owner=self.workspace.owner, reporter=self._details)

    # --- bookkeeping ---

    def _each(self, stage: str, items: Sequence[ItemT], work: Callable[[ItemT], Task]) -> list[Task]:
        self.reporter.start(stage, len(items))
        results = []
        for item in items:
            task = item.task if isinstance(item, _Located) else item
            key = self._key(stage, item)
            state = self.workspace.finished(f"{task.id}/{stage}", key, _State)
            if state is None:
                with self.workspace.ledger.timed(stage, task.id):
                    state = _State(task=work(item))
                    self._saved(state.task)
                    self.workspace.finish(f"{task.id}/{stage}", key, state)
            results.append(state.task)
            reason = f": {state.task.status_reason}" if state.task.status_reason else ""
            self.reporter.step(stage, f"{task.id}: {state.task.status}{reason}")
        self.reporter.end(stage)
        return results

    def _saved(self, task: Task) -> Task:
        """Write the task; a decision on the same content stays in force, one on other content stays on record."""
        if task.id in self.workspace.task_ids():
            old = self.workspace.load_task(task.id)
            if old.reviews:
                unchanged = old.evolve(status=task.status, reviews=task.reviews) == task
                task = old if unchanged else task.evolve(reviews=old.reviews)
        self.workspace.save_task(task)
        return task

    def _key(self, stage: str, value: Record) -> dict[str, str]:
        """What a stage depends on: its version, the value it starts from, the snapshot, and the options."""
        return {
            "stage": stage,
            "version": "/".join(STAGE_VERSIONS[name] for name in ("locate", "trace", "validate", "mask")),
            "input": digest_of(value.model_dump(mode="json")),
            "commit": self.snapshot.ref.commit,
            "sandbox": self.sandbox.name,
            "repeats": str(self.repeats),
            "limits": digest_of(self.settings.limits.model_dump(mode="json")),
        }


def _with_chain(task: Task, chain: Chain, traced: Trace) -> Task:
    truth = task.truth.evolve(
        sources=chain.sources,
        usage=chain.usage,
        requirements=traced.requirements,
        hyperparameters=_merged(traced.hyperparameters, task.truth.hyperparameters),
        data_needs=traced.data_needs,
    )
    return task.evolve(truth=truth)


def _supported(task: Task, report: ValidationReport) -> Task:
    """The validated task: claims that the run does not show are dropped, and the outcome is stated without them."""
    before = task.truth.expected
    kept = supported_claims(task, report.matches).truth.expected.claims
    expected = restate_expected(before, learn_bands(kept, report.matches))
    return task.evolve(status=Status.VALIDATED, truth=task.truth.evolve(expected=expected))


def _merged(code: tuple[Hyperparameter, ...], paper: tuple[Hyperparameter, ...]) -> tuple[Hyperparameter, ...]:
    """What the code does comes first; what only the paper says is added."""
    names = {item.name.lower() for item in code}
    return (*code, *(item for item in paper if item.name.lower() not in names))


def _commit_date(snapshot: Snapshot) -> date | None:
    stamp = snapshot.committed_at
    return date.fromisoformat(stamp[:10]) if stamp else None
