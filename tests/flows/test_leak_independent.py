"""Do release candidates leak? Checked with git's own commands and byte search only: nothing of masking/* takes part.

Both worked examples are curated once in Docker. What must not be found is derived here from the original repository, the
PDF's own text layer and the claims, so that a mistake in the masking cannot hide itself in its own report.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pymupdf
import pytest

from flows.curate import CurateOptions, curate
from flows.examples import MaterialisedExample, list_examples, materialise
from pipeline.progress import SilentReporter
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import Status, Task, Verdict

pytestmark = pytest.mark.docker

_SCRIPTS = (".py", ".sh", ".ipynb")
_TASKS = 2
"""Of each example; every further one re-executes its scripts twice and proves the same of other numbers."""
_DISTINCTIVE = 25
"""Characters that a line must have to be recognised as a masked script's own."""
_MOST_SHARED = 0.5
_LONG_SENTENCE = 90
_MIN_DIGITS = 3
"""A printed number of one or two digits (`0.9`, `10`) is also a setting; three digits are a result."""


@dataclass(frozen=True)
class Curated:
    """An example, as it was and as it was curated."""

    example: MaterialisedExample
    workspace: Workspace
    candidates: tuple[Task, ...]

    def masked(self, task: Task) -> Path:
        return self.workspace.masked_repository(task.id)


@pytest.fixture(scope="session")
def curated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Curated, ...]:
    found = []
    for name in list_examples():
        example = materialise(name, tmp_path_factory.mktemp(f"example-{name}"))
        out = tmp_path_factory.mktemp(f"curated-{name}") / "work"
        options = CurateOptions(
            pdf=example.paper, repository=str(example.repository), out=out, sandbox="docker", repeats=2,
            max_tasks=_TASKS,
        )  # fmt: skip
        curate(options, SilentReporter(), Settings(equivalents=1))
        workspace = Workspace(out)
        candidates = tuple(task for task in workspace.tasks() if task.status is Status.MASKED)
        found.append(Curated(example, workspace, candidates))
    return tuple(found)


def _all(curated: tuple[Curated, ...]) -> Iterator[tuple[Curated, Task]]:
    for one in curated:
        for task in one.candidates:
            yield one, task


# --- what must not be found ------------------------------------------------------------------------------------------


def git(directory: Path, *arguments: str) -> bytes:
    command = ["git", "-c", "safe.directory=*", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, check=True).stdout


def original_files(example: MaterialisedExample) -> dict[str, bytes]:
    """The files of the original at its commit, submodules included."""
    found = _files_at(example.repository, example.commit, "")
    for path, repository in example.submodules:
        commit = git(example.repository, "rev-parse", f"{example.commit}:{path}").decode().strip()
        found |= _files_at(repository, commit, f"{path}/")
    return found


def _files_at(repository: Path, commit: str, prefix: str) -> dict[str, bytes]:
    listing = git(repository, "ls-tree", "-r", "-z", commit).split(b"\0")
    entries = [entry.partition(b"\t") for entry in listing if entry]
    return {
        prefix + path.decode(): git(repository, "cat-file", "blob", head.split()[2].decode())
        for head, _, path in entries
        if head.split()[1] == b"blob"
    }


def worktree(masked: Path) -> dict[str, bytes]:
    return {
        path.relative_to(masked).as_posix(): path.read_bytes()
        for path in sorted(masked.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(masked).parts
    }


def long_lines(data: bytes) -> set[bytes]:
    return {stripped for line in data.splitlines() if len(stripped := line.strip()) >= _DISTINCTIVE}


def distinctive_lines(original: dict[str, bytes], kept: dict[str, bytes]) -> set[bytes]:
    """Long lines of removed scripts that no original file which is still there holds."""
    common = {line for path, data in original.items() if path in kept for line in long_lines(data)}
    removed = [data for path, data in original.items() if path.endswith(_SCRIPTS) and path not in kept]
    return {line for data in removed for line in long_lines(data)} - common


def printed_number(text: str) -> re.Pattern[bytes] | None:
    """A claim's number as a token of its own; None when it is too short to mean anything alone."""
    match = re.search(r"\d[\d,]*(?:\.\d+)?", text)
    assert match, text
    number = match[0].rstrip(",")
    if len(number.replace(".", "").replace(",", "").lstrip("0")) < _MIN_DIGITS:
        return None
    return re.compile(rb"(?<![\w.])" + re.escape(number.encode()) + rb"(?![\w%]|\.\d)|(?<![\w.])" + re.escape(number.encode()) + rb"\s?%")  # fmt: skip


def paper_phrases(example: MaterialisedExample) -> list[bytes]:
    """The title and the longest sentences of three pages, white space and hyphenation removed."""
    with pymupdf.open(example.paper) as document:
        pages = [str(page.get_text()) for page in document]
    sentences: list[str] = []
    for text in pages:
        running = re.sub(r"-\n(?=[a-z])", "", text).replace("\n", " ")
        whole = [item for item in re.split(r"(?<=[.!?])\s+", running) if len(item) >= _LONG_SENTENCE and item.isascii()]
        sentences += sorted(whole, key=len)[-1:]
    assert len(sentences) >= 3
    return [_squeezed(text.encode()) for text in (example.title, *sentences[:3])]


def _squeezed(data: bytes) -> bytes:
    return b"".join(data.split()).lower()


def places(masked: Path) -> Iterator[tuple[str, bytes]]:
    """Every file, those below .git included, and every object that the repository holds, reachable or not."""
    for path in sorted(masked.rglob("*")):
        if path.is_symlink():
            yield f"link {path.relative_to(masked)}", str(path.readlink()).encode()
        elif path.is_file():
            yield str(path.relative_to(masked)), path.read_bytes()
    stream = git(masked, "cat-file", "--batch-all-objects", "--batch")
    while stream:
        header, _, rest = stream.partition(b"\n")
        name, kind, size = header.split()
        yield f"{kind.decode()} {name.decode()}", rest[: int(size)]
        stream = rest[int(size) + 1 :]


# --- the checks ------------------------------------------------------------------------------------------------------


def test_both_examples_give_candidates_that_rest_on_two_runs_in_docker(curated: tuple[Curated, ...]) -> None:
    assert len(curated) == 2
    assert all(one.candidates for one in curated)
    candidates = list(_all(curated))
    assert len(candidates) >= 3
    for _, task in candidates:
        report, claims = task.validation, task.truth.expected.claims
        assert report is not None
        assert (report.sandbox, report.verdict, len(report.runs)) == ("docker", Verdict.PASS, 2), task.id
        assert claims
        matches = {match.claim: match for match in report.matches}
        for claim in claims:
            observed = matches[claim.id].observed
            assert len(observed) == 2
            slack = 1e-9 * max(1.0, abs(claim.value))
            inside = [claim.band.low - slack <= value <= claim.band.high + slack for value in observed]
            assert all(inside), f"{task.id} {claim.id}: {observed} outside {claim.band}"
            assert claim.band.low <= claim.value <= claim.band.high
        assert task.leaks is not None
        assert task.leaks.verdict is Verdict.PASS
        assert task.round_trip is not None
        assert task.round_trip.verdict is Verdict.PASS


def test_the_repository_has_one_commit_and_nothing_behind_it(curated: tuple[Curated, ...]) -> None:
    for one, task in _all(curated):
        masked = one.masked(task)
        commits = git(masked, "log", "--all", "--reflog", "--format=%H %P").split()
        assert len(commits) == 1, f"{task.id}: {commits}"
        references = git(masked, "for-each-ref", "--format=%(objectname) %(refname)").decode().splitlines()
        assert len(references) == 1
        assert references[0].startswith(f"{commits[0].decode()} refs/heads/")
        assert git(masked, "fsck", "--unreachable", "--no-reflogs", "--full").strip() == b""
        assert git(masked, "remote").strip() == b""
        assert git(masked, "stash", "list").strip() == b""
        assert git(masked, "status", "--porcelain", "--ignored").strip() == b""
        for name in ("logs", "modules", "objects/info/alternates", "packed-refs", "ORIG_HEAD", "FETCH_HEAD", "shallow"):
            assert not (masked / ".git" / name).exists(), f"{task.id}: .git/{name}"


def test_original_commits_and_the_paper_are_no_objects_of_it(curated: tuple[Curated, ...]) -> None:
    for one, task in _all(curated):
        masked = one.masked(task)
        own = set(git(masked, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split())
        theirs = git(one.example.repository, "log", "--all", "--format=%H %T").split()
        assert theirs
        assert not own & set(theirs), task.id
        paper = git(masked, "hash-object", "--no-filters", str(one.example.paper)).strip()
        assert paper not in own, task.id


def test_no_line_of_a_masked_script_is_left(curated: tuple[Curated, ...]) -> None:
    for one, task in _all(curated):
        masked = one.masked(task)
        original, kept = original_files(one.example), worktree(masked)
        gone = {source.path for source in task.truth.sources}
        assert gone
        assert not gone & kept.keys(), task.id
        lines = distinctive_lines(original, kept)
        assert len(lines) >= 10, f"{task.id}: hardly anything was masked"
        found = [(where, line) for where, data in places(masked) for line in lines if line in data]
        assert found == [], f"{task.id}: {found[:3]}"


def test_no_kept_file_is_mostly_a_masked_script(curated: tuple[Curated, ...]) -> None:
    """An old version under another name would share most of its lines; siblings share imports and helpers' calls."""
    for one, task in _all(curated):
        original, kept = original_files(one.example), worktree(one.masked(task))
        for source in task.truth.sources:
            lines = long_lines(original[source.path])
            for path, data in kept.items():
                shared = lines & long_lines(data)
                assert len(shared) <= _MOST_SHARED * max(4, len(lines)), f"{task.id}: {source.path} in {path}"


def test_no_claimed_number_is_left(curated: tuple[Curated, ...]) -> None:
    for one, task in _all(curated):
        original = original_files(one.example)
        wanted = {claim.text: printed_number(claim.text) for claim in task.truth.expected.claims}
        patterns = {text: pattern for text, pattern in wanted.items() if pattern is not None}
        assert len(patterns) * 2 >= len(wanted), f"{task.id}: most claims are too short to search for"
        stated = [text for text, pattern in patterns.items() if any(map(pattern.search, original.values()))]
        found = [
            (where, text)
            for where, data in places(one.masked(task))
            for text, pattern in patterns.items()
            if pattern.search(data)
        ]
        assert found == [], f"{task.id} ({len(stated)} of them stated in the original): {found[:5]}"


def test_no_text_of_the_paper_is_left(curated: tuple[Curated, ...]) -> None:
    for one, task in _all(curated):
        phrases = paper_phrases(one.example)
        found = [
            (where, phrase)
            for where, data in places(one.masked(task))
            for phrase in phrases
            if phrase in _squeezed(data)
        ]
        assert found == [], f"{task.id}: {found[:3]}"


def test_the_checks_find_what_they_look_for_in_the_original(curated: tuple[Curated, ...]) -> None:
    """Without this, a check that searches for the wrong thing would pass on anything."""
    for one, task in _all(curated):
        original = original_files(one.example)
        lines = distinctive_lines(original, worktree(one.masked(task)))
        assert all(any(line in data for data in original.values()) for line in lines)
        assert any(_squeezed(one.example.title.encode()) in _squeezed(data) for data in original.values())
    stated = sum(
        any(pattern.search(data) for data in original_files(one.example).values())
        for one, task in _all(curated)
        for claim in task.truth.expected.claims
        if (pattern := printed_number(claim.text)) is not None
    )
    assert stated >= 3, "the originals state none of the answers, so that masking has nothing to remove"
