"""Requirements: the steps of a run in words, in execution order, each with the lines that implement it.

Module-level code and the `main` of an entry point are cut into blocks at blank lines and comments; every function that
is reached becomes a step of its own where it is long enough to be one, and is added to its caller's lines otherwise.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection
from dataclasses import dataclass, field

from pipeline.task import CodeEvidence, Requirement
from pipeline.tracing.arguments import Option, read_options
from pipeline.tracing.callgraph import Reached, Reaching
from pipeline.tracing.phrases import Known
from pipeline.tracing.program import Definition, Module, Program, dotted
from pipeline.tracing.relevance import chosen
from pipeline.tracing.source import CodeUnit
from pipeline.tracing.wording import classify, comment_above, describe_block, describe_function, nothing_known

__all__ = ["requirements_of"]

# Published tasks have 5 to 20 steps; more than twice that is a listing, not a description.
_MAX_STEPS = 40
_SMALL = 4
"""Functions up to this many lines are part of their caller's step."""
_LONG_MAIN = 8
_TOO_LONG = 80
"""Nobody checks a step of more lines at one glance; of 1,337 published spans, 95% have at most 67."""
_MAIN_NAMES = {"main", "run", "cli", "app", "train", "experiment", "entry"}
_QUOTED = 120
_PARSING = re.compile(r"ArgumentParser\(|\.parse_(?:known_)?args\(")
_SAYS_NOTHING = re.compile(
    r"(?:(?:print the results|create the output directory|parse the command line)(?:; )?)+|set [\w., ]+|"
    r"run the statements of this block|for each [^,;:]+ in [^,;:]+(?:: print the results)?|"
    r"(?:compute|strftime|copy|sort|warning)(?: (?:array|mean|set_printoptions|arange|and|no_grad|[, ])+)?"
    r"(?:; print the results)?",
    re.IGNORECASE,
)
"""Descriptions that name nothing of an experiment: a judge cannot tell whether an agent did them."""
_INSTALLS = re.compile(r"\bpip\b.*\binstall\b|_pip\(", re.DOTALL)


_Key = tuple[str, str, int]


@dataclass(slots=True)
class _Step:
    text: str
    spans: list[CodeEvidence] = field(default_factory=list)
    weight: float = 0.0


def requirements_of(
    program: Program,
    module: Module,
    reaching: Reaching,
    *,
    own: Collection[str] = (),
    about: str = "",
    known: Known = nothing_known,
) -> list[Requirement]:
    """The steps of one entry point.

    Args:
        program: the repository.
        module: the entry point.
        reaching: what it reaches, from `callgraph.reach`.
        own: files whose code is the experiment, beside the entry point: the other files of the chain.
        about: what the task says; of what is reached elsewhere, the definitions that speak of it are kept
            (see `pipeline.tracing.relevance`). Empty: all of them.
        known: what expressions are in this run; the texts state it.
    """
    kept = chosen(program, reaching, {module.path, *own}, about)
    builder = _Builder(program, _mains(module, reaching) | _long(reaching, {module.path, *own}), kept, known)
    for reached in reaching.functions:
        builder.calls.setdefault((reached.caller, reached.line), []).append(reached)
    body = module.unit.tree.body if module.unit.tree is not None else []
    builder.script(module, _script_body(body), None)
    for reached in reaching.functions:  # whatever no block led to
        builder.function(reached)
    return [Requirement(text=step.text, spans=tuple(step.spans)) for step in _strongest(builder.steps)]


def _mains(module: Module, reaching: Reaching) -> set[tuple[str, str, int]]:
    """Functions of the entry point that are its body: `main` and what module-level code calls in its place."""
    return {
        item.definition.key
        for item in reaching.functions
        if item.definition.path == module.path
        and item.depth <= 2
        and (item.definition.name in _MAIN_NAMES or item.caller is None)
        and _length(item.definition.node) > _LONG_MAIN
        and (item.definition.name in _MAIN_NAMES or _length(item.definition.node) > 60)
    }


def _long(reaching: Reaching, own: Collection[str]) -> set[_Key]:
    """Functions of the experiment that are too long to be one step: their bodies are cut as scripts are."""
    return {
        item.definition.key
        for item in reaching.functions
        if item.definition.path in own and _length(item.definition.node) > _TOO_LONG
    }


def _script_body(body: list[ast.stmt]) -> list[ast.stmt]:
    """Module-level statements that do something: no imports, definitions, docstrings; `if __name__` opened."""
    found: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            found += node.body
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        elif not isinstance(
            node, (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Pass)
        ):
            found.append(node)
    return found


@dataclass(slots=True)
class _Builder:
    """Collects the steps of one entry point in the order of its calls."""

    program: Program
    mains: set[_Key]
    """Functions whose bodies are cut into blocks."""
    kept: Collection[_Key]
    """Functions that may become steps; calls of the others are followed, but are none themselves."""
    known: Known
    calls: dict[tuple[_Key | None, int], list[Reached]] = field(default_factory=dict)
    """(caller, line) -> functions that are entered there."""
    steps: list[_Step] = field(default_factory=list)
    homes: dict[_Key, _Step | None] = field(default_factory=dict)
    """Functions that were dealt with, and the step that they became part of."""

    def script(self, module: Module, body: list[ast.stmt], key: _Key | None) -> None:
        """The steps of module-level code, or of the body of a `main` or a long function."""
        options = _option_statements(module, body)
        if options:
            self.steps.append(_arguments_step(module, *options))
        skipped = set(map(id, options[1])) if options else set()
        for block in _blocks(module.unit, [node for node in body if id(node) not in skipped]):
            last = block[-1].end_lineno or block[-1].lineno
            inner = [
                reached
                for (caller, line), found in self.calls.items()
                if caller == key and block[0].lineno <= line <= last
                for reached in found
            ]
            step = _block_step(module, block, inner, self.known)
            if step is not None:
                self.steps.append(step)
            for reached in inner:
                self.function(reached, step)

    def function(self, reached: Reached, parent: _Step | None = None) -> None:
        """The step of a function, then those of what it calls (kept in the order of the calls)."""
        definition = reached.definition
        module = self.program.module(definition.path)
        if module is None or definition.key in self.homes:
            return
        if definition.key in self.mains:
            self.homes[definition.key] = None
            before = len(self.steps)
            body = [
                node
                for node in definition.node.body
                if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
            ]
            self.script(module, body, definition.key)
            if len(self.steps) == before:  # nothing in it is a step by itself
                self.homes[definition.key] = self._home(reached, module, parent)
            return
        if parent is not None and _is_nested(definition, module) and not self._is_part(definition):
            self.homes[definition.key] = parent  # part of the function around it, whose span holds it
            return
        home = self._home(reached, module, parent) if definition.key in self.kept else parent
        self.homes[definition.key] = home
        inner = [(line, found) for (caller, line), found in self.calls.items() if caller == definition.key]
        for _, found in sorted(inner, key=lambda item: item[0]):
            for called in found:
                self.function(called, home)

    def _is_part(self, definition: Definition) -> bool:
        """Is it a function of its own inside one that is cut into its parts?"""
        around = definition.name.rpartition(".")[0]
        cut = any(path == definition.path and name == around for path, name, _ in self.mains)
        return cut and _length(definition.node) > _LONG_MAIN

    def _home(self, reached: Reached, module: Module, parent: _Step | None) -> _Step:
        """The step that a function is: its own, or its caller's when it is a line or two."""
        node = reached.definition.node
        span = _span(module.unit, _first_line(node), node.end_lineno or node.lineno)
        if _length(node) <= _SMALL and parent is not None:
            parent.spans.append(span)
            return parent
        step = _function_step(reached.definition, module, reached, span, self.known)
        self.steps.append(step)
        return step


def _is_nested(definition: Definition, module: Module) -> bool:
    """Is a function defined inside another one (rather than in a class)?"""
    return definition.node.lineno in module.nested


def _function_step(definition: Definition, module: Module, reached: Reached, span: CodeEvidence, known: Known) -> _Step:
    docstring = ast.get_docstring(definition.node) or ""
    options = (
        [option for option in read_options(ast.Module([definition.node], [])) if option.flags]
        if "add_argument" in ast.dump(definition.node) or "option(" in docstring
        else []
    )
    text = (
        _options_text(options) + f" ({definition.name})"
        if options
        else describe_function(definition.node, definition.name, known)
    )
    kind = "arguments" if options else classify(definition.name, docstring)
    weight = {
        "training": 3.0,
        "evaluation": 3.0,
        "data": 2.5,
        "model": 2.5,
        "arguments": 2.0,
        "report": 1.5,
        "other": 1.0,
    }[kind]
    return _Step(
        text + _cell(module, definition.node.lineno),
        [span],
        weight - 0.5 * reached.depth + min(_length(definition.node), 60) / 60,
    )


def _strongest(steps: list[_Step]) -> list[_Step]:
    """At most `_MAX_STEPS`, the weakest left out, the order kept."""
    kept = [step for step in steps if step.spans]
    if len(kept) > _MAX_STEPS:
        strong = {id(step) for step in sorted(kept, key=lambda step: -step.weight)[:_MAX_STEPS]}
        kept = [step for step in kept if id(step) in strong]
    return kept


# --- blocks ----------------------------------------------------------------------------------------------------------


def _blocks(unit: CodeUnit, body: list[ast.stmt]) -> list[list[ast.stmt]]:
    """Consecutive statements that no blank line or comment separates; single short ones join the next block."""
    lines = unit.code.splitlines()
    blocks: list[list[ast.stmt]] = []
    for node in body:
        if isinstance(
            node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Pass)
        ):
            continue
        if blocks:
            last = blocks[-1][-1].end_lineno or blocks[-1][-1].lineno
            between = lines[last : node.lineno - 1]
            same_cell = unit.cell(last) == unit.cell(node.lineno)
            small = sum(_statement_length(item) for item in blocks[-1]) < 2 and _statement_length(node) < 2
            if same_cell and (not between or (small and not any(line.strip().startswith("#") for line in between))):
                blocks[-1].append(node)
                continue
        blocks.append([node])
    return blocks


def _statement_length(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _block_step(module: Module, block: list[ast.stmt], inner: list[Reached], known: Known) -> _Step | None:
    """A step for a block, unless all it does is to call one function that is a step of its own."""
    start, end = block[0].lineno, block[-1].end_lineno or block[-1].lineno
    has_loop = any(isinstance(node, (ast.For, ast.While, ast.AsyncFor)) for part in block for node in ast.walk(part))
    if len(inner) == 1 and not has_loop and end - start < 2:
        return None
    if not has_loop and not inner and _is_preparation(block):
        return None
    if end == start and isinstance(block[0], ast.Return):
        return None
    comment = comment_above(module.unit.code.splitlines(), start)
    described = describe_block(block, comment, known)
    if not inner and _SAYS_NOTHING.fullmatch(described):
        return None
    text = described + _cell(module, start)
    return _Step(text, [_span(module.unit, start, end)], 2.0 + has_loop + min(end - start, 40) / 40)


def _is_preparation(block: list[ast.stmt]) -> bool:
    """Constants, paths, warnings and messages without values: nothing that a reader would call a step."""
    for part in block:
        if isinstance(part, (ast.Assign, ast.AnnAssign)) and not any(isinstance(n, ast.Call) for n in ast.walk(part)):
            continue
        calls = [node for node in ast.walk(part) if isinstance(node, ast.Call)]
        if isinstance(part, ast.Pass) or (calls and all(_is_trivial(call) for call in calls)):
            continue
        if _INSTALLS.search(ast.unparse(part)):
            continue
        return False
    return True


def _is_trivial(call: ast.Call) -> bool:
    name = dotted(call.func)
    if name == "print":
        return all(isinstance(argument, (ast.Constant, ast.BinOp)) for argument in call.args)
    return name.startswith(
        (
            "sys.path",
            "os.path",
            "warnings.",
            "logging.",
            "logger.",
            "log.",
            "matplotlib.use",
            "time.",
            "os.environ",
            "Path",
            "os.makedirs",
            "plt.style",
        )
    )


def _option_statements(module: Module, body: list[ast.stmt]) -> tuple[list[Option], list[ast.stmt]] | None:
    """Statements that declare and parse options, with the options."""
    found: list[ast.stmt] = []
    for node in body:
        text = ast.unparse(node)
        compound = isinstance(node, (ast.For, ast.While, ast.With, ast.Try))
        if "add_argument" in text or (not compound and _PARSING.search(text)):
            found.append(node)
    options = [option for node in found for option in read_options(ast.Module([node], []))]
    return (options, found) if options else None


def _arguments_step(module: Module, options: list[Option], nodes: list[ast.stmt]) -> _Step:
    start, end = nodes[0].lineno, max(node.end_lineno or node.lineno for node in nodes)
    return _Step(_options_text(options) + _cell(module, start), [_span(module.unit, start, end)], 5.0)


def _options_text(options: list[Option]) -> str:
    parts = []
    for option in options[:10]:
        flag = next((flag for flag in option.flags if flag.startswith("--")), option.flags[0])
        parts.append(f"{flag} (default {option.default})" if option.default not in {None, "", "False"} else flag)
    more = f" and {len(options) - 10} more" if len(options) > 10 else ""
    listed = ", ".join(parts[:-1]) + f" and {parts[-1]}" if len(parts) > 1 and not more else ", ".join(parts)
    return f"Parse command-line arguments {listed}{more}"


# --- places ----------------------------------------------------------------------------------------------------------


def _first_line(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([node.lineno, *(item.lineno for item in node.decorator_list)])


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines without the docstring."""
    docstring = ast.get_docstring(node, clean=False)
    return (node.end_lineno or node.lineno) - node.lineno + 1 - (docstring.count("\n") + 1 if docstring else 0)


def _cell(module: Module, line: int) -> str:
    cell = module.unit.cell(line)
    return f" [cell {cell}]" if cell is not None else ""


def _span(unit: CodeUnit, start: int, end: int) -> CodeEvidence:
    first, last = unit.line(start), unit.line(end)
    last = max(last, first)
    quote = unit.code.splitlines()[start - 1].strip()[:_QUOTED]
    return CodeEvidence(path=unit.path, start=first, end=last, quote=quote)
