"""The seeds of a run: which are in force and who says so, and the one that a repeat is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.task import Usage
from pipeline.validation.seeds import seeds_in_force, with_seed
from tests.pipeline.validation.support import make_snapshot

HEAD = "import argparse\np = argparse.ArgumentParser()\n"
TAIL = "options = p.parse_args()\nprint(options)\n"


def found(tmp_path: Path, files: dict[str, str], *argv: str) -> list[tuple[str, str, str, str]]:
    snapshot = make_snapshot(tmp_path, files)
    used = seeds_in_force(snapshot, [Usage(argv=argv)], ["run.py"])
    return [(seed.name, seed.value, seed.source, seed.where) for seed in used]


@pytest.mark.parametrize(
    ("option", "argv", "seed"),
    [
        ("'--seed', type=int, default=7", (), ("seed", "7", "default", "run.py:3")),
        ("'--seed', type=int, default=7", ("--seed", "5"), ("seed", "5", "command", "python run.py --seed 5")),
        ("'--seed', type=int", (), ("seed", "0, 1, ...", "set", "run.py:3")),
        ("'--seed', type=int, default=-1", (), ("seed", "0, 1, ...", "set", "run.py:3")),
        ("'--random_state', type=int, default=3", (), ("random_state", "3", "default", "run.py:3")),
        ("'--data-seed', type=int, default=3", (), ("data_seed", "3", "default", "run.py:3")),
        ("'--seeds', type=int, default=3", (), None),  # how many
        ("'--seedling', type=int, default=3", (), None),
        ("'--seed', action='store_true'", (), None),
        ("'--seed', type=int, nargs='+'", (), None),
        ("'--seed', type=int, choices=[1, 2]", (), None),
    ],
)
def test_the_seed_of_a_command(
    option: str, argv: tuple[str, ...], seed: tuple[str, ...] | None, tmp_path: Path
) -> None:
    code = f"{HEAD}p.add_argument({option})\n{TAIL}"
    assert found(tmp_path, {"run.py": code}, "python", "run.py", *argv) == ([seed] if seed else [])


def test_seeds_that_are_written_in_the_code(tmp_path: Path) -> None:
    code = (
        "import random\nimport numpy as np\nSEED = 3\nrandom.seed(SEED)\nnp.random.seed(4)\nrng = np.random.default_rng(5)\n"
        "model = fit(random_state=6, size=9)\nseedling = 7\nbase_seed = -8\nrandom.seed()\nother_seed = 'text'\n"
    )
    assert found(tmp_path, {"run.py": code}, "python", "run.py") == [
        ("SEED", "3", "code", "run.py:3"), ("np.random.seed", "4", "code", "run.py:5"),
        ("np.random.default_rng", "5", "code", "run.py:6"), ("random_state", "6", "code", "run.py:7"),
        ("base_seed", "-8", "code", "run.py:9"),
    ]  # fmt: skip


def test_no_more_than_eight_of_them_and_only_of_files_of_the_chain(tmp_path: Path) -> None:
    code = "".join(f"seed = {number}\n" for number in range(12))
    used = found(tmp_path, {"run.py": code, "other.py": "seed = 99\n"}, "python", "run.py")
    assert [value for _, value, _, _ in used] == [str(number) for number in range(8)]


def test_the_seed_of_a_configuration(tmp_path: Path) -> None:
    code = HEAD + "p.add_argument('--config', default='conf/a.yaml')\n" + TAIL + "open(options.config)\n"
    config = "model:\n  size: 4\n  seed: 11\ntrain: {random_state: 12, seeds: 3}\n"
    used = found(tmp_path, {"run.py": code, "conf/a.yaml": config}, "python", "run.py", "--config", "conf/a.yaml")
    assert used == [
        ("model.seed", "11", "config", "conf/a.yaml:3"), ("train.random_state", "12", "config", "conf/a.yaml:4"),
    ]  # fmt: skip
    broken = found(
        tmp_path, {"run.py": code, "conf/a.yaml": "seed: [\n"}, "python", "run.py", "--config", "conf/a.yaml"
    )
    assert broken == []


def test_each_repeat_is_given_its_own_seed_where_nothing_sets_one(tmp_path: Path) -> None:
    free = make_snapshot(tmp_path / "a", {"run.py": f"{HEAD}p.add_argument('-s', '--seed', type=int)\n{TAIL}"})
    step = Usage(argv=("python", "run.py"))
    assert with_seed(free, step, 1) == ("python", "run.py", "--seed", "0")
    assert with_seed(free, step, 3) == ("python", "run.py", "--seed", "2")
    given = Usage(argv=("python", "run.py", "--seed", "9"))
    assert with_seed(free, given, 3) == given.argv
    fixed = make_snapshot(tmp_path / "b", {"run.py": f"{HEAD}p.add_argument('--seed', type=int, default=1)\n{TAIL}"})
    assert with_seed(fixed, step, 3) == step.argv
    assert with_seed(fixed, Usage(argv=("make", "all")), 3) == ("make", "all")
