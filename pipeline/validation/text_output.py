"""Numbers in printed text: `key: value` lines, tables in five notations, headings above them; progress bars left out.

A table needs a header row and rows that consist of cells; every other line is read as labels followed by numbers.
Non-goal: understanding prose. A number's label is the text between the previous number and itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pipeline.validation.numbers import Number, find_numbers, is_number
from pipeline.validation.observation import Observation, leading_header_rows, observe, observe_grid

__all__ = ["observe_text"]

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-Z\\-_])")
_PROGRESS = re.compile(r"\d+%\|.*\||(?:it/s|s/it|B/s)\b|^\s*\d+/\d+ \[[=>.\s]+\]|[█▏▎▍▌▋▊▉]{3,}|━{3,}.*\d+%")
_LOG_PREFIX = re.compile(
    r"^\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?Z?\]?\s*[-|:]*\s*"
    r"(?:\[?(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)\]?)?\s*[-|:]*\s*|^\s*(?:DEBUG|INFO|WARNING|ERROR):[\w.]+:\s?"
)
_RULE = re.compile(
    r"^[\s+|\-=_:~*─━═┼╋┬┴├┤╞╪╡┌┐└┘╔╗╚╝╠╣╦╩╬╭╮╰╯┏┓┗┛┡┩╇╈┠┨│┃║]+$|^\s*\\(?:hline|toprule|midrule|bottomrule|cmidrule.*)\s*$"
)
_BARS = re.compile(r"[|│┃║]")
_WIDE = re.compile(r"\s{2,}|\t")
_DECIMAL = re.compile(r"\d\.\d")
_MAX_LINE = 4000
_MAX_TABLE = 5000


class _Heading(NamedTuple):
    indent: int
    decorated: bool
    text: str


class _Line(NamedTuple):
    number: int
    text: str


def observe_text(text: str, source: str, context: Sequence[str] = ()) -> Iterator[Observation]:
    """The numbers of a text with their labels.

    Args:
        text: what a command printed, or a text file.
        source: name used for `where`, e.g. `stdout` or `results/log.txt`.
        context: texts that hold for all of it (file name, command).
    """
    lines = list(_clean(text))
    headings: list[_Heading] = []
    position = 0
    title = ""
    while position < len(lines):
        above = (*context, *(heading.text for heading in headings))
        table = _table_at(lines, position)
        if table is not None:
            rows, places, position = table
            titles = (*above, title) if title and title not in above else above
            yield from observe_grid(
                rows, places=[f"{source}:{number}" for number in places], source=source, context=titles
            )
            title = ""
            continue
        line = lines[position]
        position += 1
        # the line right above a table is its title, numbers or not
        title = line.text.strip() if line.text.strip() and not _RULE.match(line.text) else title
        if not line.text.strip() or _RULE.match(line.text):
            continue
        indent = len(line.text) - len(line.text.lstrip())
        if heading := _heading(line.text, indent, _next_indent(lines, position)):
            while headings and _closes(heading, headings[-1]):
                headings.pop()
            headings.append(heading)
            continue
        while headings and not headings[-1].decorated and headings[-1].indent > indent:
            headings.pop()
        yield from _observe_line(line, source, (*context, *(heading.text for heading in headings)))


def _clean(text: str) -> Iterator[_Line]:
    for number, raw in enumerate(text.split("\n"), start=1):
        # a carriage return overwrites the line: only what stood there last was left to read
        parts = [part for part in raw[:_MAX_LINE].split("\r") if part.strip()]
        line = _ANSI.sub("", parts[-1]) if parts else ""
        line = _LOG_PREFIX.sub("", line, count=1).replace("\x00", "").rstrip()
        yield _Line(number, "" if _PROGRESS.search(line) else line.expandtabs(8) if line.startswith("\t") else line)


def _next_indent(lines: Sequence[_Line], position: int) -> int:
    """Indentation of the next line; -1 when an empty one or the end comes first."""
    text = lines[position].text if position < len(lines) else ""
    return len(text) - len(text.lstrip()) if text.strip() else -1


def _heading(text: str, indent: int, below: int) -> _Heading | None:
    """A line as a heading: decorated, closed by a colon, without numbers, or with indented lines below."""
    stripped = text.strip()
    decorated = stripped.startswith(("[", "#", "==", "--", "**", ">>", "╔", "──"))
    if len(stripped.split()) > 14 or (_DECIMAL.search(stripped) and not stripped.endswith(":")):
        return None
    numbers = list(find_numbers(stripped))
    if decorated or stripped.endswith(":") or not numbers or below > indent:
        return _Heading(indent, decorated, stripped.strip("=-#*> ─:"))
    return None


def _closes(new: _Heading, old: _Heading) -> bool:
    if new.indent != old.indent:
        return new.indent < old.indent
    return new.decorated or not old.decorated


# --- lines -----------------------------------------------------------------------------------------------------------


def _observe_line(line: _Line, source: str, context: Sequence[str]) -> Iterator[Observation]:
    text = line.text
    numbers = list(find_numbers(text))
    if not numbers:
        return
    prefix = _prefix(text)
    labels = [_without_prefix(label, prefix) for label in _labels(text, numbers)]
    trailing = [_trailing(text, numbers, index, labels[index]) for index in range(len(numbers))]
    around = (text.strip(),) if len(numbers) == 1 else ()
    pairs = [(label, number.text) for label, number in zip(labels, numbers, strict=True)]
    for index, (number, label) in enumerate(zip(numbers, labels, strict=True)):
        own_prefix = prefix if prefix and number.start >= len(prefix) and prefix != label else ""
        yield observe(
            number,
            labels=(own_prefix, *trailing[index], label),
            coordinates=[pair for other, pair in enumerate(pairs) if other != index and pair[0]],
            context=(*context, *around),
            where=f"{source}:{line.number}",
            source=source,
        )


def _prefix(text: str) -> str:
    """What a line says before its first colon or bar, when more than the value follows (`Order 3: R2 = 0.99`)."""
    head, separator, rest = text.partition(": ")
    if not separator:
        head, separator, rest = text.partition("|")
    if separator and rest.strip() and len(head.split()) <= 12:
        return head.rstrip(" :|")
    return ""


def _without_prefix(label: str, prefix: str) -> str:
    """`urandom : h2` under the prefix `urandom` is `h2`."""
    rest = label[len(prefix) :].lstrip(" :|") if prefix and label.startswith(prefix) else ""
    return rest or label


def _trailing(text: str, numbers: Sequence[Number], index: int, label: str) -> tuple[str, ...]:
    """Words behind a number that belong to it (`0.93 accuracy`): few, and closed by a separator or the line's end."""
    last = index + 1 == len(numbers)
    between = text[numbers[index].end : len(text) if last else numbers[index + 1].start]
    part, separator, _ = re.sub(r"[;|()]|\. ", ",", between).partition(",")
    if not (last or separator) or re.search(r"[:=\]\[{}]", part) or not 1 <= len(part.split()) <= 3:
        return ()
    return (part.strip(),) if part.strip() != label else ()


def _labels(text: str, numbers: Sequence[Number]) -> list[str]:
    labels: list[str] = []
    previous = 0
    for index, number in enumerate(numbers):
        before = text[previous : number.start]
        label = _last_part(before)
        if not label:
            stop = numbers[index + 1].start if index + 1 < len(numbers) else len(text)
            behind = re.split(r"[,;|()]|\. ", text[number.end : stop].strip(" )]"), maxsplit=1)[0].strip(" =:")
            if previous and ":" in before:
                label = text[: number.start].strip(" :=|([")
            elif behind and not (index + 1 < len(numbers) and re.search(r"[=:]\s*$", text[number.end : stop])):
                label = behind
            elif labels:
                label = labels[-1]
        labels.append(label)
        previous = number.end
    return labels


def _last_part(text: str) -> str:
    """The last item of a list of labels, parentheses kept together: `, bias=` gives `bias`."""
    depth = 0
    start = 0
    for index, letter in enumerate(text):
        if letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth = max(0, depth - 1)
        elif depth == 0 and (letter in ",;|" or text[index : index + 3] == " - "):
            start = index + 1
    part = text[start:].strip()
    if part.count("(") > part.count(")"):
        part = part.rpartition("(")[2]
    part = re.sub(r"^[^\w√∆Δ]+|(?:\\\\?(?:textbf|mathbf|underline))$", "", part.rstrip("{ "))
    part = part if "[" in part else part.replace("]", " ")
    return re.sub(r"(?:\s*[=:≈~<>→]+|\s+(?:is|of|was|at|to|by))?\s*[\[({<>$&│┃║-]*$", "", part).strip(" \t:='\"&│┃║")


# --- tables ----------------------------------------------------------------------------------------------------------

_Rows = tuple[list[list[str]], list[int], int]


def _table_at(lines: Sequence[_Line], start: int) -> _Rows | None:
    if not lines[start].text.strip():
        return None
    for splitter in (_split_latex, _split_bars, _split_commas, _split_wide, _split_single):
        found = _collect(lines, start, splitter)
        if found is not None:
            return found
    return None


def _split_latex(text: str) -> list[str] | None:
    match = re.match(r"^(.*&.*?)\\\\", text)
    return [cell.strip() for cell in match[1].split("&")] if match else None


def _split_bars(text: str) -> list[str] | None:
    if len(_BARS.findall(text)) < 1:
        return None
    cells = [cell.strip() for cell in _BARS.split(text.strip())]
    if _BARS.match(text.strip()):
        cells = cells[1:]
    if cells and not cells[-1]:
        cells = cells[:-1]
    return cells if len(cells) >= 2 else None


def _split_commas(text: str) -> list[str] | None:
    separator = "\t" if text.count("\t") > text.count(",") else ","
    cells = [cell.strip() for cell in text.split(separator)]
    return cells if len(cells) >= 2 and not re.search(r"=\s*[-\d]", text) else None


def _split_wide(text: str) -> list[str] | None:
    cells = [cell.strip() for cell in _WIDE.split(text.strip()) if cell.strip()]
    return cells if len(cells) >= 2 else None


def _split_single(text: str) -> list[str] | None:
    cells = re.sub(r"\s*(±|\+/-)\s*", r"\1", text).split()
    return cells if len(cells) >= 2 and not re.search(r"[:=,;.]$|[:=]\s|\w=", text) else None


def _collect(lines: Sequence[_Line], start: int, split: object) -> _Rows | None:
    """Rows from `start` on that `split` takes apart alike; None when they are not a table with a header."""
    assert callable(split)
    rows: list[list[str]] = []
    places: list[int] = []
    position = start
    while position < len(lines) and len(rows) < _MAX_TABLE:
        text = lines[position].text
        if text.strip() and _RULE.match(text):
            if not rows and not places and position == start:
                return None
            position += 1
            continue
        cells = split(text) if text.strip() else None
        if cells is None or not _fits(rows, cells):
            break
        rows.append(cells)
        places.append(lines[position].number)
        position += 1
        # the first four rows decide on the header: a long list that is no table must not be collected from each line
        if len(rows) == 4 and leading_header_rows(rows) not in ((1,) if split is _split_single else (1, 2, 3)):
            return None
    header = leading_header_rows(rows) if len(rows) >= 2 else 0
    if not header:
        return None
    body = rows[header:]
    with_numbers = sum(any(is_number(cell) for cell in row) for row in body)
    if not with_numbers or any(":" in cell and not cell.endswith(":") for cell in rows[0]):
        return None
    width = max(len(row) for row in body)
    if split is _split_single and (header > 1 or with_numbers != len(body) or any(len(row) != width for row in rows)):
        return None
    for index in range(header):
        if len(rows[index]) == width - 1:
            rows[index] = ["", *rows[index]]  # an index column without a name, as pandas prints it
    return rows, places, position


def _fits(rows: Sequence[Sequence[str]], cells: Sequence[str]) -> bool:
    if not rows:
        return True
    if len(rows) >= 2 and len(cells) != len(rows[-1]):
        return False
    if abs(len(cells) - len(rows[0])) > (1 if len(rows[0]) > 1 else 0):
        return False
    return len(rows) < 3 or any(is_number(cell) for cell in cells) or not any(is_number(cell) for cell in rows[-1])
