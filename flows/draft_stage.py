"""Stage 2.1 in a workspace: the paper becomes drafts, with the engine that was asked for.

Drafts that an earlier run finished with the same inputs are reused; with `--refresh` and `--replay` they are made
again, because the user wants to see what the model (or its recording) says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from extractors.drafting import DraftResult
from extractors.keyless import draft_tasks
from flows.engines import ModelEngine, parameters_of, prompts_digest
from pipeline.llm import CacheMode, PromptRef
from pipeline.paper import Document
from pipeline.progress import Details, Reporter
from pipeline.schema import Severity
from pipeline.settings import Settings
from pipeline.store import Workspace, WorkspaceInfo
from pipeline.version import STAGE_VERSIONS

if TYPE_CHECKING:
    from extractors.engine import EngineResult

__all__ = ["Drafted", "describe_model", "draft"]

_AGAIN = {CacheMode.REFRESH, CacheMode.REPLAY}
_REASONS: Final = 12
"""Reasons that are printed; a paper has about so many tables."""


@dataclass(frozen=True)
class Drafted:
    """Drafts, and the prompts that were used for them."""

    drafts: DraftResult
    prompts: tuple[PromptRef, ...] = ()


def draft(
    workspace: Workspace,
    info: WorkspaceInfo,
    document: Document,
    engine: ModelEngine | None,
    settings: Settings,
    reporter: Reporter,
) -> Drafted:
    """Make the drafts and write `drafts.json`; with a model also `reading.json`, what its passes found.

    Args:
        workspace: where.
        info: its head.
        document: the structured reading.
        engine: the model; None: keyless.
        settings: how the model reads.
        reporter: progress.

    Raises:
        ExpbenchError: see `extractors.engine.draft_with_model`; what was answered is kept.
    """
    key: dict[str, object] = {
        "stage": "draft",
        "version": STAGE_VERSIONS["draft"],
        "extract": STAGE_VERSIONS["extract"],
        "document": document.sha256,
        "max_tasks": info.inputs.max_tasks,
    }
    reporter.start("draft")
    details = Details(reporter, "draft")
    if engine is None:
        drafted = Drafted(_by_rules(workspace, info, document, key, details))
    else:
        found = _by_model(workspace, info, document, engine, settings, key | _model_key(engine, settings), details)
        drafted = Drafted(found.drafts, found.reading.prompts)
    claims = sum(len(item.expected.claims) for item in drafted.drafts.drafts)
    shown = f"{len(drafted.drafts.drafts)} draft tasks with {claims} numeric claims"
    reporter.end("draft", shown if engine is None else f"{shown}, by {engine.config.model}")
    if engine is not None:
        _say_what_was_dropped(drafted.drafts, workspace, info, reporter)
    if not drafted.drafts.drafts:
        _say_why_nothing(drafted.drafts, engine, reporter)
    return drafted


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


def _model_key(engine: ModelEngine, settings: Settings) -> dict[str, object]:
    from extractors.engine import engine_prompts

    return {
        "engine": "model",
        "model": engine.identity,
        "prompts": prompts_digest(engine_prompts()),
        "vision": settings.vision,
    }


def _by_model(
    workspace: Workspace,
    info: WorkspaceInfo,
    document: Document,
    engine: ModelEngine,
    settings: Settings,
    key: dict[str, object],
    reporter: Reporter,
) -> EngineResult:
    from extractors.engine import EngineResult, ReadingOptions, draft_with_model

    again = engine.client.store.mode in _AGAIN
    found = None if again else workspace.finished("draft", key, EngineResult)
    if found is not None:
        return found
    directory = workspace.paper_dir(info.paper_id)
    with workspace.ledger.timed("draft"):
        with engine.budget.entered():
            found = draft_with_model(
                document,
                client=engine.client,
                pdf=directory / "paper.pdf",
                embed=engine.embeddings.embed if engine.embeddings is not None else None,
                embed_name=engine.embeddings.config.model if engine.embeddings is not None else "",
                index_dir=directory / "index",
                options=ReadingOptions(
                    max_tasks=info.inputs.max_tasks, vision=settings.vision, workers=settings.reading_workers
                ),
                reporter=reporter,
            )
        workspace.write_json(directory / "reading.json", found.reading)
        workspace.write_json(directory / "drafts.json", found.drafts)
        workspace.finish("draft", key, found)
    return found


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
