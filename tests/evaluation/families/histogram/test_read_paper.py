"""`read-paper`: pages and figures, the command, and the client in a workspace talking to its companion."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from evaluation.episode import EpisodeFolder
from evaluation.families.histogram.companion import SOCKET
from evaluation.families.histogram.paper_reader import PaperReader, parse_pages
from evaluation.families.histogram.rules import RULES
from evaluation.trajectory import Event
from flows.cli import app
from pipeline.errors import ExpbenchError, FailureKind
from tests.evaluation.families.histogram.support import load_one, publish, write_paper

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("paper") / "P-1.pdf"
    write_paper(path)
    return path


@given(st.sets(st.integers(1, 30), min_size=1), st.integers(1, 30))
def test_any_list_of_pages_is_read(pages: set[int], total: int) -> None:
    text = ",".join(map(str, sorted(pages, reverse=True)))
    inside = tuple(sorted(page for page in pages if page <= total))
    if inside:
        assert parse_pages(text, total) == inside
    else:
        with pytest.raises(ExpbenchError):
            parse_pages(text, total)
    assert parse_pages(f"{min(pages)}-99", 30) == tuple(range(min(pages), 31))


@pytest.mark.parametrize("text", ["0", "3-1", "a", "1;2", "-1", "1,,2", "9" * 8])
def test_what_is_no_list_of_pages_is_refused(text: str) -> None:
    with pytest.raises(ExpbenchError) as caught:
        parse_pages(text, 5)
    assert caught.value.kind is FailureKind.USAGE


def test_pages_and_figures(paper: Path) -> None:
    reader = PaperReader(paper)
    text = reader.text("2-3")
    assert text.startswith("[P-1.pdf: 3 pages, showing 2]")
    assert text.index("page 2") < text.index("Photons with more than 100 GeV") < text.index("page 3")
    assert "Figure 1: The distribution" in text
    assert "luminosity is 35.9" not in text
    assert "luminosity is 35.9" in reader.text()
    [figure] = reader.figures("2")
    assert (figure.name, figure.page) == ("figure-1-page-02.png", 2)
    assert "distribution of the photons" in figure.caption
    assert figure.png.startswith(PNG)
    [whole] = reader.figures("1")
    assert (whole.name, whole.caption, whole.png[:8]) == ("page-01.png", "", PNG)
    assert [item.page for item in reader.figures()] == [2]


def test_the_command(paper: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    text = runner.invoke(app, ["read-paper", str(paper), "--pages", "1"])
    assert (text.exit_code, "luminosity is 35.9" in text.stdout) == (0, True)
    value = json.loads(
        runner.invoke(app, ["read-paper", str(paper), "--figures", str(tmp_path / "f"), "--json"]).stdout
    )
    assert [(item["page"], Path(item["path"]).read_bytes()[:8]) for item in value["figures"]] == [(2, PNG)]
    refused = runner.invoke(app, ["read-paper", str(paper), "--pages", "7"])
    assert isinstance(refused.exception, ExpbenchError)
    assert refused.exception.kind is FailureKind.USAGE
    missing = runner.invoke(app, ["read-paper", str(tmp_path / "none.pdf")])
    assert isinstance(missing.exception, ExpbenchError)


# --- beside a container ----------------------------------------------------------------------------------------------


class Beside:
    """A workspace with its companion; `directory` is short, as a socket's path must be."""

    def __init__(self, tree: Path, directory: Path, folder: EpisodeFolder, told: list[Event]) -> None:
        self.tree, self.directory, self.folder, self.told = tree, directory, folder, told

    def client(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": os.environ["PATH"], "EXPBENCH_READ_PAPER": str(self.directory / SOCKET)}
        return subprocess.run(
            ["bin/read-paper", *arguments], cwd=self.tree, env=env, capture_output=True, text=True, check=False
        )

    def raw(self, data: bytes) -> bytes:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(str(self.directory / SOCKET))
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return connection.makefile("rb").readline()


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    root = tmp_path_factory.mktemp("beside")
    publish(root / "source")
    task = load_one(root / "source", root / "scratch", build=True)
    folder = EpisodeFolder(root / "episode")
    folder.agent_logs.mkdir(parents=True)
    told: list[Event] = []
    assert task.masked_repository is not None
    with tempfile.TemporaryDirectory() as short, RULES.companion(task, folder, Path(short), told.append) as variables:
        assert variables == {"EXPBENCH_READ_PAPER": f"/harness/{SOCKET}"}
        assert (Path(short) / SOCKET).stat().st_mode & 0o006 == 0o006
        yield Beside(task.masked_repository, Path(short), folder, told)


def test_a_client_reads_text_and_figures(beside: Beside) -> None:
    text = beside.client("papers/P-1.pdf", "--pages", "1")
    assert (text.returncode, "luminosity is 35.9" in text.stdout) == (0, True), text.stderr
    assert text.stdout.startswith("[P-1.pdf: 3 pages, showing 1]")
    figures = beside.client("papers/P-1.pdf", "--figures", "--pages", "2")
    assert (figures.returncode, "figure-1-page-02.png  page 2" in figures.stdout) == (0, True), figures.stderr
    assert (beside.tree / "papers" / "figures" / "figure-1-page-02.png").read_bytes().startswith(PNG)
    other = beside.client("papers/P-1.pdf", "--figures", "--pages", "1", "--output-dir", "shown")
    assert other.returncode == 0
    assert (beside.tree / "shown" / "page-01.png").is_file()
    log = [json.loads(line) for line in (beside.folder.agent_logs / "read-paper.jsonl").read_text().splitlines()]
    assert {"pages": "2", "figures": True, "images": 1} in log
    assert any("read-paper: pages 2" in str(event) for event in beside.told)


def test_a_client_gets_errors_it_can_use(beside: Beside) -> None:
    for arguments, message in (
        (("papers/none.pdf",), "no file"),
        (("TASK.md",), "only papers/P-1.pdf"),
        (("papers/P-1.pdf", "--pages", "44"), "the paper has 3 pages"),
        (("papers/P-1.pdf", "--pages", "../x"), "no page and no range"),
    ):
        done = beside.client(*arguments)
        assert (done.returncode, message in done.stderr) == (1, True), done


@pytest.mark.parametrize(
    "data",
    [b"\n", b"\xff\xfe\n", b"[1]\n", b'{"paper": 3}\n', b'{"paper": "P-1.pdf", "path": "/etc/passwd"}\n',
     b'{"paper": "' + b"x" * 10_000 + b'"}\n'],
)  # fmt: skip
def test_what_is_no_request_is_refused(beside: Beside, data: bytes) -> None:
    assert "no request" in json.loads(beside.raw(data))["error"]


def test_a_path_in_a_request_leads_nowhere(beside: Beside) -> None:
    answer = json.loads(beside.raw(b'{"paper": "../../../etc/passwd", "pages": ""}\n'))
    assert "only papers/P-1.pdf" in answer["error"]
