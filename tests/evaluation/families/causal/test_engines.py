"""Engines: per-seed determinism, independence of the batch, and the established results of their literatures."""

import numpy as np
import pytest

from evaluation.families.causal.engines import ENGINES
from evaluation.families.causal.validation import validate


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_replicate_depends_on_its_own_seed_alone(name: str) -> None:
    engine = ENGINES[name]
    together, alone, again = (engine.run({}, seeds) for seeds in ((3, 5, 8), (5,), (8, 3, 5)))
    for metric in engine.metrics:
        assert together[metric][1] == alone[metric][0] == again[metric][2]


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_declared_metrics_come_out_finite_at_control(name: str) -> None:
    engine = ENGINES[name]
    found = engine.run({}, (1, 2))
    assert set(found) == set(engine.metrics)
    assert {engine.target, engine.interaction_target} <= set(engine.metrics)
    assert all(np.isfinite(values).all() and values.shape == (2,) for values in found.values())


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_extremes_of_the_legal_ranges_do_not_break_an_engine(name: str) -> None:
    engine = ENGINES[name]
    for parameter in engine.parameters:
        for value in (parameter.low, parameter.high):
            if name == "morph" and parameter.name not in {"feed", "kill", "diffusion_u", "diffusion_v"}:
                continue  # these only set the start
            found = engine.run({parameter.name: value}, (4,))
            assert all(np.isfinite(values).all() for values in found.values()), (parameter.name, value)


def test_illegal_configurations_are_refused() -> None:
    engine = ENGINES["market"]
    with pytest.raises(KeyError, match="no parameter 'colour'"):
        engine.run({"colour": 1.0}, (1,))
    for value in (float("nan"), 1e9):
        with pytest.raises(ValueError, match="impact"):
            engine.run({"impact": value}, (1,))


def test_engines_show_what_their_literatures_established() -> None:
    checks = validate()
    assert [f"{check.simulation}: {check.name}" for check in checks if not check.passed] == []
    counts = {name: sum(check.simulation == name for check in checks) for name in ENGINES}
    assert sum(counts.values()) - counts["origin"] >= 19
    assert counts["origin"] >= 3
