"""Options of an agent as the user gives them (`--agent-option name=value`), checked before anything is started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import ValidationError

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record

__all__ = ["parse_options"]

Options = TypeVar("Options", bound=Record)


def parse_options(agent: str, given: Mapping[str, str], kind: type[Options]) -> Options:
    """The options as typed values.

    Args:
        agent: its name, for the message.
        given: option -> text.
        kind: the record of the options; its fields are the names, its defaults the defaults.

    Raises:
        ExpbenchError: `USAGE`: an option does not exist, or its value does not fit.
    """
    try:
        return kind.model_validate(dict(given))
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        known = ", ".join(kind.model_fields) or "none"
        raise ExpbenchError(
            FailureKind.USAGE,
            f"options of agent {agent}",
            wrong,
            consequence="No episode was run",
            next_step=f"It takes these options: {known}",
        ) from error
