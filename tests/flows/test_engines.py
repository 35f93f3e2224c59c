"""The model engine in a workspace: what it needs, what it pays for, what is recorded and what is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import flows.doctor as doctor
from extractors.engine.run import ModelReading, engine_prompts
from flows.commands.model_options import model_options
from flows.curate import CurateOptions, curate, plan
from flows.draft_stage import draft
from flows.engines import ModelOptions, model_config, open_model
from flows.views import print_status, status_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import CacheMode
from pipeline.progress import SilentReporter
from pipeline.sandbox.base import SandboxStatus
from pipeline.settings import Settings
from pipeline.store import Workspace
from tests.doubles.protocol_server import ProtocolServer, turns
from tests.extractors.engine.papers import paper
from tests.extractors.engine.reader import Reader
from tests.flows.model_workspaces import drafts_of, read_with_model
from tests.flows.support import empty_workspace
from tests.flows.test_bad_input import pdf_with_text
from tests.llm_fixtures import no_ambient_model  # noqa: F401

pytestmark = pytest.mark.usefixtures("no_ambient_model")

CANARY = "sk-canary-4f1c9d2e7b"
MODEL_VARIABLES = ("EXPBENCH_MODEL", "EXPBENCH_MODEL_ENDPOINT", "EXPBENCH_MODEL_TEMPERATURE", "EXPBENCH_PRICES")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in (*MODEL_VARIABLES, "EXPBENCH_ENGINE", "EXPBENCH_VISION"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ProtocolServer]:
    with ExitStack() as stack:
        started = stack.enter_context(ProtocolServer(Reader(files=("train.py",))))
        monkeypatch.setenv("EXPBENCH_MODEL", "reader")
        monkeypatch.setenv("OPENAI_BASE_URL", started.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", CANARY)
        yield started


def caught_by(function: Any, *arguments: Any, **options: Any) -> ExpbenchError:
    with pytest.raises(ExpbenchError) as caught:
        function(*arguments, **options)
    return caught.value


# --- what it needs ---


def test_without_a_model_it_says_what_to_set_and_writes_nothing(tmp_path: Path) -> None:
    pdf = pdf_with_text(tmp_path / "paper.pdf", "A Title\n\nAbstract\nWe measure accuracy.")
    options = CurateOptions(pdf=pdf, repository="nowhere", engine="model", out=tmp_path / "work")
    error = caught_by(curate, options, SilentReporter())
    assert (error.kind, error.exit_code) == (FailureKind.ENGINE_UNAVAILABLE, 8)
    for name in ("EXPBENCH_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "--engine keyless"):
        assert name in str(error)
    assert caught_by(plan, options, SilentReporter()).exit_code == 8
    assert not (tmp_path / "work").exists()


def test_the_command_ends_with_the_exit_code_of_the_engine(tmp_path: Path) -> None:
    pdf = pdf_with_text(tmp_path / "paper.pdf", "A Title")
    hidden = {"EXPBENCH_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL"}
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [sys.executable, "-m", "flows.cli", "curate", str(pdf), "nowhere", "--engine", "model", "--json"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=environment, cwd=tmp_path
    )
    told = json.loads(done.stdout)
    assert (done.returncode, told["error"]) == (8, "engine_unavailable")
    assert "EXPBENCH_MODEL" in told["next_step"]


def test_without_a_key_nothing_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    error = caught_by(model_config, ModelOptions(name="gpt-4.1-mini"), Workspace(tmp_path))
    assert (error.kind, error.exit_code) == (FailureKind.AUTHENTICATION, 8)
    # a replay asks nobody, and a server of one's own may want no key
    assert model_config(ModelOptions(name="gpt-4.1-mini", cache=CacheMode.REPLAY), Workspace(tmp_path))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert model_config(ModelOptions(name="m"), Workspace(tmp_path)).model == "m"


def options(*, used: bool = True, modes: tuple[str, ...] = (), **values: Any) -> ModelOptions:
    names = ("--no-cache", "--refresh", "--replay")
    empty = dict.fromkeys(("name", "budget_usd", "max_calls", "max_tokens", "exchanges"))
    return model_options(
        used=used, wanted="--engine model", consequence="Nothing was started",
        modes={name: name in modes for name in names}, **(empty | values),
    )  # fmt: skip


def test_options_that_contradict_each_other_are_a_usage_error() -> None:
    assert options(modes=("--refresh",), name="m").cache is CacheMode.REFRESH
    assert options(budget_usd=0.1).budget_usd == Decimal("0.1")
    assert options(used=False) == ModelOptions()
    twice = caught_by(options, modes=("--refresh", "--replay"))
    assert (twice.kind, twice.object) == (FailureKind.USAGE, "--refresh and --replay")
    for values in ({"name": "m"}, {"budget_usd": 1.0}, {"max_calls": 1}, {"exchanges": Path()}):
        error = caught_by(options, used=False, **values)
        assert (error.exit_code, error.next_step) == (2, "Add --engine model")


# --- what is recorded ---


def test_drafts_reading_and_prompts_are_in_the_workspace_and_the_key_is_not(
    server: ProtocolServer, tmp_path: Path
) -> None:
    drafted = read_with_model(tmp_path / "work", paper())
    assert {ref.name for ref in drafted.prompts} <= {ref.name for ref in engine_prompts()}
    assert drafts_of(tmp_path / "work") == drafted.drafts
    reading = ModelReading.model_validate_json((tmp_path / "work/papers/paper/reading.json").read_bytes())
    assert reading.model == "reader"
    assert all(request.credential_sent for request in server.requests)
    for path in (tmp_path / "work").rglob("*"):
        if path.is_file():
            assert CANARY.encode() not in path.read_bytes(), path


def test_status_sums_calls_and_tokens_by_stage_and_an_unknown_price_stays_unknown(
    server: ProtocolServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_with_model(tmp_path / "work", paper())
    report = status_of(Workspace(tmp_path / "work"))
    costs = {cost.stage: cost for cost in report.model_calls}
    assert list(costs) == ["experiments", "tasks", "all"]
    assert costs["all"].calls == len(server.requests) == sum(c.calls for n, c in costs.items() if n != "all")
    assert costs["all"].input_tokens > 0
    assert costs["all"].cost_usd is None
    out = StringIO()
    print_status(report, Console(file=out, width=200))
    assert "model reader at" in out.getvalue()
    assert "unknown" in out.getvalue()
    assert status_of(empty_workspace(tmp_path / "keyless")).model_calls == ()

    prices = tmp_path / "prices.yaml"
    prices.write_text(
        'as_of: "2026-01-01"\nmodels:\n  - {provider: openai, model: reader, hosts: [127.0.0.1], input: "1", output: "2"}\n'
    )
    monkeypatch.setenv("EXPBENCH_PRICES", str(prices))
    read_with_model(tmp_path / "priced", paper())
    priced = {cost.stage: cost for cost in status_of(Workspace(tmp_path / "priced")).model_calls}
    total = priced["all"]
    assert total.cost_usd == (Decimal(total.input_tokens) + 2 * Decimal(total.output_tokens)) / 1_000_000


# --- resuming ---


def test_finished_drafts_are_not_asked_for_again(server: ProtocolServer, tmp_path: Path) -> None:
    first = read_with_model(tmp_path / "work", paper())
    asked = len(server.requests)
    assert read_with_model(tmp_path / "work", paper()) == first
    assert len(server.requests) == asked


def test_a_used_up_budget_keeps_what_was_paid_for_and_counts_it(server: ProtocolServer, tmp_path: Path) -> None:
    error = caught_by(read_with_model, tmp_path / "work", paper(), ModelOptions(max_calls=3))
    assert (error.kind, error.exit_code) == (FailureKind.BUDGET_EXCEEDED, 9)
    assert len(server.requests) == 3
    assert not (tmp_path / "work/papers/paper/drafts.json").exists()
    # the limit is one of the workspace: the same again allows nothing more
    assert caught_by(read_with_model, tmp_path / "work", paper(), ModelOptions(max_calls=3)).exit_code == 9
    assert len(server.requests) == 3
    read_with_model(tmp_path / "work", paper(), ModelOptions(max_calls=100))
    with_budget = len(server.requests)
    read_with_model(tmp_path / "other", paper())
    assert len(server.requests) - with_budget == with_budget


def test_money_cannot_be_limited_where_the_price_is_unknown(server: ProtocolServer, tmp_path: Path) -> None:
    error = caught_by(read_with_model, tmp_path / "work", paper(), ModelOptions(budget_usd=Decimal(1)))
    assert (error.kind, error.exit_code) == (FailureKind.BUDGET_EXCEEDED, 9)
    assert "price of the model is unknown" in error.cause
    assert server.requests == []


def test_a_broken_endpoint_ends_the_run_and_the_next_one_goes_on(
    server: ProtocolServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_with_model(tmp_path / "reference", paper())
    whole = len(server.requests)
    monkeypatch.setenv("EXPBENCH_MODEL_ENDPOINT", "named")  # answers stay valid when the address changes
    failing = Reader(
        files=("train.py",), before=lambda schema: turns.error(401, "expired") if schema == "SaidTask" else None
    )
    with ProtocolServer(failing) as broken:
        monkeypatch.setenv("OPENAI_BASE_URL", broken.base_url)
        assert caught_by(read_with_model, tmp_path / "work", paper()).kind is FailureKind.AUTHENTICATION
        answered = sum(schema != "SaidTask" for schema in failing.asked)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
    read_with_model(tmp_path / "work", paper())
    assert answered > 0
    assert len(server.requests) - whole == whole - answered


def test_a_replay_in_another_workspace_asks_nobody_and_writes_the_same_bytes(
    server: ProtocolServer, tmp_path: Path
) -> None:
    read_with_model(tmp_path / "work", paper())
    asked = len(server.requests)
    replay = ModelOptions(cache=CacheMode.REPLAY, exchanges=tmp_path / "work" / "model")
    read_with_model(tmp_path / "again", paper(), replay)
    assert len(server.requests) == asked
    for name in ("drafts.json", "reading.json"):
        written = [(tmp_path / root / "papers" / "paper" / name).read_bytes() for root in ("work", "again")]
        assert written[0] == written[1]
    empty = ModelOptions(cache=CacheMode.REPLAY)
    assert caught_by(read_with_model, tmp_path / "third", paper(), empty).kind is FailureKind.REPLAY_MISS


def test_refresh_asks_again_and_no_cache_records_nothing(server: ProtocolServer, tmp_path: Path) -> None:
    read_with_model(tmp_path / "work", paper())
    asked = len(server.requests)
    read_with_model(tmp_path / "work", paper(), ModelOptions(cache=CacheMode.REFRESH))
    assert len(server.requests) == 2 * asked
    read_with_model(tmp_path / "bare", paper(), ModelOptions(cache=CacheMode.OFF))
    assert not (tmp_path / "bare" / "model").exists()


def test_another_model_or_prompt_makes_the_drafts_stale(
    server: ProtocolServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_with_model(tmp_path / "work", paper())
    asked = len(server.requests)
    monkeypatch.setenv("EXPBENCH_MODEL_TEMPERATURE", "0.5")
    read_with_model(tmp_path / "work", paper())
    assert len(server.requests) == 2 * asked


def test_the_workspace_names_the_model_where_nothing_else_does(
    server: ProtocolServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_with_model(tmp_path / "work", paper())
    monkeypatch.delenv("EXPBENCH_MODEL")
    assert model_config(ModelOptions(), Workspace(tmp_path / "work")).model == "reader"


def test_a_price_file_that_cannot_be_read_is_an_error(
    server: ProtocolServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXPBENCH_PRICES", str(tmp_path / "missing.yaml"))
    config = model_config(ModelOptions(), Workspace(tmp_path))
    assert caught_by(open_model, config, ModelOptions(), Workspace(tmp_path), Settings()).exit_code > 0


def test_the_keyless_engine_needs_nothing_of_all_this(tmp_path: Path) -> None:
    workspace = empty_workspace(tmp_path / "work")
    drafted = draft(workspace, workspace.info(), paper(), SilentReporter())
    assert drafted.prompts == ()
    assert drafted.drafts.drafts
    assert not workspace.calls_path.exists()
    assert not (workspace.root / "papers" / "paper" / "reading.json").exists()


# --- doctor ---


@pytest.fixture
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    status = SandboxStatus(name="process", available=True, detail="with limits")
    monkeypatch.setattr(doctor, "_docker_status", lambda: status.evolve(name="docker", available=False))
    monkeypatch.setattr(doctor, "_process_status", lambda: status)


@pytest.mark.usefixtures("_machine")
def test_doctor_says_what_the_model_engine_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(settings: Settings | None = None) -> dict[str, doctor.Check]:
        return {found.name: found for found in doctor.diagnose(settings)}

    missing = check(Settings(engine="model"))
    assert missing["model engine"].status is doctor.CheckStatus.WARN
    assert "EXPBENCH_MODEL" in missing["model engine"].next_step
    assert missing["engine by default"].status is doctor.CheckStatus.MISSING
    monkeypatch.setenv("EXPBENCH_MODEL", "gpt-4o")
    assert "OPENAI_API_KEY" in check()["model engine"].next_step
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    there = check(Settings(engine="model"))
    assert there["model engine"].status is doctor.CheckStatus.OK
    assert "its price is known" in there["model engine"].detail
    assert there["engine by default"].detail == "model (EXPBENCH_ENGINE)"
    assert CANARY not in str(there)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert "its price is unknown" in check()["model engine"].detail
    monkeypatch.setenv("EXPBENCH_MODEL_TEMPERATURE", "hot")
    assert check()["model engine"].status is doctor.CheckStatus.WARN
