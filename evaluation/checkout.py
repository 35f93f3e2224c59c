"""A fresh checkout of a masked repository, and an agent's patch applied to it.

Both happen on our side, in a directory of our own, with git's plumbing: objects are read through a bare repository
that we make, so no configuration, hook, filter or attribute of the masked repository or of the patch takes effect. Git
itself refuses patches that leave the tree, reach through a symbolic link, or touch `.git`.

Non-goal: running anything. What a patch says is data until a sandbox runs it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, Literal

from evaluation.lock import repository_commit
from masking.apply import ATTRIBUTES
from pipeline._git.run import GitResult, run_git, shown
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import remove_tree
from pipeline.schema import Problem, Record

__all__ = ["Checkout", "PatchedPath", "fresh_checkout"]

_COMPONENT: Final = "evaluation.checkout"
_LINK: Final = "120000"
_GITLINK: Final = "160000"


class PatchedPath(Record):
    """A path that the patch changed, as git sees the result."""

    path: str
    action: Literal["added", "modified", "deleted"]
    link: bool = False


class Checkout:
    """The files of the one commit below `tree`, before or after a patch."""

    def __init__(self, git_dir: Path, tree: Path, commit: str) -> None:
        self.tree = tree
        self.commit = commit
        self._git_dir = git_dir

    def apply(self, patch: Path) -> str:
        """Apply a patch as a whole or not at all; returns why it could not be applied, empty when it was.

        Args:
            patch: unified diff with binary parts, as `git diff --binary` writes it; an empty file changes nothing.
        """
        if patch.stat().st_size == 0:
            return ""
        done = self._git("apply", "--index", "--binary", "--whitespace=nowarn", "--", str(patch.absolute()))
        return "" if done.code == 0 else _last_line(done)

    def changes(self) -> tuple[PatchedPath, ...]:
        """What differs from the commit, sorted by path; renames are a deletion and an addition.

        Raises:
            ExpbenchError: `INTERNAL`, git failed.
        """
        done = self._git("diff-index", "--cached", "--raw", "-z", "--no-renames", "--abbrev=40", self.commit, "--")
        _check(done, "diff-index")
        fields = done.stdout.split(b"\0")
        found = []
        for head, raw in zip(fields[0::2], fields[1::2], strict=False):
            _, mode, _, _, status = head.decode("ascii").split(" ")
            action: Literal["added", "modified", "deleted"] = "modified"
            if status.startswith("A"):
                action = "added"
            elif status.startswith("D"):
                action = "deleted"
            found.append(PatchedPath(path=shown(raw), action=action, link=mode in {_LINK, _GITLINK}))
        return tuple(sorted(found, key=lambda item: item.path))

    def outward_links(self) -> tuple[Problem, ...]:
        """Symbolic links whose target lies outside the tree; they are copied as links and lead nowhere in a sandbox."""
        problems = []
        root = os.path.realpath(self.tree)
        for change in self.changes():
            path = self.tree / change.path
            if change.link and path.is_symlink():
                target = os.path.normpath(os.path.join(root, os.path.dirname(change.path), os.readlink(path)))  # noqa: PTH115, PTH118, PTH120
                if target != root and not target.startswith(root + os.sep):
                    message = f"a symbolic link out of the repository (to {os.readlink(path)})"  # noqa: PTH115
                    problems.append(Problem(component=_COMPONENT, where=change.path, message=message))
        return tuple(problems)

    def _git(self, *arguments: str) -> GitResult:
        options = [
            "-c",
            "core.bare=false",
            "-c",
            "core.quotePath=false",
            f"--work-tree={self.tree}",
            "-C",
            str(self.tree),
        ]
        return run_git(self._git_dir, *arguments, options=options)


def fresh_checkout(repository: Path, into: Path) -> Checkout:
    """Write the files of a masked repository's commit to `into/tree`.

    The commit's objects are the source, not the working tree: what somebody changed there plays no part.

    Args:
        repository: masked repository with `.git` of one commit.
        into: directory of ours; what is there is removed.

    Raises:
        ExpbenchError: `TOOL_MISSING`, git is not installed; `INTERNAL`, the repository cannot be read; `DISK_FULL`.
    """
    commit = repository_commit(repository)
    remove_tree(into)
    tree, git_dir = into / "tree", into / "git"
    tree.mkdir(parents=True)
    _check(run_git(None, "init", "--quiet", "--bare", "--template=", "--", str(git_dir)), "init")
    alternates = git_dir / "objects" / "info" / "alternates"
    alternates.parent.mkdir(parents=True, exist_ok=True)
    alternates.write_text(f"{(repository / '.git' / 'objects').resolve()}\n", encoding="utf-8")
    (git_dir / "info").mkdir(exist_ok=True)
    (git_dir / "info" / "attributes").write_text(ATTRIBUTES, encoding="utf-8")
    checkout = Checkout(git_dir, tree, commit)
    _check(checkout._git("read-tree", commit), "read-tree")
    _check(checkout._git("checkout-index", "--all", "--force", "--index"), "checkout-index")
    return checkout


def _check(done: GitResult, command: str) -> None:
    if done.code == 0:
        return
    full = "No space left" in done.stderr
    raise ExpbenchError(
        FailureKind.DISK_FULL if full else FailureKind.INTERNAL,
        f"git {command}",
        _last_line(done),
        consequence="The masked repository was not checked out, nothing was run",
        next_step="Free space and run again" if full else "Report this with the message above",
    )


def _last_line(done: GitResult) -> str:
    lines = done.stderr.splitlines()
    return lines[-1].removeprefix("error: ") if lines else f"git ended with code {done.code} and no message"
