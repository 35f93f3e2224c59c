"""`expbench curate`: one paper and its repository through all stages, into a workspace.

extract -> rehearse -> match and draft -> validate -> mask -> release candidate: what runs decides what is drafted.
Where nothing runs here, drafts come from the paper's tables alone and go extract -> locate -> trace. With a model, a
reader that sees the paper, the repository and the runs writes the drafts and says what carries them out.
The stages are plain functions of the packages below; this module decides their order, what is recorded when, and what a
rerun may reuse.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from extractors.engine.runs import Rehearsed
from extractors.isolated import read_isolated
from extractors.pdf import open_pdf
from flows.draft_stage import Drafted, describe_model, draft, draft_by_reader
from flows.engines import ModelEngine, ModelOptions, model_config, open_model, parameters_of, with_prompts
from flows.estimate import estimate
from flows.outcome import Outcome
from flows.rehearse_stage import RunEvidence, draft_from_runs, read_rehearsed
from flows.shared_runs import SharedRuns
from flows.summary import write_summary
from flows.task_stages import TaskStages
from pipeline.digests import file_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import exclusive_lock, remove_tree, write_bytes
from pipeline.llm import ModelConfig
from pipeline.llm.forecast import Forecast
from pipeline.locator import TaskQuery
from pipeline.paper import Document, Paper
from pipeline.progress import Details, Reporter
from pipeline.repository import Snapshot, open_snapshot
from pipeline.sandbox import StoppableSandbox, open_sandbox
from pipeline.schema import Record
from pipeline.scratch import scratch_directory
from pipeline.settings import Settings
from pipeline.store import Inputs, Workspace, WorkspaceInfo
from pipeline.task import Draft, ExperimentTruth, Family, Provenance, Resources, Status, Task
from pipeline.text import slug
from pipeline.version import STAGE_VERSIONS, version

__all__ = ["CurateOptions", "Plan", "curate", "default_workspace", "plan"]


class CurateOptions(Record):
    """What the user asked for."""

    pdf: Path
    repository: str
    commit: str | None = None
    out: Path | None = None
    engine: Literal["keyless", "model"] = "keyless"
    sandbox: Literal["docker", "process"] | None = None
    repeats: int = 2
    max_tasks: int | None = None
    resume: bool = False
    allow_missing_submodules: bool = False
    model: ModelOptions = ModelOptions()
    """Heeded with the model engine."""


class Plan(Record):
    """What `curate` would do (`--dry-run`)."""

    paper: Paper
    pages: int
    repository: str
    commit: str
    files: int
    workspace: Path
    workspace_exists: bool
    engine: str
    sandbox: str
    sandbox_detail: str
    repeats: int
    max_tasks: int | None
    model: str | None = None
    forecast: Forecast | None = None
    """What the model engine is expected to take; None with the keyless engine, which takes nothing."""
    stages: tuple[str, ...] = ("extract", "rehearse", "draft", "locate", "validate", "mask")


def default_workspace(pdf: Path) -> Path:
    """Where results go when `--out` is not given: a directory in the working directory, named after the PDF."""
    return Path(f"expbench-{slug(pdf.stem, 40) or 'paper'}")


def plan(options: CurateOptions, reporter: Reporter) -> Plan:
    """Check all inputs and say what would be done; writes nothing but a temporary copy of the repository.

    Raises:
        ExpbenchError: as `curate`, for everything that can be known beforehand.
    """
    workspace = Workspace(options.out or default_workspace(options.pdf))
    config = _model_config(options, workspace)
    with open_pdf(options.pdf) as pdf:
        pages = pdf.page_count
    sandbox = _choose_sandbox(options.sandbox, reporter)
    forecast = None
    if config is not None:
        forecast = estimate([options.pdf], reporter=reporter, config=config, most_tasks=options.max_tasks).forecast
    with scratch_directory() as scratch:
        snapshot = open_snapshot(
            options.repository,
            commit=options.commit,
            into=Path(scratch) / "snapshot",
            allow_missing_submodules=options.allow_missing_submodules,
            reporter=reporter,
        )
    status = sandbox.status()
    return Plan(
        paper=Paper(id=_paper_id(options.pdf, snapshot), title=options.pdf.stem),
        pages=pages,
        repository=snapshot.ref.url,
        commit=snapshot.ref.commit,
        files=len(snapshot.files),
        workspace=workspace.root,
        workspace_exists=workspace.exists(),
        engine=options.engine,
        sandbox=sandbox.name,
        sandbox_detail=status.detail,
        repeats=options.repeats,
        max_tasks=options.max_tasks,
        model=None if config is None else f"{config.model} at {config.url} ({parameters_of(config)})",
        forecast=forecast,
    )


def curate(options: CurateOptions, reporter: Reporter, settings: Settings | None = None) -> Outcome:
    """Run all stages; a stage that was finished by an earlier run with the same inputs is reused under `resume`.

    Raises:
        ExpbenchError: the input cannot be used, the workspace belongs to other inputs or another process, or the
            machinery (sandbox, network, disk) or the model (key, quota, budget, endpoint) failed; what was finished and
            paid for stays, and `--resume` goes on from there.
    """
    settings = settings or Settings()
    workspace = Workspace(options.out or default_workspace(options.pdf))
    config = _model_config(options, workspace)
    with open_pdf(options.pdf):
        pass
    sandbox = _choose_sandbox(options.sandbox, reporter)
    _check_workspace(workspace, options)
    is_new = not workspace.root.exists()
    try:
        return _curate_locked(options, settings, workspace, sandbox, config, reporter)
    except ExpbenchError:
        if is_new and not workspace.exists():
            remove_tree(workspace.root)  # the input was refused: leave nothing half-written behind
        raise


def _curate_locked(
    options: CurateOptions,
    settings: Settings,
    workspace: Workspace,
    sandbox: StoppableSandbox,
    config: ModelConfig | None,
    reporter: Reporter,
) -> Outcome:
    with exclusive_lock(workspace.lock_path, str(workspace.root)):
        left_over = sandbox.reap(workspace.owner)
        if left_over:
            reporter.warn(f"removed {left_over} container(s) that an interrupted run had left behind")
        try:
            return _curate(options, settings, workspace, sandbox, config, reporter)
        finally:
            sandbox.reap(workspace.owner)


def _curate(
    options: CurateOptions,
    settings: Settings,
    workspace: Workspace,
    sandbox: StoppableSandbox,
    config: ModelConfig | None,
    reporter: Reporter,
) -> Outcome:
    snapshot = _open_repository(options, workspace, reporter)
    info = _head(options, workspace, snapshot, sandbox, config)
    engine = None if config is None else open_model(config, options.model, workspace, settings)
    try:
        return _stages(options, settings, workspace, sandbox, snapshot, info, engine, reporter)
    finally:
        if engine is not None:
            engine.close()


def _stages(
    options: CurateOptions,
    settings: Settings,
    workspace: Workspace,
    sandbox: StoppableSandbox,
    snapshot: Snapshot,
    info: WorkspaceInfo,
    engine: ModelEngine | None,
    reporter: Reporter,
) -> Outcome:
    if engine is not None:
        reporter.note("draft", f"model engine: {describe_model(engine)}")
    document = _extract(options, workspace, info, reporter)
    paper = Paper(id=info.paper_id, title=document.title, sha256=document.sha256)
    ran, rehearsed = None, Rehearsed()
    if settings.rehearsal_s > 0:
        ran = draft_from_runs(workspace, settings, sandbox, snapshot, document, reporter, info.inputs.max_tasks)
        rehearsed = read_rehearsed(workspace)
    evidence: tuple[RunEvidence, ...] = ()
    if engine is not None:
        drafted = draft_by_reader(
            workspace, info, document, engine, settings, reporter, snapshot=snapshot, rehearsed=rehearsed
        )
    elif ran is not None and ran.drafts.drafts:
        evidence = ran.evidence
        workspace.write_json(workspace.paper_dir(info.paper_id) / "drafts.json", ran.drafts)
        drafted = Drafted(ran.drafts)
    else:  # nothing could be run, or nothing that ran gives the paper's numbers: drafts that no run supports
        drafted = draft(workspace, info, document, reporter)
    drafts = drafted.drafts
    stages = TaskStages(
        workspace=workspace,
        settings=settings,
        sandbox=SharedRuns(sandbox, workspace.root / ".runs"),
        snapshot=snapshot,
        document=document,
        pdf=workspace.paper_dir(info.paper_id) / "paper.pdf",
        repeats=options.repeats,
        reporter=reporter,
        engine=engine,
        reader=drafted.reader,
    )
    tasks = [with_prompts(_task_of(item, paper, snapshot, info), drafted.prompts) for item in drafts.drafts]
    if drafted.choices:
        tasks = stages.process_chosen(tasks, drafted.choices, rehearsed)
    else:
        tasks = stages.process(tasks, [TaskQuery.from_draft(item) for item in drafts.drafts], evidence)
    return write_summary(workspace, document, drafts, tasks, info)


def _open_repository(options: CurateOptions, workspace: Workspace, reporter: Reporter) -> Snapshot:
    reporter.start("repository")
    with workspace.ledger.timed("repository"):
        snapshot = open_snapshot(
            options.repository,
            commit=options.commit or (workspace.info().inputs.commit if workspace.exists() else None),
            into=workspace.root / "repository",
            allow_missing_submodules=options.allow_missing_submodules,
            reporter=Details(reporter, "repository"),
        )
    reporter.end("repository", f"{snapshot.ref.url} at {snapshot.ref.commit[:10]}, {len(snapshot.files)} files")
    for problem in snapshot.problems:
        reporter.warn(f"{problem.where}: {problem.message}")
    return snapshot


def _head(
    options: CurateOptions,
    workspace: Workspace,
    snapshot: Snapshot,
    sandbox: StoppableSandbox,
    config: ModelConfig | None,
) -> WorkspaceInfo:
    inputs = Inputs(
        paper_sha256=file_digest(options.pdf),
        repository=snapshot.ref.url,
        commit=snapshot.ref.commit,
        engine=options.engine,
        sandbox=sandbox.name,
        repeats=options.repeats,
        max_tasks=options.max_tasks,
        model=None if config is None else config.model,
        endpoint=None if config is None else config.endpoint or config.url,
        parameters=None if config is None else parameters_of(config),
    )
    if not workspace.exists():
        info = WorkspaceInfo(
            inputs=inputs,
            paper_id=_paper_id(options.pdf, snapshot),
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            expbench=version(),
        )
        workspace.write_info(info)
        return info
    info = workspace.info()
    if info.inputs != inputs:
        names = [name for name in Inputs.model_fields if getattr(info.inputs, name) != getattr(inputs, name)]
        changed = "; ".join(f"{name}: {getattr(info.inputs, name)} -> {getattr(inputs, name)}" for name in names)
        raise ExpbenchError(
            FailureKind.WORKSPACE_CONFLICT,
            str(workspace.root),
            f"was made from other inputs ({changed})",
            consequence="Nothing was changed",
            next_step="Resume with the same inputs, or choose another --out",
        )
    return info


def _extract(options: CurateOptions, workspace: Workspace, info: WorkspaceInfo, reporter: Reporter) -> Document:
    directory = workspace.paper_dir(info.paper_id)
    key = {"stage": "extract", "version": STAGE_VERSIONS["extract"], "pdf": info.inputs.paper_sha256}
    reporter.start("extract")
    document = workspace.finished("extract", key, Document)
    if document is None:
        with workspace.ledger.timed("extract"):
            write_bytes(directory / "paper.pdf", options.pdf.read_bytes())
            document = read_isolated(directory / "paper.pdf", reporter=Details(reporter, "extract"))
            workspace.write_json(directory / "document.json", document)
            workspace.finish("extract", key, document)
    ocr = sum(page.ocr is not None for page in document.pages)
    reporter.end(
        "extract",
        f"{len(document.pages)} pages ({ocr} by OCR), {len(document.tables)} tables, {len(document.figures)} figures",
    )
    for problem in document.problems:
        if problem.severity != "info":
            reporter.warn(f"{problem.where}: {problem.message}")
    return document


def _task_of(draft: Draft, paper: Paper, snapshot: Snapshot, info: WorkspaceInfo) -> Task:
    return Task(
        id=f"{paper.id}-{draft.slug}",
        family=Family.EXPERIMENT,
        status=Status.DRAFT,
        paper=paper,
        repository=snapshot.ref,
        question=draft.question,
        method=draft.method,
        agent_instructions=draft.agent_instructions,
        resources=Resources(),
        provenance=Provenance(
            engine=info.inputs.engine,
            model=info.inputs.model,
            stages=tuple(sorted(STAGE_VERSIONS.items())),
            created_at=info.created_at,
        ),
        truth=ExperimentTruth(
            constant=draft.constant,
            independent=draft.independent,
            dependent=draft.dependent,
            expected=draft.expected,
            hyperparameters=draft.hyperparameters,
        ),
        confidence=draft.confidence,
        evidence=draft.evidence,
    )


def _paper_id(pdf: Path, snapshot: Snapshot | None) -> str:
    """The PDF's name, unless that says nothing (`paper.pdf`, `main_final.pdf`): then the repository's."""
    name = slug(pdf.stem, 40)
    if all(_says_nothing(word) for word in name.split("-")):
        name = slug(snapshot.ref.url.rstrip("/").removesuffix(".git").rsplit("/", 1)[-1], 40) if snapshot else "paper"
    if name in {"", "repository", "repo", "code"}:
        name = slug(pdf.resolve().parent.name, 40) or "paper"
    return name


def _says_nothing(word: str) -> bool:
    """`main2`, `v3`, `final`; not `2301`, which is part of an arXiv number."""
    stem = word.rstrip("0123456789")
    return stem in _COMMON if stem else len(word) <= _VERSION_DIGITS


_COMMON = frozenset({
    "", "article", "arxiv", "camera", "document", "draft", "final", "full", "main", "manuscript", "paper", "pdf",
    "preprint", "ready", "report", "revised", "submission", "submitted", "thesis", "v", "version",
})  # fmt: skip
"""Words of file names that every paper may have."""
_VERSION_DIGITS = 2


def _model_config(options: CurateOptions, workspace: Workspace) -> ModelConfig | None:
    """The model, or None with the keyless engine; a model that cannot be used ends the run before it begins."""
    return model_config(options.model, workspace) if options.engine == "model" else None


def _choose_sandbox(kind: Literal["docker", "process"] | None, reporter: Reporter) -> StoppableSandbox:
    sandbox = open_sandbox(kind)
    if sandbox.name == "process":
        reason = "as asked for" if kind == "process" else "because Docker cannot be used here"
        reporter.warn(
            f"PROCESS SANDBOX ({reason}): the repository's code runs on this machine with limits, but without a "
            "container around it. Use it only for code you trust; every report records it."
        )
    return sandbox


def _check_workspace(workspace: Workspace, options: CurateOptions) -> None:
    root = workspace.root
    if root.exists() and not root.is_dir():
        problem = "is a file"
    elif workspace.exists():
        if options.resume:
            return
        problem = "holds a workspace already"
    elif root.is_dir() and any(entry.name not in _OURS for entry in root.iterdir()):
        problem = "is a directory with other content"
    else:
        return
    raise ExpbenchError(
        FailureKind.WORKSPACE_CONFLICT,
        str(root),
        problem,
        consequence="Nothing was changed",
        next_step="Pass --resume to go on with it, or choose another --out"
        if workspace.exists()
        else "Choose another --out",
    )


_OURS = {
    ".lock", ".stages", "ledger.jsonl", "repository", "repository.json", ".repository.partial", "papers", "model",
    "model_calls.jsonl",
}  # fmt: skip
"""What a run that was ended before it wrote `workspace.json` may have left; `--resume` and a new run take it over."""
