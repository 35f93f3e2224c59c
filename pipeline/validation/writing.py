"""Where no script of a repository serves, a model may write one that uses the repository's code (last refinement).

It is told the question, the method and the names of what has to be measured - never the numbers - and what it wrote
goes through the same checks as any script: it runs in the sandbox, the claims decide, the monitor looks. What comes of
it is marked: the script's reasons name the model, and the task carries a problem that a reviewer sees.

Non-goals: changing files of the repository; a script that does not use it (that would be the model's experiment).
"""

from __future__ import annotations

import ast
import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import Field

from pipeline.llm import ModelClient, PromptRef, Request, load_prompt
from pipeline.progress import Reporter
from pipeline.repository import Snapshot
from pipeline.schema import Record
from pipeline.task import Task
from pipeline.text import shorten
from pipeline.validation.variants import with_files

__all__ = ["SCRIPT", "Script", "WrittenScript", "with_script", "write_script"]

SCRIPT: Final = "expbench_written_experiment.py"
"""Name of the script at the root; no repository has one of this name."""
_MAX_FILES: Final = 300
_MAX_OUTLINE: Final = 24_000
"""Characters of signatures and docstrings: about 8,000 tokens, a small library as a whole."""
_MAX_LOG: Final = 4_000


class Script(Record):
    """A model's answer."""

    code: str = Field(max_length=60_000, description="the whole script; empty when there can be none")
    why: str = Field(min_length=1, max_length=1_500, description="how it answers the question, or why there is none")


class WrittenScript(Record):
    """A script that a model wrote."""

    code: str
    why: str
    model: str
    prompt: PromptRef


def write_script(
    task: Task, snapshot: Snapshot, *, log: str, client: ModelClient, reporter: Reporter
) -> WrittenScript | None:
    """Ask a model for a script.

    Args:
        task: question, method and claims; of the claims only the names are shown.
        snapshot: the repository.
        log: what was tried before and how it failed, without any number that the paper states.
        client: the model; its calls count in the current budget.
        reporter: a note of stage `validate`.

    Returns:
        None when the model says that there can be none.

    Raises:
        ModelError: the endpoint failed, or no answer was a script that uses the repository.
        BudgetError: the budget does not allow the call.
    """
    prompt = load_prompt("pipeline.validation.prompts", "write_script")
    modules = _modules(snapshot)
    reporter.note("validate", "a model is asked for a script, because none of the repository's serves")
    messages = prompt.render(
        task=_described(task),
        files="\n".join(file.path for file in snapshot.files[:_MAX_FILES]),
        code=_outline(snapshot, modules),
        log=shorten(log, _MAX_LOG) or "nothing was tried",
    )
    request = Request(messages=messages, prompt=prompt.ref)
    answer = client.structured(request, Script, check=lambda script: _check(script, modules))
    if not answer.value.code.strip():
        reporter.note("validate", f"the model wrote none: {shorten(answer.value.why, 200)}")
        return None
    return WrittenScript(code=answer.value.code, why=answer.value.why, model=client.config.model, prompt=prompt.ref)


def _described(task: Task) -> str:
    wanted = []
    for claim in task.truth.expected.claims:
        conditions = ", ".join(f"{item.name}: {item.value}" for item in claim.conditions)
        wanted.append(f"- {claim.metric}" + (f" ({conditions})" if conditions else ""))
    return "\n".join(
        [f"Question: {task.question}", f"Method: {task.method}", "To be measured:", *dict.fromkeys(wanted)]
    )


def _modules(snapshot: Snapshot) -> dict[str, str]:
    """Importable module -> path, with the root and src/ on the path."""
    found: dict[str, str] = {}
    for file in snapshot.files:
        path = PurePosixPath(file.path)
        if path.suffix != ".py" or file.binary:
            continue
        parts = path.with_suffix("").parts
        parts = parts[1:] if parts[0] == "src" else parts
        parts = parts[:-1] if parts and parts[-1] == "__init__" else parts
        if parts and all(part.isidentifier() for part in parts):
            found.setdefault(".".join(parts), file.path)
    return found


def _outline(snapshot: Snapshot, modules: dict[str, str]) -> str:
    """Signatures and first docstring lines of all modules, as far as they fit."""
    lines: list[str] = []
    for module, path in sorted(modules.items()):
        try:
            tree = ast.parse(snapshot.text(path))
        except (SyntaxError, ValueError, RecursionError):
            continue
        lines.append(f"# {module} ({path})")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines.append(f"def {node.name}({ast.unparse(node.args)}){_summary(node)}")
            elif isinstance(node, ast.ClassDef):
                lines.append(f"class {node.name}{_summary(node)}")
    return _fitting(lines)


def _summary(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
    text = (ast.get_docstring(node) or "").strip().partition("\n")[0]
    return f"  # {text}" if text else ""


def _fitting(lines: Sequence[str]) -> str:
    """As many lines as fit, and how many were left out."""
    size = 0
    for number, line in enumerate(lines):
        size += len(line) + 1
        if size > _MAX_OUTLINE:
            return "\n".join([*lines[:number], f"({len(lines) - number} more lines are not shown)"])
    return "\n".join(lines)


def _check(script: Script, modules: dict[str, str]) -> None:
    """What is no script of this kind goes back to the model with the reason."""
    if not script.code.strip():
        return
    try:
        tree = ast.parse(script.code)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ValueError(f"the script does not parse: {error}") from error
    own = {module.partition(".")[0] for module in modules}
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    if own and not names & own:
        raise ValueError(f"the script imports nothing of the repository ({', '.join(sorted(own)[:20])})")


def with_script(snapshot: Snapshot, code: str, into: Path) -> Snapshot:
    """The repository with a written script at its root, as a snapshot of its own.

    Args:
        snapshot: the repository.
        code: the script.
        into: folder to make; what lies there is replaced.
    """
    if os.path.lexists(snapshot.root / SCRIPT):
        raise ValueError(f"the repository has a file {SCRIPT} already")
    extended = with_files(snapshot, {SCRIPT: code}, into)
    extended.save()
    return extended
