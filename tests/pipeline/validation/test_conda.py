from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from pipeline.validation.conda import conda_requirement
from pipeline.validation.declarations import read_declarations
from pipeline.validation.pythons import choose_pythons
from tests.pipeline.validation.support import make_snapshot


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("conda-forge::numpy", ("numpy", "")),
        ("conda-forge/linux-64::scipy=1.5.2", ("scipy", "==1.5.2.*")),
        ("pytorch::pytorch=1.9.0=py3.8_cuda11.1_cudnn8.0.5_0", ("pytorch", "==1.9.0.*")),
        ("numpy=1.19.*", ("numpy", "==1.19.*")),
        ("numpy>=1.19,<2", ("numpy", ">=1.19,<2")),
        ("numpy >= 1.19, < 2", ("numpy", ">=1.19,<2")),
        ("numpy 1.19.2 py38h1234_0", ("numpy", "==1.19.2.*")),
        ("numpy==1.19.2=py38_0", ("numpy", "==1.19.2.*")),
        ("pytorch>=1.0=*cuda*", ("pytorch", ">=1.0")),
        ("numpy=1.19|1.20", ("numpy", "==1.20.*")),
        ("numpy>=1.8|<0.5", ("numpy", "<0.5")),
        ("scikit-learn[version='>=0.22']", ("scikit-learn", ">=0.22")),
        ("blas[build=openblas]", ("blas", "")),
        ("numpy !=1.20", ("numpy", "!=1.20")),
        ("- r/x::", None),
    ],
)
def test_requirements_of_conda_become_specifiers(item: str, expected: tuple[str, str] | None) -> None:
    found = conda_requirement(item)
    assert found == expected
    assert found is None or SpecifierSet(found[1]) is not None


@given(st.text(max_size=40))
def test_any_text_is_a_requirement_or_none(text: str) -> None:
    found = conda_requirement(text)
    assert found is None or found[0]


@pytest.mark.parametrize(
    ("pin", "python"),
    [("python=3.8.5=h7579374_1", "3.8"), ("python=3.10", "3.10"), ("python>=3.9.7,<3.10", "3.9"), ("python=3.7.4", "3.11")],
)  # fmt: skip
def test_a_pinned_patch_release_means_its_series(pin: str, python: str, tmp_path: Path) -> None:
    text = f"dependencies:\n  - {pin}\n  - numpy\n"
    declared = read_declarations(make_snapshot(tmp_path, {"environment.yml": text}), ())
    assert choose_pythons(declared, ("3.11", "3.10", "3.9", "3.8", "3.12"))[0] == python
