"""The agent's workspace of a task: a git working tree of one commit (Collider-Bench B.2, B.5, C.2).

```
TASK.md  AGENTS.md  TOOLS.md  report.md
papers/<paper>.pdf  object_efficiencies/  results/<file>.yaml  bin/  tools/
```

The hidden reference is not among what is read here. `task.toml` is not given to the agent either.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Final

from evaluation.families.histogram.catalogue import CatalogueEntry
from evaluation.families.histogram.workspace_tools import WorkspaceTool, chosen_tools
from evaluation.recipes import as_repository
from pipeline.digests import digest_of, file_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.repository import RepositoryRef
from pipeline.scratch import scratch_directory

__all__ = ["PACKAGES", "build_workspace", "paper_pdf", "regular_files", "without_tool", "workspace_files"]

PACKAGES: Final = ("numpy==1.26.4", "pyyaml==6.0.2")
"""Of a task that names no environment: what its own tools and any analysis need."""
_FILES: Final = "evaluation.families.histogram.workspace_files"
_EFFICIENCIES: Final = "object_efficiencies"
_MOST_BYTES: Final = 256 << 20
"""Of one file that is given along; the largest published one is 3 MB."""
NULL_COMMIT: Final = "0" * 40


def paper_pdf(entry: CatalogueEntry) -> Path | None:
    """The paper's PDF, where the source holds it."""
    found = [path for path in regular_files(entry.shared / "paper") if path.suffix.lower() == ".pdf"]
    named = [path for path in found if path.stem == entry.task.paper]
    return next(iter(named or found), None)


def workspace_files(entry: CatalogueEntry, tools: Iterable[WorkspaceTool]) -> dict[str, Path | str]:
    """Every file of the workspace: its path there, and its source or its text."""
    task, chosen = entry.task, tuple(tools)
    files: dict[str, Path | str] = {
        "TASK.md": task.instructions.replace("{arxiv_id}", task.paper),
        f"results/{task.file}": entry.directory / "template" / task.file,
        "report.md": _text("report.md"),
    }
    pdf = paper_pdf(entry)
    if pdf is not None:
        files[f"papers/{task.paper}.pdf"] = pdf
    # a task's own files win over those that it shares, as published
    for folder in (entry.shared / _EFFICIENCIES, entry.directory / "artifacts"):
        files |= {f"{_EFFICIENCIES}/{path.relative_to(folder).as_posix()}": path for path in regular_files(folder)}
    for tool in chosen:
        files |= {name: _text(name) for name in tool.files}
    return files | _documents(task.paper, task.file, files, chosen, task.packages)


def build_workspace(entry: CatalogueEntry, scratch: Path, *, without: Iterable[str] = ()) -> Path:
    """Build it below `scratch`, or use again what an earlier call built from the same files.

    Raises:
        ExpbenchError: `USAGE`, a tool of `without` does not exist; `TOOL_MISSING`, git is; `DISK_FULL`.
    """
    left_out = tuple(sorted(without))
    files = workspace_files(entry, chosen_tools(left_out))
    contents = {name: file_digest(item) if isinstance(item, Path) else item for name, item in sorted(files.items())}
    return _repository(files, entry.task.id, scratch / f"{entry.task.id}-{digest_of(contents)[:12]}")


def without_tool(workspace: Path, task_id: str, paper: str, file: str, packages: tuple[str, ...], name: str) -> Path:
    """A workspace without one of the tools that it has: its files, and every mention of it, are gone.

    Raises:
        ExpbenchError: `USAGE`: there is no such tool.
    """
    there = tuple(tool for tool in chosen_tools() if (workspace / tool.files[0]).is_file())
    kept = tuple(tool for tool in chosen_tools([name]) if tool in there)
    gone = {path for tool in there if tool not in kept for path in tool.files}
    files: dict[str, Path | str] = {}
    for path in regular_files(workspace):
        inside = path.relative_to(workspace).as_posix()
        if inside not in gone and not inside.startswith(".git/"):
            files[inside] = path
    files |= _documents(paper, file, files, kept, packages)
    return _repository(files, task_id, workspace.with_name(f"{workspace.name}-without-{name}"))


def _repository(files: dict[str, Path | str], task_id: str, target: Path) -> Path:
    if (target / ".git").is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with scratch_directory(target.parent) as building:
        plain = Path(building) / "files"
        for name, item in sorted(files.items()):
            place = plain / PurePosixPath(name)
            place.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(item, Path):
                shutil.copyfile(item, place)
            else:
                place.write_text(item, encoding="utf-8")
            place.chmod(0o755 if name.startswith("bin/") else 0o644)
        ref = RepositoryRef(url=f"collider-bench:{task_id}", commit=NULL_COMMIT)
        made = as_repository(plain, ref, Path(building) / "tree")
        try:
            made.rename(target)
        except OSError:
            if not (target / ".git").is_dir():  # another process built the same in the meantime
                raise
    return target


def _documents(
    paper: str, file: str, files: dict[str, Path | str], tools: tuple[WorkspaceTool, ...], packages: tuple[str, ...]
) -> dict[str, str]:
    """`AGENTS.md` and `TOOLS.md`: they speak of what is there."""
    names = {tool.name for tool in tools}
    efficiencies = any(name.startswith(f"{_EFFICIENCIES}/") for name in files)
    software = ", ".join(f"`{pin}`" for pin in packages or PACKAGES)
    agents = _text("AGENTS.md").format(
        paper=paper,
        file=file,
        read_paper=" Read it with `bin/read-paper`." if "read-paper" in names else "",
        efficiencies=f"- `{_EFFICIENCIES}/`: detector efficiencies and other files of the analysis.\n"
        if efficiencies
        else "",
        cheats="\n".join(line.format(paper=paper) for tool in tools for line in tool.cheats),
    )
    rows = "\n".join(f"| `{tool.name}` | {tool.purpose} | `bin/{tool.name} --doc` |" for tool in tools)
    tools_text = _text("TOOLS.md").format(rows=rows, software=f"The Python environment has {software}.")
    return {"AGENTS.md": agents, "TOOLS.md": tools_text}


def _text(name: str) -> str:
    return resources.files(_FILES).joinpath(name).read_text(encoding="utf-8")


def regular_files(folder: Path) -> Iterator[Path]:
    """Regular files below a folder, sorted; links and what is hidden are left out.

    Raises:
        ExpbenchError: `RECORD_INVALID`: one is too large to be given along.
    """
    if folder.is_symlink() or not folder.is_dir():
        return
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        linked = any((folder / Path(*parts[:depth])).is_symlink() for depth in range(1, len(parts) + 1))
        if linked or not path.is_file() or any(part.startswith(".") for part in parts):
            continue
        if path.stat().st_size > _MOST_BYTES:
            raise ExpbenchError(
                FailureKind.RECORD_INVALID, str(path), f"it is larger than {_MOST_BYTES >> 20} MB",
                consequence="The task's workspace was not built", next_step="Remove it, or make it smaller",
            )  # fmt: skip
        yield path
