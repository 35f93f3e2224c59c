"""Curation of repositories that nobody prepared: what comes out of a paper and its code, against verdicts by hand.

    python -m benchmarks.pairs.run VERDICTS.json --out DIR [--clones DIR] [--only NAME...] [--json]

VERDICTS.json is a list of pairs with a verdict that a person froze before expbench saw them: `name`, `repository`
(owner/name on GitHub), `commit`, `paper` (path of the PDF in it), `reproducible`. Each pair is curated as a user
would, in a workspace below DIR; one that is there is kept. `--clones` names a folder with bare clones `owner+name` for
machines that cannot reach GitHub. Whether a draft is right is for a person to say: they stand in `drafts.md` beside.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.store import Workspace
from pipeline.task import Task

__all__ = ["main", "read_result"]


def clone(pair: Mapping[str, Any], out: Path, clones: Path | None) -> Path:
    """A work tree of the pair's repository at its commit."""
    tree = out / "trees" / pair["name"]
    if not tree.is_dir():
        local = None if clones is None else clones / pair["repository"].replace("/", "+")
        source = f"https://github.com/{pair['repository']}.git" if local is None else str(find_bare(local))
        tree.parent.mkdir(parents=True, exist_ok=True)
        _git(tree.parent, "clone", "--quiet", "--no-checkout", source, str(tree.resolve()))
        _git(tree, "update-ref", "--no-deref", "HEAD", pair["commit"])
        _git(tree, "read-tree", "HEAD")
        missing = _missing(tree)
        if missing:  # of large files a stored clone may hold the names alone
            _git(tree, "rm", "--quiet", "--cached", "--", *missing)
            _git(tree, "-c", "user.name=expbench", "-c", "user.email=expbench@localhost", "commit", "--quiet",
                 "--message", f"Without {len(missing)} files that the clone lacks")  # fmt: skip
        _git(tree, "checkout-index", "--all", "--force", "--quiet")
    return tree


def _git(where: Path, *arguments: str, given: str | None = None) -> str:
    command = ["git", "-C", str(where), *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, input=given).stdout


def _missing(tree: Path) -> list[str]:
    """Files of the index whose content is not there."""
    entries = [line.split("\t", 1) for line in _git(tree, "ls-files", "--stage", "-z").split("\0") if line]
    blobs = [(entry.split()[1], path) for entry, path in entries if not entry.startswith("160000")]
    told = _git(tree, "cat-file", "--batch-check", given="".join(f"{blob}\n" for blob, _ in blobs)).splitlines()
    return [path for (_, path), line in zip(blobs, told, strict=True) if line.endswith(" missing")]


def find_bare(folder: Path) -> Path:
    """The git directory in a folder, or the folder itself."""
    if (folder / "HEAD").is_file():
        return folder
    return next(path.parent for path in sorted(folder.rglob("HEAD")) if (path.parent / "objects").is_dir())


def curate(pair: Mapping[str, Any], out: Path, clones: Path | None) -> dict[str, Any]:
    """What curating one pair gave; what is there is read, not made again."""
    workspace, log = out / "workspaces" / pair["name"], out / "logs" / f"{pair['name']}.txt"
    seconds = None
    if not (workspace / "summary.json").is_file():
        tree = clone(pair, out, clones)
        log.parent.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        command = [
            sys.executable,
            "-m",
            "flows.cli",
            "curate",
            str(tree / pair["paper"]),
            str(tree),
            "--out",
            str(workspace),
        ]
        if (workspace / "workspace.json").is_file():
            command.append("--resume")
        with log.open("w", encoding="utf-8") as stream:
            code = subprocess.run(command, stdout=stream, stderr=subprocess.STDOUT, check=False).returncode
        seconds = round(time.monotonic() - began, 1)
        if not (workspace / "summary.json").is_file():
            return {"name": pair["name"], "reproducible": pair["reproducible"], "exit": code, "seconds": seconds}
    return {**read_result(pair, workspace), "seconds": seconds}


def read_result(pair: Mapping[str, Any], workspace: Path) -> dict[str, Any]:
    """Status and reason of each task of a workspace."""
    summary = json.loads((workspace / "summary.json").read_text(encoding="utf-8"))
    return {
        "name": pair["name"],
        "reproducible": pair["reproducible"],
        "candidates": summary["candidates"],
        "tasks": [{"id": id_, "status": status, "reason": reason} for id_, status, reason in summary["tasks"]],
    }


def describe(pair: Mapping[str, Any], workspace: Path) -> str:
    """The drafts of a pair as a page for the person who grades them."""
    parts = [f"# {pair['name']} ({pair['repository']})", ""]
    home = Workspace(workspace)
    for folder in sorted((workspace / "tasks").glob("*")) if (workspace / "tasks").is_dir() else ():
        task: Task = home.load_task(folder.name)
        claims = "; ".join(
            f"{claim.metric} [{', '.join(f'{c.name}={c.value}' for c in claim.conditions)}] = {claim.text}"
            for claim in task.truth.expected.claims[:8]
        )
        usage = "; ".join(" ".join(step.argv) for step in task.truth.usage)
        parts += [
            f"## {task.id}: {task.status.value} {task.status_reason}", f"Q: {task.question}", f"M: {task.method}",
            f"Run: {usage}", f"Claims ({len(task.truth.expected.claims)}): {claims}",
            "Requirements: " + " | ".join(item.text for item in task.truth.requirements), "",
        ]  # fmt: skip
    return "\n".join(parts)


def figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Papers with a release candidate among those that a person reproduced, and among the others."""
    able = [row for row in rows if row["reproducible"]]
    return {
        "reproducible with a candidate": [sum(bool(row.get("candidates")) for row in able), len(able)],
        "others with a candidate": [
            sum(bool(row.get("candidates")) for row in rows if not row["reproducible"]), len(rows) - len(able),
        ],
        "tasks": sum(len(row.get("tasks", ())) for row in rows),
        "candidates": sum(row.get("candidates") or 0 for row in rows),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verdicts", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--clones", type=Path)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    pairs = json.loads(arguments.verdicts.read_text(encoding="utf-8"))
    rows = []
    pages = []
    for pair in pairs:
        if arguments.only and pair["name"] not in arguments.only:
            continue
        row = curate(pair, arguments.out, arguments.clones)
        rows.append(row)
        if "exit" not in row:
            pages.append(describe(pair, arguments.out / "workspaces" / pair["name"]))
        told = (
            ", ".join(f"{task['id']}: {task['status']}" for task in row.get("tasks", ())) or f"exit {row.get('exit')}"
        )
        print(f"{row['name']}: {row.get('candidates', 0)} candidates ({told}) in {row['seconds']} s", file=sys.stderr)
    (arguments.out / "drafts.md").write_text("\n".join(pages), encoding="utf-8")
    result = {"figures": figures(rows), "pairs": rows}
    (arguments.out / "result.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    print(json.dumps(result if arguments.json else result["figures"], indent=1))


if __name__ == "__main__":
    main()
