"""`expbench curate --prefect`: the same options, submitted to the server instead of run here."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from uuid import UUID

from flows.curate import CurateOptions, default_workspace
from flows.orchestration.names import CURATE_PAPER, DEPLOYMENT
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record

__all__ = ["Submitted", "server_answers", "submit_curation"]


_PASSED_ON: Final = {"commit", "engine", "sandbox", "repeats", "max_tasks", "allow_missing_submodules"}


class Submitted(Record):
    """A run that the server has accepted."""

    run: UUID
    name: str
    url: str
    workspace: Path


def submit_curation(options: CurateOptions, *, deployment: str = DEPLOYMENT, review: bool = True) -> Submitted:
    """Submit a `curate-paper` run; paths become absolute, as the worker has a directory of its own.

    Raises:
        ExpbenchError: `PAPER_INVALID` when there is no such PDF here; `RECORD_INVALID` when the server has no such
            deployment; `NETWORK` when it does not answer.
    """
    from prefect.client.orchestration import get_client

    from flows.orchestration.enqueue import run_url
    from flows.orchestration.guard import find_deployment, paper_label

    if not options.pdf.is_file():
        raise ExpbenchError(
            FailureKind.PAPER_INVALID,
            str(options.pdf),
            "there is no such file",
            consequence="Nothing was submitted",
            next_step="Name the paper's PDF",
        )
    server_answers()
    workspace = (options.out or default_workspace(options.pdf)).resolve()
    local = Path(options.repository)
    parameters: dict[str, Any] = {
        "pdf": str(options.pdf.resolve()),
        "repository": str(local.resolve()) if local.exists() else options.repository,
        "out": str(workspace),
        "model": options.model.name,
        "review": review,
        **options.model_dump(mode="json", include=_PASSED_ON),
        **options.model.model_dump(mode="json", include={"budget_usd", "max_calls", "max_tokens"}),
    }
    with get_client(sync_client=True) as client:
        name = f"{CURATE_PAPER}/{deployment}"
        target = find_deployment(client, name, consequence="Nothing was submitted", then="then submit it again")
        run = client.create_flow_run_from_deployment(
            target.id, parameters=parameters, tags=[f"paper:{paper_label(options.pdf)}", "stage:curate"]
        )
    return Submitted(run=run.id, name=run.name, url=run_url(run.id), workspace=workspace)


def server_answers() -> None:
    """Check that a server is configured and answers.

    Raises:
        ExpbenchError: `NETWORK`: none does. Prefect would otherwise start a server of its own for this one call, in
            which no worker ever looks for work.
    """
    from prefect.client.orchestration import get_client
    from prefect.settings import get_current_settings

    url = get_current_settings().api.url
    cause: object = "no server is configured (PREFECT_API_URL)"
    if url is not None:
        with get_client(sync_client=True) as client:
            cause = client.api_healthcheck()
        if cause is None:
            return
    raise ExpbenchError(
        FailureKind.NETWORK,
        url or "Prefect server",
        f"it cannot be used: {cause}",
        consequence="Nothing was submitted",
        next_step="Start one with `expbench up`, or name it: export PREFECT_API_URL=http://HOST:4200/api",
    )
