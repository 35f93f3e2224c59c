"""Which files an agent must not see, each with the reason (EXP-Bench 3.2: the list of masked files of a task).

What is taken out, in this order; the first reason that applies is the one that is recorded:

1. the source scripts of the task: entry points, wrappers and configurations of the chain. Library files stay: the paper
   masks "relevant scripts", and an agent re-implements the experiment on top of the library. A chain that consists of
   library files only is masked as it is, because otherwise nothing would be;
   A library file of such a chain that other, kept files import loses the bodies of the functions that the requirements
   name, and keeps the rest; so does any file whose functions a person names (`MaskPolicy`);
2. the paper: its file, any text or PDF that is mostly the paper, and the by-products of its LaTeX source;
3. README files at the root, and documentation that runs a masked script or states a claimed number;
4. results: what the re-execution produced, and data files in directories for results;
5. copies: exact and near-duplicates of 1, also in notebooks, archives, compiled files and build directories;
6. git history in disguise: `.gitmodules`, bare repositories, packs and bundles that are ordinary files;
7. outputs of notebooks (cleared, the cells stay), numbers in comments and strings of code (overwritten).

What states an answer but cannot be taken out without breaking code is left and becomes a problem of the plan; the leak
scan blocks on it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Final, Literal

from masking.comments import TextSpan, text_spans
from masking.filekinds import (
    is_document,
    is_latex_byproduct,
    is_result_path,
    is_root_readme,
    is_text_throughout,
    states_results,
)
from masking.notebooks import clear_outputs, has_outputs
from masking.numbers import BLOCKING, NumberHit
from masking.papers import PaperProbe, document_text, title_patterns
from masking.partial import MaskPolicy, partial_masks
from masking.probe import MIN_EXACT, Examination, Probe
from masking.records import MaskPlan, TextEdit
from masking.sources import background, masked_sources, references
from masking.tree import MAX_READ, Entry, entries
from pipeline.paper import Document
from pipeline.repository import Snapshot
from pipeline.schema import Problem, Severity
from pipeline.task import LeakHit, MaskedPath, Task
from pipeline.tracing.needs import needed_file

__all__ = ["plan_mask"]

_GIT_FILES: Final = (b"# v2 git bundle", b"# v3 git bundle", b"PACK\0\0\0")
_ORDER: Final = ("paper", "exact", "near_duplicate", "canary", "git_object", "task_text", "number")
"""Which of several reasons is recorded."""


def plan_mask(
    task: Task,
    snapshot: Snapshot,
    *,
    documents: Sequence[Document] = (),
    paper_sha256: str | None = None,
    policy: MaskPolicy | None = None,
) -> MaskPlan:
    """Plan the mask of one task.

    Args:
        task: located (and, better, validated: the files that its runs produced are results).
        snapshot: the original repository.
        documents: readings of the paper; without one, copies of its text are not recognised.
        paper_sha256: digest of the paper's file; those of the task and of the documents are used besides.
        policy: whole files or single functions.

    Raises:
        ExpbenchError: `USAGE`: the policy names a file or function that is not there, or cannot be masked.
    """
    return _Planner(task, snapshot, documents, paper_sha256, policy or MaskPolicy()).plan()


class _Planner:
    """Collects decisions; the first reason for a path wins."""

    def __init__(
        self, task: Task, snapshot: Snapshot, documents: Sequence[Document], paper_sha256: str | None,
        policy: MaskPolicy,
    ) -> None:  # fmt: skip
        self.policy = policy
        self.task = task
        self.snapshot = snapshot
        self.entries = {entry.path: entry for entry in entries(snapshot.root)}
        self.digests = {file.path: file.sha256 for file in snapshot.files}
        self.needed_files = [path for path in map(needed_file, task.truth.data_needs) if path]
        self.chosen: dict[str, MaskedPath] = {}
        self.edits: list[TextEdit] = []
        self.problems: list[Problem] = []
        known = {paper_sha256, task.paper.sha256, *(document.sha256 for document in documents)}
        self.paper_digests = frozenset(digest for digest in known if digest)
        paper = PaperProbe([document_text(document) for document in documents])
        self.paper = paper if paper.usable else None
        self.sources = masked_sources(task)
        self.partly: set[str] = set()
        """Files that stay and lose the bodies of some functions."""
        names = sorted({PurePosixPath(s.path).name for s in self.sources if s.role in {"entry", "wrapper"}})
        self.mentions = re.compile(rb"(?<![\w.-])(?:" + b"|".join(re.escape(n.encode()) for n in names) + rb")(?!\w)")
        self.named = bool(names)
        self.titles = title_patterns([task.paper.title, *(document.title for document in documents)])

    def choose(
        self, path: str, reason: str, action: Literal["removed", "outputs_cleared", "edited"] = "removed"
    ) -> None:
        known = self.chosen.get(path)
        if known is None or (known.action != "removed" and action == "removed"):
            self.chosen[path] = MaskedPath(path=path, action=action, reason=reason)

    def note(self, where: str, message: str, severity: Severity = Severity.WARNING) -> None:
        self.problems.append(Problem(component="mask.plan", where=where, message=message, severity=severity))

    def plan(self) -> MaskPlan:
        self._by_function()
        self._by_name()
        probe = Probe(
            references=references(self.task, self.snapshot, self.edits),
            digests=self._masked_digests(),
            claims=self.task.truth.expected.claims,
            paper=self.paper,
            background=background(self.task, self.snapshot),
            paper_digests=self.paper_digests,
        )
        for path, entry in self.entries.items():
            if (path not in self.chosen or path in self.partly) and not entry.link:
                self._by_content(path, entry, probe)
        self._latex()
        self._equal_files()
        removed = {path for path, item in self.chosen.items() if item.action == "removed"}
        return MaskPlan(
            paths=tuple(self.chosen[path] for path in sorted(self.chosen)),
            edits=tuple(edit for edit in self.edits if edit.path not in removed),
            problems=tuple(self.problems),
        )

    def _masked_digests(self) -> dict[str, str]:
        """sha256 -> path of what is chosen so far, lone lines apart."""
        return {
            self.digests[path]: path
            for path in sorted(self.chosen)
            if path in self.digests and self.entries[path].size >= MIN_EXACT
        }

    # --- by name -----------------------------------------------------------------------------------------------------

    def _by_function(self) -> None:
        """Take single functions out of files that stay: those that a person names, or that the rule finds."""
        found = partial_masks(self.task, self.snapshot, self.sources, self.policy)
        self.edits += found.edits
        self.problems += found.problems
        for path, why in found.reasons.items():
            self.partly.add(path)
            self.choose(path, why, "edited")

    def _by_name(self) -> None:
        for script in self.sources:
            if script.path in self.partly:
                continue
            if script.path in self.entries:
                what = (
                    "source script that answers the question"
                    if script in self.task.truth.sources
                    else "script that computes the same answer"
                )
                self.choose(script.path, f"{what} ({script.role})")
            else:
                self.note(script.path, "a source script of the task is not in the repository", Severity.ERROR)
        if not self.sources:
            self.note(self.task.id, "the task names no source script, so none is masked", Severity.ERROR)
        validation = self.task.validation
        produced = {path for run in (validation.runs if validation else ()) for path, _ in run.produced}
        for path in self.entries:
            if is_root_readme(path):
                self.choose(path, "README of the repository: it describes the experiments and their results")
            elif path in produced:
                self.choose(path, "result: the re-execution of the source scripts produces this file")
            elif is_result_path(path) and not self._needed(path):
                self.choose(path, "result: a data file in a directory for results")
            elif PurePosixPath(path).name == ".gitmodules":
                self.choose(path, "submodules are part of the tree now; the file says where their history is")
        self._bare_repositories()

    def _needed(self, path: str) -> bool:
        """Whether the run reads this file; a need may be said from a folder above the repository or below its root."""
        return any(
            f"/{need}".endswith(f"/{path}") or ("/" in need and f"/{path}".endswith(f"/{need}"))
            for need in self.needed_files
        )

    def _bare_repositories(self) -> None:
        for path in list(self.entries):
            if PurePosixPath(path).name != "HEAD":
                continue
            root = path.removesuffix("HEAD")
            below = [other for other in self.entries if other.startswith(root)]
            if {"objects", "refs"} <= {other[len(root) :].split("/", 1)[0] for other in below}:
                for other in below:
                    self.choose(other, f"part of a bare git repository kept as files ({root or '.'})")

    # --- by content --------------------------------------------------------------------------------------------------

    def _by_content(self, path: str, entry: Entry, probe: Probe) -> None:
        if self.digests.get(path) in self.paper_digests:
            self.choose(path, "the paper itself")
        elif entry.size > MAX_READ:
            self.note(path, f"not read: larger than {MAX_READ >> 20} MB, compared by digest only")
        elif (data := entry.read()).startswith(_GIT_FILES):
            self.choose(path, "git objects packed into a file (history)")
        else:
            self._by_words(path, data, probe)

    def _by_words(self, path: str, data: bytes, probe: Probe) -> None:
        notebook = path.lower().endswith(".ipynb")
        if notebook and self._clear(path, data):
            data = clear_outputs(data)
        digest = hashlib.sha256(data).hexdigest()
        data = self._without_bodies(path, data)
        examination = probe.examine(path, data)
        reason = self._reason_to_remove(path, data, examination)
        if reason is not None:
            self.choose(path, reason)
        else:
            self._edit(path, data, probe.numbers(path, data) if notebook else examination.numbers, digest)
            self._untitle(path, data, digest)

    def _without_bodies(self, path: str, data: bytes) -> bytes:
        """The file with masked bodies as blanks: what is left of it stands where it stood."""
        for edit in self.edits:
            if edit.path == path:
                blank = re.sub(rb"[^\n]", b" ", data[edit.start : edit.end])
                data = data[: edit.start] + blank + data[edit.end :]
        return data

    def _clear(self, path: str, data: bytes) -> bool:
        try:
            if has_outputs(data):
                self.choose(path, "outputs of the notebook state results", "outputs_cleared")
        except ValueError as error:
            self.note(path, f"not a readable notebook ({error}); treated as text", Severity.INFO)
            return False
        return True

    def _reason_to_remove(self, path: str, data: bytes, examination: Examination) -> str | None:
        """Why the content of the file asks for all of it to go; None when it does not."""
        for hit in sorted(examination.blocking, key=lambda hit: _ORDER.index(hit.kind)):
            inner = not hit.where.startswith(f"{path}:")  # in a file inside of an archive
            if hit.kind != "number" or inner or states_results(path):
                return _reason(hit)
        document = is_document(path)
        if self.named and document and (mention := self.mentions.search(data)):
            return f"documentation of the masked script {mention[0].decode('utf-8', 'replace')}"
        if examination.copies and (document or path.lower().endswith(".ipynb")):
            return _reason(examination.copies[0])
        return None

    def _edit(self, path: str, data: bytes, numbers: Sequence[NumberHit], digest: str) -> None:
        """Overwrite claimed numbers where that changes nothing that runs.

        In comments and docstrings also bare ones of three digits (prose breaks lines between a number and its name),
        in other strings only those that block. What is code stays and is a problem.
        """
        if not numbers:
            return
        texts = text_spans(path, data)
        for number in numbers:
            span = next((t for t in texts if t.start <= number.start and number.end <= t.end), None)
            blocks = number.score >= BLOCKING
            if span is not None and (blocks or (span.prose and number.distinctive)):
                edit = TextEdit(path=path, start=number.start, end=number.end, sha256=digest)
                if edit not in self.edits:
                    self.edits.append(edit)
                self.choose(path, f"line {number.line}: {number.detail}", "edited")
            elif blocks and not path.lower().endswith(".ipynb"):  # a notebook that blocks is gone by now
                self.note(f"{path}:{number.line}", f"{number.detail}; it is code, so it was left", Severity.ERROR)

    def _untitle(self, path: str, data: bytes, digest: str) -> None:
        """Overwrite the paper's title where that changes nothing that runs: it leads to the paper."""
        found = [match.span() for pattern in self.titles for match in pattern.finditer(data)]
        if not found:
            return
        texts = [TextSpan(0, len(data), True)] if is_text_throughout(path) else text_spans(path, data)
        for start, end in found:
            taken = any(edit.path == path and edit.start < end and start < edit.end for edit in self.edits)
            if not taken and any(text.start <= start and end <= text.end for text in texts):
                edit = TextEdit(path=path, start=start, end=end, sha256=digest)
                if edit not in self.edits:
                    self.edits.append(edit)
                self.choose(path, "names the paper by its title", "edited")

    # --- what follows from other decisions ---------------------------------------------------------------------------

    def _latex(self) -> None:
        """By-products and figures-free companions of the paper's source, which carry parts of its text."""
        paper = [
            PurePosixPath(path)
            for path, item in self.chosen.items()
            if item.action == "removed"
            and item.reason.startswith("the paper")
            and path.lower().endswith((".tex", ".pdf"))
        ]
        for path in self.entries:
            for source in paper:
                if is_latex_byproduct(path, source):
                    self.choose(path, f"by-product of the paper's source {source}")

    def _equal_files(self) -> None:
        """Files equal to removed ones: removed as well, whatever their name."""
        masked = {
            digest: path for digest, path in self._masked_digests().items() if self.chosen[path].action == "removed"
        }
        for path, digest in self.digests.items():
            if digest in masked and masked[digest] != path and path in self.entries:
                self.choose(path, f"identical to the masked file {masked[digest]}")


def _reason(hit: LeakHit) -> str:
    if hit.kind == "paper":
        return f"the paper: {hit.detail} ({hit.where})"
    return f"{hit.detail} ({hit.where})"
