"""What holds for every command: help with examples, `--json`, completion in a shell."""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from flows.cli import app
from flows.commands.help_layout import with_folded_examples

SERVERS = {"a2a green", "a2a white"}
"""They answer others until they are ended: there is no result to print."""


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


ALL = dict(commands(get_command(app)))


@functools.cache
def help_of(name: str) -> str:
    """The help of a command in a terminal of 80 columns."""
    return CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "80", "TERM": "dumb"}).output


def test_there_are_commands_and_the_servers_are_among_them() -> None:
    assert len(ALL) > 40
    assert set(ALL) >= SERVERS


@pytest.mark.parametrize("name", sorted(ALL))
def test_a_command_says_what_it_does_with_examples_and_prints_json(name: str) -> None:
    command = ALL[name]
    assert command.help
    assert command.help.strip().endswith((".", "?", ")"))
    assert f"expbench {name.split(maxsplit=1)[0]}" in command.epilog
    options = {option for parameter in command.params for option in parameter.opts}
    assert ("--json" in options) == (name not in SERVERS)
    assert "Exit codes: 0" in command.epilog or name in SERVERS
    undescribed = [item.name for item in command.params if not getattr(item, "help", "") and item.name != "help"]
    assert undescribed == []


@pytest.mark.parametrize("name", sorted(ALL))
def test_help_fits_a_terminal_of_80_columns(name: str) -> None:
    shown = help_of(name)
    assert [line for line in shown.splitlines() if len(line) > 80] == []
    assert re.findall(r"<(?:bool|str|path|int range|float range|list\[.*?\])>", shown.split("─ Options")[1]) == []
    panels: dict[str | None, list[str]] = {}
    for parameter in ALL[name].params:
        if parameter.param_type_name == "option":
            panels.setdefault(parameter.rich_help_panel, []).append(parameter.name)
    assert {title: len(options) for title, options in panels.items() if len(options) > 12} == {}


@pytest.mark.parametrize("name", sorted(ALL))
def test_an_example_of_the_help_can_be_copied(name: str) -> None:
    """A line that the terminal breaks is half a command; one that ends with a backslash goes on."""
    written = [line for line in ALL[name].epilog.split("\n") if line.startswith("  ")]
    for line in written:
        folded = with_folded_examples(line)
        joined = folded.replace("\\\n", "")  # what a shell does first
        assert shlex.split(joined, comments=True) == shlex.split(line, comments=True)
        assert max(map(len, folded.split("\n"))) <= 80
    shown = help_of(name)
    assert all(with_folded_examples(line) in shown for line in written)


@pytest.mark.parametrize(("typed", "offered"), [("rel", ["release"]), ("export ", ["harbor", "inspect"])])
def test_a_shell_completes_commands(typed: str, offered: list[str]) -> None:
    script = Path(sys.executable).with_name("expbench")
    if not script.is_file():
        pytest.skip("expbench is not installed beside this interpreter")
    words = f"expbench {typed}"
    done = subprocess.run(
        [str(script)], capture_output=True, text=True, check=True,
        env={**os.environ, "_EXPBENCH_COMPLETE": "complete_bash", "COMP_WORDS": words,
             "COMP_CWORD": str(len(words.split(" ")) - 1)},
    )  # fmt: skip
    assert set(offered) <= set(done.stdout.split())
    shown = subprocess.run(
        [str(script), "--show-completion", "bash"], capture_output=True, text=True, check=False,
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )  # fmt: skip
    assert "_EXPBENCH_COMPLETE=complete_bash" in shown.stdout
