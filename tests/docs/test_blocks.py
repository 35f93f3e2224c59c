"""Commands, code and data in the documentation are ones that exist."""

from __future__ import annotations

import ast
import json
import shlex
from typing import Any

import pytest
import typer.main
import yaml

from flows.cli import app
from tests.docs.blocks import Block, all_blocks, commands

SHELL = all_blocks("bash", "sh", "console")
LINES = [(block, line) for block in SHELL for line in commands(block)]


def parsed(line: str) -> tuple[str, dict[str, Any]]:
    """The sub-command of a line and its parameters; raises what the command line raises."""
    words = shlex.split(line.replace("PAPER.pdf...", "PAPER.pdf"))[1:]
    command: Any = typer.main.get_command(app)
    context = command.make_context("expbench", [], resilient_parsing=True)
    name = "expbench"
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"there is no command `{name} {words[0]}`"
        name, command = f"{name} {words[0]}", command.commands[words[0]]
        context = command.make_context(words.pop(0), [], resilient_parsing=True)
    values, _, _ = command.make_parser(context).parse_args(list(words))
    missing = [p.name for p in command.params if p.required and values.get(p.name) in (None, ())]
    assert not missing or not words or "--help" in words, f"`{line}` lacks {missing}"
    return name, values


@pytest.mark.parametrize(("block", "line"), LINES, ids=[f"{block} {line}" for block, line in LINES])
def test_every_command_exists_with_its_options(block: Block, line: str):
    # forms such as `WORKSPACE [TASK] [--truth]` say what may be left out
    name, _ = parsed(line.replace("[", "").replace("]", ""))
    assert name.startswith("expbench ") or "--" in line


def test_the_check_notices_what_does_not_exist():
    for wrong in ("expbench evaluat x", "expbench evaluate x --agent oracle --no-such-option", "expbench evaluate x"):
        with pytest.raises((AssertionError, Exception), match=r"no command|[Nn]o such option|lacks"):
            parsed(wrong)


@pytest.mark.parametrize("block", all_blocks("python"), ids=str)
def test_python_parses(block: Block):
    assert ast.parse(block.text).body


@pytest.mark.parametrize("block", all_blocks("json"), ids=str)
def test_json_parses(block: Block):
    assert json.loads(block.text) is not None


@pytest.mark.parametrize("block", all_blocks("yaml"), ids=str)
def test_yaml_parses(block: Block):
    assert yaml.safe_load(block.text) is not None


def test_there_is_something_to_check():
    assert len(LINES) > 40
    assert {block.page.name for block, _ in LINES} >= {"tutorial.md", "README.md", "evaluation.md", "agents.md"}
