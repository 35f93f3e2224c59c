"""The stages of one task: locate, validate (with refinement), mask. Each is recorded when it is finished.

With a model, it chooses the scripts, words the requirements and looks at what a run did; what it fails at for
one task is a problem of that task, and the deterministic result stands and says so.

A task is never lost: what a stage cannot support becomes `not_found` or `rejected` with the reason, and what the
machinery could not establish (data that is not at hand, a broken sandbox) stays where it is with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from extractors._reading import Reading
from extractors.method import Method
from flows.chains import Located, with_chain
from flows.engines import ModelEngine, with_prompts
from flows.mask_stage import MaskStage
from flows.rehearse_stage import RunEvidence, adopt_rehearsals, code_of, from_choice, from_run
from flows.review.content import decided_on
from flows.shared_runs import SharedRuns
from flows.validate_stage import ValidateStage, model_stages_digest
from pipeline.digests import digest_of
from pipeline.llm import PromptRef
from pipeline.locator import Location, RepositoryIndex, TaskQuery, build_index, locate
from pipeline.paper import Document
from pipeline.progress import Details, Reporter
from pipeline.repository import Snapshot
from pipeline.sandbox import Sandbox
from pipeline.schema import Record
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import NotFound, Status, Task
from pipeline.version import STAGE_VERSIONS

if TYPE_CHECKING:
    from extractors.engine.run import PaperReader, ReaderChain
    from extractors.engine.runs import Rehearsed
    from pipeline.reader.gate import Choice
    from pipeline.reader.loop import Conversation

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
    reader: PaperReader | None = None
    """Wrote the tasks, and mends those that their runs do not bear out."""

    def process(
        self, tasks: Sequence[Task], queries: Sequence[TaskQuery], evidence: Sequence[RunEvidence] = ()
    ) -> list[Task]:
        """All stages for all tasks, stage by stage; returns the tasks in the order given.

        Args:
            tasks: drafts.
            queries: what to look for in the repository, one per task.
            evidence: the runs that gave the tasks' numbers, one per task: then nothing is looked for. Empty: none did.
        """
        if not evidence:
            return self._proved(self._locate_all(tasks, queries))
        located = [from_run(task, item, self.snapshot, evidence) for task, item in zip(tasks, evidence, strict=True)]
        for item, runs in zip(located, evidence, strict=True):
            self._adopt(item, runs)
            self._saved(item.task)
        return self._proved(located)

    def process_chosen(self, tasks: Sequence[Task], choices: Sequence[ReaderChain], rehearsed: Rehearsed) -> list[Task]:
        """All stages for tasks whose chains a reader chose: nothing is looked for.

        Args:
            tasks: drafts.
            choices: one per task.
            rehearsed: the runs that choices name.
        """
        runs = {run.candidate.key: run for run in rehearsed.runs}
        located = []
        for draft, choice in zip(tasks, choices, strict=True):
            task = draft.evolve(problems=(*draft.problems, *choice.problems))
            if choice.chain is None:
                reason = f"{task.provenance.model}: {choice.not_found}"
                not_found = NotFound(reason=reason, searched=choice.searched)
                found = Located(task=task.evolve(
                    status=Status.NOT_FOUND, status_reason=reason, truth=task.truth.evolve(not_found=not_found)
                ))  # fmt: skip
            else:
                run = runs.get(choice.run)
                others = [runs[key] for key in choice.others]
                found = from_choice(task, choice.chain, choice.requirements, run, others)
                if run is not None:
                    self._adopt(found, RunEvidence(runs=(run,)))
            self._saved(found.task)
            located.append(found)
        return self._proved(located)

    def _adopt(self, located: Located, runs: RunEvidence) -> None:
        if isinstance(self.sandbox, SharedRuns):
            adopt_rehearsals(self.sandbox, located, runs, self.validation)

    def _proved(self, located: Sequence[Located]) -> list[Task]:
        validated = self._each("validate", located, self.validated)
        masked = self._each("mask", validated, self._masked)
        return [self._decided(task) for task in masked]

    @property
    def _alternatives(self) -> int:
        """Chains beside the best one: those that refinement may try, and those that may give the answer away."""
        return self.settings.refinement_rounds - 1 + self.settings.equivalents

    @property
    def masking(self) -> MaskStage:
        """The stage that masks one task."""
        return MaskStage(
            workspace=self.workspace,
            settings=self.settings,
            sandbox=self.sandbox,
            snapshot=self.snapshot,
            document=self.document,
            pdf=self.pdf,
            repeats=self.repeats,
            image_of=self.validation.image_of,
        )

    @property
    def validation(self) -> ValidateStage:
        """The stage that validates one task."""
        return ValidateStage(
            workspace=self.workspace,
            settings=self.settings,
            sandbox=self.sandbox,
            snapshot=self.snapshot,
            repeats=self.repeats,
            reporter=Details(self.reporter, "validate"),
            engine=self.engine,
            reader=self.reader,
        )

    def validated(self, located: Located) -> Task:
        """The task after validation. Where it has no method, the sentences that the code which passed bears out.

        Args:
            located: the task with its chains.
        """
        task = self.validation.validated(located)
        if task.method or task.status is not Status.VALIDATED:
            return task
        reading = Reading(self.document)
        paths = [*(source.path for source in task.truth.sources), *(item.path for item in task.truth.ran)]
        steps = Method(reading).borne_out(code_of(self.snapshot, paths), task.truth.expected)
        quotes = tuple(reading.quote(line) for line in steps)
        return task.evolve(
            method=" ".join(line.text for line in steps), evidence={**task.evidence, "method": quotes}
        )  # fmt: skip

    # --- locate ---

    def _locate_all(self, tasks: Sequence[Task], queries: Sequence[TaskQuery]) -> list[Located]:
        self.reporter.start("locate", len(tasks))
        keys = {task.id: self._key("locate", task) for task in tasks}
        done = {task.id: self.workspace.finished(f"{task.id}/locate", keys[task.id], Located) for task in tasks}
        left = [(task, query) for task, query in zip(tasks, queries, strict=True) if done[task.id] is None]
        if left:
            index = build_index(self.snapshot, cache=self.settings.cache_dir / "indexes")
            for some in [left] if self.engine is not None else [[item] for item in left]:
                with self.workspace.ledger.timed("locate", some[0][0].id if len(some) == 1 else None):
                    found = self.locate([task for task, _ in some], [query for _, query in some], index)
                    for located in found:
                        self._saved(located.task)
                        self.workspace.finish(f"{located.task.id}/locate", keys[located.task.id], located)
                        done[located.task.id] = located
        results = [item for task in tasks if (item := done[task.id]) is not None]
        for item in results:
            entry = ", ".join(item.chains[0].entries) if item.chains else f"not found: {item.task.status_reason}"
            self.reporter.step("locate", f"{item.task.id}: {entry}")
        self.reporter.end("locate", f"{sum(bool(r.chains) for r in results)} of {len(tasks)} tasks have a chain")
        return results

    def locate(self, tasks: Sequence[Task], queries: Sequence[TaskQuery], index: RepositoryIndex) -> list[Located]:
        """For each task the chains that may answer its question, best first, or what was searched: there is none.

        Searches by rules; then, with a model, lets it choose for all tasks together, and keeps its way in the
        `locate.json` of each.
        """
        from pipeline.reader.choose import choose

        engine = self.engine
        rankings = [locate(index, query, max_alternatives=self._alternatives) for query in queries]
        if engine is None:
            return [self._located(task, ranking) for task, ranking in zip(tasks, rankings, strict=True)]
        ids = [task.id for task in tasks]
        prompts: dict[str, PromptRef] = {}

        def keep(talk: Conversation[Choice], batch: range) -> None:
            for number in batch:
                prompts[ids[number]] = talk.prompt
                self.workspace.write_json(self.workspace.task_dir(ids[number]) / "locate.json", talk)

        with engine.working("locate", ids[0] if len(ids) == 1 else None):
            found = choose(
                index, queries, rankings, client=engine.client, document=self.document,
                reporter=Details(self.reporter, "locate"), keep=keep,
            )  # fmt: skip
        asked = [with_prompts(task, [prompts[task.id]] if task.id in prompts else []) for task in tasks]
        return [self._located(task, item.location) for task, item in zip(asked, found, strict=True)]

    def _located(self, task: Task, location: Location) -> Located:
        problems = (*task.problems, *location.problems)
        if location.chain is None or not location.chain.usage:
            not_found = location.not_found or _documents_only(location)
            truth = task.truth.evolve(not_found=not_found)
            rejected = task.evolve(
                status=Status.NOT_FOUND, status_reason=not_found.reason, truth=truth, problems=problems
            )
            return Located(task=rejected)
        chains = (location.chain, *location.alternatives)
        found = with_chain(task, chains[0])
        return Located(task=found.evolve(status=Status.LOCATED, problems=problems), chains=chains)

    # --- mask ---

    def _masked(self, task: Task) -> Task:
        return self.masking.masked(task) if task.status is Status.VALIDATED else task

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
                    if state.task != task:
                        self._saved(state.task)
                    self.workspace.finish(f"{task.id}/{stage}", key, state)
            results.append(state.task)
            reason = f": {state.task.status_reason}" if state.task.status_reason else ""
            self.reporter.step(stage, f"{task.id}: {state.task.status}{reason}")
        self.reporter.end(stage)
        return results

    def _saved(self, task: Task) -> None:
        self.workspace.save_task(self._decided(task))

    def _decided(self, task: Task) -> Task:
        """The task with the decisions on record; one on the same content is in force, as the task on disk has it."""
        if self.workspace.has_task(task.id):
            old = self.workspace.load_task(task.id)
            if old.reviews:
                unchanged = decided_on(old, task) or old.evolve(status=task.status, reviews=task.reviews) == task
                return old if unchanged else task.evolve(reviews=old.reviews)
        return task

    def _key(self, stage: str, value: Record) -> dict[str, str]:
        """What a stage depends on: its version, the value it starts from, the snapshot, the options and the model."""
        engine = {} if self.engine is None else {"engine": model_stages_digest(self.engine)}
        if self.reader is not None:
            engine["beginning"] = self.reader.digest
        if self.engine is not None and self.settings.write_scripts:
            engine["write_scripts"] = "yes"
        return engine | {
            "stage": stage,
            "version": "/".join(STAGE_VERSIONS[name] for name in ("locate", "validate", "mask")),
            "input": digest_of(value.model_dump(mode="json")),
            "commit": self.snapshot.ref.commit,
            "sandbox": self.sandbox.name,
            "repeats": str(self.repeats),
            "rounds": f"{self.settings.refinement_rounds}+{self.settings.equivalents}",
            "limits": digest_of(self.settings.limits.model_dump(mode="json")),
            "scale": self.settings.scale,
        }


def _documents_only(location: Location) -> NotFound:
    """A task that documents describe and nothing that can be run carries out."""
    named = ", ".join(source.path for source in location.chain.sources) if location.chain is not None else ""
    return NotFound(reason=f"only documents answer it, and nothing is run: {named}", searched=(named,))
