import pytest

from pipeline.locator import TaskQuery, build_index, locate
from tests.pipeline.locator.repositories import PROJECT, make, snapshot_of

SPIRALS = TaskQuery(
    question="What classification accuracy does logistic gradient descent reach on the spirals data set?",
    method="Fit the logistic estimator by gradient descent on spirals over several seeds and measure test accuracy.",
)
TIMING = TaskQuery(question="How long does sorting take for arrays of growing size?", method="Measure sorting seconds.")


@pytest.fixture
def index(tmp_path):
    return build_index(make(tmp_path, PROJECT))


def test_the_documented_command_is_given_with_its_place(index):
    found = locate(index, SPIRALS)
    assert found.not_found is None
    assert found.chain.entries == ("train.py",)
    (usage,) = found.chain.usage
    assert usage.argv == ("python", "train.py", "--dataset", "spirals", "--lr", "0.3")
    assert usage.reason.startswith("README.md:9")
    assert not found.chain.problems  # the device variable changes no result


def test_a_wrapper_leads_to_the_commands_that_it_runs(index):
    chain = locate(index, TIMING).chain
    assert [(source.path, source.role) for source in chain.sources] == [
        ("scripts/timing.sh", "wrapper"),
        ("experiments/timing.py", "entry"),
    ]
    assert [usage.argv for usage in chain.usage] == [
        ("python", "experiments/timing.py", "--size", "100"),
        ("python", "experiments/timing.py", "--size", "1000"),
    ]
    assert all(usage.reason.startswith("scripts/timing.sh:3") for usage in chain.usage)


def test_alternatives_have_other_entries_less_confidence_and_are_no_tests(index):
    found = locate(index, SPIRALS)
    assert found.alternatives
    for chain in found.alternatives:
        assert chain.confidence <= found.chain.confidence
        assert chain.entries != found.chain.entries
        assert not any(source.path.startswith("tests/") for source in chain.sources)


def test_the_table_of_a_task_decides_between_equal_words(index):
    found = locate(index, TaskQuery(question="What is measured?", method="Run it.", labels=("Table 2",)))
    first = found.ranked[:2]
    assert {item.path for item in first} == {"scripts/timing.sh", "experiments/timing.py"}
    assert any("README.md:12, with" in reason and "table2" in reason for item in first for reason in item.reasons)


def test_every_ranked_file_has_reasons_in_words(index):
    ranked = locate(index, SPIRALS).ranked
    assert [source.score for source in ranked] == sorted((source.score for source in ranked), reverse=True)
    assert all(source.reasons for source in ranked[:3])


def test_a_repository_that_has_nothing_to_do_with_the_task_gives_not_found(index):
    query = TaskQuery(
        question="Does BERT-Large fine-tuned on SQuAD2 exceed RoBERTa in exact match?",
        method="Fine-tune BERT-Large and RoBERTa on SQuAD2 with AdamW and compare EM and F1 on the development split.",
    )
    found = locate(index, query)
    assert found.chain is None
    assert found.not_found is not None
    assert any("BERT-Large" in line for line in found.not_found.searched)
    assert any(" (score " in line for line in found.not_found.searched)


def test_equal_input_gives_equal_output(tmp_path, index):
    again = build_index(snapshot_of(tmp_path))
    assert locate(index, SPIRALS).model_dump_json() == locate(again, SPIRALS).model_dump_json()


def test_the_cache_changes_nothing_and_survives_damage(tmp_path):
    snapshot = make(tmp_path / "r", PROJECT)
    cache = tmp_path / "cache"
    fresh = locate(build_index(snapshot, cache=cache), SPIRALS)
    entries = sorted(cache.rglob("*.json"))
    assert entries
    assert locate(build_index(snapshot, cache=cache), SPIRALS) == fresh
    entries[0].write_text("{broken")
    assert locate(build_index(snapshot, cache=cache), SPIRALS) == fresh


def test_options_named_by_the_task_are_set_where_no_command_is_stated(tmp_path):
    files = {name: text for name, text in PROJECT.items() if name != "README.md"}
    chain = locate(build_index(make(tmp_path, files)), SPIRALS).chain
    (usage,) = chain.usage
    assert usage.argv == ("python", "train.py", "--dataset", "spirals")
    assert "the task names it" in usage.reason


def test_placeholders_of_optional_flags_fall_back_to_defaults(tmp_path):
    readme = "Spirals accuracy:\n\n```\npython train.py --dataset spirals --data-path /path/to/data\n```\n"
    chain = locate(build_index(make(tmp_path, PROJECT | {"README.md": readme})), SPIRALS).chain
    assert chain.usage[0].argv == ("python", "train.py", "--dataset", "spirals")
    assert "placeholder" in chain.usage[0].reason


def test_skip_flags_of_the_documentation_survive(tmp_path):
    readme = "# Spirals accuracy without data\n\n```\npython train.py --figures-only --dataset spirals\n```\n"
    chain = locate(build_index(make(tmp_path, PROJECT | {"README.md": readme})), SPIRALS).chain
    assert "--figures-only" in chain.usage[0].argv


def test_modules_directories_and_environment(tmp_path):
    files = {
        "README.md": "# Rings accuracy\n\n```\ncd sub && DATA_ROOT=/x python -m pkg.rings --k 2\n```\n",
        "sub/pkg/__init__.py": "",
        "sub/pkg/rings.py": '"""Accuracy on rings."""\nimport argparse\nif __name__ == "__main__":\n    print("rings accuracy")\n',
        "sub/pkg/other.py": "def helper():\n    return 1\n",
    }
    chain = locate(build_index(make(tmp_path, files)), TaskQuery(question="What accuracy is reached on rings?")).chain
    assert chain.usage[0].argv == ("python", "-m", "pkg.rings", "--k", "2")
    assert chain.usage[0].directory == "sub"
    assert any("DATA_ROOT=/x" in problem.message for problem in chain.problems)


def test_configurations_of_the_command_belong_to_the_chain(tmp_path):
    script = 'import argparse\np = argparse.ArgumentParser()\np.add_argument("--config")\nif __name__ == "__main__":\n    print("noise accuracy", p.parse_args())\n'
    files = {
        "README.md": "- noise sweep: `python run.py --config configs/noise.yaml`\n- size: `python run.py --config configs/size.yaml`\n",
        "run.py": script,
        "configs/noise.yaml": "rates: [0.1, 0.2]\nnoise: symmetric\n",
        "configs/size.yaml": "sizes: [10, 20]\n",
    }
    chain = locate(
        build_index(make(tmp_path, files)),
        TaskQuery(question="How does accuracy fall with the noise rate of the sweep?"),
    ).chain
    assert ("configs/noise.yaml", "config") in [(source.path, source.role) for source in chain.sources]
    assert chain.usage[0].argv == ("python", "run.py", "--config", "configs/noise.yaml")


def test_bad_files_are_problems_and_never_fatal(tmp_path):
    files = PROJECT | {
        "old.py": 'print "python two"\n',
        "latin.py": "name = 'caf\xe9'\n".encode("latin-1"),
        "huge.py": b"x = 1\n" * 400_000,
        "blob.py": b"\0\1\2",
        "broken.ipynb": "{not json",
        "empty.sh": "",
        "loop_a.py": "import loop_b\n",
        "loop_b.py": "import loop_a\n",
        "deep.py": "x = " + "(" * 3000 + ")" * 3000 + "\n",
        "bad.yaml": "a: [1,\n",
    }
    snapshot = make(tmp_path, files)
    (tmp_path / "gone.py").write_text("pass")
    snapshot = snapshot_of(tmp_path)
    (tmp_path / "gone.py").unlink()
    (tmp_path / "link").symlink_to(tmp_path)
    found = locate(build_index(snapshot), SPIRALS)
    assert found.chain.entries == ("train.py",)
    said = {problem.where: problem.message for problem in found.problems}
    assert "Python 2" in said["old.py"]
    assert "not UTF-8" in said["latin.py"]
    assert "not read" in said["huge.py"]
    assert "cannot be read" in said["gone.py"]
    assert "JSON" in said["broken.ipynb"]


def test_a_repository_without_code_says_so(tmp_path):
    found = locate(build_index(make(tmp_path, {"README.md": "# nothing\n"})), SPIRALS)
    assert found.chain is None
    assert "no readable code" in found.not_found.reason
