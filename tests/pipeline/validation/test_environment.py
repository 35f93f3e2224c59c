from __future__ import annotations

import datetime
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.validation import resolution
from pipeline.validation.declarations import read_declarations
from pipeline.validation.environment import extend_environment, resolve_environment
from pipeline.validation.imports_map import conda_distribution, distribution_of, third_party
from tests.pipeline.validation.support import make_snapshot


def declared(tmp_path: Path, files: dict[str, str], sources: list[str] | None = None):
    found = read_declarations(make_snapshot(tmp_path, files), sources or [])
    return {str(item) for item in found.requirements}, found


def test_requirements_with_includes_markers_and_lines_that_cannot_be_taken_over(tmp_path: Path) -> None:
    names, found = declared(
        tmp_path,
        {
            "requirements.txt": "-r more/base.txt\nnumpy>=1.2  # fast\n-e .\n./local\ngit+https://x.org/y.git#egg=yy\n"
            "clip @ git+https://x.org/clip.git\ntorch==2.1.0 \\\n  --hash=sha256:00\nopencv-python\n"
            "--extra-index-url https://x.org\npywin32; sys_platform == 'win32'\n@@@\nmkl=2021.4=h0\nscipy=1.7.1=py39\n",
            "more/base.txt": "pandas\n-r ../requirements.txt\n",
            "requirements-dev.txt": "pytest\n",
        },
    )
    assert names == {
        "pandas", "numpy>=1.2", "clip", "torch==2.1.0", "opencv-python-headless",
        'pywin32; sys_platform == "win32"', "scipy==1.7.1.*",
    }  # fmt: skip
    assert found.files == ["requirements.txt", "more/base.txt"]
    text = " ".join(problem.message for problem in found.problems)
    for word in ("yy", "./local", "@@@", "--extra-index-url", "libGL", "mkl"):
        assert word in text


def test_pyproject_setup_cfg_and_setup_py_are_read_as_data(tmp_path: Path) -> None:
    names, found = declared(
        tmp_path,
        {
            "pyproject.toml": '[project]\ndependencies = ["numpy>1"]\nrequires-python = ">=3.8,<3.10"\n'
            '[tool.poetry.dependencies]\npython = "^3.9"\nscipy = "^1.2"\ntqdm = {version = "~4.1", markers = "python_version < \'4\'"}\n',
            "setup.cfg": "[options]\ninstall_requires =\n    pandas>=1\n    tabulate\n",
            "setup.py": "import os\nos.remove('/nonexistent/file')\nREQ = ['PyYAML']\nsetup(install_requires=REQ, python_requires='>=3.6')\n",
        },
    )
    assert names == {
        "numpy>1", "scipy<2,>=1.2", 'tqdm==4.1.*; python_version < "4"', "pandas>=1", "tabulate", "PyYAML",
    }  # fmt: skip
    assert [str(python) for _, python in found.python] == ["<3.10,>=3.8", "<4,>=3.9", ">=3.6"]


def test_conda_environments(tmp_path: Path) -> None:
    content = "dependencies:\n  - python=3.8\n  - pytorch::pytorch=1.10\n  - cudatoolkit\n  - numpy>=1.2\n  - pip:\n    - einops==0.6\n"
    names, found = declared(tmp_path, {"environment.yml": content})
    assert names == {"torch==1.10.*", "numpy>=1.2", "einops==0.6"}
    assert [str(python) for _, python in found.python] == ["==3.8.*"]
    assert conda_distribution("libgcc-ng") is None


def test_the_nearest_declaration_wins(tmp_path: Path) -> None:
    files = {"requirements.txt": "numpy\n", "exp/a/requirements.txt": "scipy\n", "exp/a/run.py": ""}
    assert declared(tmp_path, files, ["exp/a/run.py"])[0] == {"scipy"}
    assert declared(tmp_path, files)[0] == {"numpy"}


def test_broken_declarations_are_reported(tmp_path: Path) -> None:
    files = {"pyproject.toml": "[project", "setup.py": "def (", "environment.yml": "a: [", "setup.cfg": "no section"}
    names, found = declared(tmp_path, files)
    assert names == set()
    assert {problem.where for problem in found.problems} == set(files)


def test_imports_local_standard_guarded_and_type_checking(tmp_path: Path) -> None:
    snapshot = make_snapshot(
        tmp_path,
        {
            "exp/run.py": "import os, yaml\nfrom helper import x\nimport pkg.sub\nfrom sklearn.svm import SVC\n"
            "try:\n    import cupy\nexcept ImportError:\n    cupy = None\n"
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas\n"
            "def late():\n    import matplotlib.pyplot as plt\nfrom . import sibling\nfrom google.protobuf import text_format\n",
            "exp/helper.py": "",
            "src/pkg/sub.py": "",
        },
    )
    found = {item.module: item.optional for item in third_party(snapshot, ["exp/run.py", "README.md"])}
    assert found == {"yaml": False, "sklearn": False, "cupy": True, "matplotlib": False, "google.protobuf": False}
    assert distribution_of("cv2") == "opencv-python-headless"
    assert distribution_of("some_tool.x") == "some-tool"
    # a repository imported `_baai_ablation_n10`, a file of its authors' machine, and curation ended with a traceback
    assert distribution_of("_some_tool") is None
    assert distribution_of("données") is None


def test_notebooks_are_read_and_get_what_executes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["import nothing"]},
        {"cell_type": "code", "source": ["%matplotlib inline\n", "!pip install -q six\n", "import sklearn, lib"]},
    ]
    files = {"a/demo.ipynb": json.dumps({"cells": cells}), "a/lib.py": "", "run.py": "import yaml\n"}
    snapshot = make_snapshot(tmp_path, files)
    assert [item.module for item in third_party(snapshot, ["a/demo.ipynb"])] == ["sklearn"]
    uv = Uv()
    uv.wheels |= {name: ["1.0"] for name in ("scikit-learn", "nbconvert", "ipykernel", "PyYAML")}
    monkeypatch.setattr(resolution, "_uv", uv)
    plan = resolve_environment(snapshot, sources=["a/demo.ipynb"])
    assert plan.spec.packages == ("ipykernel==1.0", "nbconvert==1.0", "scikit-learn==1.0", "six==1.16.0")
    assert resolve_environment(snapshot, sources=["run.py"]).spec.packages == ("pyyaml==1.0",)


def test_submodules_and_vendored_projects_are_never_asked_of_the_index(tmp_path: Path) -> None:
    snapshot = make_snapshot(
        tmp_path,
        {"run.py": "import kit, other, torch, absent\n", "third_party/kit/kit/a.py": "", "backends/torch/b.py": ""},
    )
    files = (*snapshot.files, snapshot.files[0].evolve(path="libs/x/src/other/c.py", submodule="libs/x"))
    snapshot = snapshot.evolve(files=files, submodules=(("libs/x", "1" * 40), ("more/absent", "2" * 40)))
    assert [item.module for item in third_party(snapshot, ["run.py"])] == ["torch"]


class Uv:
    """Stands in for the resolver: an index with wheels, source archives and dates."""

    def __init__(self) -> None:
        self.calls: list[tuple[tuple[str, ...], str | None, bool]] = []
        self.wheels = {"numpy": ["1.26.4", "2.0.0"], "scipy": ["1.12.0"], "six": ["1.16.0"], "tool": ["1.0"]}
        self.sources = {"docopt": ["0.6.2"]}
        self.later = {"newer"}
        """Has wheels for a later Python only."""

    def __call__(self, requirements, date, *, wheels, python=resolution.PYTHON, apart=()):
        if python != resolution.PYTHON:
            return (0 if all(Requirement(text).name in self.later for text in requirements) else 1), "", ""
        self.calls.append((tuple(requirements), None if date is None else str(date), wheels))
        pins = []
        for text in requirements:
            item = Requirement(text)
            versions = self.wheels.get(item.name, [])
            if item.name in self.later:
                return 1, "", f"Because {text} has no usable wheels and you require {text}"
            if not wheels:
                versions = self.sources[item.name]
            elif item.name in self.sources:
                return 1, "", f"Because all versions of {item.name} have no usable wheels and you require {item.name}"
            elif not versions:
                return 1, "", f"Because {item.name} was not found in the package registry and you require {item.name}"
            fitting = [
                version for version in versions if version in item.specifier and not (date and item.name == "tool")
            ]
            if not fitting:
                return 1, "", f"Because there is no version of {text} and you require {text}, unsatisfiable."
            pins.append(f"{item.name}=={fitting[-1]}")
        return 0, "\n".join(sorted(pins)) + "\n", ""


@pytest.fixture
def uv(monkeypatch: pytest.MonkeyPatch) -> Uv:
    fake = Uv()
    monkeypatch.setattr(resolution, "_uv", fake)
    return fake


DAY = datetime.date(2024, 3, 1)


def test_declared_and_undeclared_packages_are_pinned(tmp_path: Path, uv: Uv) -> None:
    snapshot = make_snapshot(
        tmp_path, {"requirements.txt": "numpy<2\n", "run.py": "import numpy, scipy, docopt, nowhere\n"}
    )
    plan = resolve_environment(snapshot, sources=["run.py"], before=DAY)
    assert plan.spec.packages == ("docopt==0.6.2", "numpy==1.26.4", "scipy==1.12.0")
    assert plan.declared_in == ("requirements.txt", "imports")
    text = " ".join(problem.message for problem in plan.problems)
    assert "`scipy` is imported and declared nowhere" in text
    assert "source archive" in text
    assert "is not on the package index (imported, declared nowhere)" in text
    assert extend_environment(plan, ["libgl1"]).spec.system_packages == ("libgl1",)


def test_without_declarations_the_imports_count(tmp_path: Path, uv: Uv) -> None:
    plan = resolve_environment(make_snapshot(tmp_path, {"run.py": "import numpy\n"}))
    assert plan.declared_in == ("imports",)
    assert plan.spec.packages == ("numpy==2.0.0",)
    assert resolve_environment(make_snapshot(tmp_path / "b", {"run.py": "import os\n"})).spec.packages == ()


def test_concessions_are_made_in_order_and_reported(tmp_path: Path, uv: Uv) -> None:
    snapshot = make_snapshot(tmp_path, {"requirements.txt": "numpy==1.1\ntool\nscipy\n", "run.py": "import numpy\n"})
    plan = resolve_environment(snapshot, sources=["run.py"], before=DAY)
    assert plan.spec.packages == ("numpy==2.0.0",)
    assert any("other versions" in problem.message for problem in plan.problems)
    dated = make_snapshot(tmp_path / "b", {"requirements.txt": "tool\n", "run.py": "import tool\n"})
    plan = resolve_environment(dated, sources=["run.py"], before=DAY)
    assert plan.spec.packages == ("tool==1.0",)
    assert any("today's versions" in problem.message for problem in plan.problems)


def test_modules_that_a_run_missed_are_added(tmp_path: Path, uv: Uv) -> None:
    snapshot = make_snapshot(tmp_path, {"run.py": "import numpy\n"})
    assert resolve_environment(snapshot, extra=["six"]).spec.packages == ("numpy==2.0.0", "six==1.16.0")


def test_resolutions_are_cached_by_their_inputs(tmp_path: Path, uv: Uv) -> None:
    snapshot = make_snapshot(tmp_path / "s", {"run.py": "import numpy\n"})
    first = resolve_environment(snapshot, before=DAY, cache=tmp_path / "cache")
    calls = len(uv.calls)
    assert resolve_environment(snapshot, before=DAY, cache=tmp_path / "cache") == first
    assert len(uv.calls) == calls
    resolve_environment(snapshot, cache=tmp_path / "cache")
    assert len(uv.calls) > calls


def test_what_cannot_be_resolved_or_reached_is_an_error(
    tmp_path: Path, uv: Uv, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = make_snapshot(tmp_path, {"requirements.txt": "numpy==9\n", "run.py": "import numpy\n"})
    monkeypatch.setattr(resolution, "_uv", lambda *_, **__: (1, "", "error: Because numpy needs another Python"))
    with pytest.raises(ExpbenchError) as refused:
        resolve_environment(snapshot, sources=["run.py"])
    assert refused.value.kind is FailureKind.ENVIRONMENT_UNBUILDABLE
    monkeypatch.setattr(resolution, "_uv", lambda *_, **__: (2, "", "error: Failed to fetch: dns error"))
    with pytest.raises(ExpbenchError) as offline:
        resolve_environment(snapshot, sources=["run.py"])
    assert offline.value.kind is FailureKind.NETWORK


def test_a_python_that_is_excluded_is_reported(tmp_path: Path, uv: Uv) -> None:
    snapshot = make_snapshot(
        tmp_path, {"pyproject.toml": '[project]\ndependencies=["numpy"]\nrequires-python="<3.9"\n'}
    )
    plan = resolve_environment(snapshot)
    assert any("wants Python <3.9" in problem.message for problem in plan.problems)


def test_a_pinned_source_archive_is_recognised_in_the_resolvers_words() -> None:
    """Seen: `func-timeout==4.3.5` of a frozen list of 216; its wording for pins was not known, and nothing was run."""
    words = "Because func-timeout==4.3.5 has no usable wheels and you require func-timeout==4.3.5, we can conclude that"
    found = resolution._SOURCE_ONLY.search(words)
    assert found is not None
    assert next(filter(None, found.groups())) == "func-timeout"
    words = "Because only docopt==0.6.2 is available and docopt==0.6.2 has no usable wheels"
    assert next(filter(None, resolution._SOURCE_ONLY.search(words).groups())) == "docopt"


def test_a_pin_for_a_later_python_is_not_taken_for_a_source_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`numpy==2.5.1` has wheels, but none for 3.11; pinned and built from its archive it would fail in the sandbox."""
    monkeypatch.setattr(resolution, "_uv", Uv())
    snapshot = make_snapshot(tmp_path, {"requirements.txt": "newer==3\nnumpy\n", "run.py": "import numpy\n"})
    plan = resolve_environment(snapshot, sources=["run.py"])
    assert plan.spec.packages == ("numpy==2.0.0",)
    assert any("only those that the files import" in problem.message for problem in plan.problems)


def test_files_that_import_nothing_run_without_the_declared_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: pins for Python 3.12 ended a whole curation, for a script that needs the standard library only."""
    monkeypatch.setattr(resolution, "_uv", Uv())
    snapshot = make_snapshot(tmp_path, {"requirements.txt": "newer==3\n", "run.py": "import json\n"})
    plan = resolve_environment(snapshot, sources=["run.py"])
    assert plan.spec.packages == ()
    assert any("import none" in problem.message for problem in plan.problems)


@pytest.mark.parametrize(
    ("files", "python", "names"),
    [
        ({".python-version": "3.9\n", "requirements.txt": "numpy\n"}, ["==3.9.*"], ["numpy"]),
        ({".python-version": "pypy3.9\n3.10.4  # or this\n"}, ["==3.10.*"], []),
        ({".python-version": "my-virtual-environment\n"}, [], []),
        ({"runtime.txt": "python-3.8.12\n"}, ["==3.8.*"], []),
        (
            {"Pipfile": '[packages]\nnumpy = "*"\nscipy = {version = "==1.5.0"}\nours = {git = "x"}\n'
                        '[dev-packages]\nblack = "*"\n[requires]\npython_version = "3.8"\n'},
            ["==3.8.*"], ["numpy", "scipy==1.5.0"],
        ),
    ],
)  # fmt: skip
def test_pythons_and_packages_of_other_tools(
    files: dict[str, str], python: list[str], names: list[str], tmp_path: Path
) -> None:
    found = read_declarations(make_snapshot(tmp_path, files))
    assert [str(specifier) for _, specifier in found.python] == python
    assert [str(item) for item in found.requirements] == names


@pytest.mark.parametrize(
    ("resolves", "refusal", "expected"),
    [
        ({("2018-07-28", "3.9")}, "no usable wheels", ("3.9", "resolves as of 2018-07-28 for Python 3.9, not for 3.11")),
        ({("2020-07-27", "3.8")}, "no usable wheels", ("3.8", "nothing resolves as of 2018-07-28: the versions of 2020-")),
        ({("2020-07-27", "3.8")}, "a and b contradict each other", ("3.11", "today's versions are used")),
        ({("2024-07-26", "3.8")}, "no usable wheels", ("3.11", "today's versions are used")),
    ],
)  # fmt: skip
def test_packages_of_the_nearest_later_year_come_before_todays(
    resolves: set[tuple[str, str]], refusal: str, expected: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def attempt(
        requirements: Sequence[str], wanted: resolution.Wanted, date: datetime.date | None, python: str
    ) -> resolution.Resolution | str:
        there = date is None or (str(date), python) in resolves
        return resolution.Resolution(pins=("numpy==1.0",)) if there else refusal

    monkeypatch.setattr(resolution, "_attempt", attempt)
    wanted = resolution.Wanted(("numpy",), ("numpy",), frozenset(), frozenset(), True)
    found = resolution.resolved(wanted, datetime.date(2018, 7, 28), None, ("3.11", "3.9", "3.8"))
    assert found.python == expected[0]
    assert expected[1] in found.problems[0].message


def test_earlier_packages_are_of_one_day_where_no_version_is_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []

    def compile_pins(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        calls.append(command)
        python = command[command.index("--python-version") + 1]
        code, out, error = (0, "pandas==1.4.2\n", "") if python == "3.10" else (1, "", "no versions of pandas")
        return subprocess.CompletedProcess(command, code, out, error)

    monkeypatch.setattr(resolution.subprocess, "run", compile_pins)
    snapshot = make_snapshot(tmp_path, {"requirements.txt": "numpy==1.25.2\n", "run.py": "import numpy, pandas\n"})
    today, day = datetime.date(2025, 4, 12), datetime.date(2022, 4, 13)
    pythons = ("3.11", "3.10", "3.12")
    plan = resolve_environment(snapshot, sources=["run.py"], before=today, pythons=pythons, as_of=day)
    assert (plan.spec.python, plan.spec.packages, plan.as_of) == ("3.10", ("pandas==1.4.2",), day)
    assert "where no versions are declared, those of 2022-04-13 are used (Python 3.10)" in plan.problems[-1].message
    dates = calls[0][calls[0].index("--exclude-newer") :]
    assert dates == [
        "--exclude-newer", "2022-04-14T00:00:00Z", "--exclude-newer-package", "numpy=2025-04-13T00:00:00Z",
    ]  # fmt: skip
    # a later Python is not tried, nor another day
    with pytest.raises(ExpbenchError) as raised:
        resolve_environment(snapshot, sources=["run.py"], before=today, pythons=("3.11", "3.12"), as_of=day)
    assert raised.value.kind is FailureKind.ENVIRONMENT_UNBUILDABLE
    assert len(calls) == 3
