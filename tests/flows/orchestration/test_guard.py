"""Retries follow the table of failures; papers have names before they are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.errors import FAILURES, ExpbenchError, FailureKind


@pytest.mark.parametrize("kind", list(FailureKind))
def test_a_failure_is_retried_when_the_table_says_so(kind: FailureKind) -> None:
    from prefect.states import Failed

    from flows.orchestration.guard import worth_retrying

    error = ExpbenchError(kind, "x", "broke", consequence="Nothing", next_step="Again")
    nothing: Any = None
    assert worth_retrying(nothing, nothing, Failed(data=error)) is FAILURES[kind].retry


def test_a_defect_is_not_retried() -> None:
    from prefect.states import Failed

    from flows.orchestration.guard import worth_retrying

    nothing: Any = None
    assert not worth_retrying(nothing, nothing, Failed(data=ZeroDivisionError()))


@pytest.mark.parametrize(("status", "again"), [(500, True), (503, True), (404, False), (422, False)])
def test_a_call_that_prefects_server_could_not_answer_is_made_again(status: int, again: bool) -> None:
    import httpx
    from prefect.exceptions import PrefectHTTPStatusError
    from prefect.states import Failed

    from flows.orchestration.guard import worth_retrying

    request = httpx.Request("POST", "http://127.0.0.1/api/artifacts/")
    error = PrefectHTTPStatusError("x", request=request, response=httpx.Response(status, request=request))
    nothing: Any = None
    assert worth_retrying(nothing, nothing, Failed(data=error)) is again
    assert worth_retrying(nothing, nothing, Failed(data=httpx.ReadTimeout("x", request=request)))


@pytest.mark.parametrize(
    ("path", "label"), [("a/my-paper.pdf", "my-paper"), ("a/attention/paper.pdf", "attention"), ("/paper.pdf", "paper")]
)
def test_a_paper_is_called_after_its_file_or_its_directory(path: str, label: str) -> None:
    from flows.orchestration.guard import paper_label

    assert paper_label(Path(path)) == label


def test_relative_paths_begin_where_the_pool_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows.orchestration.guard import at_work

    monkeypatch.chdir(tmp_path)
    assert at_work(Path("a/b")) == tmp_path / "a" / "b"
    assert at_work(Path("/a")) == Path("/a")
    monkeypatch.setenv("EXPBENCH_WORK", "/work")
    assert at_work(Path("a/b")) == Path("/work/a/b")


def test_a_directory_that_goes_with_its_run_takes_no_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen in a Docker work pool: the workspace went with the container, and a review was asked for all the same."""
    from flows.orchestration.guard import at_work

    here = tmp_path / "prefect-flow-run-h1nmfzg9"
    here.mkdir()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.chdir(here)
    with pytest.raises(ExpbenchError, match="EXPBENCH_WORK") as caught:
        at_work(Path("expbench-paper"))
    assert caught.value.kind is FailureKind.USAGE


@pytest.mark.parametrize("pool", ["docker", "kubernetes"])
def test_pools_of_containers_say_where_relative_paths_begin(pool: str) -> None:
    import yaml

    root = Path(__file__).resolve().parents[3]
    deployments = yaml.safe_load((root / "prefect.yaml").read_text())["deployments"]
    found = [item["work_pool"]["job_variables"]["env"] for item in deployments if item["name"] == pool]
    assert found
    assert all(environment["EXPBENCH_WORK"] == "/work" for environment in found)


@pytest.mark.parametrize(
    ("pdf", "repository", "kind", "says"),
    [
        ("none.pdf", "repository", FailureKind.PAPER_INVALID, "there is no such file for the worker"),
        ("paper.pdf", "/nowhere/at/all", FailureKind.REPOSITORY_INVALID, "there is no such path"),
        ("paper.pdf", "ftp://example.org/code", FailureKind.REPOSITORY_INVALID, "the scheme 'ftp' is not accepted"),
    ],
)
def test_wrong_inputs_are_refused_before_a_workspace_is_made(
    tmp_path: Path, pdf: str, repository: str, kind: FailureKind, says: str
) -> None:
    from flows.curate import CurateOptions
    from flows.orchestration.curation import _check_inputs

    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.4")
    options = CurateOptions(pdf=tmp_path / pdf, repository=repository, out=tmp_path / "work")
    with pytest.raises(ExpbenchError, match=says) as caught:
        _check_inputs(options)
    assert caught.value.kind is kind
    assert not (tmp_path / "work").exists()
