"""Which files belong together, and in which order they are run."""

from __future__ import annotations

from pathlib import Path

from pipeline.locator.chain import plan_chains
from pipeline.locator.index import build_index
from pipeline.locator.locate import locate
from pipeline.locator.query import QueryWords, TaskQuery
from pipeline.locator.ranking import rank
from tests.pipeline.locator.repositories import make

RUN = '"""{what}"""\nimport argparse\n\nif __name__ == "__main__":\n    argparse.ArgumentParser().parse_args()\n'
CONFIGURED = '''"""Train an agent on mazes."""
from absl import app, flags
from ml_collections import config_flags

FLAGS = flags.FLAGS
config_flags.DEFINE_config_file("config", None, "settings")


def main(_):
    print("maze agent trained", FLAGS.config.lr)


if __name__ == "__main__":
    app.run(main)
'''
SETTINGS = """import ml_collections


def get_config():
    config = ml_collections.ConfigDict()
    config.lr = {lr}
    return config
"""


def test_samples_are_made_before_they_are_scored(tmp_path: Path) -> None:
    readme = "# Images\n\nThe quality of samples by FID:\n\n```\npython generate.py\npython fid.py\n```\n"
    files = {"README.md": readme}
    for name, what in (("fid", "Compute FID"), ("generate", "Make samples"), ("example", "Show samples")):
        files[f"{name}.py"] = RUN.replace("{what}", f"{what}: the quality of samples by FID.")
    index = build_index(make(tmp_path, files))
    [plan, *_] = plan_chains(rank(index, QueryWords.of(TaskQuery(question="What is the FID of the samples?"))), 1)
    assert plan.entries == ["generate.py", "fid.py"]


def test_a_configuration_in_python_that_the_command_names_is_part_of_the_chain(tmp_path: Path) -> None:
    readme = "# Mazes\n\n```python\npython train.py --config=configs/large.py\n```\n"
    files = {
        "README.md": readme, "train.py": CONFIGURED, "configs/large.py": SETTINGS.format(lr=0.1),
        "configs/small.py": SETTINGS.format(lr=0.2),
    }  # fmt: skip
    index = build_index(make(tmp_path, files))
    assert index.links.options["train.py"] == {"configs/large.py", "configs/small.py"}
    found = locate(index, TaskQuery(question="How well does an agent do that is trained on large mazes?"))
    chain = found.chain or found.alternatives[0]
    assert [(item.path, item.role) for item in chain.sources] == [("configs/large.py", "config"), ("train.py", "entry")]
    assert chain.usage[0].argv == ("python", "train.py", "--config=configs/large.py")


def test_commands_in_a_block_that_is_marked_as_python_are_commands(tmp_path: Path) -> None:
    readme = "# Mazes\n\n```python\n# first\npython train.py\n```\n\n```python\nimport train\ntrain.main()\n```\n"
    index = build_index(make(tmp_path, {"README.md": readme, "train.py": CONFIGURED}))
    assert [(command.target, command.line) for command in index.links.commands] == [("train.py", 5)]


def test_a_script_that_runs_every_experiment_is_a_list_to_choose_from(tmp_path: Path) -> None:
    """A bug it records: all scripts of a `run_all.sh` were masked for the task of one, siblings included."""
    names = ("moons", "rings", "spirals", "xor")
    files = {f"{name}.py": RUN.replace("{what}", f"Accuracy on {name}.") for name in names}
    files["run_all.sh"] = "#!/bin/sh\n" + "".join(f"# accuracy on {name}\npython {name}.py\n" for name in names)
    index = build_index(make(tmp_path, files))
    ranking = rank(index, QueryWords.of(TaskQuery(question="What is the accuracy of all methods on spirals?")))
    plans = plan_chains(ranking, 3)
    assert plans[0].entries == ["spirals.py"]
    assert all("run_all.sh" not in plan.members for plan in plans)
