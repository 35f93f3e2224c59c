"""What to do when a request is longer than the model's context window: an explicit choice, never a silent cut.

Only parts marked `elastic` are touched (texts of papers and repositories); instructions never are. `shrink` leaves a
marker in the text where something is missing and says in the reply how much; `split` asks once per piece.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

from pipeline.errors import FailureKind
from pipeline.llm.counting import BYTES_PER_TOKEN, typical_tokens
from pipeline.llm.errors_map import ModelError
from pipeline.llm.types import Message, Part, Request, TextPart

__all__ = ["ContextPolicy", "ask_pieces", "ask_shrinking", "shrink", "split"]

T = TypeVar("T")
_FITTING_ROUNDS = 6

_BOUNDARY_SEARCH = 400
"""Characters within which a paragraph, line or sentence end is preferred over a cut in the middle of a word."""


class ContextPolicy(StrEnum):
    """What happens to a request that is too long."""

    FAIL = "fail"
    SHRINK = "shrink"
    SPLIT = "split"


def shrink(request: Request, room: int) -> tuple[Request, int] | None:
    """The request with its elastic parts shortened alike until `room` tokens are expected to hold it.

    Returns:
        The request and the number of characters left out, or None when the rest alone does not fit.
    """
    excess = typical_tokens(request) - room
    if excess <= 0:
        return request, 0
    parts = _elastic(request)
    total = sum(len(part.text.encode("utf-8", "surrogatepass")) for _, _, part in parts)
    # 120 bytes for the marker in each part
    keep = (total - excess * BYTES_PER_TOKEN - 120 * len(parts)) / total if total else 0
    if keep <= 0:
        return None
    left_out = 0
    for i, j, part in parts:
        text, missing = _without_middle(part.text, int(len(part.text) * keep))
        left_out += missing
        request = _replaced(request, i, j, part.evolve(text=text))
    return request, left_out


def split(request: Request, room: int) -> list[Request] | None:
    """The request once per piece of its longest elastic part, each expected to fit `room` tokens.

    Returns:
        The requests in the order of the text, or None when the rest alone does not fit.
    """
    if typical_tokens(request) <= room:
        return [request]
    parts = _elastic(request)
    if not parts:
        return None
    i, j, longest = max(parts, key=lambda item: len(item[2].text))
    rest = typical_tokens(_replaced(request, i, j, longest.evolve(text="")))
    size = int((room - rest - 20) * BYTES_PER_TOKEN)  # 20 tokens for the heading of a piece
    if size < 200:  # pieces of less than a paragraph answer nothing
        return None
    pieces = _pieces(longest.text, size)
    return [
        _replaced(request, i, j, longest.evolve(text=f"[part {number} of {len(pieces)}]\n{piece}"))
        for number, piece in enumerate(pieces, 1)
    ]


def ask_shrinking(
    request: Request,
    room: int | None,
    ask: Callable[[Request, int], T],
    too_long: Callable[[Request, int], ModelError],
) -> T:
    """Ask, with as much of the elastic text as fits; less again while the endpoint finds it too long.

    Args:
        room: tokens for the request; None: unknown, the endpoint will say.
        ask: given the request and the number of characters left out.
    """
    current, left_out = request, 0
    for round_ in range(_FITTING_ROUNDS):
        if room is not None:
            shrunk = shrink(request, room)
            if shrunk is None:
                raise too_long(request, room)
            current, left_out = shrunk
        try:
            return ask(current, left_out)
        except ModelError as error:
            if error.kind is not FailureKind.CONTEXT_TOO_LONG or round_ == _FITTING_ROUNDS - 1:
                raise
        room = int(typical_tokens(current) * 0.7)  # the endpoint counts more tokens than were expected
    raise too_long(request, room or 0)


def ask_pieces(
    request: Request,
    room: int | None,
    ask: Callable[[Request], T],
    too_long: Callable[[Request, int], ModelError],
    depth: int = 4,
) -> list[T]:
    """Ask once per piece; a piece that the endpoint finds too long is split again, up to `depth` times."""
    pieces = [request] if room is None else split(request, room)
    if pieces is None:
        raise too_long(request, room or 0)
    answers: list[T] = []
    for piece in pieces:
        try:
            answers.append(ask(piece))
            continue
        except ModelError as error:
            if error.kind is not FailureKind.CONTEXT_TOO_LONG or depth == 0:
                raise
        answers += ask_pieces(piece, int(typical_tokens(piece) * 0.6), ask, too_long, depth - 1)
    return answers


def _elastic(request: Request) -> list[tuple[int, int, TextPart]]:
    return [
        (i, j, part)
        for i, message in enumerate(request.messages)
        for j, part in enumerate(message.content)
        if isinstance(part, TextPart) and part.elastic and part.text
    ]


def _replaced(request: Request, i: int, j: int, part: Part) -> Request:
    message = request.messages[i]
    content = (*message.content[:j], part, *message.content[j + 1 :])
    changed: Message = message.evolve(content=content)
    return request.evolve(messages=(*request.messages[:i], changed, *request.messages[i + 1 :]))


def _without_middle(text: str, keep: int) -> tuple[str, int]:
    """Beginning and end matter most (abstract, conclusion), so the middle goes."""
    head = _boundary(text, keep // 2)
    tail = max(head, len(text) - (keep - head))
    missing = tail - head
    if missing <= 0:
        return text, 0
    marker = f"\n[... {missing} characters are left out here, because the text is longer than the model reads ...]\n"
    return text[:head] + marker + text[tail:], missing


def _pieces(text: str, size: int) -> list[str]:
    pieces, start = [], 0
    while start < len(text):
        end = _by_bytes(text, start, size)
        if end < len(text):
            end = max(start + 1, start + _boundary(text[start:end], end - start))
        pieces.append(text[start:end])
        start = end
    return pieces


def _by_bytes(text: str, start: int, size: int) -> int:
    """End of the longest piece from `start` with at most `size` bytes (at least one character)."""
    end = min(len(text), start + size)
    while end > start + 1 and (excess := len(text[start:end].encode("utf-8", "surrogatepass")) - size) > 0:
        end = max(start + 1, end - max(1, excess // 4))  # no character has more than four bytes
    return end


def _boundary(text: str, near: int) -> int:
    """The last paragraph, line, sentence or word end shortly before `near`."""
    low = max(0, near - _BOUNDARY_SEARCH)
    for mark in ("\n\n", "\n", ". ", " "):
        found = text.rfind(mark, low, near)
        if found > 0:
            return found + len(mark)
    return near
