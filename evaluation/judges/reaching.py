"""What a submission runs: the functions of the finished tree that its reproduction script and programs lead to.

The finished tree is the masked repository with the patch applied, held in memory: kept files are read where they lie,
changed ones from the patch. A library function that was never taken out counts as used only when the submission's own
code calls it.
"""

from __future__ import annotations

import ast
import posixpath
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from evaluation.integrity.material import Material
from evaluation.integrity.shell import SimpleCommand, read_commands
from pipeline.repository import RepositoryFile, RepositoryRef, Snapshot
from pipeline.tracing.callgraph import reach
from pipeline.tracing.program import Module, Program, dotted

__all__ = ["Use", "Used", "used_by"]

_MANY: Final = 40
"""Programs of one submission that are followed."""


class _Finished(Snapshot):
    """A snapshot some of whose files are in memory."""

    changed: dict[str, str]

    def text(self, path: str, limit: int = 2_000_000) -> str:
        """See `Snapshot.text`."""
        return self.changed[path][:limit] if path in self.changed else super().text(path, limit)


@dataclass(frozen=True, slots=True)
class Use:
    """Why a function counts as used: the line of the submission that leads to it."""

    where: str
    quote: str


@dataclass(slots=True)
class Used:
    """What the submission runs."""

    functions: dict[tuple[str, str], Use] = field(default_factory=dict)
    """(file, qualified name) -> the line that leads there."""
    files: dict[str, Use] = field(default_factory=dict)
    entries: tuple[str, ...] = ()


def used_by(material: Material) -> Used:
    """Follow the submission's programs; nothing where it has none, or where no repository is at hand."""
    changed = {path: text for path, text in material.final_texts.items() if not path.startswith("/")}
    if not changed:
        return Used()
    snapshot = _snapshot(material.task.masked_repository, changed, _deleted(material))
    known = {file.path for file in snapshot.files}
    program = Program(snapshot)
    started = _started(material, known)
    entries = [
        path
        for path in started
        if path.endswith((".py", ".ipynb")) and (path in changed or _is_set_up(started[path], path))
    ]
    own = [path for path in sorted(changed) if path.endswith((".py", ".ipynb")) and path not in entries]
    used = Used(entries=tuple(entries))
    for path in [*entries, *(own if not entries else _scripts(own, program))][:_MANY]:
        _follow(program, path, material, started, used)
    return used


def _is_set_up(command: str, path: str) -> bool:
    """Is a program that was left in the repository started with settings of the submission's own?

    Starting another experiment as it is carries out nothing of this one.
    """
    return bool(command.partition(posixpath.basename(path))[2].strip(" \"'"))


def _deleted(material: Material) -> set[str]:
    return {file.path for file in material.patch_files if file.action == "deleted"}


def _snapshot(root: Path | None, changed: dict[str, str], deleted: set[str]) -> _Finished:
    paths = set(changed)
    if root is not None and root.is_dir():
        paths |= {
            path.relative_to(root).as_posix()
            for path in root.rglob("*")
            if path.is_file() and not path.is_symlink() and ".git" not in path.relative_to(root).parts
        }
    files = tuple(RepositoryFile(path=path, size=0, sha256="") for path in sorted(paths - deleted))
    ref = RepositoryRef(url="finished", commit="0" * 40)
    return _Finished(ref=ref, root=root or Path("/nonexistent"), files=files, changed=changed)


def _started(material: Material, known: set[str]) -> dict[str, str]:
    """File of the tree -> the command line that starts it, from the reproduction script on through shell scripts."""
    found: dict[str, str] = {}
    waiting = [(material.reproduce, "")]
    for _ in range(_MANY):
        if not waiting:
            break
        text, base = waiting.pop(0)
        directory = base
        for command in read_commands(text):
            if command.name == "cd" and len(command.argv) > 1:
                directory = _joined(directory, command.argv[1])
                continue
            for path in _files_of(command, directory, known):
                if path in found:
                    continue
                found[path] = _line_with(text, path)
                if path.endswith((".sh", ".bash")) or posixpath.basename(path).lower() == "makefile":
                    waiting.append((material.final_texts.get(path) or _kept(material, path), ""))
    return found


def _joined(directory: str, target: str) -> str:
    if target.startswith(("/work", "$", '"$')) or target in {".", "~", "-"}:
        return posixpath.normpath(target.removeprefix("/work").lstrip("/") or ".") if target.startswith("/work") else ""
    return posixpath.normpath(posixpath.join(directory, target))


def _files_of(command: SimpleCommand, directory: str, known: set[str]) -> list[str]:
    found = []
    words = list(command.argv)
    if "-m" in words[:-1]:
        dotted = words[words.index("-m") + 1].replace(".", "/")
        found += [path for path in (f"{dotted}.py", f"{dotted}/__main__.py") if path in known]
    for word in words:
        path = posixpath.normpath(posixpath.join(directory, word.removeprefix("/work/"))).removeprefix("./")
        if path in known:
            found.append(path)
    return found


def _kept(material: Material, path: str) -> str:
    root = material.task.masked_repository
    target = root / path if root is not None else None
    return target.read_text("utf-8", "replace") if target is not None and target.is_file() else ""


def _line_with(text: str, path: str) -> str:
    name = posixpath.basename(path).removesuffix(".py")
    return next((line.strip() for line in text.split("\n") if name in line), "")[:200]


def _scripts(paths: list[str], program: Program) -> list[str]:
    """Of the programs that the reproduction script does not name, those that could be started by themselves."""
    found = []
    for path in paths:
        module = program.module(path)
        tree = module.unit.tree if module is not None else None
        if tree is not None and any(
            isinstance(node, ast.If) and "__name__" in ast.unparse(node.test) for node in tree.body
        ):
            found.append(path)
    return found


def _follow(program: Program, path: str, material: Material, started: dict[str, str], used: Used) -> None:
    module = program.module(path)
    if module is None or module.unit.tree is None:
        return
    reaching = reach(program, module)
    own = path in material.final_texts
    lines = module.unit.code.split("\n")
    start = Use("reproduce.sh", started.get(path, "")) if path in started else Use(f"patch: {path}", "")
    by_key = {item.definition.key: item for item in reaching.functions}
    for item in reaching.functions:
        root = item
        for _ in range(len(by_key)):  # up to the call in the entry's own file
            if (
                root.caller is None
                or root.caller not in by_key
                or (by_key[root.caller].definition.path != path and root.caller[0] == path)
            ):
                break
            root = by_key[root.caller]
        use = start
        if own:
            number = root.line
            line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
            use = Use(f"patch: {path}:{module.unit.line(number)}", line[:200]) if line else start
        used.functions.setdefault((item.definition.path, item.definition.name), use)
        used.files.setdefault(item.definition.path, use)
    for name in [path, *reaching.files]:
        reached = program.module(name) if name in material.final_texts else None
        if reached is not None and reached.unit.tree is not None:
            _referred(program, reached, name, used)
    for name in reaching.files:
        used.files.setdefault(name, start)


def _referred(program: Program, module: Module, path: str, used: Used) -> None:
    """Functions that the submission's code names without calling them there: tables of methods, arguments."""
    assert module.unit.tree is not None
    lines = module.unit.code.split("\n")
    for node in ast.walk(module.unit.tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load) and (name := dotted(node)):
            for definition in program.definitions(module, name):
                use = Use(f"patch: {path}:{module.unit.line(node.lineno)}", lines[node.lineno - 1].strip()[:200])
                used.functions.setdefault((definition.path, definition.name), use)
                used.files.setdefault(definition.path, use)
