"""Run OpenHands (SDK) headless on one task: `python -I run.py CONFIG.json`.

Every event goes to `<outbox>/events.jsonl` as the SDK serialises it, the end to `<outbox>/result.json`. The exit codes
of the SDK's own command line do not say how a run ended (0 when the endpoint is dead), so the result file does.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

for _name, _value in {
    "OPENHANDS_SUPPRESS_BANNER": "1",
    # without it the import tries for minutes to fetch a price list
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_TELEMETRY": "False",
}.items():
    os.environ.setdefault(_name, _value)

from openhands.sdk import LLM, Agent, LocalConversation, Tool  # type: ignore[import-not-found]  # noqa: E402
from openhands.sdk.context.condenser import LLMSummarizingCondenser  # type: ignore[import-not-found]  # noqa: E402
from openhands.sdk.conversation.exceptions import ConversationRunError  # type: ignore[import-not-found]  # noqa: E402
from openhands.tools.file_editor import FileEditorTool  # type: ignore[import-not-found]  # noqa: E402
from openhands.tools.task_tracker import TaskTrackerTool  # type: ignore[import-not-found]  # noqa: E402
from openhands.tools.terminal import TerminalTool  # type: ignore[import-not-found]  # noqa: E402
from pydantic import SecretStr  # noqa: E402

_GRACE_S = 5.0
"""Between the interrupt and the hard end: a tool may ignore the first."""
_EXIT_LIMIT, _EXIT_ERROR = 3, 1


class Run:
    """One conversation with its log and its deadline."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._began = time.time()
        self._outbox = Path(config["outbox"])
        self._log = (self._outbox / "events.jsonl").open("a", encoding="utf-8", errors="backslashreplace")
        self._timed_out = False
        self._error: str | None = None
        self._conversation = LocalConversation(
            agent=self._agent(),
            workspace=config["workspace"],
            visualizer=None,
            callbacks=[self._write],
            max_iteration_per_run=config["max_iterations"],
        )

    def _agent(self) -> Any:
        config = self._config
        llm = LLM(
            model=config["model"],
            base_url=config["base_url"],
            api_key=SecretStr("none"),  # the gateway adds the key, outside the container
            usage_id="agent",
            api_mode="chat",
            num_retries=4,
            timeout=config["model_timeout_s"],
            seed=config["seed"],
            max_input_tokens=config["max_input_tokens"],
        )
        condenser = LLMSummarizingCondenser(
            llm=llm.model_copy(update={"usage_id": "condenser"}), max_size=config["condense_after"], keep_first=4
        )
        # no browser: there is no network
        tools = [Tool(name=tool.name) for tool in (TerminalTool, FileEditorTool, TaskTrackerTool)]
        return Agent(llm=llm, tools=tools, system_prompt_kwargs={"cli_mode": True}, condenser=condenser)

    def _write(self, event: Any) -> None:
        self._log.write(event.model_dump_json(exclude_none=True) + "\n")
        self._log.flush()

    def _report(self) -> str:
        metrics = self._conversation.conversation_stats.get_combined_metrics()
        usage = metrics.accumulated_token_usage
        status = str(self._conversation.state.execution_status.value)
        result = {
            "status": status,
            "timed_out": self._timed_out,
            "error": self._error,
            "seconds": round(time.time() - self._began, 2),
            "model_calls": len(metrics.token_usages),
            "usage": usage.model_dump() if usage else None,
        }
        temporary = self._outbox / "result.json.tmp"
        temporary.write_text(json.dumps(result), encoding="utf-8")
        temporary.replace(self._outbox / "result.json")
        return status

    def _soft_end(self) -> None:
        self._timed_out = True
        timer = threading.Timer(_GRACE_S, self._hard_end)
        timer.daemon = True
        timer.start()
        self._conversation.interrupt()

    def _hard_end(self) -> None:
        self._report()
        os._exit(_EXIT_LIMIT)

    def go(self) -> int:
        """Run to the end; returns the exit code."""
        timer = threading.Timer(self._config["wall_s"], self._soft_end)
        timer.daemon = True
        timer.start()
        try:
            self._conversation.send_message(self._config["instructions"])
            # not run(): interrupt() ends a running command only here
            asyncio.run(self._conversation.arun())
        except ConversationRunError as error:
            cause = error.original_exception
            self._error = f"{type(cause).__name__}: {cause}"[:4000]
        timer.cancel()
        status = self._report()
        self._conversation.close()
        if self._timed_out:
            return _EXIT_LIMIT
        return 0 if status == "finished" else _EXIT_ERROR


if __name__ == "__main__":
    code = Run(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))).go()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads of the SDK's clients would hold the process up
