"""Importing the layer is cheap, and every public name is there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pipeline.llm

HEAVY = ("langchain", "langchain_core", "openai", "httpx2", "jinja2", "yaml", "pydantic", "pydantic_settings")


def loaded_after(code: str) -> list[str]:
    script = f"import sys\n{code}\nprint(' '.join(name for name in {HEAVY!r} if name in sys.modules))"
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()


def test_the_package_alone_loads_nothing_heavy():
    assert loaded_after("import pipeline.llm") == []


def test_a_client_and_its_configuration_load_no_client_library():
    assert loaded_after("from pipeline.llm import ModelClient, ModelConfig, load_prompt") == ["pydantic"]


@pytest.mark.parametrize("name", pipeline.llm.__all__)
def test_every_public_name_is_what_its_module_defines(name):
    value = getattr(pipeline.llm, name)
    home = getattr(value, "__module__", "pipeline.llm")
    assert home.startswith("pipeline.llm")
    assert name in dir(pipeline.llm)


def test_a_function_is_not_hidden_by_the_module_of_its_name():
    """`redact` is a module and its function: whichever was imported first would be found."""
    script = "import pipeline.llm.redact, pipeline.llm\nassert callable(pipeline.llm.redact)\nfrom pipeline.llm import redact\nassert redact('x') == 'x'"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pipeline.llm.nothing
