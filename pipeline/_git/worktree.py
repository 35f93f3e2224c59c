"""Which changes of a local work tree are not in its commit, asked without the repository's configuration.

The index is copied beside our mirror and compared there: filters, fsmonitor and hooks that the repository configures
are unknown to the mirror, so `git status` cannot start them.
"""

from __future__ import annotations

import shutil

from pipeline._git.export import COMPONENT
from pipeline._git.mirror import Mirror
from pipeline._git.run import run_git, shown
from pipeline.schema import Problem, Severity

__all__ = ["uncommitted"]

_NAMED = 5
_STATUS_S = 120.0


def uncommitted(mirror: Mirror, commit: str) -> list[Problem]:
    """A problem when the work tree differs from `commit`; empty for bare and remote repositories."""
    local = mirror.local
    if local is None or local.work_tree is None:
        return []
    index = local.git_dir / "index"
    if index.is_file():
        # The modification time must stay: git compares it with those of the files ("racily clean" entries).
        shutil.copy2(index, mirror.git_dir / "index")
    result = run_git(
        mirror.git_dir, "status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignore-submodules=all",
        "--no-renames", options=["-c", "core.bare=false", f"--work-tree={local.work_tree}"], timeout_s=_STATUS_S,
    )  # fmt: skip
    if result.code != 0:
        cause = result.stderr.splitlines()[-1] if result.stderr else "no reason given"
        return [
            Problem(
                component=COMPONENT, where=".", severity=Severity.INFO,
                message=f"whether the work tree has uncommitted changes is not known ({shown(cause)})",
            )
        ]  # fmt: skip
    entries = [line for line in result.stdout.split(b"\0") if len(line) > 3]
    changed = sorted(shown(line[3:]) for line in entries if not line.startswith(b"?? "))
    untracked = sorted(shown(line[3:]) for line in entries if line.startswith(b"?? "))
    parts = [
        f"{len(names)} {label} ({', '.join(names[:_NAMED])}{', ...' if len(names) > _NAMED else ''})"
        for label, names in (("changed", changed), ("untracked", untracked))
        if names
    ]
    if not parts:
        return []
    severity = Severity.WARNING if changed else Severity.INFO
    message = f"uncommitted files are not used, only commit {commit[:12]}: {'; '.join(parts)}"
    return [Problem(component=COMPONENT, where=".", message=message, severity=severity)]
