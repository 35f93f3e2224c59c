"""What a reader says is kept where paper and repository bear it out, and refused with a reason elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from extractors.engine.gates import Checked, Gates
from extractors.engine.listing import Listing
from extractors.engine.said import SaidTask
from pipeline.task import CodeEvidence
from pipeline.tracing.lines import FileLines
from tests.extractors.drafting_documents import table
from tests.extractors.engine.papers import paper
from tests.pipeline.locator.repositories import PROJECT, make

CELLS = {
    "cells": "T1.r1-3c1-2", "first": "81.2", "last": "88.1", "metric": "mean test accuracy", "metric_from": "T1",
    "direction": "higher is better", "row_names": ["method"], "column_names": ["problem"],
}  # fmt: skip
TASK: dict[str, Any] = {
    "question": "How do Plain, Huber and Ours compare in mean test accuracy on Moons and Rings?",
    "method": [{"text": "Repeat every experiment with 10 random seeds.", "evidence": ["p2", "train.py:1-3"]}],
    "cells": [CELLS],
    "files": [{"path": "train.py", "role": "entry", "why": "it trains"}],
    "commands": [{"argv": ["python", "train.py", "--dataset", "spirals"], "directory": "."}],
}
SPEED = table(
    "Table 7", "Results on Moons.",
    [["Method", "Acc. (%)", "Time (s)"], ["Plain", "81.2", "3.10"], ["Ours", "90.4", "4.25"]],
)  # fmt: skip


@pytest.fixture
def gates(tmp_path: Path) -> Gates:
    document = paper().evolve(tables=(*paper().tables, SPEED))
    return Gates(Listing(document), FileLines(make(tmp_path / "code", PROJECT)), "model m")


def checked(gates: Gates, **changes: Any) -> Checked:
    return gates.task(SaidTask.model_validate(TASK | changes))


def cells(**changes: Any) -> list[dict[str, Any]]:
    return [CELLS | changes]


def test_what_holds_is_kept_without_a_complaint(gates: Gates) -> None:
    found = checked(gates)
    assert found.complaints == []
    assert [claim.value for claim in found.claims] == [81.2, 77.4, 86.5, 79.9, 90.4, 88.1]
    assert [claim.id for claim in found.claims][:2] == ["c1", "c2"]
    assert found.steps[0].evidence[1] == CodeEvidence(path="train.py", start=1, end=3)
    assert found.usage[0].argv == ("python", "train.py", "--dataset", "spirals")
    assert found.sources[0].reasons == ("model m: it trains",)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"first": "82.1"}, "r1c1 prints `81.2`, not `82.1`"),
        ({"cells": "T1.r1-4c1-2"}, "whose last cell is r3c2"),
        ({"cells": "T8.r1c1"}, "it has blocks up to p6; T1, T2, T5, T7"),
        ({"cells": "T1.r0c1-2", "first": "Moons", "last": "Rings"}, "holds no result number"),
        ({"metric": "F1"}, "uses the words of the metric"),
        ({"metric": "accuracy", "metric_from": "p99"}, "there is no `p99`"),
        ({"metric": "accuracy", "metric_from": "p2"}, "p2 does not name the metric"),
        ({"column_names": []}, ""),
        ({"row_names": [""], "column_names": ["problem"]}, "`Plain` heads"),
        ({"conditions": [{"name": "model", "value": "ResNet"}]}, "the paper has no such words"),
    ],
)  # fmt: skip
def test_a_block_of_cells_is_refused_with_the_reason(gates: Gates, changes: dict[str, Any], complaint: str) -> None:
    found = checked(gates, cells=cells(**changes))
    assert (complaint in " ".join(found.complaints)) if complaint else found.complaints == []


def test_a_metric_never_contradicts_the_header_or_the_unit_of_its_column(gates: Gates) -> None:
    """Seen: a column of seconds became an accuracy, since the prose around the table speaks of nothing else."""
    column = {"cells": "T7.r1-2c2", "first": "3.10", "last": "4.25", "column_names": [""], "metric_from": "T1"}
    named = checked(gates, cells=cells(**column, metric="accuracy"))
    assert any("`Time (s)` heads T7.r1-2c2" in complaint for complaint in named.complaints)
    united = checked(gates, cells=cells(**column, metric="accuracy", unit="%"))
    assert any("is in `%`, and its labels say `s`" in complaint for complaint in united.complaints)
    short = {"cells": "T7.r1-2c1", "first": "81.2", "last": "90.4", "column_names": [""], "metric_from": "T1"}
    found = checked(gates, cells=cells(**short, metric="accuracy"))
    assert found.complaints == []
    assert found.claims[0].unit == "%"


def test_claims_that_nothing_tells_apart_are_none(gates: Gates) -> None:
    row = {"cells": "T1.r1c1", "first": "81.2", "last": "81.2", "row_names": ["", ""], "column_names": ["problem"]}
    both = checked(gates, cells=[*cells(), *cells(**row, metric="mean test accuracy")])
    assert len(both.claims) == 6
    number = {"block": "p3", "printed": "90.4%", "metric": "accuracy", "direction": "higher is better"}
    twice = checked(gates, numbers=[number, number | {"printed": "86.5%"}])
    assert any("have the same metric and conditions" in complaint for complaint in twice.complaints)


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("question", "Is it true that Ours outperforms Huber, at 90.4%?", "the question: it states 90.4%"),
        ("question", "What does train.py print?", "the question: it names train.py"),
        ("instructions", "Ours is clearly better than Plain.", "instructions: it states a finding"),
        ("method", [{"text": "Use 7 folds.", "evidence": ["p2"]}], "its evidence does not hold 7"),
        ("method", [{"text": "Use folds.", "evidence": []}], "nothing is given as evidence"),
        ("method", [{"text": "Use folds.", "evidence": ["train.py:900-901"]}], "there is no `train.py:900-901`"),
        ("settings", [{"name": "seeds", "value": "5", "evidence": ["p2"]}], "does not stand in its evidence"),
        ("results", [{"block": "p3", "quote": "Ours reaches 99.9% on all.", "holds": True}], "word for word"),
        ("commands", [{"argv": ["python", "other.py"]}], "other.py does not exist"),
        ("commands", [{"argv": ["python", "experiments/timing.py"]}], "runs no entry point or wrapper of the chain"),
        ("commands", [{"argv": ["python", "train.py", ">", "log"]}], "needs a shell"),
        ("commands", [{"argv": ["python", "-c", "print(1)"]}], "does not run a Python file"),
        ("commands", [{"argv": ["python", "train.py"], "directory": "../.."}], "is no directory"),
        ("commands", [], "no command that runs them"),
        ("files", [{"path": "/etc/passwd", "role": "entry", "why": "-"}], "is no text file of the repository"),
        ("files", [], "give either `files` with `commands`"),
        ("requirements", [{"text": "Fit.", "spans": ["lib/fit.py:1-900"]}], "names no lines of a file"),
    ],
)  # fmt: skip
def test_every_field_has_its_gate(gates: Gates, field: str, value: Any, complaint: str) -> None:
    found = checked(gates, **{field: value})
    assert complaint in " ".join(found.complaints)


def test_a_value_may_be_written_in_another_way_and_stand_in_code(gates: Gates) -> None:
    line = next(n for n, text in enumerate(str(PROJECT["lib/fit.py"]).splitlines(), 1) if "n_steps=200" in text)
    setting = {"name": "steps", "value": "2e2", "evidence": [f"lib/fit.py:{line}"]}
    found = checked(gates, settings=[setting])
    assert (found.complaints, found.settings[0].source) == ([], "default")


def test_a_sentence_that_its_own_table_contradicts_is_told_and_not_expected(gates: Gates) -> None:
    """An expected outcome quoted a sentence of the paper that the paper's table contradicts."""
    quote = "On Moons, Ours reaches 90.4% against 86.5% for Huber."
    held = checked(gates, results=[{"block": "p3", "quote": quote, "holds": True}])
    assert [item.quote for item in held.results] == [quote]
    told = checked(gates, results=[{"block": "p3", "quote": quote, "holds": False, "why_not": "T1 prints 86.4"}])
    assert told.results == ()
    assert told.complaints == []
    assert any("which its own numbers contradict: T1 prints 86.4" in note for note in told.notes)


def test_no_code_is_an_answer_that_is_argued(gates: Gates) -> None:
    found = checked(gates, files=[], commands=[], not_found="only plotting code is there")
    assert (found.complaints, found.not_found, found.sources) == ([], "only plotting code is there", ())


def test_a_module_is_a_command_of_the_chain(gates: Gates) -> None:
    files = [{"path": "experiments/timing.py", "role": "entry", "why": "it times"}]
    found = checked(gates, files=files, commands=[{"argv": ["python3", "-m", "experiments.timing", "--size", "10"]}])
    assert found.complaints == []
    assert found.usage[0].argv == ("python", "-m", "experiments.timing", "--size", "10")


def test_a_task_shares_a_table_or_a_block_with_its_experiment(gates: Gates) -> None:
    """Two tasks under way at once were answered in each other's place, and each got the other's name."""
    own = gates.task(SaidTask.model_validate(TASK), ("T1.r1c1", "p2: 90.4"))
    assert own.claims
    foreign = gates.task(SaidTask.model_validate(TASK), ("T7.r1c1", "p9: 0.5"))
    assert foreign.claims == ()
    assert foreign.complaints == ["its numbers are of another experiment: this one's are in T7, p9"]
