"""Work of minutes or hours behind an A2A task: done in a thread, with its progress as the task's status.

Our agents' executors say what to do with a message; the protocol's side - states, artifacts, cancelling, errors - is
here. A failure of ours reaches the other side as a failed task whose metadata name the kind of failure, so that it can
tell an agent that failed from machinery that did.
"""

from __future__ import annotations

import asyncio
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from a2a.server.agent_execution import AgentExecutor

from evaluation.a2a.messages import FAILURE
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox.base import StopHandle

if TYPE_CHECKING:
    from a2a.server.agent_execution import RequestContext
    from a2a.server.events import EventQueue
    from a2a.types import Message, Part

__all__ = ["Outbox", "WorkExecutor"]

Outbox = list[tuple[str, "Part"]]
"""(name of the artifact, its one part)."""


class WorkExecutor(AgentExecutor):
    """Carries out one message in a thread."""

    def __init__(self, at_once: int = 1) -> None:
        self._slots = threading.Semaphore(at_once)
        self._open: dict[str, StopHandle] = {}
        self._guard = threading.Lock()

    @abstractmethod
    def work(
        self, message: Message, task_id: str, tell: Callable[[str], object], stop: StopHandle
    ) -> tuple[str, Outbox]:
        """Do what a message asks for.

        Args:
            message: the request.
            task_id: of the A2A task.
            tell: takes progress in words.
            stop: is stopped when the task is cancelled.

        Returns:
            What came out in words, and the artifacts.

        Raises:
            ExpbenchError: it could not be done.
        """

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """See `AgentExecutor.execute`."""
        from a2a.helpers import new_task, new_text_part
        from a2a.server.tasks import TaskUpdater
        from a2a.types import TaskState

        message, task_id, context_id = context.message, context.task_id, context.context_id
        if message is None or task_id is None or context_id is None:
            return
        if context.current_task is None:
            await event_queue.enqueue_event(
                new_task(task_id, context_id, TaskState.TASK_STATE_SUBMITTED, history=[message])
            )
        updater = TaskUpdater(event_queue, task_id, context_id)
        loop = asyncio.get_running_loop()
        stop = StopHandle()
        with self._guard:
            self._open[task_id] = stop

        def words(text: str) -> Message:
            return updater.new_agent_message([new_text_part(text)])

        def tell(text: str) -> None:
            asyncio.run_coroutine_threadsafe(
                updater.update_status(TaskState.TASK_STATE_WORKING, words(text)), loop
            ).result()

        await updater.start_work()
        try:
            work = asyncio.to_thread(self._waiting, message, task_id, tell, stop)
            (result,) = await asyncio.gather(work, return_exceptions=True)
        finally:
            with self._guard:
                self._open.pop(task_id, None)
        if isinstance(result, BaseException):
            known = isinstance(result, ExpbenchError)
            kind = result.kind if isinstance(result, ExpbenchError) else FailureKind.INTERNAL
            text = f"{result.object}: {result.cause}" if isinstance(result, ExpbenchError) else type(result).__name__
            await updater.update_status(TaskState.TASK_STATE_FAILED, words(text), metadata={FAILURE: kind.value})
            if not known:
                raise result  # a defect: the server's log shows it
            return
        text, outbox = result
        for name, part in outbox:
            await updater.add_artifact([part], name=name)
        await updater.complete(words(text))

    def _waiting(
        self, message: Message, task_id: str, tell: Callable[[str], object], stop: StopHandle
    ) -> tuple[str, Outbox]:
        with self._slots:
            return self.work(message, task_id, tell, stop)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """See `AgentExecutor.cancel`: what is under way ends, and its container is removed."""
        from a2a.server.tasks import TaskUpdater

        task_id, context_id = context.task_id, context.context_id
        if task_id is None or context_id is None:
            return
        with self._guard:
            stop = self._open.get(task_id)
        if stop is not None:
            stop.abort("its task was cancelled")
        await TaskUpdater(event_queue, task_id, context_id).cancel()

    def stop_all(self, reason: str) -> None:
        """End everything that is under way."""
        with self._guard:
            handles: Sequence[StopHandle] = list(self._open.values())
        for handle in handles:
            handle.abort(reason)
