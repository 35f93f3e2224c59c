"""Programs that a repository installs are run as the modules that they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.locator import build_index
from pipeline.locator.console import read_console_scripts
from pipeline.survey import list_candidates
from tests.pipeline.survey.test_commands import PAPER
from tests.pipeline.validation.support import make_snapshot

PROJECT = (
    '[project]\nname = "sim"\n[project.scripts]\nsim = "sim.cli:main"\nplot = "sim.plots:draw"\nall = "sim.core:run"\n'
)
FILES = {
    "README.md": "# Results\n\n```\npip install .\nuv run sim run configs/a.yaml --seeds 5\nplot\nall --fast\nother x\n```\n",
    "src/sim/__init__.py": "",
    "src/sim/cli.py": "def main():\n    print(1)\n\n\nif __name__ == '__main__':\n    main()\n",
    "src/sim/plots.py": "def draw():\n    print(2)\n",
    "src/sim/core.py": "def run():\n    print(3)\n",
    "configs/a.yaml": "n: 3\n",
}


def test_a_stated_program_is_a_candidate(tmp_path: Path) -> None:
    files = {**FILES, "pyproject.toml": PROJECT}
    found = list_candidates(build_index(make_snapshot(tmp_path / "one", files)), PAPER)
    stated = [item for item in found if item.origin == "document"]
    assert [(item.usage.argv, item.usage.directory, item.entry) for item in stated] == [
        (("python", "-m", "sim.cli", "run", "configs/a.yaml", "--seeds", "5"), ".", "src/sim/cli.py")
    ]
    files["src/sim/__main__.py"] = "from sim.core import run\nrun()\n"
    found = list_candidates(build_index(make_snapshot(tmp_path / "two", files)), PAPER)
    assert ("python", "-m", "sim", "--fast") in [item.usage.argv for item in found]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pyproject.toml", PROJECT),
        ("pyproject.toml", '[tool.poetry.scripts]\nsim = "sim.cli:main"\n'),
        ("setup.cfg", "[options.entry_points]\nconsole_scripts =\n    sim = sim.cli:main\n"),
        ("setup.py", "from setuptools import setup\nsetup(entry_points={'console_scripts': ['sim=sim.cli:main']})\n"),
    ],
)
def test_declarations(tmp_path: Path, path: str, text: str) -> None:
    assert read_console_scripts(make_snapshot(tmp_path / "tree", {path: text}))["sim"] == "sim.cli"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pyproject.toml", "[project\n"), ("pyproject.toml", "project = 3\n"), ("setup.cfg", "x\n"), ("setup.py", "def"),
        ("setup.py", "setup(entry_points={'console_scripts': [name], **more})"), ("setup.cfg", "[options]\n"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_declares_nothing(tmp_path: Path, path: str, text: str) -> None:
    assert read_console_scripts(make_snapshot(tmp_path / "tree", {path: text})) == {}
