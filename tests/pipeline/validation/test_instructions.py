"""What READMEs and Dockerfiles say, what failures ask for, and which Python it becomes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox import BuildSpec, Image, open_sandbox, pythons_of
from pipeline.sandbox._base_image import BaseRecipe
from pipeline.schema import Severity
from pipeline.validation import EnvironmentPlan, build_with_corrections, resolution, resolve_environment
from pipeline.validation.building import unbuildable_package
from pipeline.validation.declarations import read_declarations
from pipeline.validation.instructions import read_dockerfile, read_readme
from pipeline.validation.system_packages import (
    missing_build_packages,
    missing_libraries,
    missing_programs,
    unknown_package,
)
from tests.pipeline.validation.support import make_snapshot
from tests.pipeline.validation.test_environment import Uv

README = """\
# Tool

Install with `pip install tool` or

```bash
$ conda create -n x && conda install -c conda-forge numpy=1.19 -y
(x) $ python -m pip install "scipy>=1.5" torch==1.7.0 -f https://example.org/whl.html  # GPU
sudo apt-get install -y libgl1 vim
pip install -r requirements.txt && pip install $EXTRA
```

We install things carefully, and pip install is a fine command.
"""
VERSIONS = """\
### Requirements
```
python            3.6.1
networkx          2.4
python-louvain    0.11
```
"""
DOCKERFILE = """\
FROM --platform=linux/amd64 python:3.9-slim AS base
# RUN pip install nothing
RUN apt-get update && \\
    apt-get install -y --no-install-recommends libgl1 python3-pip graphviz=2.42 && \\
    pip3 install numpy==1.21.6 ; pip install "$X"
"""


def test_a_readme_is_read_like_a_person_reads_it() -> None:
    found = read_readme(README)
    assert [text for text, _ in found.requirements] == ["tool", "scipy>=1.5", "torch==1.7.0"]
    assert [text for text, _ in found.conda] == ["numpy=1.19"]
    assert [text for text, _ in found.system] == ["libgl1"]
    assert [text for text, _ in found.left_out] == ["$EXTRA"]
    assert found.requirements[1][1] == 7


def test_a_table_of_versions_is_a_declaration() -> None:
    found = read_readme(VERSIONS)
    assert [text for text, _ in found.requirements] == ["networkx==2.4", "python-louvain==0.11"]
    assert [text for text, _ in found.python] == ["==3.6.*"]
    assert read_readme("```\naccuracy   0.91\nours\n```\n").requirements == []


def test_a_dockerfile_names_packages_system_packages_and_a_python() -> None:
    found = read_dockerfile(DOCKERFILE)
    assert [text for text, _ in found.requirements] == ["numpy==1.21.6"]
    assert [text for text, _ in found.system] == ["libgl1", "graphviz"]
    assert [text for text, _ in found.python] == ["==3.9.*"]


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    for found in (read_readme(text), read_dockerfile(f"RUN {text}")):
        assert all("\n" not in item for item, _ in [*found.requirements, *found.system])


def test_files_come_first_and_the_repositorys_own_package_is_not_installed(tmp_path: Path) -> None:
    files = {"README.md": README, "setup.py": "setup(name='tool')\n", "run.py": "import numpy\n"}
    declared = read_declarations(make_snapshot(tmp_path / "a", files), ["run.py"])
    assert [str(item) for item in declared.requirements] == ["scipy>=1.5", "torch==1.7.0", "numpy==1.19.*"]
    assert (declared.files, declared.system) == (["README.md"], ["libgl1"])
    files["requirements.txt"] = "numpy==1.26.4\n"
    declared = read_declarations(make_snapshot(tmp_path / "b", files), ["run.py"])
    assert [str(item) for item in declared.requirements] == ["numpy==1.26.4"]
    assert declared.system == ["libgl1"]


# --- Python ----------------------------------------------------------------------------------------------------------


class OldWheels(Uv):
    """An index whose `old` has wheels for Python 3.9 only."""

    def __init__(self) -> None:
        super().__init__()
        self.later.add("old")

    def __call__(self, requirements, date, *, wheels, python=resolution.PYTHON, apart=()):
        if python == "3.9" and "old==1.0" in requirements:
            return 0, "old==1.0\n", ""
        return super().__call__(requirements, date, wheels=wheels, python=python, apart=apart)


def resolved(
    tmp_path: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch, **options: object
) -> EnvironmentPlan:
    import datetime

    monkeypatch.setattr(resolution, "_uv", OldWheels())
    before = datetime.date(2021, 1, 1)
    return resolve_environment(make_snapshot(tmp_path, files), sources=["run.py"], before=before, **options)


def test_the_python_that_is_asked_for_is_used_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"run.py": "import json\n", "pyproject.toml": '[project]\nrequires-python = ">=3.8,<3.10"\n'}
    plan = resolved(tmp_path / "a", files, monkeypatch, pythons=("3.11", "3.9", "3.13"))
    assert plan.spec.python == "3.9"
    plan = resolved(tmp_path / "b", files, monkeypatch)
    assert plan.spec.python == "3.11"
    assert any("wants Python <3.10,>=3.8, the sandbox has 3.11" in problem.message for problem in plan.problems)


def test_old_pins_take_the_python_that_has_wheels_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"run.py": "import old\n", "requirements.txt": "old==1.0\n"}
    plan = resolved(tmp_path, files, monkeypatch, pythons=("3.11", "3.9"))
    assert (plan.spec.python, plan.spec.packages) == ("3.9", ("old==1.0",))
    assert any("3.9 is used" in problem.message for problem in plan.problems)


def test_a_dependency_without_wheels_is_taken_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen: `semopy` needs `portmin`, which exists as a source archive only, and nothing was run."""
    calls = []

    def uv(requirements, date, *, wheels, python=resolution.PYTHON, apart=()):
        calls.append((tuple(requirements), wheels, tuple(apart)))
        if not wheels:
            return 0, "portmin==1.0.6\n", ""
        if "portmin" in apart:
            return 0, "semopy==2.0\n", ""
        return 1, "", "Because all versions of portmin have no usable wheels and semopy depends on portmin"

    monkeypatch.setattr(resolution, "_uv", uv)
    snapshot = make_snapshot(tmp_path, {"run.py": "import semopy\n", "requirements.txt": "semopy\n"})
    plan = resolve_environment(snapshot, sources=["run.py"])
    assert plan.spec.packages == ("portmin==1.0.6", "semopy==2.0")
    assert calls[-1] == (("portmin",), False, ())


def test_pythons_have_bases_of_their_own() -> None:
    assert BaseRecipe.for_python("3.11") == BaseRecipe()
    assert BaseRecipe.for_python("3.9").suite == "bullseye"
    assert BaseRecipe.for_python("3.9").reference != BaseRecipe().reference
    assert BaseRecipe.for_python("3.7") == BaseRecipe()
    assert pythons_of(open_sandbox("process")) == ("3.11",)


# --- system packages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("log", "packages"),
    [
        ("ImportError: libGL.so.1: cannot open shared object file: No such file", ("libgl1",)),
        ("OSError: libxcb.so.1: cannot open shared object file", ("libxcb1",)),
        ("libhdf5_serial.so.103: cannot open shared object file", ("libhdf5-serial103",)),
        ("libcuda.so.1: cannot open shared object file", ()),
        ("ModuleNotFoundError: No module named 'tkinter'", ("python3-tk",)),
    ],
)
def test_libraries_are_found_in_packages(log: str, packages: tuple[str, ...]) -> None:
    assert missing_libraries(log) == packages


@pytest.mark.parametrize(
    ("log", "packages"),
    [
        ("graphviz.backend.ExecutableNotFound: failed to execute PosixPath('dot'), make sure", ("graphviz",)),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'ffmpeg'", ("ffmpeg",)),
        ("sh: 1: java: not found", ("default-jre-headless",)),
        ("Failed to process string with tex because latex could not be found", (
            "cm-super-minimal", "dvipng", "texlive-fonts-recommended", "texlive-latex-extra")),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'", ()),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'results/time'", ()),
    ],
)  # fmt: skip
def test_programs_are_found_in_packages(log: str, packages: tuple[str, ...]) -> None:
    assert missing_programs(log) == packages


@pytest.mark.parametrize(
    ("log", "packages"),
    [
        ("error: command 'gcc' failed: No such file or directory", ("build-essential", "python3-dev")),
        ("fatal error: Python.h: No such file or directory", ("build-essential", "python3-dev")),
        ("CMake must be installed to build dlib", ("cmake",)),
        ("error: invalid syntax", ()),
    ],
)
def test_builds_say_what_they_miss(log: str, packages: tuple[str, ...]) -> None:
    assert missing_build_packages(log) == packages


def test_a_build_is_corrected_a_bounded_number_of_times(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    built: list[tuple[str, ...]] = []

    def build(plan: EnvironmentPlan) -> Image:
        spec = plan.spec
        built.append(spec.system_packages)
        if "libigraph0v5" in spec.system_packages:
            log.write_text("E: Unable to locate package libigraph0v5\n")
        elif "build-essential" not in spec.system_packages:
            log.write_text("error: command 'gcc' failed: No such file or directory\n")
        else:
            return Image(reference="x", digest="d", spec_digest=spec.digest)
        raise ExpbenchError(
            FailureKind.ENVIRONMENT_UNBUILDABLE, "environment", "it failed", consequence="c", next_step="n"
        )

    plan = EnvironmentPlan(spec=BuildSpec(system_packages=("libigraph0v5",)), declared_in=())
    done, image, problems = build_with_corrections(plan, build, lambda _: log)
    assert built == [("libigraph0v5",), (), ("build-essential", "python3-dev")]
    assert image.spec_digest == done.spec.digest
    assert (problems[0].where, problems[0].severity) == ("libigraph0v5", Severity.WARNING)
    assert unknown_package("E: Package 'x-y' has no installation candidate") == "x-y"
    log.write_text("E: something else\n")

    def broken(plan: EnvironmentPlan) -> Image:
        raise ExpbenchError(
            FailureKind.ENVIRONMENT_UNBUILDABLE, "environment", "it failed", consequence="c", next_step="n"
        )

    with pytest.raises(ExpbenchError, match="it failed"):
        build_with_corrections(plan, broken, lambda _: log)


def test_a_version_that_cannot_be_built_gives_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen: a README's `pandas 0.23.4` has no wheel for any Python that the sandbox has, and does not build."""
    monkeypatch.setattr(resolution, "_uv", Uv())
    files = {"run.py": "import numpy, docopt\n", "requirements.txt": "numpy==1.26.4\ndocopt==0.6.2\n"}
    snapshot = make_snapshot(tmp_path, files)
    assert resolve_environment(snapshot, sources=["run.py"]).spec.packages == ("docopt==0.6.2", "numpy==1.26.4")
    plan = resolve_environment(snapshot, sources=["run.py"], unbuildable=["numpy"])
    assert plan.spec.packages == ("docopt==0.6.2", "numpy==2.0.0")
    assert any(p.where == "numpy" and "another one is used" in p.message for p in plan.problems)
    plan = resolve_environment(snapshot, sources=["run.py"], unbuildable=["docopt", "docopt"])
    assert plan.spec.packages == ("numpy==1.26.4",)
    assert any(p.where == "docopt" and "left out" in p.message for p in plan.problems)
    assert unbuildable_package("package pandas==0.23.4 cannot be installed: error") == "pandas"
    assert unbuildable_package("packages cannot be installed: error") == ""
