"""A reader behind the protocol server: answers each prompt of the model engine from what stands in the request.

It finds headings, sentences and grids in the delimited text of the prompt, as a model would, and quotes them. It knows
nothing of the paper beforehand. Its `slips` are the mistakes that models make, planted on purpose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.doubles.protocol_server import Turn, turns

UNTRUSTED = re.compile(r'<untrusted name="(\w+)" id="(\w+)">\n(.*?)\n</untrusted id="\2">', re.S)
NUMBER = re.compile(r"^[−-]?\d[\d.,]*(?: ± [\d.]+)?$")
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
SETUP = re.compile(r"set-?up|hyper-|method|protocol|^[A-Z] ", re.I)
RESULT = re.compile(r"\d+\.\d+%|\d+\.\d+ points|best|outperform|accura|coverage|width", re.I)

WRONG_QUOTE = "The method attains 99.9% on every problem of this benchmark."
WRONG_NUMBER = "99.9"


@dataclass
class Reader:
    """Chooses a turn by the output schema that the request asks for.

    Args:
        slips: plant invented quotes, numbers that their quote does not hold, and miscounted cells.
        give_away: ask questions that state the result, at first.
        refuse: headings of subsections for which it refuses.
    """

    slips: bool = False
    learns: bool = False
    """Give the answer without the slips when it is told what was wrong."""
    give_away: bool = False
    refuse: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list)
    before: Callable[[str], Turn | None] | None = None
    """May answer instead, given the name of the schema."""

    def __call__(self, endpoint: str, body: dict[str, Any]) -> Turn | None:
        if endpoint != "chat":
            return None
        schema = schema_of(body)
        self.asked.append(schema)
        instead = self.before(schema) if self.before is not None else None
        if instead is not None:
            return instead
        if schema == "tools":
            return locate(body)
        text = all_text(body)
        inputs: dict[str, list[str]] = {}
        for name, _, content in UNTRUSTED.findall(text):
            inputs.setdefault(name, []).append(content)
        if schema == "SubsectionAnswer" and inputs["section"][0].split("\n")[0] in self.refuse:
            return turns.refusal("I do not read this.")
        answer = getattr(self, schema)(inputs)
        return turns.structured(answer)

    # --- one method per schema ---

    def TakeawaysAnswer(self, inputs: dict[str, list[str]]) -> dict[str, Any]:  # noqa: N802
        found = [s for s in sentences(inputs["passages"][0]) if re.search(r"\d+\.\d%|best|outperform", s)][:3]
        takeaways = [{"statement": f"Finding: {s}", "quotes": [s], "floats": labels(s)} for s in found]
        if self.slips:
            takeaways.append({"statement": "It always wins.", "quotes": [WRONG_QUOTE], "floats": []})
        return {"takeaways": takeaways}

    def SubsectionAnswer(self, inputs: dict[str, list[str]]) -> dict[str, Any]:  # noqa: N802
        if self.learns and "complaints" in inputs:
            return Reader().SubsectionAnswer(inputs)
        section = inputs["section"][0]
        heading = section.split("\n")[0]
        context = sentences("\n".join(inputs.get("context", [])))
        grids = [grid for grid in map(parse_grid, inputs.get("floats", [])) if grid and grid.label in section]
        grids = [grid for grid in grids if grid.numeric]
        if grids and not SETUP.search(heading):
            tasks = [self.task(grid, section, context, inputs.get("takeaways", [""])[0]) for grid in grids]
            return {"role": "candidate_question", "context": [], "tasks": tasks}
        if SETUP.search(heading):
            kept = [{"quote": s, "topic": "setup"} for s in sentences(section) if not RESULT.search(s)]
            if self.slips:
                kept.append({"quote": WRONG_QUOTE, "topic": "invented"})
            return {"role": "implementation_context", "context": kept, "tasks": []}
        return {"role": "neither", "context": [], "tasks": []}

    def task(self, grid: Grid, section: str, context: list[str], takeaways: str) -> dict[str, Any]:
        methods = [row[0] for row in grid.rows[grid.header :]]
        metric = grid.metric
        rows, columns = grid.numeric_rows(), grid.numeric_columns()
        results = [s for s in sentences(section) if re.search(r"\d+\.\d+%", s)]
        steps = [{"quote": s, "text": s} for s in context if not RESULT.search(s)][:8]
        question = f"How do {', '.join(methods[:3])} compare in {metric}?"
        task: dict[str, Any] = {
            "title": f"{grid.label}",
            "question": f"Does it help that {methods[-1]} outperforms the rest?" if self.give_away else question,
            "takeaways": re.findall(r"^(t\d+):", takeaways, re.M)[:1],
            "results": results,
            "cells": grid.blocks(),
            "claims": [],
            "method": steps,
            "constant": [],
            "independent": [{"name": grid.stub, "values": methods, "quote": None, "table": grid.label}],
            "dependent": [{"name": metric, "values": [], "quote": grid.caption, "table": None}],
            "settings": [],
        }
        if self.give_away:
            task["question"] = f"Is it true that {methods[-1]} reaches {grid.rows[rows[0]][columns[0]].split(' ')[0]}?"
        if self.slips:
            self.slip(task, grid, results)
        return task

    def slip(self, task: dict[str, Any], grid: Grid, results: list[str]) -> None:
        good = task["cells"][0]
        task["cells"] = [good, {**good, "first_value": WRONG_NUMBER}]
        claim = {"metric": grid.metric, "conditions": [], "table": None, "row": None, "column": None}
        task["claims"] = [
            {**claim, "value": WRONG_NUMBER, "quote": WRONG_QUOTE},
            {**claim, "value": WRONG_NUMBER, "quote": results[0] if results else WRONG_QUOTE},
            {**claim, "value": WRONG_NUMBER, "quote": None, "table": grid.label, "row": good["rows"][0], "column": 1},
            {**claim, "value": "1.0", "quote": None, "table": "Table 99", "row": 1, "column": 1},
        ]
        task["results"] = [*results, WRONG_QUOTE]
        task["method"] = [
            {"quote": WRONG_QUOTE, "text": "Use the best method."},
            *task["method"],
            {"quote": task["method"][0]["quote"] if task["method"] else WRONG_QUOTE, "text": "Repeat it 1234 times."},
        ]
        task["settings"] = [{"name": "learning rate", "value": "0.123", "quote": None, "table": "Table 5"}]
        task["independent"].append({"name": "flavour", "values": ["strange"], "quote": None, "table": grid.label})

    def RefinementAnswer(self, inputs: dict[str, list[str]]) -> dict[str, Any]:  # noqa: N802
        settings = []
        for shown in inputs.get("floats", []):
            grid = parse_grid(shown)
            if grid is not None:
                settings += [
                    {"name": row[0], "value": row[-1], "quote": None, "table": grid.label}
                    for row in grid.rows[grid.header :]
                    if row[0] and row[-1]
                ]
        seeds = [s for s in sentences(inputs["passages"][0]) if re.search(r"random seeds|repetitions", s)]
        steps = [{"quote": s, "text": s} for s in seeds[:1]]
        answer = {"method": steps, "settings": settings, "constant": [], "question": None}
        return {**answer, "answerable": True, "reason": ""}

    def QuestionAnswer(self, inputs: dict[str, list[str]]) -> dict[str, Any]:  # noqa: N802
        return {"question": "How do the methods compare in what is measured?"}

    def StepWordings(self, inputs: dict[str, list[str]]) -> dict[str, Any]:  # noqa: N802
        """The wording of the code again, marked as worded."""
        steps = [re.match(r"step (\d+), in the words of its code: ([^\n]*)", shown) for shown in inputs["steps"]]
        return {"steps": [{"number": int(s[1]), "text": f"The code does this: {s[2]}"[:500]} for s in steps if s]}

    def WindowFindings(self, inputs: dict[str, list[str]]) -> dict[str, Any]:  # noqa: N802
        return {"findings": []}

    def TableAnswer(self, inputs: dict[str, list[str]]) -> dict[str, Any]:  # noqa: N802
        return {"rows": [["a", "b"], ["1", "2"]], "header_rows": 1, "notes": ""}

    def FigureAnswer(self, inputs: dict[str, list[str]]) -> dict[str, Any]:  # noqa: N802
        axes = {"x_axis": "noise rate", "y_axis": "accuracy", "series": []}
        return {"kind": "line plot", **axes, "description": "Curves that fall."}


def schema_of(body: dict[str, Any]) -> str:
    """Name of the schema that is enforced, or asked for in words; `tools` when the answer is a call."""
    if "tools" in body:
        return "tools"
    named = body.get("response_format", {}).get("json_schema", {}).get("name")
    titles = re.findall(r'"title":\s?"(\w+)"', all_text(body))
    return named or next(title for title in reversed(titles) if title in vars(Reader))


def locate(body: dict[str, Any]) -> Turn:
    """Asks for the search by words with each question, then submits its first program with the command of its README."""
    shown = all_text(body)
    questions = re.findall(r"^Task \d+\. Question: (.*)$", shown, re.M)
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    if not results:
        return turns.tool_calls(
            *(turns.tool_call("rank", query=f"{question} {n}") for n, question in enumerate(questions))
        )
    answers = []
    for number, result in enumerate(results, 1):
        path = next(path for path in re.findall(r"^\d+\. (\S+):", result, re.M) if path.endswith(".py"))
        stated = re.search(rf"python [^`\n]*?{re.escape(path)}[^`|\n]*", shown)
        argv = stated.group().split() if stated else ["python", path]
        answers.append(
            {
                "task": number,
                "files": [{"path": path, "role": "entry", "why": "it reads so", "lines": [f"{path}:1"]}],
                "commands": [{"argv": argv, "why": "the README"}],
            }
        )
    return turns.tool_calls(turns.tool_call("submit", tasks=answers))


@dataclass
class Grid:
    """A table as a prompt shows it."""

    label: str
    caption: str
    rows: list[list[str]]
    header: int

    @property
    def numeric(self) -> bool:
        return len(self.numeric_rows()) > 1 and len(self.numeric_columns()) > 1 and "settings" not in self.caption

    @property
    def stub(self) -> str:
        return self.rows[self.header - 1][0] or "Method"

    @property
    def metric(self) -> str:
        found = re.search(r"(?:[Mm]ean )?(?:[Tt]est )?(?:accuracy|coverage|width|score|error)", self.caption)
        return found.group() if found else "accuracy"

    @property
    def column_names(self) -> list[str]:
        """A header over all columns names what the row below lists."""
        first = [cell for cell in self.rows[0][1:] if cell]
        if self.header == 2 and len(first) == 1:
            return ["", first[0].split(" ")[0].lower()]
        return ["noise", "problem"][2 - self.header :]

    def blocks(self) -> list[dict[str, Any]]:
        """One block, or one for each metric when the last header row repeats the names of metrics."""
        rows, columns = self.numeric_rows(), self.numeric_columns()
        last = self.rows[self.header - 1]
        repeated = self.header == 2 and len({last[c] for c in columns}) < len(columns)
        groups: dict[str, list[int]] = {}
        for column in columns:
            groups.setdefault(last[column] if repeated and not NUMBER.match(last[column]) else self.metric, []).append(
                column
            )
        return [
            {
                "table": self.label,
                "metric": metric,
                "rows": rows,
                "columns": members,
                "first_value": self.rows[rows[0]][members[0]],
                "last_value": self.rows[rows[-1]][members[-1]],
                "row_conditions": [self.stub],
                "column_conditions": ["problem", ""] if len(groups) > 1 else self.column_names,
                "conditions": [],
            }
            for metric, members in groups.items()
        ]

    def numeric_rows(self) -> list[int]:
        body = range(self.header, len(self.rows))
        return [n for n in body if all(NUMBER.match(cell) for cell in self.rows[n][1:] if cell)]

    def numeric_columns(self) -> list[int]:
        rows = self.numeric_rows()
        width = len(self.rows[0])
        return [c for c in range(1, width) if rows and all(NUMBER.match(self.rows[r][c]) for r in rows)]


def parse_grid(shown: str) -> Grid | None:
    """The grid in what a prompt shows of a table; None for a figure."""
    lines = shown.split("\n")
    caption = re.match(r"((Table \d+)[.:] .*) \(page \d+\)$", lines[0])
    if caption is None or len(lines) < 3 or not lines[1].startswith("row | "):
        return None
    rows, header = [], 0
    for line in lines[2:]:
        number, *cells = line.split(" | ") if " | " in line else [line]
        header += number.endswith("(header)")
        rows.append([cell.strip() for cell in cells])
    width = max(map(len, rows))
    return Grid(caption[2], caption[1], [row + [""] * (width - len(row)) for row in rows], header)


def sentences(shown: str) -> list[str]:
    """Sentences of passages or context lines, without the ids."""
    found = []
    for line in shown.split("\n"):
        text = re.sub(r"^\[[^\]]*\] ", "", line)
        if text != line:
            found += [s for s in SENTENCE.split(text) if len(s) > 25 and s.endswith(".") and s[0].isupper()]
    return found


def labels(text: str) -> list[str]:
    return re.findall(r"(?:Table|Figure) \d+", text)


def all_text(body: dict[str, Any]) -> str:
    """All text of a request, system message included."""
    parts = []
    for message in body["messages"]:
        content = message["content"]
        parts += [content] if isinstance(content, str) else [part.get("text", "") for part in content or []]
    return "".join(parts) if parts else json.dumps(body)
