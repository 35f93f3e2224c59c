"""Candidates run for real in a copy of their repository: what is kept, put right, told, and not run twice."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from pipeline.digests import digest_of
from pipeline.errors import FailureKind
from pipeline.locator import build_index
from pipeline.progress import SilentReporter
from pipeline.rehearse import Rehearsal, kept, read_rehearsal, rehearse, runs
from pipeline.rehearse.authors_paths import Places, place_authors_path
from pipeline.sandbox.base import Image, Limits, RunResult, RunSpec, StopHandle
from pipeline.schema import Problem
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.survey import list_candidates
from pipeline.task import Environment
from pipeline.validation.environments import Built, Environments
from tests.pipeline.survey.test_commands import PAPER
from tests.pipeline.validation.support import IMAGE, CopySandbox, make_snapshot

TODAY, OLDEST = date(2024, 6, 1), date(2020, 1, 1)
SCORES = "import json, pathlib\nprint('accuracy = 0.875')\npathlib.Path('scores.json').write_text(json.dumps({'f1': 0.81}))\n"


class Sandbox(CopySandbox):
    """Stops commands with `--long` in their words as a sandbox does whose wall time is over; remembers the order."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[tuple[str, ...]] = []
        self.days: dict[str, str] = {}
        """Image -> the day of which its packages are; a script finds it as `DAY`."""

    def run(  # type: ignore[override]
        self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str, stop: StopHandle | None = None
    ) -> RunResult:
        self.order.append(spec.commands[0].argv)
        spec = spec.evolve(env={**spec.env, "DAY": self.days.get(image.digest, "")})
        result = super().run(image, tree, spec, out=out, owner=owner)
        if "--long" in spec.commands[0].argv and spec.limits.wall_s < 100:
            return result.evolve(failure=FailureKind.RUN_TIMEOUT, duration_s=spec.limits.wall_s)
        return result.evolve(duration_s=1.0)


class Made(Environments):
    """Environments that are there already, one for each set of modules; remembers what was asked for."""

    asked: list[tuple[str, ...]]

    def of_files(self, sources, reached, *, modules=(), libraries=(), as_of=None) -> Built:
        self.asked.append((*modules, *libraries, *([str(as_of)] if as_of else [])))
        if "unbuildable.py" in sources:
            problem = Problem(component="validate.environment", where="x", message="no version of x fits")
            return Built(None, None, (problem,))
        if as_of is not None and as_of < OLDEST:
            return Built(
                None, None, (Problem(component="validate.environment", where="x", message="nothing resolves"),)
            )
        image = IMAGE.evolve(digest=digest_of([modules, sorted(libraries), str(as_of)]))
        self.sandbox.days[image.digest] = str(as_of or TODAY)  # type: ignore[attr-defined]
        return Built(image, Environment(python="3.11"), (), as_of or TODAY)


class Case:
    """One repository, rehearsed as often as is asked."""

    def __init__(self, root: Path, files: dict[str, str]) -> None:
        self.root = root
        self.index = build_index(make_snapshot(root / "tree", files))
        self.sandbox = Sandbox()
        self.environments = Made(
            Workspace(root / "ws"), Settings(cache_dir=root / "cache"), self.sandbox, self.index.snapshot,
            SilentReporter(),
        )  # fmt: skip
        object.__setattr__(self.environments, "asked", [])

    def rehearse(self, **options: float) -> dict[str, Rehearsal]:
        found = rehearse(
            list_candidates(self.index, PAPER), index=self.index, environments=self.environments, sandbox=self.sandbox,
            limits=Limits(memory_mb=64, disk_mb=64), out=self.root / "out", cache=self.root / "cache", owner="test",
            **options,
        )  # fmt: skip
        return {item.candidate.entry: item for item in reversed(found)}


def test_numbers_of_streams_and_files_are_kept_and_nothing_runs_twice(tmp_path: Path) -> None:
    case = Case(tmp_path, {"run.py": SCORES, "broken.py": "print('loss = 0.5')\nmissing_name\n"})
    first = case.rehearse()
    assert first["run.py"].failure is None
    values = {(item.where.split(":")[0], item.value) for item in read_rehearsal(first["run.py"])}
    assert values == {("stdout", 0.875), ("scores.json", 0.81)}
    broken = first["broken.py"]
    assert (broken.failure, broken.blocked, broken.ran) == (FailureKind.RUN_FAILED, False, True)
    assert "missing_name" in broken.message
    assert 0.5 in {item.value for item in read_rehearsal(broken)}
    assert not broken.witnessed
    assert any("no witness" in problem.message for problem in broken.problems)
    made = case.sandbox.runs
    assert case.rehearse() == first
    assert case.sandbox.runs == made


def test_missing_modules_extend_the_environment_once_and_own_modules_do_not(tmp_path: Path) -> None:
    case = Case(
        tmp_path,
        {"run.py": "import not_there_at_all\nprint(1)\n", "own.py": "import helper.deep.part\nprint(1)\n", "helper/x.py": "y = 1\n",
         "other.py": "print(1.5)\n"},
    )  # fmt: skip
    found = case.rehearse()
    assert case.environments.asked == [(), ("not_there_at_all",)]
    assert found["run.py"].image != found["other.py"].image
    assert "not_there_at_all" in found["run.py"].message


def test_a_slow_command_is_tried_longer_only_after_the_others_and_the_budget_says_what_was_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "busy_factor", lambda: 1.0)
    readme = "```bash\npython slow.py --long\npython quick.py\n```\n"
    case = Case(tmp_path, {"README.md": readme, "slow.py": "print('a = 1.25')\n", "quick.py": "print('b = 2.5')\n"})
    found = case.rehearse()
    assert [item.failure for item in found.values()] == [None, None]
    case.root = tmp_path / "again"
    monkeypatch.setattr(runs, "count_lanes", lambda limits: 1)
    found = case.rehearse(budget_s=1.0, per_command_s=50.0)
    assert not found["quick.py"].ran
    assert found["quick.py"].message.startswith("not run: the budget of 1 s")
    assert found["slow.py"].failure is FailureKind.RUN_TIMEOUT
    assert 1.25 in {item.value for item in read_rehearsal(found["slow.py"])}


@pytest.mark.parametrize(
    ("until", "asked", "image"),
    [
        ("2023-12-31", ["", "2023-06-02"], "2023-06-02"),
        ("2022-01-01", ["", "2023-06-02", "2021-06-02"], "2021-06-02"),
        # of the third try nothing resolves: the first environment stays
        ("1999-01-01", ["", "2023-06-02", "2021-06-02", "2019-06-03"], "2024-06-01"),
    ],
)
def test_earlier_packages_are_taken_where_more_ends_well_with_them(
    until: str, asked: list[str], image: str, tmp_path: Path
) -> None:
    lost = (
        f"import os\nimport numpy as np\nif os.environ['DAY'] > '{until}':\n    np.lost_function()\nprint('a = 1.25')\n"
    )
    files = {"one.py": lost, "two.py": lost, "own.py": "print(0.5)\nraise ValueError('its own')\n"}
    case = Case(tmp_path, files)
    files["three.py"] = lost
    found = case.rehearse()
    assert ["".join(items) for items in case.environments.asked] == [""]  # one of three fails by itself
    case = Case(tmp_path / "more", files)
    found = case.rehearse()
    assert ["".join(items) for items in case.environments.asked] == asked
    ended = image != "2024-06-01"
    assert [found[path].failure is None for path in sorted(files)] == [ended, False, ended, ended]
    assert case.sandbox.days[found["three.py"].image] == image
    told = [problem.message for problem in found["one.py"].problems if problem.where == "packages"]
    assert told == ([f"a command fails with the packages of 2024-06-01: those of {image} are used"] if ended else [])
    made = case.sandbox.runs
    assert case.rehearse() == found
    assert case.sandbox.runs == made


def test_what_ends_well_keeps_its_packages_where_a_stated_command_needs_earlier_ones(tmp_path: Path) -> None:
    lost = "import os\nimport numpy as np\nif os.environ['DAY'] > '2024':\n    np.lost_function()\nprint('a = 1.25')\n"
    files = {"run.py": lost, "other.py": "print(0.5)\n"}
    found = Case(tmp_path / "unstated", files).rehearse()
    assert found["run.py"].failure is FailureKind.RUN_FAILED
    case = Case(tmp_path / "stated", files | {"README.md": "```bash\npython run.py\n```\n"})
    found = case.rehearse()
    assert [item.failure for item in found.values()] == [None, None]
    assert [case.sandbox.days[found[path].image] for path in ("run.py", "other.py")] == ["2023-06-02", "2024-06-01"]


@pytest.mark.parametrize(("declared", "ended"), [("numpy==1.25.2\npandas\n", True), ("numpy\npandas\n", False)])
def test_packages_without_versions_beside_pinned_ones_may_be_why_a_stated_command_ends_in_its_own_code(
    declared: str, ended: bool, tmp_path: Path
) -> None:
    code = "import os\nprint({'2021-06-02': 1.25}[os.environ['DAY']])\n"
    readme = "```bash\npython run.py\n```\n"
    found = Case(tmp_path, {"run.py": code, "requirements.txt": declared, "README.md": readme}).rehearse()
    assert (found["run.py"].failure is None) is ended


def test_a_program_without_hope_waits_until_every_other_had_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "busy_factor", lambda: 1.0)
    monkeypatch.setattr(runs, "count_lanes", lambda limits: 1)
    stated = ["slow.py --long 1", "slow.py --long 2", "odd.py 1", "odd.py 2", "odd.py 3", "quick.py 1", "quick.py 2"]
    # a section each: commands above a failed one in its section are run before it
    readme = "".join(f"## {number}\n```bash\npython {words}\n```\n" for number, words in enumerate(stated))
    files = {
        "README.md": readme, "slow.py": SCORES, "quick.py": "import sys\nsys.exit(int(sys.argv[1]))\n",
        "odd.py": "import sys\nprint(1 / (int(sys.argv[1]) - 4.0))\nmissing_name\n",
    }  # fmt: skip
    case = Case(tmp_path, files)
    case.rehearse(per_command_s=60.0)
    order = [" ".join(argv[1:]) for argv in case.sandbox.order]
    assert order[:8] == [
        "slow.py --long 1", "odd.py 1", "odd.py 2", "quick.py 1", "quick.py 2", "quick.py", "slow.py --long 2",
        "odd.py 3",
    ]  # fmt: skip


def test_directories_folders_and_earlier_steps_are_put_right(tmp_path: Path) -> None:
    case = Case(
        tmp_path,
        {
            "code/run.py": "print('x =', float(open('../data/x.txt').read()))\n",
            "data/x.txt": "0.125\n",
            "save.py": "open('results/y.txt', 'w').write('y = 0.375')\n",
        },
    )
    found = case.rehearse()
    assert all(item.failure is None for item in found.values())
    assert found["code/run.py"].usage[-1].directory == "code"
    assert found["save.py"].usage[0].argv == ("mkdir", "-p", "results")
    assert found["save.py"].repairs


def test_a_project_whose_environment_cannot_be_built_does_not_stop_the_others(tmp_path: Path) -> None:
    case = Case(tmp_path, {"a/run.py": SCORES, "a/requirements.txt": "", "unbuildable.py": SCORES})
    found = case.rehearse()
    assert found["a/run.py"].failure is None
    assert found["unbuildable.py"].failure is FailureKind.ENVIRONMENT_UNBUILDABLE
    assert "no version of x fits" in found["unbuildable.py"].message


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("/home/a/project/data/points.csv", "data/points.csv"),
        ("/home/a/other/points.csv", "data/points.csv"),
        ("/home/a/run/out/table.csv", "one/out/table.csv"),
        ("/home/a/table.csv", None),  # two files of that name
        ("/home/a/step-two/table.csv", "two/table.csv"),
        ("/home/a/project/data", "data"),
        ("/home/a/absent.csv", None),
        ("/proc/self/points.csv", None),
        ("/work/points.csv", None),
        ("/home/a/link.csv", None),
        ("data/points.csv", None),
    ],
)
def test_a_path_of_the_author_is_the_committed_file_of_that_name(tmp_path: Path, path: str, own: str | None) -> None:
    files = {"data/points.csv": "1\n", "one/out/table.csv": "1\n", "two/table.csv": "2\n", "link.csv": "3\n"}
    snapshot = make_snapshot(tmp_path / "tree", files)
    (tmp_path / "tree" / "link.csv").unlink()
    (tmp_path / "tree" / "link.csv").symlink_to("/etc/hostname")
    error = f"Traceback (most recent call last):\nFileNotFoundError: [Errno 2] No such file or directory: '{path}'\n"
    (tmp_path / "0.stderr").write_text(error)
    assert place_authors_path(tmp_path, 0, snapshot, ".") == (((path, own),) if own else None)


@pytest.mark.parametrize(
    ("error", "placed", "expected"),
    [
        # what was found in the folder before says which folder of the repository it is
        ("'/home/a/scores.json'", (("/home/a/data/points.csv", "data/points.csv"),), (("/home/a", "."),)),
        ("'/home/a/out/scores.json'", (), (("/home/a/out", "one/out"),)),  # a folder of that name
        ("'/home/a/scores.json'", (), (("/home/a", "code"),)),  # else where the command runs
        ("'/home/a'", (("/home/b/table.csv", "two/table.csv"),), (("/home/b/table.csv", "two/table.csv"), ("/home/a", "code"))),
        # two files that lie together there and apart here
        ("'/home/a/x.json'", (("/home/a/points.csv", "data/points.csv"), ("/home/a/table.csv", "two/table.csv")), None),
        ("'/home/a/x.json'", (("/home/a", "code"),), None),  # it is placed, and did not help
        ("'/results/x.json'", (), None),  # nothing can be put at the root
        ("'/etc/x/y.json'", (), None),
    ],
)  # fmt: skip
def test_a_folder_that_the_author_wrote_into_is_one_of_the_repository(
    tmp_path: Path, error: str, placed: Places, expected: Places | None
) -> None:
    files = {"data/points.csv": "1\n", "one/out/table.csv": "1\n", "two/table.csv": "2\n", "code/run.py": ""}
    snapshot = make_snapshot(tmp_path / "tree", files)
    trace = f"Traceback (most recent call last):\nOSError: [Errno 30] Read-only file system: {error}\n"
    (tmp_path / "0.stderr").write_text(trace)
    assert place_authors_path(tmp_path, 0, snapshot, "code", placed) == expected
