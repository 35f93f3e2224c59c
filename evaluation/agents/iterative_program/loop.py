"""The loop: ask the model, carry out its tool calls, and go on until the time is nearly over; then the last turn.

In the style of PaperBench's IterativeAgent (arXiv 2504.01848, appendix on agents): there is no tool that ends the run,
and a model that stops calling tools is told to take the next step. What is ours: a last turn with a reserve of time in
which the submission is written, and an end to a model that has nothing left to do.
"""

from __future__ import annotations

import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any

from .config import Config, load_config
from .context import Conversation
from .log import EventLog
from .model import Answer, ContextTooLong, Endpoint, EndpointError, LimitReached
from .prompts import CONTINUE, FINAL, MISSING, SYSTEM
from .tools import TOOLS, ToolBox

__all__ = ["Loop", "main"]

_SUBMISSION = ("response.json", "reproduce.sh")
_SHORTENINGS = 6
"""Of one request that the endpoint finds too long: each halves the ceiling."""
_REFUSALS = 3
"""In a row after which the model is taken at its word."""
EXIT_ERROR, EXIT_LIMIT, EXIT_REFUSED, EXIT_ENDED = 1, 3, 4, 143


class _Ended(BaseException):
    """The harness asks the program to end (SIGTERM). Not an Exception: nothing may take it for a failure of a tool."""


class _Stop(Exception):  # noqa: N818
    """The run is over before its time."""

    def __init__(self, reason: str, detail: str, code: int) -> None:
        self.reason, self.detail, self.code = reason, detail, code
        super().__init__(detail)


class Loop:
    """One run.

    Args:
        config: its settings.
        log: where its events go.
        began: monotonic time of the start.
    """

    def __init__(self, config: Config, log: EventLog, began: float) -> None:
        self._config, self._log = config, log
        # a third of a short run is the most that the last turn may take of it
        reserve = min(config.reserve_s, config.wall_s / 3)
        self._deadline = began + config.wall_s - min(config.margin_s, config.wall_s / 10)
        self._last_turn_at = self._deadline - reserve
        self._conversation = Conversation(SYSTEM, config.instructions, config.context_tokens)
        self._tools = ToolBox(
            config.workspace,
            shown_chars=config.shown_chars,
            logged_chars=config.logged_chars,
            timeout_s=config.command_timeout_s,
            python=shutil.which("python3") or shutil.which("python") or sys.executable,
        )
        self._endpoint = Endpoint(
            config.base_url,
            timeout_s=config.model_timeout_s,
            retries=config.retries,
            deadline=self._deadline,
            on_retry=lambda n, why, wait: log.write("retry", attempt=n, reason=why, wait_s=round(wait, 2)),
        )
        self._turns = 0

    def run(self) -> int:
        """The whole run; returns the exit code, 0 when it came to its planned end."""
        self._log.write("utterance", role="system", text=SYSTEM)
        self._log.write("utterance", role="user", text=self._config.instructions)
        try:
            why = self._work()
            self._log.write("phase", phase="final", reason=why)
            self._final()
        except _Stop as stop:
            self._log.write("end", reason=stop.reason, detail=stop.detail, turns=self._turns)
            return stop.code
        self._log.write("end", reason="finished", detail=why, turns=self._turns)
        return 0

    # --- phases

    def _work(self) -> str:
        """Turns until the time is nearly over; returns why they ended."""
        idle = 0
        while True:
            if time.monotonic() >= self._last_turn_at:
                return "time is nearly over"
            if self._config.max_turns is not None and self._turns >= self._config.max_turns:
                self._log.write("limit", limit="turns", detail=f"{self._config.max_turns} turns")
                return f"{self._config.max_turns} turns are used up"
            if self._turn(self._last_turn_at):
                idle = 0
                continue
            idle += 1
            if idle >= self._config.idle_turns:
                return f"{idle} answers in a row without a tool call"
            left = max(int(self._last_turn_at - time.monotonic()), 0)
            self._say(CONTINUE.format(minutes=left // 60, seconds=left % 60))

    def _final(self) -> None:
        """The submission is written, or what is missing of it asked for again."""
        self._say(FINAL.format(seconds=max(int(self._deadline - time.monotonic()), 0)))
        for _ in range(self._config.final_turns):
            if time.monotonic() >= self._deadline:
                return
            if self._turn(self._deadline):
                continue
            missing = [name for name in _SUBMISSION if not (Path(self._config.workspace) / name).is_file()]
            if not missing:
                return
            self._say(MISSING.format(names=" and ".join(missing)))

    # --- one turn

    def _turn(self, until: float) -> bool:
        """Ask once and carry out what is asked for; was there a tool call?"""
        answer = self._ask()
        self._turns += 1
        self._log.write(
            "model",
            turn=self._turns,
            text=answer.text or answer.refusal,
            reasoning=answer.reasoning,
            refused=bool(answer.refusal),
            finish_reason=answer.finish_reason,
            model=answer.model,
            usage=answer.usage,
            tool_calls=[
                {
                    "id": call.get("id"),
                    "name": call["function"].get("name"),
                    "arguments": call["function"].get("arguments"),
                }
                for call in answer.tool_calls
            ],
        )
        self._refused(answer)
        results = [self._call(call, until) for call in answer.tool_calls]
        self._conversation.turn(answer.message, results)
        return bool(results)

    def _ask(self) -> Answer:
        for _ in range(_SHORTENINGS):
            messages, shortened = self._conversation.request()
            if shortened:
                self._log.write("context", text=shortened, estimate=self._conversation.estimate())
            try:
                answer = self._endpoint.ask(self._body(messages))
            except ContextTooLong:
                self._log.write("context", text=f"refused as too long; {self._conversation.too_long()}")
                continue
            except LimitReached as error:
                raise _Stop("limit", str(error), EXIT_LIMIT) from error
            except EndpointError as error:
                raise _Stop("agent_error", f"the endpoint gives no answer: {error}", EXIT_ERROR) from error
            if answer.usage:
                self._conversation.counted(answer.usage["input_tokens"], messages)
            return answer
        raise _Stop("agent_error", f"the request is too long even after {_SHORTENINGS} shortenings", EXIT_ERROR)

    def _body(self, messages: list[dict[str, Any]]) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self._config.model, "messages": messages, "tools": TOOLS}
        body["max_completion_tokens"] = self._config.max_output_tokens
        if self._config.seed is not None:
            body["seed"] = self._config.seed
        if self._config.temperature is not None:
            body["temperature"] = self._config.temperature
        return body

    _refusals = 0

    def _refused(self, answer: Answer) -> None:
        self._refusals = self._refusals + 1 if answer.refusal and not answer.tool_calls else 0
        if self._refusals >= _REFUSALS:
            raise _Stop("refused", answer.refusal[:1000], EXIT_REFUSED)

    def _call(self, call: dict[str, Any], until: float) -> dict[str, Any]:
        name = str(call["function"].get("name") or "")
        left = until - time.monotonic()
        text, record = self._tools.call(name, str(call["function"].get("arguments") or ""), left)
        self._log.write("tool", call=call.get("id"), name=name, **record)
        return {"role": "tool", "tool_call_id": call.get("id"), "content": text}

    def _say(self, text: str) -> None:
        self._conversation.say(text)
        self._log.write("utterance", role="user", text=text)


def _on_term(_number: int, _frame: Any) -> None:
    raise _Ended


def main(path: str) -> int:
    """Run with the configuration at `path`; returns the exit code."""
    began = time.monotonic()
    try:
        config = load_config(path)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"iterative: {error}\n")
        return 2
    log = EventLog(str(Path(config.outbox) / "events.jsonl"), began)
    log.write("start", version=1, model=config.model, python=sys.version.split()[0], wall_s=config.wall_s)
    signal.signal(signal.SIGTERM, _on_term)
    try:
        return Loop(config, log, began).run()
    except _Ended:
        log.write("end", reason="limit", detail="asked to end (SIGTERM)")
        return EXIT_ENDED
    finally:
        log.close()
