"""What a reviewer sees of a task, as Markdown: everything that the decision needs, on one page, with images inside.

All text of papers and repositories is escaped: it is shown, never rendered, so that it can neither load anything nor
pose as ours. Code stands in fences that it cannot close. Links lead to the repository's own host, by https, only.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from extractors.pdf import render_crop
from flows.review.queue import risk_of
from pipeline.repository import RepositoryRef
from pipeline.store import Workspace
from pipeline.task import TO_BE_WRITTEN, ClaimMatch, CodeEvidence, Review, Status, Task, TextEvidence
from pipeline.text import shorten

__all__ = ["escaped", "fenced", "review_page"]

_CODE_LINES: Final = 40
"""Lines shown of each located script; the whole file is a click away on its host, or in the workspace."""
_IMAGE_BYTES: Final = 3_000_000
"""Of all images of a page; 4 MB were tried in the form's description."""
_TEXT_CROPS: Final = 2
_CLAIMS: Final = 60
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~&$:@])")


def review_page(workspace: Workspace, task: Task, problems: tuple[str, ...] = ()) -> str:
    """The page of one task.

    Args:
        workspace: where it lies.
        task: as stored.
        problems: what was wrong with the last answer, shown on top.
    """
    parts = [
        _problems(problems),
        _head(task),
        f"### Question\n\n{_prose(task.question)}",
        f"### Method\n\n{_prose(task.method or TO_BE_WRITTEN)}",
        f"### Expected outcome\n\n{_prose(task.truth.expected.text)}",
        _crops(workspace, task),
        *(_absent(task) if task.status is Status.NOT_FOUND else _found(workspace, task)),
        _decisions(task.reviews),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _found(workspace: Workspace, task: Task) -> tuple[str, ...]:
    return _numbers(task), _code(workspace, task), _leaks(task)


def _absent(task: Task) -> tuple[str, ...]:
    """What was searched for a task that no script answers, and what each decision would mean."""
    found = task.truth.not_found
    searched = "\n".join(f"- {escaped(shorten(item, 300))}" for item in found.searched) if found else ""
    return (
        f"### No script was found\n\n{escaped(found.reason if found else task.status_reason)}\n\n"
        + (searched or "- (what was searched is not recorded)"),
        "**approve** accepts that the repository has no script for it; **edit** with paths in *Sources* names one, and "
        "the task is re-executed; **send back to locate** searches again; **reject** gives the task up.",
    )


def escaped(text: str) -> str:
    """Text of others on one line, every character shown as it is."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def fenced(text: str, language: str = "") -> str:
    """A code block that its content cannot close."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _prose(text: str) -> str:
    return "\n\n".join(escaped(block) for block in text.splitlines() if block.strip())


def _problems(problems: tuple[str, ...]) -> str:
    if not problems:
        return ""
    lines = "\n".join(f"> - {escaped(problem)}" for problem in problems)
    return f"> **Your last answer could not be applied; nothing was recorded.**\n>\n{lines}"


def _head(task: Task) -> str:
    risk, reasons = risk_of(task)
    lines = [
        f"## {escaped(task.id)}",
        f"{escaped(task.paper.title)} | engine {task.provenance.engine}"
        + (f" ({escaped(task.provenance.model)})" if task.provenance.model else "")
        + f" | confidence {task.confidence:.2f} | risk {risk:.2f}",
    ]
    lines += ["**Look at:** " + "; ".join(escaped(reason) for reason in reasons)] if reasons else []
    open_votes = ("reviewers disagree", "waits for another")
    votes = task.status_reason if any(part in task.status_reason for part in open_votes) else ""
    lines += [f"**{escaped(votes)}**"] if votes else []
    return "\n\n".join(lines)


def _crops(workspace: Workspace, task: Task) -> str:
    """The page regions behind the claims (made by the curation), then the passages behind question and method."""
    images: list[tuple[str, bytes]] = []
    labels = list(dict.fromkeys(
        f"{getattr(item, 'label', None) or getattr(item, 'section', None) or 'text'}, page {item.page}"
        for claim in task.truth.expected.claims for item in claim.evidence if not isinstance(item, CodeEvidence)
    ))  # fmt: skip
    stored = sorted((workspace.task_dir(task.id) / "evidence").glob("*.png"))
    for number, path in enumerate(stored):
        label = labels[number] if len(labels) == len(stored) else f"evidence {number + 1}"
        images.append((label, path.read_bytes()))
    pdf = workspace.paper_dir(task.paper.id) / "paper.pdf"
    spans = [
        (field, item)
        for field in ("question", "method", "expected")
        for item in task.evidence.get(field, ())
        if isinstance(item, TextEvidence)
    ]
    seen = {field for field, _ in spans}
    firsts = [next(pair for pair in spans if pair[0] == field) for field in ("question", "method", "expected")
              if field in seen][:_TEXT_CROPS]  # fmt: skip
    for field, item in firsts if pdf.is_file() else []:
        png = render_crop(pdf, item.page, item.box, dpi=110, margin=12, highlight=[item.box])
        images.append((f"{field}: {item.section or 'text'}, page {item.page}", png))
    shown, left, size = [], 0, 0
    for label, png in images:
        size += len(png)
        if size > _IMAGE_BYTES:
            left += 1
            continue
        data = base64.b64encode(png).decode("ascii")
        shown.append(f"**{escaped(label)}**\n\n![{escaped(label)}](data:image/png;base64,{data})")
    if left:
        shown.append(f"{left} more image(s) lie in the workspace: tasks/{escaped(task.id)}/evidence")
    return "### In the paper\n\n" + ("\n\n".join(shown) or "There is no image of the evidence.")


def _numbers(task: Task) -> str:
    """The re-execution's numbers beside the paper's."""
    report = task.validation
    if report is None:
        return "### Re-execution\n\nIt was not re-executed."
    flaky = "unknown" if report.flakiness is None else f"{report.flakiness:.0%}"
    matches = {match.claim: match for match in report.matches}
    rows = [
        "| conditions | paper | re-executed | band | verdict |",
        "|---|---|---|---|---|",
    ]
    claims = task.truth.expected.claims
    for claim in claims[:_CLAIMS]:
        match = matches.get(claim.id)
        conditions = "; ".join(f"{item.name}: {item.value}" for item in claim.conditions)
        unit = claim.unit or ""
        rows.append(
            f"| {escaped(shorten(conditions, 90))} | {escaped(claim.text + unit)} | {_observed(match)} "
            f"| {claim.band.low:g} to {claim.band.high:g} | {match.verdict.value if match else 'unknown'} |"
        )
    more = f"\n\n{len(claims) - _CLAIMS} more claim(s) are not shown." if len(claims) > _CLAIMS else ""
    dropped = [match for match in report.matches if match.claim not in {claim.id for claim in claims}]
    lost = ""
    if dropped:
        listed = "\n".join(f"- {escaped(shorten(match.reason, 160))}" for match in dropped[:10])
        lost = f"\n\n{len(dropped)} claim(s) of the paper were not reproduced and left out:\n\n{listed}"
    metric = ", ".join(dict.fromkeys(claim.metric for claim in claims))
    notes = escaped(shorten(". ".join(report.notes), 600))
    return (
        f"### Re-execution\n\n{escaped(report.reason)}. Sandbox {report.sandbox}, {len(report.runs)} repeat(s), "
        f"flakiness {flaky}. Metric: {escaped(metric)}.\n\n{notes}\n\n" + "\n".join(rows) + more + lost
    )


def _observed(match: ClaimMatch | None) -> str:
    if match is None or not match.observed:
        return "not found"
    return ", ".join(dict.fromkeys(f"{value:.6g}" for value in match.observed))


def _code(workspace: Workspace, task: Task) -> str:
    truth = task.truth
    parts = ["### Located code"]
    parts += [
        fenced("$ " + " ".join(usage.argv)) + f"\n\nfrom {escaped(usage.reason or 'the locator')}"
        for usage in truth.usage[:4]
    ]
    for source in truth.sources:
        spans = [span for step in truth.requirements for span in step.spans if span.path == source.path]
        path = workspace.root / "repository" / source.path
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
        start = min((span.start for span in spans), default=1) if len(lines) > _CODE_LINES else 1
        shown = lines[start - 1 : start - 1 + _CODE_LINES]
        end = start + max(len(shown), 1) - 1
        where = f"{source.path}:{start}-{end}"
        link = _link(task.repository, source.path, start, end)
        title = f"[{escaped(where)}]({link})" if link else f"**{escaped(where)}**"
        why = "; ".join(source.reasons[:3])
        numbered = "\n".join(f"{number:>4}  {line}" for number, line in enumerate(shown, start))
        code = fenced(numbered or "(empty or not a text file)")
        parts.append(f"{title} ({source.role}; {escaped(why)})\n\n{code}")
    if truth.requirements:
        steps = "\n".join(
            f"{number}. {escaped(shorten(step.text, 200))} "
            f"({', '.join(escaped(f'{span.path}:{span.start}-{span.end}') for span in step.spans[:3])})"
            for number, step in enumerate(truth.requirements, 1)
        )
        parts.append(f"**Requirements**\n\n{steps}")
    else:
        parts.append("**Requirements**: unknown, no run of it is recorded.")
    if truth.equivalents:
        also = ", ".join(escaped(source.path) for source in truth.equivalents)
        parts.append(f"These scripts reproduce the claims too and are masked: {also}.")
    return "\n\n".join(parts)


_HOSTS: Final = re.compile(r"https://(github\.com|gitlab\.com|codeberg\.org)/[\w.-]+/[\w.-]+?(?:\.git)?/?")


def _link(repository: RepositoryRef, path: str, start: int, end: int) -> str | None:
    """The lines on the repository's host, where that is one whose addresses are known."""
    if not _HOSTS.fullmatch(repository.url):
        return None
    from urllib.parse import quote

    base = repository.url.rstrip("/").removesuffix(".git")
    tree = "src/commit" if "codeberg.org" in base else "-/blob" if "gitlab.com" in base else "blob"
    return f"{base}/{tree}/{repository.commit}/{quote(path)}#L{start}-L{end}"


def _leaks(task: Task) -> str:
    parts = ["### Mask and leak scan"]
    if task.leaks is None:
        parts.append("**There was no leak scan.**")
    else:
        report = task.leaks
        parts.append(
            f"Verdict **{report.verdict.value}**: {len(report.hits)} hit(s) below blocking, {report.files} files and "
            f"{report.git_objects} git objects, checks: {escaped(', '.join(report.checks))}."
        )
        parts.append(
            "\n".join(f"- {hit.score:.2f} {escaped(f'{hit.where}: {hit.detail}')}" for hit in report.hits[:12])
        )
        parts += [f"- {escaped(f'{item.where}: {item.message}')}" for item in report.problems]
    if task.round_trip is not None:
        parts.append(f"Round trip **{task.round_trip.verdict.value}**: {escaped(task.round_trip.reason)}.")
    if task.masked:
        rows = "\n".join(
            f"| {escaped(item.path)} | {item.action.replace('_', ' ')} | {escaped(shorten(item.reason, 120))} |"
            for item in task.masked
        )
        parts.append(f"| masked path | action | reason |\n|---|---|---|\n{rows}")
    problems = (*task.problems, *(task.validation.monitor if task.validation else ()))
    if problems:
        listed = "\n".join(f"- {item.severity.value}: {escaped(f'{item.where}: {item.message}')}" for item in problems)
        parts.append(f"**Problems on the way**\n\n{listed}")
    return "\n\n".join(part for part in parts if part)


def _decisions(reviews: tuple[Review, ...]) -> str:
    if not reviews:
        return ""
    lines = []
    for review in reviews:
        comment = f": {escaped(review.comment)}" if review.comment else ""
        lines.append(f"- {review.at} **{escaped(review.reviewer)}** {review.decision.replace('_', ' ')}{comment}")
        lines += [fenced(f"{field}\n{diff}", "diff") for field, diff in review.changes]
    return "### Decisions so far\n\n" + "\n".join(lines)
