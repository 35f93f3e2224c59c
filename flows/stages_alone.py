"""Single stages of one task in a workspace that exists: validate or mask again, or go on to where a review sent it.

`flows.curate` carries all tasks of a paper from stage to stage; here one task is taken up at the stage that its status
names. What reviewers asked for (`Review.wishes`) is heeded from then on: a chain of scripts of their choice, entry
points that they refused, paths that they want masked or kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager

from extractors.drafting import DraftResult
from flows.chains import Located, with_chain
from flows.engines import ModelEngine, ModelOptions, model_config, open_model
from flows.review.content import listed_paths
from flows.review.decisions import counted, votes_on
from flows.review.policy import read_policy
from flows.shared_runs import SharedRuns
from flows.task_stages import TaskStages
from masking.partial import MaskPolicy
from masking.records import MaskPlan
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import exclusive_lock
from pipeline.locator import Chain, RepositoryIndex, TaskQuery, build_index
from pipeline.locator.query import QueryWords
from pipeline.locator.usage import usage_for
from pipeline.paper import Document
from pipeline.progress import Reporter
from pipeline.repository import Snapshot
from pipeline.sandbox import open_sandbox
from pipeline.schema import Problem
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import Draft, MaskedPath, SourceScript, Status, Task, Verdict

__all__ = ["advance", "mask_task", "open_stages", "validate_task"]

_CONFIG = re.compile(r"\.(ya?ml|json|toml|ini|cfg|conf)$", re.IGNORECASE)
_WRAPPER = re.compile(r"(\.(sh|bash|zsh)|(^|/)makefile)$", re.IGNORECASE)


def validate_task(
    workspace: Workspace, task_id: str, settings: Settings, reporter: Reporter, *, then_mask: bool = True
) -> Task:
    """Validate the task's present chain again (then the next best ones) and, unless told not to, mask what passes.

    Finished executions of the same code are reused (`flows.shared_runs`).

    Raises:
        ExpbenchError: `RECORD_INVALID` when the task has no chain; `WORKSPACE_LOCKED`; the machinery failed.
    """
    return _again(workspace, task_id, settings, reporter, Status.LOCATED, then_mask=then_mask)


def mask_task(
    workspace: Workspace, task_id: str, settings: Settings, reporter: Reporter, *, policy: MaskPolicy | None = None
) -> Task:
    """Plan, apply and scan the mask of a validated task again, round trip included.

    Raises:
        ExpbenchError: `RECORD_INVALID` when the task has not passed validation; `WORKSPACE_LOCKED`; the machinery
            failed; `USAGE`: the policy names a function that cannot be masked.
    """
    return _again(workspace, task_id, settings, reporter, Status.VALIDATED, policy=policy)


def advance(workspace: Workspace, task_id: str, settings: Settings, reporter: Reporter) -> Task:
    """Carry a task that a reviewer sent back through the stages that have to be done again; others stay as they are.

    Safe to call again after an interruption: the status on disk says where to go on.

    Raises:
        ExpbenchError: `WORKSPACE_LOCKED`; the machinery failed.
    """
    task = workspace.load_task(task_id)
    begin = task.status
    if begin is Status.LOCATED and task.validation is not None:
        return task  # validated as far as the machine could: unknown, with the reason
    if begin not in {Status.DRAFT, Status.LOCATED, Status.VALIDATED} or not task.reviews:
        return task
    return _again(workspace, task_id, settings, reporter, begin)


def _again(
    workspace: Workspace,
    task_id: str,
    settings: Settings,
    reporter: Reporter,
    begin: Status,
    *,
    then_mask: bool = True,
    policy: MaskPolicy | None = None,
) -> Task:
    with open_stages(workspace, settings, reporter, reads=begin is not Status.VALIDATED) as stages:
        task = workspace.load_task(task_id)
        _check(task, begin, settings.write_scripts)
        if begin is Status.DRAFT:
            located = _located_again(stages, task)
        else:
            located = Located(task=task, chains=(_chain_of(task),) if task.truth.sources else ())
        passed = task.validation is not None and task.validation.verdict is Verdict.PASS
        if begin is not Status.VALIDATED:
            reporter.start("validate", 1)
            with workspace.ledger.timed("validate", task_id):
                reason = "" if located.chains else located.task.status_reason
                base = located.task.evolve(
                    status_reason=reason, validation=None, leaks=None, round_trip=None, masked=()
                )
                done = stages.validated(located.evolve(task=base))
            if settings.scale == "smoke" and passed:  # says less than what is on record, which stays
                reporter.step("validate", f"{task_id}: {done.status_reason}")
                return task.evolve(validation=done.validation)
            task = _saved(stages, done)
            reporter.step("validate", f"{task_id}: {task.status}" + _because(task))
        else:
            task = task.evolve(status=Status.VALIDATED, status_reason="", leaks=None, round_trip=None)
        if task.status is Status.VALIDATED and then_mask:
            reporter.start("mask", 1)
            with workspace.ledger.timed("mask", task_id):
                task = _saved(stages, _masked(stages, task, policy))
            reporter.step("mask", f"{task_id}: {task.status}" + _because(task))
        if task.status is Status.MASKED and votes_on(task):  # the same content as before: decisions on it stay in force
            task = _saved(stages, counted(task, read_policy(workspace).reviewers))
        return task


def _check(task: Task, begin: Status, write_scripts: bool) -> None:
    missing = None
    if begin is Status.LOCATED and not task.truth.sources and not write_scripts:
        missing = "no scripts were located for it"
    elif begin is Status.VALIDATED and (task.validation is None or task.validation.verdict is not Verdict.PASS):
        missing = "it has not passed validation"
    if missing:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            task.id,
            f"{missing} (it is {task.status.value.replace('_', ' ')})",
            consequence="The stage was not run",
            next_step="Run the stage before it, or choose another task",
        )


def _because(task: Task) -> str:
    return f": {task.status_reason}" if task.status_reason else ""


@contextmanager
def open_stages(
    workspace: Workspace, settings: Settings, reporter: Reporter, *, reads: bool, fresh: bool = False
) -> Iterator[TaskStages]:
    """The stages on what the workspace holds; the workspace is locked and its containers are gone in the end.

    Args:
        workspace: where the task lies.
        settings: of this machine.
        reporter: progress.
        reads: does a stage read code or runs, which in a workspace of the model engine asks the model?
        fresh: execute everything again, instead of using finished executions of the same code.
    """
    info = workspace.info()
    sandbox = open_sandbox(info.inputs.sandbox)
    directory = workspace.paper_dir(info.paper_id)
    with exclusive_lock(workspace.lock_path, str(workspace.root)), _engine(workspace, settings, reads) as engine:
        sandbox.reap(workspace.owner)
        try:
            yield TaskStages(
                workspace=workspace,
                settings=settings,
                sandbox=sandbox if fresh else SharedRuns(sandbox, workspace.root / ".runs"),
                snapshot=Snapshot.load(workspace.root / "repository"),
                document=workspace.read_json(directory / "document.json", Document),
                pdf=directory / "paper.pdf",
                repeats=info.inputs.repeats,
                reporter=reporter,
                engine=engine,
            )
        finally:
            sandbox.reap(workspace.owner)


@contextmanager
def _engine(workspace: Workspace, settings: Settings, reads: bool) -> Iterator[ModelEngine | None]:
    """The model that the workspace was made with, with what is left of its budget; None for the keyless engine."""
    if not reads or workspace.info().inputs.engine == "keyless":
        yield None
        return
    options = ModelOptions()
    with closing(open_model(model_config(options, workspace), options, workspace, settings)) as engine:
        yield engine


def _saved(stages: TaskStages, task: Task) -> Task:
    """Write the task with the decisions on record, also those that came while the stage ran."""
    problems = tuple(dict.fromkeys(task.problems))  # a stage that is done again reports the same ones again
    task = task.evolve(reviews=stages.workspace.load_task(task.id).reviews, problems=problems)
    stages.workspace.save_task(task)
    return task


# --- locate ----------------------------------------------------------------------------------------------------------


def _chain_of(task: Task) -> Chain:
    return Chain(sources=task.truth.sources, usage=task.truth.usage, confidence=task.confidence)


def _located_again(stages: TaskStages, task: Task) -> Located:
    """The task before any chain, with the chain that a reviewer named or those that no reviewer refused."""
    draft = _draft_of(stages, task)
    truth = task.truth.evolve(
        sources=(), equivalents=(), requirements=(), usage=(), data_needs=(), ran=(), seeds=(), responses=(),
        not_found=None,
        hyperparameters=draft.hyperparameters,
        expected=draft.expected.evolve(text=_text_of_expected(task, draft)),
    )  # fmt: skip
    base = task.evolve(
        status=Status.DRAFT, status_reason="", truth=truth, masked=(), validation=None, leaks=None, round_trip=None,
        problems=(),
    )  # fmt: skip
    query = TaskQuery.from_draft(draft.evolve(question=task.question, method=task.method))
    index = build_index(stages.snapshot, cache=stages.settings.cache_dir / "indexes")
    (found,) = stages.locate([base], [query], index)
    refused = {entry for review in task.reviews for entry in review.wishes.get("refused", ())}
    chains = [chain for chain in found.chains if not set(chain.entries) <= refused]
    named = next((review.wishes["sources"] for review in reversed(task.reviews) if "sources" in review.wishes), None)
    if task.reviews[-1].decision == "edit" and named is not None:
        chosen = _named_chain(index, query, task, named)
        chains = [chosen, *(chain for chain in chains if not set(chain.entries) <= set(chosen.entries))]
    if not chains:
        reason = "no other scripts of the repository answer the question" if refused else "nothing was located"
        return Located(task=_saved(stages, base.evolve(status=Status.NOT_FOUND, status_reason=reason)))
    base = base.evolve(problems=found.task.problems, provenance=found.task.provenance)
    first = with_chain(base, chains[0])
    _saved(stages, first.evolve(status=Status.LOCATED))
    return Located(task=first.evolve(status=Status.LOCATED), chains=tuple(chains))


def _draft_of(stages: TaskStages, task: Task) -> Draft:
    path = stages.workspace.paper_dir(task.paper.id) / "drafts.json"
    for draft in stages.workspace.read_json(path, DraftResult).drafts:
        if f"{task.paper.id}-{draft.slug}" == task.id:
            return draft
    raise ExpbenchError(
        FailureKind.RECORD_INVALID,
        task.id,
        f"its draft is not in {path}",
        consequence="Other scripts could not be located",
        next_step="Run the same `expbench curate` with --resume",
    )


def _text_of_expected(task: Task, draft: Draft) -> str:
    """The outcome in the reviewer's words when one reworded it, else in the draft's."""
    reworded = any(field == "expected" for review in task.reviews for field, _ in review.changes)
    return task.truth.expected.text if reworded else draft.expected.text


def _named_chain(index: RepositoryIndex, query: TaskQuery, task: Task, named: tuple[str, ...]) -> Chain:
    """The chain of the files that a reviewer named; commands are those known for an entry, or the locator's."""
    known = {source.path: source for source in task.truth.sources}
    sources = []
    for path, role in listed_paths("\n".join(named), "sources"):
        kind = role or (known[path].role if path in known else _role(path))
        score = known[path].score if path in known else 0.0
        sources.append(SourceScript.model_validate(
            {"path": path, "role": kind, "score": score, "reasons": ("named by a reviewer",)}
        ))  # fmt: skip
    entries = [source.path for source in sources if source.role == "entry"]
    wrappers = [source.path for source in sources if source.role == "wrapper"]
    old = [source.path for source in task.truth.sources if source.role == "entry"]
    usage = list(task.truth.usage) if entries == old else []
    problems = []
    if not usage:
        words = QueryWords.of(query)
        for entry in entries:
            made = usage_for(index, entry, words, wrappers)
            usage += [step for step in made.usage if step not in usage]
            problems += made.problems
    order = {"wrapper": 0, "config": 1, "entry": 2, "library": 3}
    sources.sort(key=lambda source: order[source.role])
    return Chain(sources=tuple(sources), usage=tuple(usage), confidence=1.0, problems=tuple(problems))


def _role(path: str) -> str:
    if _CONFIG.search(path):
        return "config"
    return "wrapper" if _WRAPPER.search(path) else "entry"


# --- mask ------------------------------------------------------------------------------------------------------------


def _masked(stages: TaskStages, task: Task, policy: MaskPolicy | None) -> Task:
    """Mask, scan and round trip, with the paths that reviewers want masked or kept."""
    mask: set[str] = set()
    keep: set[str] = set()
    for review in task.reviews:  # the last word on a path counts
        mask = (mask - set(review.wishes.get("keep", ()))) | set(review.wishes.get("mask", ()))
        keep = (keep - set(review.wishes.get("mask", ()))) | set(review.wishes.get("keep", ()))
    policy = _with_functions(policy, mask)
    mask = {path for path in mask if "::" not in path}
    if not mask and not keep:
        return stages.masking.masked(task, policy=policy)
    done = stages.masking.masked(task, lambda plan: _wished(plan, mask, keep), policy)
    if done.status is not Status.REJECTED or not keep:
        return done
    message = f"a reviewer wanted to keep {', '.join(sorted(keep))}; it stays masked, because {done.status_reason}"
    problem = Problem(component="review", where=", ".join(sorted(keep)), message=message)
    task = task.evolve(problems=(*task.problems, problem))
    return stages.masking.masked(task, lambda plan: _wished(plan, mask, set()), policy)


def _with_functions(policy: MaskPolicy | None, mask: set[str]) -> MaskPolicy | None:
    """The policy with the functions (`path::name`) that reviewers want masked."""
    wished = tuple(sorted(path for path in mask if "::" in path))
    if not wished:
        return policy
    policy = policy or MaskPolicy()
    return policy.evolve(functions=tuple(dict.fromkeys((*policy.functions, *wished))))


def _wished(plan: MaskPlan, mask: set[str], keep: set[str]) -> MaskPlan:
    """The plan with a reviewer's paths: added ones are removed from the repository, kept ones stay as they are."""
    paths = {item.path: item for item in plan.paths if item.path not in keep}
    for path in sorted(mask):
        paths[path] = MaskedPath(path=path, action="removed", reason="a reviewer wants it masked")
    edited = {path for path, item in paths.items() if item.action == "edited"}
    return plan.evolve(
        paths=tuple(paths[path] for path in sorted(paths)),
        edits=tuple(edit for edit in plan.edits if edit.path in edited),
    )
