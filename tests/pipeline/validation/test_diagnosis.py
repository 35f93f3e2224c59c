"""Whose failure a failed run is: of data, network, key, module, library, limit, command, or of the code itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import FailureKind
from pipeline.sandbox.base import CommandResult, RunResult
from pipeline.validation import diagnosis
from pipeline.validation.diagnosis import Diagnosis, absent_data, diagnose, hints, missing_in_log, read_tail
from tests.pipeline.validation.support import make_snapshot

FILES = {"run.py": "x = 1\n", "lib/own.py": "x = 1\n", "data/here.csv": "a\n"}
TRACE = "Traceback (most recent call last):\n"


def cause(
    tmp_path: Path, *, error: str = "", printed: str = "", codes: tuple[int, ...] = (1,), message: str = "",
    failure: FailureKind = FailureKind.RUN_FAILED,
) -> Diagnosis:  # fmt: skip
    snapshot = make_snapshot(tmp_path / "tree", FILES)
    out = tmp_path / "out"
    out.mkdir()
    number = next((i for i, code in enumerate(codes) if code), len(codes) - 1)
    (out / f"{number}.stderr").write_text(error)
    (out / f"{number}.stdout").write_text(printed)
    result = RunResult(
        commands=tuple(CommandResult(exit_code=code) for code in codes), failure=failure, message=message
    )
    return diagnose(snapshot, result, out)


@pytest.mark.parametrize(
    ("error", "kind", "reason"),
    [
        ("ModuleNotFoundError: No module named 'torch.nn'", "module", "module `torch.nn` is not installed"),
        ("NameError: name 'xrange' is not defined", "module", "written for Python 2"),
        ("ImportError: libGL.so.1: cannot open shared object file", "library", "library `libGL.so.1` is missing"),
        ("KeyError: 'OPENAI_API_KEY'", "key", "needs the secret OPENAI_API_KEY"),
        ("HF_ACCESS_TOKEN is not set", "key", "needs the secret HF_ACCESS_TOKEN"),
        ("No matching distribution found for wheel2", "module", "it installs `wheel2` while it runs"),
        ("Temporary failure in name resolution", "network", "wants to download: Temporary failure in name resolution"),
        ("HTTPError: HTTP Error 403: Not recorded by the data phase", "network", "wants to download"),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: 'data/gone.csv'",
            "data", "`data/gone.csv` is not in the repository",
        ),
        ("cat: data/gone.csv: No such file or directory", "data", "`data/gone.csv` is not in the repository"),
        (
            "FileNotFoundError: Dataset not found: /home/somebody/gone.json.",
            "data", "`/home/somebody/gone.json` is not in the repository",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("stream", ["error", "printed"])
def test_what_the_environment_lacks_blocks(error: str, kind: str, reason: str, stream: str, tmp_path: Path) -> None:
    found = cause(tmp_path, **{stream: f"{TRACE}{error}\n"})
    assert (found.kind, found.blocked) == (kind, True)
    assert reason in found.reason


@pytest.mark.parametrize(
    "error",
    [
        "ModuleNotFoundError: No module named 'own'",  # the repository's own
        "ModuleNotFoundError: No module named 'lib.own'",
        "ModuleNotFoundError: No module named 'run'",
        "FileNotFoundError: [Errno 2] No such file or directory: 'here.csv'",  # it is there, in another folder
        "FileNotFoundError: [Errno 2] No such file or directory: 'config/gone.yaml'",  # no data
        "FileNotFoundError: [Errno 2] No such file or directory: '/sandbox/tree/data/here.csv'",
        "ValueError: bad shape",
    ],
)
def test_what_the_repository_has_is_the_codes_own_failure(error: str, tmp_path: Path) -> None:
    found = cause(tmp_path, error=TRACE + error + "\n")
    assert (found.kind, found.blocked) == ("code", False)
    assert found.reason == f"command 1 ended with exit code 1: {error}"


def test_a_path_of_somebodys_home_is_not_the_repositorys_file_of_that_name(tmp_path: Path) -> None:
    error = "FileNotFoundError: [Errno 2] No such file or directory: '/home/somebody/here.csv'\n"
    assert cause(tmp_path, error=TRACE + error).kind == "data"


def test_the_command_that_failed_is_the_one_that_is_read(tmp_path: Path) -> None:
    found = cause(tmp_path, codes=(0, 3), error="first\nlast words\n\n", printed="other\n")
    assert found.reason == "command 2 ended with exit code 3: last words"


def test_the_last_words_come_from_the_errors_then_the_output_then_the_machine(tmp_path: Path) -> None:
    assert cause(tmp_path / "a", printed="printed\n", message="said").reason.endswith("exit code 1: printed")
    assert cause(tmp_path / "b", message="said").reason.endswith("exit code 1: said")


@pytest.mark.parametrize(
    ("failure", "variable"),
    [(FailureKind.RUN_TIMEOUT, "WALL_S"), (FailureKind.RUN_OUT_OF_MEMORY, "MEMORY_MB"), (FailureKind.RUN_DISK_FULL, "DISK_MB")],
)  # fmt: skip
def test_a_limit_is_named_with_what_sets_it(failure: FailureKind, variable: str, tmp_path: Path) -> None:
    found = cause(tmp_path, failure=failure, message="after 5", error="No module named 'torch'\n")
    assert (found.kind, found.blocked) == ("limit", True)
    assert found.reason == f"the run hit a limit (after 5; EXPBENCH_LIMITS__{variable} sets it)"


def test_a_command_with_wrong_arguments_is_no_failure_of_the_code(tmp_path: Path) -> None:
    error = "usage: run.py [-h] --data DATA\nrun.py: error: the following arguments are required: --data\n"
    found = cause(tmp_path / "a", error=error, codes=(2,))
    assert (found.kind, found.blocked) == ("usage", True)
    assert found.reason.endswith("run.py: error: the following arguments are required: --data")
    assert cause(tmp_path / "b", error=error, codes=(1,)).kind == "code"
    assert cause(tmp_path / "c", error="grep: bad\n", codes=(2,)).kind == "code"


def test_a_crash_after_the_program_said_that_data_is_missing(tmp_path: Path) -> None:
    """Seen: every input `MISSING, skipping`, then a division by the number of inputs."""
    crash = TRACE + "ZeroDivisionError: division by zero\n"
    found = cause(tmp_path / "a", error=crash, printed="start\n  dataset a.csv missing, skipping\n")
    assert (found.kind, found.blocked) == ("data", True)
    assert "the run says: `dataset a.csv missing, skipping`, and ended with: ZeroDivisionError" in found.reason
    assert cause(tmp_path / "b", error=crash, printed="a1: MISSING\n").kind == "code"
    assert cause(tmp_path / "e", error="failed\n", printed="dataset a.csv missing\n").kind == "code"


def test_a_library_in_a_warning_is_not_what_the_traceback_is_about(tmp_path: Path) -> None:
    warning = "libcudart.so.11: cannot open shared object file\n"
    assert cause(tmp_path / "a", error=warning + TRACE + "ValueError: bad\n").kind == "code"
    assert cause(tmp_path / "b", error=TRACE + warning).kind == "library"


def test_modules_of_a_log_once_each_and_none_of_python() -> None:
    log = "".join(f"ModuleNotFoundError: No module named {name!r}\n" for name in ("b", "a", "b", "tkinter"))
    log += "Missing optional dependency 'OpenPyXL'\n"
    assert missing_in_log(log) == ("b", "a", "openpyxl")


def test_lines_that_say_that_something_was_not_there() -> None:
    logs = ["fine\n", "no files here\nthe dataset was downloaded\n   " + "no csv found " * 30 + "\n"]
    assert absent_data(logs) == "no files here"
    assert absent_data(["missing values: 3\n", "all data there\n"]) == ""
    assert len(absent_data([logs[1].split("\n")[2]])) == 160
    assert hints(["fine\n", "x\n  skipping fold 3\n"]) == "skipping fold 3"
    assert hints(["fine\n"]) == ""


def test_only_the_end_of_a_log_is_read_and_without_colours(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"early\n" + b"x" * diagnosis._TAIL + b"\x1b[31mred\x1b[0m")
    text = read_tail(tmp_path / "log")
    assert "early" not in text
    assert text.endswith("xred")
    assert read_tail(tmp_path / "none") == ""
