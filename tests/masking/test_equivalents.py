"""A second script that computes the same answer is as good as the first: it goes, too."""

from __future__ import annotations

from pathlib import Path

from masking.apply import apply_mask
from masking.plan import plan_mask
from pipeline.task import SourceScript
from tests.masking.builders import document, make, task

VALIDATION = b"""import numpy

from estimators import plain_mean

generator = numpy.random.default_rng(3)
errors = [plain_mean(generator.normal(size=50)) ** 2 for _ in range(1000)]
print("mse", sum(errors) / len(errors))
"""


def test_an_equivalent_script_is_masked_with_its_reason(tmp_path: Path) -> None:
    """Seen on an outside repository: `mega_validation.py` printed the table that `run_experiment.py` was masked for."""
    snapshot = make(tmp_path / "original", {"validate_all.py": VALIDATION})
    plain = task()
    truth = plain.truth.evolve(equivalents=(SourceScript(path="validate_all.py", role="entry", score=0.5),))
    plans = {
        name: plan_mask(value, snapshot, documents=(document(),), paper_sha256="d" * 64)
        for name, value in (("without", plain), ("with", plain.evolve(truth=truth)))
    }
    assert "validate_all.py" not in plans["without"].with_action("removed")
    assert "validate_all.py" in plans["with"].with_action("removed")
    reason = next(item.reason for item in plans["with"].paths if item.path == "validate_all.py")
    assert "computes the same answer" in reason
    apply_mask(snapshot, plans["with"], tmp_path / "masked")
    assert not (tmp_path / "masked" / "validate_all.py").exists()
    assert (tmp_path / "masked" / "estimators.py").exists()
