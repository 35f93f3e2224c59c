"""Releases of the families that are made of files: two halves, nothing lost, nothing told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from evaluation.exports.families import causal as causal_form
from evaluation.families.causal.store import load_tasks as load_frozen
from evaluation.families.causal.store import write_tasks
from evaluation.families.causal.task import CausalTask
from evaluation.sources import load_tasks
from evaluation.task import EvaluationTask
from flows.cli import app
from flows.release import ReleaseOptions, ReleaseResult, release
from flows.release_gate import check_public
from flows.release_offer import sources_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.formats.family_parts import FamilyPart, significant_digits, telling_runs
from pipeline.formats.huggingface import canary_of, read_family_parts
from pipeline.progress import SilentReporter
from tests.evaluation.families.histogram.support import TRUTH, publish
from tests.evaluation.families.table.support import METADATA, truth_text, write_task
from tests.flows.test_release import PRIVATE, filled, load, readable

FAMILIES = ("causal", "histogram", "table")
ROOT = Path(__file__).parents[2]
FILED = ["p-1_sim-T5Wg", "task_decay_1999"]


def worlds() -> list[CausalTask]:
    """One frozen task of each of two tiers."""
    found, _ = load_frozen(ROOT / "datasets")
    return [next(task for task in found if task.tier == tier) for tier in ("L1", "L4")]


class Made(NamedTuple):
    """Sources of three families, and their release with a workspace's; only read."""

    root: Path
    sources: list[Path]
    worlds: list[CausalTask]
    result: ReleaseResult

    @property
    def ids(self) -> list[str]:
        return sorted([*FILED, *(world.id for world in self.worlds)])

    @property
    def directory(self) -> Path:
        return self.result.directory


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("families")
    publish(root / "collider")
    write_task(root / "prbench")
    found = worlds()
    write_tasks(found, root / "causal")
    sources = [root / name for name in ("causal", "collider", "prbench")]
    workspace = filled(root / "work")
    result = release(workspace, out=root / "out", accept_all=True, name="all", families=sources)
    return Made(root, sources, found, result)


def evaluated(source: Path, scratch: Path) -> dict[str, EvaluationTask]:
    tasks, _ = load_tasks(source, scratch=scratch, reporter=SilentReporter())
    return {task.id: task for task in tasks}


def test_each_family_has_a_configuration_and_its_answers_apart(made: Made, tmp_path: Path) -> None:
    assert made.result.tasks == 6
    assert made.result.configs == (
        "tasks", "truth", "causal", "experiment", "histogram", "table", "causal-truth", "experiment-truth",
        "histogram-truth", "table-truth",
    )  # fmt: skip
    cache = tmp_path / "cache"
    assert sorted(load(made.directory, "tasks", cache)["id"]) == sorted(
        [*made.ids, "paper-table-1-accuracy", "paper-table-3-other"]
    )
    (histogram,) = load(made.directory, "histogram", cache)
    assert histogram["histogram"]["bins"][0] == {"low": 600.0, "high": 800.0, "label": ""}
    assert (histogram["category"], histogram["causal"]) == ("easy", None)
    (hidden,) = load(made.directory, "histogram-truth", cache)
    assert hidden["histogram"]["values"] == list(TRUTH)
    (table,) = load(made.directory, "table", cache)
    assert (table["table"]["data"], table["table"]["code_only"]) == (["data/fig1.csv"], True)
    (hidden,) = load(made.directory, "table-truth", cache)
    assert hidden["table"]["tables"][0]["csv"] == truth_text()
    assert [item["weight"] for item in hidden["table"]["dimensions"]] == [0.05, 0.30, 0.60, 0.05]
    first, last = load(made.directory, "causal-truth", cache)
    assert first["causal"]["direction"] in {"up", "down"}
    ((name, boundary),) = made.worlds[1].hidden.drivers
    assert last["causal"]["drivers"] == [{"parameter": name, "value": boundary}]


def test_what_datasets_loads_is_every_file_byte_for_byte(made: Made, tmp_path: Path) -> None:
    there: dict[str, bytes] = {}
    for family in FAMILIES:
        for config in (family, f"{family}-truth"):
            for row in load(made.directory, config, tmp_path / "cache"):
                there |= {item["path"]: item["data"] for item in row["files"]}
    shared = made.root / "collider" / "tasks" / "shared" / "P-1"
    expected = {path.name: path.read_bytes() for path in (made.root / "causal").iterdir()}
    task = made.root / "prbench" / "task_decay_1999"
    expected |= {f"tasks/task_decay_1999/{path.relative_to(task).as_posix()}": path.read_bytes()
                 for path in task.rglob("*") if path.is_file() and path.name != "decay.md"}  # fmt: skip
    home = made.root / "collider" / "tasks" / "p-1_sim-T5Wg"
    expected |= {f"tasks/p-1_sim-T5Wg/{path.relative_to(home).as_posix()}": path.read_bytes()
                 for path in home.rglob("*") if path.is_file()}  # fmt: skip
    (reference,) = (shared / "reference").iterdir()
    expected[f"shared/P-1/reference/{reference.name}"] = reference.read_bytes()
    assert there == expected


def test_no_answer_of_any_family_is_in_the_public_part(made: Made) -> None:
    hidden = dict(made.worlds[1].hidden.drivers)
    (boundary,) = hidden.values()
    wanted = [PRIVATE.encode(), canary_of("all").encode(), b"46.48", b'"hidden"', b'"verification"',
              f"{boundary:g}".encode(), b"Propagator splitting", truth_text().splitlines()[5].encode(),
              b"math.exp(-rate)"]  # fmt: skip
    files = [path for path in made.directory.rglob("*") if path.is_file()]
    public = [path for path in files if "private" not in path.relative_to(made.directory).parts]
    assert {"causal.parquet", "histogram.png", "README.md", "CHANGELOG.md"} <= {path.name for path in public}
    for path in public:
        for data in readable(path):
            assert not [text for text in wanted if text in data], path
    for path in set(files) - set(public):
        assert any(canary_of("all").encode() in data for data in readable(path)), path


def test_a_world_cannot_be_told_from_its_public_half(made: Made, tmp_path: Path) -> None:
    """Another answer to the same question gives the same public half: nothing of the answer is in it."""
    for world in made.worlds:
        (name, value), *rest = world.hidden.drivers
        other = next((item for item in world.candidates if item != name), name)
        hidden = world.hidden.evolve(
            drivers=((other, value * 1.01 if other == name else value), *rest),
            direction={"up": "down", "down": "up", None: None}[world.hidden.direction],
        )
        twin = world.evolve(hidden=hidden)
        assert twin != world
        assert causal_form.public_columns(twin) == causal_form.public_columns(world)
        for task, folder in ((world, "one"), (twin, "two")):
            write_tasks([task], tmp_path / folder)
        ours, theirs = (evaluated(tmp_path / folder, tmp_path / f"{folder}-scratch") for folder in ("one", "two"))
        assert ours[world.id].public == theirs[world.id].public
        shutil.rmtree(tmp_path / "one")
        shutil.rmtree(tmp_path / "two")


def test_a_histogram_s_public_half_does_not_depend_on_its_reference(made: Made, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(made.root / "collider", other)
    (reference,) = other.glob("tasks/shared/P-1/reference/*.yaml")
    reference.write_text(reference.read_text().replace("46.48", "12.25").replace("0.49", "3.5"))
    rows = []
    for source, out in ((made.root / "collider", tmp_path / "a"), (other, tmp_path / "b")):
        release([], out=out, accept_all=False, name="same", families=[source])
        (part,) = read_family_parts(out)
        rows.append(part.evolve(private_files={}, truth={}))
    assert rows[0] == rows[1]


def test_an_imported_release_is_the_tasks_that_were_released(made: Made, tmp_path: Path) -> None:
    options = ["import", "release", str(made.directory), "--out", str(tmp_path / "in"), "--json"]
    done = CliRunner().invoke(app, [*options, "--papers", str(made.root)])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["without_paper"] == []
    found = evaluated(tmp_path / "in", tmp_path / "scratch")
    again = evaluated(made.directory, tmp_path / "again")
    assert sorted(found) == sorted(again) == sorted([*made.ids, "paper-table-1-accuracy", "paper-table-3-other"])
    for source in made.sources:
        for name, task in evaluated(source, tmp_path / source.name).items():
            assert (found[name].public, found[name].private_digest) == (task.public, task.private_digest)
            assert (found[name].category, found[name].blocked) == (task.category, "")
            assert again[name].public == task.public
            assert again[name].blocked == "" or "paper" in again[name].blocked
    sound = found["paper-table-1-accuracy"]
    assert sound.blocked == ""
    assert sound.truth == again["paper-table-1-accuracy"].truth
    assert sound.private_digest == again["paper-table-1-accuracy"].private_digest
    with pytest.raises(ExpbenchError, match="import of a release"):
        sources_of([tmp_path / "in"])


def test_a_paper_goes_along_only_where_its_licence_allows(made: Made, tmp_path: Path) -> None:
    done = CliRunner().invoke(
        app, ["import", "release", str(made.directory), "--out", str(tmp_path / "in"), "--json"]
    )  # fmt: skip
    assert json.loads(done.stdout)["without_paper"] == ["p-1_sim-T5Wg", "task_decay_1999"]
    found = evaluated(tmp_path / "in", tmp_path / "scratch")
    assert "--papers" in found["p-1_sim-T5Wg"].blocked
    assert "--papers" in found["task_decay_1999"].blocked
    options = ReleaseOptions(paper_licenses={"p-1": "CC-BY-4.0"})
    given = release([], out=tmp_path / "out", accept_all=False, name="x", families=[made.sources[1]], options=options)
    (part,) = read_family_parts(given.directory)
    assert part.paper_files == ("shared/P-1/paper/P-1.pdf",)
    assert part.withheld == ()
    assert evaluated(given.directory, tmp_path / "other")["p-1_sim-T5Wg"].blocked == ""


def test_without_its_private_part_a_task_is_blocked_and_not_lost(made: Made, tmp_path: Path) -> None:
    shutil.copytree(made.directory, tmp_path / "public", ignore=shutil.ignore_patterns("private"))
    found = evaluated(tmp_path / "public", tmp_path / "scratch")
    assert set(made.ids) <= set(found)
    assert all("ground truth" in found[name].blocked for name in made.ids)


def test_versions_say_what_became_of_a_task_that_is_files(made: Made, tmp_path: Path) -> None:
    source, out = tmp_path / "prbench", tmp_path / "out"
    write_task(source)
    first = release([], out=out, accept_all=False, name="x", families=[source])
    assert [change.task for change in first.added] == ["task_decay_1999"]
    assert release([], out=out, accept_all=False, name="x", families=[source]).version == "1.0.0"
    truth = source / "task_decay_1999" / "data" / "fig1.csv"
    truth.write_text(truth.read_text().replace("0.9", "0.8"))
    repaired = release([], out=out, accept_all=False, name="x", families=[source])
    assert (repaired.version, repaired.repaired[0].what) == ("1.0.1", ("ground truth",))
    shutil.copytree(made.root / "causal", tmp_path / "causal")
    changed = release([], out=out, accept_all=False, name="x", families=[tmp_path / "causal"])
    assert changed.version == "1.1.0"
    assert [change.task for change in changed.withdrawn] == ["task_decay_1999"]


@pytest.mark.parametrize(
    ("place", "text", "cause"),
    [
        ("README.md", "In the last bins: 6.1, 46.48.", "numbers of the reference"),
        ("CHANGELOG.md", truth_text().splitlines()[4], "fig1.csv"),
        ("README.md", "".join(line for line in METADATA.splitlines() if "Trotter" in line), "graders' text"),
    ],
)
def test_the_gate_finds_the_truth_of_every_family(
    made: Made, tmp_path: Path, place: str, text: str, cause: str
) -> None:
    from evaluation.exports.families.forms import family_parts

    parts: list[FamilyPart] = []
    for source in made.sources:
        parts += family_parts(source, shared_papers=frozenset(), reporter=SilentReporter())[0]
    copy = tmp_path / "copy"
    shutil.copytree(made.directory, copy)
    check_public(copy, [], "all", parts)
    (copy / place).write_text((copy / place).read_text() + text)
    with pytest.raises(ExpbenchError, match=cause) as caught:
        check_public(copy, [], "all", parts)
    assert (caught.value.kind, caught.value.object) == (FailureKind.LEAK_FOUND, place)


def test_a_template_that_was_left_filled_is_not_released(tmp_path: Path) -> None:
    directory = publish(tmp_path / "collider")
    (template,) = (directory / "template").iterdir()
    told = "\n".join(f"# expected: {value}" for value in TRUTH)
    (directory / "TASK.md").write_text((directory / "TASK.md").read_text() + told)
    with pytest.raises(ExpbenchError, match="numbers of the reference") as caught:
        release([], out=tmp_path / "out", accept_all=False, name="x", families=[tmp_path / "collider"])
    assert caught.value.kind is FailureKind.LEAK_FOUND
    assert not (tmp_path / "out").exists()
    assert template.is_file()


@pytest.mark.parametrize("arguments", [["nothing"], ["plain"]])
def test_what_is_no_source_is_refused(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "plain").mkdir()
    done = CliRunner().invoke(
        app, ["release", *(str(tmp_path / name) for name in arguments), "--out", str(tmp_path / "o")]
    )
    assert isinstance(done.exception, ExpbenchError)
    assert done.exception.kind is FailureKind.RECORD_INVALID


def test_a_release_without_a_workspace_needs_a_place(made: Made) -> None:
    with pytest.raises(ExpbenchError, match="--out"):
        release([], out=None, accept_all=False, name=None, families=[made.sources[0]])


def test_the_card_counts_and_draws_every_family(made: Made) -> None:
    card = (made.directory / "README.md").read_text()
    for text in ("| tier | L1 (1), L4 (1) |", "| bins | 4 to 4", "| tables | 1 to 1", "![Causal](images/causal.png)",
                 "tasks without their paper's files (licence)"):  # fmt: skip
        assert text in card, text
    private = (made.directory / "private" / "README.md").read_text()
    assert "`histogram-truth`" in private


@settings(max_examples=50)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), max_size=12))
def test_runs_that_tell_are_pieces_of_the_sequence_and_hold_digits_enough(values: list[float]) -> None:
    text: list[Any] = list(values)
    for run in telling_runs(values):
        assert any(tuple(text[at : at + len(run)]) == run for at in range(len(text)))
        assert sum(map(significant_digits, run)) >= 6
        assert sum(map(significant_digits, run[:-1])) < 6
