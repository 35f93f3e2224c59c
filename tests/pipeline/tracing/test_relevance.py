from pipeline.repository import Snapshot
from pipeline.task import SourceScript
from pipeline.tracing import trace
from pipeline.tracing.callgraph import reach
from pipeline.tracing.program import Program
from tests.pipeline.locator.repositories import make

RUN = """from exp.runner import Runner
from exp.tables import DATASETS


def main(name):
    Chosen = Runner
    runner = Chosen(name)
    runner.train()
    Data = DATASETS[name]
    Data(name)


if __name__ == "__main__":
    main("solar")
"""
RUNNER = """from exp.base import Base


class Runner(Base):
    def _build(self):
        return [1, 2, 3]

    def train(self):
        total = 0
        for step in range(10):
            total += step
        return total
"""
BASE = """class Base:
    def __init__(self, name):
        self.model = self._build()

    def _build(self):
        raise NotImplementedError
"""
TABLES = """class Solar:
    def __init__(self, name):
        self.name = name


class Wind:
    def __init__(self, name):
        self.name = name


DATASETS = {"solar": Solar, "wind": Wind}
"""
FILES = {"run.py": RUN, "exp/runner.py": RUNNER, "exp/base.py": BASE, "exp/tables.py": TABLES, "exp/__init__.py": ""}


def reached(snapshot: Snapshot, path: str) -> set[str]:
    program = Program(snapshot)
    module = program.module(path)
    assert module is not None
    return {item.definition.name for item in reach(program, module).functions}


def test_names_that_stand_for_classes_and_tables_of_classes_are_followed(tmp_path):
    found = reached(make(tmp_path, FILES), "run.py")
    assert {"Runner.train", "Solar.__init__", "Wind.__init__"} <= found


def test_a_call_of_an_abstract_method_leads_to_the_one_that_overrides_it(tmp_path):
    found = reached(make(tmp_path, FILES), "run.py")
    assert "Runner._build" in found
    assert "Base._build" not in found


def test_with_many_subclasses_the_abstract_method_stays(tmp_path):
    subclasses = "".join(f"\n\nclass R{n}(Base):\n    def _build(self):\n        return {n}\n" for n in range(4))
    files = {**FILES, "exp/base.py": BASE + subclasses}
    assert "Base._build" in reached(make(tmp_path, files), "run.py")


def helper(name: str, body: str) -> str:
    return (
        f"def {name}(values):\n"
        + "".join(f"    {body} = values[{n}]\n" for n in range(120))
        + "    return values\n\n\n"
    )


def test_of_what_lies_elsewhere_the_part_that_speaks_of_the_task_is_kept(tmp_path):
    library = helper("write_archive", "archive") + helper("estimate_turbulence", "turbulence")
    script = (
        "from library import estimate_turbulence, write_archive\n\nvalues = list(range(200))\n"
        "write_archive(values)\nestimate_turbulence(values)\n"
    )
    snapshot = make(tmp_path, {"run.py": script, "library.py": library})
    source = SourceScript(path="run.py", role="entry", score=1.0)
    texts = " ".join(
        step.text for step in trace(snapshot, [source], [], about="How strong is the turbulence?").requirements
    )
    assert "estimate_turbulence)" in texts
    assert "(write_archive):" not in texts  # the call is named, the function is no step
    everything = " ".join(step.text for step in trace(snapshot, [source], []).requirements)
    assert "(write_archive)" in everything


def test_what_the_chain_itself_holds_is_kept_whatever_it_speaks_of(tmp_path):
    library = helper("write_archive", "archive") * 1
    script = (
        "from library import write_archive\n\nvalues = list(range(200))\nwrite_archive(values)\nprint(sum(values))\n"
    )
    snapshot = make(tmp_path, {"run.py": script, "library.py": library * 1 + helper("other", "other") * 4})
    sources = [
        SourceScript(path="run.py", role="entry", score=1.0),
        SourceScript(path="library.py", role="library", score=1.0),
    ]
    texts = " ".join(step.text for step in trace(snapshot, sources, [], about="turbulence").requirements)
    assert "(write_archive)" in texts
