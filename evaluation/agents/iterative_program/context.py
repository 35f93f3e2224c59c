"""What of the conversation is sent: an explicit policy instead of a request that one day no longer fits.

1. As long as the estimate stays below the ceiling, everything is sent.
2. Above it, the output of the oldest tool calls is replaced by a line that says how long it was, until the estimate is
   below 60 % of the ceiling; the last six rounds keep theirs. (Down to 60 % at once: each change of an old message
   costs the endpoint's prompt cache, so it should happen rarely.)
3. If that is not enough, the oldest rounds leave as a whole (a tool call never without its result), and a note in their
   place says how many. The system prompt and the instructions always stay.
4. If the last rounds alone are too long, their texts are cut to a fair share each; if their tool calls are what is long
   (a file written in one call), the older of them leave too, down to the last one.

Tokens are estimated from characters; the ratio is learnt from what the endpoint counted.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["Conversation"]

_TARGET = 0.6
_ENOUGH = 0.8
_KEPT_ROUNDS = 6
_FIRST_RATIO = 3.5
"""Characters a token before the endpoint has counted anything; English is near 4, code near 3."""
_DROPPED = "[output of {} characters left out: the conversation became too long; run the command again if needed]"


class Conversation:
    """The messages so far.

    Args:
        system: the system prompt.
        instructions: the task; always sent.
        ceiling: tokens of a request.
    """

    def __init__(self, system: str, instructions: str, ceiling: int) -> None:
        self._head: list[dict[str, Any]] = [
            {"role": "system", "content": system},
            {"role": "user", "content": instructions},
        ]
        self._rounds: list[list[dict[str, Any]]] = []
        self._left_out = 0
        self._ceiling = ceiling
        self._ratio = _FIRST_RATIO

    def say(self, text: str) -> None:
        """A turn of the user."""
        self._rounds.append([{"role": "user", "content": text}])

    def turn(self, message: dict[str, Any], results: list[dict[str, Any]]) -> None:
        """A turn of the model with the results of its tool calls."""
        self._rounds.append([message, *results])

    def counted(self, tokens: int, messages: list[dict[str, Any]]) -> None:
        """Learn from the endpoint: `messages` were `tokens` long."""
        if tokens > 0:
            self._ratio = min(max(_size(messages) / tokens, 1.0), 8.0)

    def estimate(self) -> int:
        """Tokens of the next request."""
        return int(_size(self._messages()) / self._ratio)

    def request(self) -> tuple[list[dict[str, Any]], str]:
        """The messages to send, and what was shortened for them (empty: nothing)."""
        done = []
        if self.estimate() > self._ceiling:
            done = self._shorten(int(self._ceiling * _TARGET))
        return self._messages(), "; ".join(done)

    def too_long(self) -> str:
        """The endpoint refused the last request for its length: take half of that as the ceiling from now on."""
        self._ceiling = max(min(self._ceiling, self.estimate()) // 2, 1000)
        return f"ceiling is now {self._ceiling} tokens; " + "; ".join(self._shorten(int(self._ceiling * _TARGET)))

    def _messages(self) -> list[dict[str, Any]]:
        messages = list(self._head)
        if self._left_out:
            note = f"[{self._left_out} earlier rounds were left out: the conversation became too long. Look at the "
            messages.append({"role": "user", "content": note + "workspace to see what they did.]"})
        for one in self._rounds:
            messages.extend(one)
        return messages

    def _shorten(self, target: int) -> list[str]:
        done = []
        outputs = 0
        for one in self._rounds[:-_KEPT_ROUNDS]:
            if self.estimate() <= target:
                break
            for message in one:
                text = message.get("content") or ""
                if message["role"] == "tool" and len(text) > 2 * len(_DROPPED):
                    message["content"] = _DROPPED.format(len(text))
                    outputs += 1
        if outputs:
            done.append(f"{outputs} old outputs left out")
        # what is left of an old round is short: it leaves only where that is not enough by far
        rounds = self._drop(target, _KEPT_ROUNDS) if self.estimate() > self._ceiling * _ENOUGH else 0
        if self.estimate() > self._ceiling:
            done.append(self._cut_last())
            rounds += self._drop(self._ceiling, 1)
        if rounds:
            done.append(f"{rounds} old rounds left out")
        return done

    def _drop(self, target: int, keep: int) -> int:
        rounds = 0
        while self.estimate() > target and len(self._rounds) > keep:
            self._rounds.pop(0)
            rounds += 1
            self._left_out += 1
        return rounds

    def _cut_last(self) -> str:
        """Cut what the last rounds hold to equal shares of the room that the head leaves."""
        room = self._ceiling * self._ratio * _TARGET - _size(self._head)
        texts = [m for one in self._rounds for m in one if isinstance(m.get("content"), str)]
        share = max(int(room / max(len(texts), 1)), 200)
        count = 0
        for message in texts:
            text = message["content"]
            if len(text) > share:
                half = share // 2
                message["content"] = (
                    text[:half] + f"\n[... {len(text) - share} characters left out ...]\n" + text[-half:]
                )
                count += 1
        return f"{count} messages of the last rounds cut"


def _size(messages: list[dict[str, Any]]) -> int:
    """Characters; 16 for the frame of each message."""
    total = 16 * len(messages)
    for message in messages:
        total += len(message.get("content") or "")
        if message.get("tool_calls"):
            total += len(json.dumps(message["tool_calls"]))
    return total
