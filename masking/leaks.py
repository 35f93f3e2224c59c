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
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from masking.apply import ATTRIBUTES, CONFIG
from masking.environments import EnvironmentFindings, own_distribution
from masking.git import AUTHOR, BRANCH, DATE, MESSAGE, git, objects
from masking.numbers import BLOCKING, NumberProbe, significant_digits
from masking.papers import PaperProbe, document_text
from masking.probe import MIN_EXACT, Probe
from masking.records import MaskPlan
from masking.sources import background, references
from masking.texts import pdf_text
from masking.tree import MAX_READ, entries
from pipeline.digests import file_digest
from pipeline.errors import ExpbenchError
from pipeline.paper import Document
from pipeline.repository import Snapshot
from pipeline.schema import Problem, Severity
from pipeline.task import AcceptedHit, LeakHit, LeakReport, Task, Verdict

__all__ = ["scan_leaks", "scan_task_text", "with_accepted"]

_EXPECTED_GIT_FILES: Final = re.compile(
    r"HEAD|index|config|info/attributes|info/exclude|description|refs/heads/main"
    r"|objects/[0-9a-f]{2}/[0-9a-f]{38}|objects/pack/pack-[0-9a-f]{40}\.(?:pack|idx|rev)"
)


def scan_leaks(
    masked: Path, *, snapshot: Snapshot, plan: MaskPlan, task: Task, documents: Sequence[Document] = (),
    pdf: Path | None = None, canaries: Sequence[str] = (), environment: EnvironmentFindings | None = None,
    accepted: Sequence[AcceptedHit] = (),
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
        environment: what `masking.environments.scan_environment` found in the image that the agent gets.
        accepted: hits that a reviewer accepted; they are reported apart and do not block.

    Raises:
        ExpbenchError: `TOOL_MISSING` without git.
        FileNotFoundError: `masked` or `pdf` does not exist.
    """
    if not masked.is_dir():
        raise FileNotFoundError(masked)
    report = _Scan(masked, snapshot, plan, task, documents, pdf, canaries).report()
    if environment is not None:
        report = _with_environment(report, environment)
    return with_accepted(report, accepted)


def _with_environment(report: LeakReport, found: EnvironmentFindings) -> LeakReport:
    report = report.evolve(
        hits=_ordered([*report.hits, *found.hits]), problems=(*report.problems, *found.problems),
        checks=(*report.checks, *found.checks),
    )  # fmt: skip
    return report.evolve(verdict=_verdict(report.hits, report.problems))


def with_accepted(report: LeakReport, accepted: Sequence[AcceptedHit]) -> LeakReport:
    """The report with the hits that a reviewer accepted set apart; those that were not found again are dropped."""
    known = {item.hit.id: item for item in accepted}
    hits = [*report.hits, *(item.hit for item in report.accepted)]
    left = _ordered([hit for hit in hits if hit.id not in known])
    taken = tuple(known[hit.id].evolve(hit=hit) for hit in _ordered(hits) if hit.id in known)
    return report.evolve(hits=left, accepted=taken, verdict=_verdict(left, report.problems))


def _ordered(hits: Iterable[LeakHit]) -> tuple[LeakHit, ...]:
    return tuple(sorted(set(hits), key=lambda hit: (-hit.score, hit.kind, hit.where, hit.detail)))


def _verdict(hits: Iterable[LeakHit], problems: Iterable[Problem]) -> Verdict:
    if any(hit.score >= BLOCKING for hit in hits):
        return Verdict.FAIL
    return Verdict.UNKNOWN if any(p.severity is not Severity.INFO for p in problems) else Verdict.PASS


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
            references=references(task, snapshot, plan.edits),
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
        self.checks.append("installed_package")
        self.hits += own_distribution(self.task, self.snapshot)
        hits = _ordered(self.hits)
        return LeakReport(
            verdict=_verdict(hits, self.problems),
            hits=hits,
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


def _blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _leads_out(link: bytes, target: bytes) -> bool:
    """Does a link at a relative path point above the root or to an absolute path?"""
    resolved = os.path.normpath(os.path.join(os.path.dirname(link), target))
    return target.startswith(b"/") or resolved == b".." or resolved.startswith(b"../")


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
