"""Many tasks in one go: what is kept of an interrupted run, and what one bad repository costs the others."""

import json

import pytest

from flows import locate_cases
from flows.locate_cases import partial_directory, run_cases
from flows.locate_inputs import read_cases
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import exclusive_lock
from pipeline.progress import SilentReporter
from tests.flows.test_locate import TASK, run, world  # noqa: F401 - a fixture
from tests.pipeline.locator.repositories import PROJECT, make

BUILD = locate_cases.build_index
ARGUMENTS = ("--cases", "cases.jsonl", "--repositories", "repositories", "--out", "out.jsonl")


@pytest.fixture
def many(world):  # noqa: F811
    """Papers 1 and 2 with two tasks each."""
    make(world / "repositories" / "2", PROJECT)
    write(world, [(paper, number) for paper in "12" for number in (0, 1)])
    return world


def write(root, places):
    rows = [{"paper_id": paper, "task_index": number, **TASK} for paper, number in places]
    (root / "cases.jsonl").write_text("\n".join(map(json.dumps, rows)))


class Counting(SilentReporter):
    """Says how far it got, and stops there."""

    def __init__(self, most=None):
        self.said, self.most = [], most

    def step(self, stage, message):
        self.said.append(message)
        if len(self.said) == self.most:
            raise KeyboardInterrupt

    def warn(self, message):
        self.said.append(message)


def search(root, reporter):
    return run_cases(
        read_cases(root / "cases.jsonl"), root / "repositories", root / "out.jsonl", cache=root / "cache",
        reporter=reporter,
    )  # fmt: skip


def test_an_interrupted_run_writes_nothing_keeps_what_is_finished_and_goes_on(many, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        search(many, Counting(3))
    assert not (many / "out.jsonl").exists()
    assert len(list(partial_directory(many / "out.jsonl").glob("*.json"))) == 3
    built = []
    monkeypatch.setattr(locate_cases, "build_index", lambda *given, **named: built.append(1) or BUILD(*given, **named))
    counts = search(many, SilentReporter())
    assert (counts["predictions"], counts["resumed"]) == (4, 3)
    assert len(built) == 1  # the repository of the finished paper was not even read again
    assert not partial_directory(many / "out.jsonl").exists()
    resumed = (many / "out.jsonl").read_bytes()
    assert search(many, SilentReporter())["resumed"] == 0
    assert (many / "out.jsonl").read_bytes() == resumed


def test_what_changed_meanwhile_is_searched_again(many):
    with pytest.raises(KeyboardInterrupt):
        search(many, Counting(2))
    (many / "repositories" / "1" / "train.py").write_text("print('other')\n")
    assert search(many, SilentReporter())["resumed"] == 0


def test_a_repository_that_cannot_be_searched_costs_only_its_own_cases(many):
    (many / "repositories" / "empty").mkdir()
    write(many, [("1", 0), ("empty", 0), ("gone", 0), ("2", 1)])
    reporter = Counting()
    counts = search(many, reporter)
    assert (counts["cases"], counts["predictions"]) == (4, 2)
    assert counts["missing"] == ["gone"]
    assert counts["unreadable"] == {"empty": "the directory holds no file"}
    assert any("empty" in said and "no prediction" in said for said in reporter.said)
    rows = [json.loads(line) for line in (many / "out.jsonl").read_text().splitlines()]
    assert [row["paper_id"] for row in rows] == ["1", "2"]


def test_nothing_to_search_is_an_error_and_leaves_nothing_behind(many):
    write(many, [("gone", 0)])
    with pytest.raises(ExpbenchError) as raised:
        search(many, SilentReporter())
    assert raised.value.kind is FailureKind.REPOSITORY_INVALID
    assert not (many / "out.jsonl").exists()
    assert not partial_directory(many / "out.jsonl").exists()


def test_two_processes_do_not_write_the_same_predictions(many):
    with (
        exclusive_lock(partial_directory(many / "out.jsonl") / "lock", "another"),
        pytest.raises(ExpbenchError) as raised,
    ):
        search(many, SilentReporter())
    assert raised.value.kind is FailureKind.WORKSPACE_LOCKED


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ((*ARGUMENTS, "--explain"), "--explain has no meaning"),
        ((*ARGUMENTS, "--commit", "x", "--html", "y"), "--commit, --html have no meaning"),
        ((*ARGUMENTS, "--record", "x"), "--engine model"),
        ((*ARGUMENTS[:-1], "cases.jsonl"), "would be replaced"),
        ((*ARGUMENTS[:-1], "repositories"), "is a directory"),
        ((*ARGUMENTS[:-1], "task.json/out.jsonl"), "is no directory"),
        (("repositories/1", "--task", "task.json", "--out", "x"), "--out has no meaning"),
        (("repositories/1", "--task", "task.json", "--html", "task.json"), "would be replaced"),
        (("repositories/1", "--task", "task.json", "--record", "x"), "--engine model"),
    ],
)
def test_options_that_cannot_hold_are_refused_before_anything_is_searched(many, arguments, cause):
    before = sorted(many.rglob("*"))
    with pytest.raises(ExpbenchError) as raised:
        run(*arguments)
    assert raised.value.kind is FailureKind.USAGE
    assert cause in raised.value.cause
    assert sorted(many.rglob("*")) == before
