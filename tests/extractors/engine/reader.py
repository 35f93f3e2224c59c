"""A reader behind the protocol server: answers each prompt of the model engine from what stands in the request.

It finds tables, blocks and runs in the delimited text of the prompt, as a model would, reads the files that it names, and
points at ids. It knows nothing of the paper beforehand. Its `slips` are the mistakes that models make, planted on purpose.
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
RESULT = re.compile(
    r"\d+\.\d+%|\d+\.\d+ points|best|outperform|most accurate|accura|coverage|width|advantage|drops", re.I
)
RUN = re.compile(r"^run \d+: `(python \S+\.py)(.*?)` in (\S+) \(.*?\)\n  ended well(.*?)(?=^run |\Z)", re.M | re.S)

WRONG_QUOTE = "The method attains 99.9% on every problem of this benchmark."
WRONG_NUMBER = "99.9"


@dataclass
class Reader:
    """Chooses a turn by what the request wants submitted.

    Args:
        slips: point at ids that do not exist, miscount cells, invent a setting, run a file that is not of the chain.
        learns: give the answer without the slips when it is told what was wrong.
        give_away: ask questions that state the result.
        files: what carries all experiments out; empty: what the runs say.
    """

    slips: bool = False
    learns: bool = False
    give_away: bool = False
    files: tuple[str, ...] = ()
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
        if schema == "AgentAnswer":
            return locate(body)
        inputs: dict[str, list[str]] = {}
        for name, _, content in UNTRUSTED.findall(all_text(body)):
            inputs.setdefault(name, []).append(content)
        if schema == "Experiments":
            return turns.tool_calls(turns.tool_call("submit", **self.experiments(inputs)))
        if schema == "SaidTask":
            return self.task(body, inputs)
        if schema == "SaidMending":
            return turns.tool_calls(turns.tool_call("submit", **self.mending(inputs)))
        return turns.structured(getattr(self, schema)(inputs))

    # --- pass 1 ---

    def experiments(self, inputs: dict[str, list[str]]) -> dict[str, Any]:
        found = []
        for grid in grids(inputs["paper"][0]):
            file, command = self.chain(grid, inputs["runs"][0])
            if not grid.numeric:
                continue
            found.append({
                "title": f"{grid.label} {grid.metric}", "claims": [block["cells"] for block in grid.blocks()],
                "files": [file] if file else [], "command": command, "runs_here": bool(file),
                "why": "a run gives it" if file else "no code for it",
            })  # fmt: skip
        if self.slips:
            found.append({"title": "an invented one", "claims": ["T99.r1c1", f"p2: {WRONG_NUMBER}"],
                          "files": ["nowhere.py"], "command": "", "runs_here": True, "why": "it must"})  # fmt: skip
        return {"experiments": found}

    def chain(self, grid: Grid, runs: str) -> tuple[str, str]:
        """The program that carries a table out, and its command."""
        if self.files:
            return self.files[0], f"python {self.files[0]}"
        for command, arguments, _, told in RUN.findall(runs):
            if f"cells of {grid.name}:" in told and "computes nothing" not in told:
                return command.removeprefix("python "), command + arguments
        return "", ""

    # --- pass 2 ---

    def task(self, body: dict[str, Any], inputs: dict[str, list[str]]) -> Turn:
        results = [str(message["content"]) for message in body["messages"] if message["role"] == "tool"]
        _, cells, files, *_ = inputs["experiment"][0].split("\n")
        path = files.removeprefix("files: ")
        if not results:
            return turns.tool_calls(
                turns.tool_call("read_file", parts=[{"path": path, "start": 1, "end": None}]),
                turns.tool_call("references", paths=[path]),
            )
        (grid,) = [grid for grid in grids(inputs["paper"][0]) if cells.startswith(f"numbers: {grid.name}.")]
        refused = any("does not hold" in result for result in results)
        answer = self.answer(grid, inputs["paper"][0], path, results[0], inputs["runs"][0])
        if self.slips and not (self.learns and refused):
            self.slip(answer, grid)
        return turns.tool_calls(turns.tool_call("submit", **answer))

    def answer(self, grid: Grid, paper: str, path: str, read: str, runs: str) -> dict[str, Any]:
        methods = [row[0] for row in grid.rows[grid.header :]]
        code = [int(number) for number, text in re.findall(r"^(\d+): (.*\S.*)$", read, re.M)]
        blocks = dict(re.findall(r"^\[(p\d+)\] (.*)$", paper, re.M))
        steps = [
            {"text": sentence, "evidence": [name]}
            for name, text in blocks.items()
            for sentence in SENTENCE.split(text)
            if sentence.endswith(".") and 25 < len(sentence) < 300 and not RESULT.search(sentence)
            and re.search(r"\b(?:We (?:draw|train|repeat|set|use)|repeated|share)\b", sentence)
        ]  # fmt: skip
        results = [(name, s) for name, text in blocks.items() for s in SENTENCE.split(text)
                   if grid.label in text and re.search(r"\d+\.\d+%", s)]  # fmt: skip
        _, command = self.chain(grid, runs)
        settings = [
            {"name": row[0], "value": row[-1], "evidence": [f"{other.name}.r{number}c{len(row) - 1}"]}
            for other in grids(paper) if re.search("settings|hyper-parameters", other.caption, re.I)
            for number, row in enumerate(other.rows) if number >= other.header and row[0] and row[-1]
        ]  # fmt: skip
        question = f"How do {', '.join(methods[:3])} compare in {grid.metric}?"
        first = grid.rows[grid.numeric_rows()[0]][grid.numeric_columns()[0]].split(" ")[0]
        if self.give_away:
            question = f"Is it true that {methods[-1]} reaches {first}?"
        return {
            "question": question, "method": steps[:8], "instructions": "", "cells": grid.blocks(), "numbers": [],
            "left_out": "", "results": [{"block": name, "quote": s, "holds": True, "why_not": ""} for name, s in results],
            "constant": [], "dependent": [],
            "independent": [{"name": grid.stub, "values": methods, "evidence": [grid.name]}],
            "settings": settings[:8], "files": [{"path": path, "role": "entry", "why": "it prints the table"}],
            "commands": [{"argv": command.split(), "directory": "."}],
            "requirements": [{"text": "Fit all methods and measure them.", "spans": [f"{path}:{code[0]}-{code[-1]}"]}],
            "not_found": "",
        }  # fmt: skip

    def slip(self, answer: dict[str, Any], grid: Grid) -> None:
        good = answer["cells"][0]
        claim = {"metric": grid.metric, "direction": "higher is better", "conditions": [], "output": ""}
        answer["cells"] = [
            *answer["cells"], {**good, "first": WRONG_NUMBER}, {**good, "cells": "T99.r1c1"},
            {**good, "cells": f"{grid.name}.r99c1"}, {**good, "metric": "perplexity of zebras"},
            {**good, "unit": "furlongs"} if "%" in grid.caption and "(%)" in str(grid.rows) else good,
        ]  # fmt: skip
        answer["numbers"] = [{**claim, "block": "p2", "printed": WRONG_NUMBER}]
        answer["results"] = [*answer["results"], {"block": "p2", "quote": WRONG_QUOTE, "holds": True, "why_not": ""}]
        evidence = answer["method"][0]["evidence"]
        answer["method"] = [
            {"text": "Use the best method.", "evidence": ["p9999"]}, *answer["method"],
            {"text": "Repeat it 1234 times.", "evidence": evidence},
        ]  # fmt: skip
        answer["settings"] = [
            *answer["settings"], {"name": "learning rate", "value": "0.123", "evidence": [f"{grid.name}.r1c1"]},
        ]  # fmt: skip
        answer["independent"].append({"name": "flavour", "values": ["strange"], "evidence": [grid.name]})
        answer["files"] = [*answer["files"], {"path": "../secret.py", "role": "library", "why": "it helps"}]
        answer["commands"] = [*answer["commands"], {"argv": ["python", "elsewhere.py"], "directory": "."}]
        answer["requirements"] = [*answer["requirements"], {"text": "Print it.", "spans": ["nowhere.py:1-2"]}]

    # --- pass 3 ---

    def mending(self, inputs: dict[str, list[str]]) -> dict[str, Any]:
        """Keeps what the run gave."""
        seen = re.findall(r"^(c\d+): .*: the paper prints .*; the run gave [^,\n]*$", inputs["task"][0], re.M)
        change = {"why": "the program computes the others otherwise", "commands": [], "files": [], "keep": seen}
        return change | {"give_up": "" if seen else "it gives none of them"}

    # --- validation ---

    def StepWordings(self, inputs: dict[str, list[str]]) -> dict[str, Any]:  # noqa: N802
        """The wording of the code again, marked as worded."""
        steps = [re.match(r"step (\d+), in the words of its code: ([^\n]*)", shown) for shown in inputs["steps"]]
        return {"steps": [{"number": int(s[1]), "text": f"The code does this: {s[2]}"[:500]} for s in steps if s]}

    def WindowFindings(self, inputs: dict[str, list[str]]) -> dict[str, Any]:  # noqa: N802
        return {"findings": []}


def schema_of(body: dict[str, Any]) -> str:
    """Name of the schema that is enforced, asked for in words, or to be submitted by a tool."""
    for tool in body.get("tools", ()):
        if tool["function"]["name"] == "submit":
            wanted = set(tool["function"]["parameters"]["properties"])
            named = {"experiments": "Experiments", "question": "SaidTask", "give_up": "SaidMending"}
            return next((schema for name, schema in named.items() if name in wanted), "AgentAnswer")
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

    name: str
    label: str
    caption: str
    rows: list[list[str]]
    header: int
    labels: int

    @property
    def numeric(self) -> bool:
        known = re.search("settings|hyper-parameters", self.caption, re.I)
        return len(self.numeric_rows()) > 1 and len(self.numeric_columns()) > 1 and not known

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
            return ["column group", first[0].split(" ")[0].lower()]
        return ["noise", "problem"][2 - self.header :]

    def blocks(self) -> list[dict[str, Any]]:
        """One block, or one for each metric when the last header row repeats the names of metrics."""
        rows, columns = self.numeric_rows(), self.numeric_columns()
        last = self.rows[self.header - 1]
        repeated = self.header == 2 and len({last[c] for c in columns}) < len(columns) and len(set(self.rows[0])) > 3
        groups: dict[str, list[int]] = {}
        for column in columns:
            groups.setdefault(last[column] if repeated and not NUMBER.match(last[column]) else self.metric, []).append(
                column
            )
        return [
            {
                "cells": f"{self.name}.r{','.join(map(str, rows))}c{','.join(map(str, members))}",
                "first": self.rows[rows[0]][members[0]], "last": self.rows[rows[-1]][members[-1]],
                "metric": metric, "metric_from": self.name, "direction": "higher is better", "unit": "",
                "row_names": [self.stub], "column_names": ["problem", ""] if len(groups) > 1 else self.column_names,
                "conditions": [], "output": "printed",
            }
            for metric, members in groups.items()
        ]  # fmt: skip

    def numeric_rows(self) -> list[int]:
        body = range(self.header, len(self.rows))
        return [n for n in body if all(NUMBER.match(cell) for cell in self.rows[n][self.labels :] if cell)]

    def numeric_columns(self) -> list[int]:
        rows = self.numeric_rows()
        width = len(self.rows[0])
        return [c for c in range(self.labels, width) if rows and all(NUMBER.match(self.rows[r][c]) for r in rows)]


def grids(paper: str) -> list[Grid]:
    """All tables of the paper."""
    found = []
    heads = r"^\[(T\S*)\] \(page \d+\) ((Table [\w.]+)[.:] .*)\ncolumns c0 to c(\d+), of which (\d+) .*:\nrow \| .*\n((?:r\d.*\n)+)"
    for name, caption, label, last, labels, body in re.findall(heads, paper + "\n", re.M):
        rows, header = [], 0
        for line in body.splitlines():
            number, *cells = line.split(" | ") if " | " in line else [line]
            header += number.endswith("(header)")
            rows.append([cell.strip() for cell in cells])
        rows = [row + [""] * (int(last) + 1 - len(row)) for row in rows]
        found.append(Grid(name, label, caption, rows, header, int(labels)))
    return found


def all_text(body: dict[str, Any]) -> str:
    """All text of a request, system message included."""
    parts = []
    for message in body["messages"]:
        content = message["content"]
        parts += [content] if isinstance(content, str) else [part.get("text", "") for part in content or []]
    return "".join(parts) if parts else json.dumps(body)
