"""Configuration files in all their forms, and what a run needs beside its code."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.task import SourceScript, Usage
from pipeline.tracing import trace
from pipeline.tracing.arguments import literal
from pipeline.tracing.config_files import read_config
from pipeline.tracing.configs import config_values
from tests.pipeline.locator.repositories import make

HYDRA = {
    "conf/config.yaml": "defaults:\n  - model: small\n  - data/set: iris\n  - extra\n  - _self_\nseed: 1\nlr: 3\n",
    "conf/extra.yaml": "lr: 1\nepochs: 9\n",
    "conf/model/small.yaml": "width: 8\n",
    "conf/model/large.yaml": "width: 512\nentity: ${oc.env:ENTITY}\n",
    "conf/data/set/iris.yaml": "# @package _global_\nroot: data/iris\n",
}


def values(snapshot, path, overrides=None):
    return {item.name: (item.value, item.path, item.line) for item in config_values(snapshot, path, overrides)}


def test_what_hydra_composes_is_in_force_with_the_line_that_says_so(tmp_path):
    found = values(make(tmp_path, HYDRA), "conf/config.yaml")
    assert found == {
        "seed": ("1", "conf/config.yaml", 6),
        "lr": ("3", "conf/config.yaml", 7),
        "epochs": ("9", "conf/extra.yaml", 2),
        "model.width": ("8", "conf/model/small.yaml", 1),
        "root": ("data/iris", "conf/data/set/iris.yaml", 2),
    }


def test_the_command_puts_another_file_of_the_group_in_its_place(tmp_path):
    found = values(make(tmp_path, HYDRA), "conf/config.yaml", {"model": "large"})
    assert found["model.width"] == ("512", "conf/model/large.yaml", 1)


PROJECT_WIDE = {
    "conf/config.yaml": "# @package _global_\ndefaults:\n  - _self_\n  - experiment: base\n  - hooks: [first, second]\n"
    "train:\n  seed: 0\n  monitor: ???\n  interval: ???\n",
    "conf/experiment/lra.yaml": "# @package _global_\ndefaults:\n  - /pipeline: cifar\n  - /model: s4\n"
    "train:\n  seed: 1112\nmodel:\n  width: 512\n",
    "conf/pipeline/cifar.yaml": "# @package _global_\ndefaults:\n  - /data: cifar\ntrain:\n  monitor: val/accuracy\n",
    "conf/data/cifar.yaml": "name: cifar\n",
    "conf/model/s4.yaml": "width: 64\ndepth: 4\n",
    "conf/hooks/first.yaml": "a: 1\n",
    "conf/hooks/second.yaml": "a: 2\nb: 3\n",
}


def test_what_an_experiment_sets_is_in_force_over_the_base_that_it_is_composed_into(tmp_path):
    found = values(make(tmp_path, PROJECT_WIDE), "conf/config.yaml", {"experiment": "lra"})
    assert {name: value for name, (value, _, _) in found.items()} == {
        "train.seed": "1112",  # `_self_` stands first: what follows is in force over it
        "train.monitor": "val/accuracy",  # `???` is no value; `/pipeline` is a group of the whole configuration
        "data.name": "cifar",
        "model.width": "512",
        "model.depth": "4",
        "hooks.a": "2",
        "hooks.b": "3",
    }
    assert found["train.seed"][1:] == ("conf/experiment/lra.yaml", 6)


def test_a_function_that_builds_a_configuration_is_read(tmp_path):
    code = "def get_config():\n    config = ConfigDict()\n    config.tau = 0.9\n    config.steps = int(1e6)\n"
    code += "    other = 3\n    config.model = dict(width=8 * 4)\n    return config\n"
    found = values(make(tmp_path, {"c.py": code}), "c.py")
    assert found == {
        "tau": ("0.9", "c.py", 3),
        "steps": ("1000000", "c.py", 4),
        "model.width": ("32", "c.py", 6),
    }


@pytest.mark.parametrize(
    "code", ["10 ** 10 ** 10", "1 / 0", "(-2) ** 0.5", "int(1e400)", "int('3')", "True + 1", "f(3)"]
)
def test_a_calculation_that_says_nothing_or_does_not_end_is_no_constant(code):
    assert literal(ast.parse(code, mode="eval").body) is None


def test_what_the_command_names_and_the_repository_lacks_is_needed(tmp_path):
    files = {
        "run.py": "import argparse\np = argparse.ArgumentParser()\np.add_argument('--model_path')\n"
        "p.add_argument('--data_dir')\np.add_argument('--out_dir')\np.add_argument('--network')\np.parse_args()\n",
        "data/a.csv": "1\n",
    }
    url = "https://example.org/net.pkl"
    argv = ("--model_path", "models/a.pt", "--data_dir", "data/", "--out_dir", "runs/1", "--network", url)
    (tmp_path / "README.md").write_text("python run.py\n")
    assert needs(tmp_path, files, *argv) == ("path models/a.pt (README.md:1)", f"URL {url} (README.md:1)")


def test_a_section_that_the_command_takes_out_is_not_in_force(tmp_path):
    files = {"run.py": "import hydra\n", "c.yaml": "logger:\n  project: p\nlr: 1\n"}
    usage = [Usage(argv=("python", "run.py", "logger=null", "--config", "c.yaml"), reason="README.md:1")]
    found = trace(make(tmp_path, files), [SourceScript(path="run.py", role="entry", score=1.0)], usage).hyperparameters
    assert {item.name: item.value for item in found} == {"config": "c.yaml", "logger": "null", "lr": "1"}


def test_the_beginning_of_a_placeholder_is_no_value(tmp_path):
    files = {"run.py": "import hydra\n", "c.yaml": "model: bert\n"}
    argv = ("python", "run.py", "model={path", "to", "it}", "layers=[1,2]", "--config", "c.yaml")
    sources = [SourceScript(path="run.py", role="entry", score=1.0)]
    found = trace(make(tmp_path, files), sources, [Usage(argv=argv, reason="README.md:1")]).hyperparameters
    assert {item.name: item.value for item in found if item.name != "config"} == {"layers": "[1,2]", "model": "bert"}


def test_options_taken_apart_at_once_are_followed(tmp_path):
    code = "def run(variant):\n    env, data = variant['env'], variant['data']\n    open(f'data/{env}-{data}.pkl', 'rb')\n\n"
    code += "import argparse\np = argparse.ArgumentParser()\np.add_argument('--env', default='hopper')\n"
    code += "p.add_argument('--data', default='medium')\nrun(variant=vars(p.parse_args()))\n"
    assert needs(tmp_path, {"run.py": code}) == ("file data/hopper-medium.pkl (run.py:3)",)


def test_what_every_system_sets_is_not_needed(tmp_path):
    code = "import os\nos.environ['HOME']\nos.environ.get('USER')\nos.environ['DATA']\n"
    assert needs(tmp_path, {"run.py": code}) == ("environment variable DATA (run.py:4)",)


def test_files_that_name_each_other_end(tmp_path):
    files = {"a.yaml": "defaults: [b]\nx: 1\n", "b.yaml": "defaults: [a]\ny: 2\n"}
    assert set(values(make(tmp_path, files), "a.yaml")) == {"x", "y"}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("c.json", '{\n "model": {\n  "width": 64\n }\n}'),
        ("c.toml", "[model]\nwidth = 64\n"),
        ("c.ini", "[model]\nwidth = 64\n"),
        ("c.py", "model = dict(\n    width=64)\n"),
        ("c.yml", "model:\n  width: 64\n"),
        ("c.gin", "model.width = 64  # of each layer\n"),
    ],
)
def test_every_form_gives_names_values_and_lines(tmp_path, path, text):
    ((name, (value, _, line)),) = values(make(tmp_path, {path: text}), path).items()
    assert (name, value) == ("model.width", "64")
    assert "width" in text.splitlines()[line - 1]


@given(st.sampled_from([".yaml", ".json", ".toml", ".ini", ".gin"]), st.text(max_size=60))
def test_no_text_is_an_error(end, text):
    for name, _, line in read_config(f"c{end}", text):
        assert name
        assert line >= 1


def needs(tmp_path, files, *argv, configs=()):
    sources = [SourceScript(path="run.py", role="entry", score=1.0)]
    sources += [SourceScript(path=path, role="config", score=1.0) for path in configs]
    usage = [Usage(argv=("python", "run.py", *argv), reason="README.md:1")]
    return trace(make(tmp_path, files), sources, usage).data_needs


RUN = """import argparse
import pandas as pd
from data import Table, read

parser = argparse.ArgumentParser()
parser.add_argument("--root", default="data")
parser.add_argument("--file", default="a.csv")
parser.add_argument("--weights")
args = parser.parse_args()
read(args.file)
table = Table(root=args.root, file=args.file)
table.load()
if args.weights:
    torch.load(args.weights)
torch.save(model, "out.pt")
torch.load("out.pt")
load_model("mine")
"""
DATA = """import os
import pandas as pd


def read(path):
    frame = pd.read_csv(path)
    return frame


class Table:
    def __init__(self, root, file):
        self.root = root
        self.file = file

    def load(self):
        return pd.read_csv(os.path.join(self.root, self.file))


def load_model(name):
    return name
"""


def test_a_need_is_followed_from_the_reader_to_the_option(tmp_path):
    files = {"run.py": RUN.replace("Table, read", "Table, read, load_model"), "data.py": DATA}
    assert needs(tmp_path, files) == ("file a.csv (data.py:6)", "file data/a.csv (data.py:16)")
    assert needs(tmp_path, files, "--root", "/d", "--weights", "w.pt") == (
        "checkpoint w.pt (run.py:14)",
        "file a.csv (data.py:6)",
        "file /d/a.csv (data.py:16)",
    )


def test_a_file_is_needed_once_and_by_the_call_that_opens_it(tmp_path):
    code = "import json\nprompts = json.load(open('config/prompts.json'))\n"
    assert needs(tmp_path, {"run.py": code}) == ("file config/prompts.json (run.py:2)",)


def test_paths_from_the_place_of_the_file_are_those_of_the_repository(tmp_path):
    files = {
        "run.py": "from lib.load import load\nload()\n",
        "lib/load.py": "import os\nimport yaml\nfrom pathlib import Path\nROOT = Path(__file__).resolve().parents[1]\nBASE = ROOT / 'conf' / 'base.yaml'\n\n\ndef load():\n    here = os.path.dirname(os.path.abspath(__file__))\n    yaml.safe_load(BASE.read_text())\n    return open(os.path.join(here, '..', 'data', 'x.json'))\n",
    }
    assert needs(tmp_path, files) == ("file conf/base.yaml (lib/load.py:10)", "file data/x.json (lib/load.py:11)")


def test_environment_variables_of_configurations_are_needs(tmp_path):
    files = {"run.py": "import hydra\n", **HYDRA}
    found = needs(tmp_path, files, "model=large", configs=["conf/config.yaml"])
    assert found == ("environment variable ENTITY (conf/model/large.yaml:2)",)


def test_what_a_library_only_parses_when_it_is_started_itself_is_no_setting(tmp_path):
    files = {
        "run.py": "from lib import f\nimport argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', default=1)\nf(p.parse_args())\n",
        "lib.py": "import argparse\nRED = '\\x1b[91m'\nRATE = 3\n\n\ndef f(args):\n    return args\n\n\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--other', default=5)\n    p.parse_args()\n",
    }
    snapshot = make(tmp_path, files)
    found = trace(snapshot, [SourceScript(path="run.py", role="entry", score=1.0)], [])
    assert [item.name for item in found.hyperparameters] == ["RATE", "lr"]
