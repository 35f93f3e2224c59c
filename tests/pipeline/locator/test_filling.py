"""Concrete arguments for a task: what it names is set on the option that takes it, and nothing is guessed."""

import pytest

from pipeline.locator import TaskQuery, build_index
from pipeline.locator.query import QueryWords
from pipeline.locator.usage import usage_for
from tests.pipeline.locator.repositories import make

PARSER = "import argparse\np = argparse.ArgumentParser()\n"


def commands(tmp_path, files, question, entry="run.py"):
    index = build_index(make(tmp_path, files))
    found = usage_for(index, entry, QueryWords.of(TaskQuery(question=question)))
    return [" ".join(step.argv) for step in found.usage], [problem.message for problem in found.problems]


NUMBERS = (
    f"{PARSER}p.add_argument('--timesteps', type=int, default=1000)\np.add_argument('--eta', type=float, default=1.0)\n"
    "p.add_argument('--batch_size', type=int, default=4)\np.add_argument('--micro_batch_size', type=int, default=2)\n"
    "p.add_argument('--pred_len', type=int, default=24)\np.parse_args()\n"
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which FID with 50 timesteps (eta 0, 4 images)?", ["python run.py --timesteps 50 --eta 0"]),
        ("Which loss with micro batch size 8?", ["python run.py --micro_batch_size 8"]),
        ("Which loss with a batch size of 1,024?", ["python run.py --batch_size 1024"]),
        ("Which error at a forecast horizon of 96?", ["python run.py --pred_len 96"]),
        (
            "Does the FID fall with 10, 20 or 50 timesteps?",
            [f"python run.py --timesteps {number}" for number in (10, 20, 50)],
        ),
        ("Which loss after 3 days on 8 cards?", ["python run.py"]),
        ("Which FID with 1000 timesteps?", ["python run.py"]),
    ],
)
def test_numbers_beside_the_name_of_an_option_are_its_value(tmp_path, question, expected):
    assert commands(tmp_path, {"run.py": NUMBERS}, question)[0] == expected


def test_a_placeholder_is_filled_in_with_the_file_that_the_task_means_as_the_document_writes_it(tmp_path):
    code = f"{PARSER}import os\np.add_argument('--config', required=True)\nargs = p.parse_args()\nopen(os.path.join('configs', args.config))\n"
    files = {
        "run.py": code,
        "README.md": "# X\n\n```\npython run.py --config {DATASET}.yml --name {NAME}\n```\n",
        "configs/moons.yml": "a: 1\n",
        "configs/spirals.yml": "a: 2\n",
    }
    assert commands(tmp_path, files, "Which accuracy on spirals?")[0][0].startswith("python run.py")
    assert "--config spirals.yml" in commands(tmp_path, files, "Which accuracy on spirals?")[0][0]


def test_two_files_that_the_task_may_mean_are_named_and_none_is_taken(tmp_path):
    code = f"{PARSER}p.add_argument('--config', required=True)\np.parse_args()\n"
    files = {"run.py": code, "conf/moons_a.yml": "a: 1\n", "conf/moons_b.yml": "a: 2\n"}
    found, problems = commands(tmp_path, files, "Which accuracy on the moons?")
    assert found == ["python run.py"]
    assert any("conf/moons_a.yml, conf/moons_b.yml" in message for message in problems)


def test_the_group_of_hydra_that_the_task_names_is_chosen(tmp_path):
    files = {
        "run.py": "import hydra\n\n\n@hydra.main(config_path='conf', config_name='main')\ndef main(cfg):\n    print(cfg)\n\n\nif __name__ == '__main__':\n    main()\n",
        "conf/main.yaml": "defaults:\n  - model: small\n",
        "conf/model/small.yaml": "width: 8\n",
        "conf/model/wide_net.yaml": "width: 512\n",
    }
    assert commands(tmp_path / "a", files, "How good is the wide net?")[0] == ["python run.py model=wide_net"]
    assert commands(tmp_path / "b", files, "How good is the small model?")[0] == ["python run.py"]


def test_variables_of_a_document_come_from_the_block_that_speaks_of_the_task(tmp_path):
    readme = (
        "# X\n\nRun it:\n\n```\npython run.py $FLAGS\n```\n\n## Models\n\nThe cosine model on digits:\n\n```\n"
        'FLAGS="--schedule cosine --width 32"\n```\n\nThe linear model on faces:\n\n```\nFLAGS="--schedule linear"\n```\n'
    )
    code = f"{PARSER}p.add_argument('--schedule')\np.add_argument('--width', type=int)\np.parse_args()\n"
    found, _ = commands(tmp_path, {"run.py": code, "README.md": readme}, "Which loss has the cosine model on digits?")
    assert found == ["python run.py --schedule cosine --width 32"]


def test_what_only_tells_about_a_program_is_not_run(tmp_path):
    readme = "# X\n\n```\npython run.py --help\n```\n\n## Train\n\n```\npython run.py --lr 0.1\n```\n"
    code = f"{PARSER}p.add_argument('--lr')\np.parse_args()\n"
    assert commands(tmp_path, {"run.py": code, "README.md": readme}, "Which loss?")[0] == ["python run.py --lr 0.1"]


def test_stages_and_places_that_a_run_needs_are_given(tmp_path):
    code = (
        "from absl import flags\nflags.DEFINE_string('workdir', None, '')\n"
        "flags.DEFINE_enum('mode', None, ['train', 'eval'], '')\nflags.mark_flags_as_required(['workdir', 'mode'])\n"
    )
    found, _ = commands(tmp_path, {"run.py": code}, "Which accuracy does the net reach after training?")
    assert found == [f"python run.py --workdir outputs --mode {mode}" for mode in ("train", "eval")]


def test_a_value_that_is_written_out_is_not_one_that_shares_its_parts(tmp_path):
    script = 'envs=(\n  "hopper-medium-v0"\n  "hopper-expert-v0"  # best\n  "hopper-medium-expert-v0"\n)\nfor env in ${envs[*]}\ndo\n  python run.py --env $env\ndone\n'
    code = f"{PARSER}p.add_argument('--env', default='x')\np.parse_args()\n"
    found, _ = commands(tmp_path, {"run.py": code, "all.sh": script}, "Which score on hopper-medium-expert-v0?")
    assert found == ["python run.py --env hopper-medium-expert-v0"]
