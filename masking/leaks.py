"""The leak scan: proof that a masked repository does not hold the answer (DESIGN: leak scan).

Every file of the work tree and every object of the git database, reachable or not, is examined with the probe that the
plan used; git's own layout is compared with what one fresh commit needs; the public text of the task is read too. The
verdict is FAIL with a hit at or above `BLOCKING`, UNKNOWN when something could not be looked into, otherwise PASS.

False alarms, measured. Near-duplicates: among 149,000 pairs of Python files from installed packages 9 shared half of
their tokens (0.006 %), each an edited copy; none shared 0.8. Whole repositories (`benchmarks/masking/false_alarms.py`,
98 published tasks of 15 repositories that others wrote): no blocking hit in a masked repository; four in the published
questions and methods themselves, of which three do state a claimed number.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from masking.apply import ATTRIBUTES, CONFIG
from masking.git import AUTHOR, BRANCH, DATE, MESSAGE, git, objects
from masking.numbers import BLOCKING, NumberProbe, significant_digits
from masking.papers import PaperProbe, document_text
from masking.plan import background, references
from masking.probe import MIN_EXACT, Probe
from masking.records import MaskPlan
from masking.texts import pdf_text
from masking.tree import entries
from pipeline.digests import file_digest
from pipeline.errors import ExpbenchError
from pipeline.paper import Document
from pipeline.repository import Snapshot
from pipeline.schema import Problem, Severity
from pipeline.task import LeakHit, LeakReport, Task, Verdict

__all__ = ["scan_leaks", "scan_task_text"]

_EXPECTED_GIT_FILES: Final = re.compile(
    r"HEAD|index|config|info/attributes|info/exclude|description|refs/heads/main"
    r"|objects/[0-9a-f]{2}/[0-9a-f]{38}|objects/pack/pack-[0-9a-f]{40}\.(?:pack|idx|rev)"
)
MAX_READ: Final = 128 << 20


def scan_leaks(
    masked: Path, *, snapshot: Snapshot, plan: MaskPlan, task: Task, documents: Sequence[Document] = (),
    pdf: Path | None = None, canaries: Sequence[str] = (),
) -> LeakReport:  # fmt: skip
    """Scan a masked repository.

    Args:
        masked: work tree with `.git`, as `apply_mask` made it (or as anybody left it).
        snapshot: the original.
        plan: what was taken out.
        task: the task with its ground truth.
        documents: readings of the paper.
        pdf: the paper's file.
        canaries: strings of private artefacts.

    Raises:
        ExpbenchError: `TOOL_MISSING` without git.
        FileNotFoundError: `masked` or `pdf` does not exist.
    """
    if not masked.is_dir():
        raise FileNotFoundError(masked)
    return _Scan(masked, snapshot, plan, task, documents, pdf, canaries).report()


class _Scan:
    """Runs the checks one after another and collects their hits."""

    def __init__(
        self, masked: Path, snapshot: Snapshot, plan: MaskPlan, task: Task, documents: Sequence[Document],
        pdf: Path | None, canaries: Sequence[str],
    ) -> None:  # fmt: skip
        self.masked = masked
        self.snapshot = snapshot
        self.task = task
        self.hits: list[LeakHit] = []
        self.problems: list[Problem] = []
        self.checks = ["exact", "near_duplicate", "number"]
        self.bytes = self.files = self.objects = 0
        digests = {task.paper.sha256, *(document.sha256 for document in documents)}
        texts = [document_text(document) for document in documents]
        if pdf is not None:
            digests.add(file_digest(pdf))
            texts.append(pdf_text(pdf.read_bytes()))
        paper = PaperProbe(texts)
        known = frozenset(digest for digest in digests if digest)
        self._paper_checks(paper.usable, bool(known))
        if canaries:
            self.checks.append("canary")
        self.probe = Probe(
            references=references(task, snapshot),
            digests=self._originals(plan),
            claims=task.truth.expected.claims,
            paper=paper if paper.usable else None,
            background=background(task, snapshot),
            paper_digests=known,
            canaries=canaries,
        )

    def _paper_checks(self, text: bool, digest: bool) -> None:
        for name, runs in (("paper_file", digest), ("paper_text", text)):
            if runs:
                self.checks.append(name)
            else:
                self._problem("paper", f"check `{name}` did not run: the paper was not given or has no text")

    def _originals(self, plan: MaskPlan) -> dict[str, str]:
        changed = {item.path for item in plan.paths}
        return {
            file.sha256: file.path for file in self.snapshot.files if file.path in changed and file.size >= MIN_EXACT
        }

    def _problem(self, where: str, message: str, severity: Severity = Severity.WARNING) -> None:
        self.problems.append(Problem(component="mask.leaks", where=where, message=message, severity=severity))

    def report(self) -> LeakReport:
        """All checks, then the verdict."""
        blobs = self._work_tree()
        self._git_layout()
        self._git_objects(blobs)
        self.hits += scan_task_text(self.task)
        self.checks.append("task_text")
        self._own_distribution()
        hits = sorted(set(self.hits), key=lambda hit: (-hit.score, hit.kind, hit.where, hit.detail))
        unread = any(problem.severity is not Severity.INFO for problem in self.problems)
        blocked = any(hit.score >= BLOCKING for hit in hits)
        return LeakReport(
            verdict=Verdict.FAIL if blocked else Verdict.UNKNOWN if unread else Verdict.PASS,
            hits=tuple(hits),
            files=self.files,
            bytes=self.bytes,
            git_objects=self.objects,
            checks=tuple(self.checks),
            problems=tuple(self.problems),
        )

    def _hit(self, where: str, detail: str, score: float = 1.0) -> None:
        self.hits.append(LeakHit(kind="git_object", where=where, detail=detail, score=score))

    # --- files -------------------------------------------------------------------------------------------------------

    def _work_tree(self) -> frozenset[str]:
        """Examine every file; returns the git ids of what was examined."""
        blobs: set[str] = set()
        for entry in entries(self.masked):
            self.files += 1
            if entry.size > MAX_READ:
                self._problem(entry.path, f"not read: larger than {MAX_READ >> 20} MB")
                continue
            data = entry.read()
            if entry.link and _leads_out(entry.raw, data):
                detail = "a link that leads out of the repository"
                self.hits.append(LeakHit(kind="exact", where=entry.path, detail=detail, score=1.0))
            self.bytes += len(data)
            blobs.add(_blob_id(data))
            # A link's target and a file's name are text as well: the probe reads the label for canaries.
            self._examine(entry.path, data, entry.path)
        for entry in entries(self.masked, git=True):
            inside = PurePosixPath(entry.path).parts
            if inside[0] != ".git" and any(part.lower().rstrip(" .") == ".git" for part in inside):
                self._hit(entry.path, "a nested git directory")
        return frozenset(blobs)

    def _examine(self, name: str, data: bytes, where: str) -> None:
        found = self.probe.examine(name, data, where=where)
        self.hits += found.hits
        self.problems += found.problems

    # --- git ---------------------------------------------------------------------------------------------------------

    def _git_layout(self) -> None:
        """Anything in `.git` that one fresh commit does not need is a hit."""
        self.checks.append("git_layout")
        inside = self.masked / ".git"
        if not inside.is_dir():
            self._hit(".git", "not a git directory of its own (a link or a file could lead to the original)")
            return
        for entry in entries(inside, git=True):
            label = f".git/{entry.path}"
            if not _EXPECTED_GIT_FILES.fullmatch(entry.path) or entry.link:
                self._hit(label, "not part of a fresh repository of one commit (hook, log, ref, alternate, ...)")
            elif entry.path == "HEAD" and entry.read() != f"ref: refs/heads/{BRANCH}\n".encode():
                self._hit(label, f"HEAD is not the branch {BRANCH}")
            elif entry.path == "config" and entry.read() != CONFIG.encode():
                self._hit(label, "the configuration is not the minimal one")
            elif entry.path == "info/attributes" and entry.read() != ATTRIBUTES.encode():
                self._hit(label, "attributes that expbench did not write")
            if not entry.path.startswith("objects/") and entry.path != "index":
                self._examine("git.txt", entry.read(), label)

    def _git_objects(self, examined: frozenset[str]) -> None:
        """Every object: unreachable ones are hits, contents that are not in the work tree are examined."""
        self.checks.append("git_objects")
        if not (self.masked / ".git").is_dir():
            return
        try:
            listing = git("rev-list", "--objects", "--all", "HEAD", directory=self.masked)
            reachable = {line.split(b" ", 1)[0].decode() for line in listing.splitlines()}
            for item in objects(self.masked, skip=examined):
                self.objects += 1
                if item.id not in reachable:
                    self._hit(f"object {item.id}", f"an unreachable {item.type}")
                if item.type == "commit":
                    self._commit(item.id, item.data)
                elif item.type == "tag":
                    self._hit(f"object {item.id}", "an annotated tag")
                if item.id not in examined and item.type in {"blob", "tag"}:
                    self._examine("object", item.data, f"object {item.id}")
        except ExpbenchError as error:
            self._problem(".git", f"the git database could not be read: {error.cause}")

    def _commit(self, id_: str, data: bytes) -> None:
        header, _, message = data.partition(b"\n\n")
        person = f"{AUTHOR} {DATE}".encode()
        lines = header.split(b"\n")
        fresh = len(lines) == 3 and lines[1] == b"author " + person and lines[2] == b"committer " + person
        if not fresh or message != MESSAGE.encode():
            self._hit(f"object {id_}", "a commit that expbench did not make (it has a parent, or another author)")

    # --- the task and its environment --------------------------------------------------------------------------------

    def _own_distribution(self) -> None:
        """Is the repository itself installed in the image? Then the masked files are there too."""
        self.checks.append("installed_package")
        name = _distribution(self.snapshot)
        for pin in self.task.environment.packages if name else ():
            if _canonical(pin.split("==", 1)[0]) == name:
                detail = f"the environment installs {pin}, the repository's own distribution, with the masked files"
                self.hits.append(LeakHit(kind="exact", where="environment", detail=detail, score=1.0))


def _blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _leads_out(link: bytes, target: bytes) -> bool:
    """Does a link at a relative path point above the root or to an absolute path?"""
    resolved = os.path.normpath(os.path.join(os.path.dirname(link), target))
    return target.startswith(b"/") or resolved == b".." or resolved.startswith(b"../")


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _distribution(snapshot: Snapshot) -> str | None:
    """The name under which the repository's own packaging installs it."""
    pattern = re.compile(r"""^\s*(?:setup\(\s*)?name\s*=\s*["']?([A-Za-z0-9][A-Za-z0-9._-]*)["']?""", re.MULTILINE)
    paths = {file.path for file in snapshot.files}
    for path in ("pyproject.toml", "setup.cfg", "setup.py"):
        if path in paths and (match := pattern.search(snapshot.text(path))):
            return _canonical(match[1])
    return None


def scan_task_text(task: Task) -> list[LeakHit]:
    """Numbers of the expected outcome in the public text of a task (question, method, instructions).

    A number of three or more digits blocks wherever it stands: these texts are short, without data. One of two digits
    blocks beside the metric's name; a single digit (`2 layers`) only beside metric and condition.
    """
    probe = NumberProbe(task.truth.expected.claims)
    hits: list[LeakHit] = []
    for name in ("question", "method", "agent_instructions"):
        text = str(getattr(task, name))
        for found in probe.find(text.encode("utf-8", "replace"), "prose"):
            digits = significant_digits(text.encode("utf-8", "replace")[found.start : found.end].decode())
            score = 1.0 if digits >= 3 else max(found.score, 0.75) if digits == 2 else found.score
            hits.append(LeakHit(kind="task_text", where=name, detail=found.detail, score=score))
    return hits
