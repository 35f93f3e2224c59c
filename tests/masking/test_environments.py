"""Looking into the environment: which files are asked for, whose numbers count, whose distribution it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from masking.environments import own_distribution, scan_environment
from masking.plan import plan_mask
from pipeline.errors import FailureKind
from pipeline.sandbox import images
from pipeline.sandbox.base import BuildSpec, CommandResult, Image, Limits, RunResult, RunSpec
from pipeline.sandbox.images import ImageFacts
from pipeline.schema import Severity
from pipeline.task import Environment, SourceScript
from tests.masking import builders
from tests.masking.planting import NUMBER

IMAGE = Image(reference="here", digest="d" * 64, spec_digest=BuildSpec().digest)


class Lister:
    """A test double: keeps what it was asked for, and hands out the files that it was given."""

    name: str = "process"

    def __init__(self, found: list[tuple[str, bytes | None]]) -> None:
        self.found = found
        self.asked: dict[str, list[object]] = {}
        self.spec: RunSpec | None = None

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
        self.asked, self.spec = json.loads((tree / "wanted.json").read_text()), spec
        (out / "files").mkdir(parents=True)
        listed = []
        for number, (path, data) in enumerate(self.found):
            listed.append((path, 1, f"found-{number}" if data is not None else None))
            if data is not None:
                (out / "files" / f"found-{number}").write_bytes(data)
        (out / "files" / "found.json").write_text(json.dumps({"files": 9, "found": listed}))
        return RunResult(commands=(CommandResult(exit_code=0),))


def look(tmp_path: Path, lister: Lister, files: dict[str, bytes] | None = None):
    snapshot = builders.make(tmp_path / "original", files)
    task = builders.task()
    plan = plan_mask(task, snapshot)
    return scan_environment(
        task, snapshot=snapshot, plan=plan, image=IMAGE, sandbox=lister, out=tmp_path / "out", owner="t"
    )


def test_what_is_asked_for_are_the_masked_files_and_the_repositorys_modules(tmp_path: Path) -> None:
    files = {
        "pkg/__init__.py": b"", "pkg/sub/__init__.py": b"", "pkg/sub/a.py": b"x = 1\n", "src/lib/__init__.py": b"",
        "scripts/tool.py": b"x = 1\n", "legacy/old.py": builders.RUN.encode(), "setup.py": b"# copy\n" + builders.RUN.encode(),
    }  # fmt: skip
    lister = Lister([])
    look(tmp_path, lister, files)
    assert lister.asked["modules"] == ["estimators", "lib", "pkg", "run_experiment", "setup"]
    assert lister.asked["names"] == ["old.py", "run_experiment.py"]
    sizes = {len(builders.RUN), len(builders.RUN) + 7, len(builders.FILES["README.md"])}
    assert lister.asked["sizes"] == sorted(sizes)
    assert lister.asked["limit"] == 64 << 20
    assert lister.spec is not None
    assert lister.spec.limits == Limits(wall_s=300, memory_mb=1024, disk_mb=512, pids=64)
    assert [command.argv for command in lister.spec.commands] == [("python", "list_installed.py")]


def test_masked_files_of_a_line_are_not_asked_for_by_their_size(tmp_path: Path) -> None:
    files = {"results/short.csv": b"x" * 31, "results/longer.csv": b"x" * 32, "results/copy.csv": b"y" * 32}
    lister = Lister([("/x/site-packages/other/a.csv", b"x" * 31), ("/x/site-packages/other/b.csv", b"x" * 32)])
    found = look(tmp_path, lister, files)
    assert [size for size in lister.asked["sizes"] if isinstance(size, int) and size < 40] == [32]
    assert [hit.where for hit in found.hits] == ["environment:/x/site-packages/other/b.csv"]


def test_numbers_count_in_the_repositorys_own_package_only(tmp_path: Path) -> None:
    stated = f"# shrunk mse {NUMBER}\n".encode()
    lister = Lister([
        ("/usr/lib/python3/site-packages/estimators/a.py", stated),
        ("/usr/lib/python3/dist-packages/estimators.py", stated),
        ("/usr/lib/python3/site-packages/other/estimators/a.py", stated),
        ("/usr/lib/python3/site-packages", stated),
        ("/opt/estimators.py", stated),
    ])  # fmt: skip
    found = look(tmp_path, lister)
    assert [hit.where.rsplit(":", 1)[0] for hit in found.hits] == [
        "environment:/usr/lib/python3/site-packages/estimators/a.py",
        "environment:/usr/lib/python3/dist-packages/estimators.py",
    ]
    assert found.checks == ["installed_files"]


def test_a_copy_counts_wherever_it_is_installed_and_a_resemblance_in_the_own_package(tmp_path: Path) -> None:
    part = "\n\n\n".join(builders.RUN.split("\n\n\n")[1:3]).encode()
    lister = Lister([
        ("/x/site-packages/other/a.py", builders.RUN.encode()), ("/x/site-packages/other/b.py", part),
        ("/x/site-packages/estimators/b.py", part),
    ])  # fmt: skip
    hits = look(tmp_path, lister).hits
    found = {hit.where.partition(":")[2]: hit.score for hit in hits}
    assert {hit.kind for hit in hits if hit.where.endswith("other/a.py")} == {"exact", "near_duplicate"}
    assert "/x/site-packages/other/b.py" not in found
    assert found["/x/site-packages/estimators/b.py"] < 0.7


def test_what_was_too_much_to_hand_out_is_said(tmp_path: Path) -> None:
    lister = Lister([("/x/site-packages/other/a.py", None), ("/x/site-packages/other/b.py", builders.RUN.encode())])
    found = look(tmp_path, lister)
    assert [item.where for item in found.problems] == ["environment:/x/site-packages/other/a.py"]
    assert {hit.where for hit in found.hits} == {"environment:/x/site-packages/other/b.py"}  # the next one is compared
    assert "not compared: more than 64 MB" in found.problems[0].message


@pytest.mark.parametrize(
    ("files", "pins", "hit"),
    [
        ({"pyproject.toml": b'[project]\nname = "Shrink.Age"\n'}, ("numpy==2", "shrink_age==1.0"), "shrink_age==1.0"),
        ({"setup.cfg": b"[metadata]\nname = shrink\n"}, ("shrink",), "shrink"),
        ({"setup.py": b"setup(name='shrink', version='1')\n"}, ("shrink==2",), "shrink==2"),
        ({"setup.py": b"setup(\n    name = 'shrink',\n)\n"}, ("shrink-more==2",), None),
        ({"pyproject.toml": b"[tool]\n", "setup.cfg": b"name = shrink\n"}, ("shrink==1",), "shrink==1"),
        ({"docs/setup.py": b"name='shrink'\n"}, ("shrink==1",), None),
        ({}, ("shrink==1",), None),
    ],
)
def test_the_repositorys_own_distribution(
    files: dict[str, bytes], pins: tuple[str, ...], hit: str | None, tmp_path: Path
) -> None:
    task = builders.task(environment=Environment(packages=pins))
    found = own_distribution(task, builders.make(tmp_path / "original", files))
    assert [(item.score, f"installs {hit}," in item.detail) for item in found] == ([(1.0, True)] if hit else [])


def test_equivalent_scripts_are_asked_for_too(tmp_path: Path) -> None:
    task = builders.task()
    other = SourceScript(path="deep/twin.py", role="entry", score=1.0)
    task = task.evolve(truth=task.truth.evolve(equivalents=(other,)))
    snapshot = builders.make(tmp_path / "original", {"deep/twin.py": b"print('another way to the same answer')\n"})
    lister = Lister([])
    scan_environment(
        task, snapshot=snapshot, plan=plan_mask(task, snapshot), image=IMAGE, sandbox=lister, out=tmp_path / "out",
        owner="t",
    )  # fmt: skip
    assert "twin.py" in lister.asked["names"]


def test_what_an_image_says_of_itself_is_read_part_by_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare number counts in variables and labels, which somebody wrote; in commands it is chance."""
    facts = ImageFacts(
        environment=("PATH=/usr/bin", f"X={NUMBER}"), labels=(("y", NUMBER),), command=("sleep", NUMBER),
        history=(f"RUN sleep {NUMBER}",),
    )  # fmt: skip
    monkeypatch.setattr(images, "image_facts", lambda image: facts if image is IMAGE else None)
    lister = Lister([])
    assert look(tmp_path / "a", lister).hits == []
    lister.name = "docker"
    found = look(tmp_path / "b", lister)
    assert [(hit.where, hit.score) for hit in found.hits] == [
        ("image:environment variables:2", 0.3), ("image:labels:1", 0.3),
    ]  # fmt: skip
    assert found.checks == ["installed_files", "image_configuration"]


def test_a_sandbox_that_fails_leaves_packages_unread_and_says_why(tmp_path: Path) -> None:
    class Failing(Lister):
        def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str) -> RunResult:
            super().run(image, tree, spec, out=out, owner=owner)
            return RunResult(commands=(), failure=FailureKind.RUN_TIMEOUT)

    found = look(tmp_path, Failing([("/x/site-packages/a.py", builders.RUN.encode())]))
    assert (found.hits, found.checks) == ([], [])
    assert [(item.where, item.severity) for item in found.problems] == [("environment", Severity.WARNING)]
    assert "were not looked into: run_timeout" in found.problems[0].message
