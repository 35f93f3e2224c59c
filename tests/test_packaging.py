"""What is shipped: the wheel's contents, the console script, light start-up, and `datasets/` as data only."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from pipeline.errors import exit_code_table

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("evaluation", "extractors", "flows", "masking", "pipeline")
EXAMPLES = ROOT / "datasets" / "examples"
_OFFLINE = ("error sending request", "failed to fetch", "dns error", "could not connect", "network")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    """The wheel, really built; without network (the build back end is fetched) there is nothing to look at."""
    out = tmp_path_factory.mktemp("wheel")
    uv = Path(sys.executable).with_name("uv")
    done = subprocess.run(
        [str(uv), "build", "--wheel", "--quiet", "--python", sys.executable, "--out-dir", str(out), str(ROOT)],
        capture_output=True, text=True, check=False, env={**os.environ, "UV_PYTHON_DOWNLOADS": "never"},
    )  # fmt: skip
    if done.returncode != 0 and not os.environ.get("CI") and any(sign in done.stderr.lower() for sign in _OFFLINE):
        pytest.skip("the build back end cannot be fetched here")
    assert done.returncode == 0, done.stderr
    (built,) = out.glob("*.whl")
    return zipfile.Path(zipfile.ZipFile(built))


def names(wheel: zipfile.Path) -> list[str]:
    return sorted(name for name in wheel.root.namelist() if not name.endswith("/"))


def test_the_wheel_holds_the_packages_and_nothing_else(wheel: zipfile.Path) -> None:
    tops = {name.split("/")[0] for name in names(wheel)}
    (info,) = (top for top in tops if top.endswith(".dist-info"))
    assert tops == {*PACKAGES, info}
    assert not [name for name in names(wheel) if "__pycache__" in name or name.endswith(".pyc")]
    assert f"{info}/licenses/LICENSE" in names(wheel)
    assert "expbench = flows.cli:main" in (wheel / info / "entry_points.txt").read_text()


def test_the_wheel_holds_every_file_of_the_packages(wheel: zipfile.Path) -> None:
    expected = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    assert expected - set(names(wheel)) == set()


def test_the_wheel_holds_the_worked_examples(wheel: zipfile.Path) -> None:
    examples = [path.name for path in EXAMPLES.iterdir() if (path / "example.yaml").is_file()]
    assert examples
    for name in examples:
        shipped = {n.removeprefix("flows/_examples/") for n in names(wheel) if n.startswith(f"flows/_examples/{name}/")}
        for kept in ("paper.pdf", "example.yaml"):
            assert f"{name}/{kept}" in shipped
        assert any("/repository/" in n and n.endswith(".py") for n in shipped)


def test_datasets_is_data() -> None:
    assert not list((ROOT / "datasets").rglob("__init__.py")) or all(
        _inside_repository(path) for path in (ROOT / "datasets").rglob("__init__.py")
    )
    python = [path for path in (ROOT / "datasets").rglob("*.py") if not _inside_repository(path)]
    assert python == []


def _inside_repository(path: Path) -> bool:
    """Is it a file of an example's own repository (`<example>/repository`, `submodules`, `history`)?"""
    parts = path.relative_to(EXAMPLES).parts if path.is_relative_to(EXAMPLES) else ()
    return len(parts) > 2 and parts[1] in {"repository", "submodules", "history"}


def test_hugging_face_datasets_is_not_shadowed() -> None:
    code = "import importlib.util as u; print(u.find_spec('datasets').origin)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "site-packages" in done.stdout


def test_starting_the_command_line_imports_nothing_heavy() -> None:
    """The whole start stays near 0.3 s; NumPy alone would add 0.1 s, `datasets` 2 s, Prefect 5 s."""
    code = "import json, sys, flows.cli; print(json.dumps(sorted(m for m in sys.modules if '.' not in m)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {"PIL", "bm25s", "datasets", "docker", "git", "numpy", "pandas", "prefect", "pyarrow", "pymupdf", "scipy"}
    assert heavy & set(json.loads(done.stdout)) == set()


def test_the_console_script_runs() -> None:
    script = Path(sys.executable).with_name("expbench")
    done = subprocess.run([str(script), "--version"], capture_output=True, text=True, check=True)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert done.stdout.splitlines()[0] == f"expbench {version}"


def test_the_documentation_lists_every_exit_code() -> None:
    readme = (ROOT / "docs/curation.md").read_text()
    listed = {int(code) for code in re.findall(r"^\| (\d+) \| ", readme, re.MULTILINE)}
    assert listed == {0, *exit_code_table()}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_files_that_documents_name_exist(name: str) -> None:
    text = (ROOT / name).read_text()
    for path in re.findall(r"`((?:bash )?(?:docs|scripts|pipeline|\.ci)/[\w./-]+)", text):
        assert (ROOT / path.removeprefix("bash ").rstrip(".")).exists(), path


def test_scripts_are_valid_bash() -> None:
    scripts = [ROOT / ".ci" / "run", *sorted((ROOT / "scripts").rglob("*.sh"))]
    assert len(scripts) >= 5
    for script in scripts:
        subprocess.run(["bash", "-n", str(script)], check=True)
        assert "set -euo pipefail" in script.read_text() or script.parent.name == "lib"
