"""What green and white agents say to each other, as parts of A2A messages and artifacts.

To a white agent (one message, role user):

- text: what to do, in words;
- `episode.json`: the task's public half, limits, seed (`EpisodeRequest`);
- `workspace.tar.gz`: the directory to work in;
- one text part for each text file of it (the paper), named, for agents that read nothing but text.

From a white agent (artifacts of the task):

- `workspace.tar.gz` with files that were added or changed; or any artifacts whose parts have file names;
- optionally `run.json` (`EpisodeResult`: how it ended) and `trajectory.jsonl` (the events, as `evaluation.trajectory`).

JSON travels as bytes: A2A's structured data turns whole numbers into floats.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import Field, ValidationError

from evaluation.a2a.archive import MOST_BYTES, MOST_FILES, safe_path
from evaluation.episode import AgentOutcome, EpisodeLimits
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record, StoredRecord
from pipeline.task import PublicTask

if TYPE_CHECKING:
    from a2a.types import Artifact, Message, Part, Task

__all__ = [
    "EPISODE", "FAILURE", "RUN", "TRAJECTORY", "WORKSPACE", "EpisodeRequest", "EpisodeResult", "GreenRequest",
    "bytes_part", "episode_message", "failure_of", "files_of", "green_message", "raw_of", "read_episode",
    "read_green_request", "text_message",
]  # fmt: skip

EPISODE: Final = "episode.json"
WORKSPACE: Final = "workspace.tar.gz"
RUN: Final = "run.json"
TRAJECTORY: Final = "trajectory.jsonl"
FAILURE: Final = "expbench_failure"
"""Key of a failed status' metadata: a `FailureKind`."""
_OURS: Final = frozenset({EPISODE, WORKSPACE, RUN, TRAJECTORY})
_TEXTS: Final = (".md", ".txt", ".csv", ".rst")
_MOST_TEXT: Final = 400_000
"""Characters of one text part; a paper has 30,000 to 150,000."""


class EpisodeRequest(StoredRecord):
    """`episode.json`: what a white agent may know."""

    SCHEMA_VERSION: ClassVar[int] = 1

    task: PublicTask
    limits: EpisodeLimits
    seed: int = 0


class EpisodeResult(StoredRecord):
    """`run.json`: how a white agent's run ended; its own account."""

    SCHEMA_VERSION: ClassVar[int] = 1

    agent: str
    agent_version: str | None = None
    model: str | None = None
    outcome: AgentOutcome
    removed: tuple[str, ...] = ()
    """Files of the workspace that are gone."""


class GreenRequest(Record):
    """What a green agent is asked for."""

    white_agent_url: str = Field(pattern=r"^https?://\S+$")
    tasks: tuple[str, ...] = ()
    """Patterns of ids; empty: all."""
    repeats: int = Field(default=1, ge=1, le=100)


# --- parts -----------------------------------------------------------------------------------------------------------


def bytes_part(name: str, data: bytes, media_type: str) -> Part:
    """A named file."""
    from a2a.helpers import new_raw_part

    return new_raw_part(data, media_type=media_type, filename=name)


def text_message(text: str, parts: Sequence[Part] = ()) -> Message:
    """A user's message: a text, and what comes with it."""
    from a2a.helpers import new_text_part
    from a2a.types import Message as Made
    from a2a.types import Role

    return Made(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[new_text_part(text), *parts])


def episode_message(told: str, request: EpisodeRequest, workspace: bytes, texts: dict[str, str]) -> Message:
    """An episode for a white agent.

    Args:
        told: the instructions.
        request: task, limits, seed.
        workspace: archive of the directory to work in.
        texts: path -> text of its text files.
    """
    from a2a.helpers import new_text_part

    parts = [
        bytes_part(EPISODE, request.model_dump_json().encode(), "application/json"),
        bytes_part(WORKSPACE, workspace, "application/gzip"),
    ]
    for path, text in sorted(texts.items()):
        if path.endswith(_TEXTS) and len(text) <= _MOST_TEXT and text:
            part = new_text_part(f"File `{path}`:\n\n{text}", media_type="text/markdown")
            part.filename = path
            parts.append(part)
    return text_message(told, parts)


def raw_of(parts: Sequence[Part], name: str) -> bytes | None:
    """The bytes of a named part; None: there is none."""
    return next((part.raw for part in parts if part.filename == name and part.WhichOneof("content") == "raw"), None)


def read_episode(message: Message) -> tuple[str, EpisodeRequest, bytes]:
    """(instructions, request, archive of the workspace) of a message to a white agent.

    Raises:
        ExpbenchError: `PROTOCOL_BROKEN`: it lacks one of them.
    """
    parts = list(message.parts)
    told = next((part.text for part in parts if part.WhichOneof("content") == "text" and not part.filename), "")
    episode, workspace = raw_of(parts, EPISODE), raw_of(parts, WORKSPACE)
    missing = [name for name, value in (("text", told), (EPISODE, episode), (WORKSPACE, workspace)) if not value]
    if missing or episode is None or workspace is None:
        raise _broken("the message to the white agent", f"has no {' and no '.join(missing)}")
    try:
        return told, EpisodeRequest.model_validate_json(episode), workspace
    except ValidationError as error:
        raise _broken(EPISODE, f"does not fit: {error.errors()[0]['msg']}") from error


def files_of(artifacts: Sequence[Artifact]) -> Iterator[tuple[str, bytes]]:
    """(path, content) of the loose files of a white agent's artifacts; names that are no safe path are left out.

    Raises:
        ExpbenchError: `PROTOCOL_BROKEN`: more than is taken.
    """
    total = count = 0
    for artifact in artifacts:
        for part in artifact.parts:
            kind = part.WhichOneof("content")
            name = safe_path(part.filename or artifact.name)
            if name is None or name in _OURS or kind not in {"raw", "text"} or name == artifact.artifact_id:
                continue
            data = part.raw if kind == "raw" else part.text.encode()
            total, count = total + len(data), count + 1
            if total > MOST_BYTES or count > MOST_FILES:
                raise _broken("the white agent's artifacts", "are more than is taken")
            yield name, data


def failure_of(task: Task) -> FailureKind | None:
    """The kind of failure that one of our agents names; None where it names none."""
    for metadata in (task.status.message.metadata, task.metadata):
        name = metadata.fields[FAILURE].string_value if FAILURE in metadata.fields else ""
        if name in {kind.value for kind in FailureKind}:
            return FailureKind(name)
    return None


# --- the green agent -------------------------------------------------------------------------------------------------


def green_message(request: GreenRequest) -> Message:
    """A request to a green agent."""
    text = request.model_dump_json()
    return text_message(text)


def read_green_request(message: Message) -> GreenRequest:
    """What a green agent is asked for: JSON in a text or data part, or the published form with tags.

    The published form is `<white_agent_url>URL</white_agent_url><task_config>{"task_id": "..."}</task_config>`.

    Raises:
        ExpbenchError: `PROTOCOL_BROKEN`: it cannot be read.
    """
    from a2a.helpers import get_data_parts

    for part in message.parts:
        kind = part.WhichOneof("content")
        value: Any = None
        if kind == "data":
            value = next(iter(get_data_parts([part])), None)
        elif kind == "text":
            value = _json_or_tags(part.text)
        if isinstance(value, dict):
            try:
                return GreenRequest.model_validate(_known(value))
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(map(str, first["loc"]))
                raise _broken("the request to the green agent", f"{where}: {first['msg']}") from error
    raise _broken("the request to the green agent", "holds neither JSON nor <white_agent_url>")


def _known(value: dict[str, Any]) -> dict[str, Any]:
    known: dict[str, Any] = {name: value[name] for name in ("white_agent_url", "tasks", "repeats") if name in value}
    if isinstance(known.get("repeats"), float):
        known["repeats"] = int(known["repeats"])
    if "tasks" not in known and isinstance(value.get("task_id"), str):
        known["tasks"] = [value["task_id"] + (".code-only" if value.get("code_only") else "")]
    return known


def _json_or_tags(text: str) -> Any:
    url = re.search(r"<white_agent_url>\s*(.*?)\s*</white_agent_url>", text, re.DOTALL)
    if url is None:
        return _json(text)
    config = re.search(r"<task_config>\s*(.*?)\s*</task_config>", text, re.DOTALL)
    found = _json(config[1]) if config else {}
    return {**(found if isinstance(found, dict) else {}), "white_agent_url": url[1]}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _broken(what: str, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.PROTOCOL_BROKEN, what, cause,
        consequence="Nothing was run", next_step="Send what docs/table.md describes",
    )  # fmt: skip
