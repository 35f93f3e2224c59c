"""Hook of the documentation site: the reference pages, written from the code whenever the site is built.

They cannot go stale, and they are not in git. Command line: typer's own generator; records: the JSON schemas of the
pydantic models; failures: the table in `pipeline.errors`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
if str(ROOT) not in sys.path:  # the packages lie beside docs/; mkdocs does not put its directory on the path
    sys.path.insert(0, str(ROOT))

RECORDS: tuple[tuple[str, str, str], ...] = (
    ("pipeline.task", "Task", "`task.yaml`, `truth.yaml`, `evidence.json` together"),
    ("pipeline.task", "PublicTask", "`task.yaml`: what an agent may see"),
    ("pipeline.paper", "Document", "`document.json`"),
    ("evaluation.trajectory", "TrajectoryHead", "first line of `trajectory.jsonl`"),
    ("evaluation.submission", "Submission", "`submission.json`"),
    ("evaluation.submission", "Response", "`response.json`, what an agent hands in"),
    ("evaluation.verdicts", "IntegrityReport", "`integrity.json`"),
    ("evaluation.verdicts", "ExecutionReport", "`execution.json`"),
    ("evaluation.verdicts", "Judgement", "`judgement.json`"),
    ("evaluation.scores", "EpisodeScores", "`scores.json`, one row of every table"),
    ("evaluation.lock", "EpisodeLock", "`lock.json`"),
)
"""Module, class, where it is stored."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    pages: dict[str, Callable[[], str]] = {
        "reference/cli.md": cli_page, "reference/schema.md": schema_page, "reference/failures.md": failures_page,
    }  # fmt: skip
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text()))
    return files


def cli_page() -> str:
    """Every command with its options, as `--help` has them."""
    import typer.main
    from typer.cli import get_docs_for_click

    from flows.cli import app

    command: Any = typer.main.get_command(app)
    context = typer.Context(command, info_name="expbench", obj={"TYPER_RICH_MARKUP_MODE": None})
    text = get_docs_for_click(obj=command, ctx=context, name="expbench", title="The command line")
    text = text.replace("[green]", "").replace("[/green]", "")
    # examples are the indented lines of an epilogue; as text, their `*` and `_` would become emphasis
    return re.sub(r"(?m)(?:^  \S.*\n+)+", _as_code, text)


def _as_code(examples: re.Match[str]) -> str:
    lines = [line.strip() for line in examples[0].splitlines() if line.strip()]
    return "\n".join(["```bash", *lines, "```", "", ""])


def schema_page() -> str:
    """The stored records, field by field."""
    from importlib import import_module

    lines = ["# Records and their fields", ""]
    lines += ["Every stored record carries `schema_version` and is read back through the same model.", ""]
    for module, name, place in RECORDS:
        model = getattr(import_module(module), name)
        schema = model.model_json_schema(mode="serialization")
        about = (model.__doc__ or "").strip().split("\n")[0]
        lines += [f"## {name}", "", f"`{module}.{name}`, stored as {place}. {about}", ""]
        lines += ["| field | type | required | meaning |", "|---|---|---|---|"]
        required = set(schema.get("required", ()))
        for field, value in schema["properties"].items():
            said = _documentation(model, field)
            lines.append(f"| `{field}` | {_kind(value)} | {'yes' if field in required else ''} | {said} |")
        lines.append("")
    return "\n".join(lines)


def failures_page() -> str:
    """`pipeline.errors`: what each failure means for retry, grade and exit code."""
    from pipeline.errors import FAILURES

    lines = ["# Failures and exit codes", ""]
    lines += ["One table decides what a failure means; `expbench` exits with the code given here.", ""]
    lines += ["| failure | cause | tried again | graded | exit code |", "|---|---|---|---|---|"]
    for kind, failure in FAILURES.items():
        marks = ["yes" if value else "no" for value in (failure.retry, failure.graded)]
        lines.append(f"| `{kind.value}` | {failure.cause.value} | {marks[0]} | {marks[1]} | {failure.exit_code} |")
    return "\n".join([*lines, ""])


def _kind(value: dict[str, Any]) -> str:
    if "$ref" in value:
        return str(value["$ref"]).rsplit("/", 1)[-1]
    for key in ("anyOf", "oneOf"):
        if key in value:
            return " or ".join(_kind(item) for item in value[key])
    if value.get("type") == "array":
        return f"list of {_kind(value['items'])}" if "items" in value else "list"
    if value.get("type") == "object" and isinstance(value.get("additionalProperties"), dict):
        return f"map to {_kind(value['additionalProperties'])}"
    return str(value.get("const") or value.get("type", "any"))


def _documentation(model: Any, field: str) -> str:
    """The string below a field in the source; pydantic does not keep it unless it is asked to."""
    import ast
    import inspect
    import textwrap

    for owner in model.__mro__:
        if field not in vars(owner).get("__annotations__", {}):
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0]
        assert isinstance(tree, ast.ClassDef)
        for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
            named = isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == field
            if named and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                return " ".join(str(after.value.value).split()).replace("|", "\\|")
        return ""
    return ""
