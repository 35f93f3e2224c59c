"""Why a run failed, read from its logs: data not at hand, network wanted, a module or library missing, a limit hit.

The point is whose failure it is. Data that nobody shipped, a download under a closed network or a missing key say
nothing about the code (verdict unknown); a traceback of the code itself does.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, Literal

from pipeline.errors import FailureKind
from pipeline.repository import Snapshot
from pipeline.sandbox.base import RunResult
from pipeline.schema import Record
from pipeline.validation.system_packages import PARTS_OF_PYTHON, missing_programs
from pipeline.validation.tracebacks import TRACEBACK, last_frame, refused_path

__all__ = [
    "Diagnosis",
    "absent_data",
    "diagnose",
    "hints",
    "is_own_module",
    "missing_in_log",
    "missing_path",
    "read_tail",
]

_TAIL: Final = 64 << 10
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
"""Notebooks colour their tracebacks: `\x1b[31mFileNotFoundError\x1b[39m: ...`."""
_MODULE = re.compile(r"(?:ModuleNotFoundError: |ImportError: |python[\d.]*: )No module named ['\"]?([A-Za-z_][\w.]*)")
_NEEDS_PACKAGE = re.compile(
    r"(?:requires|needs|install|Missing optional dependency) (?:the )?[`'\"]?"
    r"(openpyxl|xlrd|pyarrow|lxml|tables|jinja2|tabulate|sentencepiece|protobuf|accelerate)\b",
    re.IGNORECASE,
)
_LIBRARY = re.compile(r"(lib[\w+.-]+\.so(?:\.\d+)*): cannot open shared object file")
_NO_FILE = re.compile(
    r"(?:FileNotFoundError|NotADirectoryError|OSError|IOError)[^\n]*?(?:No such file or directory|not found)"
    r"[^'\"\n]*['\"]([^'\"\n]+)['\"]"
    r"|FileNotFoundError: ([^\n]*)"
    r"|(?:cat|ls|cp|head|tail): (?:cannot \w+ )?['‘]?([^'’:\n]+)['’]?: No such file"
)
_NETWORK = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Max retries exceeded|URLError|"
    r"NewConnectionError|ConnectionRefusedError|ConnectionError|Network is unreachable|getaddrinfo failed|"
    r"LocalEntryNotFoundError|OfflineModeIsEnabled|outgoing traffic has been disabled|Could not resolve host|"
    r"couldn't connect to|wget: unable to resolve|(?:Refused|Not recorded) by the data phase"
)
_PIP = re.compile(
    r"(?:No matching distribution found for|Could not find a version that satisfies the requirement) ([\w.\[\]-]+)"
)
_KEY = re.compile(
    r"KeyError: ['\"](\w*(?:API_KEY|TOKEN|SECRET|CREDENTIALS)\w*)['\"]|"
    r"(\w*(?:API_KEY|ACCESS_TOKEN))\b[^\n]*(?:not set|must be set|missing|required|not found)",
    re.IGNORECASE,
)
_HINT = re.compile(
    r"\b(?:skip(?:ped|ping)?|missing|not found|no such|unavailable|download|please (?:provide|put|place))\b",
    re.IGNORECASE,
)
_SAYS_ABSENT = re.compile(
    r"\b(?:no|without|missing|skip(?:s|ped|ping)?|absent|unavailable|not (?:found|available|exist\w*|present)|"
    r"(?:does|do|did) not exist|could not (?:find|load|open|read)|cannot (?:find|open)|please (?:provide|put|place)|"
    r"download)\b",
    re.IGNORECASE,
)
_DATA_NOUN = re.compile(
    r"\b(?:data(?:set|sets|base)?|corpus|corpora|files?|folder|director(?:y|ies)|paths?|pcaps?|images?|csv|parquet|"
    r"checkpoints?|weights|embeddings?|archive|\w+\.(?:csv|json|npz?|parquet|pkl|h5|hdf5|mat|zip|txt))\b",
    re.IGNORECASE,
)
_PYTHON_2 = re.compile(
    r"SyntaxError: Missing parentheses in call to ['\"](?:print|exec)|TabError: inconsistent use of tabs"
    r"|SyntaxError: (?:multiple exception types must be parenthesized|leading zeros in decimal integer)"
    r"|NameError: name '(?:xrange|unicode|raw_input|basestring|unichr)' is not defined"
    r"|ModuleNotFoundError: No module named '(?:urllib2|cPickle|ConfigParser|StringIO|Queue|HTMLParser|urlparse)'"
)
_USAGE_ERROR: Final = 2
_USAGE: Final = re.compile(r"^usage: |^[\w./-]+: error: |^Usage: |^Error: (?:Missing|No such|Invalid)", re.MULTILINE)
"""argparse and click end so when the arguments are wrong; that is no failure of what would have been computed."""
_CODE: Final = (".py", ".sh", ".yaml", ".yml", ".toml", ".cfg", ".ini", ".ipynb", ".pyx", ".r", ".jl", ".m")
_LIMITS: Final = {
    FailureKind.RUN_TIMEOUT: "WALL_S",
    FailureKind.RUN_OUT_OF_MEMORY: "MEMORY_MB",
    FailureKind.RUN_DISK_FULL: "DISK_MB",
    FailureKind.RUN_PROCESS_LIMIT: "PIDS",
    FailureKind.RUN_OUTPUT_LIMIT: "OUTPUT_MB",
}
"""Each limit, and the end of the name of the variable that sets it (see `pipeline.settings`)."""


class Diagnosis(Record):
    """Whose failure a failed run is."""

    kind: Literal["data", "network", "key", "module", "library", "limit", "usage", "code"]
    blocked: bool
    """The code could not show what it does: verdict unknown."""
    reason: str


def diagnose(snapshot: Snapshot, result: RunResult, out: Path, *, masked: Sequence[str] = ()) -> Diagnosis:
    """The cause of a failed run.

    Args:
        snapshot: the repository the run was made on.
        result: a run whose `failure` is set.
        out: its output directory.
        masked: further paths that are the repository's own, never missing data.
    """
    own = {file.path for file in snapshot.files} | set(masked)
    index = next((i for i, command in enumerate(result.commands) if command.exit_code != 0), len(result.commands) - 1)
    error = read_tail(out / f"{index}.stderr")
    log = error + "\n" + read_tail(out / f"{index}.stdout")
    if result.failure in _LIMITS:
        detail = result.message or str(result.failure)
        reason = f"the run hit a limit ({detail}; EXPBENCH_LIMITS__{_LIMITS[result.failure]} sets it)"
        return Diagnosis(kind="limit", blocked=True, reason=reason)
    code = result.commands[index].exit_code if 0 <= index < len(result.commands) else None
    last = _last_line(error) or _last_line(log) or result.message
    if code == _USAGE_ERROR and _USAGE.search(error):
        reason = f"the command is not complete or not right for its script: {last}"
        return Diagnosis(kind="usage", blocked=True, reason=reason)
    failed = Diagnosis(kind="code", blocked=False, reason=f"command {index + 1} ended with exit code {code}: {last}")
    return (
        _missing(own, log)
        or _data(own, snapshot, log, error)
        or _said(log, read_tail(out / f"{index}.stdout"), last)
        or failed
    )


def _said(log: str, printed: str, last: str) -> Diagnosis | None:
    """A crash after the program itself said that data was not there: what follows from nothing is no result.

    Seen: every input file `MISSING, skipping`, then a division by the number of inputs.
    """
    if TRACEBACK not in log:
        return None
    line = absent_data([printed])
    if not line:
        return None
    reason = f"blocked: data (the run says: `{line}`, and ended with: {last})"
    return Diagnosis(kind="data", blocked=True, reason=reason)


def _missing(own: Collection[str], log: str) -> Diagnosis | None:
    """A module or shared library that the environment lacks; the repository's own modules do not count."""
    if old := _PYTHON_2.search(log):
        reason = f"blocked: environment (written for Python 2, which no sandbox has: {old[0]})"
        return Diagnosis(kind="module", blocked=True, reason=reason)
    modules: list[str] = _MODULE.findall(log)
    if modules and not is_own_module(modules[-1], own):
        reason = f"blocked: environment (module `{modules[-1]}` is not installed)"
        return Diagnosis(kind="module", blocked=True, reason=reason)
    # a library that a warning names (TensorFlow's for a GPU) is not what a traceback below it is about
    if not modules and (library := _LIBRARY.search(log, max(0, log.rfind(TRACEBACK)))):
        reason = f"blocked: environment (library `{library[1]}` is missing)"
        return Diagnosis(kind="library", blocked=True, reason=reason)
    if not modules and (packages := missing_programs(log)):
        reason = f"blocked: environment (a program of {', '.join(packages)} is not installed)"
        return Diagnosis(kind="library", blocked=True, reason=reason)
    return None


def _data(own: Collection[str], snapshot: Snapshot, log: str, error: str) -> Diagnosis | None:
    """Data, network or a secret that a validation does not have."""
    refused = refused_path(error, snapshot) or refused_path(log, snapshot)
    if _MODULE.search(log) or (refused is not None and refused.writing):
        return None  # a place that it may not write to is no data
    if key := _KEY.search(log):
        return Diagnosis(kind="key", blocked=True, reason=f"blocked: data (needs the secret {key[1] or key[2]})")
    if package := _PIP.search(log):
        reason = f"blocked: environment (it installs `{package[1]}` while it runs, which needs a network)"
        return Diagnosis(kind="module", blocked=True, reason=reason)
    if network := _NETWORK.search(log):
        frame = last_frame(error, snapshot) or last_frame(log, snapshot)
        wanted = f"`{frame.code or 'code'}` at {frame.path}:{frame.line}" if frame is not None else network[0]
        reason = f"blocked: data (wants to download: {wanted}; runs have no network)"
        return Diagnosis(kind="network", blocked=True, reason=reason)
    # programs that log their own traceback do so on either stream
    path = missing_path(error or log) or missing_path(log)
    if path and _is_data(path, own):
        return Diagnosis(kind="data", blocked=True, reason=f"blocked: data (`{path}` is not in the repository)")
    return None


def missing_path(log: str) -> str:
    """The last path that a log says is not there."""
    paths = [next(group for group in match.groups() if group).strip() for match in _NO_FILE.finditer(log)]
    # `FileNotFoundError: Dataset not found: /home/somebody/data.json` in the program's own words
    if paths and (spoken := re.search(r"(?:^|[\s:'\"(])((?:/|\.{0,2}/|\w[\w.-]*/)[\w./-]+)", paths[-1])):
        return spoken[1].rstrip(".")
    return paths[-1] if paths else ""


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""


def read_tail(path: Path) -> str:
    """The last 64 kB of a log without colours; empty when there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as stream:
        stream.seek(max(0, path.stat().st_size - _TAIL))
        return _ANSI.sub("", stream.read().decode("utf-8", "replace"))


def is_own_module(module: str, own: Collection[str]) -> bool:
    """Is a missing module one of the repository itself (masked, or not on the path)?"""
    top = module.split(".", maxsplit=1)[0]
    return any(
        path.endswith(".py") and (posixpath.basename(path) == f"{top}.py" or top in path.split("/")[:-1])
        for path in own
    )


def _is_data(path: str, own: Collection[str]) -> bool:
    """Is a missing path data, rather than a script, a configuration or something that was masked?"""
    name = posixpath.basename(path.strip().rstrip("/"))
    if name.lower().endswith(_CODE):
        return False
    if posixpath.isabs(path.strip()):
        # `/home/somebody/run/data.json` is not the repository's `out/data.json`; `/sandbox/tree/out/data.json` would be
        return not any(path.strip().rstrip("/").endswith(f"/{known}") for known in own)
    return not any(posixpath.basename(known) == name for known in own)


def missing_in_log(log: str) -> tuple[str, ...]:
    """Modules that a log says are not installed, in order of first mention."""
    found = [*_MODULE.findall(log), *(name.lower() for name in _NEEDS_PACKAGE.findall(log))]
    return tuple(dict.fromkeys(name.rstrip(".") for name in found if name.strip("._") not in PARTS_OF_PYTHON))


def absent_data(logs: Sequence[str]) -> str:
    """The first printed line by which a program that ended well says that data was not there; empty without one."""
    return _first_line(logs, _SAYS_ABSENT, _DATA_NOUN)


def hints(logs: Sequence[str]) -> str:
    """The first printed line that says something was skipped or not found; empty when there is none."""
    return _first_line(logs, _HINT)


def _first_line(logs: Sequence[str], *patterns: re.Pattern[str]) -> str:
    lines = (line for log in logs for line in log.splitlines() if all(pattern.search(line) for pattern in patterns))
    return next((line.strip()[:160] for line in lines), "")
