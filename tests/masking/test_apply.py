"""The masked repository: one commit, deterministic, nothing of the original, any file name, nothing executed."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest

from masking.apply import apply_mask
from masking.plan import plan_mask
from masking.records import MaskPlan, TextEdit
from masking.tree import entries
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.task import MaskedPath
from tests.masking import builders, independent

DISTINCTIVE = [
    b"def contaminated_sample(size, share, shift, generator):",
    b"return max(0.0, 1.0 - strength * spread / (len(values) * centre * centre + 1e-12))",
    b'errors["shrunk"].append((weight * trimmed_mean(values, 0.1)) ** 2)',
    *(claim.text.encode() for claim in builders.claims()),
]
STATED = {
    "docs/results.md": b"MSE of shrunk: " + builders.claims()[1].text.encode(),
    "results/summary.json": b"{}",
    "legacy/old.py": builders.RUN.replace("200", "100").encode(),
}


def test_nothing_is_left_by_an_independent_check(tmp_path: Path) -> None:
    snapshot = builders.make(tmp_path / "original", STATED)
    original = b"".join(b"".join(path.read_bytes().split()) for path in (tmp_path / "original").rglob("*.*"))
    assert all(
        b"".join(needle.split()) in original for needle in [*DISTINCTIVE[:3], builders.claims()[1].text.encode()]
    )
    masked = apply_mask(snapshot, plan_mask(builders.task(), snapshot), tmp_path / "masked")
    log = independent.commits(masked.path)
    assert log == [f"{masked.commit} |expbench|expbench@localhost|946684800|Masked repository".encode()]
    assert independent.unreachable(masked.path) == b""
    assert independent.holders(masked.path, DISTINCTIVE) == []
    status = subprocess.run(["git", "status", "--porcelain"], cwd=masked.path, capture_output=True, check=True)
    assert status.stdout == b""
    assert sorted(path.name for path in (masked.path / ".git").iterdir()) == [
        "HEAD", "config", "index", "info", "objects", "refs"
    ]  # fmt: skip


def test_same_input_same_commit_wherever_it_is_made(tmp_path: Path) -> None:
    first = builders.make(tmp_path / "a", STATED)
    second = builders.make(tmp_path / "elsewhere" / "b", STATED)
    task = builders.task()
    one = apply_mask(first, plan_mask(task, first), tmp_path / "one")
    two = apply_mask(second, plan_mask(task, second), tmp_path / "two" / "deeper")
    assert one.commit == two.commit
    assert plan_mask(task, first) == plan_mask(task, second)


def test_ignore_files_attributes_and_filters_have_no_say(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    snapshot = builders.make(
        tmp_path / "original",
        {
            ".gitignore": b"*.dat\nkept/\n",
            "values.dat": b"1\r\n2\r\n",
            "kept/inner.txt": b"inner\r\n",
            ".gitattributes": b"* text=auto eol=lf filter=evil diff=evil ident\n*.dat text\n",
            ".gitconfig": f'[filter "evil"]\n\tclean = touch {marker}\n'.encode(),
            "ident.txt": b"$Id$\n",
        },
    )
    masked = apply_mask(snapshot, plan_mask(builders.task(), snapshot), tmp_path / "masked")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=masked.path, capture_output=True, check=True).stdout
    assert {b"values.dat", b"kept/inner.txt", b".gitattributes"} <= set(listed.split(b"\0"))
    blob = subprocess.run(["git", "show", "HEAD:values.dat"], cwd=masked.path, capture_output=True, check=True).stdout
    assert blob == b"1\r\n2\r\n"
    assert not marker.exists()
    status = subprocess.run(["git", "status", "--porcelain"], cwd=masked.path, capture_output=True, check=True).stdout
    assert status == b""


def test_configuration_of_the_user_has_no_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = tmp_path / "executed"
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-commit", "reference-transaction", "post-index-change", "pre-commit"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {marker}\n")
        (hooks / name).chmod(0o755)
    config = tmp_path / "gitconfig"
    config.write_text(
        f"[core]\n\thooksPath = {hooks}\n\tfsmonitor = {hooks}/pre-commit\n\tautocrlf = true\n"
        "[user]\n\tname = Somebody\n\temail = some@body\n[commit]\n\tgpgSign = true\n[init]\n\tdefaultBranch = trunk\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Somebody")
    snapshot = builders.make(tmp_path / "original")
    masked = apply_mask(snapshot, plan_mask(builders.task(), snapshot), tmp_path / "masked")
    monkeypatch.undo()
    assert not marker.exists()
    assert len(independent.commits(masked.path)) == 1
    assert b"Somebody" not in independent.commits(masked.path)[0]


def test_any_file_name_mode_and_link_survives(tmp_path: Path) -> None:
    names = [
        "a b.txt",
        "new\nline.txt",
        "quote\"'\\.txt",
        "tab\t.txt",
        "-dash",
        "caf\u00e9.txt",
        "raw\udcff\udcfe.txt",
        "d i r/x",
    ]
    root = tmp_path / "original"
    snapshot = builders.make(root, {name: name.encode("utf-8", "surrogateescape") for name in names})
    (root / "run me.sh").write_text("#!/bin/sh\n")
    (root / "run me.sh").chmod(0o755)
    (root / "link").symlink_to("a b.txt")
    (root / "outside").symlink_to("/etc/passwd")
    (root / "d i r" / "loop").symlink_to("..")
    masked = apply_mask(snapshot, plan_mask(builders.task(), snapshot), tmp_path / "masked")
    for name in names:
        assert (masked.path / name).read_bytes() == name.encode("utf-8", "surrogateescape")
    assert stat.S_IMODE((masked.path / "run me.sh").stat().st_mode) == 0o755
    assert (masked.path / "link").readlink() == Path("a b.txt")
    assert (masked.path / "outside").readlink() == Path("/etc/passwd")
    assert (masked.path / "d i r" / "loop").readlink() == Path("..")
    tree = subprocess.run(["git", "ls-tree", "-rz", "HEAD"], cwd=masked.path, capture_output=True, check=True).stdout
    listing = {line.split(b"\t")[1]: line.split()[0] for line in tree.split(b"\0")[:-1] if line.count(b"\t") == 1}
    assert listing[b"run me.sh"] == b"100755"
    assert listing[b"link"] == b"120000"
    assert b"raw\xff\xfe.txt" in listing
    assert masked.files == len(tree.split(b"\0")) - 1 == len(list(entries(masked.path)))


def test_nested_git_directories_do_not_come_along(tmp_path: Path) -> None:
    snapshot = builders.make(
        tmp_path / "original",
        {"sub/.git/HEAD": b"ref", "sub/.git/objects/aa/b": b"x", "wt/.git": b"gitdir: /x", "S/.GIT/x": b"y"},
    )
    masked = apply_mask(snapshot, plan_mask(builders.task(), snapshot), tmp_path / "masked")
    left = [path for path in masked.path.rglob("*") if path.name.lower() == ".git"]
    assert left == [masked.path / ".git"]


def test_an_occupied_directory_is_refused_and_left_alone(tmp_path: Path) -> None:
    snapshot = builders.make(tmp_path / "original")
    (tmp_path / "masked").mkdir()
    (tmp_path / "masked" / "mine").write_text("precious")
    with pytest.raises(ExpbenchError) as caught:
        apply_mask(snapshot, MaskPlan(paths=()), tmp_path / "masked")
    assert caught.value.kind is FailureKind.WORKSPACE_CONFLICT
    assert [path.name for path in (tmp_path / "masked").iterdir()] == ["mine"]


def test_an_interrupted_attempt_is_replaced(tmp_path: Path) -> None:
    snapshot = builders.make(tmp_path / "original")
    (tmp_path / ".masked.building").mkdir()
    (tmp_path / ".masked.building" / "run_experiment.py").write_text(builders.RUN)
    masked = apply_mask(snapshot, plan_mask(builders.task(), snapshot), tmp_path / "masked")
    assert not (tmp_path / ".masked.building").exists()
    assert not (masked.path / "run_experiment.py").exists()


def test_an_edit_for_another_version_is_refused(tmp_path: Path) -> None:
    snapshot = builders.make(tmp_path / "original")
    plan = MaskPlan(
        paths=(MaskedPath(path="estimators.py", action="edited", reason="test"),),
        edits=(TextEdit(path="estimators.py", start=0, end=3, sha256="0" * 64),),
    )
    with pytest.raises(ExpbenchError) as caught:
        apply_mask(snapshot, plan, tmp_path / "masked")
    assert caught.value.kind is FailureKind.WORKSPACE_CONFLICT
    assert not (tmp_path / "masked").exists()


@pytest.mark.parametrize(("start", "end"), [(0, 0), (3, 2), (0, 10_000)])
def test_an_edit_outside_of_the_file_is_refused(start: int, end: int, tmp_path: Path) -> None:
    snapshot = builders.make(tmp_path / "original")
    digest = builders.sha256(builders.FILES["estimators.py"])
    plan = MaskPlan(paths=(), edits=(TextEdit(path="estimators.py", start=start, end=end, sha256=digest),))
    with pytest.raises(ExpbenchError, match="another version of this file"):
        apply_mask(snapshot, plan, tmp_path / "masked")


def test_edits_are_made_once_each_up_to_the_last_byte(tmp_path: Path) -> None:
    snapshot = builders.make(tmp_path / "original", {"a.txt": b"0.5 and 0.75"})
    digest = builders.sha256(b"0.5 and 0.75")
    first = TextEdit(path="a.txt", start=0, end=3, sha256=digest)
    last = TextEdit(path="a.txt", start=8, end=12, sha256=digest, replacement="[more]")
    paths = (MaskedPath(path="a.txt", action="edited", reason="test"),)
    masked = apply_mask(snapshot, MaskPlan(paths=paths, edits=(first, last, first)), tmp_path / "masked")
    assert (masked.path / "a.txt").read_bytes() == b"[masked] and [more]"
    assert masked.files == len(builders.FILES) + 1


def test_an_empty_directory_is_taken_and_a_file_is_not(tmp_path: Path) -> None:
    snapshot = builders.make(tmp_path / "original")
    (tmp_path / "empty").mkdir()
    assert apply_mask(snapshot, MaskPlan(paths=()), tmp_path / "empty").path == tmp_path / "empty"
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ExpbenchError) as caught:
        apply_mask(snapshot, MaskPlan(paths=()), tmp_path / "file")
    assert (caught.value.kind, caught.value.object) == (FailureKind.WORKSPACE_CONFLICT, "file")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(("number", "kind"), [(28, FailureKind.DISK_FULL), (13, FailureKind.INTERNAL)])
def test_what_the_disk_refuses_leaves_nothing_behind(
    number: int, kind: FailureKind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from masking import apply

    def refuse(*_: object) -> None:
        raise OSError(number, "refused")

    snapshot = builders.make(tmp_path / "original")
    monkeypatch.setattr(apply, "copy_entry", refuse)
    with pytest.raises(ExpbenchError, match=r"could not be written \(refused\)") as caught:
        apply_mask(snapshot, MaskPlan(paths=()), tmp_path / "masked")
    assert caught.value.kind is kind
    assert sorted(path.name for path in tmp_path.iterdir()) == ["original"]


def test_a_repository_of_which_nothing_is_left_is_one_all_the_same(tmp_path: Path) -> None:
    snapshot = builders.make(tmp_path / "original")
    paths = tuple(MaskedPath(path=path, action="removed", reason="test") for path in sorted(builders.FILES))
    masked = apply_mask(snapshot, MaskPlan(paths=paths), tmp_path / "masked")
    assert masked.files == 0
    assert list(entries(masked.path)) == []
    assert len(independent.commits(masked.path)) == 1


def test_a_link_is_never_edited(tmp_path: Path) -> None:
    snapshot = builders.make(tmp_path / "original")
    (tmp_path / "original" / "link").symlink_to("estimators.py")
    edit = TextEdit(path="link", start=0, end=3, sha256=builders.sha256(b"estimators.py"))
    masked = apply_mask(snapshot, MaskPlan(paths=(), edits=(edit,)), tmp_path / "masked")
    assert (masked.path / "link").readlink() == Path("estimators.py")
    assert (masked.path / "estimators.py").read_bytes() == builders.FILES["estimators.py"]
