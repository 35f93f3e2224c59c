"""Many items inside one run: threads of its process, or the workers of a Dask or Ray cluster.

A run of its own per item (`flows.orchestration.fan_out`) costs a process start of 6 to 28 s, and gives a log, retries
and cancellation of its own. Where the items are many and short, or a cluster is there already, warm workers carry them
as task runs instead. The work is the same function either way; what it finished lies in the workspace or the run.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from prefect import flow, unmapped
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture
from prefect.states import Failed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner
from prefect.tasks import Task

from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["Spread", "map_items", "task_runner"]

Spread = Literal["runs", "threads", "dask", "ray"]
"""runs: a run of its own for each; threads, dask, ray: task runs of one run."""

_TRIES: Final = 3
"""Of an item that was lost: on a busy server with SQLite 3 of 300 and 6 of 1,000 were, each once."""
_NOT_ENDED: Final[State[Any]] = Failed(message=f"its task run was lost {_TRIES} times: see the workers' logs")
_EXTRAS: Final = {"dask": "prefect_dask", "ray": "prefect_ray"}


def task_runner(spread: Spread, concurrency: int, cluster: str | None = None) -> TaskRunner[Any]:
    """The task runner of this name.

    Args:
        spread: which; not `runs`.
        concurrency: items at a time. On a cluster of its own that is the number of one-threaded workers; on a running
            cluster its own size bounds them.
        cluster: address of a running Dask scheduler or Ray head; None: one is started on this machine and ended again.

    Raises:
        ExpbenchError: `TOOL_MISSING`: the extra is not installed; `USAGE`: threads have no cluster.
    """
    if spread == "threads":
        if cluster:
            raise ExpbenchError(
                FailureKind.USAGE, f"cluster {cluster}", "threads run in this process, not on a cluster",
                consequence="Nothing was started", next_step="Choose spread=dask or spread=ray, or leave cluster out",
            )  # fmt: skip
        return ThreadPoolTaskRunner(max_workers=concurrency)
    try:
        package = importlib.import_module(_EXTRAS[spread])
    except ImportError as error:
        raise ExpbenchError(
            FailureKind.TOOL_MISSING, f"spread={spread}", f"{error.name or _EXTRAS[spread]} is not installed here",
            consequence="Nothing was started", next_step=f"Install the extra: uv pip install 'expbench[{spread}]'",
        ) from error  # fmt: skip
    # one thread a worker: an item keeps to itself, and waits for containers most of its time
    own: dict[str, Any]
    if spread == "dask":
        own = {"cluster_kwargs": {"n_workers": concurrency, "threads_per_worker": 1, "dashboard_address": None}}
    else:
        own = {"init_kwargs": {"num_cpus": concurrency, "include_dashboard": False}}
    made: TaskRunner[Any] = getattr(package, f"{spread.capitalize()}TaskRunner")(
        **({"address": cluster} if cluster else own)
    )
    return made


def map_items(
    work: Task[..., Any],
    items: Sequence[Mapping[str, Any]],
    runner: TaskRunner[Any],
    *,
    on_ended: Callable[[int, State[Any]], None] | None = None,
    **shared: Any,
) -> list[State[Any]]:
    """Carry out `work(item=..., **shared)` for each item on a task runner; the final states, in the items' order.

    Args:
        work: a task that takes `item` and what is shared.
        items: one call each.
        runner: where.
        on_ended: told of each item that has ended, in order.
        shared: the same for all.
    """
    states: dict[int, State[Any]] = {}

    @flow(name="spread", flow_run_name=f"{len(items)} x {work.name}", task_runner=runner, validate_parameters=False)
    def spread() -> None:  # returns no states: Prefect would end it as failed when one of them is
        same: dict[str, Any] = {name: unmapped(value) for name, value in shared.items()}
        for _ in range(_TRIES):
            numbers = [number for number in range(len(items)) if number not in states or _lost(states[number])]
            futures: list[PrefectFuture[Any]] = list(work.map(item=[items[number] for number in numbers], **same))
            for number, future in zip(numbers, futures, strict=True):
                future.wait()
                states[number] = future.state
                if on_ended is not None:
                    on_ended(number, future.state)
            if not any(map(_lost, states.values())):
                return

    if items:
        spread()
    return [states[number] if not _lost(states[number]) else _NOT_ENDED for number in range(len(items))]


def _lost(state: State[Any]) -> bool:
    """Did the item end without a result or an error of its own? Its worker, or Prefect's record of it, broke off."""
    return not state.is_final() or state.is_crashed()
