"""The leak scan's own decisions: verdicts, order, what git may hold, links, the task's words."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from masking import leaks
from masking.apply import apply_mask
from masking.leaks import scan_leaks, scan_task_text, with_accepted
from masking.plan import plan_mask
from masking.records import MaskPlan
from pipeline.repository import Snapshot
from pipeline.schema import Problem, Severity
from pipeline.task import AcceptedHit, LeakHit, LeakReport, Task, Verdict
from tests.masking import builders
from tests.masking.planting import NUMBER, git


class Made:
    """A masked repository, and a scan of it as it is now."""

    def __init__(self, tmp_path: Path, files: dict[str, bytes] | None = None) -> None:
        self.snapshot: Snapshot = builders.make(tmp_path / "original", files)
        self.task: Task = builders.task()
        self.plan: MaskPlan = plan_mask(self.task, self.snapshot)
        self.path = apply_mask(self.snapshot, self.plan, tmp_path / "masked").path

    def scan(self, **options: object) -> LeakReport:
        return scan_leaks(self.path, snapshot=self.snapshot, plan=self.plan, task=self.task, **options)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def hit(score: float, where: str = "a", kind: str = "number", detail: str = "d") -> LeakHit:
    return LeakHit.model_validate({"kind": kind, "where": where, "detail": detail, "score": score})


def report(*hits: LeakHit, problems: tuple[Problem, ...] = (), accepted: tuple[AcceptedHit, ...] = ()) -> LeakReport:
    return LeakReport(
        verdict=Verdict.FAIL,
        hits=hits,
        files=1,
        bytes=1,
        git_objects=1,
        checks=(),
        problems=problems,
        accepted=accepted,
    )


def accept(item: LeakHit, reviewer: str = "Ada") -> AcceptedHit:
    return AcceptedHit(hit=item, reviewer=reviewer, reason="r")


def problem(severity: Severity) -> Problem:
    return Problem(component="mask.leaks", where="x", message="m", severity=severity)


# --- verdict and order -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (report(), Verdict.PASS),
        (report(hit(0.69)), Verdict.PASS),
        (report(hit(0.7)), Verdict.FAIL),
        (report(problems=(problem(Severity.INFO),)), Verdict.PASS),
        (report(problems=(problem(Severity.INFO), problem(Severity.WARNING))), Verdict.UNKNOWN),
        (report(hit(1.0), problems=(problem(Severity.WARNING),)), Verdict.FAIL),
    ],
)
def test_what_blocks_and_what_leaves_it_unknown(found: LeakReport, verdict: Verdict) -> None:
    assert with_accepted(found, ()).verdict is verdict


def test_the_worst_comes_first_and_nothing_twice() -> None:
    order = [hit(1.0, "z"), hit(0.9, "b", "exact"), hit(0.9, "a"), hit(0.9, "b"), hit(0.9, "b", detail="e"), hit(0.1)]
    assert with_accepted(report(*reversed(order), order[0]), ()).hits == tuple(order)


def test_an_accepted_finding_is_set_apart_and_comes_back_when_it_is_no_longer_accepted() -> None:
    bad, other = hit(1.0, "bad"), hit(0.9, "other")
    one = with_accepted(report(bad, other), [accept(bad), accept(hit(1.0, "gone"))])
    assert (one.hits, one.accepted, one.verdict) == ((other,), (accept(bad),), Verdict.FAIL)
    both = with_accepted(one, [accept(bad), accept(other)])
    assert (both.hits, both.verdict) == ((), Verdict.PASS)
    assert [item.hit for item in both.accepted] == [bad, other]
    back = with_accepted(both, [accept(other, "Ben")])
    assert (back.hits, back.verdict) == ((bad,), Verdict.FAIL)
    assert back.accepted == (accept(other, "Ben"),)


# --- what was looked at ----------------------------------------------------------------------------------------------


def test_the_report_says_how_much_was_looked_at(made: Made) -> None:
    found = made.scan(documents=[builders.document()])
    listed = [path for path in made.path.rglob("*") if path.is_file() and ".git" not in path.parts]
    assert found.files == len(listed)
    assert found.bytes == sum(path.stat().st_size for path in listed)
    objects = git(made.path, "cat-file", "--batch-all-objects", "--batch-check").splitlines()
    assert found.git_objects == len(objects)
    assert (found.verdict, found.hits, found.problems) == (Verdict.PASS, (), ())
    assert found.checks == (
        "exact", "near_duplicate", "number", "paper_file", "paper_text", "git_layout", "git_objects", "task_text",
        "installed_package",
    )  # fmt: skip


def test_without_the_paper_the_checks_that_need_it_are_named(made: Made) -> None:
    found = made.scan(canaries=["c-1"])
    assert found.verdict is Verdict.UNKNOWN
    assert [item.message.split("`")[1] for item in found.problems] == ["paper_file", "paper_text"]
    assert "canary" in found.checks
    assert not {"paper_file", "paper_text"} & set(found.checks)


def test_the_papers_file_is_known_by_its_own_digest_and_text(made: Made, tmp_path: Path) -> None:
    import pymupdf

    with pymupdf.open() as document:
        document.new_page().insert_textbox((50, 50, 550, 800), builders.PAPER_TEXT)
        data = document.tobytes()
    (tmp_path / "paper.pdf").write_bytes(data)
    assert {"paper_file", "paper_text"} <= set(made.scan(pdf=tmp_path / "paper.pdf").checks)
    (made.path / "some.bin").write_bytes(data)
    (made.path / "draft.txt").write_text(builders.PAPER_TEXT)
    found = {item.where: item.kind for item in made.scan(pdf=tmp_path / "paper.pdf").hits if item.score == 1.0}
    assert found["some.bin"] == found["draft.txt"] == "paper"


def test_a_repository_that_is_not_there_is_an_error(made: Made, tmp_path: Path) -> None:
    made.path = tmp_path / "nowhere"
    with pytest.raises(FileNotFoundError):
        made.scan()


def test_what_is_too_large_to_read_leaves_it_unknown(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (made.path / "estimators.py").stat().st_size
    monkeypatch.setattr(leaks, "MAX_READ", size - 1)
    found = made.scan(documents=[builders.document()])
    assert found.verdict is Verdict.UNKNOWN
    assert [item.where for item in found.problems] == ["estimators.py"]
    monkeypatch.setattr(leaks, "MAX_READ", size)
    assert made.scan(documents=[builders.document()]).problems == ()


def test_a_changed_files_original_counts_and_an_unmasked_one_does_not(made: Made) -> None:
    for item in made.plan.paths:
        (made.path / f"copy of {item.path}").write_bytes((made.snapshot.root / item.path).read_bytes())
    (made.path / "copy of estimators.py").write_bytes((made.snapshot.root / "estimators.py").read_bytes())
    exact = {item.where for item in made.scan().hits if item.kind == "exact"}
    assert exact == {f"copy of {item.path}" for item in made.plan.paths}


@pytest.mark.parametrize(("size", "known"), [(31, False), (32, True)])
def test_from_how_many_bytes_on_a_masked_files_content_is_evidence(size: int, known: bool, tmp_path: Path) -> None:
    made = Made(tmp_path, {"results/a.txt": b"x" * size})
    (made.path / "elsewhere.txt").write_bytes(b"x" * size)
    assert ("elsewhere.txt" in {item.where for item in made.scan().hits if item.kind == "exact"}) is known


# --- links -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "target", "out"),
    [
        ("link", "estimators.py", False), ("deep/link", "../estimators.py", False), ("deep/link", "../../x", True),
        ("link", "..", True), ("link", "/etc/passwd", True), ("link", "deep/../../x", True), ("link", "..data", False),
        ("deep/link", "..", False),
    ],
)  # fmt: skip
def test_links_that_lead_out(made: Made, path: str, target: str, out: bool) -> None:
    (made.path / "deep").mkdir()
    (made.path / path).symlink_to(target)
    found = [(item.where, item.score) for item in made.scan().hits if "leads out" in item.detail]
    assert found == ([(path, 1.0)] if out else [])


# --- git -------------------------------------------------------------------------------------------------------------


def write(name: str, text: str) -> Callable[[Path], None]:
    def change(masked: Path) -> None:
        (masked / ".git" / name).parent.mkdir(parents=True, exist_ok=True)
        (masked / ".git" / name).write_text(text)

    return change


def link(masked: Path) -> None:
    (masked / ".git/config").rename(masked.parent / "config")
    (masked / ".git/config").symlink_to(masked.parent / "config")


@pytest.mark.parametrize(
    ("change", "where", "detail"),
    [
        (write("HEAD", "ref: refs/heads/other\n"), ".git/HEAD", "HEAD is not the branch main"),
        (write("config", "[core]\n"), ".git/config", "the configuration is not the minimal one"),
        (write("info/attributes", "* text\n"), ".git/info/attributes", "attributes that expbench did not write"),
        (write("refs/heads/other", "0\n"), ".git/refs/heads/other", "not part of a fresh repository"),
        (write("ORIG_HEAD", "0\n"), ".git/ORIG_HEAD", "not part of a fresh repository"),
        (write("description/x", "0\n"), ".git/description/x", "not part of a fresh repository"),
        (link, ".git/config", "not part of a fresh repository"),
    ],
)
def test_what_a_fresh_git_directory_has_not(
    change: Callable[[Path], None], where: str, detail: str, made: Made
) -> None:
    change(made.path)
    found = [item for item in made.scan().hits if item.kind == "git_object" and item.where == where]
    assert [(item.detail.startswith(detail), item.score) for item in found] == [(True, 1.0)]


def test_a_number_in_a_file_of_git_is_read(made: Made) -> None:
    write("info/exclude", f"# the shrunk mse is {NUMBER}\n")(made.path)
    assert any(item.kind == "number" and item.where.startswith(".git/info/exclude") for item in made.scan().hits)


def test_a_database_that_cannot_be_read_leaves_it_unknown(made: Made) -> None:
    (made.path / ".git/refs/heads/main").write_text("0" * 40 + "\n")
    found = made.scan(documents=[builders.document()])
    assert any(item.where == ".git" and "could not be read" in item.message for item in found.problems)
    assert found.verdict is not Verdict.PASS


def commit(
    masked: Path, *, author: str = leaks.AUTHOR, message: str = leaks.MESSAGE, parent: bool = False, more: str = ""
) -> None:
    tree, head = git(masked, "rev-parse", "HEAD^{tree}"), git(masked, "rev-parse", "HEAD")
    lines = [f"tree {tree}", *([f"parent {head}"] if parent else []), f"author {author} {leaks.DATE}"]
    lines += [f"committer {leaks.AUTHOR} {leaks.DATE}", *([more] if more else []), "", message]
    made = git(masked, "hash-object", "-t", "commit", "-w", "--stdin", data="\n".join(lines).encode())
    git(masked, "update-ref", "refs/heads/main", made)


@pytest.mark.parametrize(
    "change",
    [{"author": "A <a@b>"}, {"message": "Remove the answer 0.5\n"}, {"parent": True}, {"more": "encoding latin-1"}],
    ids=str,
)
def test_a_commit_of_somebody_else(change: dict[str, object], made: Made) -> None:
    commit(made.path, **change)
    head = git(made.path, "rev-parse", "HEAD")
    found = [item.detail for item in made.scan().hits if item.where == f"object {head}"]
    assert found == ["a commit that expbench did not make (it has a parent, or another author)"]


def test_an_unreachable_object_and_a_tag_are_named(made: Made) -> None:
    blob = git(made.path, "hash-object", "-w", "--stdin", data=b"nothing in it")
    git(made.path, "tag", "-a", "-m", "words", "v1")
    tag = git(made.path, "rev-parse", "v1")
    found = {(item.where, item.detail) for item in made.scan().hits if item.kind == "git_object"}
    assert (f"object {blob}", "an unreachable blob") in found
    assert (f"object {tag}", "an annotated tag") in found


def test_a_nested_git_directory_is_named_whatever_its_case(made: Made) -> None:
    for name in ("vendor/.GIT", "other/.git. "):
        builders.write_tree(made.path, {f"{name}/HEAD": b"x"})
    found = {item.where for item in made.scan().hits if item.detail == "a nested git directory"}
    assert found == {"vendor/.GIT/HEAD", "other/.git. /HEAD"}


def test_a_directory_without_git_is_a_hit_and_its_files_are_read(made: Made, tmp_path: Path) -> None:
    subprocess.run(["rm", "-r", str(made.path / ".git")], check=True)
    (made.path / "again.py").write_text(builders.RUN)
    found = {item.where: item.kind for item in made.scan().hits if item.score == 1.0}
    assert found[".git"] == "git_object"
    assert found["again.py"] == "exact"


# --- the task's own words --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        (f"It gives {NUMBER}.", [1.0]),
        ("There are 23 layers.", []),
        ("Compare them.", []),
    ],
)
def test_a_long_number_blocks_wherever_it_stands_in_the_task(text: str, scores: list[float]) -> None:
    assert [item.score for item in scan_task_text(builders.task(question=text))] == scores


@pytest.mark.parametrize(
    ("stated", "text", "scores"),
    [
        ("0.23", "the MSE is 0.23", [0.75]),
        ("0.23", "the shrunk MSE is 0.23", [0.75]),
        ("0.23", "about 0.23 of them", []),
        ("0.2", "the MSE is 0.2", [0.4]),
        ("0.2", "the shrunk MSE is 0.2", [0.75]),
    ],
)
def test_short_numbers_in_the_task_need_names_beside_them(stated: str, text: str, scores: list[float]) -> None:
    task = builders.task()
    (_, shrunk, *_) = task.truth.expected.claims
    short = shrunk.evolve(text=stated, value=float(stated), decimals=len(stated) - 2)
    task = task.evolve(method=text, truth=task.truth.evolve(expected=task.truth.expected.evolve(claims=(short,))))
    found = scan_task_text(task)
    assert [item.score for item in found] == scores
    assert all((item.kind, item.where) == ("task_text", "method") for item in found)
