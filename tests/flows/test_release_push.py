"""Releases on a hub: the dry run says what a push does, a push does it once, answers go to a place of their own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
from flows.release import ReleaseOptions, ReleaseResult, release
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.formats.hub import push
from tests.flows.test_release import PRIVATE, filled
from tests.pipeline.formats.hub_server import TOKEN, Hub, hub_server
from tests.pipeline.test_store import make_task

# huggingface_hub 2.4 hands bytes to httpx2 by a name that httpx2 calls old
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    import huggingface_hub.constants as constants

    with hub_server() as found:
        monkeypatch.setenv("HF_ENDPOINT", found.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # this hub stores large files as LFS objects
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
        monkeypatch.setattr("huggingface_hub.utils._http.time.sleep", lambda seconds: None)  # between its retries
        yield found


class Made:
    def __init__(self, root: Path) -> None:
        self.workspace = filled(root / "work")
        self.out = root / "out"

    def release(self, **options: object) -> ReleaseResult:
        return release(
            self.workspace, out=self.out, accept_all=True, name="demo",
            options=ReleaseOptions.model_validate(options),
        )  # fmt: skip


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


def test_a_dry_run_shows_the_difference_and_a_push_makes_it(hub: Hub, made: Made) -> None:
    told = made.release(push="me/bench", push_private="me/truth", dry_run=True)
    assert not made.out.exists()
    assert hub.repositories == {}
    private, public = told.pushes
    assert (private.part, public.part, public.created, public.commit) == ("private", "public", True, None)
    assert {change.action for change in public.changes} == {"add"}
    done = made.release(push="me/bench", push_private="me/truth")
    assert [change.path for change in done.pushes[1].changes] == [change.path for change in public.changes]
    assert hub.commits[1][:2] == ("me/bench", "Version 1.0.0")
    assert hub.repositories["me/bench"]["tags"] == {"v1.0.0": done.pushes[1].commit}
    again = made.release(push="me/bench", push_private="me/truth")
    assert [(report.changes, report.commit, report.created) for report in again.pushes] == [((), None, False)] * 2
    assert len(hub.commits) == 2
    made.workspace.save_task(make_task("paper-table-5-new"))
    made.workspace.masked_repository("paper-table-5-new").mkdir()
    new = made.release(push="me/bench", dry_run=True).pushes[0]
    actions = {change.path: change.action for change in new.changes}
    assert actions["repositories/paper-table-5-new.tar.gz"] == "add"
    assert actions["tasks/experiment.parquet"] == actions["README.md"] == actions["CHANGELOG.md"] == "change"
    assert new.unchanged == len(done.pushes[1].changes) - sum(action == "change" for action in actions.values())


def test_what_is_published_is_the_part_and_nothing_of_the_other(hub: Hub, made: Made, tmp_path: Path) -> None:
    made.release(push="me/bench", push_private="me/truth")
    public, private = hub.files("me/bench"), hub.files("me/truth")
    assert not [path for path in public if "private" in path or "truth" in path]
    assert PRIVATE.encode() not in b"".join(public.values())
    assert b"truth" not in public["README.md"].split(b"\n---\n")[0]
    assert hub.repositories["me/truth"]["private"] is True
    assert hub.repositories["me/truth"]["settings"] == {"gated": "manual", "visibility": "private"}
    assert b"extra_gated_prompt" in private["README.md"]
    import datasets

    for name, files in (("public", public), ("private", private)):
        for path, data in files.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_bytes(data)
        found = datasets.load_dataset(str(tmp_path / name), cache_dir=str(tmp_path / "cache"))
        assert found["test"]["id"] == ["paper-table-1-accuracy", "paper-table-3-other"]


def test_files_that_a_release_has_no_more_are_removed_there(hub: Hub, made: Made) -> None:
    made.release(push="me/bench")
    files = hub.files("me/bench")
    files |= {"old.txt": b"from an earlier form", ".gitattributes": b"*.parquet filter=lfs\n"}
    report = push(made.out, "me/bench", part="public", dry_run=False)
    assert [(change.path, change.action) for change in report.changes] == [("old.txt", "remove")]
    assert ".gitattributes" in hub.files("me/bench")
    assert "old.txt" not in hub.files("me/bench")


def test_only_what_was_released_is_uploaded(hub: Hub, made: Made) -> None:
    made.release()
    (made.out / "notes.txt").write_text("not for the world")
    (made.out / "README.md").write_text((made.out / "README.md").read_text() + "\nWith thanks to Ada.\n")
    push(made.out, "me/bench", part="public", dry_run=False)
    assert "notes.txt" not in hub.files("me/bench")
    assert b"With thanks to Ada." in hub.files("me/bench")["README.md"]
    (made.out / "CHANGELOG.md").write_text("rewritten")
    with pytest.raises(ExpbenchError, match="not the file that was released") as caught:
        push(made.out, "me/bench", part="public", dry_run=True)
    assert caught.value.kind is FailureKind.RECORD_INVALID


@pytest.mark.parametrize(
    ("status", "kind"),
    [(403, FailureKind.AUTHENTICATION), (429, FailureKind.RATE_LIMIT), (400, FailureKind.REQUEST_REJECTED)],
)
def test_a_hub_that_refuses_is_said(
    hub: Hub, tmp_path_factory: pytest.TempPathFactory, pushed_once: Path, status: int, kind: FailureKind
) -> None:
    hub.refuse = status
    with pytest.raises(ExpbenchError) as caught:
        push(pushed_once, "me/bench", part="public", dry_run=False)
    assert caught.value.kind is kind
    assert hub.commits == []


@pytest.fixture(scope="module")
def pushed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Made(tmp_path_factory.mktemp("once"))
    made.release()
    return made.out


def test_without_a_token_a_hub_or_a_name_nothing_is_committed(
    hub: Hub, pushed_once: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(ExpbenchError) as caught:
        push(pushed_once, "me/bench", part="public", dry_run=False)
    assert caught.value.kind is FailureKind.AUTHENTICATION
    with pytest.raises(ExpbenchError) as caught:
        push(pushed_once, "not a name", part="public", dry_run=True)
    assert caught.value.kind is FailureKind.USAGE
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ExpbenchError) as caught:
        push(pushed_once, "me/bench", part="public", dry_run=True)
    assert caught.value.kind is FailureKind.NETWORK
    with pytest.raises(ExpbenchError) as caught:
        push(tmp_path, "me/bench", part="public", dry_run=True)
    assert caught.value.kind is FailureKind.RECORD_INVALID
    assert hub.commits == []


def test_the_command_says_what_it_would_push(hub: Hub, made: Made) -> None:
    arguments = ["release", made.workspace.root, "--accept-all", "--push", "me/bench", "--dry-run", "--json"]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    value = json.loads(result.stdout)
    assert (value["dry_run"], value["version"], value["pushes"][0]["repository"]) == (True, "1.0.0", "me/bench")
    assert value["pushes"][0]["changes"][0]["path"] == "CHANGELOG.md"
    assert hub.repositories == {}
    told = CliRunner().invoke(app, [str(argument) for argument in arguments if argument != "--json"])
    assert "public part would be pushed" in told.stdout
    assert "(new repository)" in told.stdout
