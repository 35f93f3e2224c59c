import json

from pipeline.locator import TaskQuery, build_index, locate
from pipeline.task import SourceScript, Usage
from pipeline.tracing import trace
from tests.pipeline.locator.repositories import PROJECT, make


def entry(path):
    return SourceScript(path=path, role="entry", score=1.0)


def run_trace(tmp_path, files, path, *argv):
    snapshot = make(tmp_path, files)
    return trace(snapshot, [entry(path)], [Usage(argv=("python", path, *argv), reason="README.md:9")])


def test_steps_come_in_execution_order_with_their_lines(tmp_path):
    found = run_trace(tmp_path, PROJECT, "train.py", "--dataset", "spirals")
    texts = [step.text for step in found.requirements]
    assert texts[0].startswith("Parse command-line arguments --dataset (default moons), --lr (default 0.1)")
    order = [
        next(i for i, text in enumerate(texts) if name in text)
        for name in ("load_spirals)", "fit_logistic)", "(evaluate)")
    ]
    assert order == sorted(order)
    fit = next(step for step in found.requirements if "(fit_logistic)" in step.text)
    assert fit.text == "Fit the estimator by gradient descent for n_steps iterations (fit_logistic)"
    (span,) = fit.spans
    lines = str(PROJECT["lib/fit.py"]).splitlines()
    assert (span.path, span.start, span.end) == ("lib/fit.py", 1, len(lines))
    assert lines[span.start - 1].startswith(span.quote)


def test_every_span_lies_within_its_file(tmp_path):
    found = run_trace(tmp_path, PROJECT, "train.py")
    for step in found.requirements:
        assert step.text
        for span in step.spans:
            assert 1 <= span.start <= span.end <= len(str(PROJECT[span.path]).splitlines())


def test_branches_that_the_command_switches_off_are_no_steps(tmp_path):
    off = run_trace(tmp_path / "a", PROJECT, "train.py")
    on = run_trace(tmp_path / "b", PROJECT, "train.py", "--figures-only")
    assert not any("draw_figures" in step.text for step in off.requirements)
    assert any("Draw all figures" in step.text for step in on.requirements)


def test_settings_say_what_is_in_force_and_why(tmp_path):
    found = run_trace(tmp_path, PROJECT, "train.py", "--lr", "0.3")
    settings = {item.name: item for item in found.hyperparameters}
    assert (settings["lr"].value, settings["lr"].source) == ("0.3", "command")
    assert (settings["seeds"].value, settings["seeds"].source) == ("5", "default")
    assert {evidence.path for evidence in settings["lr"].evidence} == {"README.md", "train.py"}


def test_configuration_stands_over_default_and_below_command(tmp_path):
    files = {
        "run.py": 'import argparse\np = argparse.ArgumentParser()\np.add_argument("--config")\np.add_argument("--epochs", default=3)\np.add_argument("--lr", default=1)\nargs = p.parse_args()\n',
        "c.yaml": "epochs: 7\nmodel:\n  width: 64\nlr: 2\n",
    }
    found = run_trace(tmp_path, files, "run.py", "--config", "c.yaml", "--lr", "9")
    values = {item.name: (item.value, item.source) for item in found.hyperparameters}
    assert values["epochs"] == ("7", "config")
    assert values["model.width"] == ("64", "config")
    assert values["lr"] == ("9", "command")


def test_data_needs_and_reached_files(tmp_path):
    found = run_trace(tmp_path, PROJECT, "train.py")
    assert "file data/spirals.npy (lib/data.py:6)" in found.data_needs
    assert found.reached == ("train.py", "lib/data.py", "lib/fit.py")


def test_environment_checkpoints_downloads_and_hub_names_are_needs(tmp_path):
    code = """import os
import torch
from datasets import load_dataset
root = os.environ["DATA_ROOT"]
key = os.getenv("API_KEY")
data = load_dataset("squad")
model = torch.load("weights.pt")
URL = "https://example.org/x.zip"
with open("out.txt", "w") as stream:
    stream.write("x")
"""
    needs = run_trace(tmp_path, {"run.py": code}, "run.py").data_needs
    joined = "\n".join(needs)
    for part in (
        "variable DATA_ROOT",
        "variable API_KEY",
        "squad",
        "checkpoint weights.pt",
        "URL https://example.org/x.zip",
    ):
        assert part in joined
    assert "out.txt" not in joined


def test_methods_classes_inheritance_and_reexports_are_followed(tmp_path):
    files = {
        "run.py": "from pkg import Trainer\n\n\ndef main():\n    trainer = Trainer(3)\n    trainer.fit()\n\n\nmain()\n",
        "pkg/__init__.py": "from .core import Trainer\n",
        "pkg/core.py": "from .base import Base\n\n\nclass Trainer(Base):\n    def __init__(self, n):\n        self.n = n\n        self.log = []\n        self.m = 0\n        self.k = 1\n\n    def step(self):\n        a = 1\n        b = 2\n        c = 3\n        return a + b + c\n",
        "pkg/base.py": 'class Base:\n    def fit(self):\n        """Run the optimisation loop."""\n        for _ in range(self.n):\n            self.step()\n        total = 0\n        return total\n',
    }
    found = run_trace(tmp_path, files, "run.py")
    assert found.reached == ("run.py", "pkg/core.py", "pkg/base.py")
    assert any(step.text == "Run the optimisation loop (Base.fit)" for step in found.requirements)


def test_dispatch_at_run_time_is_reported(tmp_path):
    code = "import importlib\n\n\ndef main(name):\n    module = importlib.import_module(name)\n    getattr(module, 'run')()\n\n\nmain('x')\n"
    found = run_trace(tmp_path, {"run.py": code}, "run.py")
    assert {problem.where for problem in found.problems} == {"run.py:5", "run.py:6"}


def test_what_cannot_be_parsed_is_a_problem_not_an_error(tmp_path):
    found = run_trace(tmp_path, {"run.py": "print 'two'\n"}, "run.py")
    assert found.requirements == ()
    assert "Python 2" in found.problems[0].message


def test_code_that_is_nested_too_deeply_is_a_problem_not_an_error(tmp_path):
    branches = "".join(f"{'el' if n else ''}if args.m == 'a{n}':\n    print({n})\n" for n in range(400))
    code = (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--m', default='a1')\nargs = p.parse_args()\n"
    )
    found = run_trace(tmp_path / "a", {"run.py": code + branches}, "run.py")
    assert "nested" in found.problems[0].message
    fewer = "".join(branches.splitlines(keepends=True)[:400])
    assert run_trace(tmp_path / "b", {"run.py": code + fewer}, "run.py").problems == ()


def test_recursion_and_import_cycles_end(tmp_path):
    files = {
        "a.py": "import b\n\n\ndef f(n):\n    x = 1\n    y = 2\n    z = 3\n    return b.g(n)\n\n\nf(1)\n",
        "b.py": "import a\n\n\ndef g(n):\n    x = 1\n    y = 2\n    z = 3\n    return a.f(n)\n",
    }
    assert run_trace(tmp_path, files, "a.py").reached == ("a.py", "b.py")


def notebook(*cells):
    made = [
        {"cell_type": kind, "metadata": {}, "source": text.splitlines(keepends=True)}
        | ({"outputs": [{"source": ["trap"]}], "execution_count": 1} if kind == "code" else {})
        for kind, text in cells
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1, sort_keys=True)


def test_notebook_steps_name_their_cell_and_the_lines_of_the_file(tmp_path):
    raw = notebook(
        ("markdown", "# Results"),
        ("code", "%matplotlib inline\nimport json\n"),
        ("code", "def score(x):\n    a = x\n    b = a\n    c = b\n    return c\n"),
        ("code", "# Compute the score of each model\nfor k in range(3):\n    print(score(k))\n"),
    )
    found = run_trace(tmp_path, {"nb.ipynb": raw}, "nb.ipynb")
    step = next(item for item in found.requirements if item.text.startswith("Compute the score of each model"))
    assert step.text.endswith("[cell 3]")
    stored = raw.splitlines()
    assert "for k in range(3)" in stored[step.spans[0].start - 1]
    assert "print(score(k))" in stored[step.spans[0].end - 1]


def test_locator_and_tracer_fit_together(tmp_path):
    snapshot = make(tmp_path, PROJECT)
    chain = locate(
        build_index(snapshot), TaskQuery(question="What accuracy does gradient descent reach on spirals?")
    ).chain
    first = trace(snapshot, chain.sources, chain.usage)
    assert first == trace(snapshot, chain.sources, chain.usage)
    assert {item.name: item.value for item in first.hyperparameters}["dataset"] == "spirals"
