"""A run: many episodes, a bounded number at once, resumable.

`run.yaml` says what is run; it is written once, and a run is resumed only with the same (another limit, model or task
text would make its episodes incomparable). One process works in a run at a time, which a lock file holds on to; what a
killed process left behind - containers, scratch directories - is removed by the next one, before anything starts.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final

from pydantic import Field

from evaluation.episode import EpisodeLimits, EpisodeState, Perturbing
from evaluation.harness.episode_runner import EpisodeRunner, episode_folder, load_state
from evaluation.scores import EpisodeScores
from evaluation.task import EvaluationTask
from pipeline.digests import digest_of, text_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import exclusive_lock, write_text
from pipeline.progress import Reporter
from pipeline.sandbox.base import Sandbox, StopHandle
from pipeline.schema import Record, StoredRecord
from pipeline.scratch import remove_orphaned_scratch
from pipeline.yamlio import dump_yaml, load_yaml

__all__ = [
    "JudgeRecord", "RunRecord", "begin_run", "open_run", "read_run", "run_episodes", "run_owner", "states",
    "task_digest",
]  # fmt: skip

_STAGE: Final = "evaluate"
_FILE: Final = "run.yaml"
_OURS: Final = frozenset({".lock", "workspaces", "environments"})
"""What may be there before `run.yaml` is: the run was killed while its tasks were loaded."""


class JudgeRecord(Record):
    """Who grades."""

    engine: str = "keyless"
    model: str | None = None
    panel: int = 1
    execute_all: bool = False
    counterfactual: Perturbing = Perturbing()


class RunRecord(StoredRecord):
    """`run.yaml`."""

    SCHEMA_VERSION: ClassVar[int] = 1

    run: str
    source: str
    """As it was given."""
    agent: str
    agent_version: str | None = None
    agent_options: dict[str, str] = Field(default_factory=dict)
    model: str | None = None
    repeats: int = Field(default=1, ge=1)
    limits: EpisodeLimits = EpisodeLimits()
    gpu_type: str | None = None
    network: tuple[str, ...] = ()
    """Hosts that the agent may reach; empty: none."""
    ablation: str = ""
    judge: JudgeRecord = JudgeRecord()
    tasks: dict[str, str] = Field(default_factory=dict)
    """Task id -> digest of what the agent is told and what the graders know."""
    expbench: str = ""
    """Version that made it."""

    @property
    def episodes(self) -> list[tuple[str, int]]:
        """(task, repeat) of each, in order."""
        return [(task, repeat) for task in sorted(self.tasks) for repeat in range(self.repeats)]


def task_digest(task: EvaluationTask) -> str:
    """sha256 of what of a task decides its scores."""
    return digest_of([task.public.model_dump(mode="json", exclude={"status", "provenance"}), task.private_digest])


def run_owner(root: Path) -> str:
    """Label of everything that runs on behalf of a run."""
    return "run-" + text_digest(str(root.resolve()))[:16]


@contextmanager
def open_run(root: Path, *, resume: bool) -> Iterator[None]:
    """Hold a run's directory, new or to be resumed; `begin_run` says what is run.

    Raises:
        ExpbenchError: `WORKSPACE_CONFLICT`: it is there already and `resume` was not asked for, or it is something
            else; `WORKSPACE_LOCKED`: another process works in it.
    """
    require_place(root, resume=resume)
    root.mkdir(parents=True, exist_ok=True)
    with exclusive_lock(root / ".lock", str(root)):
        yield


def require_place(root: Path, *, resume: bool) -> None:
    """Can a run be begun, or gone on with, in this directory?

    Raises:
        ExpbenchError: `WORKSPACE_CONFLICT`.
    """
    path = root / _FILE
    if root.is_file() or (root.exists() and not path.is_file() and any(i.name not in _OURS for i in root.iterdir())):
        raise _conflict(root, "holds something that is no run", "Choose another --out")
    if path.is_file() and not resume:
        raise _conflict(root, "is there already", "Add --resume to go on with it, or choose another --out")


def begin_run(root: Path, record: RunRecord) -> None:
    """Write what is run, or see that a run that is resumed is the same.

    Raises:
        ExpbenchError: `WORKSPACE_CONFLICT`: it was made from something else.
    """
    path = root / _FILE
    if path.is_file():
        _require_equal(root, read_run(root), record)
    else:
        write_text(path, dump_yaml(record))


def read_run(root: Path) -> RunRecord:
    """`run.yaml` of a run.

    Raises:
        ExpbenchError: `RECORD_INVALID`: there is none, or it cannot be read.
    """
    path = root / _FILE
    if not path.is_file():
        raise ExpbenchError(
            FailureKind.RECORD_INVALID, str(root), f"is not a run of expbench (no {_FILE})",
            consequence="There is nothing to show", next_step="Name the directory that `expbench evaluate --out` wrote",
        )  # fmt: skip
    return load_yaml(path, RunRecord)


def states(root: Path, record: RunRecord) -> list[tuple[str, int, EpisodeState | None]]:
    """(task, repeat, state) of every episode of a run, in order; None: not begun."""
    return [(task, repeat, load_state(episode_folder(root, task, repeat))) for task, repeat in record.episodes]


def run_episodes(
    runner: EpisodeRunner, tasks: Sequence[EvaluationTask], *, repeats: int, workers: int, sandbox: Sandbox,
    reporter: Reporter,
) -> list[EpisodeScores]:  # fmt: skip
    """Bring all episodes to their end, `workers` at once; the rows in the order of task and repeat.

    The caller holds the run (`open_run`). On Ctrl-C, and when an episode meets something that the user has to mend,
    the other episodes are given up where they are and their containers removed.

    Raises:
        ExpbenchError: what the user has to mend; `INTERRUPTED` after Ctrl-C.
    """
    owner = runner.agent_step.owner
    left = sandbox.reap(owner)
    remove_orphaned_scratch(reporter.warn)
    if left:
        reporter.note(_STAGE, f"{left} containers of an interrupted run were removed")
    todo = [(task, repeat) for task in sorted(tasks, key=lambda task: task.id) for repeat in range(repeats)]
    reporter.start(_STAGE, len(todo))
    handles = _Handles()
    # threads only wait here: containers do the work, and git and file copies release the interpreter
    pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="expbench-episode")
    try:
        futures: list[Future[EpisodeScores]] = []
        for task, repeat in todo:
            futures.append(pool.submit(_one, runner, handles, task, repeat, reporter))
        wait(futures, return_when=FIRST_EXCEPTION)
        rows = [future.result() for future in futures]
    except BaseException as error:
        handles.abort("interrupted" if isinstance(error, KeyboardInterrupt) else "another episode ended the run")
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    reporter.end(_STAGE, f"{len(rows)} episodes")
    return rows


class _Handles:
    """Stop handles of the episodes that are under way."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._open: set[StopHandle] = set()
        self._reason = ""

    @contextmanager
    def one(self) -> Iterator[StopHandle]:
        """A handle for one episode."""
        handle = StopHandle()
        with self._guard:
            self._open.add(handle)
            if self._reason:
                handle.abort(self._reason)
        try:
            yield handle
        finally:
            with self._guard:
                self._open.discard(handle)

    def abort(self, reason: str) -> None:
        """End all of them, and those to come."""
        with self._guard:
            self._reason = reason
            for handle in self._open:
                handle.abort(reason)


def _one(
    runner: EpisodeRunner, handles: _Handles, task: EvaluationTask, repeat: int, reporter: Reporter
) -> EpisodeScores:
    with handles.one() as stop:
        scores = runner.episode(task, repeat, stop)
    reporter.step(_STAGE, f"{task.id}/{repeat}: {scores.status.value}")
    return scores


def _require_equal(root: Path, there: RunRecord, wanted: RunRecord) -> None:
    ignored = {"expbench", "schema_version", "run", "source"}
    names = [name for name in RunRecord.model_fields if name not in ignored]
    differing = [name for name in names if getattr(there, name) != getattr(wanted, name)]
    if differing:
        raise _conflict(
            root, f"was made with another {', '.join(differing)}",
            "Resume it with what run.yaml says, or choose another --out",
        )  # fmt: skip


def _conflict(root: Path, cause: str, next_step: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.WORKSPACE_CONFLICT, str(root), cause, consequence="No episode was run", next_step=next_step
    )
