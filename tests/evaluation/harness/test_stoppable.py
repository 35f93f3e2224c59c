"""A sandbox for graders: everything goes to the one below, with the handle that ends it."""

from __future__ import annotations

from pathlib import Path

from evaluation.families.base import FamilyRules
from evaluation.harness.graders import Graders
from evaluation.harness.stoppable import Stoppable
from pipeline.sandbox.base import BuildSpec, Command, RunSpec, StopHandle
from tests.evaluation.harness.doubles import Engine, Grading, Heard


def test_what_a_grader_starts_ends_with_the_run(tmp_path: Path) -> None:
    engine, stop, heard = Engine({"a": "x"}), StopHandle(), Heard()
    engine.left = 4
    made = Stoppable(engine, stop)  # type: ignore[arg-type]
    assert made.name == "docker"
    assert made.status() == engine.status()
    spec = BuildSpec(packages=("numpy==2.0",))
    image = made.build(spec, log=tmp_path / "log", owner="o", reporter=heard)
    assert engine.builds == [(spec, {"log": tmp_path / "log", "owner": "o", "reporter": heard, "stop": stop})]
    run = RunSpec(commands=(Command(argv=("x",)),))
    result = made.run(image, tmp_path / "tree", run, out=tmp_path / "out", owner="o")
    assert [item.path for item in result.produced] == ["a"]
    asked = {"image": image, "tree": tmp_path / "tree", "out": tmp_path / "out", "owner": "o", "stop": stop}
    assert engine.runs == [(run, asked)]
    assert made.reap("o") == 4
    assert engine.reaped == ["o"]


def test_a_family_grades_by_itself_with_the_same_client() -> None:
    client = object()
    ours = Grading().graders(client=client, panel=3, execute_all=True)
    assert ours.of(None) is ours
    rules = FamilyRules()
    theirs = ours.of(rules)
    assert (theirs.integrity, theirs.execution, theirs.judge) == (rules.integrity, rules.execution, rules.judge)
    assert (theirs.client, theirs.panel, theirs.execute_all) == (client, 3, True)


def test_without_a_word_graders_are_keyless_single_and_do_not_run_what_was_caught() -> None:
    assert (Graders().client, Graders().panel, Graders().execute_all) == (None, 1, False)
