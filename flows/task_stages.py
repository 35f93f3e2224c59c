"""The stages of one task: locate, trace, validate (with refinement), mask. Each is recorded when it is finished.

With a model, it checks where the scripts are, words the requirements and looks at what a run did; what it fails at for
one task is a problem of that task, and the deterministic result stands and says so.

A task is never lost: what a stage cannot support becomes `not_found` or `rejected` with the reason, and what the
machinery could not establish (data that is not at hand, a broken sandbox) stays where it is with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from flows.chains import Located, traced, with_chain
from flows.engines import ModelEngine, fails_here, with_prompts
from flows.review.content import decided_on
from flows.validate_stage import ValidateStage, model_stages_digest
from masking.apply import apply_mask
from masking.leaks import scan_leaks
from masking.plan import plan_mask
from masking.records import MaskPlan
from masking.roundtrip import round_trip
from pipeline.digests import digest_of
from pipeline.files import remove_tree
from pipeline.llm import ModelError
from pipeline.locator import Location, RepositoryIndex, TaskQuery, build_index, locate
from pipeline.paper import Document
from pipeline.progress import Details, Reporter
from pipeline.repository import Snapshot
from pipeline.sandbox import RunResult, Sandbox
from pipeline.schema import Problem, Record
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import RoundTrip, Status, Task, Verdict
from pipeline.validation import make_plan
from pipeline.validation.outcome import decide, match_claims, read_outputs
from pipeline.version import STAGE_VERSIONS

__all__ = ["TaskStages"]


class _State(Record):
    """A task after a stage."""

    task: Task


ItemT = TypeVar("ItemT", Located, Task)


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
    engine: ModelEngine | None = None
    """Locates, words requirements and looks at runs with a model; None: keyless."""

    def process(self, tasks: Sequence[Task], queries: Sequence[TaskQuery]) -> list[Task]:
        """All stages for all tasks, stage by stage; returns the tasks in the order given.

        Args:
            tasks: drafts.
            queries: what to look for in the repository, one per task.
        """
        located = self._locate_all(tasks, queries)
        validated = self._each("validate", located, self._validation.validated)
        masked = self._each("mask", validated, self._masked)
        return [self._saved(task) for task in masked]

    @property
    def _alternatives(self) -> int:
        """Chains beside the best one: those that refinement may try, and those that may give the answer away."""
        return self.settings.refinement_rounds - 1 + self.settings.equivalents

    @property
    def _validation(self) -> ValidateStage:
        return ValidateStage(
            workspace=self.workspace,
            settings=self.settings,
            sandbox=self.sandbox,
            snapshot=self.snapshot,
            repeats=self.repeats,
            reporter=Details(self.reporter, "validate"),
            engine=self.engine,
        )

    # --- locate and trace ---

    def _locate_all(self, tasks: Sequence[Task], queries: Sequence[TaskQuery]) -> list[Located]:
        index: RepositoryIndex | None = None
        self.reporter.start("locate", len(tasks))
        results = []
        for task, query in zip(tasks, queries, strict=True):
            key = self._key("locate", task)
            found = self.workspace.finished(f"{task.id}/locate", key, Located)
            if found is None:
                with self.workspace.ledger.timed("locate", task.id):
                    if index is None:
                        index = build_index(self.snapshot, cache=self.settings.cache_dir / "indexes")
                    found = self._found(task, query, index)
                    self._saved(found.task)
                    self.workspace.finish(f"{task.id}/locate", key, found)
            results.append(found)
            entry = ", ".join(found.chains[0].entries) if found.chains else f"not found: {found.task.status_reason}"
            self.reporter.step("locate", f"{task.id}: {entry}")
        self.reporter.end("locate", f"{sum(bool(r.chains) for r in results)} of {len(tasks)} tasks have a chain")
        return results

    def _found(self, task: Task, query: TaskQuery, index: RepositoryIndex) -> Located:
        """Search by rules, then, with a model, let it check that ranking; its way is kept in `locate.json`."""
        ranking = locate(index, query, max_alternatives=self._alternatives)
        if self.engine is None:
            return self._located(task, ranking)
        from pipeline.locator.agent import AgentLimits, run_agent

        try:
            with self.engine.working("locate", task.id):
                run = run_agent(
                    index,
                    query,
                    client=self.engine.client,
                    snapshot=self.snapshot,
                    document=self.document,
                    ranking=ranking,
                    limits=AgentLimits(),
                    reporter=Details(self.reporter, "locate", task.id),
                )
        except ModelError as error:
            if not fails_here(error):
                raise
            message = f"the chain is the one of the deterministic search: the model failed ({error.cause})"
            problem = Problem(component="locate.model", where=task.id, message=message)
            return self._located(task, ranking.evolve(problems=(*ranking.problems, problem)))
        self.workspace.write_json(self.workspace.task_dir(task.id) / "locate.json", run)
        return self._located(with_prompts(task, [run.prompt]), run.location)

    def _located(self, task: Task, location: Location) -> Located:
        problems = (*task.problems, *location.problems)
        if location.chain is None:
            not_found = location.not_found
            assert not_found is not None, "locate returns a chain or says what it searched"
            truth = task.truth.evolve(not_found=not_found)
            rejected = task.evolve(
                status=Status.NOT_FOUND, status_reason=not_found.reason, truth=truth, problems=problems
            )
            return Located(task=rejected)
        chains = (location.chain, *location.alternatives)
        found = with_chain(task, chains[0], traced(self.snapshot, task, chains[0]))
        return Located(task=found.evolve(status=Status.LOCATED, problems=problems), chains=chains)

    # --- mask ---

    def _masked(self, task: Task) -> Task:
        return self.masked_by(task) if task.status is Status.VALIDATED else task

    def masked_by(self, task: Task, adjust: Callable[[MaskPlan], MaskPlan] | None = None) -> Task:
        """Mask, scan, round trip; only what passes all three becomes a release candidate.

        Args:
            task: validated.
            adjust: changes the plan before it is applied, e.g. for paths that a reviewer wants masked.
        """
        plan = plan_mask(task, self.snapshot, documents=(self.document,), paper_sha256=self.document.sha256)
        if adjust is not None:
            plan = adjust(plan)
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
        out = self.workspace.task_dir(task.id) / "validation" / "round_trip"
        trip = self._round_trip(task, plan, repository, out)
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
            image=self._validation.image_of(task),
            sandbox=self.sandbox,
            spec=spec,
            judge=judge,
            out=out,
            owner=self.workspace.owner,
        )

    # --- bookkeeping ---

    def _each(self, stage: str, items: Sequence[ItemT], work: Callable[[ItemT], Task]) -> list[Task]:
        self.reporter.start(stage, len(items))
        results = []
        for item in items:
            task = item.task if isinstance(item, Located) else item
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
        if self.workspace.has_task(task.id):
            old = self.workspace.load_task(task.id)
            if old.reviews:
                unchanged = decided_on(old, task) or old.evolve(status=task.status, reviews=task.reviews) == task
                task = old if unchanged else task.evolve(reviews=old.reviews)
        self.workspace.save_task(task)
        return task

    def _key(self, stage: str, value: Record) -> dict[str, str]:
        """What a stage depends on: its version, the value it starts from, the snapshot, the options and the model."""
        engine = {} if self.engine is None else {"engine": model_stages_digest(self.engine)}
        return engine | {
            "stage": stage,
            "version": "/".join(STAGE_VERSIONS[name] for name in ("locate", "trace", "validate", "mask")),
            "input": digest_of(value.model_dump(mode="json")),
            "commit": self.snapshot.ref.commit,
            "sandbox": self.sandbox.name,
            "repeats": str(self.repeats),
            "rounds": f"{self.settings.refinement_rounds}+{self.settings.equivalents}",
            "limits": digest_of(self.settings.limits.model_dump(mode="json")),
        }
