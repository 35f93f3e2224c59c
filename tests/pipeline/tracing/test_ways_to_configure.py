"""What programs are set to, whatever way they are configured; what is not decided is no single value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.task import SourceScript, Usage
from pipeline.tracing import trace
from pipeline.tracing.building import build_module
from pipeline.tracing.config_files import read_config
from pipeline.tracing.configs import config_values
from pipeline.tracing.program import Program
from tests.pipeline.locator.repositories import make


def settings(tmp_path, files, *argv, path="run.py", reason="README.md:1"):
    usage = [Usage(argv=("python", path, *argv), reason=reason)]
    found = trace(make(tmp_path, files), [SourceScript(path=path, role="entry", score=1.0)], usage).hyperparameters
    return {item.name: (item.value, item.source) for item in found}


PARSER = "import argparse\np = argparse.ArgumentParser()\n"
DICTIONARY = """import argparse
from lib import defaults, add_dict


def parser():
    own = dict(lr=1e-4, width=0)
    own.update(defaults())
    p = argparse.ArgumentParser()
    add_dict(p, own)
    return p


args = parser().parse_args()
"""
LIBRARY = """def defaults():
    return dict(
        width=64,
        heads=4,
    )


def add_dict(p, given):
    for key, value in given.items():
        p.add_argument(f"--{key}", default=value)
"""
WAYS = {
    "fire": ("import fire\n\n\ndef main(lr=0.1, name='x'):\n    return lr\n\n\nfire.Fire(main)\n", {}),
    "typer": (
        "import typer\n\n\ndef main(lr: float = typer.Option(0.1), name: str = 'x'):\n    return lr\n\n\ntyper.run(main)\n",
        {},
    ),
    "hugging face": (
        "from dataclasses import dataclass, field\nfrom transformers import HfArgumentParser\n\n\n@dataclass\nclass A:\n"
        "    lr: float = field(default=0.1, metadata={})\n    name: str = 'x'\n\n\nHfArgumentParser((A,)).parse_args()\n",
        {},
    ),
    "dataclass of another file": (
        "from transformers import HfArgumentParser\nfrom lib import A\n\n\nHfArgumentParser(A).parse_args()\nA()\n",
        {"lib.py": "from dataclasses import dataclass\n\n\n@dataclass\nclass A:\n    lr: float = 0.1\n    name: str = 'x'\n\n    def __init__(self):\n        pass\n"},
    ),
    "dictionary": (
        f"{PARSER}for k, v in dict(lr=0.1, name='x').items():\n    p.add_argument('--' + k, default=v)\np.parse_args()\n",
        {},
    ),
    "set_defaults": (
        f"{PARSER}p.add_argument('--lr', default=9)\np.add_argument('--name', default='x')\np.set_defaults(lr=0.1)\n",
        {},
    ),
    "none replaced": (
        f"{PARSER}p.add_argument('--lr')\np.add_argument('--name')\nargs = p.parse_args()\nif args.lr is None:\n"
        "    args.lr = 0.1\nargs.name = args.name or 'x'\n",
        {},
    ),
    "absl": (
        "from absl import flags\nflags.DEFINE_float('lr', 9, '')\nflags.DEFINE_string('name', 'x', '')\n"
        "flags.FLAGS.set_default('lr', 0.1)\n",
        {},
    ),
    "constants of a script": ("lr = 0.1\nname = 'x'\nbest = 0\nbest += 1\nprint(lr)\n", {}),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_defaults_are_read_however_they_are_declared(tmp_path, way):
    code, files = WAYS[way]
    found = settings(tmp_path, {"run.py": code, **files})
    assert (found["lr"], found["name"]) == (("0.1", "default"), ("x", "default"))
    assert "best" not in found


@pytest.mark.parametrize("way", ["fire", "typer", "hugging face", "dictionary", "constants of a script"])
def test_the_command_stands_over_all_of_them(tmp_path, way):
    code, files = WAYS[way]
    found = settings(tmp_path, {"run.py": code, **files}, "--lr=0.5")
    assert (found["lr"], found["name"]) == (("0.5", "command"), ("x", "default"))


def test_options_made_of_dictionaries_of_several_files_have_the_value_put_in_last(tmp_path):
    snapshot = make(tmp_path, {"run.py": DICTIONARY, "lib.py": LIBRARY})
    found = trace(snapshot, [SourceScript(path="run.py", role="entry", score=1.0)], []).hyperparameters
    places = {item.name: (item.value, item.evidence[0].path, item.evidence[0].start) for item in found}
    assert places["width"] == ("64", "lib.py", 3)
    assert places["heads"] == ("4", "lib.py", 4)
    assert places["lr"] == ("0.0001", "run.py", 6)


BUILT = """from base import get_default


def get_config(which="small"):
    config = get_default()
    model = config.model
    model.width = 64
    if which == "large":
        model.width = 512
    config.name = f"net-{which}"
    config.seed = draw()
    return config
"""
BASE = """import ml_collections


def get_default():
    config = ml_collections.ConfigDict()
    config.model = model = ml_collections.ConfigDict()
    model.depth = 4
    model.width = 8
    config.seed = 3
    return config
"""


@pytest.mark.parametrize(("argument", "width"), [("", "64"), (":large", "512")])
def test_a_configuration_in_python_is_followed_through_functions_aliases_and_its_argument(tmp_path, argument, width):
    snapshot = make(tmp_path, {"c.py": BUILT, "base.py": BASE})
    found = {item.name: (item.value, item.path) for item in config_values(snapshot, f"c.py{argument}")}
    assert found["model.width"] == (width, "c.py")
    assert found["model.depth"] == ("4", "base.py")
    assert found["name"] == ("net-large" if argument else "net-small", "c.py")
    assert "seed" not in found  # computed, so what stood there before is not in force


def test_a_flag_of_ml_collections_sets_the_entry_of_the_configuration(tmp_path):
    code = "from ml_collections import config_flags\nconfig_flags.DEFINE_config_file('config')\n"
    files = {"run.py": code, "c.py": BUILT, "base.py": BASE}
    found = settings(tmp_path, files, "--config=c.py", "--config.model.width=7")
    assert found["model.width"] == ("7", "command")
    assert found["model.depth"] == ("4", "config")


def test_gin_bindings_are_values_and_what_they_are_bound_to_is_needed(tmp_path):
    code = "import gym\nimport gin\nfrom absl import flags\nflags.DEFINE_multi_string('gin_files', [], '')\n\n\n@gin.configurable\ndef make_world(name='none'):\n    return gym.make(name)\n\n\nmake_world()\n"
    gin = "import x\nSIZE = 3\nmake_world.name = 'Pong-v4'  # the game\nAgent.widths = [\n    1, %SIZE]\n"
    snapshot = make(tmp_path, {"run.py": code, "a.gin": gin})
    usage = [Usage(argv=("python", "run.py", "--gin_files", "a.gin"), reason="README.md:1")]
    found = trace(snapshot, [SourceScript(path="run.py", role="entry", score=1.0)], usage)
    values = {item.name: item.value for item in found.hyperparameters}
    assert values["make_world.name"] == "Pong-v4"
    assert values["Agent.widths"] == "[ 1, 3]"
    assert "simulation Pong-v4 (run.py:9)" in found.data_needs
    assert ("simulation", "Pong-v4") in {(need.kind, need.name) for need in found.needs}


def test_references_stand_for_what_they_name_and_circles_end(tmp_path):
    files = {
        "c.yaml": "lr: 0.1\nmodel:\n  width: 8\n  twice: ${.width}\n  rate: ${lr}\n  name: n-${model.width}\n"
        "home: ${oc.env:HOME}\na: ${b}\nb: ${a}\n"
    }
    found = {item.name: item for item in config_values(make(tmp_path, files), "c.yaml", {"lr": "3"})}
    assert found["model.twice"].value == "8"
    assert found["model.rate"].value == "3"
    assert found["model.name"].value == "n-8"
    assert found["model.name"].referred == (("c.yaml", 3),)
    assert found["home"].value == "${oc.env:HOME}"
    assert "${" in found["a"].value


def test_a_section_of_defaults_stands_below_the_one_that_the_command_chooses(tmp_path):
    files = {"c.yaml": "defaults:\n  lr: 1\n  steps: 5\natari:\n  lr: 2\nother:\n  lr: 3\n"}
    found = {item.name: item.value for item in config_values(make(tmp_path, files), "c.yaml", {"configs": "atari"})}
    assert found == {"lr": "2", "steps": "5"}


def test_files_that_the_code_opens_are_in_force_the_later_over_the_earlier(tmp_path):
    code = "import sys\nfrom pathlib import Path\nfrom omegaconf import OmegaConf\n\n\ndef read(where):\n    base = OmegaConf.load(where / 'base.yaml')\n    base.merge_with(OmegaConf.from_cli())\n    kind, _ = base.task.split('-', 1)\n    path = where / f'{kind}.yaml'\n    if not path.exists():\n        path = where / 'other.yaml'\n    base.merge_with(OmegaConf.load(path))\n    return base\n\n\nread(Path().cwd() / 'conf')\n"
    files = {
        "run.py": code,
        "conf/base.yaml": "task: dog-run\nlr: 1\ndepth: 2\n",
        "conf/dog.yaml": "lr: 5\n",
        "conf/other.yaml": "lr: 9\n",
    }
    found = settings(tmp_path, files)
    assert (found["lr"], found["depth"]) == (("5", "config"), ("2", "config"))
    assert settings(tmp_path / "b", files, "task=cat-sit")["lr"] == ("9", "config")


def test_a_branch_that_is_not_decided_leaves_both_values_and_says_so(tmp_path):
    code = f"{PARSER}p.add_argument('--lr', default=1)\nif unknown():\n    p.set_defaults(lr=2)\np.parse_args()\n"
    found = trace(make(tmp_path, {"run.py": code}), [SourceScript(path="run.py", role="entry", score=1.0)], [])
    assert {item.name: item.value for item in found.hyperparameters}["lr"] == "1 | 2"
    assert any("lr may be 1 or 2" in problem.message for problem in found.problems)


def test_the_row_that_a_setting_chooses_is_in_force(tmp_path):
    code = f"{PARSER}p.add_argument('--size', default='small')\nargs = p.parse_args()\nSPECS = {{'small': dict(lr=1), 'large': dict(lr=2)}}\nspec = SPECS[args.size]\n"
    assert settings(tmp_path / "a", {"run.py": code})["SPECS.small.lr"] == ("1", "default")
    found = settings(tmp_path / "b", {"run.py": code}, "--size", "large")
    assert (found["SPECS.large.lr"], "SPECS.small.lr" in found) == (("2", "default"), False)


def test_what_each_call_reads_is_needed(tmp_path):
    code = "import os\nimport numpy as np\n\n\ndef load(name):\n    path = os.path.join('data', name)\n    return np.load(path)\n\n\nload('a.npy')\nload('b.npy')\n"
    found = trace(make(tmp_path, {"run.py": code}), [SourceScript(path="run.py", role="entry", score=1.0)], [])
    assert found.data_needs == ("file data/a.npy (run.py:7)", "file data/b.npy (run.py:7)")


def test_what_hydra_makes_is_followed_to_the_class_that_the_configuration_names(tmp_path):
    body = "".join(f"        self.a{n} = {n}\n" for n in range(6))
    files = {
        "run.py": "import hydra\n\n\ndef main(cfg):\n    agent = hydra.utils.instantiate(cfg.agent)\n    return agent\n\n\nmain(None)\n",
        "c.yaml": "agent:\n  _target_: lib.sac.Agent\n",
        "lib/__init__.py": "",
        "lib/sac.py": f"class Agent:\n    def __init__(self):\n{body}",
    }
    sources = [
        SourceScript(path="run.py", role="entry", score=1.0),
        SourceScript(path="c.yaml", role="config", score=1.0),
    ]
    found = trace(make(tmp_path, files), sources, [])
    assert any(span.path == "lib/sac.py" for step in found.requirements for span in step.spans)


def test_steps_say_what_is_done_with_the_values_in_force(tmp_path):
    code = f"{PARSER}p.add_argument('--lr', default=0.1)\nargs = p.parse_args()\nimport torch\nfrom torch import nn, optim\n\nmodel = nn.Linear(3, 1)\n\nloss = nn.MSELoss()\noptimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)\n"
    found = trace(make(tmp_path, {"run.py": code}), [SourceScript(path="run.py", role="entry", score=1.0)], [])
    texts = [step.text for step in found.requirements]
    assert "Build nn.Linear; compute the loss MSELoss; set up the optimiser SGD (lr 0.1, momentum 0.9)" in texts


@given(st.text(max_size=80))
def test_no_gin_text_and_no_code_is_an_error(tmp_path_factory, text):
    for name, _, line in read_config("c.gin", text):
        assert name
        assert line >= 1


@pytest.mark.parametrize(
    "code",
    ["a = {}\na['b'] = a\nc = dict(a)\n", "def f(x):\n    return f(x)\n\n\ny = f(1)\n", "a = 'x'.split('')\nb, c = 'x'.split('')\n", "x = 1 << 900\ny = 1 / 0\n"],
)  # fmt: skip
def test_code_that_leads_to_itself_ends(tmp_path, code):
    program = Program(make(tmp_path, {"c.py": code}))
    module = program.module("c.py")
    assert module is not None
    assert build_module(program, module).items is not None
    assert isinstance(config_values(make(tmp_path / "b", {"c.py": code}), "c.py"), list)
