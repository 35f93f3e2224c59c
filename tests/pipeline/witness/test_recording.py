"""What a witness tells of ordinary and of odd programs, and that they do not notice it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline.witness._inside import watch
from tests.pipeline.witness.conftest import Program

HELPERS = """
import numpy as np

class Model:
    def fit(self, rate, *, kind="ridge", **more):
        return [inner(i) for i in range(3)]

def inner(i):
    return i

def count():
    yield 1
    yield 2
"""
MAIN = """
import numpy as np
from helpers import Model, count
m = Model()
for rate in (0.1, 0.2, np.float64(0.2)):
    m.fit(rate, depth=(1, "two"))
m.fit(np.arange(20))
print(sum(count()), (lambda z: z)("text"))
"""


def test_functions_are_told_with_calls_arguments_and_callers(program: Program, tree: Path) -> None:
    (tree / "lib").mkdir()
    (tree / "lib" / "helpers.py").write_text(HELPERS)
    (tree / "lib" / "main.py").write_text(MAIN)
    ran = program("lib/main.py")
    assert (ran.code, ran.text, ran.report.problems) == (0, "3 text\n", ())
    fit = ran.function("Model.fit")
    assert (fit.path, fit.line, fit.calls) == ("lib/helpers.py", 5, 4)
    assert dict(fit.arguments) == {"rate": ("0.1", "0.2"), "kind": ("ridge",), "depth": ("(1, 'two')",)}
    assert fit.callers == ("lib/main.py:6", "lib/main.py:7")
    assert ran.function("inner").calls == 12
    assert ran.function("inner").callers == ("lib/helpers.py:6",)
    assert ran.function("count").calls == 1  # a generator that goes on is not called again
    assert dict(ran.function("<lambda>").arguments) == {"z": ("text",)}
    assert {item.path for item in ran.report.functions if item.name == "<module>"} == {"lib/main.py", "lib/helpers.py"}
    process = ran.process
    assert (process.directory, process.argv, process.complete, process.facts) == (".", ("lib/main.py",), True, ())
    assert process.printed == "3 text\n"
    assert "numpy" in dict(process.libraries)


def test_seeds_draws_and_files_are_told(program: Program, tree: Path) -> None:
    (tree / "data.csv").write_text("a,b\n1,2\n")
    (tree / "main.py").write_text(
        "import random, numpy as np\n"
        "random.seed(3); random.Random('x')\n"
        "np.random.seed(4); np.random.random_sample(2); np.random.RandomState(5).normal()\n"
        "np.random.default_rng([6, 7]).random(); np.random.SeedSequence(8); np.random.PCG64(9)\n"
        "np.random.default_rng()\n"
        "open('data.csv').read(); open('out.txt', 'w').write('x'); np.save('a.npy', np.zeros(2))\n"
        "try: open('none.txt')\n"
        "except OSError: pass\n"
    )
    process = program("main.py").process
    assert process.seeds == ("3", "'x'", "4", "5", "[6, 7]", "8", "9")
    assert process.draws == 3
    assert process.reads == ("main.py", "data.csv")
    assert process.writes == ("out.txt", "a.npy")


PROGRAMS = {
    "fork": "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n"
    "    with m.get_context('fork').Pool(2) as p: print(p.map(f, range(5)))\n",
    "spawn": "import multiprocessing as m\ndef f(x): return x * x\nif __name__ == '__main__':\n"
    "    with m.get_context('spawn').Pool(2) as p: print(p.map(f, range(5)))\n",
    "futures": "from concurrent.futures import ProcessPoolExecutor as P\ndef f(x): return x * x\n"
    "if __name__ == '__main__':\n    with P(2) as p: print(list(p.map(f, range(5))))\n",
    "threads": "import threading\nout = []\ndef f(k): out.append(k)\nts = [threading.Thread(target=f, args=(i,)) "
    "for i in range(5)]\n[t.start() for t in ts]; [t.join() for t in ts]\nprint(sorted(out), threading.active_count())\n",
    "subprocess": "import subprocess, sys\nfor i in range(5):\n    print(subprocess.run([sys.executable, '-I', '-c', "
    "'def f(x): return x\\nprint(f(1))'], capture_output=True))\n",
    "os_exit": "import os\ndef f(x): return x\n[f(i) for i in range(5)]\nprint(1, flush=True)\nos._exit(7)\n",
    "raised": "def f(x):\n    if x == 4: raise ValueError('no')\nfor i in range(5): f(i)\n",
    "sys_exit": "import sys\ndef f(x): return x\n[f(i) for i in range(5)]\nsys.exit('bye')\n",
    "sigterm": "import os, signal\ndef f(x): return x\n[f(i) for i in range(5)]\nos.kill(os.getpid(), signal.SIGTERM)\n",
    "exec": "import os, sys\ndef f(x): return x\n[f(i) for i in range(5)]\nos.execv(sys.executable, [sys.executable, "
    "'-c', 'print(2)'])\n",
    "child_exit": "import os\ndef f(x): return x\nif os.fork() == 0:\n    [f(i) for i in range(5)]\n    os._exit(0)\n"
    "print(os.wait()[1])\n",
    "redirected": "import contextlib, io\ndef f(x): print(x)\nwith contextlib.redirect_stdout(io.StringIO()) as s:\n"
    "    [f(i) for i in range(5)]\nprint(s.getvalue())\n",
    "introspective": "import gc, inspect, random, sys, pickle, copy, threading, signal\ndef f(x: int = 3): return x\n"
    "[f(i) for i in range(5)]\nprint(inspect.signature(f), inspect.getsource(f), pickle.loads(pickle.dumps(f)) is f, "
    "type(sys.stdout), sys.stdout.encoding, len(threading.enumerate()), random.Random, print, open, random.seed.__name__,\n"
    "    sorted(k for k in sys.modules if k.startswith('w')), sys.getrecursionlimit(), inspect.signature(random.seed))\n",
    "random": "import random\ndef f(x): return random.Random(x).random()\nprint([f(i) for i in range(5)])\nrandom.seed(1)\n"
    "print(random.gauss(0, 1), random.sample(range(9), 3), random.choices([1, 2], k=4), random.getstate()[1][:3])\n",
    "numpy": "import numpy as np, pickle, copy\ndef f(x): return np.random.RandomState(x).normal()\n"
    "print([f(i) for i in range(5)])\nnp.random.seed(1)\nr = np.random.default_rng(2)\n"
    "print(np.random.rand(2), np.random.permutation(4), r.normal(size=2), r, type(r), repr(np.random.PCG64))\n"
    "print(pickle.loads(pickle.dumps(r)).normal() == copy.deepcopy(r).normal(), r.spawn(2)[1].integers(99))\n"
    "s = np.random.SeedSequence(5)\nprint([np.random.Generator(np.random.PCG64(c)).random() for c in s.spawn(2)])\n"
    "print(isinstance(np.random.mtrand._rand, np.random.RandomState), isinstance(r, np.random.Generator), "
    "isinstance(r.bit_generator, np.random.PCG64), isinstance(3, np.random.Generator), np.random.get_state()[1][:2])\n"
    "print(pickle.loads(pickle.dumps(np.random.MT19937)) is np.random.MT19937)\n"
    "try: np.random.seed(-1)\nexcept ValueError as e: print(e)\n",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_not_notice_and_its_calls_are_all_there(name: str, program: Program, tree: Path) -> None:
    (tree / "main.py").write_text(PROGRAMS[name])
    plain, ran = program("main.py", perturbation=None), program("main.py")
    hidden = {ran.code: (ran.stdout, ran.stderr), plain.code: (plain.stdout, plain.stderr)}
    assert len(hidden) == 1, "the exit code changed"
    assert (ran.stdout.replace(b"run2", b"run1"), ran.stderr) == (plain.stdout, plain.stderr)
    assert [path.name for path in tree.iterdir()] == ["main.py"]
    assert sum(item.calls for item in ran.report.functions if item.name == "f") == 5
    assert not [fact for process in ran.report.processes for fact in process.facts]
    assert ran.report.problems == ()


@pytest.mark.parametrize(
    "arguments", [("-m", "main"), ("-I", "main.py"), ("-E", "-B", "main.py"), ("-c", "import main")]
)
def test_ways_to_start_python(arguments: tuple[str, ...], program: Program, tree: Path) -> None:
    (tree / "main.py").write_text("def f(x): return x\nf(2)\n")
    ran = program(*arguments, PYTHONPATH="/nowhere")
    assert ran.code == 0
    assert (ran.function("f").path, dict(ran.function("f").arguments)) == ("main.py", {"x": ("2",)})


def test_a_killed_process_leaves_its_beginning(program: Program, tree: Path) -> None:
    (tree / "main.py").write_text("import os\ndef f(): os.kill(os.getpid(), 9)\nf()\n")
    ran = program("main.py")
    assert ran.code == -9
    assert not ran.process.complete


def test_code_on_standard_input_and_cells_is_the_programs_own(program: Program, tree: Path) -> None:
    ran = program("-c", "def f(a): return a\nf(1)\nfrom collections import namedtuple\nnamedtuple('T', 'x')(1)")
    assert [(item.path, item.name) for item in ran.report.functions] == [("<string>", "<module>"), ("<string>", "f")]


def test_a_notebook_is_told_cell_by_cell(program: Program, tree: Path) -> None:
    pytest.importorskip("ipykernel")
    (tree / "main.py").write_text(
        "import nbformat, nbclient, sys\n"
        "nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell('def f(x): return x'), "
        "nbformat.v4.new_code_cell('print(\"value\", f(4))')])\n"
        "nbclient.NotebookClient(nb, timeout=60, kernel_name='python3').execute()\n"
        "print(nb.cells[1].outputs[0]['text'])\n"
    )
    kernel = tree / ".kernels" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(
        '{"argv": ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "P", "language": "python"}'
    )
    ran = program("main.py", JUPYTER_PATH=str(tree / ".kernels"))
    assert ran.text == "value 4\n\n", ran.stderr.decode()
    assert (ran.function("f").calls, dict(ran.function("f").arguments)) == (1, {"x": ("4",)})
    assert any("value 4" in process.printed for process in ran.report.processes)


FACTS = {
    "print": ("import builtins\ndef shout(*a, **k): pass\nbuiltins.print = shout\n", "`print` was replaced by `shout`, main.py:2"),
    "stdout": ("import sys\nclass Fake:\n    def write(self, t): pass\n    def flush(self): pass\nsys.stdout = Fake()\n", "sys.stdout is an object of `Fake`, main.py:3"),
    "shadow": ("import statistics\n", "module `statistics` comes from statistics.py:1 in place of the installed one"),
    "object": ("import sys, types\nsys.modules['numpy'] = types.ModuleType('numpy')\n", "module `numpy` is an object without a file in place of the installed one"),
    "settrace": ("import sys\ndef go(): sys.settrace(None)\ngo()\n", "the watch of functions was taken out"),
    "numpy": ("import numpy as np\ndef mean(x): return 1\nnp.mean = mean\n", "`numpy.mean` was replaced by `mean`, main.py:2"),
    "seed": ("import random\nfrom random import Random\ndef seed(self, a=None, version=2): pass\nRandom.seed = seed\n", "`random.Random.seed` was replaced by `seed`, main.py:3"),
    "exit": ("import os\ndef leave(n): pass\nos._exit = leave\n", "`os._exit` was replaced by `leave`, main.py:2"),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTS)
def test_what_stands_out_is_a_fact(name: str, program: Program, tree: Path) -> None:
    text, fact = FACTS[name]
    (tree / "main.py").write_text(text)
    (tree / "statistics.py").write_text("")
    facts = program("main.py").process.facts
    assert len(facts) == 1
    assert facts[0].startswith(fact)


def test_many_calls_are_counted_and_late_arguments_seen(program: Program, tree: Path) -> None:
    (tree / "main.py").write_text("def f(x): return x\nfor rate in (1, 2, 3):\n    for _ in range(5000): f(rate)\n")
    found = program("main.py").function("f")
    assert (found.calls, dict(found.arguments)) == (15000, {"x": ("1", "2", "3")})


def test_a_program_that_meets_the_limit_of_recursion_is_followed_again(program: Program, tree: Path) -> None:
    """Python 3.11 takes a trace function out that meets the limit itself: that accused the program once."""
    (tree / "main.py").write_text(
        "def f(n): return f(n + 1)\ntry: f(0)\nexcept RecursionError: print('deep')\ndef g(x): return x\ng(1)\n"
    )
    ran = program("main.py")
    assert (ran.code, ran.text, ran.process.facts) == (0, "deep\n", ())
    assert ran.function("g").calls == 1


def test_a_tree_that_cannot_be_written_and_a_full_outbox_change_nothing(program: Program, tree: Path) -> None:
    (tree / "main.py").write_text("import shutil, glob\nshutil.rmtree(glob.glob('../run*/outbox')[0])\nprint(1)\n")
    ran = program("main.py")
    assert (ran.code, ran.text, ran.stderr) == (0, "1\n", b"")
    assert ran.report.processes == ()
    assert "nothing is known" in ran.report.problems[0].message


def test_what_it_looks_at_is_not_touched(program: Program, tree: Path) -> None:
    """Arguments are read without calling code of theirs."""
    (tree / "main.py").write_text(
        "class Loud:\n    def __repr__(self): print('looked'); return ''\n    def __getattr__(self, n): print(n); raise "
        "AttributeError(n)\n    def __len__(self): print('len'); return 1\nclass Text(str): pass\n"
        "def f(x): return x\nf(Loud()); f([Loud()]); f(Text('a'))\n"
    )
    ran = program("main.py")
    assert ran.text == ""
    assert ran.function("f").arguments == ()
    assert hashlib.sha256(ran.stderr).hexdigest() == hashlib.sha256(b"").hexdigest()


def test_arguments_that_overwrite_the_names_of_a_module_are_put_back_when_the_function_returns() -> None:
    """Python 3.10 under older Cython: the frame of a traced function has the module's names for its local ones."""

    def full(shape: int, dtype: object = None) -> None: ...

    names: dict[str, object] = {"dtype": int, "else": 1}
    plain = SimpleNamespace(f_code=full.__code__, f_globals=names, f_locals={})
    assert watch._keep_globals(plain) is None
    names |= {"dtype": None, "shape": 3, "else": 2}
    spilt = SimpleNamespace(f_code=full.__code__, f_globals=names, f_locals=names, f_trace_lines=True)
    put_back = watch._keep_globals(spilt)
    assert put_back(spilt, "exception", None) is put_back
    assert names["dtype"] is None
    put_back(spilt, "return", None)
    assert names == {"dtype": int, "else": 2}
    assert not spilt.f_trace_lines
