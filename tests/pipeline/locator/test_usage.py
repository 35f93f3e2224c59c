"""Commands with concrete arguments: what is stated, and what the task writes of an option's own choices."""

from pipeline.locator import TaskQuery, build_index
from pipeline.locator.query import QueryWords
from pipeline.locator.usage import usage_for
from tests.pipeline.locator.repositories import make

PARSER = "import argparse\np = argparse.ArgumentParser()\n"


def commands(tmp_path, files, question, entry="run.py"):
    index = build_index(make(tmp_path, files))
    found = usage_for(index, entry, QueryWords.of(TaskQuery(question=question)))
    return [" ".join(step.argv) for step in found.usage], [problem.message for problem in found.problems]


def test_what_only_tells_about_a_program_is_not_run(tmp_path):
    readme = "# X\n\n```\npython run.py --help\n```\n\n## Train\n\n```\npython run.py --lr 0.1\n```\n"
    code = f"{PARSER}p.add_argument('--lr')\np.parse_args()\n"
    assert commands(tmp_path, {"run.py": code, "README.md": readme}, "Which loss?")[0] == ["python run.py --lr 0.1"]


def test_of_a_sweep_the_command_is_taken_that_the_task_writes_out(tmp_path):
    script = 'envs=(\n  "hopper-medium-v0"\n  "hopper-expert-v0"  # best\n  "hopper-medium-expert-v0"\n)\nfor env in ${envs[*]}\ndo\n  python run.py --env $env\ndone\n'
    code = f"{PARSER}p.add_argument('--env', default='x')\np.parse_args()\n"
    found, _ = commands(tmp_path, {"run.py": code, "all.sh": script}, "Which score on hopper-medium-expert-v0?")
    assert found == ["python run.py --env hopper-medium-expert-v0"]


def test_a_choice_of_two_options_and_two_choices_of_one_are_left_alone(tmp_path):
    code = (
        f"{PARSER}p.add_argument('--train-on', choices=['moons', 'rings'])\n"
        "p.add_argument('--test-on', choices=['moons', 'cubes'])\np.add_argument('--net', choices=['mlp', 'cnn'])\n"
        "p.parse_args()\n"
    )
    assert commands(tmp_path / "a", {"run.py": code}, "Which accuracy on moons?")[0] == ["python run.py"]
    assert commands(tmp_path / "b", {"run.py": code}, "Is an MLP or a CNN better?")[0] == ["python run.py"]
    assert commands(tmp_path / "c", {"run.py": code}, "How good is a CNN?")[0] == ["python run.py --net cnn"]


def test_a_required_argument_that_nobody_states_is_a_problem(tmp_path):
    code = f"{PARSER}p.add_argument('--config', required=True)\np.parse_args()\n"
    found, problems = commands(tmp_path, {"run.py": code}, "Which accuracy on the moons?")
    assert found == ["python run.py"]
    assert any("--config" in message for message in problems)


def test_a_command_without_open_arguments_goes_before_one_with_them(tmp_path):
    readme = (
        "# Moons\n\n```\npython run.py --data /path/to/data --moons\n```\n\n```\npython run.py --data moons.csv\n```\n"
    )
    code = f"{PARSER}p.add_argument('--data', required=True)\np.add_argument('--moons', action='store_true')\np.parse_args()\n"
    assert commands(tmp_path, {"run.py": code, "README.md": readme}, "Which accuracy on the moons?")[0] == [
        "python run.py --data moons.csv"
    ]
