"""EXP-Bench's published data: everything is read, nothing is lost, every departure is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from flows.cli import app
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.formats._expbench_record import Origin
from pipeline.formats._expbench_text import format_requirement, normal_path, parse_requirement, parse_variables
from pipeline.formats.expbench import (
    NULL_COMMIT,
    PublishedDataset,
    quirk_counts,
    read_known_repositories,
    read_published,
    record_to_task,
    task_to_record,
    write_published,
)
from pipeline.formats.expbench_import import read_imported, write_imported
from pipeline.paper import Paper
from pipeline.repository import RepositoryRef
from pipeline.schema import Severity
from pipeline.task import CodeEvidence, DesignVariable, Requirement, Status

PUBLISHED = Path(__file__).parents[4] / "shared" / "data" / "exp-bench"
PARSED = Path(__file__).parents[4] / "shared" / "data" / "locator" / "cases_dev.jsonl"
ORIGIN = Origin(
    "p-00", Paper(id="p", title="P"), RepositoryRef(url="https://x.org/r", commit=NULL_COMMIT), "f record 0"
)

RECORD: dict[str, Any] = {
    "question": "Does it help?",
    "method": "Train both.",
    "expected_outcome": "It does.",
    "source": ["/workspace/scripts/run.py", "/workspace/configs/a.yaml"],
    "usage_instructions": "Run:\n```bash\npython scripts/run.py --lr 0.1 \\\n  --seed 1\npython x.py --data <path>\n```",
    "requirements": ["Step 1: Load (/workspace/scripts/run.py:3-9, 12, run.py:20)", "Final step: compare"],
    "agent_instructions": "Do it.",
    "masked_source": ["/workspace/scripts/run.py"],
    "mode": "A",
    "design_complexity": {
        "constant_variables": {"data": "CIFAR"},
        "independent_variables": {"rule": ["A", 2, {"depth": ["1", "2"]}]},
        "dependent_variables": {"accuracy": None},
    },
}


def write(directory: Path, content: Any, paper: str = "7", conference: str = "iclr2024") -> Path:
    path = directory / conference / paper / f"{paper}_complete_final.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def test_a_record_becomes_a_task() -> None:
    task, problems = record_to_task(RECORD, ORIGIN)
    assert task is not None
    assert task.status is Status.LOCATED
    truth = task.truth
    assert [(script.path, script.role) for script in truth.sources] == [
        ("scripts/run.py", "entry"),
        ("configs/a.yaml", "config"),
    ]
    assert truth.usage[0].argv == ("python", "scripts/run.py", "--lr", "0.1", "--seed", "1")
    assert len(truth.usage) == 1  # the other has a placeholder
    assert truth.requirements[0].text == "Step 1: Load"
    assert [(span.path, span.start, span.end) for span in truth.requirements[0].spans] == [
        ("scripts/run.py", 3, 9),
        ("scripts/run.py", 12, 12),
        ("scripts/run.py", 20, 20),
    ]
    assert truth.independent == (DesignVariable(name="rule", values=("A", "2", "depth: 1, 2")),)
    assert truth.dependent == (DesignVariable(name="accuracy"),)
    assert set(quirk_counts(problems)) == {"changed_path", "requirement_without_span"}
    assert task.provenance.engine == "model"


@pytest.mark.parametrize(
    ("changes", "quirk"),
    [
        ({"no_answer": "There is no script."}, "no_answer"),
        ({"question": None, "hypothesis": "It helps."}, "renamed_key"),
        ({"design_complexity": None, "experiment_design_complexity": RECORD["design_complexity"]}, "renamed_key"),
        ({"design_complexity": {"design_complexity": RECORD["design_complexity"]}}, "nested_key"),
        ({"design_complexity": {"other": {}}}, "no_design"),
        ({"design_complexity": None}, "no_design"),
        ({"surprise": 1}, "unknown_key"),
        ({"method": None}, "missing_field"),
        ({"source": "/workspace/run.py"}, "wrong_type"),
        ({"requirements": {"a": 1}}, "wrong_type"),
        ({"method": ["a", "b"]}, "wrong_type"),
        ({"usage_instructions": "Just run it."}, "usage_without_command"),
        ({"question": None}, "skipped"),
    ],
)
def test_each_quirk_is_named_and_survives(changes: dict[str, Any], quirk: str) -> None:
    record = {key: value for key, value in (RECORD | changes).items() if value is not None}
    task, problems = record_to_task(record, ORIGIN)
    assert quirk in quirk_counts(problems)
    if task is not None:
        assert task_to_record(task, record) == record
        assert task.question
    if quirk == "no_answer":
        assert task is not None
        assert task.status is Status.NOT_FOUND
        assert task.truth.not_found is not None
        assert task.truth.not_found.reason == "There is no script."
        assert task.truth.not_found.searched


def test_a_change_is_written_in_the_canonical_form() -> None:
    task, _ = record_to_task(RECORD | {"hypothesis": "x"}, ORIGIN)
    assert task is not None
    changed = task.evolve(
        question="Another?", truth=task.truth.evolve(requirements=(Requirement(text="Only", spans=()),))
    )
    record = task_to_record(changed, RECORD)
    assert record["question"] == "Another?"
    assert record["requirements"] == ["Only"]
    assert record["source"] == RECORD["source"]  # untouched, in its own words
    assert record["mode"] == "A"


@pytest.mark.parametrize(
    ("text", "known", "path"),
    [
        ("/workspace/a/b.py", (), "a/b.py"),
        ("/tmp/clone/a/b.py", (), "a/b.py"),
        ("/tmp/x/clone/a/b.py", ("a/b.py",), "a/b.py"),
        ("b.py", ("a/b.py", "c.py"), "a/b.py"),
        ("b.py", ("a/b.py", "c/b.py"), "b.py"),
        ("./a//b.py", (), "a/b.py"),
        ("/workspace/../../etc/passwd", (), "etc/passwd"),
        ("", (), ""),
    ],
)
def test_paths_are_relative_to_the_repository(text: str, known: tuple[str, ...], path: str) -> None:
    assert normal_path(text, known)[0] == path


@pytest.mark.parametrize(
    "text",
    [
        "Compare (see usage)",
        "Compare",
        "Use ratio (a:b)",
        "Load (run.py:0-3)",
        "Load (run.py:3-)",
        "Load (my file.py:3)",
    ],
)
def test_brackets_that_name_no_lines_stay_text(text: str) -> None:
    assert parse_requirement(text) == Requirement(text=text, spans=())


paths = st.from_regex(r"[a-z_]{1,8}(/[a-z_]{1,8}){0,2}\.(py|sh|ipynb)", fullmatch=True)
spans = st.builds(
    lambda path, start, length: CodeEvidence(path=path, start=start, end=start + length),
    paths, st.integers(1, 5000), st.integers(0, 400),
)  # fmt: skip
plain = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="()"), max_size=40)


@given(plain.map(str.strip).filter(bool), st.lists(spans, min_size=1, max_size=4))
def test_requirements_survive_their_text_form(text: str, found: list[CodeEvidence]) -> None:
    requirement = Requirement(text=text, spans=tuple(found))
    assert parse_requirement(format_requirement(requirement)) == requirement


leaves = (
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.floats(allow_nan=False, allow_infinity=False) | plain
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain, inner, max_size=3), max_leaves=8
)
keys = st.sampled_from([*RECORD, "hypothesis", "no_answer", "experiment_design_complexity", "design_ambiguity", "new"])
records = st.dictionaries(keys, values, max_size=8) | st.dictionaries(keys, values, max_size=5).map(
    lambda d: RECORD | d
)


@settings(max_examples=150, deadline=None)
@given(records)
def test_whatever_a_record_holds_is_read_and_comes_back(record: dict[str, Any]) -> None:
    task, problems = record_to_task(record, ORIGIN)
    assert all(problem.where == ORIGIN.where for problem in problems)
    if task is None:
        assert "skipped" in quirk_counts(problems)
        return
    assert task_to_record(task, record) == record
    again, _ = record_to_task(task_to_record(task), ORIGIN)
    assert again is not None
    stripped = {"provenance", "problems", "status", "status_reason", "truth"}
    for field in set(type(task).model_fields) - stripped:
        assert getattr(again, field) == getattr(task, field)


@given(values)
def test_variables_are_texts_or_nothing(value: Any) -> None:
    parsed = parse_variables(value)
    assert parsed is None or all(isinstance(item, str) for variable in parsed for item in variable.values)


# --- directories


def test_a_bad_file_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    write(tmp_path, {"questions": [RECORD, 5, {"method": "no question"}], "main_takeaways": ["t"]})
    write(tmp_path, "{broken", paper="8")
    write(tmp_path, '{"questions": [{"question": NaN}]}', paper="9")
    write(tmp_path, [RECORD], paper="10", conference="workshop")
    write(tmp_path, {"other": 1}, paper="11")
    write(tmp_path, '{"questions": [{"question": "y", "question": "x"}]}', paper="12")
    write(tmp_path, '{"questions": [{"question": "half a pair: \\ud800"}]}', paper="13")
    rows = tmp_path / "iclr2024" / "conference_data.jsonl"
    rows.write_text('{"id": "7", "title": "T", "code_url": "https://x.org/r.", "keywords": ["vision"]}\nnot json\n')
    dataset = read_published(tmp_path)
    assert [item.task.id for item in dataset.tasks] == ["iclr2024-12-00", "iclr2024-7-00", "workshop-10-00"]
    assert dataset.tasks[1].task.repository.url == "https://x.org/r"
    paper = next(paper for paper in dataset.papers if paper.paper.id == "iclr2024-7")
    assert (paper.paper.title, paper.paper.venue, paper.paper.year, paper.category) == ("T", "ICLR", 2024, "vision")
    errors = {problem.where for problem in dataset.problems if problem.severity is Severity.ERROR}
    assert {name.split("/")[1].split("_")[0] for name in errors if "record" not in name} == {"8", "9", "11", "13"}
    assert {name for name in errors if "record" in name} == {
        "iclr2024/7/7_complete_final.json record 1",
        "iclr2024/7/7_complete_final.json record 2",
    }
    assert quirk_counts(dataset.problems)["duplicate_key"] == 1


def test_written_and_read_again_is_the_same(tmp_path: Path) -> None:
    source = write(tmp_path / "in", {"main_takeaways": ["t"], "questions": [RECORD, 5, RECORD | {"mode": "B"}]})
    other = write(tmp_path / "in", [RECORD], paper="8")
    (tmp_path / "in" / "iclr2024" / "conference_data.jsonl").write_text('{"id": "7", "title": "T", "x": [1]}\n')
    dataset = read_published(tmp_path / "in")
    write_published(tmp_path / "out", dataset.papers, dataset.tasks, dataset.other_lines)
    for path in (source, other):
        assert json.loads((tmp_path / "out" / path.relative_to(tmp_path / "in")).read_text()) == json.loads(
            path.read_text()
        )
    assert read_published(tmp_path / "out") == dataset
    write_imported(dataset, tmp_path / "imported")
    assert read_imported(tmp_path / "imported") == dataset


def test_every_line_of_a_conference_comes_back_where_it_stood(tmp_path: Path) -> None:
    write(tmp_path / "in", [RECORD])
    lines = ['{"id": "5", "title": "No tasks"}', '{"id": "7", "title": "Replaced"}', "not json", "[1]",
             '{"title": "no id"}', '{"id": "7", "title": "T\u2028 and \x85"}', '{"id": 8}']  # fmt: skip
    rows = tmp_path / "in" / "iclr2024" / "conference_data.jsonl"
    rows.write_text("\r\n".join(lines), encoding="utf-8-sig", newline="")
    dataset = read_published(tmp_path / "in")
    assert dataset.papers[0].paper.title.startswith("T")
    assert [line.number for line in dataset.other_lines] == [1, 2, 3, 4, 5, 7]
    counts = quirk_counts(dataset.problems)
    assert (counts["row_without_tasks"], counts["duplicate_row"], counts["bad_file"]) == (2, 1, 3)
    write_published(tmp_path / "out", dataset.papers, dataset.tasks, dataset.other_lines)
    again = tmp_path / "out" / "iclr2024" / "conference_data.jsonl"
    assert again.read_text(encoding="utf-8").split("\n") == [*lines, ""]
    assert read_published(tmp_path / "out") == dataset
    write_imported(dataset, tmp_path / "imported")
    assert read_imported(tmp_path / "imported") == dataset


def test_a_paper_cannot_be_written_elsewhere(tmp_path: Path) -> None:
    write(tmp_path / "in", [RECORD])
    dataset = read_published(tmp_path / "in")
    with pytest.raises(ExpbenchError) as caught:
        write_published(tmp_path / "out", [dataset.papers[0].evolve(file="../../x.json")], dataset.tasks)
    assert caught.value.kind is FailureKind.RECORD_INVALID


def test_an_import_replaces_only_an_import(tmp_path: Path) -> None:
    write(tmp_path / "in", [RECORD])
    dataset = read_published(tmp_path / "in")
    target = tmp_path / "out"
    target.mkdir()
    (target / "thesis.txt").write_text("mine")
    with pytest.raises(ExpbenchError) as caught:
        write_imported(dataset, target)
    assert caught.value.kind is FailureKind.WORKSPACE_CONFLICT
    assert (target / "thesis.txt").read_text() == "mine"


# --- the command


def test_import_reports_what_it_found(tmp_path: Path) -> None:
    write(tmp_path / "in", {"questions": [RECORD]})
    write(tmp_path / "in", "{broken", paper="8")
    known = tmp_path / "known.json"
    known.write_text(json.dumps({"7": {"repo": "owner/name", "head": "a" * 40}}))
    arguments = ["import", "exp-bench", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--json"]
    result = CliRunner().invoke(app, [*arguments, "--repositories", str(known)])
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert (value["tasks"], value["errors"], value["with_commit"]) == (1, 1, 1)
    assert value["quirks"]["bad_file"] == 1
    assert "8_complete_final.json" in result.stderr
    assert read_imported(tmp_path / "out").tasks[0].task.repository.url == "https://github.com/owner/name"


@pytest.mark.parametrize("content", ["[]", "{", '{"7": {"commit": "short", "url": "x"}}', '{"7": 3}'])
def test_a_bad_file_of_repositories_is_refused(tmp_path: Path, content: str) -> None:
    known = tmp_path / "known.json"
    known.write_text(content)
    with pytest.raises(ExpbenchError) as caught:
        read_known_repositories(known)
    assert caught.value.kind is FailureKind.RECORD_INVALID


def test_a_directory_without_the_data_is_refused(tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ExpbenchError) as caught:
            read_published(directory)
        assert caught.value.kind is FailureKind.RECORD_INVALID


# --- the data itself


@pytest.fixture(scope="module")
def published() -> PublishedDataset:
    if not PUBLISHED.is_dir():
        pytest.skip("the published data is not at hand")
    return read_published(PUBLISHED)


def test_all_published_tasks_are_read(published: PublishedDataset) -> None:
    assert len(published.papers) == 16
    assert len(published.tasks) == 151
    assert sum(item.task.truth.not_found is not None for item in published.tasks) == 35
    assert not [problem for problem in published.problems if problem.severity is Severity.ERROR]
    assert all(item.task.repository.url.startswith("https://github.com/") for item in published.tasks)
    requirements = [step for item in published.tasks for step in item.task.truth.requirements]
    assert (len(requirements), sum(bool(step.spans) for step in requirements)) == (1408, 1400)


def test_the_published_files_come_back_as_they_were(published: PublishedDataset, tmp_path: Path) -> None:
    written = write_published(tmp_path / "out", published.papers, published.tasks)
    for path in written:
        original = PUBLISHED / path.relative_to(tmp_path / "out")
        if path.suffix == ".json":
            assert json.loads(path.read_text()) == json.loads(original.read_text())
        else:
            rows = [
                sorted(map(json.dumps, map(json.loads, file.read_text().splitlines()))) for file in (path, original)
            ]
            assert rows[0] == rows[1]
    assert read_published(tmp_path / "out") == published


def test_the_canonical_form_says_the_same(published: PublishedDataset) -> None:
    for item in published.tasks:
        task = item.task
        again, _ = record_to_task(task_to_record(task), Origin(task.id, task.paper, task.repository, "x"))
        assert again is not None
        assert again.evolve(problems=task.problems) == task


def test_spans_are_those_that_others_parsed(published: PublishedDataset) -> None:
    """103 of the tasks were parsed by other people's code: 99 in 100 spans are the same (their bare names are resolved
    against the repository, ours against the record)."""
    if not PARSED.is_file():
        pytest.skip("the parsed spans are not at hand")
    mine: dict[str, set[tuple[str, int, int]]] = {}
    for item in published.tasks:
        found = mine.setdefault(f"{item.task.paper.id.split('-')[-1]} {item.task.question}", set())
        found |= {(span.path, span.start, span.end) for step in item.task.truth.requirements for span in step.spans}
    total = same = 0
    for line in PARSED.read_text().splitlines():
        case = json.loads(line)
        theirs = {(step["file"], step["start"], step["end"]) for step in case["requirements"]}
        total += len(theirs)
        same += len(theirs & mine[f"{case['paper_id']} {case['question']}"])
    assert total > 1200
    assert same / total > 0.99
