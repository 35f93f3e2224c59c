"""What the graders read of an episode: events, patch, response and the files that were handed in, each loaded once.

Everything in here was said or made by an agent: data, looked at and never followed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import BaseModel, ConfigDict

from evaluation.episode import EpisodeFolder
from evaluation.integrity.patch import PatchFile, apply_hunks, parse_patch
from evaluation.integrity.shell import SimpleCommand, commands_in_python, here_documents, read_commands
from evaluation.submission import REPRODUCE, RESPONSE, Submission
from evaluation.task import EvaluationTask
from evaluation.trajectory import CommandRun, Event, FileChange, ModelTurn, ToolResult, TrajectoryHead, Utterance
from evaluation.trajectory_io import read_trajectory
from evaluation.verdicts import ExecutionReport
from pipeline.errors import ExpbenchError
from pipeline.schema import Problem, Severity
from pipeline.yamlio import load_yaml

__all__ = [
    "LIMIT",
    "Material",
    "Output",
    "Written",
    "first_word",
    "is_code",
    "load_material",
    "normalised",
]

LIMIT: Final = 8_000_000
"""Bytes of one text that are looked at; a patch is limited by the harness to less."""
_CODE: Final = (
    ".py",
    ".ipynb",
    ".sh",
    ".bash",
    ".r",
    ".jl",
    ".m",
    ".pl",
    ".lua",
    ".js",
    ".ts",
    ".c",
    ".cc",
    ".cpp",
    ".cu",
)


class Output(NamedTuple):
    """What an event printed."""

    seq: int
    text: str
    truncated: bool


class Written(NamedTuple):
    """A text that an agent wrote out itself: with a file tool, a here-document, or an echo into a file."""

    seq: int
    path: str
    text: str


@dataclass
class Material:
    """One episode as its graders see it."""

    task: EvaluationTask
    submission: Submission
    head: TrajectoryHead | None
    events: tuple[Event, ...]
    patch: str
    reproduce: str
    response_text: str
    files: Path | None = None
    """Directory with files that were handed in whole, where the harness keeps one."""
    problems: list[Problem] = field(default_factory=list)
    execution: ExecutionReport | None = None
    """The re-execution, where there was one already."""
    network: tuple[str, ...] | None = None
    """Hosts that the run allows beside the model, empty for none; None: the run's policy is not known."""

    @cached_property
    def patch_files(self) -> list[PatchFile]:
        """The patch taken apart, by path."""
        return parse_patch(self.patch)

    @cached_property
    def _plain_commands(self) -> list[tuple[CommandRun, list[SimpleCommand]]]:
        return [(event, read_commands(event.command)) for event in self.events if isinstance(event, CommandRun)]

    @cached_property
    def commands(self) -> list[tuple[CommandRun, list[SimpleCommand]]]:
        """Executed command lines with the simple commands in them, those of scripts that the agent wrote included."""
        found = []
        for event, commands in self._plain_commands:
            inner = [*commands]
            for path, text in self.programs_of(event):
                if path.endswith((".sh", ".bash")):
                    inner += read_commands(text)
                else:
                    inner += [command for line in commands_in_python(text) for command in read_commands(line)]
            found.append((event, inner))
        return found

    def programs_of(self, event: CommandRun) -> list[tuple[str, str]]:
        """(path, text) of programs that the agent wrote, by the time of this command, and that the command starts."""
        latest: dict[str, Written] = {}
        for written in self.written:
            if written.seq <= event.seq and written.path.endswith((".py", ".sh", ".bash")):
                latest[Path(written.path).name] = written
        if event.observed and not _starts_programs(event.command):
            return []
        words = {Path(word).name for word in re.findall(r"[^\s'\";|&()<>=]+", event.command)}
        words |= {f"{match}.py" for match in re.findall(r"-m\s+([\w.]+)", event.command)}
        return [(item.path, item.text) for name, item in sorted(latest.items()) if name in words]

    @cached_property
    def outputs(self) -> list[Output]:
        """What commands and tools gave back, in order."""
        found = []
        for event in self.events:
            if isinstance(event, CommandRun) and event.output:
                found.append(Output(event.seq, event.output, event.truncated))
            elif isinstance(event, ToolResult) and event.output:
                found.append(Output(event.seq, event.output, False))
        return found

    @cached_property
    def written(self) -> list[Written]:
        """Texts that the agent typed into files, in order."""
        found = [Written(e.seq, e.path, e.text) for e in self.events if isinstance(e, FileChange) and e.text]
        for event, commands in self._plain_commands:
            for opening, body in here_documents(event.command)[1]:
                target = re.search(r">{1,2}\s*([^\s<>|;&]+)", opening)
                found.append(Written(event.seq, target[1] if target else "", body))
            found += [
                Written(event.seq, command.writes[0], " ".join(command.argv[1:]))
                for command in commands
                if command.name in {"echo", "printf"} and command.writes
            ]
        return sorted(found, key=lambda item: (item.seq, item.path))

    @cached_property
    def said(self) -> list[tuple[int, str]]:
        """What the agent itself said, turn by turn."""
        found = []
        for event in self.events:
            if isinstance(event, ModelTurn) and (event.text or event.reasoning):
                found.append((event.seq, f"{event.reasoning}\n{event.text}".strip()))
            elif isinstance(event, Utterance) and event.role == "agent":
                found.append((event.seq, event.text))
        return found

    @cached_property
    def final_texts(self) -> dict[str, str]:
        """Content of each text file that the patch adds or changes, as it is at the end.

        Of a changed file whose original is not at hand, or does not fit, the added lines alone.
        """
        found = {}
        for file in self.patch_files:
            if file.action == "deleted" or file.binary:
                continue
            kept = self._kept_text(file.path)
            if kept is not None:
                found[file.path] = kept
                continue
            original = "" if file.action == "added" else self._masked_text(file.path)
            applied = None if original is None else apply_hunks(original, file.hunks)
            found[file.path] = file.added_text if applied is None else applied
        if self.reproduce and REPRODUCE not in found:
            found[REPRODUCE] = self.reproduce
        return found

    def _kept_text(self, path: str) -> str | None:
        """The file as the harness kept it beside the patch."""
        if self.files is None:
            return None
        target = (self.files / path).resolve()
        return read_text(target) if target.is_relative_to(self.files.resolve()) and target.is_file() else None

    def _masked_text(self, path: str) -> str | None:
        root = self.task.masked_repository
        if root is None:
            return None
        target = (root / path).resolve()
        if not target.is_relative_to(root.resolve()) or not target.is_file():
            return None
        return read_text(target)

    @cached_property
    def code(self) -> dict[str, str]:
        """Final texts of the files that are programs."""
        return {path: text for path, text in self.final_texts.items() if is_code(path)}


_INTERPRETERS: Final = re.compile(
    r"^(?:\S*/)?(?:python[\d.]*|bash|sh|dash|zsh|env|nohup|setsid|timeout|nice|time|xargs)\s"
)


def _starts_programs(command: str) -> bool:
    """Is a program that was seen starting one that runs scripts, or a script? `rm run.py` runs nothing."""
    return bool(_INTERPRETERS.match(command)) or is_code(first_word(command))


def first_word(command: str) -> str:
    """What a command line starts; empty for one without a word (a program can be started without any argument)."""
    return next(iter(command.split(maxsplit=1)), "")


def is_code(path: str) -> bool:
    """Is the file a program (a notebook counts)?"""
    return path.lower().endswith(_CODE)


def normalised(text: str) -> str:
    """One space between words: how quotes are compared."""
    return " ".join(text.split())


def read_text(path: Path) -> str:
    """At most `LIMIT` bytes of a file, undecodable bytes replaced; empty when there is no such file."""
    try:
        with path.open("rb") as stream:
            return stream.read(LIMIT).decode("utf-8", "replace")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return ""


def load_material(task: EvaluationTask, folder: EpisodeFolder, submission: Submission) -> Material:
    """Read an episode from its folder. Parts that are missing or damaged are said in `problems`, never invented."""
    problems: list[Problem] = []
    head: TrajectoryHead | None = None
    events: list[Event] = []
    try:
        head, events, problems = read_trajectory(folder.trajectory)
    except FileNotFoundError:
        problems = [_missing("trajectory.jsonl", "there is no trajectory: nothing that was done can be looked at")]
    except ExpbenchError as error:
        problems = [_missing("trajectory.jsonl", f"cannot be read: {error.cause}")]
    files = folder.submission / "files"
    return Material(
        task=task,
        submission=submission,
        head=head,
        events=tuple(events),
        patch=read_text(folder.submission / "patch.diff"),
        reproduce=read_text(folder.submission / REPRODUCE),
        response_text=read_text(folder.submission / RESPONSE),
        files=files if files.is_dir() else None,
        problems=list(problems),
        execution=_execution(folder, problems),
        network=_network_of_run(folder),
    )


def _execution(folder: EpisodeFolder, problems: list[Problem]) -> ExecutionReport | None:
    try:
        return ExecutionReport.model_validate_json(folder.execution.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        problems.append(_missing("execution.json", f"cannot be read: {str(error).splitlines()[0]}"))
        return None


class _Policy(BaseModel):
    """What of `run.yaml` says what an agent may reach (`evaluation.harness.run` has all of it)."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    network: tuple[str, ...] = ()


def _network_of_run(folder: EpisodeFolder) -> tuple[str, ...] | None:
    """The policy in `run.yaml`, three levels above the episode; None for an episode that lies elsewhere."""
    parents = folder.root.resolve().parents
    path = parents[2] / "run.yaml" if len(parents) > 2 else None
    return load_yaml(path, _Policy).network if path is not None and path.is_file() else None


def _missing(where: str, message: str) -> Problem:
    return Problem(component="integrity.material", where=where, message=message, severity=Severity.ERROR)
