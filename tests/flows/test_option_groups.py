"""Options of a group are shown as the command's own, and reach it as one value."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import typer
from typer.testing import CliRunner

from flows.commands.evaluation_options import Episodes
from flows.commands.option_groups import with_options
from flows.orchestration.evaluation_options import EvaluationParameters


class Size(NamedTuple):
    """Two options."""

    width: Annotated[int, typer.Option(min=1, help="How wide.")] = 3
    deep: Annotated[bool, typer.Option("--deep")] = False


def joined(word: Annotated[str, typer.Option(help="Said.")] = "hello") -> str:
    return word.upper()


app = typer.Typer()


@app.command()
@with_options(size=Size, said=joined)
def show(name: str, *, size: Size, said: str, last: bool = False) -> None:
    """A command."""
    typer.echo(f"{name} {size.width} {size.deep} {said} {last}")


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


def test_options_of_a_group_are_the_commands_own() -> None:
    assert invoke("a") == (0, "a 3 False HELLO False\n")
    assert invoke("a", "--width", "5", "--deep", "--word", "x", "--last") == (0, "a 5 True X True\n")
    assert invoke("a", "--width", "0")[0] == 2
    shown = invoke("--help")[1]
    assert "A command." in shown
    assert shown.index("--width") < shown.index("--word") < shown.index("--last")


def test_the_options_of_evaluate_are_the_fields_of_its_flow_with_the_same_defaults() -> None:
    fields = EvaluationParameters.model_fields
    assert set(fields) - set(Episodes._fields) == {"agent_options", "judge_cache"}
    assert EvaluationParameters(**Episodes()._asdict()) == EvaluationParameters()
