"""What the perturbations move, and what they leave alone."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from pipeline.witness.launch import permute_data_files
from pipeline.witness.records import Perturbation
from tests.pipeline.witness.conftest import Program

SEEDED = """
import random, numpy as np, multiprocessing as m
from numpy.random import RandomState, default_rng
def work(x): return default_rng(x).random()
def ways():
    random.seed(3); yield random.random()
    random.seed("a"); yield random.random()
    random.seed(b"a"); yield random.random()
    yield random.Random(-3).random()
    np.random.seed(3); yield np.random.rand()
    np.random.seed([3, 4]); yield np.random.rand()
    yield RandomState(3).rand()
    yield default_rng(3).random()
    yield default_rng([3, 4]).random()
    yield default_rng(np.array([3, 4])).random()
    yield default_rng(np.int64(5)).random()
    yield default_rng(np.random.SeedSequence(3).spawn(2)[1]).random()
    yield default_rng(np.random.SeedSequence(entropy=3)).normal()
    yield np.random.Generator(np.random.PCG64(3)).normal()
    yield RandomState(np.random.MT19937(3)).rand()
    yield np.random.Generator(np.random.Philox(seed=3)).random()
    yield default_rng(3).spawn(2)[1].random()
    with m.get_context("spawn").Pool(1) as p: yield p.map(work, [6])
if __name__ == "__main__":
    for value in ways(): print(value)
"""


def test_moved_streams_start_elsewhere_and_are_the_same_again(program: Program, tree: Path) -> None:
    (tree / "main.py").write_text(SEEDED)
    plain = program("main.py")
    first, again = (program("main.py", perturbation=Perturbation.MOVED, amount=101) for _ in range(2))
    other = program("main.py", perturbation=Perturbation.MOVED, amount=102)
    assert (first.code, first.stderr, first.text) == (0, b"", again.text)
    values = [ran.text.splitlines() for ran in (plain, first, other)]
    assert [len(lines) for lines in values] == [18, 18, 18]
    for ways in zip(*values, strict=True):
        assert len(set(ways)) == 3
    assert (plain.report.touched, first.report.touched) == (0, 18)
    assert [process.facts for process in first.report.processes if process.facts] == []


def test_a_moved_seed_is_the_seed_and_the_amount(program: Program, tree: Path) -> None:
    (tree / "main.py").write_text("import numpy as np\nprint(np.random.default_rng(3).random())")
    (tree / "other.py").write_text("import numpy as np\nprint(np.random.default_rng(104).random())")
    assert program("main.py", perturbation=Perturbation.MOVED, amount=101).text == program("other.py").text


def test_a_generator_without_seed_and_typed_numbers_are_not_touched(program: Program, tree: Path) -> None:
    (tree / "main.py").write_text("import numpy as np, random\nnp.random.default_rng(); random.seed()\nprint(0.913)")
    ran = program("main.py", perturbation=Perturbation.MOVED, amount=101)
    assert (ran.text, ran.report.touched, ran.process.seeds) == ("0.913\n", 0, ())


MUTED = """
import random, numpy as np, pickle
random.seed(1); np.random.seed(1)
r = np.random.default_rng(1)
print(random.random(), random.gauss(3, 1), random.uniform(2, 4), random.expovariate(0.5), random.betavariate(1, 3))
print(np.random.rand(2), np.random.randn(), np.random.normal(2, 1, 2), np.random.uniform(size=1), np.random.poisson(4.4))
print(r.normal([1.0, 2.0]), r.random(2, dtype=np.float32), r.standard_normal(), r.exponential(2, size=1), r.gamma(2, 3))
print(pickle.loads(pickle.dumps(r)).normal(7), r.lognormal(0, 1), r.binomial(10, 0.5, 2), type(r.poisson(3)).__name__)
print(r.integers(99, size=3), r.permutation(5), r.choice(9, 2), np.random.randint(9, size=3), random.randint(0, 99))
print(random.sample(range(99), 2), random.choices(range(9), k=3))
"""


def test_muted_draws_are_means_and_integers_stay(program: Program, tree: Path) -> None:
    (tree / "main.py").write_text(MUTED)
    plain, muted = program("main.py"), program("main.py", perturbation=Perturbation.MUTED)
    assert muted.code == 0, muted.stderr
    lines = muted.text.splitlines()
    assert lines[0] == "0.5 3.0 3.0 2.0 0.25"
    assert lines[1] == "[0.5 0.5] 0.0 [2. 2.] [0.5] 4"
    assert lines[2] == "[1. 2.] [0.5 0.5] 0.0 [2.] 6.0"
    assert lines[3].split()[0] == "7.0"
    assert lines[3].split()[1:] == [repr(float(np.exp(0.5))), "[5", "5]", plain.text.splitlines()[3].split()[-1]]
    assert lines[4:] == plain.text.splitlines()[4:]  # the streams were not moved
    assert muted.report.touched == 21
    assert muted.process.facts == ()


KEPT = """
import numpy as np
def load(n=40):
    y = np.arange(n) % 2
    return np.column_stack([y, -y]).astype(float), y
def as_dict():
    x, y = load()
    return {"x": x, "labels": [int(v) for v in y], "name": "d", "few": [1, 2]}
class Data:
    def get(self):
        return load(10)
TABLE = {"load": load}
"""
USING = """
from kept import load, as_dict, Data, TABLE
def agree(x, y): return sum(a[0] == b for a, b in zip(x, y)) / len(y)
print(agree(*load()), agree(*TABLE["load"]()), agree(*Data().get()))
d = as_dict()
print(agree(d["x"], d["labels"]), sum(d["labels"]), d["few"])
"""


def test_labels_of_kept_functions_lose_their_tie_however_they_are_reached(program: Program, tree: Path) -> None:
    (tree / "kept.py").write_text(KEPT)
    (tree / "main.py").write_text(USING)
    assert program("main.py").text == "1.0 1.0 1.0\n1.0 20 [1, 2]\n"
    ran = program("main.py", perturbation=Perturbation.PERMUTED, permute=[("kept.py", "load")])
    first, second, third, *_ = (float(part) for part in ran.text.split()[:3])
    assert max(first, second, third) < 0.8
    assert ran.text.splitlines()[1].endswith("20 [1, 2]")
    assert ran.report.touched == 4
    alone = program("main.py", perturbation=Perturbation.PERMUTED, permute=[("kept.py", "as_dict")])
    assert alone.text.splitlines()[0] == "1.0 1.0 1.0"
    assert float(alone.text.splitlines()[1].split()[0]) < 0.8


def test_data_files_are_permuted_column_by_column(tmp_path: Path) -> None:
    rows = [[str(i), f"{i},x", str(-i)] for i in range(20)]
    with (tmp_path / "a.csv").open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows([["n", "text", "minus"], *rows])
    (tmp_path / "b.tsv").write_text("".join(f"{i}\t{i}\n" for i in range(12)))
    (tmp_path / "ragged.csv").write_text("a,b\n" + "1,2,3\n" * 20)
    (tmp_path / "short.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe,\n" * 20)
    np.save(tmp_path / "y.npy", np.arange(9))
    np.save(tmp_path / "x.npy", np.zeros((9, 2)))
    np.save(tmp_path / "objects.npy", np.array([{}] * 9), allow_pickle=True)
    np.savez(tmp_path / "both.npz", x=np.zeros((9, 2)), y=np.arange(9))
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    kept = {
        name: (tmp_path / name).read_bytes()
        for name in ("ragged.csv", "short.csv", "binary.csv", "x.npy", "objects.npy")
    }
    names = [path.name for path in tmp_path.iterdir()]
    assert permute_data_files(tmp_path, [*names, "none.csv", "../../etc/passwd"]) == 4
    with (tmp_path / "a.csv").open(newline="") as stream:
        head, *body = csv.reader(stream)
    assert head == ["n", "text", "minus"]
    for index in range(3):
        assert sorted(row[index] for row in body) == sorted(row[index] for row in rows)
    assert sum(row[0] == row[1].split(",")[0] for row in body) < 5
    assert sum(row[0] == row[2].lstrip("-") for row in body) < 5
    assert sum(a == b for a, b in (line.split() for line in (tmp_path / "b.tsv").read_text().splitlines())) < 4
    assert sorted(np.load(tmp_path / "y.npy")) == list(range(9)) != list(np.load(tmp_path / "y.npy"))
    assert list(np.load(tmp_path / "both.npz")["y"]) != list(range(9))
    assert {name: (tmp_path / name).read_bytes() for name in kept} == kept
