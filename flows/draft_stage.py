"""Stage 2.1 in a workspace: the paper becomes drafts, with the engine that was asked for.

Drafts that an earlier run finished with the same inputs are reused; with `--refresh` and `--replay` they are made
again, because the user wants to see what the model (or its recording) says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from extractors.drafting import DraftResult
from extractors.keyless import draft_tasks
from flows.engines import ModelEngine, parameters_of, prompts_digest
from pipeline.llm import CacheMode, PromptRef
from pipeline.locator import build_index
from pipeline.paper import Document
from pipeline.progress import Details, Reporter
from pipeline.repository import Snapshot
from pipeline.schema import Severity
from pipeline.settings import Settings
from pipeline.store import Workspace, WorkspaceInfo
from pipeline.version import STAGE_VERSIONS

if TYPE_CHECKING:
    from extractors.engine.run import PaperReader, ReaderChain
    from extractors.engine.runs import Rehearsed

__all__ = ["Drafted", "describe_model", "draft", "draft_by_reader"]

_AGAIN = {CacheMode.REFRESH, CacheMode.REPLAY}
_REASONS: Final = 12
"""Reasons that are printed; a paper has about so many tables."""


@dataclass(frozen=True)
class Drafted:
    """Drafts, and the prompts that were used for them."""

    drafts: DraftResult
    prompts: tuple[PromptRef, ...] = ()
    choices: tuple[ReaderChain, ...] = ()
    """What a reader chose to carry them out, in their order; empty where they were made by rules."""
    reader: PaperReader | None = field(default=None, compare=False)


def draft(
    workspace: Workspace,
    info: WorkspaceInfo,
    document: Document,
    reporter: Reporter,
) -> Drafted:
    """Make drafts by rules, of what the paper alone states, and write `drafts.json`.

    Args:
        workspace: where.
        info: its head.
        document: the structured reading.
        reporter: progress.
    """
    key = _key(info, document)
    reporter.start("draft")
    drafted = Drafted(_by_rules(workspace, info, document, key, Details(reporter, "draft")))
    reporter.end("draft", _counted(drafted.drafts))
    if not drafted.drafts.drafts:
        _say_why_nothing(drafted.drafts, None, reporter)
    return drafted


def draft_by_reader(
    workspace: Workspace,
    info: WorkspaceInfo,
    document: Document,
    engine: ModelEngine,
    settings: Settings,
    reporter: Reporter,
    *,
    snapshot: Snapshot,
    rehearsed: Rehearsed,
) -> Drafted:
    """Have a model write the drafts; `reading.json` holds what its passes found on their way to `drafts.json`.

    Args:
        workspace: where.
        info: its head.
        document: the structured reading.
        engine: the model.
        settings: how it reads.
        reporter: progress.
        snapshot: the repository.
        rehearsed: what was run of it.

    Raises:
        ExpbenchError: see `extractors.engine.run.draft_with_model`; what was answered is kept.
    """
    from extractors.engine.run import EngineResult, PaperReader, ReadingOptions, draft_with_model, engine_prompts

    reporter.start("draft")
    directory = workspace.paper_dir(info.paper_id)
    reader = PaperReader(
        document, build_index(snapshot, cache=settings.cache_dir / "indexes"), rehearsed, engine.client,
        directory / "paper.pdf" if settings.vision else None,
    )  # fmt: skip
    key = _key(info, document) | {
        "engine": "model", "model": engine.identity, "prompts": prompts_digest(engine_prompts()),
        "beginning": reader.digest,
    }  # fmt: skip
    found = None if engine.client.store.mode in _AGAIN else workspace.finished("draft", key, EngineResult)
    if found is None:
        with workspace.ledger.timed("draft"):
            with engine.budget.entered():
                found = draft_with_model(
                    reader, rehearsed, reporter=Details(reporter, "draft"),
                    options=ReadingOptions(max_tasks=info.inputs.max_tasks, workers=settings.reading_workers),
                )  # fmt: skip
            workspace.write_json(directory / "reading.json", found.reading)
            workspace.write_json(directory / "drafts.json", found.drafts)
            workspace.finish("draft", key, found)
    reporter.end("draft", f"{_counted(found.drafts)}, by {engine.config.model}")
    _say_what_was_dropped(found.drafts, workspace, info, reporter)
    if not found.drafts.drafts:
        _say_why_nothing(found.drafts, engine, reporter)
    return Drafted(found.drafts, found.reading.prompts, found.choices, reader)


def _key(info: WorkspaceInfo, document: Document) -> dict[str, object]:
    return {
        "stage": "draft",
        "version": STAGE_VERSIONS["draft"],
        "extract": STAGE_VERSIONS["extract"],
        "document": document.sha256,
        "max_tasks": info.inputs.max_tasks,
    }


def _counted(drafts: DraftResult) -> str:
    claims = sum(len(item.expected.claims) for item in drafts.drafts)
    return f"{len(drafts.drafts)} draft tasks with {claims} numeric claims"


def _say_why_nothing(drafts: DraftResult, engine: ModelEngine | None, reporter: Reporter) -> None:
    """Why each table or statement became no task, where none did: an empty result without reasons helps nobody."""
    refused = [problem for problem in drafts.problems if problem.severity is Severity.INFO]
    for problem in refused[:_REASONS]:
        reporter.warn(f"{problem.where}: {problem.message}")
    if len(refused) > _REASONS:
        reporter.warn(f"and {len(refused) - _REASONS} more: see drafts.json and the summary page")
    more = "" if engine is not None else "; a language model reads more than tables of numbers (--engine model)"
    reporter.warn(f"no result of the paper could be made a task{more}")


def _by_rules(
    workspace: Workspace, info: WorkspaceInfo, document: Document, key: dict[str, object], reporter: Reporter
) -> DraftResult:
    drafts = workspace.finished("draft", key, DraftResult)
    if drafts is None:
        with workspace.ledger.timed("draft"):
            drafts = draft_tasks(document, max_tasks=info.inputs.max_tasks, reporter=reporter)
            workspace.write_json(workspace.paper_dir(info.paper_id) / "drafts.json", drafts)
            workspace.finish("draft", key, drafts)
    return drafts


def _say_what_was_dropped(drafts: DraftResult, workspace: Workspace, info: WorkspaceInfo, reporter: Reporter) -> None:
    count = sum(problem.severity is not Severity.INFO for problem in drafts.problems)
    if count:
        where = workspace.paper_dir(info.paper_id) / "drafts.json"
        reporter.warn(
            f"{count} statement(s) of the model were dropped or are in doubt: see {where} and the summary page"
        )


def describe_model(engine: ModelEngine) -> str:
    """The model in one line, for people."""
    return f"{engine.config.model} at {engine.config.url} ({parameters_of(engine.config)})"
