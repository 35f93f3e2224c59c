"""Options that several commands share, or that belong to one record, as one parameter of a command.

Typer reads a command's options from its own signature; without this, each command lists what it hands on, and builds
the same value from it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

__all__ = ["with_options"]


def with_options(**groups: Callable[..., object]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Show the parameters of each group in the place of the command's parameter of that name.

    Args:
        groups: a function, or a named tuple, whose parameters are annotated for typer; the command is given what it
            returns.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = {name: _parameters(group) for name, group in groups.items()}
        shown = [each for one in _parameters(command) for each in own.get(one.name, [one])]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            for name, group in groups.items():
                given[name] = group(**{parameter.name: given.pop(parameter.name) for parameter in own[name]})
            command(**given)

        run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
        return run

    return decorate


def _parameters(of: Callable[..., object]) -> list[inspect.Parameter]:
    """Its parameters by name, with their types resolved."""
    hints = get_type_hints(of, include_extras=True)
    return [
        parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(of).parameters.values()
    ]
