"""The worked examples state what they compute, and become the same git repositories everywhere."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flows.examples import example_info, examples_directory, list_examples, materialise
from pipeline.errors import ExpbenchError, FailureKind

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "scripts" / "build_examples.py"
NAMES = list_examples()
# A change of any byte of an example changes its commit: then this must be changed knowingly, as tasks refer to commits.
COMMITS = {
    "agreement-weights": "c90cde4b7b53cda88335038905257108353a1893",
    "neighbour-conformal": "1212078dec618efa0fcdc15d07e8674a70b73d70",
}


def git(repository: Path, *arguments: str) -> str:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *arguments],
        cwd=repository, env=environment, capture_output=True, encoding="utf-8", check=True,
    )  # fmt: skip
    return done.stdout


def test_both_examples_are_there():
    assert set(NAMES) == set(COMMITS)


@pytest.mark.parametrize("name", NAMES)
def test_committed_numbers_are_what_the_code_computes(name):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--check", name], capture_output=True, encoding="utf-8", check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))


def numbers_of(name, **changes):
    from examples_common import Number, Numbers

    numbers = Numbers()
    for entry in json.loads((examples_directory() / name / "numbers.json").read_text())["numbers"]:
        text = changes.get(entry["id"], entry["text"])
        numbers.add(Number(entry["id"], text, entry.get("value"), entry["origin"]))
    return numbers


def test_a_pdf_that_states_another_number_is_noticed(scripts):
    from examples_papers import check_pdf

    example = examples_directory() / "agreement-weights"
    pdf, source = example / "paper.pdf", example / "paper"
    changed = numbers_of("agreement-weights", **{"noise.0.4.gap-plain": "88.8"})
    assert check_pdf(pdf, source, numbers_of("agreement-weights"), (-1,)) == []
    assert any("88.8" in problem for problem in check_pdf(pdf, source, changed, (-1,)))


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="Tesseract is not installed")
def test_the_image_page_is_legible_and_alone_holds_the_regularisation_strength():
    import pymupdf

    document = pymupdf.open(examples_directory() / "agreement-weights" / "paper.pdf")
    text_pages, image = [page.get_text() for page in document][:-1], document[-1]
    assert image.get_text() == ""
    assert not any("0.002" in text for text in text_pages)
    done = subprocess.run(
        ["tesseract", "-", "-", "--psm", "6"], input=image.get_pixmap(dpi=200).tobytes("png"), capture_output=True,
        env={**os.environ, "OMP_THREAD_LIMIT": "1"}, check=True,
    )  # fmt: skip
    assert "0.002" in done.stdout.decode()


def test_numbers_too_close_to_a_rounding_boundary_are_refused(scripts):
    from examples_common import ExampleError, Numbers

    numbers = Numbers()
    numbers.measured("good", 91.26, 1, {})
    assert numbers["good"] == "91.3"
    with pytest.raises(ExampleError, match="another seed"):
        numbers.measured("bad", 91.2501, 1, {})


@pytest.mark.parametrize("name", NAMES)
def test_materialise_gives_the_known_commit_whatever_the_users_git_is_told(name, tmp_path, monkeypatch):
    config = tmp_path / "gitconfig"
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (hooks / "pre-commit").chmod(0o755)
    config.write_text(f"[core]\n\tautocrlf = true\n\thooksPath = {hooks}\n[user]\n\tname = somebody else\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "somebody else")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    example = materialise(name, tmp_path / "a")
    monkeypatch.delenv("GIT_DIR")
    assert example.commit == COMMITS[name]
    assert git(example.repository, "rev-parse", "HEAD").strip() == example.commit
    assert git(example.repository, "status", "--porcelain") == ""
    assert example.paper.read_bytes() == (examples_directory() / name / "paper.pdf").read_bytes()
    assert [path.name for path in (tmp_path / "a").iterdir()] == [name]


@pytest.mark.parametrize("name", NAMES)
def test_history_has_what_masking_must_remove(name, tmp_path):
    repository = materialise(name, tmp_path).repository
    info = example_info(name)
    assert git(repository, "rev-list", "--count", "HEAD").strip() == str(len(info.history))
    assert git(repository, "tag").split() == [info.tag]
    deleted = git(repository, "log", "--diff-filter=D", "--name-only", "--format=").split()
    assert any(path.startswith("results/") for path in deleted)
    commit = git(repository, "log", "--diff-filter=A", "--format=%H", "--", deleted[0]).strip()
    assert git(repository, "show", f"{commit}:{deleted[0]}").count("\n") > 10


def test_first_example_has_the_traps_of_real_repositories(tmp_path):
    repository = materialise("agreement-weights", tmp_path).repository
    files = git(repository, "ls-files").split()
    assert {"results/benchmark.csv", "notebooks/results.ipynb", "legacy/benchmark_v1.py", ".gitignore"} <= set(files)
    assert os.access(repository / "run_all.sh", os.X_OK)
    claim = json.loads((examples_directory() / "agreement-weights" / "numbers.json").read_text())["numbers"]
    text = next(n["text"] for n in claim if n["id"] == "benchmark.asymmetric.rings.caw")
    assert text in (repository / "README.md").read_text()
    assert not any(text in (repository / f).read_text() for f in files if f.startswith(("caw/", "configs/", "exper")))


def test_submodule_resolves_from_the_relative_url_and_from_a_clone(tmp_path):
    example = materialise("neighbour-conformal", tmp_path / "example")
    ((path, origin),) = example.submodules
    assert (example.repository / "docs" / "paper.pdf").read_bytes() == example.paper.read_bytes()
    assert "url = ../ratiokit" in (example.repository / ".gitmodules").read_text()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", "--recurse-submodules", str(example.repository), str(clone))
    assert (clone / path / "ratiokit" / "logistic.py").is_file()
    git(example.repository, "submodule", "--quiet", "update", "--init")
    assert git(example.repository / path, "rev-parse", "HEAD") == git(origin, "rev-parse", "HEAD")
    assert materialise("neighbour-conformal", tmp_path / "example") == example


def test_materialise_leaves_equal_alone_and_refuses_different(tmp_path):
    first = materialise("agreement-weights", tmp_path)
    kept = first.repository / "caw" / "data.py"
    before = kept.stat().st_mtime_ns
    (first.repository / "scratch.txt").write_text("a file of the user's own\n")
    assert materialise("agreement-weights", tmp_path) == first
    assert kept.stat().st_mtime_ns == before
    kept.write_text("changed\n")
    with pytest.raises(ExpbenchError) as caught:
        materialise("agreement-weights", tmp_path)
    assert caught.value.kind is FailureKind.WORKSPACE_CONFLICT
    assert kept.read_text() == "changed\n"
    assert [path.name for path in tmp_path.iterdir()] == ["agreement-weights"]


def test_unknown_example_names_the_known_ones(tmp_path):
    with pytest.raises(ExpbenchError, match="agreement-weights, neighbour-conformal") as caught:
        materialise("nonsense", tmp_path / "x")
    assert caught.value.kind is FailureKind.USAGE
    assert not (tmp_path / "x").exists()


def test_data_directory_holds_no_python_of_its_own():
    outside = [
        path for path in (ROOT / "datasets").rglob("*.py")
        if not {"repository", "submodules"} & set(path.relative_to(ROOT).parts)
    ]  # fmt: skip
    assert outside == []
