"""Where a submission uses a library that its task bans: imports, dynamic ones too, installations, copies.

Programs, notebooks, requirement files and the trajectory's commands are read by `banned_uses`; what the agent brings
along is looked at by `banned_copies`. A name that is not known before a program runs is a suspicion. Non-goals: native
code, and what a library that is allowed does by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from evaluation.families.table.banned_copies import copies
from evaluation.families.table.banned_list import BannedLibrary
from evaluation.families.table.banned_uses import Use, uses_in_file, uses_in_shell
from evaluation.integrity.material import Material
from evaluation.integrity.shell import read_commands
from evaluation.trajectory import CommandRun
from evaluation.verdicts import Finding, ViolationKind
from pipeline.task import Verdict
from pipeline.text import shorten

__all__ = ["banned_findings"]


def banned_findings(material: Material, banned: Sequence[BannedLibrary]) -> list[Finding]:
    """Violations and suspicions of a whole submission, by file and line, then by event.

    Args:
        material: patch, files and trajectory.
        banned: what the task bans; nothing is found where it bans nothing.
    """
    if not banned:
        return []
    known = {module: library for library in banned for module in (*library.modules, library.name.lower())}
    found: dict[tuple[str, str, str], Finding] = {}
    for finding in [*_in_files(material, known), *copies(material, known), *_on_the_way(material, known)]:
        found.setdefault((finding.where.rsplit(":", 1)[0], finding.reason, finding.verdict.value), finding)
    return list(found.values())


def _texts(material: Material) -> Callable[[str], str | None]:
    """Texts by the name of their file: as handed in, else as last written."""
    latest = {PurePosixPath(written.path).name: written.text for written in material.written}
    latest |= {PurePosixPath(path).name: text for path, text in material.final_texts.items()}
    return lambda path: latest.get(PurePosixPath(path).name)


def _in_files(material: Material, known: Mapping[str, BannedLibrary]) -> Iterator[Finding]:
    """What was handed in."""
    texts = _texts(material)
    for path, text in sorted(material.final_texts.items()):
        for use in uses_in_file(path, text, texts):
            yield from _findings(use, known, f"{path}:{use.line}", _line(text, use.line))


def _on_the_way(material: Material, known: Mapping[str, BannedLibrary]) -> Iterator[Finding]:
    """Programs that were run and removed again, and commands."""
    texts = _texts(material)
    for written in material.written:
        if written.path not in material.final_texts:
            for use in uses_in_file(written.path, written.text, texts):
                where = f"event {written.seq}: {written.path}"
                for finding in _findings(use, known, where, _line(written.text, use.line)):
                    yield finding.evolve(events=(written.seq,))
    for event, _ in material.commands:
        for use in uses_in_shell(event.command, texts):
            for finding in _findings(use, known, f"event {event.seq}", event.command):
                yield finding.evolve(events=(event.seq,))
        yield from _told(material, event, known)


def _told(material: Material, event: CommandRun, known: Mapping[str, BannedLibrary]) -> Iterator[Finding]:
    """A program that imports what its command line says, and a command line that says a banned library."""
    words = [word for command in read_commands(event.command) for word in command.argv[1:] if word.lower() in known]
    for path, text in material.programs_of(event) if words else ():
        if any(not use.module for use in uses_in_file(path, text)):
            use = Use(words[0].lower(), 1, f"starts {path}, which imports what it is told:")
            for finding in _findings(use, known, f"event {event.seq}", event.command):
                yield finding.evolve(events=(event.seq,))


def _findings(use: Use, known: Mapping[str, BannedLibrary], where: str, quote: str) -> Iterator[Finding]:
    library = known.get(use.module)
    if library is not None:
        verdict = Verdict.UNKNOWN if library.conditional else Verdict.FAIL
        condition = ", which is banned for some uses" if library.conditional else ", which the task bans"
        reason = f"{use.how} {library.name}{condition}"
    elif use.module == "":
        verdict, reason = Verdict.UNKNOWN, f"{use.how} a module whose name is not known before it runs"
    else:
        return
    yield Finding(
        kind=ViolationKind.BANNED_LIBRARY, verdict=verdict, where=where, quote=shorten(quote, 200), reason=reason
    )


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""
