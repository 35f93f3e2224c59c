"""What the settings of a run decide: branches, tables, names, registries, factories; and what they do not."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.repository import Snapshot
from pipeline.task import Hyperparameter, SourceScript, Usage
from pipeline.tracing import Trace, trace
from pipeline.tracing.branches import prune
from pipeline.tracing.values import SEVERAL, Values, assigned_options, holder_path
from tests.pipeline.locator.repositories import make

PARSER = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--model", default="linear")
parser.add_argument("--layers", type=int, default=2)
parser.add_argument("--resume")
args = parser.parse_args()
"""
MODELS = {
    "models/__init__.py": "",
    "models/linear.py": "class Model:\n    def __init__(self, args):\n        self.a = 1\n        self.b = 2\n        self.c = 3\n        self.d = 4\n",
    "models/mlp.py": "class Model:\n    def __init__(self, args):\n        self.a = 1\n        self.b = 2\n        self.c = 3\n        self.d = 4\n",
}


def traced(snapshot: Snapshot, *commands: str, path: str = "run.py") -> Trace:
    usage = [Usage(argv=("python", path, *command.split()), reason="README.md:1") for command in commands]
    return trace(snapshot, [SourceScript(path=path, role="entry", score=1.0)], usage)


def steps_in(found: Trace) -> set[str]:
    return {span.path for step in found.requirements for span in step.spans}


CHOICES = {
    "table": "from models import linear, mlp\nTABLE = {'linear': linear, 'mlp': mlp}\nmodel = TABLE[args.model].Model(args)\n",
    "table of an object": "from models import linear, mlp\n\n\nclass Exp:\n    def __init__(self, args):\n        self.args = args\n        self.table = {'linear': linear, 'mlp': mlp}\n        self.model = self.table[self.args.model].Model(args)\n        self.n = 1\n\n\nExp(args)\n",
    "table.get": "from models import linear, mlp\nTABLE = {'linear': linear, 'mlp': mlp}\nmodel = TABLE.get(args.model).Model(args)\n",
    "table by a name": "from models import linear, mlp\nTABLE = {'linear': linear.Model, 'mlp': mlp.Model}\nname = args.model\nmodel = TABLE[name](args)\n",
    "getattr": "from models import linear, mlp\nimport models\nmodel = getattr(models, args.model).Model(args)\n",
    "import_module": "import importlib\nmodule = importlib.import_module(f'models.{args.model}')\nmodel = module.Model(args)\n",
    "import_module, joined": "import importlib\nmodule = importlib.import_module('models.' + args.model)\nmodel = module.Model(args)\n",
    "eval": "from models import linear, mlp\nmodel = eval(args.model).Model(args)\n",
    "branch": "from models import linear, mlp\nif args.model == 'linear':\n    model = linear.Model(args)\nelif args.model == 'mlp':\n    model = mlp.Model(args)\n",
    "factory": "from models import linear, mlp\n\n\ndef build(name, args):\n    print(name)\n    if name == 'linear':\n        return linear.Model(args)\n    if 'ml' in name:\n        return mlp.Model(args)\n    raise ValueError(name)\n\n\nbuild(args.model, args)\n",
}


@pytest.mark.parametrize("kind", CHOICES)
def test_the_command_decides_which_model_runs(tmp_path, kind):
    snapshot = make(tmp_path, {"run.py": PARSER + CHOICES[kind], **MODELS})
    assert steps_in(traced(snapshot, "--model mlp")) == {"run.py", "models/mlp.py"}
    assert steps_in(traced(snapshot)) == {"run.py", "models/linear.py"}


@pytest.mark.parametrize("kind", ["table", "branch", "factory"])
def test_commands_that_differ_decide_nothing(tmp_path, kind):
    snapshot = make(tmp_path, {"run.py": PARSER + CHOICES[kind], **MODELS})
    found = traced(snapshot, "--model mlp", "--model linear")
    assert steps_in(found) == {"run.py", "models/mlp.py", "models/linear.py"}


def test_what_the_run_may_reach_does_not_depend_on_what_is_chosen(tmp_path):
    """Masking relies on it: an implementation that this task does not run still gives the answer away."""
    snapshot = make(tmp_path, {"run.py": PARSER + CHOICES["table"], **MODELS})
    assert set(traced(snapshot, "--model mlp").reached) == {"run.py", "models/mlp.py", "models/linear.py"}


def test_an_option_that_the_code_sets_is_not_known(tmp_path):
    code = PARSER + "args.model = best()\n" + CHOICES["branch"]
    snapshot = make(tmp_path, {"run.py": code, **MODELS})
    assert steps_in(traced(snapshot, "--model mlp")) == {"run.py", "models/mlp.py", "models/linear.py"}


def test_an_option_that_nothing_sets_is_none(tmp_path):
    code = PARSER + "from models import linear\nif args.resume is not None:\n    linear.Model(args)\n"
    snapshot = make(tmp_path, {"run.py": code, **MODELS})
    assert "models/linear.py" not in steps_in(traced(snapshot))
    assert "models/linear.py" in steps_in(traced(snapshot, "--resume last.pt"))


def test_what_is_registered_under_the_name_of_the_configuration_runs(tmp_path):
    body = "        self.a = 1\n        self.b = 2\n        self.c = 3\n        self.d = 4\n"
    files = {
        "run.py": "from zoo import MODELS\nimport yaml\ncfg = yaml.safe_load(open('c.yaml'))\nmodel = MODELS.build(cfg['model']['name'])\n",
        "c.yaml": "model:\n  name: wide\n",
        "zoo/__init__.py": "from zoo.base import MODELS\nfrom zoo.nets import Wide, Deep\n",
        "zoo/base.py": "class Registry:\n    pass\n\n\nMODELS = Registry()\n",
        "zoo/nets.py": f"from zoo.base import MODELS\n\n\n@MODELS.register('wide')\nclass Wide:\n    def __init__(self):\n{body}\n\n@MODELS.register()\nclass Deep:\n    def __init__(self):\n{body}",
    }
    snapshot = make(tmp_path, files)
    sources = [
        SourceScript(path="run.py", role="entry", score=1.0),
        SourceScript(path="c.yaml", role="config", score=1.0),
    ]
    texts = [step.text for step in trace(snapshot, sources, []).requirements]
    assert any("Wide.__init__" in text for text in texts)
    assert not any("Deep.__init__" in text for text in texts)


def test_what_is_not_decided_is_reported_and_evaluation_mode_is_not(tmp_path):
    code = "import importlib\nimport models\n\n\ndef main(name, model):\n    model.eval()\n    flag = getattr(model, 'flag', None)\n    getattr(models, name)()\n    importlib.import_module(name)\n    return flag\n\n\nmain(input(), None)\n"
    found = traced(make(tmp_path, {"run.py": code, **MODELS}))
    assert {problem.where for problem in found.problems} == {"run.py:8", "run.py:9"}


def test_a_factory_that_is_called_with_two_names_keeps_both(tmp_path):
    code = CHOICES["factory"] + "build('linear', args)\n"
    snapshot = make(tmp_path, {"run.py": PARSER + code, **MODELS})
    assert steps_in(traced(snapshot, "--model mlp")) == {"run.py", "models/mlp.py", "models/linear.py"}


def test_long_functions_are_cut_into_steps_with_the_functions_inside(tmp_path):
    inner = (
        "    def update(state):\n" + "".join(f"        a{n} = {n}\n" for n in range(10)) + "        return state\n\n"
    )
    filler = "".join(f"    b{n} = {n}\n" for n in range(80))
    code = f"def make_train(config):\n    data = load(config)\n\n{inner}    # Optimise the model\n    for n in range(3):\n        update(n)\n{filler}    return data\n\n\nmake_train(1)\n"
    found = traced(make(tmp_path, {"run.py": code}))
    texts = [step.text for step in found.requirements]
    assert any(text.startswith("Optimise the model") for text in texts)
    assert "Update of make train (make_train.update): from state" in texts
    assert max(span.end - span.start for step in found.requirements for span in step.spans) < 85


# --- the pieces ------------------------------------------------------------------------------------------------------


def setting(name, value):
    return Hyperparameter(name=name, value=value, source="command")


@pytest.mark.parametrize(
    ("code", "path"),
    [
        ("args.model", "model"),
        ("self.args.model.type", "model.type"),
        ("config['model']['type']", "model.type"),
        ("cfg.get('lr')", "lr"),
        ("model.args", None),
        ("args", None),
        ("model.weight", None),
        ("args[name]", None),
    ],
)
def test_options_are_read_from_what_holds_them(code, path):
    assert holder_path(ast.parse(code, mode="eval").body) == path


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("os.path.join(args.root, 'train.csv')", "data/train.csv"),
        ("f'{args.root}/{args.model.name}.pt'", "data/mlp.pt"),
        ("Path(args.root) / 'x'", "data/x"),
        ("args.root + '.csv'", "data.csv"),
        ("config.name", "mlp"),
        ("args.root.upper()", "DATA"),
        ("args.layers + 1", None),
        ("args.seed", None),
        ("unknown + '.csv'", None),
        ("open(args.root)", None),
    ],
)
def test_expressions_of_known_values_are_known(code, text):
    settings = [setting("root", "data"), setting("model.name", "mlp"), setting("layers", "2")]
    values = Values([*settings, setting("seed", f"1{SEVERAL}2")])
    assert values.text(ast.parse(code, mode="eval").body) == text


def test_assigned_options_are_found_wherever_they_are_held():
    tree = ast.parse("args.gpu = 1\nself.cfg.model.name = 'x'\nconf['lr'] = 2\nargs.n += 1\nmodel.train = 3\n")
    assert assigned_options([tree]) == {"gpu", "model.name", "lr", "n"}


TESTS = st.sampled_from(
    ["args.n == 3", "args.n != 3", "args.n > 2", "args.n <= 2", "args.n in [1, 3]", "args.n", "not args.n"]
)


@given(TESTS, TESTS, st.sampled_from(["and", "or"]), st.integers(0, 4))
def test_a_branch_that_is_decided_is_the_one_that_python_takes(left, right, operator, number):
    test = f"({left}) {operator} ({right})"
    tree = ast.parse(f"if {test}:\n    taken = True\nelse:\n    taken = False\n")
    prune(tree, Values([setting("n", str(number))]).of)
    namespace: dict[str, object] = {}
    args = type("Args", (), {"n": number})
    exec(compile(f"expected = bool({test})", "test", "exec"), {"args": args}, namespace)
    assert ast.unparse(tree) == f"taken = {namespace['expected']}"


@given(st.text(max_size=40))
def test_any_expression_is_read_without_an_error(text):
    try:
        node = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError):
        return
    Values([setting("a", "1")]).text(node)
