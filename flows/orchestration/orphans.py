"""Runs whose process is gone: found when a worker is started, and put back into the queue.

A worker that is killed (or a machine that loses power) leaves its runs `Running` on the server for ever. The server
knows under which process id each was started, and `expbench up` has a server that only this machine can reach; where no
such process is left, the run is scheduled again. Its flow goes on from what the workspace holds, so nothing that was
finished is done twice.
"""

from __future__ import annotations

import socket
from pathlib import Path
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterId,
    FlowRunFilterState,
    FlowRunFilterStateType,
    WorkPoolFilter,
    WorkPoolFilterName,
)
from prefect.client.schemas.objects import FlowRun, StateType
from prefect.states import Scheduled

from flows.orchestration.guard import read_all_runs

__all__ = ["reschedule_orphans", "runs_under_way"]

_UNDER_WAY = [StateType.RUNNING, StateType.PENDING, StateType.CANCELLING]


def runs_under_way(client: SyncPrefectClient, pool: str) -> list[UUID]:
    """Runs of a pool that have a process."""
    return [run.id for run in _read(client, pool, _UNDER_WAY) if run.infrastructure_pid]


def reschedule_orphans(client: SyncPrefectClient, pool: str, interrupted: tuple[UUID, ...] = ()) -> list[FlowRun]:
    """Schedule the pool's runs again whose process on this host is gone.

    Args:
        client: of the server.
        pool: name of the work pool.
        interrupted: runs that `expbench down` ended; the server may call them crashed.

    Returns:
        The runs that were scheduled again.
    """
    found = [run for run in _read(client, pool, _UNDER_WAY) if _is_orphan(run)]
    for start in range(0, len(interrupted), 100):
        wanted = FlowRunFilter(
            id=FlowRunFilterId(any_=list(interrupted[start : start + 100])),
            state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.CRASHED])),
        )
        found += client.read_flow_runs(flow_run_filter=wanted, limit=100)
    for run in found:
        message = "Its process was gone; the run goes on from what its workspace holds."
        client.set_flow_run_state(run.id, Scheduled(message=message), force=True)
    return found


def _read(client: SyncPrefectClient, pool: str, types: list[StateType]) -> list[FlowRun]:
    wanted = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=types)))
    where = WorkPoolFilter(name=WorkPoolFilterName(any_=[pool]))
    return read_all_runs(client, flow_run_filter=wanted, work_pool_filter=where)


def _is_orphan(run: FlowRun) -> bool:
    """Was it started here by a process that is gone? Where a host is named (`host:pid`), it must be this one."""
    host, _, pid = (run.infrastructure_pid or "").rpartition(":")
    if host not in {"", socket.gethostname()} or not pid.isdigit():
        return False
    if run.state is not None and run.state.type is StateType.CANCELLING:
        return False  # asked to end: it has
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return b"prefect" not in command  # the process id belongs to somebody else by now
