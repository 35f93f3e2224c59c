"""A task that its run did not bear out, at the reader again: what it may change, and what it may not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from extractors.engine.mending import Mended, mend
from extractors.engine.run import PaperReader
from extractors.engine.runs import Rehearsed
from pipeline.locator import build_index
from pipeline.progress import SilentReporter
from pipeline.task import ClaimMatch, SourceScript, Task, Usage, ValidationReport, Verdict
from tests.doubles.protocol_server import turns
from tests.extractors.engine.papers import paper
from tests.extractors.engine.reader import UNTRUSTED, all_text
from tests.extractors.engine.test_runs import CLAIMS
from tests.llm_fixtures import connect, no_ambient_model, protocol_server  # noqa: F401 - fixtures
from tests.pipeline.locator.repositories import PROJECT, make
from tests.pipeline.test_store import make_task

IDS = [claim.id for claim in CLAIMS]
CHANGE: dict[str, Any] = {"why": "it wants a size"}


def failed_task() -> tuple[Task, ValidationReport]:
    task = make_task()
    source = SourceScript(path="train.py", role="entry", score=1.0)
    truth = task.truth.evolve(
        sources=(source,), usage=(Usage(argv=("python", "train.py")),),
        expected=task.truth.expected.evolve(claims=CLAIMS, comparisons=()),
    )  # fmt: skip
    matches = tuple(
        ClaimMatch(claim=name, verdict=verdict, observed=seen, reason="-")
        for name, verdict, seen in zip(
            IDS,
            (Verdict.PASS, Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN),
            ((81.2,), (77.4,), (12.5,), ()),
            strict=True,
        )
    )
    report = ValidationReport(verdict=Verdict.FAIL, reason="1 of 4 is contradicted", sandbox="process", matches=matches)
    return task.evolve(truth=truth), report


@pytest.fixture
def mended(protocol_server, connect, tmp_path: Path) -> Callable[..., tuple[Mended | None, str]]:  # noqa: F811
    """`mended(*answers)` -> what came of it, and the text of the last request."""

    def ask(*answers: dict[str, Any]) -> tuple[Mended | None, str]:
        server = protocol_server(*(turns.tool_calls(turns.tool_call("submit", **answer)) for answer in answers))
        index = build_index(make(tmp_path / "code", PROJECT))
        reader = PaperReader(paper(), index, Rehearsed(), connect(server))
        task, report = failed_task()
        found = mend(reader, task, report, {"0.stderr": "Traceback: no size"}, SilentReporter())
        return found, all_text(server.requests[-1].body)

    return ask


def test_other_commands_and_fewer_claims_are_taken(mended: Any) -> None:
    command = {"argv": ["python", "train.py", "--lr", "0.3"], "directory": "."}
    found, asked = mended(CHANGE | {"commands": [command], "keep": IDS[:3]})
    assert found is not None
    assert (found.keep, found.chain.usage[0].argv) == (tuple(IDS[:3]), ("python", "train.py", "--lr", "0.3"))
    assert [source.path for source in found.chain.sources] == ["train.py"]
    shown = "".join(text for name, _, text in UNTRUSTED.findall(asked) if name in {"task", "logs"})
    assert f"{IDS[0]}: accuracy: the paper prints 81.2; the run gave 81.2\n" in shown
    assert "the run gave 12.5, which is another number" in shown
    assert "nothing that was seen is this number" in shown
    assert "Traceback: no size" in shown


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({}, "nothing is changed"),
        ({"keep": IDS[:1]}, "1 claims are too few"),
        ({"keep": ["c99"]}, "there is no claim c99"),
        ({"commands": [{"argv": ["python", "lib/fit.py"]}]}, "runs no entry point or wrapper"),
        ({"files": [{"path": "gone.py", "role": "entry", "why": "-"}]}, "gone.py is no text file"),
    ],
)
def test_what_changes_nothing_or_does_not_exist_is_refused(mended: Any, change: dict[str, Any], complaint: str) -> None:
    found, asked = mended(CHANGE | change, CHANGE | {"give_up": "nothing helps"})
    assert found is None
    assert complaint in asked
