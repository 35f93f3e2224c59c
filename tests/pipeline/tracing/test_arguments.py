"""The options that a script declares, however it does, and what a command line sets."""

from __future__ import annotations

import ast

import pytest

from pipeline.tracing.arguments import effective, literal, read_options

WAYS = {
    "argparse": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float, default=0.1)\n"
        "p.add_argument('--name', default='x')\n"
    ),
    "click": "import click\n@click.option('--lr', default=0.1)\n@click.option('--name', default='x')\ndef f(): ...\n",
    "absl": "from absl import flags\nflags.DEFINE_float('lr', 0.1, '')\nflags.DEFINE_string('name', 'x', '')\n",
    "fire": "import fire\n\n\ndef main(lr=0.1, name='x'):\n    return lr\n\n\nfire.Fire(main)\n",
    "typer": (
        "import typer\n\n\ndef main(lr: float = typer.Option(0.1), name: str = 'x'):\n    return lr\n\n\ntyper.run(main)\n"
    ),
    "hugging face": (
        "from dataclasses import dataclass, field\nfrom transformers import HfArgumentParser\n\n\n@dataclass\nclass A:\n"
        "    lr: float = field(default=0.1, metadata={})\n    name: str = 'x'\n\n\nHfArgumentParser((A,)).parse_args()\n"
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_options_are_read_however_they_are_declared(way: str) -> None:
    options = read_options(ast.parse(WAYS[way]))
    assert [(option.name, option.default) for option in options] == [("lr", "0.1"), ("name", "x")]
    assert effective(options, ["--lr=0.5"]) == {"lr": "0.5"}
    assert effective(options, ["--lr", "-3", "--name", "y"]) == {"lr": "-3", "name": "y"}


def test_switches_choices_and_required_options() -> None:
    code = (
        "p.add_argument('data')\np.add_argument('--model', choices=['a', 'b'], required=True)\n"
        "p.add_argument('--no-plot', dest='plot', action='store_false')\np.add_argument('--seeds', nargs='+', type=int)\n"
    )
    data, model, plot, seeds = read_options(ast.parse(code))
    assert (data.positional, data.required, model.choices, model.required) == (True, True, ("a", "b"), True)
    assert (plot.switch, plot.negated, seeds.many, seeds.numeric) == (True, True, True, True)
    set_ = effective([data, model, plot, seeds], ["in.csv", "--mod", "b", "--no-plot", "--seeds", "1", "2"])
    assert set_ == {"data": "in.csv", "model": "b", "plot": "False", "seeds": "1 2"}


@pytest.mark.parametrize(("code", "text"), [("int(1e6)", "1000000"), ("8 * 1024", "8192"), ("[1, 'a']", "1 a")])
def test_written_values_are_constants(code: str, text: str) -> None:
    assert literal(ast.parse(code, mode="eval").body) == text


@pytest.mark.parametrize(
    "code", ["10 ** 10 ** 10", "1 / 0", "(-2) ** 0.5", "int(1e400)", "int('3')", "True + 1", "f(3)"]
)
def test_a_calculation_that_says_nothing_or_does_not_end_is_no_constant(code: str) -> None:
    assert literal(ast.parse(code, mode="eval").body) is None
