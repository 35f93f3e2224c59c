"""One published EXP-Bench record <-> one `Task`; what a task has no field for stays in the record, verbatim."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple

from pydantic import JsonValue

from pipeline.formats._expbench_text import (
    commands_of,
    format_requirement,
    format_variables,
    normal_path,
    parse_requirement,
    parse_variables,
)
from pipeline.paper import Paper
from pipeline.repository import RepositoryRef
from pipeline.schema import Problem, Severity
from pipeline.task import (
    DesignVariable,
    Expected,
    ExperimentTruth,
    Family,
    MaskedPath,
    NotFound,
    Provenance,
    Requirement,
    SourceScript,
    Status,
    Task,
)

__all__ = ["Origin", "Quirk", "record_to_task", "task_to_record"]

COMPONENT: Final = "formats.expbench"

_DESIGN_KEYS: Final = ("design_complexity", "experiment_design_complexity")
_QUESTION_KEYS: Final = ("question", "hypothesis")
_VARIABLES: Final = {
    "constant": "constant_variables",
    "independent": "independent_variables",
    "dependent": "dependent_variables",
}
_MAPPED: Final = frozenset(
    {"question", "hypothesis", "method", "expected_outcome", "source", "usage_instructions", "requirements",
     "agent_instructions", "masked_source", "no_answer", *_DESIGN_KEYS}
)  # fmt: skip
_COMMENTARY: Final = frozenset(
    {"subsection_source", "mode", "design_ambiguity", "experiment_design_ambiguity", "experiment_setup_complexity",
     "experiment_setup_ambiguity", "experiment_constraints", "experiment_uncertainty", "random_uncertainty",
     "systematic_uncertainty", "experiment_steps", "setup_ambiguity"}
)  # fmt: skip
"""Published beside the task; nothing here reads it, and it is kept."""
_SEARCHED: Final = "not stated: the published record gives the reason only"


class Quirk(StrEnum):
    """Where the published data departs from its own form; each occurrence is a `Problem` and is counted."""

    NO_ANSWER = "no_answer"
    NO_DESIGN = "no_design"
    RENAMED_KEY = "renamed_key"
    NESTED_KEY = "nested_key"
    UNKNOWN_KEY = "unknown_key"
    MISSING_FIELD = "missing_field"
    WRONG_TYPE = "wrong_type"
    CHANGED_PATH = "changed_path"
    REQUIREMENT_WITHOUT_SPAN = "requirement_without_span"
    USAGE_WITHOUT_COMMAND = "usage_without_command"
    DUPLICATE_KEY = "duplicate_key"
    SKIPPED = "skipped"
    BAD_FILE = "bad_file"
    NO_CONFERENCE_ROW = "no_conference_row"
    ROW_WITHOUT_TASKS = "row_without_tasks"
    DUPLICATE_ROW = "duplicate_row"


class Origin(NamedTuple):
    """What a record itself does not say."""

    id: str
    """The task's id."""
    paper: Paper
    repository: RepositoryRef
    where: str
    """For problems: file and index."""


class _Reader:
    """Reads one record and notes its quirks."""

    def __init__(self, record: Mapping[str, Any], origin: Origin) -> None:
        self.record, self.origin = record, origin
        self.problems: list[Problem] = []

    def note(self, quirk: Quirk, message: str, severity: Severity = Severity.INFO) -> None:
        self.problems.append(
            Problem(component=f"{COMPONENT}.{quirk}", where=self.origin.where, message=message, severity=severity)
        )

    def text(self, key: str, *, needed: bool) -> str:
        """A field that should be text; a list of texts is joined by line breaks."""
        value = self.record.get(key)
        if isinstance(value, str):
            return value
        if value is None:
            if needed:
                self.note(Quirk.MISSING_FIELD, f"`{key}` is missing", Severity.WARNING)
            return ""
        self.note(Quirk.WRONG_TYPE, f"`{key}` is a {type(value).__name__}, not text: kept in the record only")
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return "\n".join(value)
        return ""

    def texts(self, key: str) -> list[str]:
        """A field that should be a list of texts; a single text is a list of one."""
        value = self.record.get(key)
        if value is None:
            return []
        if isinstance(value, str):
            self.note(Quirk.WRONG_TYPE, f"`{key}` is text, not a list: read as a list of one")
            return [value]
        if not isinstance(value, list):
            self.note(Quirk.WRONG_TYPE, f"`{key}` is a {type(value).__name__}, not a list: kept in the record only")
            return []
        good = [item for item in value if isinstance(item, str)]
        if len(good) != len(value):
            self.note(Quirk.WRONG_TYPE, f"{len(value) - len(good)} entries of `{key}` are not text: kept in the record")
        return good

    def paths(self, key: str, known: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A list of paths, relative to the repository, without repetitions."""
        found: dict[str, None] = {}
        changed = 0
        for text in self.texts(key):
            path, different = normal_path(text, known)
            changed += different
            if path:
                found[path] = None
        if changed:
            self.note(Quirk.CHANGED_PATH, f"{changed} path(s) of `{key}` were made relative to the repository")
        return tuple(found)

    def question(self) -> str | None:
        """The question, under either name; None when there is none."""
        for key in _QUESTION_KEYS:
            value = self.record.get(key)
            if isinstance(value, str) and value.strip():
                if key != "question":
                    self.note(Quirk.RENAMED_KEY, f"`question` is called `{key}`")
                return value
        self.note(Quirk.SKIPPED, "it has no question: not a task, kept as it is", Severity.ERROR)
        return None

    def design(self) -> dict[str, tuple[DesignVariable, ...]]:
        """The three kinds of variables."""
        value, found = self._design_value()
        if not found:
            self.note(Quirk.NO_DESIGN, "it states no design (no `design_complexity`)", Severity.WARNING)
            return {}
        variables: dict[str, tuple[DesignVariable, ...]] = {}
        for kind, key in _VARIABLES.items():
            parsed = parse_variables(value.get(key, {}))
            if parsed is None:
                self.note(
                    Quirk.WRONG_TYPE, f"`{key}` is neither a mapping nor a list of names: kept in the record only"
                )
            variables[kind] = parsed or ()
        if not any(variables.values()):
            self.note(Quirk.NO_DESIGN, "its design names no variable", Severity.WARNING)
        return variables

    def _design_value(self) -> tuple[dict[str, Any], bool]:
        for key in _DESIGN_KEYS:
            value = self.record.get(key)
            if not isinstance(value, dict):
                continue
            if key != _DESIGN_KEYS[0] and _DESIGN_KEYS[0] not in self.record:
                self.note(Quirk.RENAMED_KEY, f"`{_DESIGN_KEYS[0]}` is called `{key}`")
            while not any(name in value for name in _VARIABLES.values()):
                inner = next((value[name] for name in _DESIGN_KEYS if isinstance(value.get(name), dict)), None)
                if inner is None:
                    break
                self.note(Quirk.NESTED_KEY, f"`{key}` is wrapped in itself")
                value = inner
            if any(name in value for name in _VARIABLES.values()):
                return value, True
        return {}, False

    def requirements(self, known: tuple[str, ...]) -> tuple[Requirement, ...]:
        """The implementation steps with their spans."""
        parsed = tuple(parse_requirement(text, known) for text in self.texts("requirements"))
        bare = sum(not requirement.spans for requirement in parsed)
        if bare:
            self.note(Quirk.REQUIREMENT_WITHOUT_SPAN, f"{bare} of {len(parsed)} requirements name no lines")
        return parsed

    def truth(self) -> ExperimentTruth:
        """Ground truth as far as a task has fields for it."""
        sources = self.paths("source")
        usage = self.text("usage_instructions", needed=False)
        commands = commands_of(usage)
        if usage and not commands:
            self.note(Quirk.USAGE_WITHOUT_COMMAND, "its usage instructions hold no complete command")
        reason = self.text("no_answer", needed=False)
        if reason:
            self.note(Quirk.NO_ANSWER, "no script of the repository answers the question")
        return ExperimentTruth(
            **self.design(),
            sources=tuple(
                SourceScript(path=path, role=_role(path), score=1.0, reasons=("published",)) for path in sources
            ),
            requirements=self.requirements(sources),
            usage=commands,
            expected=Expected(text=self.text("expected_outcome", needed=True)),
            not_found=NotFound(reason=reason, searched=(_SEARCHED,)) if reason else None,
        )


def _role(path: str) -> Any:
    """Scripts are entries, settings are configurations; the published data does not say more."""
    return "config" if path.endswith((".yaml", ".yml", ".json", ".toml", ".cfg", ".ini", ".gin")) else "entry"


def record_to_task(record: Mapping[str, Any], origin: Origin) -> tuple[Task | None, tuple[Problem, ...]]:
    """Read one record.

    Args:
        record: as published.
        origin: what the record does not say itself.

    Returns:
        The task (None: the record has no question) and its quirks.
    """
    reader = _Reader(record, origin)
    question = reader.question()
    for key in sorted(set(record) - _MAPPED - _COMMENTARY):
        reader.note(Quirk.UNKNOWN_KEY, f"`{key}` is not a known key: kept in the record")
    if question is None:
        return None, tuple(reader.problems)
    truth = reader.truth()
    masked = reader.paths("masked_source", tuple(script.path for script in truth.sources))
    status = Status.NOT_FOUND if truth.not_found else Status.LOCATED if truth.sources else Status.DRAFT
    task = Task(
        id=origin.id,
        family=Family.EXPERIMENT,
        status=status,
        status_reason=truth.not_found.reason if truth.not_found else "",
        paper=origin.paper,
        repository=origin.repository,
        question=question,
        method=reader.text("method", needed=True),
        agent_instructions=reader.text("agent_instructions", needed=False),
        provenance=Provenance(engine="model", model="as published", stages=(("import.exp-bench", "1"),)),
        truth=truth,
        masked=tuple(MaskedPath(path=path, action="removed", reason="published mask") for path in masked),
        problems=tuple(reader.problems),
    )
    return task, tuple(reader.problems)


def task_to_record(task: Task, original: Mapping[str, JsonValue] | None = None) -> dict[str, JsonValue]:
    """Write one record in the published form.

    Where the task still says what was read from `original`, the original's own words are kept, down to its quirks; a
    field that was changed since is written in the canonical form (paths relative to the repository, `question` and
    `design_complexity` under those names, variables as lists of texts, spans as `(path:start-end)`).

    Args:
        task: an experiment task.
        original: the record that it was read from; its other keys are kept.
    """
    fields = _canonical(task)
    if original is None:
        return {key: value for key, value in fields.items() if value not in ("", [], None)}
    before, _ = record_to_task(original, Origin(task.id, task.paper, task.repository, task.id))
    unchanged = _canonical(before) if before is not None else {}
    record = dict(original)
    for key, value in fields.items():
        if unchanged.get(key) == value:
            continue
        for other in _aliases(key):
            record.pop(other, None)
        if value not in ("", [], None):
            record[key] = value
    return record


def _aliases(key: str) -> tuple[str, ...]:
    for names in (_QUESTION_KEYS, _DESIGN_KEYS):
        if key in names:
            return names
    return (key,)


def _canonical(task: Task) -> dict[str, JsonValue]:
    """The fields that a task and a published record share, in the record's form; usage is text there."""
    truth = task.truth
    variables: dict[str, JsonValue] = {
        key: {name: list(values) for name, values in format_variables(getattr(truth, kind)).items()}
        for kind, key in _VARIABLES.items()
    }
    commands = "\n".join(shlex.join(usage.argv) for usage in truth.usage)
    return {
        "question": task.question,
        "method": task.method,
        "expected_outcome": truth.expected.text,
        "agent_instructions": task.agent_instructions,
        "source": [script.path for script in truth.sources],
        "usage_instructions": f"```\n{commands}\n```" if commands else "",
        "requirements": [format_requirement(requirement) for requirement in truth.requirements],
        "design_complexity": variables if any(variables.values()) else None,
        "masked_source": [item.path for item in task.masked],
        "no_answer": truth.not_found.reason if truth.not_found else "",
    }
