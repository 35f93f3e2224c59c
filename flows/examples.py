"""The worked examples as users meet them: a PDF and a real git repository.

The examples are kept as plain files, because a git repository cannot hold another one. `materialise` turns one into a
repository with a few commits of history, a tag and, where it has one, a submodule repository beside it, referenced by a
relative URL. Authors, dates and configuration are fixed, so the commit hashes are the same everywhere.

Non-goals: building the examples (scripts/build_examples.py) and curating them.

How an example is kept, relative to its directory:

- `example.yaml`: title, licence, history; read by `ExampleInfo`.
- `paper.pdf`; `numbers.json` with every number it states; `paper/` with its sources.
- `repository/`: the last commit's files. A name that begins with `dot_` stands for one that begins with a dot, since
  a nested `.gitignore` would take effect here. Shell scripts become executable.
- `submodules/<path>/`: the files of the submodule at `<path>`.
- `history/<n>/`: files that an earlier commit has in addition.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import yaml
from pydantic import Field, ValidationError

from pipeline._git.run import run_git
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record
from pipeline.scratch import scratch_directory

__all__ = ["ExampleInfo", "HistoryStep", "MaterialisedExample", "SubmoduleInfo", "list_examples", "materialise"]

_AUTHOR = "expbench authors"
_EMAIL = "authors@expbench.invalid"


class HistoryStep(Record):
    """One commit."""

    message: str
    date: str
    """ISO 8601; author and committer date."""
    paths: tuple[str, ...] = ()
    """Files and directories of `repository/` that the commit has; empty for all of them."""
    overlay: str | None = None
    """Directory of the example with further files."""


class SubmoduleInfo(Record):
    """A submodule and the repository that it comes from."""

    path: str
    """In the superproject; its files are in `submodules/<path>`."""
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    """Directory of its repository, next to the superproject's."""
    message: str
    date: str


class ExampleInfo(Record):
    """What example.yaml says."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")
    title: str
    licence: str
    about: str
    repository: str = Field(default="repository", pattern=r"^[a-z0-9][a-z0-9._-]*$")
    """Directory name of the materialised repository."""
    tag: str
    history: tuple[HistoryStep, ...] = Field(min_length=1)
    submodules: tuple[SubmoduleInfo, ...] = ()
    paper_in_repository: str | None = None
    """Where the last commit holds a copy of the PDF."""


class MaterialisedExample(Record):
    """An example that is ready for `expbench curate`."""

    name: str
    title: str
    paper: Path
    repository: Path
    commit: str
    submodules: tuple[tuple[str, Path], ...] = ()
    """(path in the repository, repository that it comes from)."""


def examples_directory() -> Path:
    """Where the examples are: beside this module when installed, below datasets/ in a checkout.

    Raises:
        ExpbenchError: neither exists.
    """
    here = Path(__file__).resolve().parent
    for candidate in (here / "_examples", here.parent / "datasets" / "examples"):
        if candidate.is_dir():
            return candidate
    raise ExpbenchError(
        FailureKind.INTERNAL,
        "the worked examples",
        f"neither {here / '_examples'} nor {here.parent / 'datasets' / 'examples'} exists",
        consequence="No example can be materialised",
        next_step="Install expbench again, or use a complete checkout",
    )


def list_examples() -> tuple[str, ...]:
    """The names of the worked examples, sorted."""
    return tuple(sorted(path.parent.name for path in examples_directory().glob("*/example.yaml")))


def example_info(name: str) -> ExampleInfo:
    """What example.yaml says of an example.

    Raises:
        ExpbenchError: there is no such example, or its description is not valid.
    """
    if name not in list_examples():
        raise ExpbenchError(
            FailureKind.USAGE,
            f"example {name!r}",
            "there is no such example",
            consequence="Nothing was written",
            next_step=f"Choose one of: {', '.join(list_examples())}",
        )
    path = examples_directory() / name / "example.yaml"
    try:
        return ExampleInfo.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, ValidationError) as error:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            str(path),
            f"not a valid description of an example ({error})",
            consequence="Nothing was written",
            next_step="Restore the file from the release or from git",
        ) from error


def materialise(name: str, into: Path) -> MaterialisedExample:
    """Write the example's PDF and git repositories to `into`/`name`.

    What is there already is compared with what would be written. When PDF, refs and tracked files are equal, it is left
    alone. When they differ, it is an error and nothing is changed: it may hold somebody's work.

    Raises:
        ExpbenchError: no such example; git is missing or fails; `into`/`name` exists and is different.
    """
    info = example_info(name)
    into.mkdir(parents=True, exist_ok=True)
    target = into / name
    with scratch_directory(into) as directory:
        fresh = Path(directory) / name
        fresh.mkdir()
        commit = _build(info, examples_directory() / name, fresh)
        if not target.exists():
            fresh.replace(target)
        elif not _same(target, fresh, info):
            raise ExpbenchError(
                FailureKind.WORKSPACE_CONFLICT,
                str(target),
                "exists and is not what this version of the example writes (changed by hand, or by another version)",
                consequence="It was left as it is, and the example was not materialised",
                next_step="Move or delete that directory, or choose another one",
            )
    return MaterialisedExample(
        name=name,
        title=info.title,
        paper=target / "paper.pdf",
        repository=target / info.repository,
        commit=commit,
        submodules=tuple((sub.path, target / sub.name) for sub in info.submodules),
    )


def _build(info: ExampleInfo, source: Path, into: Path) -> str:
    """Write everything below `into`; returns the commit of the main repository."""
    paper = (source / "paper.pdf").read_bytes()
    (into / "paper.pdf").write_bytes(paper)
    links = {}
    for sub in info.submodules:
        repository = into / sub.name
        _init(repository)
        _write_tree(repository, _files_below(source / "submodules" / sub.path))
        links[sub.path] = _commit(repository, sub.message, sub.date)
    final = _files_below(source / "repository")
    if info.submodules:
        final[PurePosixPath(".gitmodules")] = _gitmodules(info.submodules)
    if info.paper_in_repository:
        final[PurePosixPath(info.paper_in_repository)] = paper
    repository = into / info.repository
    _init(repository)
    commit = ""
    for step in info.history:
        files = {path: data for path, data in final.items() if not step.paths or _selected(path, step.paths)}
        if step.overlay:
            files |= _files_below(source / step.overlay)
        _write_tree(repository, files)
        known = {path: link for path, link in links.items() if PurePosixPath(".gitmodules") in files}
        commit = _commit(repository, step.message, step.date, known)
    last = info.history[-1]
    _git(repository, "tag", "-a", "-m", info.title, info.tag, date=last.date)
    return commit


def _files_below(root: Path) -> dict[PurePosixPath, bytes]:
    """All files below `root` by path, `dot_` names restored; byte code and caches are no part of an example."""
    files = {}
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if path.is_file() and "__pycache__" not in relative.parts and path.suffix != ".pyc":
            parts = (f".{part[4:]}" if part.startswith("dot_") else part for part in relative.parts)
            files[PurePosixPath(*parts)] = path.read_bytes()
    return files


def _selected(path: PurePosixPath, paths: tuple[str, ...]) -> bool:
    return any(path == PurePosixPath(p) or PurePosixPath(p) in path.parents for p in paths)


def _gitmodules(submodules: tuple[SubmoduleInfo, ...]) -> bytes:
    return "".join(f'[submodule "{s.path}"]\n\tpath = {s.path}\n\turl = ../{s.name}\n' for s in submodules).encode()


def _write_tree(repository: Path, files: Mapping[PurePosixPath, bytes]) -> None:
    """Make the work tree hold exactly `files`."""
    for entry in repository.iterdir():
        if entry.name != ".git":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for path, data in files.items():
        target = repository / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(0o755 if path.suffix == ".sh" else 0o644)


# --- git ------------------------------------------------------------------------------------------------------------


def _init(repository: Path) -> None:
    repository.mkdir()
    _git(repository, "init", "--quiet", "--template=", "--object-format=sha1", "--initial-branch=main")


def _commit(repository: Path, message: str, date: str, links: Mapping[str, str] | None = None) -> str:
    """Commit the work tree, with submodules (`links`: path -> commit) as they are in the index; returns the hash."""
    _git(repository, "read-tree", "--empty")
    _git(repository, "add", "--all", "--force", ".")
    for path, commit in sorted((links or {}).items()):
        (repository / path).mkdir(parents=True, exist_ok=True)
        _git(repository, "update-index", "--add", "--cacheinfo", f"160000,{commit},{path}")
    _git(repository, "commit", "--quiet", "--no-verify", "--message", message, date=date)
    return _git(repository, "rev-parse", "HEAD").strip()


def _git(repository: Path, *arguments: str, date: str | None = None) -> str:
    """Run git in a repository; returns its output.

    Raises:
        ExpbenchError: git is missing or fails.
    """
    who: dict[str, str] = {}
    for role in ("AUTHOR", "COMMITTER"):
        who |= {f"GIT_{role}_NAME": _AUTHOR, f"GIT_{role}_EMAIL": _EMAIL}
        if date is not None:
            who[f"GIT_{role}_DATE"] = date
    done = run_git(None, *arguments, extra_env=who, options=("-C", str(repository)))
    if done.code:
        raise ExpbenchError(
            FailureKind.INTERNAL, f"git {arguments[0]}", f"failed with exit code {done.code}: {done.stderr}",
            consequence="The example's repository was not made",
            next_step="Report this with the output of `git --version`",
        )  # fmt: skip
    return done.stdout.decode("utf-8", "replace")


def _same(found: Path, fresh: Path, info: ExampleInfo) -> bool:
    """Is `found` what was just built: the same PDF, and in each repository the same refs and the same tracked files?

    Files that were added (byte code, results of a run, a checked-out submodule) do not count: no commit holds them.
    """
    pdf = found / "paper.pdf"
    if not pdf.is_file() or pdf.read_bytes() != (fresh / "paper.pdf").read_bytes():
        return False
    for name in (info.repository, *(sub.name for sub in info.submodules)):
        if not (found / name / ".git").is_dir() or _refs(found / name) != _refs(fresh / name):
            return False
        for path in sorted((fresh / name).rglob("*")):
            other = found / name / path.relative_to(fresh / name)
            if ".git" in path.relative_to(fresh / name).parts or not path.is_file():
                continue
            if not other.is_file() or other.read_bytes() != path.read_bytes():
                return False
    return True


def _refs(repository: Path) -> str:
    return _git(repository, "for-each-ref") + _git(repository, "rev-parse", "HEAD")
