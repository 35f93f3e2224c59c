import json
import os
from contextlib import ExitStack

import pytest
from typer.testing import CliRunner

from flows.cli import app
from flows.locate_inputs import at_commit
from pipeline.errors import ExpbenchError, FailureKind
from tests.doubles.protocol_server import ProtocolServer, Script, turns
from tests.extractors.engine.reader import Reader
from tests.llm_fixtures import no_ambient_model  # noqa: F401
from tests.pipeline.locator.repositories import PROJECT, make

TASK = {
    "question": "Does logistic regression reach a higher accuracy on the spirals data set than on moons?",
    "method": "Train the logistic regression on spirals with a learning rate of 0.1 over five seeds.",
    "expected_outcome": "The accuracy on spirals is higher.",
}


@pytest.fixture
def world(tmp_path, monkeypatch):
    make(tmp_path / "repositories" / "1", PROJECT)
    (tmp_path / "task.json").write_text(json.dumps(TASK))
    monkeypatch.setenv("EXPBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments):
    result = CliRunner().invoke(app, ["locate", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_one_task_gives_ranking_and_chain_and_nothing_that_only_a_run_tells(world):
    found = json.loads(run("repositories/1", "--task", "task.json", "--json").stdout)
    assert found["ranked"][0] == "train.py"
    assert "train.py" in found["chain"]
    assert found["not_found"] is None
    assert 0 < found["confidence"] <= 1
    assert found["usage"][0]["argv"][:2] == ["python", "train.py"]
    assert not {"requirements", "requirements_elsewhere", "hyperparameters", "data_needs"} & found.keys()
    assert found["engine"] == "keyless"
    assert not (world / "locate.html").exists()


def test_explaining_gives_reasons_and_a_page(world):
    found = json.loads(run("repositories/1", "--task", "task.json", "--explain", "--json").stdout)
    assert found["ranking"][0]["reasons"]
    page = (world / found["html"]).read_text()
    assert "train.py" in page
    assert TASK["question"] in page
    table = run("repositories/1", "--task", "task.json", "--explain", "--html", "own.html").stdout
    assert "train.py" in table
    assert (world / "own.html").exists()


def test_without_a_chain_there_is_none_and_no_command(world):
    other = {"question": "Does the protein folding transformer beat docking on ligands?", "method": "Fold proteins."}
    (world / "task.json").write_text(json.dumps(other))
    found = json.loads(run("repositories/1", "--task", "task.json", "--json").stdout)
    assert found["not_found"] is not None
    assert found["chain"] == found["usage"] == []


def test_a_yaml_task_with_lists_and_the_published_drift_is_read(world):
    (world / "task.yaml").write_text("hypothesis: Do spirals reach a higher accuracy?\nmethod:\n  - Train on spirals\n")
    found = json.loads(run("repositories/1", "--task", "task.yaml", "--json").stdout)
    assert found["ranked"][0] == "train.py"


def test_text_of_others_stays_text_in_the_page(world):
    (world / "task.json").write_text(json.dumps({**TASK, "question": "spirals <script>alert(1)</script> accuracy?"}))
    run("repositories/1", "--task", "task.json", "--explain")
    assert "<script>alert" not in (world / "locate.html").read_text()


def test_cases_give_one_prediction_each_in_their_order_and_twice_the_same(world):
    rows = [{"paper_id": 1, "task_index": number, **TASK} for number in (3, 0)]
    rows.append({"paper_id": "2", "task_index": 0, **TASK})
    (world / "cases.jsonl").write_text("\n".join(map(json.dumps, rows)))
    arguments = ("--cases", "cases.jsonl", "--repositories", "repositories", "--out")
    counts = json.loads(run(*arguments, "one.jsonl", "--json").stdout)
    assert (counts["cases"], counts["predictions"], counts["missing"]) == (3, 2, ["2"])
    found = [json.loads(line) for line in (world / "one.jsonl").read_text().splitlines()]
    assert [(row["paper_id"], row["task_index"]) for row in found] == [("1", 3), ("1", 0)]
    assert found[0]["ranked"][0] == "train.py"
    assert found[0]["chain"]
    assert found[0]["usage"]
    run(*arguments, "two.jsonl")
    assert (world / "one.jsonl").read_bytes() == (world / "two.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("{", "is no JSON"),
        ("[]", "is no object"),
        ('{"paper_id": "1", "task_index": 0}', "has no question"),
        ('{"question": "q", "task_index": 0}', "has no paper_id"),
        ('{"question": "q", "paper_id": "../x", "task_index": 0}', "cannot name a directory"),
        ('{"question": "q", "paper_id": "1", "task_index": "0"}', "task_index is no whole number"),
    ],
)
def test_a_bad_case_is_named_by_its_line(world, line, cause):
    good = json.dumps({"paper_id": "1", "task_index": 7, **TASK})
    (world / "cases.jsonl").write_text(f"{good}\n{line}\n")
    with pytest.raises(ExpbenchError) as raised:
        run("--cases", "cases.jsonl", "--repositories", "repositories", "--out", "out.jsonl")
    assert raised.value.kind is FailureKind.RECORD_INVALID
    assert raised.value.object == "cases.jsonl:2"
    assert cause in raised.value.cause
    assert not (world / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ((), FailureKind.USAGE),
        (("repositories/1",), FailureKind.USAGE),
        (("--cases", "cases.jsonl"), FailureKind.USAGE),
        (("nowhere", "--task", "task.json"), FailureKind.REPOSITORY_INVALID),
        (("empty", "--task", "task.json"), FailureKind.REPOSITORY_EMPTY),
        (("repositories/1", "--task", "missing.json"), FailureKind.RECORD_INVALID),
        (("repositories/1", "--task", "binary.json"), FailureKind.RECORD_INVALID),
        (("repositories/1", "--task", "broken.yaml"), FailureKind.RECORD_INVALID),
    ],
)
def test_bad_input_says_what_is_wrong(world, arguments, kind):
    (world / "empty").mkdir()
    (world / "binary.json").write_bytes(b"\xff\xfe\x00\x81")
    (world / "broken.yaml").write_text("question: [unclosed")
    with pytest.raises(ExpbenchError) as raised:
        run(*arguments)
    assert raised.value.kind is kind


def test_a_hostile_repository_is_reported_and_never_fatal(world):
    root = world / "repositories" / "1"
    make(
        root,
        {
            "old.py": "print 'spirals'\n",
            "latin.py": b"# caf\xe9 spirals\nprint(1)\n",
            "binary.py": b"\0\1\2",
            "generated.py": "x = [" + "1," * 50_000 + "]\n",
            "one.py": "import two\n",
            "two.py": "import one\n",
            "broken.ipynb": "{",
            "deep.py": "x = " + "(" * 300 + ")" * 300 + "\n",
        },
    )
    (root / "loop").symlink_to(root, target_is_directory=True)
    (root / "outside.py").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe.py")
    found = json.loads(run("repositories/1", "--task", "task.json", "--json").stdout)
    assert found["ranked"][0] == "train.py"
    named = {problem["where"] for problem in found["problems"]}
    assert {"old.py", "latin.py", "loop", "outside.py", "pipe.py", "broken.ipynb"} <= named
    assert not {"loop", "outside.py", "pipe.py", "binary.py"} & set(found["ranked"])


def test_a_repository_about_something_else_is_not_found_with_what_was_searched(world):
    question = "Does the Wasserstein barycentre of MRI volumes improve glioma segmentation on BraTS over nnU-Net?"
    (world / "task.json").write_text(json.dumps({"question": question, "method": "Segment BraTS with nnU-Net."}))
    found = json.loads(run("repositories/1", "--task", "task.json", "--json").stdout)
    assert found["chain"] == []
    assert found["not_found"]["searched"]
    assert found["ranked"]


# --- with a model ---


@pytest.fixture
def serving(monkeypatch):
    """`serving(script)` puts a model's endpoint in front of the command."""
    monkeypatch.setenv("EXPBENCH_MODEL", "reader")
    with ExitStack() as stack:

        def start(script):
            server = stack.enter_context(ProtocolServer(script))
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            return server

        yield start


@pytest.mark.usefixtures("no_ambient_model")
def test_a_model_checks_the_ranking_and_its_way_is_kept(world, serving):
    server = serving(Reader())
    arguments = ("repositories/1", "--task", "task.json", "--engine", "model", "--json")
    found = json.loads(run(*arguments).stdout)
    assert found["engine"] == "reader"
    assert found["chain"]
    assert found["sources"][0]["reasons"][0].startswith("model: ")
    assert found["ranked"][: len(found["chain"])] == found["chain"]  # it stayed the ranking by rules
    assert len(set(found["ranked"])) == len(found["ranked"])
    way = json.loads((world / found["record"] / "reader.json").read_text())
    assert len(way["value"]["tasks"]) == 1
    assert way["steps"]
    asked = len(server.requests)
    assert json.loads(run(*arguments).stdout) == found
    assert len(server.requests) == asked  # recorded answers are not paid for again


@pytest.mark.usefixtures("no_ambient_model")
def test_a_model_that_refuses_leaves_the_search_by_rules_and_says_so(world, serving):
    serving(Script(turns=(), default=turns.refusal("no")))
    found = json.loads(run("repositories/1", "--task", "task.json", "--engine", "model", "--json").stdout)
    assert found["engine"] == "keyless"
    assert found["chain"] == json.loads(run("repositories/1", "--task", "task.json", "--json").stdout)["chain"]
    assert any("deterministic" in problem["message"] for problem in found["problems"])


@pytest.mark.usefixtures("no_ambient_model")
@pytest.mark.parametrize(
    ("options", "kind", "cause"),
    [
        (("--engine", "model"), FailureKind.USAGE, "EXPBENCH_MODEL"),
        (("--budget-usd", "1"), FailureKind.USAGE, "--engine model"),
    ],
)
def test_a_model_that_is_not_there_is_said_before_anything_is_searched(world, options, kind, cause):
    with pytest.raises(ExpbenchError) as caught:
        run("repositories/1", "--task", "task.json", *options)
    assert caught.value.kind is kind
    assert cause in str(caught.value)
    assert not (world / "expbench-locate").exists()


@pytest.mark.usefixtures("no_ambient_model")
def test_the_work_on_each_task_has_its_own_directory(world, serving):
    serving(Reader())
    (world / "other.json").write_text(json.dumps({**TASK, "method": "Train on spirals with five seeds."}))
    records = {
        json.loads(run("repositories/1", "--task", task, "--engine", "model", "--json").stdout)["record"]
        for task in ("task.json", "other.json")
    }
    assert len(records) == 2
    assert all((world / record / "reader.json").is_file() for record in records)


@pytest.mark.usefixtures("no_ambient_model")
def test_what_a_model_did_before_its_budget_ended_is_kept(world, serving):
    serving(Script(turns=(), default=turns.tool_calls(turns.tool_call("rank", query="spirals"))))
    arguments = ("repositories/1", "--task", "task.json", "--engine", "model", "--record", "way", "--max-calls", "2")
    with pytest.raises(ExpbenchError) as caught:
        run(*arguments)
    assert caught.value.kind is FailureKind.BUDGET_EXCEEDED
    way = json.loads((world / "way" / "reader.json").read_text())
    assert len(way["steps"]) == 2
    assert way["value"] is None
    assert "calls are used" in way["reason"]


@pytest.mark.usefixtures("no_ambient_model")
def test_a_model_is_asked_all_cases_of_a_repository_together_and_goes_on_where_it_ended(world, serving):
    server = serving(Reader())
    make(world / "repositories" / "2", PROJECT)
    places = [("1", 3), ("1", 4), ("2", 5)]
    rows = [{"paper_id": p, "task_index": n, **TASK, "method": f"Train on spirals with {n} seeds."} for p, n in places]
    (world / "cases.jsonl").write_text("\n".join(map(json.dumps, rows)))
    arguments = ("--cases", "cases.jsonl", "--repositories", "repositories", "--out", "out.jsonl", "--engine", "model")
    with pytest.raises(ExpbenchError) as caught:
        run(*arguments, "--max-calls", 3)
    assert caught.value.kind is FailureKind.BUDGET_EXCEEDED
    assert not (world / "out.jsonl").exists()
    counts = json.loads(run(*arguments, "--json").stdout)
    assert (counts["predictions"], counts["resumed"]) == (3, 2)
    assert len(server.requests) == 4  # two turns for each repository, whatever the number of its tasks
    found = [json.loads(line) for line in (world / "out.jsonl").read_text().splitlines()]
    assert [row["engine"] for row in found] == ["reader"] * 3
    assert all(row["ranked"][: len(row["chain"])] == row["chain"] != [] for row in found)
    assert sorted(path.name for path in (world / "out.jsonl.model" / "reader").iterdir()) == ["1.json", "2.json"]


@pytest.mark.usefixtures("no_ambient_model")
def test_in_a_narrow_terminal_paths_are_whole_and_commands_stand_alone(world, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    path = "experiments/spirals/classification/accuracy/" + "long_name_" * 6 + "train_spirals.py"
    body = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--dataset')\nprint('accuracy on spirals')\n"
    make(world / "repositories" / "2", {path: body, "other.py": "print(1)\n"})
    shown = run("repositories/2", "--task", "task.json", "--explain").stdout
    rows = [line for line in shown.splitlines() if line.startswith("│")]
    assert all(len(line) <= 80 for line in rows)
    folded = "".join(line.split("│")[2].strip() for line in rows)
    assert path in folded
    assert any(line.startswith(f"  python {path}") for line in shown.splitlines())
    assert any("│ other.py" in line for line in rows)
    assert "other.py" not in run("repositories/2", "--task", "task.json", "--explain", "--top", "1").stdout


def test_names_of_files_cannot_move_the_cursor_and_problems_are_shown(world):
    make(
        world / "repositories" / "1",
        {"spirals\x1b[2Jtrain.py": "print('spirals accuracy')\n", "[bold]spirals.py": "print 'spirals'\n"},
    )
    shown = run("repositories/1", "--task", "task.json", "--explain").stdout
    assert "\x1b[2J" not in shown
    assert "spirals\\x1b[2Jtrain.py" in shown
    assert "[bold]spirals.py: not valid Python 3" in shown
    page = (world / "locate.html").read_text()
    assert 'id="problems"' in page
    assert "not valid Python 3" in page


@pytest.mark.parametrize(
    ("source", "commit", "expected"),
    [
        ("https://h.org/o/n@1a2b3c", None, ("https://h.org/o/n", "1a2b3c")),
        ("https://user@h.org/o/n", None, ("https://user@h.org/o/n", None)),
        ("https://h.org/@user/n", None, ("https://h.org/@user/n", None)),
        ("https://h.org/o/n@feature/x", None, ("https://h.org/o/n", "feature/x")),
        ("git@h.org:o/n", None, ("git@h.org:o/n", None)),
        ("git@h.org:o/n@v1", None, ("git@h.org:o/n", "v1")),
        ("github:o/n@v1", "v1", ("github:o/n", "v1")),
        ("repositories@v1", None, ("repositories", "v1")),
        ("nowhere@v1", None, ("nowhere@v1", None)),
        ("at@home", None, ("at@home", None)),
    ],
)
def test_a_commit_may_stand_behind_the_repository(world, source, commit, expected):
    (world / "at@home").mkdir()
    assert at_commit(source, commit) == expected


def test_two_commits_are_refused(world):
    with pytest.raises(ExpbenchError) as raised:
        run("repositories@v1", "--commit", "v2", "--task", "task.json")
    assert raised.value.kind is FailureKind.USAGE


# --- a question in words ---


def test_a_question_can_be_typed(world):
    found = json.loads(run("repositories/1", "How accurate is logistic regression on the spirals?", "--json").stdout)
    assert found["ranked"][0] == "train.py"
    assert "train.py" in found["chain"]


def test_a_task_file_may_stand_in_the_place_of_the_question(world):
    by_name, by_option = (
        json.loads(run("repositories/1", *task, "--json").stdout) for task in (("task.json",), ("--task", "task.json"))
    )
    assert by_name == by_option


@pytest.mark.parametrize(
    ("question", "kind", "cause"),
    [("", FailureKind.USAGE, "empty"), (" ? ", FailureKind.USAGE, "empty"), ("x" * 5000, None, ""),
     ("missing.yaml", FailureKind.RECORD_INVALID, "cannot be read")],
)  # fmt: skip
def test_a_question_without_words_and_a_file_that_is_missing_are_told(world, question, kind, cause):
    if kind is None:
        assert run("repositories/1", question, "--json").exit_code == 0
        return
    with pytest.raises(ExpbenchError) as caught:
        run("repositories/1", question)
    assert caught.value.kind is kind
    assert cause in caught.value.cause


def test_a_question_and_a_task_file_are_one_too_many(world):
    with pytest.raises(ExpbenchError) as caught:
        run("repositories/1", "How accurate is it?", "--task", "task.json")
    assert caught.value.kind is FailureKind.USAGE
