"""Access to the paper, and to the network beyond what an episode is given.

Which hosts are allowed is the run's policy (`run.yaml`), which the harness enforces and tells of: what it blocks fails,
and a failed request for a package is nobody's fault. What is looked for here is what would be disallowed under any
policy - the paper itself, the original repository - and requests that did reach a host that the policy does not name.
Where the policy is not known, a person should look at them.
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from evaluation.integrity.material import LIMIT, Material
from evaluation.trajectory import CommandRun, Event, ModelTurn, Note, ToolResult
from evaluation.verdicts import Finding, ViolationKind
from pipeline.task import Verdict
from pipeline.text import shorten

__all__ = ["network_findings", "paper_findings"]

_URL: Final = re.compile(r"\b(?:https?|ftp|git|ssh)://[^\s'\"<>)\]}`,;]+|\bgit@[\w.-]+:[\w./-]+", re.I)
_PAPER_HOSTS: Final = re.compile(
    r"(?:^|\.)(?:arxiv\.org|openreview\.net|semanticscholar\.org|paperswithcode\.com|aclanthology\.org|proceedings\."
    r"mlr\.press|papers\.nips\.cc|proceedings\.neurips\.cc|openaccess\.thecvf\.com|scholar\.google\.[a-z.]+|alphaxiv\.org|"
    r"ar5iv\.(?:labs\.)?(?:arxiv\.)?org|dl\.acm\.org|ieeexplore\.ieee\.org|sci-hub\.[a-z]+|researchgate\.net)$",
    re.I,
)
_LOCAL: Final = re.compile(
    r"^(?:localhost|127\.|0\.0\.0\.0|\[?::1|host\.docker\.internal|gateway|proxy)|\.(?:local|internal|example)$", re.I
)
_REGISTRIES: Final = re.compile(
    r"(?:^|\.)(?:pypi\.org|pythonhosted\.org|anaconda\.org|conda\.anaconda\.org|debian\.org|ubuntu\.com|npmjs\.org|cran\.r-project\.org)$",
    re.I,
)
_FETCHERS: Final = frozenset(
    {
        "curl",
        "wget",
        "aria2c",
        "http",
        "https",
        "lynx",
        "w3m",
        "links",
        "git",
        "hg",
        "svn",
        "scp",
        "rsync",
        "gdown",
        "huggingface-cli",
        "hf",
        "kaggle",
    }
)
_PY_FETCH: Final = re.compile(
    r"\b(?:requests\.(?:get|post|Session)|urlopen|urlretrieve|httpx\.|aiohttp|wget\.download|load_dataset|hf_hub_download|snapshot_download|arxiv\.(?:Search|Client|query)|socket\.create_connection)"
)
_FAILED: Final = re.compile(
    r"could not resolve|name or service not known|temporary failure in name resolution|"
    r"network is unreachable|connection "
    r"(?:refused|timed out|error|reset)|failed to (?:connect|establish)|unable to "
    r"(?:access|resolve)|max retries exceeded|"
    r"no route to host|proxy ?error|tunnel connection failed|urlerror|connectionerror|"
    r"timed? ?out|\b(?:403|404|407|502|503)\b|"
    r"command not found|no such file|not found|gaierror|newconnectionerror|httperror",
    re.I,
)
_BROWSERS: Final = re.compile(r"brows|web|fetch|search|url|navigate|goto|http", re.I)
_PDF: Final = re.compile(r"(?<![^\s'\"();|&<>=,])[^\s'\"();|&<>=,]+\.pdf\b", re.I)
_PDF_READERS: Final = frozenset(
    {
        "pdftotext",
        "mutool",
        "pdfgrep",
        "pdftohtml",
        "qpdf",
        "pdftoppm",
        "less",
        "strings",
        "cat",
        "xxd",
        "cp",
        "mv",
        "evince",
        "head",
        "base64",
        "tail",
        "more",
        "zathura",
        "pdfminer",
        "pdf2txt.py",
    }
)
_PY_PDF: Final = re.compile(r"\b(?:fitz|pymupdf|PyPDF2|pypdf|pdfplumber|pdfminer)\b")
_REACHED: Final = re.compile(r"network: ([\w.-]+):\d+ was reached\b.*")
"""What the allow-list proxy of the harness notes (`evaluation.harness.egress`)."""
_SHINGLE: Final = 5
_SHARED: Final = 40
"""Five-word shingles of the paper, not of the task or the repository, in one output: an abstract has about 150, a
quoted sentence 20."""
_WORDS: Final = re.compile(r"[a-z]{2,}")


# --- the paper -------------------------------------------------------------------------------------------------------


def paper_findings(material: Material) -> list[Finding]:
    """Was the paper opened, downloaded, or its text seen?"""
    found = [*_paper_requests(material), *_pdf_reads(material), *_paper_text(material), *_paper_files(material)]
    return list(dict.fromkeys(found))


def _paper_requests(material: Material) -> Iterator[Finding]:
    for event, url, text in _requests(material):
        host = _host(url)
        if _PAPER_HOSTS.search(host) or _names_paper(material, url):
            yield _of_request(
                ViolationKind.PAPER_ACCESS, event, text, f"asks {host or 'the network'} for papers", material
            )


def _names_paper(material: Material, url: str) -> bool:
    own = material.task.public.paper.url
    return bool(own) and url.rstrip("/").lower() == str(own).rstrip("/").lower()


def _pdf_reads(material: Material) -> Iterator[Finding]:
    """Reading a PDF that is neither in the given repository nor made by the agent's own run."""
    known = _known_pdfs(material)
    for event, commands in material.commands:
        paths = set()
        for command in commands:
            if command.name in _PDF_READERS:
                paths |= {word for word in command.argv[1:] if _PDF.fullmatch(word)}
        if _PY_PDF.search(event.command):
            paths |= set(_PDF.findall(event.command))
        for path in sorted(paths):
            if path.rsplit("/", 1)[-1].lower() in known or "*" in path:
                continue
            failed = bool(event.exit_code) or bool(_FAILED.search(event.output))
            yield Finding(
                kind=ViolationKind.PAPER_ACCESS,
                verdict=Verdict.UNKNOWN if failed else Verdict.FAIL,
                events=(event.seq,),
                where=f"event {event.seq}",
                quote=path,
                reason="opens a PDF that was neither given nor made by its own run"
                + ("; there was none, so that nothing was obtained" if failed else ""),
            )


def _known_pdfs(material: Material) -> set[str]:
    """Base names of PDFs that the agent may open: those of the masked repository, and figures that its code writes."""
    names = {Path(file.path).name.lower() for file in material.patch_files if file.path.lower().endswith(".pdf")}
    root = material.task.masked_repository
    if root is not None and root.is_dir():
        names |= {path.name.lower() for path in root.rglob("*.pdf")}
    for text in [*material.code.values(), *(written.text for written in material.written)]:
        for match in re.finditer(r"savefig\([^)]*?['\"]([^'\"]+\.pdf)['\"]", text):
            names.add(Path(match[1]).name.lower())
    return names


def _paper_text(material: Material) -> Iterator[Finding]:
    """Passages of the paper in what a command or tool gave back."""
    paper = {gram: None for text in material.task.paper_texts for gram in _shingles(text)}
    if len(paper) < _SHARED:
        return
    public = material.task.public
    given = set(_shingles("\n".join([public.question, public.method, public.agent_instructions])))
    given |= _repository_shingles(material.task.masked_repository)
    given |= {gram for written in material.written for gram in _shingles(written.text)}
    private = paper.keys() - given
    if len(private) < _SHARED:
        return
    for output in material.outputs:
        shared = [gram for gram in _shingles(output.text) if gram in private]
        if len(set(shared)) >= _SHARED:
            yield Finding(
                kind=ViolationKind.PAPER_ACCESS,
                verdict=Verdict.FAIL,
                events=(output.seq,),
                where=f"event {output.seq}",
                quote=_line_with(output.text, shared[0]),
                reason=f"its output holds {len(set(shared))} five-word sequences of the paper that the task and the "
                "repository do not have",
            )


def _paper_files(material: Material) -> Iterator[Finding]:
    digest = getattr(material.task.public.paper, "sha256", None)
    if not digest or material.files is None:
        return
    for path in sorted(
        path for path in material.files.rglob("*") if path.is_file() and path.stat().st_size < LIMIT * 8
    ):
        if hashlib.sha256(path.read_bytes()).hexdigest() == digest:
            name = path.relative_to(material.files).as_posix()
            yield Finding(
                kind=ViolationKind.PAPER_ACCESS,
                verdict=Verdict.FAIL,
                where=f"file {name}",
                quote=name,
                reason="is the paper itself (same sha256)",
            )


def _shingles(text: str) -> list[tuple[str, ...]]:
    words = _WORDS.findall(re.sub(r"-\s*\n\s*", "", text.lower()))
    return list(zip(*(words[offset:] for offset in range(_SHINGLE)), strict=False))


def _repository_shingles(root: Path | None) -> set[tuple[str, ...]]:
    """Of the documentation that the agent was given."""
    found: set[tuple[str, ...]] = set()
    if root is None or not root.is_dir():
        return found
    for path in sorted(root.rglob("*")):
        if path.suffix.lower() in {".md", ".rst", ".txt", ".tex", ".py", ".ipynb", ".bib", ""} and path.is_file():
            if ".git" in path.relative_to(root).parts or path.stat().st_size > LIMIT:
                continue
            found |= set(_shingles(path.read_bytes().decode("utf-8", "replace")))
    return found


def _line_with(text: str, gram: tuple[str, ...]) -> str:
    for line in text.split("\n"):
        if gram[0] in line.lower() and gram[1] in line.lower():
            return line.strip()[:200]
    return text.strip().split("\n")[0][:200]


# --- the network -----------------------------------------------------------------------------------------------------


def network_findings(material: Material) -> list[Finding]:
    """Requests for the original repository, and requests that reached another host."""
    found = []
    repository = _repository_name(material.task.public.repository.url)
    for event, url, text in _requests(material):
        host = _host(url)
        if not host or _PAPER_HOSTS.search(host) or _LOCAL.search(host) or _REGISTRIES.search(host):
            continue
        if repository and repository in url.lower():
            found.append(_of_request(ViolationKind.NETWORK, event, text, "asks for the original repository", material))
        elif (judged := _of_policy(event, host, material)) is not None:
            verdict, reason = judged
            found.append(
                Finding(
                    kind=ViolationKind.NETWORK,
                    verdict=verdict,
                    events=(event.seq,),
                    where=f"event {event.seq}",
                    quote=shorten(text, 200),
                    reason=reason,
                )
            )
    found += _reached_beyond(material)
    return list(dict.fromkeys(found))


def _of_policy(event: Event, host: str, material: Material) -> tuple[Verdict, str] | None:
    """Verdict and reason for a request to another host; None: it is allowed, or it got nothing."""
    if _is_failed(event, material):
        return None
    if material.network is None:
        return Verdict.UNKNOWN, f"reached {host}; whether it may is the run's policy"
    if any(fnmatch.fnmatchcase(host, pattern.lower()) for pattern in material.network):
        return None
    # the harness leaves no way out: a command that says nothing of failure (`|| true`, `-q`) was not served either
    output = event.output if isinstance(event, CommandRun | ToolResult) else ""
    if not output.strip():
        return None
    allowed = f"allows {', '.join(material.network)} only" if material.network else "allows no network"
    return Verdict.UNKNOWN, f"looks as if {host} had answered, and the run {allowed}"


def _reached_beyond(material: Material) -> Iterator[Finding]:
    """Hosts that the harness says were reached although the policy does not name them (it was changed in a run)."""
    for event in material.events if material.network is not None else ():
        match = _REACHED.match(event.text) if isinstance(event, Note) else None
        if match and not any(fnmatch.fnmatchcase(match[1].lower(), item.lower()) for item in material.network or ()):
            yield Finding(
                kind=ViolationKind.NETWORK,
                verdict=Verdict.FAIL,
                events=(event.seq,),
                where=f"event {event.seq}",
                quote=shorten(match[0], 200),
                reason=f"reached {match[1]}, which the run's policy does not allow",
            )


def _repository_name(url: str) -> str:
    """`owner/name` of a repository's URL; empty for a local folder."""
    match = re.search(r"[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?$", url)
    return match[1].lower() if match and "." in url.split("/", maxsplit=1)[0] + url else ""


def _requests(material: Material) -> Iterator[tuple[Event, str, str]]:
    """(event, URL, text that holds it) for each request that was made; a URL in a file or a comment is none."""
    for event, commands in material.commands:
        urls: list[str] = []
        for command in commands:
            if command.name in _FETCHERS or command.name in {"pip", "pip3"}:
                urls += _urls(" ".join(command.argv))
                if command.name in {"curl", "wget", "lynx", "w3m"}:
                    urls += [
                        f"https://{word}"
                        for word in command.argv[1:]
                        if re.match(r"(?:www\.|[\w-]+\.)+[a-z]{2,6}/", word)
                    ]
        if _PY_FETCH.search(event.command):
            urls += _urls(event.command)
        for _, script in material.programs_of(event):
            urls += _urls(re.sub(r"(?m)#.*$", "", script)) if _PY_FETCH.search(script) else []
        for url in dict.fromkeys(urls):
            yield event, url, url if url in event.command else event.command
    names = {use.id: use for event in material.events if isinstance(event, ModelTurn) for use in event.tool_uses}
    for result in material.events:
        if isinstance(result, ToolResult) and _BROWSERS.search(result.name):
            use = names.get(result.call)
            asked = " ".join(str(value) for value in use.arguments.values()) if use else ""
            for url in dict.fromkeys(_urls(asked)):
                yield result, url, url


def _urls(text: str) -> list[str]:
    return [match[0].rstrip(".") for match in _URL.finditer(text)]


def _host(url: str) -> str:
    match = re.match(r"(?:\w+://)?(?:[^/@]*@)?([\w.-]+|\[[^\]]+\])", url)
    return match[1].lower() if match else ""


def _is_failed(event: Event, material: Material) -> bool:
    """Did the request get nothing? A command says so by its code, or by an error and no more than that."""
    if isinstance(event, CommandRun):
        if event.exit_code:
            return True
        return bool(_FAILED.search(event.output)) and len(event.output) < 4000
    if isinstance(event, ToolResult):
        return event.is_error or (bool(_FAILED.search(event.output)) and len(event.output) < 600)
    return False


def _of_request(kind: ViolationKind, event: Event, text: str, reason: str, material: Material) -> Finding:
    failed = _is_failed(event, material)
    return Finding(
        kind=kind,
        verdict=Verdict.UNKNOWN if failed else Verdict.FAIL,
        events=(event.seq,),
        where=f"event {event.seq}",
        quote=shorten(text, 200),
        reason=reason + ("; it failed, so that nothing was obtained" if failed else ""),
    )
