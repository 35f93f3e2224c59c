from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from pipeline.llm import CallRecord, ModelConfig, Parameters, Price, PriceList, Usage
from pipeline.llm.forecast import PlannedCalls, forecast

PRICES = PriceList(as_of="2026-01-01", models=(Price(model="m", input="1", output="10", image_tokens=2000),))
CONFIG = ModelConfig(model="m", parameters=Parameters(max_output_tokens=1000))
PLAN = PlannedCalls(stage="read", what="w", calls=10, input_tokens=5000, output_tokens=200)


def line(tokens: int, out: int, **changes: object) -> CallRecord:
    fields = {
        "call": "c", "attempt": 1, "outcome": "done", "provider": "openai", "model": "m", "endpoint": "e", "key": "k",
        "stage": "read", "usage": Usage(input_tokens=tokens, output_tokens=out), "sent": True,
        "started_at": "2026-01-01T00:00:00+00:00", "duration_s": 1.0,
    }  # fmt: skip
    return CallRecord(**(fields | changes))


def test_expectation_and_worst_case():
    found = forecast(CONFIG, PRICES, [PLAN])
    assert found.usd == Decimal(10 * (5000 * 1 + 200 * 10)) / 1_000_000
    # the question three times, with none, one and two answers of 1000 tokens behind it; three answers of 1000 tokens
    assert found.worst_usd == Decimal(10 * (15_000 + 3000 + 3000 * 10)) / 1_000_000
    assert found.steps[0].basis == "assumed"


def test_earlier_runs_replace_assumptions():
    lines = [
        line(1000, 100),
        line(3000, 300),
        line(9_000_000, 0, outcome="rate_limit"),
        line(9_000_000, 0, model="other"),
        line(9_000_000, 0, stage="else"),
        line(9_000_000, 0, sent=False, outcome="cached"),
    ]
    (step,) = forecast(CONFIG, PRICES, [PLAN], lines).steps
    assert (step.basis, step.input_tokens, step.output_tokens) == ("measured", 20_000, 2000)


def test_an_unknown_price_is_unknown():
    found = forecast(CONFIG.evolve(model="other"), PRICES, [PLAN])
    assert (found.usd, found.worst_usd, found.price_known) == (None, None, False)
    assert found.input_tokens == 50_000


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 10**5), st.integers(0, 3), st.integers(0, 1000)), max_size=5)
)
def test_sums_and_bounds(plans: list[tuple[int, int, int, int]]):
    planned = [
        PlannedCalls(stage=f"s{i}", what="w", calls=calls, input_tokens=tokens, images=images, output_tokens=out)
        for i, (calls, tokens, images, out) in enumerate(plans)
    ]
    found = forecast(CONFIG, PRICES, planned)
    assert found.usd == sum((step.usd for step in found.steps), Decimal(0)) <= found.worst_usd
    assert found.calls == sum(plan.calls for plan in planned)
