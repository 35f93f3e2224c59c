"""Is the answer in what an agent's repository stands on: installed packages, variables, history of the image?

A repository whose own package is on an index is often installed beside itself: another distribution depends on it, or
the authors list it. Then `pip show -f` leads to the masked file. The distribution's name is checked against the pins;
and, because a package may be called otherwise, vendored or copied, the environment is looked into: a small program runs
in the sandbox, without network, and hands out files that could be masked ones (same top-level module, same file name,
same size). They are compared like any file of the masked repository.

Non-goals: the whole file system of an image that somebody else made (its own history and variables are read).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

from masking.numbers import BLOCKING
from masking.probe import MIN_EXACT, Probe
from masking.records import MaskPlan
from masking.sources import background, masked_sources, references
from pipeline.repository import Snapshot
from pipeline.sandbox import Command, Image, Limits, RunSpec, Sandbox, is_container
from pipeline.schema import Problem, Severity
from pipeline.scratch import scratch_directory
from pipeline.task import LeakHit, Task

__all__ = ["EnvironmentFindings", "own_distribution", "scan_environment"]

_LIMITS: Final = Limits(wall_s=300, memory_mb=1024, disk_mb=512, pids=64)
_MAX_BYTES: Final = 64 << 20
_COMMON: Final = frozenset({"__init__.py", "setup.py", "conftest.py"})
_LISTER: Final = """
import json, os, shutil, sys
wanted = json.load(open("wanted.json"))
modules, names, sizes = set(wanted["modules"]), set(wanted["names"]), set(wanted["sizes"])
found, total, files = [], 0, 0
roots = [p for p in sys.path if p and os.path.isdir(p) and "-packages" in p]
for root in sorted(set(map(os.path.realpath, roots))):
    for folder, below, here in os.walk(root):
        below[:] = sorted(d for d in below if d != "__pycache__")
        inside = os.path.relpath(folder, root).split(os.sep)[0]
        for name in sorted(here):
            files += 1
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isfile(path):
                continue
            size = os.path.getsize(path)
            top = inside if inside != "." else name.rsplit(".", 1)[0]
            text = name.endswith((".py", ".pyx", ".ipynb", ".json", ".csv", ".txt", ".md", ".yaml", ".yml", ".sh"))
            if not (size in sizes or (text and (top in modules or name in names))) or size > 2000000:
                continue
            total += size
            if total > wanted["limit"]:
                found.append([path, size, None])
                continue
            copy = "found-%d" % len(found)
            shutil.copyfile(path, copy)
            found.append([path, size, copy])
json.dump({"files": files, "found": found}, open("found.json", "w"))
"""


@dataclass(slots=True)
class EnvironmentFindings:
    """What was found, what could not be looked into, and which checks ran."""

    hits: list[LeakHit] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)

    def unread(self, where: str, message: str, severity: Severity = Severity.WARNING) -> None:
        """Note something that was not looked into."""
        self.problems.append(Problem(component="mask.environment", where=where, message=message, severity=severity))


def scan_environment(
    task: Task, *, snapshot: Snapshot, plan: MaskPlan, image: Image, sandbox: Sandbox, out: Path, owner: str
) -> EnvironmentFindings:
    """Look for masked files and claimed numbers in the environment that an agent gets.

    Args:
        task: with its ground truth.
        snapshot: the original.
        plan: what was taken out.
        image: the environment.
        sandbox: where it can be looked into.
        out: directory for what the program hands out.
        owner: label of the run.

    Raises:
        ExpbenchError: the sandbox failed.
    """
    found = EnvironmentFindings()
    probe = _probe(task, snapshot, plan)
    _packages(found, probe, task, snapshot, plan, image, sandbox, out, owner)
    if is_container(sandbox):
        _image(found, probe, image)
    return found


def _probe(task: Task, snapshot: Snapshot, plan: MaskPlan) -> Probe:
    changed = {item.path for item in plan.paths}
    digests = {f.sha256: f.path for f in snapshot.files if f.path in changed and f.size >= MIN_EXACT}
    return Probe(
        references=references(task, snapshot, plan.edits), digests=digests, claims=task.truth.expected.claims,
        paper=None, background=background(task, snapshot),
    )  # fmt: skip


def _modules(paths: Iterable[str]) -> set[str]:
    """Names under which the repository's code is imported: its packages and the modules that lie beside them."""
    python = [PurePosixPath(path) for path in paths if path.endswith(".py")]
    packages = {path.parent for path in python if path.name == "__init__.py"}
    tops = {package.name for package in packages if package.parent not in packages}
    return {name for name in tops | {path.stem for path in python if len(path.parts) == 1} if name}


def _top_level(path: str) -> str:
    """The name under which an installed file is imported: what follows `site-packages` or `dist-packages`."""
    parts = PurePosixPath(path).parts
    below = next((number for number, part in enumerate(parts) if part.endswith("-packages")), len(parts))
    return PurePosixPath(parts[below + 1]).stem if below + 1 < len(parts) else ""


def _packages(
    found: EnvironmentFindings, probe: Probe, task: Task, snapshot: Snapshot, plan: MaskPlan, image: Image,
    sandbox: Sandbox, out: Path, owner: str,
) -> None:  # fmt: skip
    masked = plan.with_action("removed") | plan.with_action("edited") | {s.path for s in masked_sources(task)}
    modules = _modules(file.path for file in snapshot.files)
    wanted = {
        "modules": sorted(modules),
        "names": sorted({PurePosixPath(path).name for path in masked if path.endswith((".py", ".ipynb"))} - _COMMON),
        "sizes": sorted({file.size for file in snapshot.files if file.path in masked and file.size >= MIN_EXACT}),
        "limit": _MAX_BYTES,
    }
    spec = RunSpec(commands=(Command(argv=("python", "list_installed.py")),), limits=_LIMITS)
    with scratch_directory() as name:
        tree = Path(name)
        (tree / "wanted.json").write_text(json.dumps(wanted), encoding="utf-8")
        (tree / "list_installed.py").write_text(_LISTER, encoding="utf-8")
        result = sandbox.run(image, tree, spec, out=out, owner=owner)
    listing = out / "files" / "found.json"
    if result.failure is not None or not listing.is_file():
        found.unread("environment", f"installed packages were not looked into: {result.message or result.failure}")
        return
    found.checks.append("installed_files")
    for path, _, copy in json.loads(listing.read_bytes())["found"]:
        if copy is None or not (out / "files" / copy).is_file():
            found.unread(f"environment:{path}", f"not compared: more than {_MAX_BYTES >> 20} MB could be masked files")
            continue
        own = _top_level(path) in modules
        data = (out / "files" / copy).read_bytes()
        examination = probe.examine(PurePosixPath(path).name, data, where=f"environment:{path}")
        # numbers of other people's packages are chance; those of the repository's own are not
        found.hits += [hit for hit in examination.hits if own or (hit.kind != "number" and hit.score >= BLOCKING)]


def _image(found: EnvironmentFindings, probe: Probe, image: Image) -> None:
    from pipeline.sandbox.images import image_facts

    facts = image_facts(image)
    texts = {
        "environment variables": "\n".join(facts.environment),
        "labels": "\n".join(f"{key}={value}" for key, value in facts.labels),
        "command": " ".join(facts.command),
        "history": "\n".join(facts.history),
    }
    for name, text in texts.items():
        hits = probe.examine("image.env", text.encode("utf-8", "replace"), where=f"image:{name}").hits
        found.hits += [hit for hit in hits if hit.score >= BLOCKING or name in {"environment variables", "labels"}]
    found.checks.append("image_configuration")


# --- the repository's own distribution -------------------------------------------------------------------------------

_NAME: Final = re.compile(r"""^\s*(?:setup\(\s*)?name\s*=\s*["']?([A-Za-z0-9][A-Za-z0-9._-]*)["']?""", re.MULTILINE)


def own_distribution(task: Task, snapshot: Snapshot) -> list[LeakHit]:
    """Is the repository itself installed, by the name of its own packaging? Then the masked files are there too."""
    name = _distribution(snapshot)
    found: list[LeakHit] = []
    for pin in task.environment.packages if name else ():
        if _canonical(pin.split("==", 1)[0]) == name:
            detail = f"the environment installs {pin}, the repository's own distribution, with the masked files"
            found.append(LeakHit(kind="exact", where="environment", detail=detail, score=1.0))
    return found


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _distribution(snapshot: Snapshot) -> str | None:
    paths = {file.path for file in snapshot.files}
    for path in ("pyproject.toml", "setup.cfg", "setup.py"):
        if path in paths and (match := _NAME.search(snapshot.text(path))):
            return _canonical(match[1])
    return None
