from __future__ import annotations

from io import StringIO
from pathlib import Path

import pymupdf
import pytest
from rich.console import Console

from flows.estimate import PaperSize, estimate, planned_calls, to_table
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import CallLedger, ModelConfig
from pipeline.progress import SilentReporter
from tests.llm_fixtures import no_ambient_model  # noqa: F401
from tests.pipeline.llm.test_forecast import line

pytestmark = pytest.mark.usefixtures("no_ambient_model")
GPT = ModelConfig(model="gpt-4o")


@pytest.fixture(autouse=True)
def own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("EXPBENCH_MODEL", "EXPBENCH_PRICES"):
        monkeypatch.delenv(name, raising=False)


def paper(path: Path, sections: int) -> Path:
    with pymupdf.open() as pdf:
        page = pdf.new_page()
        page.insert_text((72, 60), "A Paper About Estimates", fontsize=18)
        y = 90
        for number in range(1, sections + 1):
            page.insert_text((72, y), f"{number} Section number {number}", fontsize=13, fontname="hebo")
            for row in range(4):
                text = f"We train the model on data set {number} and report its accuracy in line {row} here."
                page.insert_text((72, y + 18 + 13 * row), text, fontsize=10)
            y += 85
        pdf.save(path)
    return path


def test_more_to_read_costs_more(tmp_path: Path):
    small = estimate([paper(tmp_path / "a.pdf", 2)], reporter=SilentReporter(), config=GPT)
    large = estimate([paper(tmp_path / "b.pdf", 7)], reporter=SilentReporter(), config=GPT)
    both = estimate([tmp_path / "a.pdf", tmp_path / "b.pdf"], reporter=SilentReporter(), config=GPT)
    assert small.papers[0].tokens < large.papers[0].tokens
    assert 0 < small.forecast.usd < large.forecast.usd < both.forecast.usd < both.forecast.worst_usd
    assert both.forecast.calls == small.forecast.calls + large.forecast.calls
    assert both.forecast.input_tokens >= small.forecast.input_tokens + large.forecast.input_tokens
    assert (both.tasks, both.tasks_assumed) == (2, True)


def test_tasks_and_ledgers_are_taken_into_account(tmp_path: Path):
    pdf, ledger = paper(tmp_path / "a.pdf", 3), CallLedger(tmp_path / "calls.jsonl")
    ledger.append(line(7777, 11, stage="tasks", model="gpt-4o"))
    found = estimate([pdf], reporter=SilentReporter(), config=GPT, tasks_per_paper=2, ledgers=[ledger.path])
    steps = {step.stage: step for step in found.forecast.steps}
    assert (steps["tasks"].basis, steps["tasks"].calls, steps["tasks"].input_tokens) == ("measured", 8, 8 * 7777)
    assert (steps["experiments"].basis, steps["experiments"].calls) == ("assumed", 1)


def test_a_paper_is_not_expected_to_give_more_tasks_than_it_has_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nine tasks were assumed of every paper: 158 calls were forecast for three pages with one table, 19 were made."""
    pdf = paper(tmp_path / "a.pdf", 3)
    sizes = iter([1, 7, 20, 20])

    def sized(path: Path, _: object) -> PaperSize:
        return PaperSize(path=path, pages=3, tokens=3000, tables=next(sizes), pictures=0)

    monkeypatch.setattr("flows.estimate.measure", sized)

    def tasks(**options: int) -> int:
        return estimate([pdf], reporter=SilentReporter(), config=GPT, **options).tasks

    assert [tasks(), tasks(), tasks(), tasks(most_tasks=2)] == [1, 7, 9, 2]


def test_every_line_says_what_it_assumes(tmp_path: Path):
    found = estimate([paper(tmp_path / "a.pdf", 3)], reporter=SilentReporter(), config=GPT)
    assert all(plan.what for plan in planned_calls(found.papers[0], 3))
    out = StringIO()
    Console(file=out, width=240).print(to_table(found))
    assert "prices as of" in out.getvalue()
    assert f"{found.forecast.usd:.2f}" in out.getvalue()


def test_an_unknown_price_is_shown_as_unknown(tmp_path: Path):
    local = ModelConfig(model="mine", base_url="http://localhost:1/v1")
    found = estimate([paper(tmp_path / "a.pdf", 2)], reporter=SilentReporter(), config=local)
    assert found.forecast.usd is None
    out = StringIO()
    Console(file=out, width=240).print(to_table(found))
    assert "unknown" in out.getvalue()


def test_no_model_is_named(tmp_path: Path):
    with pytest.raises(ExpbenchError) as caught:
        estimate([tmp_path / "a.pdf"], reporter=SilentReporter())
    assert caught.value.kind is FailureKind.USAGE
