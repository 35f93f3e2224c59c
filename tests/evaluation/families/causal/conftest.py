import pytest

from evaluation.families.causal.generate import generate
from evaluation.families.causal.task import CausalTask


@pytest.fixture(scope="session")
def tasks() -> dict[str, CausalTask]:
    """One task a tier on the fastest simulations."""
    return {"L1": generate("market", "L1", 11), "L2": generate("origin", "L2", 11), "L3": generate("social", "L3", 11)}
