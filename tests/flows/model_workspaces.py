"""Workspaces in which a model has read a paper, without the stages after it."""

from __future__ import annotations

from pathlib import Path

from extractors.drafting import DraftResult
from extractors.engine.runs import Rehearsed
from flows.draft_stage import Drafted, draft_by_reader
from flows.engines import ModelOptions, model_config, open_model, parameters_of
from pipeline.paper import Document
from pipeline.progress import SilentReporter
from pipeline.settings import Settings
from pipeline.store import Inputs, Workspace, WorkspaceInfo
from tests.pipeline.locator.repositories import PROJECT, make


def read_with_model(
    root: Path, document: Document, options: ModelOptions | None = None, settings: Settings | None = None
) -> Drafted:
    """The draft stage with the model that the environment names, in a workspace that is made when it is missing.

    The repository is the spirals project, of which nothing was run.
    """
    options = options or ModelOptions()
    settings = settings or Settings(vision=False)
    workspace = Workspace(root)
    config = model_config(options, workspace)
    if not workspace.exists():
        inputs = Inputs(
            paper_sha256="0" * 64, repository="code", commit="a" * 40, engine="model", sandbox="process", repeats=1,
            max_tasks=None, model=config.model, endpoint=config.endpoint or config.url,
            parameters=parameters_of(config),
        )  # fmt: skip
        workspace.write_info(
            WorkspaceInfo(inputs=inputs, paper_id="paper", created_at="2026-01-01T00:00:00+00:00", expbench="0.1.0")
        )
    engine = open_model(config, options, workspace, settings)
    try:
        return draft_by_reader(
            workspace, workspace.info(), document, engine, settings, SilentReporter(),
            snapshot=make(workspace.root / "repository", PROJECT), rehearsed=Rehearsed(),
        )  # fmt: skip
    finally:
        engine.close()


def drafts_of(root: Path) -> DraftResult:
    """What the stage wrote."""
    return DraftResult.model_validate_json((root / "papers" / "paper" / "drafts.json").read_bytes())
